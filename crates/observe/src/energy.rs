//! Energy that the machine measures: RAPL (powercap), and the energy counters of hwmon drivers, such as AMD's.
//!
//! ```text
//! sys/class/powercap/intel-rapl:0/{name,energy_uj,max_energy_range_uj}     package-0; wraps at its range
//! sys/class/powercap/intel-rapl:0:1/...                                   dram of package 0, where the processor has it
//! sys/class/hwmon/hwmon3/{name,energy1_label,energy1_input}                amd_energy: Esocket0, Ecore000
//! ```
//!
//! All are in microjoules and of the whole machine, not of one program. Of the per-core counters of `amd_energy` only the sockets are
//! taken. Kernel documents: `power/powercap/powercap.rst`, `hwmon/amd_energy.rst`, `ABI/testing/sysfs-class-hwmon`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use isotherm_model::measured_energy::{MeasuredEnergy, MeasuredPart};

/// Energy of one counter since the meter was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnergyReading {
    /// Its name: `package-0`, `dram of package-0`, `Esocket0`.
    pub name: String,
    /// What it counts.
    pub part: MeasuredPart,
    /// Microjoules; `None` if it vanished or was set back.
    pub microjoules: Option<u64>,
}

/// The counters of a machine.
#[derive(Clone, Debug, Default)]
pub struct EnergyMeter {
    counters: Vec<Counter>,
    refused: Vec<String>,
}

#[derive(Clone, Debug)]
struct Counter {
    reading: EnergyReading,
    path: PathBuf,
    /// The number at which it begins at zero again; `None` where it never does.
    range: Option<u64>,
    last: u64,
}

impl EnergyMeter {
    /// Opens all counters under `root`, which count from now on.
    #[must_use]
    pub fn open(root: &Path) -> Self {
        let mut meter = Self::default();
        let zones = entries(&root.join("sys/class/powercap"));
        for zone in zones.iter().filter(|zone| is_zone(zone)) {
            let own = line(&zone.join("name")).unwrap_or_default();
            let parent = parent_name(zone);
            let part = match own.as_str() {
                "dram" => MeasuredPart::Memory,
                _ if own.starts_with("package") => MeasuredPart::Processor,
                _ => MeasuredPart::Other,
            };
            let name = parent.map_or_else(|| own.clone(), |parent| format!("{own} of {parent}"));
            let range = number(&zone.join("max_energy_range_uj")).ok();
            meter.add(name, part, &zone.join("energy_uj"), range);
        }
        for device in entries(&root.join("sys/class/hwmon")) {
            meter.add_device(&device);
        }
        meter
    }

    fn add_device(&mut self, device: &Path) {
        let driver = line(&device.join("name")).unwrap_or_default();
        for path in entries(device) {
            let file = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let Some(stem) = file
                .strip_suffix("_input")
                .filter(|stem| stem.starts_with("energy"))
            else {
                continue;
            };
            let label =
                line(&device.join(format!("{stem}_label"))).unwrap_or_else(|| stem.to_owned());
            if label.starts_with("Ecore") {
                continue;
            }
            let part = match label.starts_with("Esocket") {
                true => MeasuredPart::Processor,
                false => MeasuredPart::Other,
            };
            self.add(format!("{label} ({driver})"), part, &path, None);
        }
    }

    fn add(&mut self, name: String, part: MeasuredPart, path: &Path, range: Option<u64>) {
        match number(path) {
            Ok(last) => self.counters.push(Counter {
                reading: EnergyReading {
                    name,
                    part,
                    microjoules: Some(0),
                },
                path: path.to_owned(),
                range,
                last,
            }),
            Err(ErrorKind::PermissionDenied) => self.refused.push(name),
            Err(_) => {}
        }
    }

    /// Reads all counters. Called often enough, at least once for each wrap: RAPL's range lasts twenty minutes at 200 W.
    pub fn update(&mut self) {
        for counter in &mut self.counters {
            let Some(sum) = counter.reading.microjoules else {
                continue;
            };
            let now = number(&counter.path).ok();
            let since = now.and_then(|now| counter.since(now));
            counter.reading.microjoules = since.map(|since| sum.saturating_add(since));
            counter.last = now.unwrap_or(counter.last);
        }
    }

    /// The energy of each counter until the last [`Self::update`].
    pub fn readings(&self) -> impl Iterator<Item = &EnergyReading> {
        self.counters.iter().map(|counter| &counter.reading)
    }

    /// The same of the counters that were there all the time, for a profile.
    pub fn measured(&self) -> impl Iterator<Item = MeasuredEnergy> {
        self.readings().filter_map(|reading| {
            Some(MeasuredEnergy {
                counter: reading.name.clone(),
                part: reading.part,
                microjoules: reading.microjoules?,
            })
        })
    }

    /// Counters that exist and that this user may not read.
    #[must_use]
    pub fn refused(&self) -> &[String] {
        &self.refused
    }
}

