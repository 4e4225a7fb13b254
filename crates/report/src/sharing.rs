//! [`Sharing`] is the output of `isotherm colocate`: the fast memory of each program, the slow-downs that each policy would lead to
//! (CoMerge, table 4), and with `--run` the measured times of the programs alone and together.

use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::words::counted;
use serde::Serialize;

use crate::table::DataTable;
use crate::words::percent;

/// A program under the policy that was chosen. Slow-downs are expected ones, over the time with all data fast.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharingProgram {
    /// Its name among the programs.
    pub program: String,
    /// The word of its sensitivity class.
    pub class: &'static str,
    /// Bytes of its data.
    pub footprint_bytes: u64,
    /// Bytes of its data in fast memory.
    pub fast_bytes: u64,
    /// Its slow-down with no data in fast memory.
    pub all_slow: f64,
    /// Its slow-down by the plan.
    pub slowdown: f64,
    /// The times that these slow-downs follow from.
    pub times: SharingSource,
    /// The file of its plan.
    pub plan: String,
}

/// The times from which the slow-downs of a program follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum SharingSource {
    /// Times that its profile predicts.
    Predicted,
    /// Times of the timed runs in its profile.
    Measured {
        /// Rounds of runs.
        rounds: usize,
        /// Its sites that were alone fast in a run.
        measured_sites: usize,
        /// All of its sites; the times of the others are predicted.
        sites: usize,
        /// Other sites that have no prediction, and are assumed to gain nothing.
        unknown_sites: usize,
    },
}

impl SharingSource {
    fn text(self) -> String {
        match self {
            Self::Predicted => "predicted".to_owned(),
            Self::Measured {
                measured_sites,
                sites,
                ..
            } => match measured_sites == sites {
                true => "measured".to_owned(),
                false => format!("measured ({measured_sites} of {})", counted(sites, "site")),
            },
        }
    }
}

/// The program that a policy serves worst.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorstProgram {
    /// Its name.
    pub program: String,
    /// The factor by which it is slowed.
    pub factor: f64,
}

impl WorstProgram {
    /// The program with the highest factor; `factors` are in the order of `names`. `None` without programs.
    #[must_use]
    pub fn of<'a>(
        names: impl Iterator<Item = &'a str>,
        factors: impl Iterator<Item = f64>,
    ) -> Option<Self> {
        let worst = names.zip(factors).max_by(|a, b| a.1.total_cmp(&b.1));
        worst.map(|(program, factor)| Self {
            program: program.to_owned(),
            factor,
        })
    }

    fn text(worst: Option<&Self>) -> String {
        worst.map_or(String::new(), |worst| {
            format!("{} ({})", slowdown(worst.factor), worst.program)
        })
    }
}

/// The outcome of one policy for all programs, in the order of the programs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharingOutcome {
    /// The name of the policy.
    pub policy: String,
    /// What it shares: `sites` or `chunks`.
    pub shares: &'static str,
    /// Used bytes of fast memory by its capacity, 0 to 1.
    pub utility: f64,
    /// The expected slow-down of each program.
    pub slowdowns: Vec<f64>,
    /// The program with the highest slow-down.
    pub worst: Option<WorstProgram>,
    /// The program with the highest slow-down over what equal split of the same objects gives it, and that factor.
    pub worst_over_equal_split: Option<WorstProgram>,
    /// Why the policy has no plan; then the other fields are empty.
    pub refused: Option<String>,
}

/// The times of a program (CoMerge, section 4: the slow-down that data in slow memory causes alone, and what the other programs add),
/// medians of all rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharingTimes {
    /// The program.
    pub program: String,
    /// Seconds of a run alone with all data fast.
    pub all_fast_seconds: f64,
    /// Seconds of a run alone by the plan.
    pub alone_seconds: f64,
    /// Seconds of a run by the plan beside the other programs.
    pub together_seconds: f64,
    /// Processor time of the three runs, in seconds: without the wait for a processor.
    pub all_fast_processor_seconds: f64,
    /// Processor time of a run alone by the plan.
    pub alone_processor_seconds: f64,
    /// Processor time of a run by the plan beside the other programs.
    pub together_processor_seconds: f64,
    /// How often it was started again while another still ran its first time, in all rounds.
    pub restarts: u32,
}

