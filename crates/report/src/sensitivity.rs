//! [`SensitivityTable`] is the output of `isotherm sensitivity`: how much longer a program takes with all data slow than with all data
//! fast, and how much of that each of its most useful data objects, here whole sites, saves if it alone is fast (CoMerge, sections 3.1
//! and 3.2, table 3). Both are measured by timed runs, predicted from a profile, or both.
//!
//! ```text
//! alone fast     size    time  min .. max        benefit  min .. max    predicted  co-benefit  predicted co-benefit
//! all          12 MiB  1.00 s  0.98 s .. 1.02 s     1.00                     1.00        2.00                  2.00
//! grid          4 MiB  1.40 s  1.38 s .. 1.42 s     0.60  0.58 .. 0.62       0.55        1.20                  1.10
//! none            0 B  2.00 s  1.98 s .. 2.04 s     0.00                     0.00        0.00                  0.00
//! ```

mod page;

use isotherm_model::units::{Bytes, Nanos};
use serde::{Serialize, Serializer};

use crate::comparison::TOO_FEW;
use crate::table::DataTable;
use crate::times::Times;
use crate::words::{clip, counted, percent};

/// Characters of an object's name in a terminal.
const NAME: usize = 48;

/// The spread of a benefit over the rounds from which on a note says how to narrow it.
const WIDE: f64 = 0.5;

/// How much a program suffers from slow memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProgramSensitivity {
    /// Time with all data slow over time with all data fast.
    pub slowdown: f64,
    /// The word of its sensitivity class.
    pub class: &'static str,
    /// The factor of co-benefits by the class.
    pub class_factor: u32,
    /// The factor of co-benefits by the paper's printed formula.
    pub printed_factor: u64,
}

/// The benefit of one object alone in fast memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ObjectBenefit {
    /// The part of the gap between all slow and all fast that it closes.
    pub benefit: f64,
    /// The benefit times the factor of the program's class.
    pub co_benefit: f64,
    /// The co-benefit by the paper's printed formula.
    pub printed_co_benefit: f64,
}

/// The runs of one placement, in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlacementTimes {
    /// The middle run.
    pub median_seconds: f64,
    /// The shortest.
    pub min_seconds: f64,
    /// The longest.
    pub max_seconds: f64,
    /// Each round.
    pub runs_seconds: Vec<f64>,
    /// The times of all rounds.
    #[serde(skip)]
    times: Times,
}

/// The measured program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredSensitivity {
    /// The sensitivity by the medians.
    #[serde(flatten)]
    pub program: ProgramSensitivity,
    /// Times with all data slow.
    pub all_slow: PlacementTimes,
    /// Times with all data fast.
    pub all_fast: PlacementTimes,
}

/// The measured benefit of an object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredBenefit {
    /// The benefit by the medians.
    #[serde(flatten)]
    pub of_medians: ObjectBenefit,
    /// The least benefit of a round, by the times of this round; `None` where in no round all fast was faster than all slow.
    pub benefit_min: Option<f64>,
    /// The greatest benefit of a round.
    pub benefit_max: Option<f64>,
    /// Times with the object alone fast.
    #[serde(flatten)]
    pub times: PlacementTimes,
}

/// A data object of the program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ObjectSensitivity {
    /// Its site, as plans name it.
    pub site: String,
    /// Its location; no two sites have the same.
    pub object: String,
    /// The kind of its site.
    pub kind: &'static str,
    /// Most bytes resident at one time.
    pub size_bytes: u64,
    /// Benefit by timed runs.
    pub measured: Option<MeasuredBenefit>,
    /// Whether the program ran into the limit with this object alone fast, so that it has no time.
    pub exceeded_limit: bool,
    /// Benefit that the profile predicts.
    pub predicted: Option<ObjectBenefit>,
}

