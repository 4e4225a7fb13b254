//! DAMON by process: one kdamond each, because the regions that the kernel tells do not say whose they
//! are.

use std::path::Path;

use isotherm_model::batch::{Process, SourceReport};
use isotherm_model::movement::AddressRange;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::watch::{Evidence, Sighting};

use super::admin::{Admin, Monitoring, Region, Target};
use crate::perf_source::empty_report;
use crate::watch::cost::Stride;
use crate::watch::look::Look;

/// Fewest and most regions of a process. Each is four files to be read an epoch, about 10 us.
const REGIONS: (u64, u64) = (10, 200);

/// Processes watched at a time. Reading one's regions waits for the end of its current report, up
/// to some 0.2 s on kernels before 6.14, and they are read one after the other.
pub(super) const PROCESSES: usize = 4;

/// One kdamond.
#[derive(Clone, Copy, Debug)]
struct Slot {
    process: Process,
    /// Processor time of its thread when it was last asked for.
    cpu: Nanos,
}

/// The source.
#[derive(Debug)]
pub struct Damon {
    admin: Admin,
    slots: Vec<Option<Slot>>,
    stride: Stride,
    report: SourceReport,
}

impl Damon {
    /// Sets up kdamonds below this root. A file in `state`, a directory that only we may write, notes
    /// which are ours; without one, none of before are taken over.
    ///
    /// # Errors
    /// In words, with what would help: the kernel has none, somebody else uses them, or they may
    /// not be written.
    pub fn open(root: &Path, state: Option<&Path>, budget_ppm: u64) -> Result<Self, String> {
        let operations = ("vaddr", "CONFIG_DAMON_VADDR");
        Ok(Self {
            admin: Admin::open(root, state, PROCESSES, operations)?,
            slots: vec![None; PROCESSES],
            stride: Stride::new(budget_ppm),
            report: empty_report("damon", COST.to_owned()),
        })
    }

    /// What it did so far.
    #[must_use]
    pub const fn report(&self) -> &SourceReport {
        &self.report
    }

    /// Changes its budget.
    pub const fn set_budget(&mut self, budget_ppm: u64) {
        self.stride.set_budget(budget_ppm);
    }

    /// The processes whose regions come from here.
    pub fn watched(&self) -> impl Iterator<Item = Process> {
        self.slots.iter().flatten().map(|slot| slot.process)
    }

    /// Watches these processes, the first ones as far as there is room, and no others.
    pub fn watch(&mut self, processes: &[Process]) {
        let wanted = &processes[..processes.len().min(PROCESSES)];
        for number in 0..self.slots.len() {
            if self.slots[number].is_some_and(|slot| !wanted.contains(&slot.process)) {
                self.stop(number);
            }
        }
        for process in wanted {
            let has = |slot: &Option<Slot>| slot.is_some_and(|slot| slot.process == *process);
            if self.slots.iter().any(has) {
                continue;
            }
            if let Some(number) = self.slots.iter().position(Option::is_none) {
                self.start(number, *process);
            }
        }
        self.admin.note();
    }

    fn start(&mut self, number: usize, process: Process) {
        let monitoring = Monitoring {
            target: Target::Process(process.pid),
            stride: self.stride.get(),
            regions: REGIONS,
            accesses_at_least: 0,
        };
        match self.admin.begin(number, &monitoring) {
            Ok(()) => {
                let cpu = self.admin.cpu(number);
                self.slots[number] = Some(Slot { process, cpu });
            }
            Err(error) => {
                self.report.trouble = format!("process {} is not watched: {error}", process.pid);
            }
        }
    }

    fn stop(&mut self, number: usize) {
        self.spend(number);
        self.slots[number] = None;
        self.admin.stop(number);
    }

    /// Adds what was accessed since the last call, and adapts to what that cost, our own time by
    /// this clock included.
    pub fn look(&mut self, look: &Look<'_>, sightings: &mut Vec<Sighting>) {
        let begin = look.clock.busy();
        let before = sightings.len();
        for number in 0..self.slots.len() {
            let Some(slot) = self.slots[number] else {
                continue;
            };
            match self.admin.regions(number) {
                Ok(regions) => {
                    let seen = regions
                        .iter()
                        .filter_map(|it| seen(it, slot.process, look.page));
                    sightings.extend(seen);
                    self.spend(number);
                }
                Err(_) => self.stop(number),
            }
        }
        let hits = sightings[before..].iter().map(|sighting| sighting.hits);
        let hits: u64 = hits.fold(0, u64::saturating_add);
        self.report.taken += hits;
        self.report.usable += hits;
        self.report.cost += look.clock.busy().saturating_sub(begin);
        if self.stride.learn(self.report.cost, look.span) {
            // Settings are read when a kdamond starts.
            let processes: Vec<Process> = self.watched().collect();
            self.watch(&[]);
            self.watch(&processes);
        }
    }

