//! [`EnergyRow`] is one energy in the report of a run: measured by a counter of the machine, which counts all programs, or modelled for a
//! tier from the accesses of the profile. This file reads the measured rows from the profile and formats both kinds as text and HTML; the
//! modelled ones come in as [`ModelledEnergy`] (`isotherm report --power`).

use std::collections::BTreeMap;

use isotherm_model::measured_energy::{MeasuredEnergy, MeasuredPart};
use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_model::variant_words;
use maud::{Markup, html};
use serde::Serialize;

use crate::page::table;
use crate::table::DataTable;
use crate::words::clip;

variant_words! {
    /// How an energy was obtained.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum EnergyKind {
        /// A counter of the machine counted it, for all programs.
        Measured = "measured",
        /// Computed from the accesses of the profile and the currents of data sheets.
        Modelled = "modelled",
    }
}

/// One energy of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EnergyRow {
    /// The part of the machine that took it: a tier, or the part that a counter counts.
    pub of: String,
    /// How it was obtained.
    pub kind: EnergyKind,
    /// The counter, or the memory of the model.
    pub source: String,
    /// The whole energy.
    pub joules: f64,
    /// Energy that a tier would have taken without accesses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_joules: Option<f64>,
    /// The part of `idle_joules` that belongs to memory without data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_joules: Option<f64>,
}

/// The modelled energy of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelledEnergy {
    /// A row for each tier, fastest first.
    pub tiers: Vec<EnergyRow>,
    /// Joules of each site.
    pub sites: BTreeMap<SiteId, f64>,
}

/// The energy that counters measured during the run.
pub(crate) fn measured(profile: &Profile) -> Vec<EnergyRow> {
    let row = |energy: MeasuredEnergy| EnergyRow {
        of: match energy.part {
            MeasuredPart::Memory => "memory of the machine".to_owned(),
            MeasuredPart::Processor => "processors of the machine".to_owned(),
            MeasuredPart::Other => "machine".to_owned(),
        },
        kind: EnergyKind::Measured,
        source: energy.counter,
        joules: energy.microjoules as f64 / 1e6,
        idle_joules: None,
        free_joules: None,
    };
    let counts = profile.counts.iter().filter_map(MeasuredEnergy::of_count);
    counts.map(row).collect()
}

/// Joules with three figures: `1.24 J`, `12.4 mJ`.
pub(crate) fn joules(joules: f64) -> String {
    let (value, unit) = match joules {
        joules if joules.abs() >= 1.0 || joules == 0.0 => (joules, "J"),
        joules if joules.abs() >= 1e-3 => (joules * 1e3, "mJ"),
        joules => (joules * 1e6, "uJ"),
    };
    match value.abs() {
        whole if whole >= 100.0 => format!("{value:.0} {unit}"),
        tens if tens >= 10.0 => format!("{value:.1} {unit}"),
        _ => format!("{value:.2} {unit}"),
    }
}

fn part(of: Option<f64>) -> String {
    of.map_or(String::new(), joules)
}

/// The rows, with names of models and counters of at most `names` characters, and with the parts of a tier's energy where there is room.
fn rows_table(rows: &[EnergyRow], names: usize, has_room: bool) -> DataTable<'_, EnergyRow> {
    let table = DataTable::of(rows)
        .left("energy of", |row| clip(&row.of, 30))
        .right("energy", |row| joules(row.joules))
        .left("how", |row| row.kind.word());
    let table = match has_room && rows.iter().any(|row| row.idle_joules.is_some()) {
        true => table
            .right("idle", |row| part(row.idle_joules))
            .right("of free memory", |row| part(row.free_joules)),
        false => table,
    };
    table.left("by", move |row| clip(&row.source, names))
}

/// The rows for a terminal of this width.
pub(crate) fn text(rows: &[EnergyRow], columns: usize) -> String {
    let has_room = columns >= 100;
    let others = if has_room { 80 } else { 54 };
    rows_table(rows, columns.saturating_sub(others).max(6), has_room).render()
}

/// The rows on the page.
pub(crate) fn section(rows: &[EnergyRow]) -> Markup {
    html! {
        section aria-labelledby="energy-title" {
            h2 id="energy-title" { "Energy" }
            p {
                "Measured is what a counter of the machine counted during the run, for all programs. Modelled is computed from the accesses of the profile \
                 and the currents of data sheets: it compares placements and is no meter."
            }
            (table("Energy", &rows_table(rows, 200, true)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{EnergyKind, EnergyRow, joules, measured, text};
    use isotherm_model::batch::Count;
    use isotherm_model::profile::{Meta, Profile};

    #[test]
    fn joules_have_three_figures_and_a_unit() {
        let shown = [0.0, 1.234, 45.67, 1_234.0, 0.012_34, 0.000_012_34].map(joules);
        assert_eq!(
            shown,
            ["0.00 J", "1.23 J", "45.7 J", "1234 J", "12.3 mJ", "12.3 uJ"]
        );
    }

    #[test]
    fn each_figure_says_whether_it_was_measured_or_modelled() {
        let mut profile = Profile::new(Meta::default());
        profile.counts = vec![Count::of_run(
            "measured_energy_memory_dram_microjoules",
            2_500_000,
        )];
        let mut rows = measured(&profile);
        assert!(!text(&rows, 200).contains("idle"));
        rows.push(EnergyRow {
            of: "fast".to_owned(),
            kind: EnergyKind::Modelled,
            source: "ranks".to_owned(),
            joules: 0.5,
            idle_joules: Some(0.25),
            free_joules: Some(0.1),
        });
        let shown = text(&rows, 200);
        let lines: Vec<Vec<&str>> = shown
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            lines[1].join(" "),
            "memory of the machine 2.50 J measured dram"
        );
        assert_eq!(
            lines[2].join(" "),
            "fast 500 mJ modelled 250 mJ 100 mJ ranks"
        );
    }
}