impl Counter {
    /// Microjoules since the last reading; `None` where a counter without a range, or beyond its range, went back.
    fn since(&self, now: u64) -> Option<u64> {
        match (now.checked_sub(self.last), self.range) {
            (Some(since), _) => Some(since),
            (None, Some(range)) => range.checked_sub(self.last)?.checked_add(now),
            (None, None) => None,
        }
    }
}

/// `intel-rapl:0`, `intel-rapl:0:1`, and the same of other drivers; not the control types themselves.
fn is_zone(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // The memory-mapped interface repeats the packages.
    name.contains(':') && !name.starts_with("intel-rapl-mmio")
}

/// The name of the zone that `a:0:1` is a part of.
fn parent_name(zone: &Path) -> Option<String> {
    let name = zone.file_name()?.to_str()?;
    let (parent, _) = name.rsplit_once(':')?;
    parent
        .contains(':')
        .then(|| line(&zone.with_file_name(parent).join("name")))?
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let found = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn line(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn number(path: &Path) -> Result<u64, ErrorKind> {
    let text = std::fs::read_to_string(path).map_err(|error| error.kind())?;
    text.trim().parse().map_err(|_| ErrorKind::InvalidData)
}

#[cfg(test)]
mod tests {
    use super::EnergyMeter;
    use isotherm_model::measured_energy::MeasuredPart;
    use std::fs;
    use std::path::Path;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join("sys/class").join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("makes it");
        fs::write(path, format!("{text}\n")).expect("writes");
    }

    fn zone(root: &Path, zone: &str, name: &str, energy: u64) {
        write(root, &format!("powercap/{zone}/name"), name);
        write(
            root,
            &format!("powercap/{zone}/energy_uj"),
            &energy.to_string(),
        );
        write(
            root,
            &format!("powercap/{zone}/max_energy_range_uj"),
            "1000",
        );
    }

    fn read(meter: &EnergyMeter) -> Vec<(String, MeasuredPart, Option<u64>)> {
        let readings = meter.readings();
        readings
            .map(|it| (it.name.clone(), it.part, it.microjoules))
            .collect()
    }

    #[test]
    fn rapl_counters_are_told_by_their_domain_and_go_on_when_they_wrap() {
        let machine = tempfile::tempdir().expect("a directory");
        let root = machine.path();
        write(root, "powercap/intel-rapl/enabled", "1");
        zone(root, "intel-rapl:0", "package-0", 900);
        zone(root, "intel-rapl:0:1", "dram", 100);
        zone(root, "intel-rapl-mmio:0", "package-0", 5);
        let mut meter = EnergyMeter::open(root);
        zone(root, "intel-rapl:0", "package-0", 300);
        zone(root, "intel-rapl:0:1", "dram", 150);
        meter.update();
        zone(root, "intel-rapl:0", "package-0", 310);
        meter.update();
        let wanted = [
            ("package-0".to_owned(), MeasuredPart::Processor, Some(410)),
            (
                "dram of package-0".to_owned(),
                MeasuredPart::Memory,
                Some(50),
            ),
        ];
        assert_eq!(read(&meter), wanted);
        assert!(meter.refused().is_empty());
    }

    #[test]
    fn amd_s_sockets_are_taken_and_a_counter_that_vanishes_or_is_set_back_has_no_reading() {
        let machine = tempfile::tempdir().expect("a directory");
        let root = machine.path();
        write(root, "hwmon/hwmon3/name", "amd_energy");
        for (number, label) in [(1, "Ecore000"), (65, "Esocket0"), (66, "Esocket1")] {
            write(root, &format!("hwmon/hwmon3/energy{number}_label"), label);
            write(root, &format!("hwmon/hwmon3/energy{number}_input"), "7000");
        }
        write(root, "hwmon/hwmon4/name", "coretemp");
        write(root, "hwmon/hwmon4/temp1_input", "40000");
        let mut meter = EnergyMeter::open(root);
        write(root, "hwmon/hwmon3/energy65_input", "7500");
        write(root, "hwmon/hwmon3/energy66_input", "10");
        meter.update();
        write(root, "hwmon/hwmon3/energy66_input", "20");
        fs::remove_file(root.join("sys/class/hwmon/hwmon3/energy65_input")).expect("removes");
        let before: Vec<_> = read(&meter)
            .into_iter()
            .map(|(name, _, energy)| (name, energy))
            .collect();
        assert_eq!(
            before,
            [
                ("Esocket0 (amd_energy)".to_owned(), Some(500)),
                ("Esocket1 (amd_energy)".to_owned(), None)
            ]
        );
        meter.update();
        assert!(read(&meter).iter().all(|(_, _, energy)| energy.is_none()));
    }

    #[test]
    fn a_machine_without_counters_has_no_reading() {
        let machine = tempfile::tempdir().expect("a directory");
        let mut meter = EnergyMeter::open(machine.path());
        meter.update();
        assert!(read(&meter).is_empty() && meter.refused().is_empty());
    }
}
