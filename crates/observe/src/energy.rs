//! [`EnergyMeter`] adds up the energy that the machine measures while a program runs: by RAPL counters (powercap), and by the energy
//! counters and power sensors of hwmon drivers, such as AMD's.
//!
//! ```text
//! sys/class/powercap/intel-rapl:0/{name,energy_uj,max_energy_range_uj}     package-0; wraps at its range
//! sys/class/powercap/intel-rapl:0:1/...                                   dram of package 0, where the processor has it
//! sys/class/hwmon/hwmon3/{name,energy1_label,energy1_input}                amd_energy: Esocket0, Ecore000
//! sys/class/hwmon/hwmon5/{name,power3_label,power3_input}                  smpro_hwmon: DIMM VRD1 power
//! ```
//!
//! Counters are in microjoules; a power in microwatts is added up over time. All are of the whole machine, not of one program. The
//! per-core counters of `amd_energy` are left out, as parts of the sockets' counters. A power is used only for a part that no counter
//! counts: it is a sample that changes between two readings, and a counter misses nothing. Kernel documents:
//! `power/powercap/powercap.rst`, `hwmon/amd_energy.rst`, `ABI/testing/sysfs-class-hwmon`.

mod hwmon;
mod reading;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use isotherm_model::measured_energy::{MeasuredEnergy, MeasuredPart};
use isotherm_model::units::Nanos;
use isotherm_topology::sysfs::{entries, text};

use hwmon::sensors;
pub use reading::{EnergyReading, EnergySource};

/// Time between two readings of counters, so that none wraps twice in between: RAPL's range lasts twenty minutes at 200 W.
const COUNTERS_EACH: Nanos = Nanos(60_000_000_000);

/// Time between two readings of powers, most of which the hardware averages over less.
const POWERS_EACH: Nanos = Nanos(1_000_000_000);

/// The counters of a machine.
#[derive(Clone, Debug, Default)]
pub struct EnergyMeter {
    counters: Vec<Counter>,
    refused: Vec<String>,
    broken: Vec<String>,
}

#[derive(Clone, Debug)]
struct Counter {
    reading: EnergyReading,
    path: PathBuf,
    /// The number at which it begins at zero again; `None` where it never does.
    range: Option<u64>,
    /// Its last number, and the time at which it was read.
    last: (u64, Nanos),
}

impl EnergyMeter {
    /// Opens all counters under `root`, which count from this time on.
    #[must_use]
    pub fn open(root: &Path, now: Nanos) -> Self {
        let mut meter = Self::default();
        let zones = entries(&root.join("sys/class/powercap"));
        for zone in zones.iter().filter(|zone| is_zone(zone)) {
            meter.add_zone(zone, now);
        }
        let (counters, powers): (Vec<_>, Vec<_>) = sensors(root)
            .into_iter()
            .partition(|(sensor, _)| sensor.source == EnergySource::HwmonEnergy);
        for (sensor, path) in counters {
            meter.add(sensor, path, None, now);
        }
        let counted: BTreeSet<MeasuredPart> = meter.readings().map(|it| it.part).collect();
        for (sensor, path) in powers {
            if !counted.contains(&sensor.part) {
                meter.add(sensor, path, None, now);
            }
        }
        meter
    }

    fn add_zone(&mut self, zone: &Path, now: Nanos) {
        let own = text(&zone.join("name")).unwrap_or_default();
        let part = match own.as_str() {
            "dram" => MeasuredPart::Memory,
            _ if own.starts_with("package") => MeasuredPart::Processor,
            _ => MeasuredPart::Other,
        };
        let parent = parent_name(zone);
        let name = parent.map_or_else(|| own.clone(), |parent| format!("{own} of {parent}"));
        let reading = EnergyReading {
            name,
            part,
            source: EnergySource::Powercap,
            microjoules: Some(0),
        };
        let range = number(&zone.join("max_energy_range_uj")).ok();
        self.add(reading, zone.join("energy_uj"), range, now);
    }

    fn add(&mut self, reading: EnergyReading, path: PathBuf, range: Option<u64>, now: Nanos) {
        match number(&path) {
            Ok(first) => self.counters.push(Counter {
                reading,
                path,
                range,
                last: (first, now),
            }),
            Err(ErrorKind::PermissionDenied) => self.refused.push(reading.name),
            Err(ErrorKind::NotFound) => {}
            Err(_) => self.broken.push(reading.name),
        }
    }

