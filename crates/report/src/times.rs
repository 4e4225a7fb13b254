//! [`Times`] holds the times of a program's rounds under one placement, and tells by their ranks if two placements differ beyond noise.
//!
//! Other work on the machine only makes a run slower, so the fastest round is the one that it disturbed least: times are compared by
//! it (Chen and Revels, "Robust benchmarking in noisy environments", 2016). Whether two placements differ at all is asked of
//! all rounds, by their ranks, because one slow round says little of the others.

use isotherm_model::units::Nanos;

use crate::rank_test::chance;

/// Placements differ where chance would part their rounds as much in one case of ten at most: three rounds each then differ where their
/// ranges do not overlap, and five may have one that other work disturbed.
const CHANCE: f64 = 0.1;

/// Fewer rounds cannot differ by more than chance.
pub(crate) const ROUNDS: usize = 3;

/// Times of the rounds of one placement; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    /// The times in ascending order.
    rounds: Vec<Nanos>,
}

impl Times {
    /// The times of these rounds; `None` without any.
    #[must_use]
    pub fn of(rounds: &[Nanos]) -> Option<Self> {
        let mut rounds = rounds.to_vec();
        rounds.sort_unstable();
        (!rounds.is_empty()).then_some(Self { rounds })
    }

    /// The shortest, which other work on the machine disturbed least.
    #[must_use]
    pub fn fastest(&self) -> Nanos {
        self.rounds.first().copied().unwrap_or_default()
    }

    /// The middle one; of an even number, the middle between the middle two.
    #[must_use]
    pub fn median(&self) -> Nanos {
        Nanos::median(&self.rounds).unwrap_or_default()
    }

    /// The longest.
    #[must_use]
    pub fn slowest(&self) -> Nanos {
        self.rounds.last().copied().unwrap_or_default()
    }

    /// Number of rounds.
    #[must_use]
    pub const fn rounds(&self) -> usize {
        self.rounds.len()
    }

    /// Each round's time multiplied by `factor`, which is above 0.
    #[must_use]
    pub(crate) fn scaled(&self, factor: f64) -> Self {
        let scaled = |time: &Nanos| Nanos((time.0 as f64 * factor) as u64);
        Self {
            rounds: self.rounds.iter().map(scaled).collect(),
        }
    }

    /// True where the difference may be noise: chance would part the ranks of the rounds as much in more than one case of ten.
    /// `None` where one of them has fewer than three rounds.
    #[must_use]
    pub fn within_noise_of(&self, other: &Self) -> Option<bool> {
        (self.rounds().min(other.rounds()) >= ROUNDS)
            .then(|| chance(&self.rounds, &other.rounds) > CHANCE + f64::EPSILON)
    }

    /// The range, if there is one.
    pub(crate) fn range(&self) -> String {
        match self.rounds() {
            1 => String::new(),
            _ => format!("{} .. {}", self.fastest(), self.slowest()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Times;
    use isotherm_model::units::Nanos;

    fn times(rounds: &[u64]) -> Times {
        let rounds: Vec<Nanos> = rounds.iter().copied().map(Nanos).collect();
        Times::of(&rounds).expect("rounds")
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_two() {
        assert_eq!(times(&[4, 1, 3]).median(), Nanos(3));
        assert_eq!(times(&[4, 1, 3, 2]).median(), Nanos(2));
        assert_eq!(Times::of(&[]), None);
    }

    #[test]
    fn three_rounds_differ_where_their_ranges_do_not_overlap() {
        assert_eq!(
            times(&[10, 11, 12]).within_noise_of(&times(&[13, 14, 15])),
            Some(false)
        );
        assert_eq!(
            times(&[10, 11, 13]).within_noise_of(&times(&[13, 14, 15])),
            Some(true)
        );
        assert_eq!(
            times(&[10, 11]).within_noise_of(&times(&[20, 21, 22])),
            None
        );
    }

    #[test]
    fn one_disturbed_round_of_five_hides_no_difference() {
        // The disturbed round of each placement is twice as long as its others.
        let guided = times(&[151, 155, 169, 172, 340]);
        let first_touch = times(&[224, 228, 231, 240, 470]);
        assert_eq!(guided.within_noise_of(&first_touch), Some(false));
        assert_eq!(first_touch.within_noise_of(&guided), Some(false));
        assert_eq!(guided.within_noise_of(&guided), Some(true));
    }
}
