//! [`sensors`] finds, for [`super::EnergyMeter`], hwmon's energy counters, and its power sensors of memory and of processors. The words of
//! its label, or its driver, say which part of the machine a sensor measures; single cores are left out.
//!
//! ```text
//! sys/class/hwmon/hwmon3/{name,energy65_label,energy65_input}    amd_energy: Esocket0, microjoules
//! sys/class/hwmon/hwmon5/{name,power3_label,power3_input}        smpro_hwmon: DIMM VRD1 power, microwatts
//! ```
//!
//! Labels are free text of the driver or of the firmware. Kernel documents:
//! `hwmon/sysfs-interface.rst`, `hwmon/amd_energy.rst`, `hwmon/smpro-hwmon.rst`, `arch/x86/amd_hsmp.rst`.

use std::path::{Path, PathBuf};

use isotherm_model::measured_energy::MeasuredPart;
use isotherm_topology::sysfs::{entries, text};

use super::reading::{EnergyReading, EnergySource};

/// Words of a label, without digits at their ends, of sensors of memory.
const MEMORY: [&str; 5] = ["dram", "ddr", "dimm", "mem", "memory"];

/// Words of a label, without digits at their ends, of sensors of processors and of their parts.
const PROCESSOR: [&str; 9] = [
    "package",
    "pkg",
    "socket",
    "esocket",
    "cpu",
    "proc",
    "processor",
    "core",
    "soc",
];

/// Drivers of graphics cards, whose package and memory are not those of the machine.
const GRAPHICS: [&str; 5] = ["amdgpu", "i915", "nouveau", "radeon", "xe"];

/// Drivers whose one power has no label and is that of a socket.
const SOCKETS: [&str; 2] = ["amd_hsmp_hwmon", "fam15h_power"];

/// The energy counters of a machine, and the power sensors of its memory and processors, each with its file.
pub(super) fn sensors(root: &Path) -> Vec<(EnergyReading, PathBuf)> {
    let devices = entries(&root.join("sys/class/hwmon"));
    devices
        .iter()
        .flat_map(|device| of_device(device))
        .collect()
}

fn of_device(device: &Path) -> Vec<(EnergyReading, PathBuf)> {
    let driver = text(&device.join("name")).unwrap_or_default();
    let files = entries(device);
    let files = files.iter().filter_map(|path| path.file_name()?.to_str());
    files
        .filter_map(|file| of_file(device, &driver, file))
        .collect()
}

/// The sensor of a file; `None` for other files, for single cores, and for powers of other parts of the machine.
fn of_file(device: &Path, driver: &str, file: &str) -> Option<(EnergyReading, PathBuf)> {
    let (stem, source) = stem_of(device, file)?;
    let label = text(&device.join(format!("{stem}_label")));
    // The counters of single cores are parts of the sockets' counters.
    if label
        .as_ref()
        .is_some_and(|label| label.starts_with("Ecore"))
    {
        return None;
    }
    let part = match &label {
        _ if GRAPHICS.contains(&driver) => MeasuredPart::Other,
        Some(label) => part_of(label),
        None if SOCKETS.contains(&driver) => MeasuredPart::Processor,
        None => MeasuredPart::Other,
    };
    // The powers of disks, cards and supplies are no measure of what placement does.
    if source == EnergySource::HwmonPower && part == MeasuredPart::Other {
        return None;
    }
    let label = label.unwrap_or_else(|| {
        let device = device.file_name().unwrap_or_default().to_string_lossy();
        format!("{stem} of {device}")
    });
    let reading = EnergyReading {
        name: format!("{label} ({driver})"),
        part,
        source,
        microjoules: Some(0),
    };
    Some((reading, device.join(file)))
}

/// The name of the sensor that a file belongs to; the average power counts where there is no other.
fn stem_of<'a>(device: &Path, file: &'a str) -> Option<(&'a str, EnergySource)> {
    let is_numbered = |stem: &str, kind: &str| {
        let number = stem.strip_prefix(kind);
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    if let Some(stem) = file.strip_suffix("_input") {
        return match stem {
            _ if is_numbered(stem, "energy") => Some((stem, EnergySource::HwmonEnergy)),
            _ if is_numbered(stem, "power") => Some((stem, EnergySource::HwmonPower)),
            _ => None,
        };
    }
    let stem = file.strip_suffix("_average")?;
    let is_only = !device.join(format!("{stem}_input")).exists();
    (is_only && is_numbered(stem, "power")).then_some((stem, EnergySource::HwmonPower))
}

/// What a sensor with this label measures.
fn part_of(label: &str) -> MeasuredPart {
    let label = label.to_lowercase();
    let words = label.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words: Vec<&str> = words
        .map(|word| word.trim_end_matches(|letter: char| letter.is_ascii_digit()))
        .collect();
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    match (has(&MEMORY), has(&PROCESSOR)) {
        (true, _) => MeasuredPart::Memory,
        (false, true) => MeasuredPart::Processor,
        (false, false) => MeasuredPart::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::part_of;
    use isotherm_model::measured_energy::MeasuredPart;

    #[test]
    fn words_of_a_label_tell_what_is_measured() {
        for (label, part) in [
            ("DIMM VRD1 power", MeasuredPart::Memory),
            ("VDD_DDR4", MeasuredPart::Memory),
            ("CPU memory", MeasuredPart::Memory),
            ("Esocket0", MeasuredPart::Processor),
            ("CPU Power Socket 1", MeasuredPart::Processor),
            ("Core VRD power", MeasuredPart::Processor),
            ("Total System Power", MeasuredPart::Other),
            ("scores", MeasuredPart::Other),
            ("", MeasuredPart::Other),
        ] {
            assert_eq!(part_of(label), part, "{label}");
        }
    }
}
