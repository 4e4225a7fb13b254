//! [`count_worth`] finds what one count of a profile represents, for the simulator's times: one access of the program, the accesses of a
//! known processor time, or an unknown number.

use isotherm_model::count_unit::CountUnit;
use isotherm_model::profile::Profile;
use isotherm_model::units::Nanos;

/// The meaning of one count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountWorth {
    /// One access: all were counted, or samples were multiplied by the accesses that they
    /// represent.
    OneAccess,
    /// The accesses of the given processor time.
    Time(Nanos),
    /// Unknown: the source weighs its samples, detects only that a page was accessed, or does not
    /// report its interval, or there are several sources.
    Unknown,
}

/// The meaning of one count of this profile.
#[must_use]
pub fn count_worth(profile: &Profile) -> CountWorth {
    match (profile.counted(), profile.meta.sample_interval) {
        (CountUnit::Accesses | CountUnit::Misses, _) => CountWorth::OneAccess,
        (CountUnit::Time, Some(interval)) => CountWorth::Time(interval),
        _ => CountWorth::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::{CountWorth, count_worth};
    use isotherm_model::batch::SourceReport;
    use isotherm_model::profile::{Meta, Profile};
    use isotherm_model::units::Nanos;

    fn worth(sources: &[(&str, u64)], sample_interval: Option<Nanos>) -> CountWorth {
        let mut profile = Profile::new(Meta {
            sample_interval,
            ..Meta::default()
        });
        let report = |&(name, usable): &(&str, u64)| SourceReport {
            name: name.to_owned(),
            taken: usable,
            usable,
            ..SourceReport::default()
        };
        profile.sources = sources.iter().map(report).collect();
        count_worth(&profile)
    }

    #[test]
    fn only_a_lone_timer_of_known_interval_and_complete_counts_have_a_known_worth() {
        let millisecond = Some(Nanos(1_000_000));
        let timer = [("timer", 9), ("resident-set", 99), ("pebs", 0)];
        assert_eq!(
            worth(&timer, millisecond),
            CountWorth::Time(Nanos(1_000_000))
        );
        assert_eq!(worth(&timer, None), CountWorth::Unknown);
        assert_eq!(worth(&[("memprof", 3)], None), CountWorth::OneAccess);
        for sources in [
            &[("pebs", 9)][..],
            &[("timer", 9), ("trapped-pages", 1)],
            &[],
        ] {
            assert_eq!(worth(sources, millisecond), CountWorth::Unknown);
        }
    }
}