    /// Longest time until the next [`Self::update`].
    #[must_use]
    pub fn interval(&self) -> Nanos {
        let mut readings = self.readings();
        match readings.any(|reading| reading.source == EnergySource::HwmonPower) {
            true => POWERS_EACH,
            false => COUNTERS_EACH,
        }
    }

    /// Reads all counters, at this time.
    pub fn update(&mut self, now: Nanos) {
        for counter in &mut self.counters {
            let Some(sum) = counter.reading.microjoules else {
                continue;
            };
            let read = number(&counter.path).ok();
            let since = read.and_then(|read| counter.since(read, now));
            counter.reading.microjoules = since.map(|since| sum.saturating_add(since));
            counter.last = (read.unwrap_or(counter.last.0), now);
        }
    }

    /// The energy of each counter until the last [`Self::update`].
    pub fn readings(&self) -> impl Iterator<Item = &EnergyReading> {
        self.counters.iter().map(|counter| &counter.reading)
    }

    /// The energy of the counters that never vanished and never went back, for a profile.
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

    /// Counters that exist and had no number at the start, that vanished, or that were set back.
    pub fn lost(&self) -> impl Iterator<Item = &str> {
        let lost = self.readings().filter(|it| it.microjoules.is_none());
        let lost = lost.map(|it| it.name.as_str());
        self.broken.iter().map(String::as_str).chain(lost)
    }
}

impl Counter {
    /// Microjoules since the last reading; `None` where a counter without a range, or beyond its range, went back.
    fn since(&self, read: u64, now: Nanos) -> Option<u64> {
        let (last, at) = self.last;
        if self.reading.source == EnergySource::HwmonPower {
            return Some(added_up([last, read], now.saturating_sub(at)));
        }
        match (read.checked_sub(last), self.range) {
            (Some(since), _) => Some(since),
            (None, Some(range)) => range.checked_sub(last)?.checked_add(read),
            (None, None) => None,
        }
    }
}

/// Microjoules in a time that began and ended with these microwatts: the mean of both, rounded down.
fn added_up(powers: [u64; 2], span: Nanos) -> u64 {
    // Halves first: their sum is a 64-bit number, and the product of two of these fits 128 bits.
    let sum = u128::from(powers[0] / 2) + u128::from(powers[1] / 2);
    u64::try_from(sum * u128::from(span.0) / 1_000_000_000).unwrap_or(u64::MAX)
}

/// A file's whole number.
///
/// # Errors
/// The file cannot be read, or is no such number ([`ErrorKind::InvalidData`]).
fn number(path: &Path) -> Result<u64, ErrorKind> {
    let text = std::fs::read_to_string(path).map_err(|error| error.kind())?;
    text.trim().parse().map_err(|_| ErrorKind::InvalidData)
}

/// True for a zone such as `intel-rapl:0` or `intel-rapl:0:1`, of any driver; false for a control type such as `intel-rapl`.
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
        .then(|| text(&zone.with_file_name(parent).join("name")))?
}

#[cfg(test)]
mod tests {
    use super::{EnergyMeter, EnergySource, added_up};
    use isotherm_model::measured_energy::MeasuredPart;
    use isotherm_model::units::Nanos;
    use std::fs;
    use std::path::Path;

