//! [`Damon`] is a source of accessed bits by process, for the daemon: at most four kdamonds (threads of the kernel's DAMON) watch one
//! process each, the largest ones. A kdamond has only one, because the regions that the kernel reports do not name their process.

use std::path::Path;

use isotherm_model::batch::{Process, SourceReport};
use isotherm_model::movement::AddressRange;
use isotherm_model::source_kind::SourceKind;

use super::admin::{Admin, Monitoring, Region, Target};
use super::reader::{Order, Reader, ReaderReply};
use crate::source::{AccessList, ScanContext, Source};

/// Fewest and most regions of a process. Each is four files to be read an epoch, about 10 us.
const REGIONS: (u64, u64) = (10, 200);

/// Processes watched at a time. Reading one's regions waits for the end of its current report, up
/// to some 0.2 s on kernels before 6.14, and they are read one after the other.
pub(super) const PROCESSES: usize = 4;

/// One kdamond's process and its newest report.
#[derive(Clone, Debug)]
struct Slot {
    process: Process,
    /// Distinguishes the kdamond from earlier ones with the same number.
    turn: u32,
    /// The kdamond's newest report.
    regions: Vec<Region>,
}

/// The source of accessed bits by process.
#[derive(Debug)]
pub struct Damon {
    reader: Reader,
    slots: Vec<Option<Slot>>,
    /// Number of kdamonds started so far.
    turns: u32,
    report: SourceReport,
}

impl Damon {
    /// Sets up kdamonds below this root. A file in `state`, a directory that only we may write,
    /// records them; without it, earlier ones are not taken over.
    ///
    /// # Errors
    /// A message with the remedy: the kernel has no DAMON, another program uses it, or its files
    /// may not be written.
    pub fn open(root: &Path, state: Option<&Path>, budget_ppm: u64) -> Result<Self, String> {
        let operations = ("vaddr", "CONFIG_DAMON_VADDR");
        let admin = Admin::open(root, state, PROCESSES, operations)?;
        Ok(Self {
            reader: Reader::new(admin, budget_ppm, None)?,
            slots: vec![None; PROCESSES],
            turns: 0,
            report: SourceReport::new(SourceKind::Damon.word(), COST),
        })
    }

    /// The processes that this source covers.
    pub fn watched(&self) -> impl Iterator<Item = Process> {
        self.slots.iter().flatten().map(|slot| slot.process)
    }

    fn start(&mut self, number: usize, process: Process) {
        self.turns = self.turns.wrapping_add(1);
        let monitoring = Monitoring {
            target: Target::Process(process.pid),
            interval: self.reader.pace.interval(),
            regions: REGIONS,
            accesses_at_least: 0,
        };
        let kdamond = (number, self.turns);
        self.reader.order(Order::Begin(kdamond, monitoring));
        self.slots[number] = Some(Slot {
            process,
            turn: self.turns,
            regions: Vec::new(),
        });
    }

    fn take(&mut self, told: Vec<ReaderReply>, page: u64) {
        for one in told {
            match one {
                ReaderReply::Regions { of, regions } => {
                    let Some(slot) = slot_of(&mut self.slots, of) else {
                        continue;
                    };
                    let hits = regions.iter().map(|region| hits(region, page));
                    let hits = hits.fold(0, u64::saturating_add);
                    self.report.taken += hits;
                    self.report.usable += hits;
                    slot.regions = regions;
                }
                ReaderReply::Refused { of, error } => {
                    if let Some(slot) = slot_of(&mut self.slots, of) {
                        let pid = slot.process.pid;
                        self.report.warning = format!("process {pid} is not watched: {error}");
                        self.slots[of.0] = None;
                    }
                }
                ReaderReply::Ended { of, .. } => {
                    if slot_of(&mut self.slots, of).is_some() {
                        self.slots[of.0] = None;
                    }
                }
                ReaderReply::Spent(cost) => self.report.cost += cost,
                ReaderReply::Done => {}
            }
        }
    }
}

impl Source for Damon {
    fn report(&self) -> SourceReport {
        self.report.clone()
    }

    fn set_budget(&mut self, budget_ppm: u64) {
        self.reader.pace.set_budget(budget_ppm);
    }

    fn covers(&self, process: &Process) -> bool {
        self.watched().any(|watched| watched == *process)
    }

    /// Watches these processes, the first ones up to the number of kdamonds, and no others.
    fn watch(&mut self, processes: &[Process]) {
        let wanted = &processes[..processes.len().min(PROCESSES)];
        for (number, slot) in self.slots.iter_mut().enumerate() {
            if slot
                .take_if(|slot| !wanted.contains(&slot.process))
                .is_some()
            {
                self.reader.order(Order::Stop(number));
            }
        }
        let mut is_new = false;
        for process in wanted {
            if self.watched().any(|watched| watched == *process) {
                continue;
            }
            if let Some(number) = self.slots.iter().position(Option::is_none) {
                self.start(number, *process);
                is_new = true;
            }
        }
        if is_new {
            // So that the first report is there at the end of the epoch in which a process is
            // found.
            self.reader.read();
        }
    }

    /// Starts a reading of the kdamonds where one is due. Call it in the middle of an epoch: late enough for a report
    /// on the epoch, and early enough that it is there at the end.
    fn prepare(&mut self) {
        self.reader.prepare();
    }

