//! Accessed bits by regions: DAMON through its sysfs files.
//!
//! One `kdamond` a process, because the regions that the kernel tells do not say whose they are.
//! Each looks at a page of every region every few milliseconds, and parts and joins regions until
//! what lies in one is accessed alike, so its cost follows the number of regions and not of pages.
//!
//! The machine has one set of kdamonds. Where somebody else has set some up, they are left alone
//! and this source is not available. Ours are noted in a file, so that a daemon that was killed
//! finds them again instead of taking them for somebody else's.
//!
//! Kernel document: `Documentation/admin-guide/mm/damon/usage.rst`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use isotherm_model::batch::{Process, SourceReport};
use isotherm_model::movement::AddressRange;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::watch::{Evidence, Sighting};

use super::cost::Stride;
use crate::clock::Clock;
use crate::perf_source::empty_report;

/// Where the files are, below the root.
const ADMIN: &str = "sys/kernel/mm/damon/admin/kdamonds";

/// Looks at every region in one report, at full speed: as many as the document's example.
const LOOKS: u64 = 20;

/// Time between two looks at full speed, in microseconds.
const SAMPLE_US: u64 = 5_000;

/// Time between two looks at which mappings there are, in microseconds.
const UPDATE_US: u64 = 1_000_000;

/// Fewest and most regions of a process. Each is four files to be read an epoch, about 10 us.
const REGIONS: (u64, u64) = (10, 200);

