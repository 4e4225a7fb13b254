//! What a simulation found out, as text, JSON and a plot.
//!
//! ```text
//! policy       hit rate     time  energy    moved  fast used  gap closed
//! first touch      24 %  2.20 ms  1.10 J      0 B      4 MiB
//! history          61 %  1.90 ms  1.00 J   12 MiB      4 MiB        70 %
//! oracle           77 %  1.70 ms  0.90 J   14 MiB      4 MiB
//! ```

use isotherm_model::count_unit::CountUnit;
use isotherm_model::units::{Bytes, Nanos};
use serde::Serialize;

use crate::table::{left, render, right};
use crate::words::{counted, percent};

mod bars;
mod svg;

/// Version of the JSON form.
pub const SCHEMA_VERSION: u32 = 1;

/// One policy at one capacity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimulatedPolicy {
    /// Its name.
    pub policy: String,
    /// True for the two between which every policy stands.
    pub is_bound: bool,
    /// Share of the accesses that the fast tier served, 0 to 1.
    pub hit_rate: f64,
    /// Accesses that the fast tier served.
    pub hits: u64,
    /// Modelled time.
    pub time_ns: u64,
    /// Modelled energy.
    pub energy_pj: u64,
    /// Bytes moved between the tiers, in both directions.
    pub moved_bytes: u64,
    /// The most bytes of fast memory that held data at one time.
    pub fast_used_bytes: u64,
    /// Share of the way from first touch's hit rate to the oracle's; none where there is no way, and
    /// for the bounds. Negative below first touch.
    pub gap_closed: Option<f64>,
}

/// Every policy at one capacity, first touch first and the oracle last.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimulatedCapacity {
    /// Fast memory.
    pub fast_bytes: u64,
    /// Share of the footprint that this is.
    pub share_of_footprint: f64,
    /// The policies.
    pub policies: Vec<SimulatedPolicy>,
}

/// All of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Simulation {
    /// 1; fields may be added within it, none is renamed.
    pub schema_version: u32,
    /// The file, or the generator.
    pub input: String,
    /// Seed of the generator; none for a file.
    pub seed: Option<u64>,
    /// The modelled machine, in words.
    pub machine: String,
    /// What its memory draws, in words.
    pub power: String,
    /// Accesses of the program for which a counted one was taken.
    pub accesses_per_count: u64,
    /// What the policies saw.
    pub source: String,
    /// Size of a page.
    pub page_bytes: u64,
    /// The footprint: what shares of fast memory are of.
    pub footprint_bytes: u64,
    /// Number of epochs.
    pub epochs: u64,
    /// What the accesses are counts of.
    #[serde(serialize_with = "crate::words::noun")]
    pub counted: CountUnit,
    /// Accesses replayed.
    pub accesses: u64,
    /// Accesses that no site made, which are left out.
    pub left_out: u64,
    /// Modelled time with everything in fast memory.
    pub all_fast_ns: u64,
    /// Modelled time with everything in slow memory.
    pub all_slow_ns: u64,
    /// Sentences that must be seen.
    pub notes: Vec<String>,
    /// Results by capacity.
    pub capacities: Vec<SimulatedCapacity>,
}

impl Simulation {
    /// As JSON, documented in `docs/formats.md`, ending in a line feed.
    #[must_use]
    pub fn json(&self) -> String {
        // Strings, numbers and lists of them: serialising cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// As a plot of the hit rate by capacity, one line a policy: an SVG that needs nothing else.
    ///
    /// # Errors
    /// The plotting library could not draw, in its own words.
    pub fn svg(&self) -> Result<String, String> {
        svg::draw(self).map_err(|error| error.to_string())
    }

    /// For a terminal: one table for a capacity; for several, the hit rates as bars and side by side.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.heading();
        match &self.capacities[..] {
            [one] => {
                text += &format!(
                    "\n{} of fast memory, {} of the footprint\n",
                    Bytes(one.fast_bytes),
                    percent(one.share_of_footprint)
                );
                text += &one.table();
            }
            several => {
                text += &bars::bars(several);
                text += &sweep(several);
            }
        }
        text
    }

    fn heading(&self) -> String {
        let seed = self.seed.map(|seed| format!(", seed {seed}"));
        let mut text = format!(
            "{}{}: {}, a footprint of {}, {}, pages of {}\n",
            self.input,
            seed.unwrap_or_default(),
            self.counted.counted(self.accesses),
            Bytes(self.footprint_bytes),
            counted(self.epochs, "epoch"),
            Bytes(self.page_bytes),
        );
        text += &format!(
            "Modelled: {}; all fast {}, all slow {}; policies see: {}; power: {}\n\
             Hit rate: share of the {} that fast memory serves\n",
            self.machine,
            Nanos(self.all_fast_ns),
            Nanos(self.all_slow_ns),
            self.source,
            self.power,
            self.counted.noun()
        );
        if self.left_out > 0 {
            let count = self.counted.counted(self.left_out);
            text += &format!("! left out: {count}, because no site made what they reach\n");
        }
        for note in &self.notes {
            text += &format!("! {note}\n");
        }
        text
    }
}

impl SimulatedCapacity {
    fn table(&self) -> String {
        let columns = [
            left("policy"),
            right("hit rate"),
            right("time"),
            right("energy"),
            right("moved"),
            right("fast used"),
            right("gap closed"),
        ];
        let row = |policy: &SimulatedPolicy| {
            vec![
                policy.policy.clone(),
                percent(policy.hit_rate),
                Nanos(policy.time_ns).to_string(),
                joules(policy.energy_pj),
                Bytes(policy.moved_bytes).to_string(),
                Bytes(policy.fast_used_bytes).to_string(),
                policy.gap_closed.map(percent).unwrap_or_default(),
            ]
        };
        let rows: Vec<_> = self.policies.iter().map(row).collect();
        render(&columns, &rows)
    }
}

