//! A simulation in a terminal.
//!
//! ```text
//! policy       hit rate     time  energy    moved  fast used  gap closed
//! first touch      24 %  2.20 ms  1.10 J      0 B      4 MiB
//! history          61 %  1.90 ms  1.00 J   12 MiB      4 MiB        70 %
//! oracle           77 %  1.70 ms  0.90 J   14 MiB      4 MiB
//! ```

use isotherm_model::units::{Bytes, Nanos};

use super::bars::bars;
use super::{SimulatedCapacity, SimulatedPolicy, Simulation};
use crate::table::{left, render, right};
use crate::words::{counted, percent};

impl Simulation {
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
                text += &bars(several);
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