impl SharingTimes {
    /// The slow-down by the plan, alone.
    #[must_use]
    pub fn tiering(&self) -> f64 {
        self.alone_seconds / self.all_fast_seconds
    }

    /// The slow-down that the other programs add, as a factor.
    #[must_use]
    pub fn collocation(&self) -> f64 {
        self.together_seconds / self.alone_seconds
    }

    /// The whole slow-down.
    #[must_use]
    pub fn slowdown(&self) -> f64 {
        self.together_seconds / self.all_fast_seconds
    }

    /// The slow-down of processor time. More programs than processors wait for processors too, whatever memory they have.
    #[must_use]
    pub fn processor_slowdown(&self) -> f64 {
        self.together_processor_seconds / self.all_fast_processor_seconds
    }
}

/// The runs of `isotherm colocate --run`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharingRuns {
    /// Complete rounds.
    pub rounds: u32,
    /// The programs, in the order of the programs.
    pub programs: Vec<SharingTimes>,
}

impl SharingRuns {
    fn text(&self, expected: &[SharingProgram]) -> String {
        let seconds = |seconds: f64| Nanos((seconds * 1e9) as u64).to_string();
        let of_processor = |run: &SharingTimes| slowdown(run.processor_slowdown());
        let rows: Vec<(&SharingTimes, &SharingProgram)> =
            self.programs.iter().zip(expected).collect();
        let table = DataTable::of(&rows)
            .left("program", |(run, _)| run.program.clone())
            .right("all fast", move |(run, _)| seconds(run.all_fast_seconds))
            .right("alone", move |(run, _)| seconds(run.alone_seconds))
            .right("together", move |(run, _)| seconds(run.together_seconds))
            .right("tiering", |(run, _)| slowdown(run.tiering()))
            .right("collocation", |(run, _)| slowdown(run.collocation()))
            .right("slow-down", |(run, _)| slowdown(run.slowdown()))
            .right("of processor time", |(run, _)| of_processor(run))
            .right("expected", |(_, program)| slowdown(program.slowdown))
            .right("restarts", |(run, _)| run.restarts);
        let sum = |of: fn(&SharingTimes) -> f64| self.programs.iter().map(of).sum::<f64>();
        let time = sum(SharingTimes::slowdown);
        let processor = sum(SharingTimes::processor_slowdown);
        format!(
            "measured, {}: each program alone with all data fast, alone by its plan, and by its plan together with the others\n\n{}sum of slow-downs: \
             {time:.2}; of processor time: {processor:.2}\n",
            counted(self.rounds, "round"),
            table.render()
        )
    }
}

/// The output of `isotherm colocate`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sharing {
    /// Version of the JSON form; fields may be added within it, none is renamed.
    pub schema_version: u32,
    /// Bytes of the shared fast memory.
    pub capacity_bytes: u64,
    /// The policy of the plans.
    pub policy: String,
    /// What it shares: `sites` or `chunks`.
    pub shares: &'static str,
    /// The least sum of slow-downs that any policy could reach.
    pub least_sum: f64,
    /// The programs.
    pub programs: Vec<SharingProgram>,
    /// Every policy, the chosen one included.
    pub policies: Vec<SharingOutcome>,
    /// The runs together, where there were any.
    pub runs: Option<SharingRuns>,
}

impl Sharing {
    /// The tables for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let programs = DataTable::of(&self.programs)
            .left("program", |row| row.program.clone())
            .left("sensitivity", |row| row.class)
            .right("footprint", |row| Bytes(row.footprint_bytes))
            .right("fast", |row| Bytes(row.fast_bytes))
            .right("all slow", |row| slowdown(row.all_slow))
            .right("expected", |row| slowdown(row.slowdown))
            .left("times", |row| row.times.text())
            .left("plan", |row| row.plan.clone());
        let runs = self.runs.as_ref();
        let runs = runs.map_or(String::new(), |runs| {
            format!("\n{}", runs.text(&self.programs))
        });
        format!(
            "{} of fast memory shared by {}, by {}\n\n{}\n{}{runs}",
            Bytes(self.capacity_bytes),
            self.policy,
            self.shares,
            programs.render(),
            self.outcomes()
        )
    }

    /// A row for each policy.
    fn outcomes(&self) -> String {
        let made = self.policies.iter().filter(|row| row.refused.is_none());
        let made: Vec<&SharingOutcome> = made.collect();
        let table = DataTable::of(&made)
            .left("policy", |row| row.policy.clone())
            .left("shares", |row| row.shares)
            .right("memory used", |row| percent(row.utility))
            .right("sum of slow-downs", |row| {
                format!("{:.2}", row.slowdowns.iter().sum::<f64>())
            })
            .right("worst", |row| WorstProgram::text(row.worst.as_ref()))
            .right("over equal split", |row| {
                WorstProgram::text(row.worst_over_equal_split.as_ref())
            });
        let mut text = table.render() + &format!("least possible sum: {:.2}\n", self.least_sum);
        for row in &self.policies {
            if let Some(why) = &row.refused {
                text += &format!("{}, {}: {why}\n", row.policy, row.shares);
            }
        }
        text
    }
}

