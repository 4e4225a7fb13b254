//! What becomes of the heat of pages, learnt by kind: what last happened to them (a plunge, a
//! fall, a rise, a leap) and how long ago.
//!
//! For each kind the averages of all its pages are set against what the next epoch brought; the
//! quotient is the share of their heat that such pages keep. One epoch on, a page is of the next
//! age, so one share after the other gives what to expect of it over the horizon. For pages that rose
//! just now a straight line takes the place of the share, because their count says as much of when
//! they rose as of how hot they are: one that was touched first at the end of an epoch may be as
//! hot as one touched at its beginning.
//!
//! ```text
//! at age 1: 100 accesses  --keeps 1.0-->  100  --keeps 0.5-->  50  --keeps 0-->  0    together 150
//! ```

use super::averages::{Change, OLDEST, Trend};

/// Epochs for which a moved page is trusted to follow its kind: a move must pay within them.
pub(super) const HORIZON: usize = 8;

/// Share of what was learnt that is kept from epoch to epoch, so that a new phase of the program is
/// believed after a few.
const REMEMBERED: f64 = 0.75;

/// Accesses by which a kind that nobody has met is believed to keep all of its heat.
const BELIEF: f64 = 1.0;

/// The most that a kind is believed to grow in an epoch: growth by chance must not multiply.
const GROWTH: f64 = 2.0;

/// Pages of average heat that speak for the share kept, against the slope of the line: a few pages
/// make no line.
const FOR_THE_SHARE: f64 = 4.0;

const AGES: usize = OLDEST as usize + 1;

/// Kinds of [`Change`].
const CHANGES: usize = 4;

/// Sums over pages of what was promised (x) and what came (y).
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    pages: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

/// What the next epoch brings: `constant + slope * heat`.
#[derive(Clone, Copy, Debug)]
struct Line {
    constant: f64,
    slope: f64,
}

/// What was learnt, by change and age.
#[derive(Clone, Debug)]
pub(super) struct Persistence {
    sums: [[Sums; AGES]; CHANGES],
    next: [[Line; AGES]; CHANGES],
    /// Epochs of its heat that a page of this age is worth in all epochs of the horizon but one.
    later: [[f64; AGES]; CHANGES],
}

impl Default for Persistence {
    /// Every page is believed to stay as it is.
    fn default() -> Self {
        let stays = Line {
            constant: 0.0,
            slope: 1.0,
        };
        Self {
            sums: Default::default(),
            next: [[stays; AGES]; CHANGES],
            later: [[(HORIZON - 1) as f64; AGES]; CHANGES],
        }
    }
}

impl Persistence {
    /// An epoch has ended, of which pages will be noted.
    pub(super) fn begin(&mut self) {
        for sums in self.sums.as_flattened_mut() {
            for sum in [
                &mut sums.pages,
                &mut sums.x,
                &mut sums.y,
                &mut sums.xx,
                &mut sums.xy,
            ] {
                *sum *= REMEMBERED;
            }
        }
    }

    /// A page of this kind promised so much and was accessed so often in the epoch that ended.
    pub(super) fn note(&mut self, trend: Trend, promised: f64, came: u64) {
        let came = came as f64;
        let sums = &mut self.sums[trend.change as usize][usize::from(trend.age)];
        sums.pages += 1.0;
        sums.x += promised;
        sums.y += came;
        sums.xx += promised * promised;
        sums.xy += promised * came;
    }

    /// All pages are noted: what was noted becomes what is believed.
    pub(super) fn settle(&mut self) {
        for change in 0..CHANGES {
            let shares = self.sums[change].map(Sums::share);
            for age in 0..AGES {
                self.next[change][age] = Line {
                    constant: 0.0,
                    slope: shares[age],
                };
                self.later[change][age] = later(&shares, age);
            }
        }
        for change in [Change::Rose, Change::Leapt] {
            self.next[change as usize][1] = self.sums[change as usize][1].line();
        }
    }

    /// Accesses to expect in the next epoch of a page of this kind and heat.
    pub(super) fn next(&self, trend: Trend, heat: f64) -> f64 {
        let line = self.next[trend.change as usize][usize::from(trend.age)];
        line.constant + line.slope * heat
    }

