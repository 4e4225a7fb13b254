//! Whether the counts of a profile are times lost rather than numbers of accesses.
//!
//! A profile holds one count for each chunk and epoch, weighted as the source weighs. Hardware
//! samples weigh by the latency of the access; a timer strikes where the program waits, so its
//! samples weigh by time. Pages that were found touched are only counted.

use isotherm_model::batch::SourceReport;

/// Sources whose samples weigh by the latency that the processor measured.
const BY_LATENCY: [&str; 3] = ["pebs", "ibs", "spe"];
/// Sources whose samples are spread evenly over time.
const BY_TIME: [&str; 1] = ["timer"];
/// Sources that say only that a page was touched.
const BY_COUNT: [&str; 3] = ["accessed-bits", "trapped-pages", "page-faults"];

/// True where all that was sampled weighs by latency, or all of it by time: then the counts can be
/// compared as times. A mixture has no unit, and a source that only counts knows no time.
#[must_use]
pub fn is_latency_weighted(sources: &[SourceReport]) -> bool {
    let delivered = |names: &[&str]| {
        let mut with_samples = sources.iter().filter(|source| source.usable > 0);
        with_samples.any(|source| names.contains(&source.name.as_str()))
    };
    delivered(&BY_LATENCY) != delivered(&BY_TIME) && !delivered(&BY_COUNT)
}

#[cfg(test)]
mod tests {
    use super::is_latency_weighted;
    use isotherm_model::batch::SourceReport;
    use isotherm_model::units::Nanos;

    fn known(sources: &[(&str, u64)]) -> bool {
        let report = |&(name, usable): &(&str, u64)| SourceReport {
            name: name.to_owned(),
            taken: usable,
            usable,
            lost: 0,
            cost: Nanos(0),
            cost_note: String::new(),
            trouble: String::new(),
        };
        is_latency_weighted(&sources.iter().map(report).collect::<Vec<_>>())
    }

    #[test]
    fn one_kind_of_weight_is_a_time_and_a_mixture_or_a_count_is_none() {
        assert!(known(&[("timer", 9)]));
        assert!(known(&[("pebs", 9), ("resident-set", 100)]));
        assert!(known(&[("spe", 9), ("timer", 0), ("accessed-bits", 0)]));
        assert!(!known(&[("pebs", 9), ("timer", 9)]));
        assert!(!known(&[("timer", 9), ("accessed-bits", 1)]));
        assert!(!known(&[("trapped-pages", 9)]));
        assert!(!known(&[("timer", 0)]));
        assert!(!known(&[]));
    }
}