/// Hit rate and bytes moved of every policy, a column for each capacity.
fn sweep(capacities: &[SimulatedCapacity]) -> String {
    let Some(first) = capacities.first() else {
        return String::new();
    };
    let mut text = String::new();
    type Cell = fn(&SimulatedPolicy) -> String;
    let tables: [(&str, Cell); 3] = [
        ("hit rate", |policy| percent(policy.hit_rate)),
        ("time", |policy| Nanos(policy.time_ns).to_string()),
        ("moved", |policy| Bytes(policy.moved_bytes).to_string()),
    ];
    for (title, cell) in tables {
        let mut columns = vec![left(title)];
        let capacity = |at: &SimulatedCapacity| right(&Bytes(at.fast_bytes).to_string());
        columns.extend(capacities.iter().map(capacity));
        let row = |(index, policy): (usize, &SimulatedPolicy)| {
            let cells = capacities
                .iter()
                .map(|at| at.policies.get(index).map_or(String::new(), cell));
            std::iter::once(policy.policy.clone())
                .chain(cells)
                .collect()
        };
        let rows: Vec<Vec<String>> = first.policies.iter().enumerate().map(row).collect();
        text.push('\n');
        text += &render(&columns, &rows);
    }
    text
}

/// Picojoules as people read them.
fn joules(picojoules: u64) -> String {
    let value = picojoules as f64;
    match picojoules {
        0..1_000_000 => format!("{:.2} nJ", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} uJ", value / 1e6),
        1_000_000_000..1_000_000_000_000 => format!("{:.2} mJ", value / 1e9),
        _ => format!("{:.2} J", value / 1e12),
    }
}

#[cfg(test)]
mod tests {
    use super::{CountUnit, SCHEMA_VERSION, SimulatedCapacity, SimulatedPolicy, Simulation};

    fn policy(name: &str, hit_rate: f64, gap_closed: Option<f64>) -> SimulatedPolicy {
        SimulatedPolicy {
            policy: name.to_owned(),
            is_bound: gap_closed.is_none(),
            hit_rate,
            hits: 1,
            time_ns: 2_200_000,
            energy_pj: 1_100_000_000_000,
            moved_bytes: 12 << 20,
            fast_used_bytes: 4 << 20,
            gap_closed,
        }
    }

    fn simulation(capacities: usize) -> Simulation {
        let capacity = |number: usize| SimulatedCapacity {
            fast_bytes: 4 << (20 + number),
            share_of_footprint: 0.25,
            policies: vec![
                policy("first touch", 0.24, None),
                policy("history", 0.61, Some(-0.1)),
                policy("oracle", 0.77, None),
            ],
        };
        Simulation {
            schema_version: SCHEMA_VERSION,
            input: "zipf <a>".to_owned(),
            seed: Some(7),
            machine: "DRAM beside CXL".to_owned(),
            power: "round".to_owned(),
            accesses_per_count: 1,
            source: "exact".to_owned(),
            page_bytes: 4096,
            footprint_bytes: 16 << 20,
            counted: CountUnit::Accesses,
            epochs: 64,
            accesses: 1_000_000,
            left_out: 3,
            notes: vec!["<look & see>".to_owned()],
            all_fast_ns: 1_000_000,
            all_slow_ns: 2_500_000,
            capacities: (0..capacities).map(capacity).collect(),
        }
    }

    #[test]
    fn one_capacity_is_a_table_with_every_figure() {
        let text = simulation(1).text();
        let row = "history          61 %  2.2 ms  1.10 J  12 MiB      4 MiB       -10 %";
        assert!(text.contains(row), "{text}");
        assert!(
            text.starts_with(
                "zipf <a>, seed 7: 1,000,000 accesses, a footprint of 16 MiB, 64 epochs"
            )
        );
        assert!(text.contains("! left out: 3 accesses"), "{text}");
    }

    #[test]
    fn a_small_loss_against_first_touch_is_one_signed_number() {
        let mut lost = simulation(1);
        lost.capacities[0].policies[1].gap_closed = Some(-0.000_1);
        let text = lost.text();
        assert!(text.contains("4 MiB     >-0.1 %\n"), "{text}");
    }

    #[test]
    fn several_capacities_stand_side_by_side() {
        let text = simulation(2).text();
        assert!(text.contains("hit rate     4 MiB  8 MiB"), "{text}");
        assert!(text.contains("history       61 %   61 %"), "{text}");
        // 24, 61 and 77 per cent of 40 columns.
        let bar = ["█".repeat(10), "▓".repeat(14), "░".repeat(7)].concat();
        let bar = format!("\n4 MiB  {bar}           61 %\n");
        assert!(text.contains(&bar), "{text}");
        assert!(text.contains("▓ history beyond it"), "{text}");
    }

    #[test]
    fn the_plot_names_every_policy_and_the_json_every_figure() {
        let svg = simulation(3).svg().unwrap();
        assert!(
            svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"),
            "{svg}"
        );
        for name in ["first touch", "history", "oracle"] {
            assert!(svg.contains(name), "{name}");
        }
        assert_eq!(svg, simulation(3).svg().unwrap());
        assert!(
            svg.contains("&lt;a&gt;"),
            "the name of the input is not escaped"
        );
        let json = simulation(1).json();
        assert!(json.contains("\"gap_closed\": -0.1"), "{json}");
    }
}
