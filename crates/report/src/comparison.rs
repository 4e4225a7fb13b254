//! The same program run several ways, some rounds each.
//!
//! ```text
//! placement    median  min .. max        of all fast  predicted
//! all slow     9.00 s  8.70 s .. 9.40 s        3.00x      2.96x
//! first touch  6.00 s  5.90 s .. 6.20 s        2.00x      2.04x
//! guided       3.50 s  3.40 s .. 3.60 s        1.17x      1.20x
//! all fast     3.00 s  3.00 s .. 3.10 s        1.00x
//! bound        3.20 s                          1.07x      1.05x
//! ```

use isotherm_model::plan::ExpectedTimes;
use isotherm_model::units::Nanos;

use crate::table::DataTable;
use crate::words::percent;

/// Times of the rounds of one placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The middle one; of an even number, the middle between the middle two.
    pub median: Nanos,
    /// The shortest.
    pub min: Nanos,
    /// The longest.
    pub max: Nanos,
    /// How many there are.
    pub rounds: usize,
}

impl Times {
    /// Of these rounds; None of none.
    #[must_use]
    pub fn of(rounds: &[Nanos]) -> Option<Self> {
        Some(Self {
            median: Nanos::median(rounds)?,
            min: *rounds.iter().min()?,
            max: *rounds.iter().max()?,
            rounds: rounds.len(),
        })
    }

    /// True where the ranges of both overlap, so that the difference of the medians may be noise. None where one of
    /// them is a single round, which has no range.
    #[must_use]
    pub fn within_noise_of(&self, other: &Self) -> Option<bool> {
        (self.rounds > 1 && other.rounds > 1)
            .then(|| self.min <= other.max && other.min <= self.max)
    }

    /// The range, if there is one.
    pub(crate) fn range(&self) -> String {
        match self.rounds {
            1 => String::new(),
            _ => format!("{} .. {}", self.min, self.max),
        }
    }
}

/// Times of one program run several ways; `None` for one that was not run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Everything in the slow tier.
    pub all_slow: Option<Times>,
    /// Placed in the order of first allocation until the fast tier was full.
    pub first_touch: Option<Times>,
    /// Placed by the plan.
    pub guided: Option<Times>,
    /// Everything in the fast tier.
    pub all_fast: Option<Times>,
    /// What the fractional bound promises at best, modelled from medians.
    pub bound: Option<Nanos>,
    /// What the plan predicts.
    pub expected: Option<ExpectedTimes>,
}

impl Comparison {
    /// Share of the time between first touch and all fast that guiding saved: (first touch −
    /// guided) / (first touch − all fast), of medians. Negative where guiding lost; none where a run is missing
    /// or first touch was no slower than all fast, so that there was no gap.
    #[must_use]
    pub fn gap_closed(&self) -> Option<f64> {
        let [first, guided, fast] =
            [self.first_touch?, self.guided?, self.all_fast?].map(|times| times.median.0);
        (first > fast).then(|| (first as f64 - guided as f64) / (first as f64 - fast as f64))
    }

    /// A time as a multiple of all fast.
    #[must_use]
    pub fn ratio(&self, time: Nanos) -> Option<f64> {
        let fast = self.all_fast.filter(|fast| fast.median.0 > 0)?;
        Some(time.0 as f64 / fast.median.0 as f64)
    }

    /// Whether the guided runs differ from first touch by more than noise.
    #[must_use]
    pub fn guided_within_noise(&self) -> Option<bool> {
        self.guided?.within_noise_of(&self.first_touch?)
    }

    /// Whether there is a gap between first touch and all fast beyond the noise.
    #[must_use]
    pub fn gap_within_noise(&self) -> Option<bool> {
        self.first_touch?.within_noise_of(&self.all_fast?)
    }

    /// A line for each way: median, range, and the median as a multiple of all fast; then what they tell.
    #[must_use]
    pub fn render(&self) -> String {
        let rows = self.rows();
        let factor = |ratio: Option<f64>| ratio.map_or_else(String::new, |it| format!("{it:.2}x"));
        let mut table = DataTable::of(&rows)
            .left("placement", |row| row.placement)
            .right("median", |row| row.median)
            .left("min .. max", |row| row.range.clone())
            .right("of all fast", |row| factor(self.ratio(row.median)));
        if self.expected.is_some() {
            table = table.right("predicted", |row| factor(row.predicted));
        }
        table.render() + &self.verdict()
    }

