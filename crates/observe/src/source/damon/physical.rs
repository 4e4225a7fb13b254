//! [`PhysicalDamon`] is a source of accessed bits by page frame, for the daemon: one kdamond (a thread of the kernel's DAMON) watches all
//! memory, however many processes there are, and the accesses of its regions go to the processes by the frames of their pages.
//!
//! Its regions are ranges of physical addresses. A lookup of each page would cost more than DAMON itself, so a few pages of each unit
//! represent it, others in every epoch.
//!
//! ```text
//! frames    |   9 of 20   |    not reported    |  4 of 20  |     accessed checks, by DAMON
//!                ^     ^            ^                ^
//! unit           x     x            x                x           so (9+9+0+4)/4 a page
//! ```
//!
//! One scan gives a rough figure for a unit: its pages are among those of other units, and a unit that moved is in frames where DAMON has
//! found no accesses yet. So half of a unit's earlier hits stay at every scan.
//!
//! `/proc/iomem` lists the ranges of memory. Its addresses, and the numbers of frames, read as zero without `CAP_SYS_ADMIN`.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::Path;

use isotherm_model::batch::{Process, SourceReport};
use isotherm_model::movement::AddressRange;
use isotherm_model::source_kind::SourceKind;
use isotherm_model::spans;
use isotherm_model::units::Bytes;

use super::admin::{Admin, Monitoring, Region, Target};
use super::processes::COST;
use super::reader::{Reader, ReaderReply};
use crate::source::frames::{Frame, Frames};
use crate::source::{AccessList, ScanContext, Source};
use crate::watch::memory::ProcessMemory;

/// Fewest and most regions of all memory. More of them find small data sooner and cost the kdamond
/// more; each accessed one is four files to be read, about 10 us.
const REGIONS: (u64, u64) = (100, 400);

/// Pages looked up in each unit, 0.3 us each.
const PAGES: u64 = 4;

/// Name of the ranges that programs may use, as in `System RAM (kmem)`.
const MEMORY: &str = "System RAM";

const REMEDY: &str = "CAP_SYS_ADMIN, which `accessed_bits = \"damon-paddr\"` keeps";

/// The source of accessed bits by frame.
#[derive(Debug)]
pub struct PhysicalDamon {
    reader: Reader,
    looks: u64,
    /// The hits so far in the units of each process.
    known: BTreeMap<Process, Known>,
    report: SourceReport,
}

/// Accessed units of a process, by address: their end, and their hits.
type Known = BTreeMap<u64, (Bytes, u64)>;

/// The only kdamond.
const KDAMOND: (usize, u32) = (0, 0);

impl PhysicalDamon {
    /// Sets up a kdamond below this root for all of its memory and starts it. A file in `state`
    /// records that it is ours, as with [`super::Damon::open`].
    ///
    /// # Errors
    /// A message with the remedy: the kernel has no DAMON, another program uses it, its files may
    /// not be written, or the kernel hides the memory ranges.
    pub fn open(root: &Path, state: Option<&Path>, budget_ppm: u64) -> Result<Self, String> {
        let path = root.join("proc/iomem");
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("{}: {error}; DAMON needs {REMEDY}", path.display()))?;
        let memory = memory(&text);
        if memory.is_empty() {
            return Err(format!(
                "{} hides the addresses of memory; {REMEDY}, shows them",
                path.display()
            ));
        }
        let admin = Admin::open(root, state, 1, ("paddr", "CONFIG_DAMON_PADDR"))?;
        let monitoring = Monitoring {
            target: Target::Physical(memory),
            interval: 1,
            regions: REGIONS,
            accesses_at_least: 1,
        };
        admin
            .begin(KDAMOND.0, &monitoring)
            .map_err(|error| format!("DAMON does not watch physical memory: {error}"))?;
        let mut reader = Reader::new(admin, budget_ppm, Some((KDAMOND, monitoring)))?;
        reader.read();
        Ok(Self {
            reader,
            looks: 0,
            known: BTreeMap::new(),
            report: SourceReport::new(SourceKind::DamonPhysical.word(), COST),
        })
    }

    fn take(&mut self, told: Vec<ReaderReply>, look: &ScanContext<'_>) {
        for one in told {
            match one {
                ReaderReply::Regions { regions, .. } => self.learn(&regions, look),
                ReaderReply::Refused { error, .. } | ReaderReply::Ended { error, .. } => {
                    self.report.warning = format!("DAMON reports no regions: {error}");
                }
                ReaderReply::Spent(cost) => self.report.cost += cost,
                ReaderReply::Done => {}
            }
        }
    }

    fn learn(&mut self, regions: &[Region], look: &ScanContext<'_>) {
        let begin = look.clock.busy();
        self.looks = self.looks.wrapping_add(1);
        for (process, resident) in look.resident {
            // A process that has ended is no failure; any other error applies to all.
            match self.learn_of(regions, look.proc_root, *process, resident, look.page) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.report.warning = format!("frame numbers: {error}"),
            }
        }
        self.report.cost += look.clock.busy().saturating_sub(begin);
    }

    /// Adds the accesses to a process, by unit: one hit for each page and check that found it accessed, averaged
    /// over this scan and the earlier ones. A process that has ended is dropped.
    fn learn_of(
        &mut self,
        regions: &[Region],
        proc_root: &Path,
        process: Process,
        resident: &ProcessMemory,
        page: u64,
    ) -> io::Result<()> {
        let page = page.max(1);
        let before = self.known.remove(&process).unwrap_or_default();
        let frames = Frames::open(proc_root, process.pid, page)?;
        let mut known = Known::new();
        for (range, bytes, addresses) in resident.samples(page, PAGES, self.looks) {
            let (mut found, mut accesses) = (0_u64, 0_u64);
            for address in addresses {
                match frames.of(address)? {
                    Frame::Absent => {}
                    Frame::Hidden => {
                        self.report.warning =
                            format!("the kernel hides frame numbers; {REMEDY}, shows them");
                    }
                    Frame::Number(frame) => {
                        found += 1;
                        accesses = accesses
                            .saturating_add(accesses_at(regions, frame.saturating_mul(page)));
                    }
                }
            }
            self.report.taken += found;
            let pages = bytes.0 / page;
            let now = pages.saturating_mul(accesses) / found.max(1);
            let before = before.get(&range.start).map(|(_, hits)| *hits);
            let hits = before.map_or(now, |before| before / 2 + now / 2);
            if hits > 0 {
                known.insert(range.start, (range.bytes, hits));
                self.report.usable += found;
            }
        }
        self.known.insert(process, known);
        Ok(())
    }
}

