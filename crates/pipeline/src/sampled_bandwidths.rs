//! [`sampled_bandwidths`] estimates the bandwidth of each site from the samples of a plain profile, for plans without runs in isolation.
//! [`BytesPerCount`] holds the bytes that one count represents.
//!
//! ```text
//! accesses, misses    a line of 64 bytes each
//! time waiting        a line for each 100 ns; where the data is a stream, the bytes that a processor streams meanwhile
//! ```
//!
//! The account of an emulated machine counts lines by the same rule. Misses that a processor has in flight at once count one after the
//! other here, so a site of many independent accesses moves more bytes than estimated: the estimate is good for the order of the sites and
//! for a first plan, less so as a figure.

use std::collections::BTreeMap;

use isotherm_model::count_unit::CountUnit;
use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_model::tier::ORDINARY_LATENCY;
use isotherm_model::units::{Accesses, Bytes};

/// Bytes that an access transfers.
const LINE: Bytes = Bytes(64);

/// Bytes a second that one processor streams from ordinary memory.
const STREAM: u64 = 10_000_000_000;

/// Bytes a second of each site that can be placed; `None` where the counts tell no bytes, such as page touches, or the run took no time.
#[must_use]
pub fn sampled_bandwidths(profile: &Profile) -> Option<BTreeMap<SiteId, u64>> {
    let per_count = BytesPerCount::of(profile)?;
    let span = u128::from(profile.span().0);
    let mut counts = BTreeMap::<SiteId, (Accesses, Accesses)>::new();
    for heat in profile.heat.iter().filter(|heat| heat.site.is_placeable()) {
        let (accesses, streamed) = counts.entry(heat.site).or_default();
        *accesses += heat.accesses;
        *streamed += heat.streamed;
    }
    let rate = |(site, (accesses, streamed))| {
        let bytes = per_count.bytes(accesses, streamed);
        let rate = bytes.saturating_mul(1_000_000_000).checked_div(span)?;
        Some((site, u64::try_from(rate).unwrap_or(u64::MAX)))
    };
    counts.into_iter().map(rate).collect()
}

/// The bytes that one count of a profile represents.
#[derive(Clone, Copy, Debug)]
pub struct BytesPerCount {
    /// Bytes of an access that is no part of a stream.
    other: u128,
    /// Bytes of an access that is part of a stream.
    streamed: u128,
}

impl BytesPerCount {
    /// The bytes of a count of this profile; `None` where its counts do not tell bytes, such as page touches.
    ///
    /// An interval of the timer is microseconds at least, so the rest of a division is negligible.
    #[must_use]
    pub fn of(profile: &Profile) -> Option<Self> {
        let line = u128::from(LINE.0);
        match (profile.counted(), profile.meta.sample_interval) {
            (CountUnit::Accesses | CountUnit::Misses, _) => Some(Self {
                other: line,
                streamed: line,
            }),
            (CountUnit::Time, Some(interval)) => Some(Self {
                other: line * u128::from(interval.0) / u128::from(ORDINARY_LATENCY.0),
                streamed: u128::from(STREAM) * u128::from(interval.0) / 1_000_000_000,
            }),
            _ => None,
        }
    }

    /// The bytes of this number of counts. Only the counts of a hostile profile exceed 128 bits, and saturate.
    #[must_use]
    pub fn bytes(self, accesses: Accesses, streamed: Accesses) -> u128 {
        let others = accesses.0.saturating_sub(streamed.0);
        let others = self.other.saturating_mul(others.into());
        others.saturating_add(self.streamed.saturating_mul(streamed.0.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::sampled_bandwidths;
    use isotherm_model::batch::{Epoch, Process, SourceReport};
    use isotherm_model::profile::{EpochSpan, Heat, Meta, Profile};
    use isotherm_model::site::SiteId;
    use isotherm_model::units::{Accesses, Nanos};

    const MILLISECOND: Nanos = Nanos(1_000_000);

    /// A run of two seconds that this source sampled, with (site, accesses, streamed).
    fn profile(source: &str, heat: &[(u64, u64, u64)]) -> Profile {
        let mut profile = Profile::new(Meta {
            sample_interval: Some(MILLISECOND),
            ..Meta::default()
        });
        let span = |epoch| EpochSpan {
            epoch: Epoch(epoch),
            span: Nanos(1_000_000_000),
        };
        profile.epochs = [0, 1].map(span).to_vec();
        let row = |&(site, accesses, streamed): &(u64, u64, u64)| Heat {
            epoch: Epoch(0),
            process: Process::default(),
            site: SiteId(site),
            address: 0,
            object: None,
            accesses: Accesses(accesses),
            streamed: Accesses(streamed),
            served: Accesses(7),
        };
        profile.heat = heat.iter().map(row).collect();
        profile.sources = vec![SourceReport {
            taken: 9_999,
            usable: 9_999,
            ..SourceReport::new(source, "")
        }];
        profile
    }

    fn rates(profile: &Profile) -> Vec<(u64, u64)> {
        let rates = sampled_bandwidths(profile).expect("an estimate");
        rates
            .into_iter()
            .map(|(site, rate)| (site.0, rate))
            .collect()
    }

    #[test]
    fn a_millisecond_of_waiting_is_640_kb_of_lines_or_10_mb_of_a_stream() {
        let timed = profile(
            "timer",
            &[(20, 1_000, 0), (21, 1_000, 1_000), (22, 3, 1), (22, 1, 1)],
        );
        let expected = [
            (20, 320_000_000),
            (21, 5_000_000_000),
            (22, (2 * 640_000 + 2 * 10_000_000) / 2),
        ];
        assert_eq!(rates(&timed), expected);
    }

    #[test]
    fn an_access_is_a_line_and_what_has_no_site_is_left_out() {
        let other = SiteId::UNATTRIBUTED.0;
        let counted = profile("memprof", &[(other, 500, 0), (20, 100, 0), (21, 0, 0)]);
        assert_eq!(rates(&counted), [(20, 3_200), (21, 0)]);
    }

    #[test]
    fn page_touches_and_runs_of_no_time_tell_no_bytes() {
        assert_eq!(
            sampled_bandwidths(&profile("trapped-pages", &[(20, 9, 0)])),
            None
        );
        let mut instant = profile("timer", &[(20, 9, 0)]);
        instant.epochs.clear();
        assert_eq!(sampled_bandwidths(&instant), None);
    }

    #[test]
    fn huge_counts_saturate() {
        let huge = profile("timer", &[(20, u64::MAX, u64::MAX), (20, u64::MAX, 0)]);
        assert!(rates(&huge)[0].1 > 1 << 60);
    }
}
