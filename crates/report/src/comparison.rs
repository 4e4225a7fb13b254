//! [`Comparison`] holds and formats the result of `isotherm compare`: the times of one program in several placements, whether they differ
//! by more than noise, how much of the gap between first touch and all fast the plan closes, and how well it predicted the times.
//!
//! ```text
//! placement    fastest  median  slowest  of all fast  predicted
//! all slow      8.70 s  9.00 s   9.40 s        2.90x      2.96x
//! first touch   5.90 s  6.00 s   6.20 s        1.97x      2.04x
//! guided        3.40 s  3.50 s   3.60 s        1.13x      1.20x
//! all fast      3.00 s  3.00 s   3.10 s        1.00x
//! bound         3.20 s                         1.07x      1.05x
//! ```

use isotherm_model::plan::ExpectedTimes;
use isotherm_model::units::Nanos;

use crate::table::DataTable;
use crate::times::Times;
use crate::words::percent;

/// The sentence for too few rounds.
pub(crate) const TOO_FEW: &str =
    "only three rounds and more tell whether placements differ: --rounds 3";

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
    /// The best time that the fractional bound allows, modelled from the fastest rounds.
    pub bound: Option<Nanos>,
    /// The times that the plan predicts.
    pub expected: Option<ExpectedTimes>,
}

impl Comparison {
    /// Share of the time between first touch and all fast that guiding saved: (first touch −
    /// guided) / (first touch − all fast), of the fastest rounds. Negative where guiding lost; none where a run is missing
    /// or first touch was no slower than all fast, so that there was no gap.
    #[must_use]
    pub fn gap_closed(&self) -> Option<f64> {
        let fastest = |times: &Option<Times>| times.as_ref().map(|times| times.fastest().0);
        let (first, guided) = (fastest(&self.first_touch)?, fastest(&self.guided)?);
        let fast = fastest(&self.all_fast)?;
        (first > fast).then(|| (first as f64 - guided as f64) / (first as f64 - fast as f64))
    }

    /// A time as a multiple of the fastest round of all fast.
    #[must_use]
    pub fn ratio(&self, time: Nanos) -> Option<f64> {
        let fast = self.all_fast.as_ref()?.fastest().0;
        (fast > 0).then(|| time.0 as f64 / fast as f64)
    }

    /// Whether the guided runs differ from first touch by more than noise.
    #[must_use]
    pub fn guided_within_noise(&self) -> Option<bool> {
        within_noise(self.guided.as_ref(), self.first_touch.as_ref())
    }

    /// Whether there is a gap between first touch and all fast beyond the noise.
    #[must_use]
    pub fn gap_within_noise(&self) -> Option<bool> {
        within_noise(self.first_touch.as_ref(), self.all_fast.as_ref())
    }

    /// A line for each placement: fastest, middle and slowest round, and the fastest as a multiple of all fast; then what the times tell.
    #[must_use]
    pub fn render(&self) -> String {
        let rows = self.rows();
        let factor = |ratio: Option<f64>| ratio.map_or_else(String::new, |it| format!("{it:.2}x"));
        let several = |times: &Times, of: fn(&Times) -> Nanos| match times.rounds() {
            1 => String::new(),
            _ => of(times).to_string(),
        };
        let mut table = DataTable::of(&rows)
            .left("placement", |(placement, ..)| *placement)
            .right("fastest", |(_, times, _)| times.fastest())
            .right("median", move |(_, times, _)| several(times, Times::median))
            .right("slowest", move |(_, times, _)| {
                several(times, Times::slowest)
            })
            .right("of all fast", |(_, times, _)| {
                factor(self.ratio(times.fastest()))
            });
        if self.expected.is_some() {
            table = table.right("predicted", |(.., predicted)| factor(*predicted));
        }
        table.render() + &self.verdict()
    }

    /// The placements that were run, and the bound as if it had been run once; each with the plan's prediction as a multiple of all fast.
    fn rows(&self) -> Vec<(&'static str, Times, Option<f64>)> {
        let predicted = |of: fn(&ExpectedTimes) -> f64| self.expected.as_ref().map(of);
        let first_touch = predicted(|it| it.first_touch);
        let bound = self.bound.and_then(|bound| Times::of(&[bound]));
        let rows = [
            ("all slow", &self.all_slow, predicted(|it| it.all_slow)),
            ("first touch", &self.first_touch, first_touch),
            ("guided", &self.guided, predicted(|it| it.planned)),
            ("all fast", &self.all_fast, None),
            ("bound", &bound, predicted(|it| it.bound)),
        ];
        let timed = |(placement, times, predicted): (_, &Option<Times>, _)| {
            Some((placement, times.clone()?, predicted))
        };
        rows.into_iter().filter_map(timed).collect()
    }