impl Source for PhysicalDamon {
    fn report(&self) -> SourceReport {
        self.report.clone()
    }

    fn set_budget(&mut self, budget_ppm: u64) {
        self.reader.pace.set_budget(budget_ppm);
    }

    #[cfg(test)]
    fn kept(&self) -> usize {
        self.known.len()
    }

    fn covers(&self, _process: &Process) -> bool {
        true
    }

    /// Starts a reading of the kdamond where one is due, in the middle of an epoch.
    fn prepare(&mut self) {
        self.reader.prepare();
    }

    /// Adds the accesses to the resident memory of these processes, and adapts to their cost. Never waits: until the
    /// kdamond reports again, the earlier data stands for it.
    fn scan(&mut self, scan: &mut ScanContext<'_>, accesses: &mut AccessList) {
        let told = self.reader.told();
        self.take(told, scan);
        let is_there = |process: &Process| scan.resident.contains_key(process);
        self.known.retain(|process, _| is_there(process));
        for (process, known) in &self.known {
            for (&start, &(bytes, hits)) in known {
                let range = AddressRange { start, bytes };
                let hits = (SourceKind::DamonPhysical, hits);
                accesses.add_hits(&mut self.report, (*process, range), hits);
            }
        }
        self.reader.end_epoch(self.report.cost, scan.span);
    }
}

/// The number of checks that found a physical address accessed.
fn accesses_at(regions: &[Region], address: u64) -> u64 {
    let after = regions.partition_point(|region| region.range.start <= address);
    let region = after.checked_sub(1).and_then(|at| regions.get(at));
    let region = region.filter(|region| address < region.range.end);
    region.map_or(0, |region| region.accesses)
}

/// The ranges of memory in the text of `/proc/iomem`, sorted and apart: `00100000-bfffffff : System RAM`,
/// the end included, on any level. Hidden ranges and malformed lines are left out.
fn memory(text: &str) -> Vec<Range<u64>> {
    let range = |line: &str| {
        let (range, name) = line.trim().split_once(" : ")?;
        let (start, last) = range.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let range = number(start)?..number(last)?.checked_add(1)?;
        (name.starts_with(MEMORY) && range.end > range.start && range.end > 1).then_some(range)
    };
    let mut ranges: Vec<Range<u64>> = text.lines().filter_map(range).collect();
    ranges.sort_unstable_by_key(|range| range.start);
    spans::keep_apart(&mut ranges, |range| range);
    ranges
}