    fn rows(&self) -> Vec<Row> {
        let predicted = |of: fn(&ExpectedTimes) -> f64| self.expected.as_ref().map(of);
        let measured = [
            ("all slow", self.all_slow, predicted(|it| it.all_slow)),
            (
                "first touch",
                self.first_touch,
                predicted(|it| it.first_touch),
            ),
            ("guided", self.guided, predicted(|it| it.planned)),
            ("all fast", self.all_fast, None),
        ];
        let row = |(placement, times, predicted): (_, Option<Times>, _)| {
            Some(Row {
                placement,
                median: times?.median,
                range: times?.range(),
                predicted,
            })
        };
        let bound = self.bound.map(|bound| Row {
            placement: "bound",
            median: bound,
            range: String::new(),
            predicted: predicted(|it| it.bound),
        });
        measured.into_iter().filter_map(row).chain(bound).collect()
    }

    /// The time that the plan predicts for its own runs over the median of the measured ones, both as a multiple of all fast,
    /// less one: 0.05 where it predicts 5 % too much. `None` without a prediction or runs.
    #[must_use]
    pub fn prediction_error(&self) -> Option<f64> {
        Some(self.expected?.planned / self.ratio(self.guided?.median)? - 1.0)
    }

    /// Whether the prediction for guided runs lies within the range of their times over that of all fast's. `None` where one
    /// of them is a single round, or there is no prediction.
    #[must_use]
    pub fn prediction_within_noise(&self) -> Option<bool> {
        let (expected, guided, fast) = (self.expected?, self.guided?, self.all_fast?);
        let ratio = |one: Nanos, other: Nanos| one.0 as f64 / other.0.max(1) as f64;
        let range = ratio(guided.min, fast.max)..=ratio(guided.max, fast.min);
        (guided.rounds > 1 && fast.rounds > 1).then(|| range.contains(&expected.planned))
    }

    /// Whether first touch is no faster than all slow, beyond the noise, although all fast is.
    fn first_touch_gains_nothing(&self) -> bool {
        let overlap = |one: Option<Times>, other: Option<Times>| one?.within_noise_of(&other?);
        overlap(self.first_touch, self.all_slow) == Some(true)
            && overlap(self.first_touch, self.all_fast) == Some(false)
    }

    fn verdict(&self) -> String {
        let (Some(guided), Some(first)) = (self.guided, self.first_touch) else {
            return String::new();
        };
        let mut text = match self.guided_within_noise() {
            None => "one round shows no range; --rounds 3 or more tell whether placements differ\n"
                .to_owned(),
            Some(true) => "guided and first touch: within noise, their ranges overlap\n".to_owned(),
            Some(false) => faster(guided.median, first.median),
        };
        if self.first_touch_gains_nothing() {
            text += "first touch and all slow: within noise, what is touched first is cold\n";
        }
        match (self.gap_closed(), self.gap_within_noise()) {
            (Some(_), Some(true)) => {
                text += "first touch and all fast: within noise, so there is no gap that guiding could close\n";
            }
            (Some(gap), _) => {
                text += &format!(
                    "guided closes {} of the gap between first touch and all fast\n",
                    percent(gap)
                );
            }
            (None, _) => {}
        }
        text + &self.prediction()
    }

    /// How well the plan predicted the guided runs; empty without a prediction.
    fn prediction(&self) -> String {
        let Some(error) = self.prediction_error() else {
            return String::new();
        };
        let noise = match self.prediction_within_noise() {
            Some(true) => ", within noise",
            _ => "",
        };
        let than = if error < 0.0 { "less" } else { "more" };
        format!(
            "the plan predicts {} {than} time for guided runs than they took{noise}\n",
            percent(error.abs())
        )
    }
}

/// A line of the table.
struct Row {
    placement: &'static str,
    median: Nanos,
    range: String,
    /// By the plan, as a multiple of all fast; `None` of all fast and without a prediction.
    predicted: Option<f64>,
}

