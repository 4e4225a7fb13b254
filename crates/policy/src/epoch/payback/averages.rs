//! Two moving averages of a page's rank, and when both start anew.
//!
//! The slow one is the mean of what was seen since the last start, of the last 16 epochs or so at most.
//! The quick one gives each new epoch half. A rank that varies by chance alone (as counts do:
//! variance equal to the mean) moves the quick average by about √(mean/3) off the mean. When the
//! two part by √(3·(mean + 1)), three times that, chance no longer explains it: the page has
//! changed, and both averages start anew at what it does now.

/// How old an average can get: older ones weigh new epochs as this one does.
pub(super) const OLDEST: u8 = 15;

/// Share of the newest epoch in the quick average.
const QUICK: f32 = 0.5;

/// Square of the distance, in units of the slow average plus one, from which a page has changed.
const SURPRISE: f32 = 3.0;

/// The same from which a rise is a leap: no page of many gets there by chance.
const LEAP: f32 = 30.0;

/// How a page came to do what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It does less than half of what it did before.
    Plunged,
    /// It does less than before; among many pages a few do by chance, and come back.
    Fell,
    /// It does more than before; among many pages a few do by chance.
    Rose,
    /// It does much more than before, or was never accessed before.
    Leapt,
}

/// Since when a page does what it does, and how it came to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trend {
    /// What happened at its last start.
    pub(super) change: Change,
    /// Epochs since the last start, 1 to [`OLDEST`].
    pub(super) age: u8,
}

/// What is remembered of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Averages {
    quick: f32,
    slow: f32,
    /// The age is 0 before the first access.
    trend: Trend,
}

impl Averages {
    /// Of a page that nobody has accessed yet.
    pub(super) const UNSEEN: Self = Self {
        quick: 0.0,
        slow: 0.0,
        trend: Trend {
            change: Change::Leapt,
            age: 0,
        },
    };

    /// Moves both towards this epoch's rank, or starts them anew there.
    pub(super) fn follow(&mut self, rank: u64) {
        let seen = rank as f32;
        if self.trend.age == 0 {
            if rank > 0 {
                self.start(seen, Change::Leapt);
            }
            return;
        }
        self.quick += QUICK * (seen - self.quick);
        let apart = self.quick - self.slow;
        if apart * apart > SURPRISE * (self.slow + 1.0) {
            let change = if seen < self.slow / 2.0 {
                Change::Plunged
            } else if seen < self.slow {
                Change::Fell
            } else if apart * apart > LEAP * (self.slow + 1.0) {
                Change::Leapt
            } else {
                Change::Rose
            };
            self.start(seen, change);
        } else {
            self.slow += (seen - self.slow) / f32::from(self.trend.age + 1);
            self.trend.age = OLDEST.min(self.trend.age + 1);
        }
    }

    fn start(&mut self, seen: f32, change: Change) {
        self.trend = Trend { change, age: 1 };
        self.quick = seen;
        self.slow = seen;
    }

    /// `None` before the first access.
    pub(super) const fn trend(&self) -> Option<Trend> {
        if self.trend.age == 0 {
            None
        } else {
            Some(self.trend)
        }
    }

    /// The slow average.
    pub(super) const fn slow(&self) -> f64 {
        self.slow as f64
    }

    /// The lower of the two.
    pub(super) const fn low(&self) -> f64 {
        self.quick.min(self.slow) as f64
    }

    /// The higher of the two.
    pub(super) const fn high(&self) -> f64 {
        self.quick.max(self.slow) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::{Averages, Change, OLDEST, Trend};
    use Change::{Fell, Leapt, Plunged, Rose};

    fn after(ranks: &[u64]) -> Averages {
        let mut page = Averages::UNSEEN;
        for &rank in ranks {
            page.follow(rank);
        }
        page
    }

    fn trend(ranks: &[u64]) -> (Change, u8) {
        let Trend { change, age } = after(ranks).trend().unwrap();
        (change, age)
    }

    #[test]
    fn small_differences_are_averaged() {
        let page = after(&[10, 14, 12]);
        assert!((page.slow() - 12.0).abs() < 1e-6);
        assert!((page.high() - 12.0).abs() < 1e-6 && (page.low() - 12.0).abs() < 1e-6);
        assert_eq!(trend(&[10, 14, 12]), (Leapt, 3));
    }

    #[test]
    fn a_jump_or_a_fall_starts_anew_and_says_which() {
        assert_eq!(trend(&[100, 100, 10]), (Plunged, 1));
        assert!((after(&[100, 100, 10]).slow() - 10.0).abs() < 1e-6);
        assert_eq!(trend(&[10, 10, 25]), (Rose, 1));
        assert_eq!(trend(&[900, 900, 700]), (Fell, 1));
        assert_eq!(trend(&[10, 10, 100, 100]), (Leapt, 2));
    }

    #[test]
    fn a_few_empty_epochs_surprise_even_where_one_does_not() {
        let mut ranks = vec![6; 16];
        ranks.push(0);
        assert_eq!(trend(&ranks), (Leapt, OLDEST));
        ranks.extend([0, 0]);
        assert_eq!(trend(&ranks), (Plunged, 1));
    }

    #[test]
    fn a_page_is_unseen_until_its_first_access_and_its_age_ends_somewhere() {
        assert_eq!(after(&[0, 0]).trend(), None);
        assert_eq!(trend(&[0, 0, 5]), (Leapt, 1));
        assert_eq!(trend(&[5; 40]), (Leapt, OLDEST));
    }

    #[test]
    fn ranks_at_the_limit_stay_numbers() {
        let page = after(&[u64::MAX, 0, u64::MAX, u64::MAX]);
        assert!(page.slow().is_finite() && page.low().is_finite());
    }
}