    /// Accesses to expect of it over the horizon.
    pub(super) fn horizon(&self, trend: Trend, heat: f64) -> f64 {
        let next = self.next(trend, heat);
        let older = usize::from(OLDEST.min(trend.age + 1));
        next + next * self.later[trend.change as usize][older]
    }
}

impl Sums {
    /// The share of their heat that such pages keep.
    fn share(self) -> f64 {
        ((self.y + BELIEF) / (self.x + BELIEF)).min(GROWTH)
    }

    /// The line of least squares, leaning towards the share kept and never steeper.
    fn line(self) -> Line {
        let share = self.share();
        if self.x < BELIEF {
            return Line {
                constant: 0.0,
                slope: share,
            };
        }
        let (mean_x, mean_y) = (self.x / self.pages, self.y / self.pages);
        let lean = FOR_THE_SHARE * mean_x * mean_x;
        let spread = (self.xx - self.x * mean_x).max(0.0);
        let together = self.xy - self.x * mean_y;
        let slope = ((together + lean * share) / (spread + lean)).clamp(0.0, share);
        Line {
            constant: (mean_y - slope * mean_x).max(0.0),
            slope,
        }
    }
}

/// What a page of this age brings in all epochs of the horizon but one, in units of its heat.
fn later(shares: &[f64; AGES], age: usize) -> f64 {
    let mut left = 1.0_f64;
    (age..age + HORIZON - 1)
        .map(|age| {
            left = (left * shares[age.min(AGES - 1)]).min(GROWTH);
            left
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::{HORIZON, Persistence};
    use crate::epoch::payback::averages::{Change, Trend};

    fn risen(age: u8) -> Trend {
        Trend {
            change: Change::Rose,
            age,
        }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3 * b.abs().max(1.0)
    }

    #[test]
    fn a_kind_that_nobody_met_is_believed_to_stay_as_it_is() {
        let mut persistence = Persistence::default();
        for _ in 0..2 {
            assert!(close(
                persistence.horizon(risen(3), 10.0),
                10.0 * HORIZON as f64
            ));
            assert!(close(persistence.next(risen(3), 10.0), 10.0));
            persistence.settle();
        }
    }

    #[test]
    fn what_is_ahead_of_a_page_is_what_older_pages_kept_one_after_the_other() {
        let mut persistence = Persistence::default();
        persistence.note(risen(1), 1e6, 1_000_000);
        persistence.note(risen(2), 1e6, 500_000);
        persistence.note(risen(3), 1e6, 0);
        persistence.settle();
        assert!(close(persistence.horizon(risen(1), 1e6), 1.5e6));
        assert!(close(persistence.horizon(risen(2), 1e6), 0.5e6));
        assert!(persistence.horizon(risen(3), 1e6) < 10.0);
        assert!(close(persistence.next(risen(2), 1e6), 0.5e6));
    }

    #[test]
    fn a_page_touched_late_in_its_first_epoch_is_expected_to_be_as_hot_as_the_others() {
        let mut persistence = Persistence::default();
        for seen in 1..=200 {
            persistence.note(risen(1), f64::from(seen), 200);
        }
        persistence.settle();
        assert!(persistence.next(risen(1), 1.0) > 180.0);
        assert!(persistence.next(risen(1), 200.0) < 220.0);
    }

    #[test]
    fn growth_is_believed_but_not_multiplied() {
        let mut persistence = Persistence::default();
        for age in 2..=15 {
            persistence.note(risen(age), 1.0, 1_000_000);
        }
        persistence.settle();
        assert!(persistence.horizon(risen(2), 1.0) <= 2.0 * (1.0 + 2.0 * HORIZON as f64));
    }

    #[test]
    fn a_page_that_fell_to_nothing_promises_nothing() {
        let mut persistence = Persistence::default();
        let fallen = Trend {
            change: Change::Fell,
            age: 2,
        };
        persistence.note(fallen, 0.0, 900);
        persistence.settle();
        assert!(persistence.horizon(fallen, 0.0) < 1e-9);
    }
}
