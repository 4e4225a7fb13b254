//! Whether the counts of a profile are times lost rather than numbers of accesses.

use isotherm_model::batch::SourceReport;

use crate::count_unit::{CountUnit, common_unit};

/// True where all that was sampled weighs by latency, or all of it by time: then the counts can be
/// compared as times. A mixture has no unit, and a source that only counts knows no time.
#[must_use]
pub fn is_latency_weighted(sources: &[SourceReport]) -> bool {
    matches!(
        common_unit(sources),
        Some(CountUnit::Latency | CountUnit::Time)
    )
}

#[cfg(test)]
mod tests {
    use super::is_latency_weighted;
    use crate::count_unit::tests::reports;

    #[test]
    fn one_kind_of_weight_is_a_time_and_a_mixture_or_a_count_is_none() {
        let known = |sources| is_latency_weighted(&reports(sources));
        assert!(known(&[("timer", 9)]));
        assert!(known(&[("pebs", 9), ("resident-set", 100)]));
        assert!(known(&[("spe", 9), ("timer", 0), ("accessed-bits", 0)]));
        assert!(!known(&[("pebs", 9), ("timer", 9)]));
        assert!(!known(&[("timer", 9), ("accessed-bits", 1)]));
        assert!(!known(&[("timer", 9), ("memprof", 1)]));
        assert!(!known(&[("trapped-pages", 9)]));
        assert!(!known(&[("timer", 0)]));
        assert!(!known(&[]));
    }
}