    /// Adds the accesses of the newest report of each kdamond, and adapts to their cost. Never waits: where a
    /// kdamond takes longer than an epoch, the earlier report stands for it.
    fn scan(&mut self, scan: &mut ScanContext<'_>, accesses: &mut AccessList) {
        let told = self.reader.told();
        self.take(told, scan.page);
        for slot in self.slots.iter().flatten() {
            for region in &slot.regions {
                let range = AddressRange::between(region.range.start, region.range.end);
                let hits = (SourceKind::Damon, hits(region, scan.page));
                accesses.add_hits(&mut self.report, (slot.process, range), hits);
            }
        }
        self.reader.end_epoch(self.report.cost, scan.span);
    }
}

/// The slot of a kdamond with this number and turn, if it is still in use.
fn slot_of(slots: &mut [Option<Slot>], (number, turn): (usize, u32)) -> Option<&mut Slot> {
    let slot = slots.get_mut(number)?.as_mut()?;
    (slot.turn == turn).then_some(slot)
}

pub(super) const COST: &str = "processor time of the kernel's kdamond threads and of reading them; the program \
                               pays for accessed bits that are set again, 20 ns a page and look";

/// The hits of a region: one for each page and check that found it accessed.
fn hits(region: &Region, page: u64) -> u64 {
    let bytes = region.range.end.saturating_sub(region.range.start);
    (bytes / page.max(1)).saturating_mul(region.accesses)
}

#[cfg(test)]
mod tests {
    use super::super::fake_kdamond::{Slow, machine, tell, text};
    use super::{Damon, Order, PROCESSES};
    use crate::clock::MachineClock;
    use crate::source::{Source, scan_of};
    use isotherm_model::batch::ObservedAccess;
    use isotherm_model::batch::Process;
    use isotherm_model::units::Bytes;
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

    fn look(damon: &mut Damon, root: &Path) -> Vec<ObservedAccess> {
        scan_of(damon, (&MachineClock, root), &[], &BTreeMap::new())
    }

    /// As [`look`], after all commands are executed and the kdamonds' reports are read.
    fn look_when_read(damon: &mut Damon, root: &Path) -> Vec<ObservedAccess> {
        let told = damon.reader.wait();
        damon.take(told, 4096);
        look(damon, root)
    }

    #[test]
    fn a_process_gets_a_kdamond_whose_regions_become_accesses() {
        let root = machine(PROCESSES, "0\n", "vaddr\nfvaddr\npaddr\n", "-1\n");
        let root = root.path();
        tell(root, &[(4096..12_288, 7), (16_384..24_576, 0)]);
        let mut damon = open(root).unwrap();
        damon.watch(&[PROCESS]);
        let seen = look_when_read(&mut damon, root);
        assert_eq!(text(root, "0/contexts/0/targets/0/pid_target"), "4711");
        assert_eq!(text(root, "0/contexts/0/operations"), "vaddr");
        assert_eq!(damon.watched().collect::<Vec<_>>(), [PROCESS]);
        assert_eq!(seen.len(), 1, "what was not accessed is not seen");
        assert_eq!((seen[0].address, seen[0].bytes), (4096, Bytes(8192)));
        assert_eq!((seen[0].count, seen[0].process), (14, PROCESS));
        damon.watch(&[]);
        assert_eq!(look_when_read(&mut damon, root), []);
        assert_eq!(text(root, "0/state"), "off");
        drop(damon);
        assert_eq!(text(root, "nr_kdamonds"), "0");
    }

    #[test]
    fn a_kdamond_that_takes_long_to_tell_does_not_hold_up_a_look() {
        let root = machine(PROCESSES, "0\n", "vaddr\n", "-1\n");
        let root = root.path();
        tell(root, &[(4096..12_288, 7)]);
        let mut damon = open(root).unwrap();
        damon.watch(&[PROCESS]);
        assert_eq!(look_when_read(&mut damon, root).len(), 1);
        // No command is in progress any more.
        let _ = damon.reader.wait();
        // Both a command to read and one to change the intervals wait for the end of a report.
        let slow = Slow::new(root, 0);
        tell(root, &[(4096..16_384, 9)]);
        damon.reader.order(Order::Slow(64));
        for _ in 0..3 {
            damon.prepare();
            let seen = look(&mut damon, root);
            assert_eq!(seen[0].count, 14, "the newest report there is");
        }
        let _obeys = slow.end();
        let seen = look_when_read(&mut damon, root);
        assert_eq!(seen[0].count, 27);
        assert_eq!(
            text(root, "0/contexts/0/monitoring_attrs/intervals/aggr_us"),
            "6400000"
        );
        // While it responds: dropping switches the kdamonds off.
        drop(damon);
    }

    #[test]
    fn a_slower_pace_keeps_the_kdamonds_and_their_regions() {
        let root = machine(PROCESSES, "0\n", "vaddr\n", "-1\n");
        let root = root.path();
        let mut commands = Slow::new(root, 0).end();
        let mut damon = open(root).unwrap();
        damon.watch(&[PROCESS]);
        let _ = look_when_read(&mut damon, root);
        assert!(commands.taken().starts_with("on"));
        damon.reader.order(Order::Slow(4));
        let _ = look_when_read(&mut damon, root);
        let taken = commands.taken();
        assert!(
            taken.contains("commit") && !taken.contains("off"),
            "{taken}"
        );
        let interval = text(root, "0/contexts/0/monitoring_attrs/intervals/sample_us");
        assert_eq!(interval, "20000");
    }

    #[test]
    fn kdamonds_of_others_are_left_alone_and_those_of_a_killed_daemon_are_taken_over() {
        let root = machine(PROCESSES, "4\n", "vaddr\n", "77\n");
        let error = open(root.path()).unwrap_err();
        assert!(error.contains("another program"), "{error}");
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