    const SECOND: Nanos = Nanos(1_000_000_000);

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
        let mut meter = EnergyMeter::open(root, Nanos::ZERO);
        zone(root, "intel-rapl:0", "package-0", 300);
        zone(root, "intel-rapl:0:1", "dram", 150);
        meter.update(SECOND);
        zone(root, "intel-rapl:0", "package-0", 310);
        meter.update(SECOND);
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
        let mut meter = EnergyMeter::open(root, Nanos::ZERO);
        write(root, "hwmon/hwmon3/energy65_input", "7500");
        write(root, "hwmon/hwmon3/energy66_input", "10");
        meter.update(SECOND);
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
        meter.update(SECOND);
        assert!(read(&meter).iter().all(|(_, _, energy)| energy.is_none()));
    }

    #[test]
    fn a_machine_without_counters_has_no_reading() {
        let machine = tempfile::tempdir().expect("a directory");
        let mut meter = EnergyMeter::open(machine.path(), Nanos::ZERO);
        meter.update(SECOND);
        assert!(read(&meter).is_empty() && meter.refused().is_empty());
    }

    /// Memory of 3 W and a processor of 20 W, whose sensors say so in microwatts, and a disk.
    fn powers(root: &Path) {
        write(root, "hwmon/hwmon5/name", "smpro_hwmon");
        for (number, label, power) in [
            (1, "Core VRD power", "20000000"),
            (3, "DIMM VRD1 power", "3000000"),
        ] {
            write(root, &format!("hwmon/hwmon5/power{number}_label"), label);
            write(root, &format!("hwmon/hwmon5/power{number}_input"), power);
        }
        write(root, "hwmon/hwmon6/name", "nvme");
        write(root, "hwmon/hwmon6/power1_input", "9000000");
    }

    #[test]
    fn powers_are_added_up_over_time_where_no_counter_counts_the_same() {
        let machine = tempfile::tempdir().expect("a directory");
        let root = machine.path();
        powers(root);
        let mut meter = EnergyMeter::open(root, SECOND);
        assert_eq!(meter.interval(), SECOND);
        write(root, "hwmon/hwmon5/power3_input", "5000000");
        meter.update(Nanos(3_000_000_000));
        meter.update(Nanos(3_500_000_000));
        // 2 s at 4 W on average, and half a second of 5 W.
        let wanted = [
            ("Core VRD power", MeasuredPart::Processor, 50_000_000),
            ("DIMM VRD1 power", MeasuredPart::Memory, 10_500_000),
        ];
        let wanted = wanted
            .map(|(label, part, energy)| (format!("{label} (smpro_hwmon)"), part, Some(energy)));
        assert_eq!(read(&meter), wanted);
        let mut readings = meter.readings();
        assert!(readings.all(|it| it.source == EnergySource::HwmonPower));
        // With RAPL only the memory, which that does not count here.
        zone(root, "intel-rapl:0", "package-0", 900);
        let meter = EnergyMeter::open(root, SECOND);
        let parts: Vec<_> = meter.readings().map(|it| (it.part, it.source)).collect();
        assert_eq!(
            parts,
            [
                (MeasuredPart::Processor, EnergySource::Powercap),
                (MeasuredPart::Memory, EnergySource::HwmonPower)
            ]
        );
    }

    #[test]
    fn a_power_without_a_label_is_a_socket_s_where_the_driver_has_no_other() {
        let machine = tempfile::tempdir().expect("a directory");
        let root = machine.path();
        for hwmon in ["hwmon1", "hwmon2"] {
            write(root, &format!("hwmon/{hwmon}/name"), "amd_hsmp_hwmon");
            write(root, &format!("hwmon/{hwmon}/power1_input"), "45000000");
            write(root, &format!("hwmon/{hwmon}/power1_average"), "1");
        }
        let meter = EnergyMeter::open(root, SECOND);
        let names: Vec<_> = read(&meter).into_iter().map(|(name, ..)| name).collect();
        let name = |number| format!("power1 of hwmon{number} (amd_hsmp_hwmon)");
        assert_eq!(names, [name(1), name(2)]);
    }

    #[test]
    fn the_package_of_a_graphics_card_is_none_of_the_machine() {
        let machine = tempfile::tempdir().expect("a directory");
        let root = machine.path();
        write(root, "hwmon/hwmon1/name", "xe");
        write(root, "hwmon/hwmon1/energy1_label", "pkg");
        write(root, "hwmon/hwmon1/energy1_input", "7");
        write(root, "hwmon/hwmon1/power1_label", "pkg");
        write(root, "hwmon/hwmon1/power1_input", "7");
        let meter = EnergyMeter::open(root, SECOND);
        let parts: Vec<_> = read(&meter).into_iter().map(|(_, part, _)| part).collect();
        assert_eq!(parts, [MeasuredPart::Other]);
    }

    #[test]
    fn sensors_that_have_no_number_or_vanish_are_named() {
        let machine = tempfile::tempdir().expect("a directory");
        let root = machine.path();
        powers(root);
        write(root, "hwmon/hwmon5/power1_input", "N/A");
        let mut meter = EnergyMeter::open(root, SECOND);
        fs::remove_file(root.join("sys/class/hwmon/hwmon5/power3_input")).expect("removes");
        meter.update(Nanos(2_000_000_000));
        powers(root);
        meter.update(Nanos(3_000_000_000));
        let lost: Vec<_> = meter.lost().collect();
        assert_eq!(
            lost,
            [
                "Core VRD power (smpro_hwmon)",
                "DIMM VRD1 power (smpro_hwmon)"
            ]
        );
        assert_eq!(meter.measured().count(), 0);
    }

    #[test]
    fn no_power_and_no_time_are_too_long() {
        assert_eq!(added_up([3, 3], Nanos(1_000_000_000)), 2);
        assert_eq!(added_up([u64::MAX; 2], Nanos(u64::MAX)), u64::MAX);
        assert_eq!(added_up([9_000_000; 2], Nanos::ZERO), 0);
    }
}
