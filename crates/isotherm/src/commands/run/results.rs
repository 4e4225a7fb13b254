//! What a run leaves and what it says at its end.

use anyhow::Result;
use isotherm_console::{Console, shell_quoting};
use isotherm_model::words::counted;
use isotherm_observe::energy::{EnergyMeter, EnergyReading};
use isotherm_report::optimizations::OptimizationSummary;

use crate::cli::RunArgs;
use crate::output;

/// Says what energy the machine measured, and writes the summary, if the flags name a file.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write_summary(
    args: &RunArgs,
    mut summary: serde_json::Value,
    energy: &EnergyMeter,
    console: Console,
) -> Result<()> {
    if let Some(said) = energy_in_words(energy) {
        console.info(&said);
    }
    let Some(path) = &args.summary else {
        return Ok(());
    };
    summary["measured_energy"] = energy_json(energy);
    output::write(path, format!("{summary:#}\n").as_bytes())
}

/// The measured joules; `None` where the machine measures none.
fn energy_in_words(energy: &EnergyMeter) -> Option<String> {
    let joules = |reading: &EnergyReading| {
        let joules = reading.microjoules? as f64 / 1e6;
        Some(format!("{} {joules:.2} J", reading.name))
    };
    let measured: Vec<String> = energy.readings().filter_map(joules).collect();
    if !measured.is_empty() {
        return Some(format!(
            "energy of the whole machine during the run, measured: {}",
            measured.join(", ")
        ));
    }
    (!energy.refused().is_empty()).then(|| {
        format!(
            "the energy counters of this machine ({}) may be read by root only; `isotherm doctor` names the remedy",
            energy.refused().join(", ")
        )
    })
}

fn energy_json(energy: &EnergyMeter) -> serde_json::Value {
    let counter = |reading: &EnergyReading| {
        serde_json::json!({
            "counter": reading.name,
            "part": reading.part.word(),
            "joules": reading.microjoules.map(|microjoules| microjoules as f64 / 1e6),
        })
    };
    serde_json::json!(energy.readings().map(counter).collect::<Vec<_>>())
}

/// Says what to do next.
pub(super) fn say_next(args: &RunArgs, console: Console) {
    console.next(&match &args.output {
        Some(path) => format!("isotherm report {}", shell_quoting::file(path)),
        None => "isotherm record -o app.iso -- PROGRAM, to see what was hot".to_owned(),
    });
}

/// What was moved at the program's request; `None` where it asked for nothing.
pub(super) fn requested(done: &[OptimizationSummary]) -> Option<String> {
    let last = done.last()?;
    let count = counted(done.len(), "optimization");
    let last = last.in_words();
    Some(match done.len() {
        1 => format!("{count} at the program's request: {last}"),
        _ => format!("{count} at the program's request, the last {last}"),
    })
}

#[cfg(test)]
mod tests {
    use super::{energy_in_words, energy_json};
    use isotherm_observe::energy::EnergyMeter;

    #[test]
    fn measured_joules_are_named_by_counter_and_a_machine_without_is_silent() {
        let machine = tempfile::tempdir().expect("a directory");
        let zone = machine.path().join("sys/class/powercap/intel-rapl:0");
        let write = |name: &str, text: &str| {
            std::fs::create_dir_all(&zone).expect("makes the folder");
            std::fs::write(zone.join(name), text).expect("writes");
        };
        assert_eq!(energy_in_words(&EnergyMeter::open(machine.path())), None);
        write("name", "package-0\n");
        write("energy_uj", "1000000\n");
        let mut meter = EnergyMeter::open(machine.path());
        write("energy_uj", "3500000\n");
        meter.update();
        let said = energy_in_words(&meter).expect("is measured");
        assert!(said.ends_with("measured: package-0 2.50 J"), "{said}");
        let json = energy_json(&meter);
        assert_eq!(json[0]["part"], "processor");
        assert_eq!(json[0]["joules"], 2.5);
    }
}
