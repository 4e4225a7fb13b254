//! [`Maps`] is the daemon's answer to `isotherm status --maps`: the memory of the watched processes, range by range, with its tier and its
//! observed accesses. It shows for all processes what `/proc/PID/numa_maps` (Linux, `Documentation/filesystems/proc.rst`) shows for one,
//! and adds the accesses, which the kernel does not report.
//!
//! ```text
//! units        | fast, 9 hits | fast, 3 hits | slow, 0 hits | slow, 0 hits |  -  | slow, 0 hits |
//! ranges       |<------- fast, 12 hits ----->|<------- slow, 0 hits ------>|     |<-- slow, 0 ->|
//! ```
//!
//! Neighbouring units are one range if they are in the same tiers, and either both or neither of them were
//! accessed in the epoch that ended.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use isotherm_model::batch::{Epoch, Process};
use isotherm_model::units::Bytes;
use isotherm_model::watch::UnitHeat;
use serde::{Deserialize, Serialize};

use crate::json_line::JsonLine;

/// All watched processes after an epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maps {
    /// [`JsonLine::VERSION`] of the daemon that wrote it.
    pub version: u32,
    /// The epoch that ended.
    pub epoch: u32,
    /// Size of a unit.
    pub unit_bytes: u64,
    /// The processes by number, each with at least one range.
    pub processes: Vec<ProcessMaps>,
}

/// The memory of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessMaps {
    /// The process.
    pub pid: u32,
    /// Its program.
    pub name: String,
    /// The ranges by address.
    pub ranges: Vec<MapRange>,
}

/// Neighbouring units in the same tiers, which were either all accessed or all not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapRange {
    /// First address.
    pub start: u64,
    /// The address behind its end.
    pub end: u64,
    /// Private bytes that are resident, at least one.
    pub resident_bytes: u64,
    /// Of these, bytes in the fast tier when the epoch's moves were done.
    pub fast_bytes: u64,
    /// Accessed bits found set in the epoch.
    pub accessed_bits: u64,
    /// Trace samples of the epoch.
    pub trace_samples: u64,
}

impl MapRange {
    fn of(heat: &UnitHeat, unit: u64) -> Self {
        let [accessed_bits, trace_samples] = heat.hits;
        Self {
            start: heat.unit.start,
            end: heat.unit.start.saturating_add(unit),
            resident_bytes: heat.resident.0,
            fast_bytes: heat.fast.0,
            accessed_bits,
            trace_samples,
        }
    }

    /// What joined neighbours have in common: in the fast tier wholly, in part or not at all, and accessed or not.
    const fn kind(&self) -> (bool, bool, bool) {
        let all = self.fast_bytes == self.resident_bytes;
        let none = self.fast_bytes == 0;
        (all, none, self.accessed_bits > 0 || self.trace_samples > 0)
    }

    /// Takes in the next unit if it continues this range.
    fn joins(&mut self, next: &Self) -> bool {
        if self.end != next.start || self.kind() != next.kind() {
            return false;
        }
        self.end = next.end;
        for (sum, more) in [
            (&mut self.resident_bytes, next.resident_bytes),
            (&mut self.fast_bytes, next.fast_bytes),
            (&mut self.accessed_bits, next.accessed_bits),
            (&mut self.trace_samples, next.trace_samples),
        ] {
            *sum = sum.saturating_add(more);
        }
        true
    }

    fn line(&self) -> String {
        let mut line = format!("{:x}-{:x}", self.start, self.end);
        let slow = self.resident_bytes.saturating_sub(self.fast_bytes);
        for (name, number, unit) in [
            ("fast", self.fast_bytes / 1024, "kB"),
            ("slow", slow / 1024, "kB"),
            ("accessed_bits", self.accessed_bits, ""),
            ("trace_samples", self.trace_samples, ""),
        ] {
            if number > 0 {
                // Writing to a string cannot fail.
                let _ = write!(line, " {name}={number}{unit}");
            }
        }
        line + "\n"
    }
}

