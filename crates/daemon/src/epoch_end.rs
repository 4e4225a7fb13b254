//! [`EpochEnd`] decides when an epoch ends: at its full length, or earlier, but after a quarter at least, if samples show a surge of slow
//! accesses (a new phase) or if the kernel has used up the room in fast nodes to which it promotes. The two epochs after one that a surge
//! ended last a quarter each.
//!
//! ```text
//! a quarter   the kernel has used up the room to promote     room is made at once
//!             samples show a surge of slow accesses          decided now, and twice more, by a quarter each:
//!                                                            what few samples did not show yet
//! whole       else
//! ```
//!
//! Watching must not cost several times as much: a surge ends an epoch early only after [`WHOLE`] whole ones, and samples are read each
//! quarter only where that keeps to the budget.

use std::time::Duration;

use isotherm_model::watch::Placed;
use isotherm_observe::watch::watcher::Watcher;
use isotherm_policy::SlowSurge;

/// Parts of an epoch: it does not end before the first one is over, and samples are read anew after each.
const PARTS: u32 = 4;

/// Fewest new samples by which a surge ends an epoch: fewer show the surge, but not where the hot data is now.
const LEAST: u64 = 16;

/// Short epochs that follow the one that a surge ended.
const AFTER_SURGE: u32 = 2;

/// Whole epochs from a surge to the next one.
const WHOLE: u32 = 2;

/// The observations that may end an epoch early.
pub(crate) trait Evidence {
    /// True where the kernel lacks room to promote.
    fn lacks_room(&self) -> bool;

    /// Reads the samples of the epoch so far; `None` where that would cost too much.
    fn sampled(&mut self) -> Option<Placed>;
}

impl Evidence for Watcher {
    fn lacks_room(&self) -> bool {
        self.kernel_lacks_room()
    }

    fn sampled(&mut self) -> Option<Placed> {
        self.read_samples(PARTS)
    }
}

/// What the end of this epoch depends on: the surges and epochs before it, and the samples read so far.
#[derive(Debug, Default)]
pub(crate) struct EpochEnd {
    surge: SlowSurge,
    /// Short epochs that are left after a surge.
    short: u32,
    /// Whole epochs since the last surge.
    whole: u32,
    /// True where the last epoch was a whole one, and left the kernel room to promote.
    had_room: bool,
    /// Parts of this epoch after which the samples were read.
    read: u32,
    /// The samples of this epoch that were judged: those before a new phase would hide it.
    judged: Placed,
}

impl EpochEnd {
    /// True where the epoch ends now.
    pub(crate) fn is_due(
        &mut self,
        elapsed: Duration,
        epoch: Duration,
        evidence: &mut impl Evidence,
    ) -> bool {
        let part = epoch / PARTS;
        if elapsed >= epoch || (self.short > 0 && elapsed >= part) {
            return true;
        }
        if elapsed < part {
            return false;
        }
        if self.had_room && evidence.lacks_room() {
            return true;
        }
        if self.whole < WHOLE || elapsed < part * (self.read + 1) {
            return false;
        }
        self.read += 1;
        let Some(sampled) = evidence.sampled() else {
            return false;
        };
        let new = Placed {
            samples: sampled.samples.saturating_sub(self.judged.samples),
            fast: sampled.fast.saturating_sub(self.judged.fast),
        };
        if new.samples < LEAST {
            return false;
        }
        self.judged = sampled;
        let is_surge = self.surge.is_shown_by(new);
        if is_surge {
            // The epoch that ends now is the first short one.
            (self.short, self.whole) = (AFTER_SURGE + 1, 0);
        }
        is_surge
    }

    /// Records the epoch that ended: whether it was a whole one, whether the kernel has room to promote now, and its samples.
    pub(crate) fn follow(&mut self, was_whole: bool, has_room: bool, sampled: Placed) {
        self.short = self.short.saturating_sub(1);
        self.whole = self.whole.saturating_add(u32::from(was_whole));
        self.had_room = was_whole && has_room;
        self.read = 0;
        self.judged = Placed::default();
        self.surge.follow(sampled);
    }
}

#[cfg(test)]
mod tests {
    use super::{EpochEnd, Evidence};
    use isotherm_model::watch::Placed;
    use std::time::Duration;

    const EPOCH: Duration = Duration::from_secs(1);

    /// The observations of a test, and how often the samples were read.
    #[derive(Default)]
    struct Seen {
        lacks_room: bool,
        samples: Placed,
        reads: u32,
    }

    impl Evidence for Seen {
        fn lacks_room(&self) -> bool {
            self.lacks_room
        }

        fn sampled(&mut self) -> Option<Placed> {
            self.reads += 1;
            Some(self.samples)
        }
    }

    const fn placed(samples: u64, slow: u64) -> Placed {
        Placed {
            samples,
            fast: samples - slow,
        }
    }

    /// True where an epoch ends after these milliseconds, with these samples so far.
    fn is_due(end: &mut EpochEnd, ms: u64, samples: u64, slow: u64) -> bool {
        let mut seen = Seen {
            samples: placed(samples, slow),
            ..Seen::default()
        };
        end.is_due(Duration::from_millis(ms), EPOCH, &mut seen)
    }

    /// After whole epochs in which few samples were slow.
    fn settled() -> EpochEnd {
        let mut end = EpochEnd::default();
        for _ in 0..4 {
            assert!(is_due(&mut end, 1_000, 90, 6));
            end.follow(true, true, placed(90, 6));
        }
        end
    }

    #[test]
    fn a_surge_ends_an_epoch_and_two_short_ones_follow() {
        let mut end = settled();
        assert!(!is_due(&mut end, 200, 20, 20), "too early");
        assert!(!is_due(&mut end, 250, 20, 1));
        assert!(
            !is_due(&mut end, 300, 40, 20),
            "they were read a moment ago"
        );
        assert!(is_due(&mut end, 500, 40, 18), "17 of the last 20");
        for _ in 0..2 {
            end.follow(false, true, placed(20, 17));
            assert!(!is_due(&mut end, 200, 20, 20));
            assert!(is_due(&mut end, 250, 20, 20));
        }
        end.follow(false, true, placed(20, 1));
        assert!(!is_due(&mut end, 900, 90, 90), "so soon again");
    }

    #[test]
    fn few_samples_wait_until_there_are_more() {
        let mut end = settled();
        assert!(!is_due(&mut end, 250, 6, 6));
        assert!(!is_due(&mut end, 500, 12, 12));
        assert!(is_due(&mut end, 750, 18, 18));
    }

    #[test]
    fn samples_are_read_once_in_each_quarter() {
        let mut end = settled();
        let mut seen = Seen::default();
        for ms in (0..1_000).step_by(50) {
            assert!(!end.is_due(Duration::from_millis(ms), EPOCH, &mut seen));
        }
        assert_eq!(seen.reads, 3);
    }

    #[test]
    fn no_two_epochs_in_a_row_end_for_room() {
        let mut end = settled();
        let mut full = Seen {
            lacks_room: true,
            ..Seen::default()
        };
        let mut is_due =
            |end: &mut EpochEnd, ms| end.is_due(Duration::from_millis(ms), EPOCH, &mut full);
        assert!(!is_due(&mut end, 200));
        assert!(is_due(&mut end, 250));
        end.follow(false, true, placed(8, 0));
        assert!(!is_due(&mut end, 900));
    }
}
