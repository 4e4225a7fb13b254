//! [`name`] gives each object of a shared plan its rival, a part of the reason in the plan: for a placed object the next object of another
//! program, in the policy's order, that is left out; for one left out at least in part, the last one before it that is placed. Policies
//! that divide the tier into a part for each program have no common order, and no rivals.

use isotherm_model::units::Bytes;

use super::colocation::{Grant, Rival};

/// Names the rivals of grants, which are in the order of the policy: for a placed object, the next object of another program that is left
/// out; for one left out at least in part, the last object of another program that was placed before it. `has_enough`: more memory would
/// not make this program faster, so it lacks nothing.
pub(super) fn name(grants: &mut [Grant], has_enough: impl Fn(&str) -> bool) {
    let is_left_out = |grant: &Grant| grant.fast < grant.size && !has_enough(&grant.program);
    let is_placed = |grant: &Grant| grant.fast > Bytes::ZERO;
    let after = nearest_others(grants.iter().rev(), is_left_out);
    let before = nearest_others(grants.iter(), is_placed);
    let of_each = before.into_iter().zip(after.into_iter().rev());
    for (grant, (before, after)) in grants.iter_mut().zip(of_each) {
        let (comes_before, other) = match (is_left_out(grant), is_placed(grant)) {
            (true, _) => (true, before),
            (false, true) => (false, after),
            (false, false) => continue,
        };
        grant.rival = other.map(|(program, object)| Rival {
            program,
            object,
            comes_before,
        });
    }
}

/// A program and its object.
type Named = (String, String);

/// For each grant the last grant before it that `counts` and belongs to another program.
fn nearest_others<'a>(
    grants: impl Iterator<Item = &'a Grant>,
    counts: impl Fn(&Grant) -> bool,
) -> Vec<Option<Named>> {
    // The last grant, and the last grant of another program than that one's.
    let mut last = [None::<&Grant>; 2];
    let of_grant = |grant: &'a Grant| {
        let is_other = |last: &&Grant| last.program != grant.program;
        let other = last.into_iter().flatten().find(is_other);
        if counts(grant) {
            let next = match last[0].is_some_and(|last| last.program == grant.program) {
                true => last[1],
                false => last[0],
            };
            last = [Some(grant), next];
        }
        other.map(|other| (other.program.clone(), other.object.clone()))
    };
    grants.map(of_grant).collect()
}

#[cfg(test)]
mod tests {
    use isotherm_model::units::Bytes;

    use super::{Grant, name};

    fn grant((program, object): (&str, &str), size: u64, fast: u64) -> Grant {
        Grant {
            program: program.to_owned(),
            object: object.to_owned(),
            size: Bytes(size),
            fast: Bytes(fast),
            reason: "why".to_owned(),
            rival: None,
        }
    }

    /// The rivals in words.
    fn rivals<const N: usize>(mut grants: [Grant; N], enough: &str) -> [String; N] {
        name(&mut grants, |program| program == enough);
        grants.map(|grant| {
            let rival = grant.rival.map(|rival| rival.text(&rival.object));
            rival.unwrap_or_default()
        })
    }

    #[test]
    fn the_nearest_object_of_another_program_on_the_other_side_is_named() {
        let grants = [
            grant(("a", "one"), 4, 4),
            grant(("b", "two"), 4, 4),
            grant(("b", "three"), 4, 2),
            grant(("c", "four"), 4, 0),
            grant(("a", "five"), 4, 0),
        ];
        assert_eq!(
            rivals(grants, ""),
            [
                "b lacks three, which comes after it",
                "c lacks four, which comes after it",
                "a has one, which comes before it",
                "b has three, which comes before it",
                "b has three, which comes before it",
            ]
        );
    }

    #[test]
    fn of_several_objects_of_a_program_the_nearest_is_named() {
        let grants = [
            grant(("a", "one"), 4, 4),
            grant(("a", "two"), 4, 4),
            grant(("b", "three"), 4, 0),
            grant(("b", "four"), 4, 0),
        ];
        assert_eq!(
            rivals(grants, ""),
            [
                "b lacks three, which comes after it",
                "b lacks three, which comes after it",
                "a has two, which comes before it",
                "a has two, which comes before it",
            ]
        );
    }

    #[test]
    fn a_program_that_has_enough_lacks_nothing() {
        let grants = [
            grant(("a", "one"), 4, 4),
            grant(("b", "two"), 4, 2),
            grant(("c", "three"), 4, 0),
            grant(("b", "four"), 4, 0),
        ];
        assert_eq!(
            rivals(grants, "b"),
            [
                "c lacks three, which comes after it",
                "c lacks three, which comes after it",
                "b has two, which comes before it",
                "",
            ]
        );
    }

    #[test]
    fn a_program_alone_has_no_rival() {
        let grants = [grant(("a", "one"), 4, 4), grant(("a", "two"), 4, 0)];
        assert_eq!(rivals(grants, ""), ["", ""]);
    }
}
