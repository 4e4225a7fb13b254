//! Which other program an object was before or after: the reason why one program has memory that another lacks.

use isotherm_model::units::Bytes;

use super::colocation::Grant;

/// Adds to the reasons of grants, which are in the order of the policy, the other program that comes next to them: to one that is placed, the
/// program whose next data is left out; to one that is left out at least in part, the program whose data was placed last before it.
/// `has_enough`: more memory would not make this program faster, so it lacks nothing.
pub(super) fn name(grants: &mut [Grant], has_enough: impl Fn(&str) -> bool) {
    let is_left_out = |grant: &Grant| grant.fast < grant.size && !has_enough(&grant.program);
    let is_placed = |grant: &Grant| grant.fast > Bytes::ZERO;
    let after = nearest_others(grants.iter().rev(), is_left_out);
    let before = nearest_others(grants.iter(), is_placed);
    let of_each = before.into_iter().zip(after.into_iter().rev());
    for (grant, (before, after)) in grants.iter_mut().zip(of_each) {
        let rival = match (is_left_out(grant), is_placed(grant)) {
            (true, _) => before.map(|program| format!("; {program} has what comes before it")),
            (false, true) => after.map(|program| format!("; {program} lacks what comes after it")),
            (false, false) => None,
        };
        grant.reason.push_str(&rival.unwrap_or_default());
    }
}

/// For each grant the program, other than its own, of the last one before it that `counts`.
fn nearest_others<'a>(
    grants: impl Iterator<Item = &'a Grant>,
    counts: impl Fn(&Grant) -> bool,
) -> Vec<Option<String>> {
    // The last program, and the last other than that.
    let mut last = [None::<&str>; 2];
    let of_grant = |grant: &'a Grant| {
        let program = grant.program.as_str();
        let other = last.into_iter().flatten().find(|last| *last != program);
        if counts(grant) && last[0] != Some(program) {
            last = [Some(program), last[0]];
        }
        other.map(str::to_owned)
    };
    grants.map(of_grant).collect()
}

#[cfg(test)]
mod tests {
    use isotherm_model::units::Bytes;

    use super::{Grant, name};

    fn grant(program: &str, size: u64, fast: u64) -> Grant {
        Grant {
            program: program.to_owned(),
            object: String::new(),
            size: Bytes(size),
            fast: Bytes(fast),
            reason: "why".to_owned(),
        }
    }

    #[test]
    fn the_nearest_other_program_on_the_other_side_is_named() {
        let mut grants = [
            grant("a", 4, 4),
            grant("b", 4, 4),
            grant("b", 4, 2),
            grant("c", 4, 0),
            grant("a", 4, 0),
        ];
        name(&mut grants, |_| false);
        let reasons = grants.map(|grant| grant.reason);
        assert_eq!(
            reasons,
            [
                "why; b lacks what comes after it",
                "why; c lacks what comes after it",
                "why; a has what comes before it",
                "why; b has what comes before it",
                "why; b has what comes before it",
            ]
        );
    }

    #[test]
    fn a_program_that_has_enough_lacks_nothing() {
        let mut grants = [
            grant("a", 4, 4),
            grant("b", 4, 2),
            grant("c", 4, 0),
            grant("b", 4, 0),
        ];
        name(&mut grants, |program| program == "b");
        let reasons = grants.map(|grant| grant.reason);
        assert_eq!(
            reasons,
            [
                "why; c lacks what comes after it",
                "why; c lacks what comes after it",
                "why; b has what comes before it",
                "why",
            ]
        );
    }

    #[test]
    fn a_program_alone_has_no_rival() {
        let mut grants = [grant("a", 4, 4), grant("a", 4, 0)];
        name(&mut grants, |_| false);
        assert_eq!(grants.map(|grant| grant.reason), ["why", "why"]);
    }
}
