//! Writes the summary file at the end of a run, and words the messages about the measured energy, the optimizations and the next command.

use anyhow::Result;
use isotherm_console::{Console, shell_quoting};
use isotherm_model::words::counted;
use isotherm_observe::energy::{EnergyMeter, EnergyReading, EnergySource};
use isotherm_report::optimizations::OptimizationSummary;
use serde_json::{Value, json};

use crate::cli::RunArgs;
use crate::launch::EndedProgram;
use crate::output;

/// The mode of a run, whether its tiers are emulated, and the figures of its kind.
pub(super) type RunFigures<'a> = (&'a str, bool, Value);

/// Says what energy the machine measured, and writes the summary of a run that made this number of sites, if the flags name a file: the
/// entries of every run, and the figures of its kind, which replace entries of their names.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write_summary(
    args: &RunArgs,
    (program, sites): (&EndedProgram, usize),
    (mode, emulates, figures): RunFigures<'_>,
    console: Console,
) -> Result<()> {
    for said in energy_in_words(&program.energy) {
        console.info(&said);
    }
    let Some(path) = &args.summary else {
        return Ok(());
    };
    let worked = program.summary.worked();
    let mut summary = json!({
        "mode": mode,
        "placed": worked,
        "emulated": emulates && worked,
        "seconds": program.took.0 as f64 / 1e9,
        "runtime": program.summary.to_json(sites),
    });
    if let (Value::Object(all), Value::Object(figures)) = (&mut summary, figures) {
        all.extend(figures);
    }
    summary["measured_energy"] = energy_json(&program.energy);
    output::write(path, format!("{summary:#}\n").as_bytes())
}

/// The measured joules and what is missing of them, each in a sentence; nothing where the machine measures none.
fn energy_in_words(energy: &EnergyMeter) -> Vec<String> {
    let joules = |reading: &EnergyReading| {
        let joules = reading.microjoules? as f64 / 1e6;
        Some(match reading.source {
            EnergySource::HwmonPower => format!("{} {joules:.2} J by its power", reading.name),
            _ => format!("{} {joules:.2} J", reading.name),
        })
    };
    let measured: Vec<String> = energy.readings().filter_map(joules).collect();
    let lost: Vec<String> = energy.lost().map(str::to_owned).collect();
    let said = |names: &[String], words: fn(String) -> String| {
        let names = names.join(", ");
        (!names.is_empty()).then(|| words(names))
    };
    let sentences = [
        said(&measured, |names| {
            format!("energy of the whole machine during the run, measured: {names}")
        }),
        said(energy.refused(), |names| {
            format!(
                "the energy counters of this machine ({names}) may be read by root only; `isotherm doctor` names the remedy"
            )
        }),
        said(&lost, |names| {
            format!(
                "the energy of {names} is not known: the sensor gave no number, vanished or went back during the run"
            )
        }),
    ];
    sentences.into_iter().flatten().collect()
}

fn energy_json(energy: &EnergyMeter) -> Value {
    let counter = |reading: &EnergyReading| {
        json!({
            "counter": reading.name,
            "part": reading.part.word(),
            "source": reading.source.word(),
            "joules": reading.microjoules.map(|microjoules| microjoules as f64 / 1e6),
        })
    };
    json!(energy.readings().map(counter).collect::<Vec<_>>())
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
    use isotherm_model::units::Nanos;
    use isotherm_observe::energy::EnergyMeter;
    use std::path::Path;

    const SECOND: Nanos = Nanos(1_000_000_000);

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join("sys/class").join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("makes the folder");
        std::fs::write(path, format!("{text}\n")).expect("writes");
    }

    #[test]
    fn measured_joules_are_named_by_counter_and_a_machine_without_is_silent() {
        let machine = tempfile::tempdir().expect("a directory");
        let root = machine.path();
        assert!(energy_in_words(&EnergyMeter::open(root, SECOND)).is_empty());
        let zone = "powercap/intel-rapl:0";
        write(root, &format!("{zone}/name"), "package-0");
        write(root, &format!("{zone}/energy_uj"), "1000000");
        let mut meter = EnergyMeter::open(root, SECOND);
        write(root, &format!("{zone}/energy_uj"), "3500000");
        meter.update(SECOND);
        let said = energy_in_words(&meter);
        assert!(said[0].ends_with("measured: package-0 2.50 J"), "{said:?}");
        assert_eq!(said.len(), 1);
        let json = energy_json(&meter);
        assert_eq!(json[0]["part"], "processor");
        assert_eq!(json[0]["source"], "powercap");
        assert_eq!(json[0]["joules"], 2.5);
    }

    #[test]
    fn a_power_is_labelled_and_sensors_without_a_number_are_one_sentence() {
        let machine = tempfile::tempdir().expect("a directory");
        let root = machine.path();
        write(root, "hwmon/hwmon0/name", "smpro_hwmon");
        for (number, label) in [(1, "SoC VRD power"), (3, "DIMM VRD1 power")] {
            let file = |what: &str| format!("hwmon/hwmon0/power{number}_{what}");
            write(root, &file("label"), label);
            write(root, &file("input"), "4000000");
        }
        let mut meter = EnergyMeter::open(root, SECOND);
        std::fs::remove_file(root.join("sys/class/hwmon/hwmon0/power1_input")).expect("removes");
        meter.update(Nanos(2_000_000_000));
        let said = energy_in_words(&meter);
        assert_eq!(
            said,
            [
                "energy of the whole machine during the run, measured: DIMM VRD1 power (smpro_hwmon) 4.00 J by its power",
                "the energy of SoC VRD power (smpro_hwmon) is not known: the sensor gave no number, vanished or went back during the run",
            ]
        );
        let json = energy_json(&meter);
        assert_eq!(json[0]["joules"], serde_json::Value::Null);
        assert_eq!(json[1]["source"], "hwmon power");
    }
}