/// Processes watched at a time. Reading one's regions waits for the end of its current report, up
/// to some 0.2 s on kernels before 6.14, and they are read one after the other.
const PROCESSES: usize = 4;

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
    admin: PathBuf,
    proc_root: PathBuf,
    /// Where it is noted which kdamonds are ours; None for nowhere.
    note: Option<PathBuf>,
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
        let admin = root.join(ADMIN);
        let note = state.map(|state| state.join("kdamonds"));
        let there = read(&admin.join("nr_kdamonds")).map_err(|error| {
            format!("this kernel has no DAMON ({error}); CONFIG_DAMON_SYSFS brings it")
        })?;
        if there != "0" && !are_ours(&admin, note.as_deref(), &there) {
            return Err(format!(
                "DAMON has {there} kdamonds that somebody else has set up, and these are left \
                 alone; writing 0 to {} when they are off makes room",
                admin.join("nr_kdamonds").display()
            ));
        }
        let mut damon = Self {
            admin,
            proc_root: root.join("proc"),
            note,
            slots: vec![None; PROCESSES],
            stride: Stride::new(budget_ppm),
            report: empty_report("damon", COST.to_owned()),
        };
        damon.all_off(&there);
        match damon.set_up() {
            Ok(()) => Ok(damon),
            Err(error) => {
                damon.clear();
                Err(error)
            }
        }
    }

    fn set_up(&mut self) -> Result<(), String> {
        let refused = |error: io::Error| {
            format!("DAMON may not be set up ({error}); it needs the rights of root on sysfs")
        };
        self.write("nr_kdamonds", &PROCESSES.to_string())
            .map_err(refused)?;
        for number in 0..PROCESSES {
            let contexts = format!("{number}/contexts");
            self.write(&format!("{contexts}/nr_contexts"), "1")
                .map_err(refused)?;
        }
        let can = read(&self.admin.join("0/contexts/0/avail_operations")).unwrap_or_default();
        if !can.split_ascii_whitespace().any(|word| word == "vaddr") {
            return Err(format!(
                "this kernel's DAMON watches no processes, only: {}; CONFIG_DAMON_VADDR brings it",
                can.replace('\n', ", ")
            ));
        }
        Ok(())
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
        self.note();
    }

    fn start(&mut self, number: usize, process: Process) {
        match self.begin(number, process.pid) {
            Ok(()) => {
                let cpu = self.cpu(number);
                self.slots[number] = Some(Slot { process, cpu });
            }
            Err(error) => {
                self.report.trouble = format!("process {} is not watched: {error}", process.pid);
            }
        }
    }

    /// Writes the settings of a kdamond and starts it.
    fn begin(&self, number: usize, pid: u32) -> io::Result<()> {
        let stride = u64::from(self.stride.get());
        let context = format!("{number}/contexts/0");
        let intervals = format!("{context}/monitoring_attrs/intervals");
        let regions = format!("{context}/monitoring_attrs/nr_regions");
        let scheme = format!("{context}/schemes/0");
        let pattern = format!("{scheme}/access_pattern");
        let most = u32::MAX.to_string();
        // Minima before maxima where 0 to 0 is what is there before.
        let settings = [
            (format!("{context}/operations"), "vaddr".to_owned()),
            (
                format!("{intervals}/sample_us"),
                (SAMPLE_US * stride).to_string(),
            ),
            (
                format!("{intervals}/aggr_us"),
                (SAMPLE_US * LOOKS * stride).to_string(),
            ),
            (
                format!("{intervals}/update_us"),
                (UPDATE_US * stride).to_string(),
            ),
            (format!("{regions}/max"), REGIONS.1.to_string()),
            (format!("{regions}/min"), REGIONS.0.to_string()),
            (format!("{context}/targets/nr_targets"), "1".to_owned()),
            (format!("{context}/targets/0/pid_target"), pid.to_string()),
            (format!("{context}/schemes/nr_schemes"), "1".to_owned()),
            (format!("{scheme}/action"), "stat".to_owned()),
            (format!("{pattern}/sz/max"), u64::MAX.to_string()),
            (format!("{pattern}/nr_accesses/max"), most.clone()),
            (format!("{pattern}/age/max"), most),
            (format!("{number}/state"), "on".to_owned()),
        ];
        for (file, text) in settings {
            self.write(&file, &text)
                .map_err(|error| io::Error::new(error.kind(), format!("{file}: {error}")))?;
        }
        Ok(())
    }

    fn stop(&mut self, number: usize) {
        self.spend(number);
        self.slots[number] = None;
        // It is off already where its process has ended.
        let _ = self.write(&format!("{number}/state"), "off");
    }

    /// Adds what was accessed since the last call, and adapts to what that cost, our own time by
    /// this clock included.
    pub fn look(
        &mut self,
        clock: &dyn Clock,
        page: u64,
        span: Nanos,
        sightings: &mut Vec<Sighting>,
    ) {
        let begin = clock.busy();
        let before = sightings.len();
        for number in 0..self.slots.len() {
            if self.slots[number].is_some() {
                self.regions(number, page, sightings);
                self.spend(number);
            }
        }
        let hits: u64 = sightings[before..]
            .iter()
            .map(|sighting| sighting.hits)
            .sum();
        self.report.taken += hits;
        self.report.usable += hits;
        self.report.cost += clock.busy().saturating_sub(begin);
        if self.stride.learn(self.report.cost, span) {
            // Settings are read when a kdamond starts.
            let processes: Vec<Process> = self.watched().collect();
            self.watch(&[]);
            self.watch(&processes);
        }
    }

    /// The regions of one process in which something was accessed.
    fn regions(&mut self, number: usize, page: u64, sightings: &mut Vec<Sighting>) {
        let Some(slot) = self.slots[number] else {
            return;
        };
        // Refused where the process has ended and its kdamond with it.
        if self
            .write(&format!("{number}/state"), "update_schemes_tried_regions")
            .is_err()
        {
            self.stop(number);
            return;
        }
        let regions = self
            .admin
            .join(format!("{number}/contexts/0/schemes/0/tried_regions"));
        let entries = fs::read_dir(&regions).into_iter().flatten().flatten();
        let mut seen: Vec<Sighting> = entries
            .filter_map(|entry| region(&entry.path(), slot.process, page))
            .collect();
        seen.sort_unstable_by_key(|sighting| sighting.range.start);
        sightings.extend(seen);
        let _ = self.write(&format!("{number}/state"), "clear_schemes_tried_regions");
    }

    /// Books the processor time of a kdamond.
    fn spend(&mut self, number: usize) {
        let now = self.cpu(number);
        if let Some(slot) = &mut self.slots[number] {
            self.report.cost += now.saturating_sub(std::mem::replace(&mut slot.cpu, now));
        }
    }

    fn cpu(&self, number: usize) -> Nanos {
        let pid = read(&self.admin.join(format!("{number}/pid")));
        let pid = pid.ok().and_then(|pid| pid.parse::<u32>().ok());
        let usage = pid.and_then(|pid| crate::accessed::usage(&self.proc_root, pid));
        usage.map_or(Nanos::ZERO, |(cpu, _)| Nanos(cpu))
    }

    /// Notes the threads that are ours. Without the note a daemon that follows a killed one finds
    /// kdamonds that it must take for somebody else's, and does without.
    fn note(&self) {
        let pids = (0..PROCESSES).filter_map(|number| {
            let pid = read(&self.admin.join(format!("{number}/pid"))).ok()?;
            (pid != "-1").then_some(pid)
        });
        let text = pids.collect::<Vec<_>>().join("\n");
        if let Some(note) = &self.note {
            let _ = fs::write(note, format!("{PROCESSES}\n{text}\n"));
        }
    }

    fn all_off(&self, count: &str) {
        for number in 0..count.parse().unwrap_or(0_usize) {
            let _ = self.write(&format!("{number}/state"), "off");
        }
    }

    fn clear(&self) {
        self.all_off(&PROCESSES.to_string());
        let _ = self.write("nr_kdamonds", "0");
        if let Some(note) = &self.note {
            let _ = fs::remove_file(note);
        }
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        fs::write(self.admin.join(file), text)
    }
}

/// Stops all kdamonds of ours and leaves none behind.
impl Drop for Damon {
    fn drop(&mut self) {
        self.clear();
    }
}

const COST: &str = "processor time of the kernel's kdamond threads and of reading them; the program \
                    pays for accessed bits that are set again, 20 ns a page and look";