/// The output of `isotherm sensitivity`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SensitivityTable {
    /// Version of the JSON form; fields may be added within it, none is renamed.
    pub schema_version: u32,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The tiers as they were named.
    pub tiers: String,
    /// Whether they are emulated.
    pub emulated: bool,
    /// How much longer accesses that wait for the latency take in slow memory; `None` where the tiers do not say it.
    pub latency_factor: Option<f64>,
    /// How much longer accesses that wait for the bandwidth take; likewise.
    pub bandwidth_factor: Option<f64>,
    /// Bytes of all data that can be placed.
    pub footprint_bytes: u64,
    /// The program by timed runs.
    pub measured: Option<MeasuredSensitivity>,
    /// The longest that a run was to take.
    #[serde(rename = "time_limit_seconds", serialize_with = "as_seconds")]
    pub time_limit: Option<Nanos>,
    /// The program from the profile.
    pub predicted: Option<ProgramSensitivity>,
    /// The objects that were alone fast, by benefit: the measured one, else the predicted one.
    pub objects: Vec<ObjectSensitivity>,
    /// Number of the program's other objects.
    pub objects_left_out: usize,
    /// Predicted benefit of the other objects together.
    pub benefit_left_out: Option<f64>,
    /// Whether the program's output differed between timed runs.
    pub outputs_differ: bool,
}

/// A row of the table: an object, or a bound.
struct Row {
    name: String,
    size: Bytes,
    times: Option<Times>,
    /// The limit that its run exceeded.
    exceeded: Option<Nanos>,
    benefit: Option<f64>,
    range: String,
    predicted: Option<f64>,
    co_benefit: Option<f64>,
    predicted_co_benefit: Option<f64>,
}

#[expect(clippy::ref_option, reason = "serde passes the field by reference")]
fn as_seconds<S: Serializer>(time: &Option<Nanos>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.0 as f64 / 1e9).serialize(serializer)
}

impl PlacementTimes {
    /// The times of these rounds; `None` without any.
    #[must_use]
    pub fn of(rounds: &[Nanos]) -> Option<Self> {
        let times = Times::of(rounds)?;
        let seconds = |nanos: Nanos| nanos.0 as f64 / 1e9;
        Some(Self {
            median_seconds: seconds(times.median()),
            min_seconds: seconds(times.fastest()),
            max_seconds: seconds(times.slowest()),
            runs_seconds: rounds.iter().copied().map(seconds).collect(),
            times,
        })
    }
}

impl MeasuredSensitivity {
    /// Whether the times all slow and all fast differ by no more than noise, so that no benefit means anything; `None` below three rounds.
    #[must_use]
    pub fn within_noise(&self) -> Option<bool> {
        self.all_slow.times.within_noise_of(&self.all_fast.times)
    }
}