    /// Books the processor time of a kdamond.
    fn spend(&mut self, number: usize) {
        let now = self.admin.cpu(number);
        if let Some(slot) = &mut self.slots[number] {
            self.report.cost += now.saturating_sub(std::mem::replace(&mut slot.cpu, now));
        }
    }
}

pub(super) const COST: &str = "processor time of the kernel's kdamond threads and of reading them; the program \
                               pays for accessed bits that are set again, 20 ns a page and look";

/// What a region comes to: one hit a page and look that found it accessed.
fn seen(region: &Region, process: Process, page: u64) -> Option<Sighting> {
    let bytes = region.range.end.saturating_sub(region.range.start);
    let hits = (bytes / page.max(1)).saturating_mul(region.accesses);
    (hits > 0).then_some(Sighting {
        process,
        range: AddressRange {
            start: region.range.start,
            bytes: Bytes(bytes),
        },
        hits,
        evidence: Evidence::AccessedBits,
        physical: None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Damon, PROCESSES};
    use crate::clock::MachineClock;
    use crate::watch::damon::played::{machine, tell, text};
    use crate::watch::look::Look;
    use isotherm_model::batch::Process;
    use isotherm_model::units::{Bytes, Nanos};
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    fn open(root: &Path) -> Result<Damon, String> {
        Damon::open(root, Some(root), 10_000)
    }

    const PROCESS: Process = Process {
        pid: 4711,
        image: 2,
    };

    #[test]
    fn a_process_gets_a_kdamond_whose_regions_become_sightings() {
        let root = machine(PROCESSES, "0\n", "vaddr\nfvaddr\npaddr\n", "-1\n");
        let root = root.path();
        let mut damon = open(root).unwrap();
        damon.watch(&[PROCESS]);
        assert_eq!(text(root, "0/contexts/0/targets/0/pid_target"), "4711");
        assert_eq!(text(root, "0/contexts/0/operations"), "vaddr");
        assert_eq!(text(root, "0/state"), "on");
        assert_eq!(damon.watched().collect::<Vec<_>>(), [PROCESS]);
        tell(root, &[(4096..12_288, 7), (16_384..24_576, 0)]);
        let look = Look {
            clock: &MachineClock,
            proc_root: root,
            resident: &BTreeMap::new(),
            page: 4096,
            span: Nanos(1_000_000_000),
        };
        let mut seen = Vec::new();
        damon.look(&look, &mut seen);
        assert_eq!(seen.len(), 1, "what was not accessed is not seen");
        assert_eq!(
            (seen[0].range.start, seen[0].range.bytes),
            (4096, Bytes(8192))
        );
        assert_eq!((seen[0].hits, seen[0].process), (14, PROCESS));
        damon.watch(&[]);
        assert_eq!(text(root, "0/state"), "off");
        drop(damon);
        assert_eq!(text(root, "nr_kdamonds"), "0");
    }

    #[test]
    fn kdamonds_of_others_are_left_alone_and_those_of_a_killed_daemon_are_taken_over() {
        let root = machine(PROCESSES, "4\n", "vaddr\n", "77\n");
        let error = open(root.path()).unwrap_err();
        assert!(error.contains("somebody else"), "{error}");
        assert_eq!(text(root.path(), "nr_kdamonds"), "4\n");
        assert_eq!(text(root.path(), "0/state"), "", "nothing was written");
        fs::write(root.path().join("kdamonds"), "4\n76\n").unwrap();
        assert!(open(root.path()).is_err(), "another thread runs");
        fs::write(root.path().join("kdamonds"), "4\n76\n77\n").unwrap();
        assert!(open(root.path()).is_ok());
    }

    #[test]
    fn a_kernel_that_watches_no_processes_is_named_and_left_as_it_was() {
        let root = machine(PROCESSES, "0\n", "paddr\n", "-1\n");
        let error = open(root.path()).unwrap_err();
        assert!(error.contains("CONFIG_DAMON_VADDR"), "{error}");
        assert_eq!(text(root.path(), "nr_kdamonds"), "0");
        let error = open(Path::new("/nonexistent")).unwrap_err();
        assert!(error.contains("CONFIG_DAMON_SYSFS"), "{error}");
    }
}
