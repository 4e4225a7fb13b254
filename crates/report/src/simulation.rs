//! [`Simulation`] holds the results of `isotherm simulate`, the figures of each policy at each capacity of fast memory, and is their JSON
//! form. `text` formats tables, `bars` bars of text, and `page` an HTML page with a chart.

use isotherm_model::count_unit::CountUnit;
use serde::Serialize;

mod bars;
mod text;
mod page;

/// Version of the JSON form.
pub const SCHEMA_VERSION: u32 = 1;

/// One policy at one capacity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimulatedPolicy {
    /// Its name.
    pub policy: String,
    /// True for the bounds, between which every policy stands.
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
    /// Its modelled energy over that of the same pages interleaved over all devices; only for power models with devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_of_interleaved: Option<f64>,
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

/// The results of a simulation.
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
    /// The power model of its memory, in words.
    pub power: String,
    /// Accesses of the program that one counted access represents.
    pub accesses_per_count: u64,
    /// The source of the policies' observations.
    pub source: String,
    /// Size of a page.
    pub page_bytes: u64,
    /// The footprint: what shares of fast memory are of.
    pub footprint_bytes: u64,
    /// Number of epochs.
    pub epochs: u64,
    /// Unit of the accesses.
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
            energy_of_interleaved: None,
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
        let row = "history          61 %  2.2 ms           1.10 J  12 MiB      4 MiB       -10 %";
        assert!(text.contains(row), "{text}");
        assert!(
            text.starts_with(
                "zipf <a>, seed 7: 1,000,000 accesses, a footprint of 16 MiB, 64 epochs"
            )
        );
        assert!(text.contains("! left out: 3 accesses"), "{text}");
    }

    #[test]
    fn energy_stands_beside_that_of_interleaved_pages_where_the_model_has_devices() {
        let mut with_devices = simulation(1);
        with_devices.capacities[0].policies[1].energy_of_interleaved = Some(0.68);
        let text = with_devices.text();
        assert!(text.contains("modelled energy  of interleaved"), "{text}");
        assert!(text.contains("1.10 J            68 %"), "{text}");
        let json = crate::json(&with_devices);
        assert!(json.contains("\"energy_of_interleaved\": 0.68"));
        assert!(!simulation(1).text().contains("interleaved"));
        let mut several = simulation(2);
        several.capacities[1].policies[1].energy_of_interleaved = Some(0.68);
        let text = several.text();
        assert!(
            text.contains("modelled energy of interleaved  4 MiB  8 MiB"),
            "{text}"
        );
        let row = format!("{:<30}  {:5}  {:>5}", "history", "", "68 %");
        assert!(text.contains(&row), "{text}");
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
        assert!(text.contains("modelled energy   4 MiB   8 MiB"), "{text}");
        assert!(text.contains("history          1.10 J  1.10 J"), "{text}");
        assert!(!text.contains("interleaved"), "{text}");
        // 24, 61 and 77 per cent of 40 columns.
        let bar = ["█".repeat(10), "▓".repeat(14), "░".repeat(7)].concat();
        let bar = format!("\n4 MiB  {bar}           61 %\n");
        assert!(text.contains(&bar), "{text}");
        assert!(text.contains("▓ history beyond it"), "{text}");
    }

    #[test]
    fn the_page_names_every_policy_and_the_json_every_figure() {
        let page = simulation(3).html();
        assert!(
            page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"),
            "{page}"
        );
        for name in ["first touch", "history", "oracle"] {
            assert!(
                page.contains(&format!("<th scope=\"row\">{name}</th>")),
                "{name}"
            );
            assert!(page.contains(&format!("\"name\":\"{name}\"")), "{name}");
        }
        assert_eq!(page, simulation(3).html());
        assert!(
            page.contains("&lt;a&gt;") && !page.contains("<a>"),
            "the name of the input is not escaped"
        );
        let json = crate::json(&simulation(1));
        assert!(json.contains("\"gap_closed\": -0.1"), "{json}");
    }
}
