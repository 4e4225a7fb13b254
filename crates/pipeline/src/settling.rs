//! [`Settling`] detects for an optimization that the heat of a program repeats, that is, that one whole iteration has been observed: by the
//! samples of two windows of time in succession, which then have the same distribution over addresses.
//!
//! The length of an iteration is not observed, so time is divided into windows, each of which ends 1.5 times as late as the one before:
//!
//! ```text
//! 0   | 1 |  1.5  |   2.25    |       3.4       |           an iteration of length  <------->
//! data is made        ^ differ     ^ alike: settled      the first window as long as an iteration, and the next
//! ```
//!
//! A window that is shorter than an iteration differs from the next, as each sees another part of it; one that is longer does not. Data
//! before the two windows, such as the samples of initialization, is dropped. So the heat settles within seven times the length of an
//! iteration, or four times that of the time before it if that is longer.
//!
//! An iteration whose parts have one distribution settles earlier, which is no loss; a program that works on other data in each
//! iteration never settles.

use isotherm_model::batch::{ObservedAccess, Process};

use crate::access_counts::AccessCounts;

/// Samples of a window for each bin of the comparison: fewer differ by chance alone.
const SAMPLES_PER_BIN: u64 = 16;
/// Most bins.
const BINS_AT_MOST: u64 = 256;
/// Least samples of a window.
const SAMPLES_AT_LEAST: u64 = 128;
/// The common part of two distributions from which they are alike. Two windows of one distribution have 0.86 in common on average
/// where each bin has 16 samples, and more where it has more.
const ALIKE: f64 = 0.75;

/// Compares each window with the one before.
#[derive(Debug)]
pub struct Settling {
    first_window: u64,
    /// End of the present window, in nanoseconds since the start.
    ends: u64,
    before: AccessCounts,
    window: AccessCounts,
    is_settled: bool,
}

impl Settling {
    /// The first window has this length in nanoseconds.
    #[must_use]
    pub fn new(first_window: u64) -> Self {
        Self {
            first_window: first_window.max(1),
            ends: first_window.max(1),
            before: AccessCounts::default(),
            window: AccessCounts::default(),
            is_settled: false,
        }
    }

    /// Adds the accesses until `now`, in nanoseconds since the start. True once two windows were alike.
    pub fn add(&mut self, accesses: &[ObservedAccess], now: u64) -> bool {
        self.window.add(accesses);
        if now >= self.ends {
            self.is_settled |= alike(&self.before, &self.window);
            self.before = std::mem::take(&mut self.window);
            self.ends = now.saturating_add(now / 2).max(self.first_window);
        }
        self.is_settled
    }

    /// When the present window ends, in nanoseconds since the start.
    #[must_use]
    pub const fn window_ends(&self) -> u64 {
        self.ends
    }

    /// The counts of the last whole window: at least one iteration, without what came before it.
    #[must_use]
    pub const fn last_window(&self) -> &AccessCounts {
        &self.before
    }
}

/// Whether two windows have enough samples, and a common part of [`ALIKE`].
fn alike(a: &AccessCounts, b: &AccessCounts) -> bool {
    let samples = |counts: &AccessCounts| counts.all_samples();
    let fewest = samples(a).min(samples(b));
    fewest >= SAMPLES_AT_LEAST
        && common(a, b, (fewest / SAMPLES_PER_BIN).min(BINS_AT_MOST)) >= ALIKE
}

/// The common part of two distributions over addresses, in bins with equal sums of both.
fn common(a: &AccessCounts, b: &AccessCounts, bins: u64) -> f64 {
    let share = |counts: &AccessCounts, other: usize| -> Vec<((Process, u64), usize, f64)> {
        let all = counts.all().map(|(_, count)| count as f64).sum::<f64>();
        let row = |(page, count)| (page, other, count as f64 / all);
        counts.all().map(row).collect()
    };
    let mut rows = share(a, 0);
    rows.extend(share(b, 1));
    rows.sort_by_key(|(page, of, _)| (*page, *of));
    let full = 2.0 / bins.max(1) as f64;
    let (mut bin, mut common) = ([0.0, 0.0], 0.0);
    for rows in rows.chunk_by(|a, b| a.0 == b.0) {
        for (_, of, share) in rows {
            bin[*of] += share;
        }
        if bin[0] + bin[1] >= full {
            common += f64::min(bin[0], bin[1]);
            bin = [0.0, 0.0];
        }
    }
    common + f64::min(bin[0], bin[1])
}

#[cfg(test)]
mod tests {
    use super::Settling;
    use isotherm_model::batch::{ObservedAccess, Process};
    use isotherm_model::source_kind::SourceKind;

    const MS: u64 = 1_000_000;

    /// The time in milliseconds at which a program settles that accesses `page(time, random)` at each millisecond.
    fn settled(page: impl Fn(u64, u64) -> u64) -> Option<u64> {
        let mut settling = Settling::new(100 * MS);
        let mut state = 1_u64;
        (1..40_000).find(|now| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let source = SourceKind::Timer;
            let place = (Process::default(), page(*now, state >> 33) * 4096);
            let access = ObservedAccess::at(place, source, (1, source.unit(false)));
            settling.add(&[access], now * MS)
        })
    }

    #[test]
    fn even_heat_settles_with_the_first_windows_that_have_samples() {
        let at = settled(|_, random| random % 5000);
        assert!(at.is_some_and(|at| at <= 800), "{at:?}");
    }

    #[test]
    fn an_iteration_of_two_parts_settles_once_it_was_seen_whole() {
        // A second in each half of the data, after three seconds of making it in order.
        let at = settled(|now, random| match now {
            0..3000 => now,
            _ => now / 1000 % 2 * 5000 + random % 5000,
        });
        assert!(at.is_some_and(|at| (5000..14_000).contains(&at)), "{at:?}");
    }

    #[test]
    fn data_that_is_used_once_never_settles() {
        assert_eq!(settled(|now, random| now * 10 + random % 10), None);
    }
}
