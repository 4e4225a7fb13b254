//! Formats a [`Simulation`] for a terminal: at a single capacity one table of all figures; at several the hit rates as bars, and a table
//! for each figure but `fast used` and `gap closed`, with a column for each capacity.
//!
//! ```text
//! policy       hit rate     time  modelled energy    moved  fast used  gap closed
//! first touch      24 %  2.20 ms           1.10 J      0 B      4 MiB
//! history          61 %  1.90 ms           1.00 J   12 MiB      4 MiB        70 %
//! oracle           77 %  1.70 ms           0.90 J   14 MiB      4 MiB
//! ```

use isotherm_model::units::{Bytes, Nanos};

use super::bars::bars;
use super::{SimulatedCapacity, SimulatedPolicy, Simulation};
use crate::table::DataTable;
use crate::words::{counted, percent};

/// The title of joules: no meter reads them.
const ENERGY: &str = "modelled energy";
/// The title of modelled energy as a share.
const OF_INTERLEAVED: &str = "modelled energy of interleaved";

impl Simulation {
    /// The tables for a terminal: one for a single capacity; for several, the hit rates as bars, and most figures side by side.
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
                text += &at_one(one);
            }
            several => {
                text += &bars(several);
                let policies = policies(several);
                let table = |title, figure| by_capacity(&policies, several, title, figure).render();
                text += &format!("\n{}", table("hit rate", hit_rate));
                text += &format!("\n{}", table("time", time));
                text += &format!("\n{}", table("moved", moved));
                text += &format!("\n{}", table(ENERGY, energy));
                if has_interleaved(several) {
                    text += &format!("\n{}", table(OF_INTERLEAVED, of_interleaved));
                }
            }
        }
        text
    }

    /// What was replayed, on which machine, and what limits the figures: a line each.
    pub(super) fn heading(&self) -> String {
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

/// All figures of each policy at one capacity.
fn at_one(capacity: &SimulatedCapacity) -> String {
    let table = DataTable::of(&capacity.policies)
        .left("policy", |policy| policy.policy.clone())
        .right("hit rate", hit_rate)
        .right("time", time)
        .right(ENERGY, energy);
    let table = match has_interleaved(std::slice::from_ref(capacity)) {
        true => table.right("of interleaved", of_interleaved),
        false => table,
    };
    table
        .right("moved", moved)
        .right("fast used", |policy| Bytes(policy.fast_used_bytes))
        .right("gap closed", |policy| {
            policy.gap_closed.map(percent).unwrap_or_default()
        })
        .render()
}

pub(super) fn hit_rate(policy: &SimulatedPolicy) -> String {
    percent(policy.hit_rate)
}

fn time(policy: &SimulatedPolicy) -> String {
    Nanos(policy.time_ns).to_string()
}

fn moved(policy: &SimulatedPolicy) -> String {
    Bytes(policy.moved_bytes).to_string()
}

fn energy(policy: &SimulatedPolicy) -> String {
    joules(policy.energy_pj)
}

/// Its energy as a share of that of the same pages interleaved over all devices.
fn of_interleaved(policy: &SimulatedPolicy) -> String {
    let share = policy.energy_of_interleaved;
    share.map(percent).unwrap_or_default()
}

/// True where the power model has the baseline of interleaved pages.
fn has_interleaved(capacities: &[SimulatedCapacity]) -> bool {
    let mut policies = capacities.iter().flat_map(|at| &at.policies);
    policies.any(|policy| policy.energy_of_interleaved.is_some())
}

/// The numbers of the policies with their names.
pub(super) fn policies(capacities: &[SimulatedCapacity]) -> Vec<(usize, &str)> {
    let policies = capacities.first().map_or(&[][..], |at| &at.policies);
    let names = policies.iter().map(|policy| policy.policy.as_str());
    names.enumerate().collect()
}

/// One figure of each policy, a column for each capacity.
pub(super) fn by_capacity<'a>(
    policies: &'a [(usize, &'a str)],
    capacities: &'a [SimulatedCapacity],
    title: &str,
    figure: fn(&SimulatedPolicy) -> String,
) -> DataTable<'a, (usize, &'a str)> {
    let names = DataTable::of(policies).left(title, |row| row.1.to_owned());
    capacities.iter().fold(names, |table, at| {
        let title = Bytes(at.fast_bytes).to_string();
        table.right(&title, move |row| {
            at.policies.get(row.0).map_or(String::new(), figure)
        })
    })
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