#[cfg(test)]
mod tests {
    use super::super::fake_kdamond::{machine, tell, text};
    use super::{PhysicalDamon, Region, accesses_at, memory};
    use crate::clock::MachineClock;
    use crate::source::frames::PRESENT;
    use crate::source::{AccessList, ScanContext, Source, scan_of};
    use crate::watch::memory::ProcessMemory;
    use isotherm_model::batch::{ObservedAccess, Process};
    use isotherm_model::port::Clock;
    use isotherm_model::units::Nanos;
    use std::collections::BTreeMap;
    use std::path::Path;

    const PAGE: u64 = 4096;
    const UNIT: u64 = 16 * PAGE;
    const PROCESS: Process = Process { pid: 7, image: 0 };

    const IOMEM: &str = "\
00000000-00000fff : Reserved
00001000-0009fbff : System RAM
00100000-bfffffff : System RAM
  01000000-022090c7 : Kernel code
c0001000-eebfffff : PCI Bus 0000:00
100000000-1ffffffff : CXL Window 0
  100000000-1ffffffff : dax0.0
    100000000-17fffffff : System RAM (kmem)
";

    /// A machine on which page `n` of a process is in frame `2000 - n`, if frames are shown.
    fn played(frames_are_shown: bool) -> tempfile::TempDir {
        let root = machine(1, "0\n", "vaddr\npaddr\n", "-1\n");
        let path = |name: &str| root.path().join(name);
        std::fs::create_dir_all(path("proc/7")).unwrap();
        std::fs::write(path("proc/iomem"), IOMEM).unwrap();
        let frame = |page: u64| if frames_are_shown { 2000 - page } else { 0 };
        let pages = (0..1024).flat_map(|page| (PRESENT | frame(page)).to_ne_bytes());
        std::fs::write(path("proc/7/pagemap"), pages.collect::<Vec<u8>>()).unwrap();
        root
    }

    fn open(root: &Path) -> Result<PhysicalDamon, String> {
        PhysicalDamon::open(root, Some(root), 1_000_000_000)
    }

    /// Hits by unit on the first units of the process, after the kdamond's report was read.
    fn look(damon: &mut PhysicalDamon, root: &Path, units: u64) -> Vec<(u64, u64)> {
        let whole = 0..units * UNIT;
        let resident = ProcessMemory::of_spans(std::slice::from_ref(&whole), UNIT);
        let resident = BTreeMap::from([(PROCESS, resident)]);
        let mut scan = ScanContext {
            clock: &MachineClock,
            proc_root: &root.join("proc"),
            page: PAGE,
            span: Nanos(1_000_000_000),
            busy: Nanos::ZERO,
            processes: &[],
            resident: &resident,
            sessions: None,
        };
        let told = damon.reader.wait();
        damon.take(told, &scan);
        let mut seen = AccessList::default();
        damon.scan(&mut scan, &mut seen);
        let seen = seen.as_slice().iter();
        seen.map(|one| (one.address / UNIT, one.count)).collect()
    }

    #[test]
    fn all_memory_is_one_target_and_accessed_frames_are_told_to_the_units_in_them() {
        let root = played(true);
        let root = root.path();
        let mut damon = open(root).unwrap();
        assert_eq!(text(root, "0/contexts/0/operations"), "paddr");
        assert_eq!(text(root, "0/contexts/0/targets/0/regions/nr_regions"), "3");
        assert_eq!(
            text(root, "0/contexts/0/targets/0/regions/1/start"),
            "1048576"
        );
        assert_eq!(
            text(root, "0/contexts/0/targets/0/regions/1/end"),
            "3221225472"
        );
        // The frames of the second unit, backwards: pages 16 to 31.
        tell(
            root,
            &[((2000 - 31) * PAGE..(2000 - 15) * PAGE, 5), (1..2, 9)],
        );
        assert_eq!(look(&mut damon, root, 4), [(1, 16 * 5)]);
        // No accesses: half of the hits stay, and half of that.
        tell(root, &[(1..2, 9), (1..2, 9)]);
        assert_eq!(look(&mut damon, root, 4), [(1, 40)]);
        assert_eq!(look(&mut damon, root, 4), [(1, 20)]);
        assert_eq!(damon.report().warning, "");
        std::fs::remove_file(root.join("proc/7/pagemap")).unwrap();
        assert_eq!(look(&mut damon, root, 4), [], "a process that ended");
        assert_eq!(damon.report().warning, "");
        drop(damon);
        assert_eq!(text(root, "0/state"), "off");
        assert_eq!(text(root, "nr_kdamonds"), "0");
    }

