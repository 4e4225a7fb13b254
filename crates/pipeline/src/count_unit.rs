//! What the counts of a profile are counts of.
//!
//! A profile holds one count for each chunk and epoch, weighted as the source weighs. Counts of
//! one unit can be compared; a mixture has none.

use std::collections::BTreeSet;

use isotherm_model::batch::SourceReport;

/// What a source counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CountUnit {
    /// Accesses: each once, or each sample times the accesses for which it stands.
    Access,
    /// Samples weighted by the latency that the processor measured.
    Latency,
    /// Samples spread evenly over processor time, which strike where the program waits.
    Time,
    /// Times that a page was found touched, however often it was.
    Touch,
    /// Whatever a source of another version counts.
    Unknown,
}

/// The unit of a source; `None` for one that reads sizes and sees no accesses.
fn unit_of(source: &str) -> Option<CountUnit> {
    Some(match source {
        "instrumented" | "memprof" => CountUnit::Access,
        "pebs" | "ibs" | "spe" => CountUnit::Latency,
        "timer" => CountUnit::Time,
        "accessed-bits" | "trapped-pages" | "page-faults" => CountUnit::Touch,
        "resident-set" | "session-files" => return None,
        _ => CountUnit::Unknown,
    })
}

/// The unit that all sources with samples share; `None` where there is none or they differ.
pub(crate) fn common_unit(sources: &[SourceReport]) -> Option<CountUnit> {
    let delivered = sources.iter().filter(|source| source.usable > 0);
    let units: BTreeSet<_> = delivered
        .filter_map(|source| unit_of(&source.name))
        .collect();
    match units.into_iter().collect::<Vec<_>>()[..] {
        [unit] => Some(unit),
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{CountUnit, common_unit};
    use isotherm_model::batch::SourceReport;
    use isotherm_model::units::Nanos;

    /// Reports of these sources with so many usable samples.
    pub(crate) fn reports(sources: &[(&str, u64)]) -> Vec<SourceReport> {
        let report = |&(name, usable): &(&str, u64)| SourceReport {
            name: name.to_owned(),
            taken: usable,
            usable,
            lost: 0,
            cost: Nanos(0),
            cost_note: String::new(),
            trouble: String::new(),
        };
        sources.iter().map(report).collect()
    }

    #[test]
    fn sources_of_one_kind_share_a_unit_and_silent_ones_have_no_say() {
        let unit = |sources| common_unit(&reports(sources));
        assert_eq!(unit(&[("timer", 9)]), Some(CountUnit::Time));
        assert_eq!(
            unit(&[("pebs", 9), ("spe", 1), ("resident-set", 100)]),
            Some(CountUnit::Latency)
        );
        assert_eq!(
            unit(&[("memprof", 3), ("timer", 0)]),
            Some(CountUnit::Access)
        );
        assert_eq!(unit(&[("instrumented", 3)]), Some(CountUnit::Access));
        assert_eq!(unit(&[("tea-leaves", 3)]), Some(CountUnit::Unknown));
        assert_eq!(unit(&[("timer", 9), ("trapped-pages", 1)]), None);
        assert_eq!(unit(&[("timer", 0), ("session-files", 4)]), None);
    }
}
