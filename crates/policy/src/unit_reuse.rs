//! `UnitReuse` measures, for `UnitSavings`, the time after which a unit (an aligned range of a process) is touched again; `touched_parts`
//! makes of it the unit's heat, by which policies choose what stays under a memory limit. It is the time in which half of a paged-out unit
//! comes back or, while it is in memory, too many pages of its probe (a few pages that are paged out as a test); of a unit that cannot
//! be probed, the time between the touches that are known.
//!
//! A page that is out costs once, at its first touch, however often it is accessed afterwards. So the heat of a unit is not the number of
//! its accesses but the number of its pages that each epoch would bring back. Samples do not show it: few samples fall on a scan that
//! computes much with each page. Pages that are out show it: those of the unit, or of its probe while the unit is in memory. So units in
//! memory and units that are out are measured alike, and a scan does not exchange one part of its array for another.
//!
//! ```text
//! unit of a scan of 450 ms        out   |--------------- half is back: 450 ms ---|
//! another, in memory              probe |--------------- 3 of 8 are back: 450 ms -|
//! ```

use isotherm_model::paged::PagedUnit;
use isotherm_model::units::{Bytes, Nanos, portion};

/// Number of parts in which the touches of a unit in an epoch are counted; all of them if the epoch touches all of its pages.
pub const TOUCHED_PARTS: u64 = 64;

/// The measured reuse of one unit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnitReuse {
    /// The last measured interval, or zero before the first.
    interval: Nanos,
    /// The start of the present measurement.
    since: Nanos,
    returned: u64,
    is_out: bool,
}

impl UnitReuse {
    /// The state of a unit that was found now.
    pub(crate) fn found(now: Nanos) -> Self {
        Self {
            since: now,
            ..Self::default()
        }
    }

    /// Records that pages are out from now on.
    pub(crate) fn begin(&mut self, now: Nanos) {
        (self.since, self.returned) = (now, 0);
    }

    /// Records that half of the pages that were out are back.
    pub(crate) fn end(&mut self, now: Nanos) {
        let time = now.saturating_sub(self.since);
        // A longer time is used at once: a probe may have left in the middle of a round.
        self.interval = match time >= self.interval {
            true => time,
            false => Nanos((3 * (self.interval.0 / 4)).saturating_add(time.0 / 4)),
        };
        self.begin(now);
    }

    /// Follows a unit without a probe.
    pub(crate) fn follow(&mut self, held: &PagedUnit, now: Nanos) {
        let is_out = held.out.0.saturating_mul(2) >= held.all().0;
        if is_out && !self.is_out && held.returned == Bytes::ZERO {
            self.begin(now);
        }
        self.is_out = is_out;
        self.returned = self.returned.saturating_add(held.returned.0);
        if self.returned > 0 && self.returned.saturating_mul(2) >= held.all().0 {
            self.end(now);
        }
    }

    /// The time after which half of the pages are touched again: at least the time for which they were not, where that is observed. Pages
    /// that are out and never came back are cold, however short the time: to bring them back on a guess would cost more than to wait.
    pub(crate) fn interval(&self, now: Nanos, has_probe: bool) -> Nanos {
        if self.is_out && self.interval == Nanos::ZERO {
            return Nanos(u64::MAX);
        }
        match has_probe || self.is_out || self.interval == Nanos::ZERO {
            true => self.interval.max(now.saturating_sub(self.since)),
            false => self.interval,
        }
    }
}

/// The touches of a unit in an epoch of this length, in [`TOUCHED_PARTS`]: at least one.
pub(crate) fn touched_parts(span: Nanos, interval: Nanos) -> u64 {
    portion(TOUCHED_PARTS, span.0, interval.0).clamp(1, TOUCHED_PARTS)
}

#[cfg(test)]
mod tests {
    use isotherm_model::batch::Process;
    use isotherm_model::paged::PagedUnit;
    use isotherm_model::units::{Bytes, Nanos};
    use isotherm_model::watch::Unit;

    use super::{UnitReuse, touched_parts};

    const UNIT: Bytes = Bytes(2 << 20);
    const MS: u64 = 1_000_000;

    fn held(present: u64, returned: u64) -> PagedUnit {
        PagedUnit {
            unit: Unit {
                process: Process::default(),
                start: 0,
            },
            present: Bytes(present),
            out: Bytes(UNIT.0 - present),
            returned: Bytes(returned),
            grain: UNIT,
            has_huge: false,
        }
    }

    #[test]
    fn rounds_of_a_scan_are_measured_from_one_return_to_the_next() {
        let mut reuse = UnitReuse::found(Nanos(0));
        reuse.follow(&held(0, 0), Nanos(100 * MS));
        assert_eq!(reuse.interval(Nanos(110 * MS), false), Nanos(u64::MAX));
        for round in 1..4 {
            reuse.follow(
                &held(UNIT.0 / 4, UNIT.0 / 4),
                Nanos((round * 450 - 50) * MS),
            );
            reuse.follow(&held(UNIT.0, 3 * UNIT.0 / 4), Nanos(round * 450 * MS));
            reuse.follow(&held(0, 0), Nanos((round * 450 + 50) * MS));
        }
        let seen = reuse.interval(Nanos(1400 * MS), false).0 / MS;
        assert!((380..=450).contains(&seen), "{seen} ms");
        let later = reuse.interval(Nanos(9000 * MS), false);
        assert!(later > Nanos(7000 * MS), "nothing returned for long");
    }

    #[test]
    fn what_returns_at_once_is_touched_whole_in_each_epoch_and_nothing_is_colder_than_one_part() {
        let count = |interval| touched_parts(Nanos(50 * MS), Nanos(interval));
        assert_eq!((count(0), count(10 * MS)), (64, 64));
        assert_eq!(count(400 * MS), 8);
        assert_eq!(count(900_000 * MS), 1);
    }
}