    #[test]
    fn a_unit_that_lies_in_an_accessed_region_in_part_counts_by_that_part() {
        let root = played(true);
        let mut damon = open(root.path()).unwrap();
        // Pages 24 to 31: two of the four that represent the second unit.
        tell(root.path(), &[((2000 - 31) * PAGE..(2000 - 23) * PAGE, 6)]);
        assert_eq!(look(&mut damon, root.path(), 2), [(1, 16 * 6 / 2)]);
    }

    #[test]
    fn kdamonds_of_others_are_left_alone() {
        let root = played(true);
        std::fs::write(
            root.path()
                .join(super::super::admin::ADMIN)
                .join("nr_kdamonds"),
            "1\n",
        )
        .unwrap();
        let error = open(root.path()).unwrap_err();
        assert!(error.contains("another program"), "{error}");
        assert_eq!(text(root.path(), "0/state"), "", "nothing was written");
        assert_eq!(text(root.path(), "nr_kdamonds"), "1\n");
    }

    #[test]
    fn what_is_hidden_or_not_built_in_is_named() {
        let root = machine(1, "0\n", "vaddr\n", "-1\n");
        assert!(open(root.path()).unwrap_err().contains("iomem"));
        let proc = root.path().join("proc");
        std::fs::create_dir_all(&proc).unwrap();
        std::fs::write(proc.join("iomem"), "00000000-00000000 : System RAM\n").unwrap();
        let error = open(root.path()).unwrap_err();
        assert!(
            error.contains("hides") && error.contains("CAP_SYS_ADMIN"),
            "{error}"
        );
        std::fs::write(proc.join("iomem"), IOMEM).unwrap();
        let error = open(root.path()).unwrap_err();
        assert!(error.contains("CONFIG_DAMON_PADDR"), "{error}");
        let hidden = played(false);
        let mut damon = open(hidden.path()).unwrap();
        tell(hidden.path(), &[(0..1 << 40, 3)]);
        assert_eq!(look(&mut damon, hidden.path(), 2), []);
        assert!(damon.report().warning.contains("hides frame numbers"));
    }

    #[test]
    fn memory_is_found_on_every_level_and_what_makes_no_sense_is_left_out() {
        let found = [
            0x1000..0x9_fc00,
            0x10_0000..0xc000_0000,
            0x1_0000_0000..0x1_8000_0000,
        ];
        assert_eq!(memory(IOMEM), found);
        let hostile = "x\n9-1 : System RAM\n1-ffffffffffffffff : System RAM\n5-9 : System RAM\n6-7 : System RAM\n : \n20-2f : System RAM\n";
        assert_eq!(memory(hostile), [5..10, 0x20..0x30]);
    }

    #[test]
    fn an_address_between_regions_was_not_accessed() {
        let region = |range, accesses| Region { range, accesses };
        let regions = [region(10..20, 3), region(30..40, 4)];
        let told = [0, 10, 19, 20, 29, 39, 40, u64::MAX].map(|at| accesses_at(&regions, at));
        assert_eq!(told, [0, 3, 3, 0, 0, 4, 0, 0]);
    }

    /// On this machine, where root may read the files and no other program uses DAMON.
    #[test]
    fn this_process_is_seen_to_access_what_it_writes() {
        let state = tempfile::tempdir().unwrap();
        let mut damon = match PhysicalDamon::open(Path::new("/"), Some(state.path()), 1_000_000_000)
        {
            Ok(damon) => damon,
            Err(why) => return isotherm_skip::skip!("DAMON by frame: {why}"),
        };
        let layout = crate::watch::memory::NodeLayout {
            proc_root: "/proc".into(),
            unit: 2 << 20,
            page: rustix::param::page_size() as u64,
            fast: std::collections::BTreeSet::new(),
        };
        let process = Process {
            pid: std::process::id(),
            image: 0,
        };
        let mut data = vec![1_u8; 64 << 20];
        let resident = BTreeMap::from([(process, layout.resident(process, 0).unwrap())]);
        let from = data.as_ptr() as u64;
        let to = from + data.len() as u64;
        // Regions adapt over many reports; on a busy machine this thread may not run in some.
        for round in 0..600_u32 {
            let begun = std::time::Instant::now();
            while begun.elapsed().as_millis() < 100 {
                data.iter_mut()
                    .step_by(4096)
                    .for_each(|byte| *byte = byte.wrapping_add(1));
            }
            let machine: (&dyn Clock, _) = (&MachineClock, Path::new("/proc"));
            let seen = scan_of(&mut damon, machine, &[], &resident);
            let inside = |one: &ObservedAccess| one.address >= from && one.end() <= to;
            if seen.iter().any(inside) {
                return println!("seen in round {round}: {:?}", damon.report());
            }
        }
        panic!("nothing was seen: {:?}", damon.report());
    }
}