    /// The time that the plan predicts for its own runs over the fastest of the measured ones, both as a multiple of all fast,
    /// less one: 0.05 where it predicts 5 % too much. `None` without a prediction or runs.
    #[must_use]
    pub fn prediction_error(&self) -> Option<f64> {
        let guided = self.guided.as_ref()?.fastest();
        Some(self.expected?.planned / self.ratio(guided)? - 1.0)
    }

    /// Whether the guided runs differ by no more than noise from those that are predicted: the runs with all data fast, each as many
    /// times longer as the plan says. `None` where one of them has fewer than three rounds, or there is no prediction.
    #[must_use]
    pub fn prediction_within_noise(&self) -> Option<bool> {
        let predicted = self.all_fast.as_ref()?.scaled(self.expected?.planned);
        self.guided.as_ref()?.within_noise_of(&predicted)
    }

    /// Whether first touch is no faster than all slow, beyond the noise, although all fast is.
    fn first_touch_gains_nothing(&self) -> bool {
        let slow = within_noise(self.first_touch.as_ref(), self.all_slow.as_ref());
        slow == Some(true) && self.gap_within_noise() == Some(false)
    }

    fn verdict(&self) -> String {
        let (Some(guided), Some(first)) = (&self.guided, &self.first_touch) else {
            return String::new();
        };
        let mut text = match self.guided_within_noise() {
            None => TOO_FEW.to_owned() + "\n",
            Some(true) => "guided and first touch: within noise\n".to_owned(),
            Some(false) => faster(guided.fastest(), first.fastest()),
        };
        if self.first_touch_gains_nothing() {
            text += "first touch and all slow: within noise, what is touched first is cold\n";
        }
        match (self.gap_closed(), self.gap_within_noise()) {
            (_, Some(true)) => {
                text += "first touch and all fast: within noise, so there is no gap that guiding could close\n";
            }
            // A part of the gap that may be noise is none.
            (Some(gap), _) if self.guided_within_noise() != Some(true) => {
                let gap = percent(gap);
                text +=
                    &format!("guided closes {gap} of the gap between first touch and all fast\n");
            }
            (Some(_) | None, _) => {}
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
        let error = percent(error.abs());
        format!("the plan predicts {error} {than} time for guided runs than they took{noise}\n")
    }
}

fn within_noise(one: Option<&Times>, other: Option<&Times>) -> Option<bool> {
    one?.within_noise_of(other?)
}

fn faster(guided: Nanos, first: Nanos) -> String {
    let (word, more, less) = match guided < first {
        true => ("fast", first, guided),
        false => ("slow", guided, first),
    };
    let times = more.0 as f64 / less.0.max(1) as f64;
    format!("guided is {times:.2} times as {word} as first touch\n")
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
            Some("guided        3.40 s  3.50 s   3.60 s        1.13x      1.20x")
        );
        let says =
            "the plan predicts 5.9 % more time for guided runs than they took, within noise\n";
        assert!(text.ends_with(says), "{text}");
        comparison.guided = times(&[55, 60, 58]);
        assert_eq!(comparison.prediction_within_noise(), Some(false));
        let text = comparison.render();
        assert!(
            text.ends_with("predicts 35 % less time for guided runs than they took\n"),
            "{text}"
        );
    }

    #[test]
    fn a_comparison_shows_times_ratios_and_the_gap() {
        assert_eq!(
            bfs().render(),
            "placement    fastest  median  slowest  of all fast\n\
             all slow      8.70 s  9.00 s   9.40 s        2.90x\n\
             first touch   5.90 s  6.00 s   6.20 s        1.97x\n\
             guided        3.40 s  3.50 s   3.60 s        1.13x\n\
             all fast      3.00 s  3.00 s   3.10 s        1.00x\n\
             bound         3.20 s                         1.07x\n\
             guided is 1.74 times as fast as first touch\n\
             guided closes 86 % of the gap between first touch and all fast\n"
        );
    }

    #[test]
    fn placements_that_chance_explains_are_within_noise() {
        let mut noisy = bfs();
        noisy.guided = times(&[40, 61, 63]);
        assert_eq!(noisy.guided_within_noise(), Some(true));
        let text = noisy.render();
        assert!(
            text.contains("guided and first touch: within noise"),
            "{text}"
        );
        assert!(!text.contains("as fast as"), "{text}");
        assert!(!text.contains("closes"), "{text}");
        noisy.first_touch = times(&[31, 29, 32]);
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
        assert!(text.contains("closes -34 %"), "{text}");
    }

    #[test]
    fn one_round_tells_no_difference_and_says_so() {
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
        even.first_touch = even.all_fast.clone();
        assert_eq!(even.gap_closed(), None);
        assert!(!even.render().contains("closes"));
    }
}