impl SensitivityTable {
    /// The facts, the table and the notes, for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let ended = |line: String| line + "\n";
        let facts: String = self.facts().into_iter().map(ended).collect();
        let notes: String = self.notes().into_iter().map(ended).collect();
        let rows = self.rows();
        format!("{facts}\n{}{notes}", self.table(&rows, NAME).render())
    }

    /// The program, its tiers, its class: a line each.
    fn facts(&self) -> Vec<String> {
        let emulated = if self.emulated { " (emulated)" } else { "" };
        let rounds = self.measured.as_ref();
        let rounds = rounds.map_or("predicted from one recorded run".to_owned(), |measured| {
            counted(measured.all_slow.runs_seconds.len(), "round")
        });
        let slower = self.latency_factor.zip(self.bandwidth_factor);
        let slower = slower.map(|(latency, bandwidth)| {
            format!(
                ": in slow memory {latency:.1}x the latency, {bandwidth:.1}x the time of streams"
            )
        });
        let slower = slower.unwrap_or_default();
        let mut facts = vec![
            self.command.join(" "),
            format!("tiers {}{emulated}{slower}; {rounds}", self.tiers),
        ];
        let in_words = |it: &ProgramSensitivity| {
            let (class, slowdown) = (it.class, it.slowdown);
            format!("{class}, all slow takes {slowdown:.2} times as long as all fast")
        };
        if let Some(measured) = &self.measured {
            facts.push(format!("sensitivity: {}", in_words(&measured.program)));
        }
        if let Some(predicted) = &self.predicted {
            facts.push(format!("predicted:   {}", in_words(predicted)));
        }
        facts
    }

    /// The notes that limit the figures: a line each.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let measured = self.measured.as_ref();
        match measured.map(MeasuredSensitivity::within_noise) {
            Some(None) => notes.push(TOO_FEW.to_owned()),
            Some(Some(true)) => notes.push(
                "all slow and all fast: within noise, so the measured benefits mean nothing"
                    .to_owned(),
            ),
            Some(Some(false)) | None => {}
        }
        if let Some(spread) = self.widest_spread().filter(|spread| *spread > WIDE) {
            notes.push(format!(
                "benefits differ by up to {spread:.2} between rounds; more --rounds, or a machine with less load, narrow them"
            ));
        }
        let program = measured.map(|it| &it.program);
        if let Some(program) = program.or(self.predicted.as_ref())
            && u64::from(program.class_factor) != program.printed_factor
        {
            notes.push(format!(
                "a co-benefit is {} times the benefit, by the class; by the paper's printed formula it would be {} times",
                program.class_factor, program.printed_factor
            ));
        }
        if self.objects_left_out > 0 {
            let benefit = self.benefit_left_out.map(|benefit| {
                format!(", with {} of the predicted gain together", percent(benefit))
            });
            notes.push(format!(
                "left out: {}{}; --objects {} takes all",
                counted(self.objects_left_out, "object"),
                benefit.unwrap_or_default(),
                self.objects.len() + self.objects_left_out
            ));
        }
        notes
    }

    /// The widest range of a benefit over the rounds.
    fn widest_spread(&self) -> Option<f64> {
        let measured = self.objects.iter().filter_map(|it| it.measured.as_ref());
        let spreads = measured.filter_map(|it| Some(it.benefit_max? - it.benefit_min?));
        spreads.reduce(f64::max)
    }

    /// The rows of the table: all data fast, each object, no data fast.
    fn rows(&self) -> Vec<Row> {
        let factor =
            |program: Option<&ProgramSensitivity>| program.map(|it| f64::from(it.class_factor));
        let measured = self.measured.as_ref();
        let bound = |name: &str, size, times: Option<&PlacementTimes>, benefit: f64| Row {
            name: name.to_owned(),
            size,
            times: times.map(|it| it.times.clone()),
            exceeded: None,
            benefit: measured.map(|_| benefit),
            range: String::new(),
            predicted: self.predicted.as_ref().map(|_| benefit),
            co_benefit: factor(measured.map(|it| &it.program)).map(|factor| factor * benefit),
            predicted_co_benefit: factor(self.predicted.as_ref()).map(|factor| factor * benefit),
        };
        let all = Bytes(self.footprint_bytes);
        let fast = bound("all", all, measured.map(|it| &it.all_fast), 1.0);
        let none = bound("none", Bytes::ZERO, measured.map(|it| &it.all_slow), 0.0);
        let objects = self.objects.iter();
        let objects = objects.map(|object| Row::of(object, self.time_limit));
        std::iter::once(fast).chain(objects).chain([none]).collect()
    }

    /// The columns that have figures, with names of at most `name` characters.
    fn table<'a>(&self, rows: &'a [Row], name: usize) -> DataTable<'a, Row> {
        let figure = |value: Option<f64>| value.map_or_else(String::new, |it| format!("{it:.2}"));
        let mut table = DataTable::of(rows)
            .left("alone fast", move |row| clip(&row.name, name))
            .right("size", |row| row.size);
        if self.measured.is_some() {
            table = table
                .right("time", Row::time)
                .left("min .. max", |row| {
                    row.times.as_ref().map_or_else(String::new, Times::range)
                })
                .right("benefit", move |row| figure(row.benefit))
                .left("min .. max", |row| row.range.clone());
        }
        if self.predicted.is_some() {
            table = table.right("predicted", move |row| figure(row.predicted));
        }
        if self.measured.is_some() {
            table = table.right("co-benefit", move |row| figure(row.co_benefit));
        }
        if self.predicted.is_some() {
            table = table.right("predicted co-benefit", move |row| {
                figure(row.predicted_co_benefit)
            });
        }
        table
    }
}