impl Maps {
    /// The memory of processes after an epoch, given by units in any order. `names` are the programs of the processes.
    pub fn new<'a>(
        epoch: Epoch,
        unit: Bytes,
        names: impl IntoIterator<Item = (Process, &'a str)>,
        units: impl IntoIterator<Item = UnitHeat>,
    ) -> Self {
        let names: BTreeMap<Process, &str> = names.into_iter().collect();
        let mut units: Vec<UnitHeat> = units.into_iter().collect();
        units.sort_unstable_by_key(|heat| heat.unit);
        let of_one = |units: &[UnitHeat]| {
            let process = units[0].unit.process;
            let mut ranges: Vec<MapRange> = Vec::new();
            for heat in units {
                let next = MapRange::of(heat, unit.0);
                if !ranges.last_mut().is_some_and(|range| range.joins(&next)) {
                    ranges.push(next);
                }
            }
            ProcessMaps {
                pid: process.pid,
                name: names.get(&process).copied().unwrap_or_default().to_owned(),
                ranges,
            }
        };
        let by_process = units.chunk_by(|a, b| a.unit.process == b.unit.process);
        Self {
            version: Self::VERSION,
            epoch: epoch.0,
            unit_bytes: unit.0,
            processes: by_process.map(of_one).collect(),
        }
    }

    /// Keeps one process.
    pub fn retain(&mut self, pid: u32) {
        self.processes.retain(|process| process.pid == pid);
    }

    /// The ranges as text, for people and for tools that read `numa_maps`: a line a range, numbers that are 0 left out.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for process in &self.processes {
            text += &format!("process {} {}\n", process.pid, process.name);
            text.extend(process.ranges.iter().map(MapRange::line));
        }
        text
    }
}

impl JsonLine for Maps {
    const REQUEST: &'static str = "maps";
    const NAME: &'static str = "list of ranges";
    const VERSION: u32 = 1;
}

#[cfg(test)]
mod tests {
    use super::Maps;
    use crate::json_line::JsonLine;
    use isotherm_model::batch::{Epoch, Process};
    use isotherm_model::units::Bytes;
    use isotherm_model::watch::{Unit, UnitHeat};

    const UNIT: u64 = 2 << 20;

    fn unit(pid: u32, number: u64, fast: u64, hits: [u64; 2]) -> UnitHeat {
        UnitHeat {
            unit: Unit {
                process: Process { pid, image: 0 },
                start: number * UNIT,
            },
            resident: Bytes(UNIT),
            fast: Bytes(fast),
            hits,
        }
    }

    fn maps(units: &[UnitHeat]) -> Maps {
        let names = [(Process { pid: 7, image: 0 }, "redis")];
        Maps::new(Epoch(3), Bytes(UNIT), names, units.iter().copied())
    }

    #[test]
    fn neighbours_that_lie_alike_are_one_range_and_others_are_not() {
        let text = maps(&[
            unit(7, 5, 0, [0, 0]),
            unit(7, 4, UNIT, [2, 1]),
            unit(7, 3, UNIT, [7, 0]),
            unit(7, 6, 0, [0, 0]),
            unit(7, 8, 0, [0, 0]),
            unit(7, 9, 0, [0, 4]),
            unit(7, 10, UNIT / 2, [0, 4]),
            unit(9, 11, UNIT / 2, [0, 4]),
        ])
        .text();
        assert_eq!(
            text,
            "process 7 redis\n\
             600000-a00000 fast=4096kB accessed_bits=9 trace_samples=1\n\
             a00000-e00000 slow=4096kB\n\
             1000000-1200000 slow=2048kB\n\
             1200000-1400000 slow=2048kB trace_samples=4\n\
             1400000-1600000 fast=1024kB slow=1024kB trace_samples=4\n\
             process 9 \n\
             1600000-1800000 fast=1024kB slow=1024kB trace_samples=4\n"
        );
    }

    #[test]
    fn the_json_is_read_back_and_another_version_is_refused() {
        let mut both = maps(&[unit(7, 4, UNIT, [2, 1]), unit(9, 5, 0, [0, 0])]);
        assert_eq!(Maps::from_json_line(&both.json_line()), Ok(both.clone()));
        both.retain(9);
        assert_eq!(both.processes.len(), 1);
        both.version = 2;
        let refused = Maps::from_json_line(&both.json_line()).expect_err("is of another version");
        assert!(
            refused.contains("restart the one that is older"),
            "{refused}"
        );
    }

    #[test]
    fn the_last_address_is_no_trouble() {
        let last = maps(&[unit(7, u64::MAX / UNIT, UNIT, [u64::MAX, 1])]);
        assert_eq!(last.processes[0].ranges[0].end, u64::MAX);
    }
}
