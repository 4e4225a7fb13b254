//! Tests what energy recorded machines measure, and by which sensors.

#[path = "../../../tests/machines/expand.rs"]
mod machine;

use std::path::Path;

use isotherm_model::measured_energy::MeasuredPart;
use isotherm_model::units::Nanos;
use isotherm_observe::energy::{EnergyMeter, EnergySource};
use tempfile::TempDir;

fn recorded(name: &str) -> TempDir {
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/machines");
    let text = std::fs::read_to_string(machines.join(format!("{name}.machine")));
    let root = tempfile::tempdir().expect("a directory");
    machine::expand(&text.expect("a machine"), root.path()).expect("makes it");
    root
}

/// Each counter with its part, its source and its millijoules in a tenth of a second.
fn measured(root: &Path) -> Vec<(String, MeasuredPart, EnergySource, u64)> {
    let mut meter = EnergyMeter::open(root, Nanos(5_000_000_000));
    meter.update(Nanos(5_100_000_000));
    let readings = meter.readings();
    let readings = readings.map(|it| {
        let energy = it.microjoules.expect("is there") / 1_000;
        (it.name.clone(), it.part, it.source, energy)
    });
    readings.collect()
}

#[test]
fn without_rapl_the_powers_of_processor_and_dimms_are_taken_and_no_other() {
    let machine = recorded("altra-powers");
    let power = |label: &str, part, millijoules| {
        let name = format!("{label} power (smpro_hwmon)");
        (name, part, EnergySource::HwmonPower, millijoules)
    };
    let wanted = [
        power("Core VRD", MeasuredPart::Processor, 3_800),
        power("SoC VRD", MeasuredPart::Processor, 2_100),
        power("DIMM VRD1", MeasuredPart::Memory, 600),
        power("DIMM VRD2", MeasuredPart::Memory, 500),
    ];
    assert_eq!(measured(machine.path()), wanted);
}

#[test]
fn sockets_that_are_counted_need_no_power() {
    let machine = recorded("epyc-energy");
    let mut sources = measured(machine.path());
    sources.retain(|(_, _, source, _)| *source != EnergySource::HwmonEnergy);
    assert!(sources.is_empty(), "{sources:?}");
    let names = measured(machine.path()).into_iter().map(|(name, ..)| name);
    assert!(names.eq(["Esocket0 (amd_energy)", "Esocket1 (amd_energy)"]));
}