impl Row {
    fn of(object: &ObjectSensitivity, limit: Option<Nanos>) -> Self {
        let measured = object.measured.as_ref();
        let range = |it: &MeasuredBenefit| match it.benefit_min.zip(it.benefit_max) {
            Some((min, max)) if it.times.runs_seconds.len() > 1 => format!("{min:.2} .. {max:.2}"),
            _ => String::new(),
        };
        Self {
            name: object.object.clone(),
            size: Bytes(object.size_bytes),
            times: measured.map(|it| it.times.times.clone()),
            exceeded: limit.filter(|_| object.exceeded_limit),
            benefit: measured.map(|it| it.of_medians.benefit),
            range: measured.map(range).unwrap_or_default(),
            predicted: object.predicted.map(|it| it.benefit),
            co_benefit: measured.map(|it| it.of_medians.co_benefit),
            predicted_co_benefit: object.predicted.map(|it| it.co_benefit),
        }
    }

    fn time(&self) -> String {
        let exceeded = || self.exceeded.map(|limit| format!("over {limit}"));
        let median = self.times.as_ref().map(|it| it.median().to_string());
        median.or_else(exceeded).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        MeasuredBenefit, MeasuredSensitivity, ObjectBenefit, ObjectSensitivity, PlacementTimes,
        ProgramSensitivity, SensitivityTable,
    };
    use isotherm_model::units::Nanos;

    /// Times in hundredths of a second.
    fn times(hundredths: [u64; 3]) -> PlacementTimes {
        PlacementTimes::of(&hundredths.map(|it| Nanos(it * 10_000_000))).expect("rounds")
    }

    fn program(slowdown: f64, class: &'static str, class_factor: u32) -> ProgramSensitivity {
        ProgramSensitivity {
            slowdown,
            class,
            class_factor,
            printed_factor: slowdown as u64,
        }
    }

    fn benefit(benefit: f64, factor: f64) -> ObjectBenefit {
        ObjectBenefit {
            benefit,
            co_benefit: benefit * factor,
            printed_co_benefit: benefit * factor,
        }
    }

    /// A program of two objects, one of them named by an attacker.
    fn table() -> SensitivityTable {
        let object = |name: &str, alone, of_medians: f64, predicted| ObjectSensitivity {
            site: "00000000000000ab".to_owned(),
            object: name.to_owned(),
            kind: "heap",
            size_bytes: 4 << 20,
            measured: Some(MeasuredBenefit {
                of_medians: benefit(of_medians, 2.0),
                benefit_min: Some(of_medians - 0.05),
                benefit_max: Some(of_medians + 0.05),
                times: times(alone),
            }),
            exceeded_limit: false,
            predicted: Some(benefit(predicted, 2.0)),
        };
        SensitivityTable {
            schema_version: 1,
            command: vec!["./app".to_owned(), "-n".to_owned()],
            tiers: "emulated:cxl".to_owned(),
            emulated: true,
            latency_factor: Some(2.3),
            bandwidth_factor: Some(2.0),
            footprint_bytes: 12 << 20,
            measured: Some(MeasuredSensitivity {
                program: program(2.0, "medium", 2),
                all_slow: times([200, 198, 204]),
                all_fast: times([100, 98, 102]),
            }),
            time_limit: None,
            predicted: Some(program(1.9, "low", 1)),
            objects: vec![
                object("grid.c:3 grid", [140, 138, 142], 0.6, 0.55),
                object("</script><b>", [190, 188, 192], 0.1, 0.12),
            ],
            objects_left_out: 2,
            benefit_left_out: Some(0.33),
            outputs_differ: false,
        }
    }

