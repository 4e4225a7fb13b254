//! Computes how precise sampled figures are: the interval of a share, whether two amounts differ, and the number of samples behind a number
//! of accesses. Sites below [`NOISE_SAMPLES`] and [`NOISE_CAPACITY`] are folded in reports.

use isotherm_model::batch::SourceReport;

/// The least samples of a meaningful share: from this number on, the confidence interval is narrower than the share itself.
pub(crate) const NOISE_SAMPLES: u64 = 5;

/// A site of a smaller share of the footprint is folded where its samples are below the noise; a large one is shown, because
/// that it is cold is worth knowing.
pub(crate) const NOISE_CAPACITY: f64 = 0.01;

/// Two-sided 95 % of the normal distribution.
const Z: f64 = 1.96;

/// The interval of a share by Wilson's score, at 95 %: `samples` of `all` were seen.
pub(crate) fn wilson(samples: u64, all: u64) -> (f64, f64) {
    if all == 0 {
        return (0.0, 1.0);
    }
    let n = all as f64;
    let share = (samples as f64 / n).min(1.0);
    let middle = share + Z * Z / (2.0 * n);
    let spread = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    let end = |value: f64| (value / scale).clamp(0.0, 1.0);
    (end(middle - spread), end(middle + spread))
}

/// An amount, and the samples that it follows from; `None` where each access was counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SampledAmount {
    /// The amount, in any unit.
    pub(crate) amount: f64,
    /// Its samples; `None` where each access was counted.
    pub(crate) samples: Option<u64>,
}

/// True where two amounts differ by more than their samples explain, at 95 %. The standard error of an amount of n samples, which come
/// independently of one another, is the amount over the root of n; of no sample it is what one would have been.
pub(crate) fn differ(before: SampledAmount, after: SampledAmount) -> bool {
    let (Some(former), Some(later)) = (before.samples, after.samples) else {
        return (before.amount - after.amount).abs() > 0.0;
    };
    let of_one = |amount: f64, samples: u64| match samples {
        0 => 0.0,
        samples => amount / samples as f64,
    };
    let one = of_one(before.amount, former).max(of_one(after.amount, later));
    let variance = |amount: f64, samples: u64| match samples {
        0 => one * one,
        samples => amount * amount / samples as f64,
    };
    let error = (variance(before.amount, former) + variance(after.amount, later)).sqrt();
    (after.amount - before.amount).abs() > Z * error
}

/// The number of samples behind a number of accesses: a source that samples one access in a thousand reports a thousand for each.
/// `None` where no source says how many samples it took.
pub(crate) fn samples_of(accesses: u64, all: u64, sources: &[SourceReport]) -> Option<u64> {
    let sampling = sources.iter().filter(|source| source.unit(false).is_some());
    let usable: u64 = sampling.map(|source| source.usable).sum();
    if usable == 0 || all == 0 {
        return None;
    }
    // More samples than accesses: some sources count none, which makes each access a sample at most.
    let samples = u128::from(accesses) * u128::from(usable.min(all)) / u128::from(all);
    // Below 2^64, because `usable.min(all) / all` is at most 1.
    Some((samples as u64).max(u64::from(accesses > 0)))
}

/// An interval of shares: `38-49 %`.
pub(crate) fn interval(low: f64, high: f64) -> String {
    let digits = usize::from(high < 0.0995);
    format!("{:.digits$}-{:.digits$} %", low * 100.0, high * 100.0)
}

#[cfg(test)]
mod tests {
    use super::{SampledAmount, differ, interval, samples_of, wilson};
    use isotherm_model::batch::SourceReport;

    #[test]
    fn the_interval_is_wilsons() {
        // Wilson, 95 %: 10 of 100 is 5.5 % to 17.4 %; 0 of 20 is 0 to 16.1 %; 20 of 20 is 83.9 % to 100 %.
        for (samples, all, text) in [
            (10, 100, "6-17 %"),
            (0, 20, "0-16 %"),
            (20, 20, "84-100 %"),
            (1, 1000, "0.0-0.6 %"),
        ] {
            let (low, high) = wilson(samples, all);
            assert_eq!(interval(low, high), text, "{samples} of {all}");
        }
        assert_eq!(wilson(0, 0), (0.0, 1.0));
    }

    #[test]
    fn amounts_differ_beyond_the_error_of_their_samples_only() {
        let amount = |amount, samples| SampledAmount { amount, samples };
        let sampled = |samples: u64| amount(samples as f64 * 1e6, Some(samples));
        // 100 and 120 samples: a difference of 20 with an error of 14.8; 150: of 50 with 15.8.
        assert!(!differ(sampled(100), sampled(120)));
        assert!(differ(sampled(100), sampled(150)) && differ(sampled(150), sampled(100)));
        assert!(!differ(sampled(0), sampled(3)) && differ(sampled(0), sampled(9)));
        assert!(!differ(sampled(0), sampled(0)));
        // Twice the time for a sample is twice the time.
        assert!(differ(sampled(100), amount(2e8, Some(100))));
        assert!(differ(amount(100.0, None), amount(101.0, None)));
        assert!(!differ(amount(100.0, None), amount(100.0, None)));
    }

    #[test]
    fn accesses_of_a_source_that_weighs_stand_for_fewer_samples() {
        let source = |usable| SourceReport {
            name: "timer".to_owned(),
            taken: usable,
            usable,
            ..SourceReport::default()
        };
        let files = SourceReport {
            name: "session-files".to_owned(),
            ..source(1_000)
        };
        assert_eq!(samples_of(50, 100, &[source(100), files]), Some(50));
        assert_eq!(samples_of(50_000, 100_000, &[source(100)]), Some(50));
        assert_eq!(samples_of(1, 100_000, &[source(100)]), Some(1));
        assert_eq!(samples_of(0, 100_000, &[source(100)]), Some(0));
        assert_eq!(samples_of(7, 10, &[source(100), source(0)]), Some(7));
        assert_eq!(samples_of(7, 10, &[]), None);
        assert_eq!(
            samples_of(u64::MAX, u64::MAX, &[source(u64::MAX)]),
            Some(u64::MAX)
        );
    }
}
