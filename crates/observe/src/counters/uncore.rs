//! Finds the traffic counters of memory controllers under `/sys/bus/event_source/devices`, for [`super::open`].
//!
//! The kernel names their units, and for most the events too; which of the events are traffic
//! differs by vendor. One unit is one controller or channel, so all units of a family are added.
//!
//! | unit | events | one count |
//! |---|---|---|
//! | `uncore_imc*` of Intel's servers | `cas_count_*` | 64 bytes, by the event's scale |
//! | `uncore_imc*` of Intel's clients | `data_read*`, `data_write*` | likewise |
//! | `amd_umc_*` from Zen 4 on, Linux 6.8 | CAS commands, 0x0a; sysfs names none | 64 bytes |
//! | `hisi_sccl*_ddrc*` | `flux_rd`, `flux_wr` | 32 bytes |
//! | `nvidia_scf_pmu_*` (Grace) | `cmem_rd_data`, `cmem_wr_total_bytes` | 32 bytes, 1 byte |

use std::path::{Path, PathBuf};

use super::event::{CounterEvent, Lack};
use crate::source::pmu::{configs, devices, kind, read};
use isotherm_topology::cpu_list;
use isotherm_topology::sysfs::entries;

/// Units of one kind, and the events that they count.
struct Family {
    /// Prefix of the names of its units.
    begins: &'static str,
    /// Another part of the unit names.
    holds: &'static str,
    events: &'static [Event],
}

/// An event that counts traffic.
struct Event {
    /// Prefix of its name in sysfs.
    begins: &'static str,
    /// The event terms where sysfs names no event; empty where it does.
    terms: &'static str,
    /// Bytes of one count where sysfs has no scale.
    bytes: u64,
}

const fn named(begins: &'static str, bytes: u64) -> Event {
    Event {
        begins,
        terms: "",
        bytes,
    }
}

const FAMILIES: [Family; 5] = [
    Family {
        begins: "uncore_imc",
        holds: "",
        events: &[named("cas_count_", 64)],
    },
    Family {
        begins: "uncore_imc",
        holds: "",
        events: &[named("data_read", 64), named("data_write", 64)],
    },
    Family {
        begins: "amd_umc_",
        holds: "",
        events: &[Event {
            begins: "",
            terms: "event=0x0a",
            bytes: 64,
        }],
    },
    Family {
        begins: "hisi_sccl",
        holds: "_ddrc",
        events: &[exactly("flux_rd"), exactly("flux_wr")],
    },
    Family {
        begins: "nvidia_scf_pmu",
        holds: "",
        events: &[exactly("cmem_rd_data"), named("cmem_wr_total_bytes", 1)],
    },
];

const fn exactly(begins: &'static str) -> Event {
    named(begins, 32)
}

/// The events of this machine's memory controllers, by unit and name: those of the first family that
/// has any.
///
/// # Errors
/// The machine has none, or one cannot be read.
pub fn find(root: &Path) -> Result<Vec<CounterEvent>, Lack> {
    const REMEDY: &str = "a bare-metal machine whose kernel has the driver of its memory controllers \
                          (intel_uncore, amd_uncore, hisi_uncore_ddrc_pmu, nvidia_cspmu)";
    let lack = |why| Lack {
        why,
        remedy: REMEDY,
    };
    let units = entries(&devices(root));
    for family in &FAMILIES {
        let mut found = Vec::new();
        for unit in units.iter().filter(|unit| family.has(unit)) {
            found.extend(family.of_unit(root, unit).map_err(lack)?);
        }
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Err(lack(
        "sysfs names no events of memory controllers".to_owned(),
    ))
}

impl Family {
    fn has(&self, unit: &Path) -> bool {
        let name = unit.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(self.begins) && name.contains(self.holds)
    }

    fn of_unit(&self, root: &Path, unit: &Path) -> Result<Vec<CounterEvent>, String> {
        let mut found = Vec::new();
        for event in self.events {
            for (terms, weight) in event.of_unit(unit)? {
                let counted = CounterEvent {
                    kind: kind(unit)?,
                    configs: configs(unit, &terms)?,
                    cpu: 0,
                    uncore: true,
                    weight,
                };
                let on = |cpu| CounterEvent {
                    cpu,
                    ..counted.clone()
                };
                found.extend(cpus(root, unit).into_iter().map(on));
            }
        }
        Ok(found)
    }
}

impl Event {
    /// The terms of the events of a unit, and the bytes of one count of each.
    fn of_unit(&self, unit: &Path) -> Result<Vec<(String, u64)>, String> {
        if !self.terms.is_empty() {
            return Ok(vec![(self.terms.to_owned(), self.bytes)]);
        }
        // sysfs has the scale and unit of an event in files beside it.
        let is_event = |path: &&PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(self.begins) && !name.contains('.')
        };
        let event = |path: &PathBuf| Ok((read(path)?, scale(path).unwrap_or(self.bytes)));
        let events = entries(&unit.join("events"));
        events.iter().filter(is_event).map(event).collect()
    }
}

/// Bytes of one count by the files beside an event, at least one.
fn scale(event: &Path) -> Option<u64> {
    let beside = |what| read(&event.with_extension(what)).ok();
    let scale: f64 = beside("scale")?.parse().ok()?;
    let unit = match beside("unit")?.as_str() {
        "MiB" => f64::from(1 << 20),
        "MB" => 1e6,
        "Bytes" | "bytes" => 1.0,
        _ => return None,
    };
    // Out of range becomes the nearest that fits.
    scale
        .is_finite()
        .then_some(((scale * unit).round() as u64).max(1))
}

/// The processors on which a unit is opened, one for each socket; the first where sysfs has no
/// list.
fn cpus(root: &Path, unit: &Path) -> Vec<u32> {
    let listed = cpu_list::read(&unit.join("cpumask"));
    let listed = listed.filter(|cpus| !cpus.is_empty());
    listed.unwrap_or_else(|| cpu_list::online_cpus(root).into_iter().take(1).collect())
}