/// A region with its accesses, of which there is one a page and look that found it accessed.
fn region(directory: &Path, process: Process, page: u64) -> Option<Sighting> {
    let number = |name: &str| read(&directory.join(name)).ok()?.parse::<u64>().ok();
    let (start, end) = (number("start")?, number("end")?);
    let bytes = end.checked_sub(start)?;
    let hits = (bytes / page.max(1)).saturating_mul(number("nr_accesses")?);
    (hits > 0).then_some(Sighting {
        process,
        range: AddressRange {
            start,
            bytes: Bytes(bytes),
        },
        hits,
        evidence: Evidence::AccessedBits,
    })
}

fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path).map(|text| text.trim().to_owned())
}

/// True where the kdamonds that are there are those of the note: as many, and none runs that is
/// not named in it.
fn are_ours(admin: &Path, note: Option<&Path>, count: &str) -> bool {
    let Some(Ok(note)) = note.map(fs::read_to_string) else {
        return false;
    };
    let mut lines = note.lines();
    let same = lines.next() == Some(count);
    let ours: Vec<&str> = lines.collect();
    let running = (0..count.parse().unwrap_or(0_usize)).filter_map(|number| {
        let pid = read(&admin.join(format!("{number}/pid"))).ok()?;
        (pid != "-1").then_some(pid)
    });
    let running: Vec<String> = running.collect();
    same && running.iter().all(|pid| ours.contains(&pid.as_str()))
}

#[cfg(test)]
mod tests {
    use super::{ADMIN, Damon, PROCESSES, region};
    use crate::clock::MachineClock;
    use isotherm_model::batch::Process;
    use isotherm_model::units::{Bytes, Nanos};
    use std::fs;
    use std::path::Path;

    /// The files of DAMON as ordinary ones.
    fn machine(count: &str, operations: &str, pid: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let admin = root.path().join(ADMIN);
        for number in 0..PROCESSES {
            let context = admin.join(format!("{number}/contexts/0"));
            for directory in [
                "monitoring_attrs/intervals",
                "monitoring_attrs/nr_regions",
                "targets/0",
                "schemes/0/access_pattern/sz",
                "schemes/0/access_pattern/nr_accesses",
                "schemes/0/access_pattern/age",
                "schemes/0/tried_regions/0",
                "schemes/0/tried_regions/1",
            ] {
                fs::create_dir_all(context.join(directory)).unwrap();
            }
            fs::write(context.join("avail_operations"), operations).unwrap();
            fs::write(admin.join(format!("{number}/pid")), pid).unwrap();
        }
        fs::write(admin.join("nr_kdamonds"), count).unwrap();
        root
    }

    fn text(root: &Path, file: &str) -> String {
        fs::read_to_string(root.join(ADMIN).join(file)).unwrap_or_default()
    }

    fn open(root: &Path) -> Result<Damon, String> {
        Damon::open(root, Some(root), 10_000)
    }

    const PROCESS: Process = Process {
        pid: 4711,
        image: 2,
    };

    #[test]
    fn a_process_gets_a_kdamond_whose_regions_become_sightings() {
        let root = machine("0\n", "vaddr\nfvaddr\npaddr\n", "-1\n");
        let root = root.path();
        let mut damon = open(root).unwrap();
        damon.watch(&[PROCESS]);
        assert_eq!(text(root, "0/contexts/0/targets/0/pid_target"), "4711");
        assert_eq!(text(root, "0/contexts/0/operations"), "vaddr");
        assert_eq!(text(root, "0/state"), "on");
        assert_eq!(damon.watched().collect::<Vec<_>>(), [PROCESS]);
        let regions = root
            .join(ADMIN)
            .join("0/contexts/0/schemes/0/tried_regions");
        for (number, start, accesses) in [(0, 4096, 7), (1, 16_384, 0)] {
            let directory = regions.join(number.to_string());
            fs::write(directory.join("start"), start.to_string()).unwrap();
            fs::write(directory.join("end"), (start + 8192).to_string()).unwrap();
            fs::write(directory.join("nr_accesses"), accesses.to_string()).unwrap();
        }
        let mut seen = Vec::new();
        damon.look(&MachineClock, 4096, Nanos(1_000_000_000), &mut seen);
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
        let root = machine("4\n", "vaddr\n", "77\n");
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
        let root = machine("0\n", "paddr\n", "-1\n");
        let error = open(root.path()).unwrap_err();
        assert!(error.contains("CONFIG_DAMON_VADDR"), "{error}");
        assert_eq!(text(root.path(), "nr_kdamonds"), "0");
        let error = open(Path::new("/nonexistent")).unwrap_err();
        assert!(error.contains("CONFIG_DAMON_SYSFS"), "{error}");
    }

    #[test]
    fn a_region_that_makes_no_sense_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        assert_eq!(region(directory.path(), PROCESS, 4096), None);
        write("start", "8192");
        write("end", "4096");
        write("nr_accesses", "3");
        assert_eq!(region(directory.path(), PROCESS, 4096), None);
    }
}