fn faster(guided: Nanos, first: Nanos) -> String {
    let times = |more: Nanos, less: Nanos| more.0 as f64 / less.0.max(1) as f64;
    match guided < first {
        true => format!(
            "guided is {:.2} times as fast as first touch\n",
            times(first, guided)
        ),
        false => format!(
            "guided is {:.2} times as slow as first touch\n",
            times(guided, first)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{Comparison, Times};
    use isotherm_model::plan::ExpectedTimes;
    use isotherm_model::units::Nanos;

    /// Rounds in tenths of a second.
    fn times(tenths: &[u64]) -> Option<Times> {
        let rounds: Vec<Nanos> = tenths.iter().map(|it| Nanos(it * 100_000_000)).collect();
        Times::of(&rounds)
    }

    fn bfs() -> Comparison {
        Comparison {
            all_slow: times(&[90, 87, 94]),
            first_touch: times(&[60, 62, 59]),
            guided: times(&[35, 36, 34]),
            all_fast: times(&[30, 31, 30]),
            bound: Some(Nanos(3_200_000_000)),
            expected: None,
        }
    }

    #[test]
    fn a_prediction_stands_beside_the_measured_times_and_its_error_below_them() {
        let mut comparison = Comparison {
            expected: Some(ExpectedTimes {
                all_slow: 2.96,
                first_touch: 2.04,
                planned: 1.2,
                bound: 1.05,
            }),
            ..bfs()
        };
        let text = comparison.render();
        let guided = text.lines().find(|line| line.starts_with("guided  "));
        assert_eq!(
            guided,
            Some("guided       3.50 s  3.40 s .. 3.60 s        1.17x      1.20x")
        );
        let says =
            "the plan predicts 2.9 % more time for guided runs than they took, within noise\n";
        assert!(text.ends_with(says), "{text}");
        comparison.guided = times(&[55, 60, 58]);
        assert_eq!(comparison.prediction_within_noise(), Some(false));
        let text = comparison.render();
        assert!(
            text.ends_with("predicts 38 % less time for guided runs than they took\n"),
            "{text}"
        );
    }

    #[test]
    fn a_comparison_shows_medians_ranges_ratios_and_the_gap() {
        assert_eq!(
            bfs().render(),
            "placement    median  min .. max        of all fast\n\
             all slow     9.00 s  8.70 s .. 9.40 s        3.00x\n\
             first touch  6.00 s  5.90 s .. 6.20 s        2.00x\n\
             guided       3.50 s  3.40 s .. 3.60 s        1.17x\n\
             all fast     3.00 s  3.00 s .. 3.10 s        1.00x\n\
             bound        3.20 s                          1.07x\n\
             guided is 1.71 times as fast as first touch\n\
             guided closes 83 % of the gap between first touch and all fast\n"
        );
    }

    #[test]
    fn placements_whose_ranges_overlap_are_within_noise() {
        let mut noisy = bfs();
        noisy.guided = times(&[40, 61, 39]);
        assert_eq!(noisy.guided_within_noise(), Some(true));
        let text = noisy.render();
        assert!(
            text.contains("guided and first touch: within noise"),
            "{text}"
        );
        assert!(!text.contains("as fast as"), "{text}");
        noisy.first_touch = times(&[31, 30, 32]);
        let text = noisy.render();
        assert!(
            text.contains("first touch and all fast: within noise"),
            "{text}"
        );
        assert!(!text.contains("closes"), "{text}");
    }

    #[test]
    fn first_touch_that_gains_nothing_is_said_to() {
        let mut cold_first = bfs();
        let says = "first touch and all slow: within noise, what is touched first is cold\n";
        assert!(!cold_first.render().contains(says));
        cold_first.first_touch = times(&[91, 90, 95]);
        assert!(
            cold_first.render().contains(says),
            "{}",
            cold_first.render()
        );
        cold_first.all_fast = times(&[90, 89, 91]);
        assert!(
            !cold_first.render().contains(says),
            "there is nothing to gain"
        );
    }

    #[test]
    fn a_guided_run_that_is_slower_is_said_to_be() {
        let mut slower = bfs();
        slower.guided = times(&[70, 71, 69]);
        let text = slower.render();
        assert!(
            text.contains("guided is 1.17 times as slow as first touch"),
            "{text}"
        );
        assert!(text.contains("closes -33 %"), "{text}");
    }

    #[test]
    fn one_round_has_no_range_and_says_so() {
        let one = Comparison {
            guided: times(&[35]),
            ..bfs()
        };
        assert_eq!(one.guided_within_noise(), None);
        assert!(one.render().contains("--rounds 3"), "{}", one.render());
    }

    #[test]
    fn there_is_no_gap_where_first_touch_is_as_good_as_all_fast() {
        let mut even = bfs();
        even.first_touch = even.all_fast;
        assert_eq!(even.gap_closed(), None);
        assert!(!even.render().contains("gap"));
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_two() {
        let rounds = [4, 1, 3, 2].map(Nanos);
        assert_eq!(
            Times::of(&rounds[..3]).map(|times| times.median),
            Some(Nanos(3))
        );
        assert_eq!(Times::of(&rounds).map(|times| times.median), Some(Nanos(2)));
        assert_eq!(Times::of(&[]), None);
    }
}