    #[test]
    fn the_table_is_the_papers_with_predictions_beside_the_measured_figures() {
        let text = table().text();
        let lines: Vec<&str> = text.lines().collect();
        let row = |name: &str, size, time, range, benefit, spread, figures: [&str; 3]| {
            let [predicted, co_benefit, predicted_co_benefit] = figures;
            format!(
                "{name:<13}  {size:>6}  {time:>6}  {range:<18}  {benefit:>7}  {spread:<12}  {predicted:>9}  {co_benefit:>10}  \
                 {predicted_co_benefit:>20}"
            )
        };
        let head = ["predicted", "co-benefit", "predicted co-benefit"];
        assert_eq!(
            lines,
            [
                "./app -n",
                "tiers emulated:cxl (emulated): in slow memory 2.3x the latency, 2.0x the time of streams; 3 rounds",
                "sensitivity: medium, all slow takes 2.00 times as long as all fast",
                "predicted:   low, all slow takes 1.90 times as long as all fast",
                "",
                &row(
                    "alone fast",
                    "size",
                    "time",
                    "min .. max",
                    "benefit",
                    "min .. max",
                    head
                ),
                &row(
                    "all",
                    "12 MiB",
                    "1.00 s",
                    "980.0 ms .. 1.02 s",
                    "1.00",
                    "",
                    ["1.00", "2.00", "1.00"]
                ),
                &row(
                    "grid.c:3 grid",
                    "4 MiB",
                    "1.40 s",
                    "1.38 s .. 1.42 s",
                    "0.60",
                    "0.55 .. 0.65",
                    ["0.55", "1.20", "1.10"]
                ),
                &row(
                    "</script><b>",
                    "4 MiB",
                    "1.90 s",
                    "1.88 s .. 1.92 s",
                    "0.10",
                    "0.05 .. 0.15",
                    ["0.12", "0.20", "0.24"]
                ),
                &row(
                    "none",
                    "0 B",
                    "2.00 s",
                    "1.98 s .. 2.04 s",
                    "0.00",
                    "",
                    ["0.00", "0.00", "0.00"]
                ),
                "left out: 2 objects, with 33 % of the predicted gain together; --objects 4 takes all",
            ],
            "{text}"
        );
    }

    #[test]
    fn a_prediction_alone_has_no_times() {
        let mut table = table();
        table.measured = None;
        table
            .objects
            .iter_mut()
            .for_each(|object| object.measured = None);
        let text = table.text();
        assert!(
            text.contains("; predicted from one recorded run\n"),
            "{text}"
        );
        assert!(!text.contains("min .. max"), "{text}");
        assert!(!text.contains("sensitivity:"), "{text}");
    }

    #[test]
    fn an_object_that_ran_into_the_limit_says_so_in_place_of_its_time() {
        let mut table = table();
        table.time_limit = Some(Nanos(10_000_000_000));
        table.objects[1].measured = None;
        table.objects[1].exceeded_limit = true;
        let text = table.text();
        let row = text
            .lines()
            .find(|line| line.contains("<b>"))
            .expect("a row");
        assert!(row.contains("  over 10.00 s  "), "{text}");
        let json: serde_json::Value = serde_json::from_str(&crate::json(&table)).unwrap();
        assert_eq!(json["time_limit_seconds"], 10.0);
        assert_eq!(json["objects"][1]["exceeded_limit"], true);
    }

    #[test]
    fn noise_and_another_factor_of_the_printed_formula_are_said() {
        let mut table = table();
        if let Some(measured) = &mut table.measured {
            measured.all_slow = times([101, 99, 102]);
            measured.program = program(1.01, "none", 0);
        }
        let text = table.text();
        assert!(
            text.contains("the measured benefits mean nothing"),
            "{text}"
        );
        assert!(
            text.contains("a co-benefit is 0 times the benefit"),
            "{text}"
        );
        assert!(text.contains("it would be 1 times"), "{text}");
    }

    #[test]
    fn benefits_that_differ_between_rounds_are_said() {
        let mut table = table();
        if let Some(measured) = &mut table.objects[1].measured {
            measured.benefit_min = Some(-0.7);
        }
        let text = table.text();
        assert!(
            text.contains("differ by up to 0.85 between rounds"),
            "{text}"
        );
    }

    #[test]
    fn json_has_the_times_beside_the_benefits() {
        let json: serde_json::Value = serde_json::from_str(&crate::json(&table())).unwrap();
        let object = &json["objects"][0];
        assert_eq!(object["measured"]["benefit"], 0.6);
        assert_eq!(object["measured"]["runs_seconds"][1], 1.38);
        assert_eq!(object["predicted"]["co_benefit"], 1.1);
        assert_eq!(json["measured"]["class"], "medium");
        assert_eq!(json["measured"]["all_slow"]["median_seconds"], 2.0);
        assert_eq!(json["predicted"]["slowdown"], 1.9);
    }

    #[test]
    fn names_do_not_become_markup_of_the_page() {
        let page = table().html();
        assert!(!page.contains("</script><b>"));
        assert!(page.contains("&lt;/script&gt;&lt;b&gt;"));
        assert!(page.contains("\"kind\":\"bars\""));
    }
}