/// A slow-down with the sign of a factor.
fn slowdown(factor: f64) -> String {
    format!("{factor:.2}x")
}

#[cfg(test)]
mod tests {
    use super::{Sharing, SharingOutcome, SharingProgram, SharingSource, WorstProgram};

    /// Three programs, by one policy that has a plan and one that has none.
    fn sharing() -> Sharing {
        let measured = |measured_sites| SharingSource::Measured {
            rounds: 3,
            measured_sites,
            sites: 2,
            unknown_sites: 0,
        };
        let program = |name: &str, slowdown, times| SharingProgram {
            program: name.to_owned(),
            class: "high",
            footprint_bytes: 4 << 20,
            fast_bytes: 1 << 20,
            all_slow: 3.5,
            slowdown,
            times,
            plan: format!("{name}.plan"),
        };
        let outcome = |policy: &str, slowdowns: Vec<f64>, refused| SharingOutcome {
            policy: policy.to_owned(),
            shares: "sites",
            utility: 0.5,
            worst: WorstProgram::of(["a", "b", "c"].into_iter(), slowdowns.iter().copied()),
            worst_over_equal_split: WorstProgram::of(
                ["a", "b", "c"].into_iter(),
                slowdowns.iter().map(|slowdown| 3.0 / slowdown),
            ),
            slowdowns,
            refused,
        };
        Sharing {
            schema_version: 1,
            capacity_bytes: 2 << 20,
            policy: "comerge".to_owned(),
            shares: "sites",
            least_sum: 3.2,
            programs: vec![
                program("a", 1.25, SharingSource::Predicted),
                program("b", 2.5, measured(1)),
                program("c", 1.0, measured(2)),
            ],
            policies: vec![
                outcome("comerge", vec![1.25, 2.5, 1.0], None),
                outcome("least-slowdown", vec![], Some("no room".to_owned())),
            ],
            runs: None,
        }
    }

    #[test]
    fn a_policy_that_has_no_plan_says_why_and_the_worst_program_is_named() {
        let sharing = sharing();
        let text = sharing.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "2 MiB of fast memory shared by comerge, by sites",
                "",
                "program  sensitivity  footprint   fast  all slow  expected  times                    plan",
                "a        high             4 MiB  1 MiB     3.50x     1.25x  predicted                a.plan",
                "b        high             4 MiB  1 MiB     3.50x     2.50x  measured (1 of 2 sites)  b.plan",
                "c        high             4 MiB  1 MiB     3.50x     1.00x  measured                 c.plan",
                "",
                "policy   shares  memory used  sum of slow-downs      worst  over equal split",
                "comerge  sites          50 %               4.75  2.50x (b)         3.00x (c)",
                "least possible sum: 3.20",
                "least-slowdown, sites: no room",
            ]
        );
        let json = crate::json(&sharing);
        assert!(json.contains("\"least_sum\": 3.2"));
        assert!(json.contains("\"source\": \"predicted\""));
        assert!(json.contains("\"measured_sites\": 1"));
        let printed: serde_json::Value = serde_json::from_str(&json).expect("is JSON");
        assert_eq!(printed["policies"][0]["worst"]["program"], "b");
        assert_eq!(
            printed["policies"][0]["worst_over_equal_split"]["factor"],
            3.0
        );
        assert!(printed["policies"][1]["worst"].is_null());
    }
}
