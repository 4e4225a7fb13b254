//! Reads and checks the flags of `isotherm colocate` by which programs share fast memory (`--policy`, `--share`, `--floor`, `--fairness`),
//! makes the sharing policies (Isotherm's own and CoMerge's), and gives each program a name by its profile.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::Path;

use anyhow::{Result, bail};
use isotherm_model::variant_words;
use isotherm_policy::sharing::{LeastSlowdown, PaperPolicy, SharingPolicy};

variant_words! {
    /// What a policy shares.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum SharedObjects {
        /// Whole sites, as CoMerge does.
        Sites = "sites",
        /// Chunks of sites.
        Chunks = "chunks",
    }
}

impl SharedObjects {
    /// What a policy shares by default: the paper's are as they were published.
    pub(crate) fn of_policy(policy: &str) -> Self {
        match policy == LeastSlowdown::default().name() {
            true => Self::Chunks,
            false => Self::Sites,
        }
    }
}

/// The most that a program may be slowed, in percent of what equal split slows it; `None` for no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fairness(Option<NonZeroU32>);

/// Our policy with the floors and the fairness that the flags give.
pub(crate) fn ours(floors: &[(String, u32)], fairness: Option<Fairness>) -> LeastSlowdown {
    let default = LeastSlowdown::default();
    LeastSlowdown {
        floors: floors.iter().cloned().collect(),
        fairness: fairness.map_or(default.fairness, |it| it.0),
        ..default
    }
}

/// The policies: ours, then the paper's.
pub(crate) fn policies(ours: LeastSlowdown) -> impl Iterator<Item = Box<dyn SharingPolicy>> {
    let ours: Box<dyn SharingPolicy> = Box::new(ours);
    let paper = PaperPolicy::ALL.into_iter();
    let paper = paper.map(|policy| Box::new(policy) as Box<dyn SharingPolicy>);
    std::iter::once(ours).chain(paper)
}

/// The names of the policies.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    policies(LeastSlowdown::default()).map(|policy| policy.name())
}

/// Checks the name of a policy, and that floors and a fairness are given to one that has them.
///
/// # Errors
/// An unknown name, promises that the policy does not know.
pub(crate) fn check(
    policy: &str,
    floors: &[(String, u32)],
    fairness: Option<Fairness>,
) -> Result<()> {
    if !names().any(|name| name == policy) {
        let known: Vec<_> = names().collect();
        bail!(
            "--policy {policy}: there is no such policy; there are {}",
            known.join(", ")
        );
    }
    let ours = LeastSlowdown::default();
    if policy != ours.name() && !floors.is_empty() {
        bail!(
            "--floor is for --policy {}: {policy} has no floors",
            ours.name()
        );
    }
    if policy != ours.name() && fairness.is_some() {
        bail!(
            "--fairness is for --policy {}: {policy} has no bound of a slow-down",
            ours.name()
        );
    }
    Ok(())
}

/// Reads a floor: `NAME=PERCENT`.
pub(crate) fn floor(text: &str) -> Result<(String, u32), String> {
    let (name, percent) = text.rsplit_once('=').unwrap_or((text, ""));
    match percent.trim_end_matches('%').parse() {
        Ok(percent @ 0..=100) if !name.is_empty() => Ok((name.to_owned(), percent)),
        _ => Err("must be the name of a program, `=` and 0 to 100".to_owned()),
    }
}

/// Reads a fairness: a percentage, or `none`.
pub(crate) fn fairness(text: &str) -> Result<Fairness, String> {
    if text == "none" {
        return Ok(Fairness(None));
    }
    match text.trim_end_matches('%').parse() {
        Ok(percent @ 100..=1000) => Ok(Fairness(NonZeroU32::new(percent))),
        _ => Err(
            "must be 100 to 1000, in percent of the slow-down by equal split, or `none`".to_owned(),
        ),
    }
}

/// A name for each program: that of its profile without the ending, numbered where several have it.
pub(crate) fn program_names<'a>(profiles: impl Iterator<Item = &'a Path>) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let name = |path: &Path| {
        let stem = path.file_stem().unwrap_or(path.as_os_str());
        let stem = stem.to_string_lossy().into_owned();
        let numbered = (2..).map(|number| format!("{stem}-{number}"));
        let mut names = std::iter::once(stem.clone()).chain(numbered);
        let free = names
            .find(|name| !taken.contains(name))
            .unwrap_or_else(|| stem.clone());
        taken.insert(free.clone());
        free
    };
    profiles.map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::{Fairness, check, fairness, floor, program_names};
    use std::path::Path;

    #[test]
    fn a_floor_is_a_name_and_a_percentage() {
        assert_eq!(floor("db=40"), Ok(("db".to_owned(), 40)));
        assert_eq!(floor("a=b=100%"), Ok(("a=b".to_owned(), 100)));
        for wrong in ["db", "db=", "=4", "db=101", "db=-1", "db=4.5"] {
            assert!(floor(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_fairness_is_a_percentage_of_100_at_least_or_none() {
        let percent = |percent| Fairness(std::num::NonZeroU32::new(percent));
        assert_eq!(fairness("125"), Ok(percent(125)));
        assert_eq!(fairness("100%"), Ok(percent(100)));
        assert_eq!(fairness("none"), Ok(Fairness(None)));
        for wrong in ["99", "1.25", "", "-1", "1001", "all"] {
            assert!(fairness(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn programs_of_one_name_are_numbered() {
        let paths = ["x/db.iso", "y/db.iso", "db-2.iso", "web.iso"].map(Path::new);
        assert_eq!(
            program_names(paths.into_iter()),
            ["db", "db-2", "db-2-2", "web"]
        );
    }

    #[test]
    fn unknown_policies_and_promises_for_others_are_refused() {
        assert!(check("comerge", &[], None).is_ok());
        let unknown = check("comrege", &[], None).unwrap_err().to_string();
        assert!(unknown.contains("least-slowdown, equal-split"), "{unknown}");
        assert!(check("comerge", &[("db".to_owned(), 5)], None).is_err());
        assert!(check("comerge", &[], Some(Fairness(None))).is_err());
        assert!(
            check(
                "least-slowdown",
                &[("db".to_owned(), 5)],
                Some(Fairness(None))
            )
            .is_ok()
        );
    }
}
