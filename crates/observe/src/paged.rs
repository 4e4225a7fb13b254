//! [`PagedMemory`] scans page tables for page-out: for each unit of a process's private anonymous memory, the bytes in memory, in swap, and
//! returned from swap since the last scan. It also reads the processor time of the processes' own code, their major faults and the memory
//! stalls of their control groups, and lists the actions that bring everything back.
//!
//! A page that was in swap at one scan and is in memory at the next was touched: the one exact access signal that a program without
//! a PMU, a runtime or the kernel's help gives. What Isotherm itself brought back ([`PagedMemory::moved`])
//! does not count. A page that was freed while it was out did not come back either.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use isotherm_model::batch::Process;
use isotherm_model::movement::{AddressRange, RangeAction, RangeOutcome};
use isotherm_model::outcome::Fate;
use isotherm_model::paged::{IN_MEMORY, PAGED_OUT, PagedUnit};
use isotherm_model::spans;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::watch::Unit;
use isotherm_sys::control_group::{lines_of, unified_group};

use crate::process_usage::ProcessStat;
use crate::resident::{PageTables, PlacedSpan, Span};
use crate::watch::memory::movable;

/// Bytes of a huge page.
const HUGE_PAGE: u64 = 2 << 20;

/// The memory of the processes that are scanned.
#[derive(Debug, Default)]
pub struct PagedMemory {
    root: PathBuf,
    unit: u64,
    processes: BTreeMap<Process, LastScan>,
    /// Number of the epoch's scan.
    turn: u64,
}

/// A process at its last scan.
#[derive(Debug)]
struct LastScan {
    tables: PageTables,
    /// The spans that were in swap, in order.
    out: Vec<Span>,
    /// Bytes that came back since and were paged out again, by the start of the unit.
    returned: BTreeMap<u64, u64>,
    stalls: Option<StallCounter>,
    /// The kernel's counts of the process at the last call of [`PagedMemory::progress`].
    progress: Option<ProgramProgress>,
    turn: u64,
}

impl LastScan {
    /// Records spans that left memory. Those that were already out at the scan had come back meanwhile.
    fn left(&mut self, mut spans: Vec<Span>, unit: u64) {
        spans.sort_unstable_by_key(|span| span.start);
        for span in &spans {
            for (start, part) in spans::by_unit(span, unit) {
                let bytes = spans::bytes_within(&self.out, &part);
                if bytes > 0 {
                    *self.returned.entry(start).or_default() += bytes;
                }
            }
        }
        spans.append(&mut self.out);
        self.out = spans::joined(spans);
    }
}

impl PagedMemory {
    /// Units of this size, a multiple of the page size, of processes below `root` (`/`).
    #[must_use]
    pub fn new(root: &Path, unit: Bytes) -> Self {
        Self {
            root: root.to_owned(),
            unit: unit.0.max(1),
            ..Self::default()
        }
    }

    /// Scans these processes for an epoch, and forgets those that have ended. The private anonymous memory of each, one entry for each
    /// unit; a process that ended meanwhile, or may not be read, has none.
    pub fn scan(&mut self, processes: impl Iterator<Item = Process>) -> Vec<PagedUnit> {
        let proc_root = self.root.join("proc");
        let lives = |process: &Process| proc_root.join(process.pid.to_string()).exists();
        self.processes.retain(|process, _| lives(process));
        self.turn += 1;
        let units = processes.map(|process| self.units(process).unwrap_or_default());
        units.flatten().collect()
    }

    /// The private anonymous memory of a process, one entry for each unit, by address. Empty where it has ended.
    ///
    /// # Errors
    /// Its mappings or page tables may not be read.
    fn units(&mut self, process: Process) -> io::Result<Vec<PagedUnit>> {
        let Some(ranges) = self.ranges(process)? else {
            return Ok(Vec::new());
        };
        let proc_root = self.root.join("proc");
        let last = match self.processes.entry(process) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => entry.insert(LastScan {
                tables: PageTables::open(&proc_root, process.pid)?,
                out: Vec::new(),
                returned: BTreeMap::new(),
                stalls: StallCounter::open(&self.root, process.pid),
                progress: None,
                turn: self.turn,
            }),
        };
        let placed = last.tables.placed(&ranges)?;
        // What came back in epochs without a scan came back at an unknown time.
        let is_next = last.turn + 1 >= self.turn;
        let before: &[Span] = if is_next { &last.out } else { &[] };
        let mut units = units(process, self.unit, &placed, before);
        let returned = std::mem::take(&mut last.returned);
        if is_next {
            for unit in &mut units {
                unit.returned += Bytes(returned.get(&unit.unit.start).copied().unwrap_or(0));
            }
        }
        (last.out, last.turn) = (out(&placed), self.turn);
        Ok(units)
    }

    /// The memory of a scanned process between two scans: returned bytes are 0 here, and left for the next scan.
    ///
    /// # Errors
    /// Its mappings or page tables may not be read.
    pub fn look(&self, process: Process) -> io::Result<Vec<PagedUnit>> {
        let (Some(last), Some(ranges)) = (self.processes.get(&process), self.ranges(process)?)
        else {
            return Ok(Vec::new());
        };
        Ok(units(
            process,
            self.unit,
            &last.tables.placed(&ranges)?,
            &[],
        ))
    }

    /// The private anonymous mappings of a process; `None` where it has ended.
    fn ranges(&self, process: Process) -> io::Result<Option<Vec<Span>>> {
        let process = self.root.join("proc").join(process.pid.to_string());
        match std::fs::read_to_string(process.join("maps")) {
            Ok(maps) => Ok(Some(movable(&maps))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Records the moves since the scan. Pages that left are out from now on, so that they count as touched if they return before the
    /// next scan; ranges that were brought back are looked up again, and do not count.
    pub fn moved(&mut self, outcomes: &[RangeOutcome]) {
        let mut leaving: BTreeMap<Process, Vec<Span>> = BTreeMap::new();
        for outcome in outcomes {
            let RangeAction {
                process,
                range,
                node,
            } = outcome.action;
            if node == PAGED_OUT {
                leaving.entry(process).or_default().extend(left(outcome));
                continue;
            }
            let before = leaving.remove(&process).unwrap_or_default();
            let Some(last) = self.processes.get_mut(&process) else {
                continue;
            };
            last.left(before, self.unit);
            let whole = range.start..range.end();
            let now = last.tables.placed(std::slice::from_ref(&whole));
            last.out = replaced(&last.out, &whole, &out(&now.unwrap_or_default()));
        }
        for (process, spans) in leaving {
            if let Some(last) = self.processes.get_mut(&process) {
                last.left(spans, self.unit);
            }
        }
    }

    /// The actions that bring back everything that is out, of all scanned processes that are not forgotten.
    #[must_use]
    pub fn ways_back(&self) -> Vec<RangeAction> {
        let ways = self.processes.iter().flat_map(|(process, last)| {
            last.out.iter().map(|span| RangeAction {
                process: *process,
                range: AddressRange::between(span.start, span.end),
                node: IN_MEMORY,
            })
        });
        ways.collect()
    }

    /// Time for which the control groups of the processes stalled on memory since the last call; `None` where no
    /// group has a stall account. Processes of one group count once.
    pub fn stalled(&mut self) -> Option<Nanos> {
        let mut groups = BTreeMap::new();
        for last in self.processes.values_mut() {
            if let Some(stalls) = &mut last.stalls
                && let Some(time) = stalls.since_last()
            {
                groups.insert(stalls.file.clone(), time);
            }
        }
        (!groups.is_empty()).then(|| groups.into_values().sum())
    }

    /// The work and faults of the scanned processes since the last call, by the kernel's counts. Far cheaper than a scan.
    pub fn progress(&mut self) -> ProgramProgress {
        let proc_root = self.root.join("proc");
        let mut progress = ProgramProgress::default();
        for (process, last) in &mut self.processes {
            let more = progress_since(&mut last.progress, &proc_root, process.pid);
            progress.awaited_pages = progress.awaited_pages.saturating_add(more.awaited_pages);
            progress.worked += more.worked;
        }
        progress
    }
}

/// The work and faults of processes in a span of time, all their threads together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramProgress {
    /// Processor time of their own code, in steps of the kernel's clock of 10 ms.
    pub worked: Nanos,
    /// Their major faults: mostly pages that came back from swap. What was brought back from outside does not count.
    pub awaited_pages: u64,
}

/// The progress of a process since `last`, which is replaced (`Documentation/filesystems/proc.rst`). Nothing at the first call, and where
/// the process has ended.
fn progress_since(
    last: &mut Option<ProgramProgress>,
    proc_root: &Path,
    pid: u32,
) -> ProgramProgress {
    let Some(stat) = ProcessStat::read(proc_root, pid) else {
        return ProgramProgress::default();
    };
    let now = ProgramProgress {
        worked: stat.own_time,
        awaited_pages: stat.major_faults,
    };
    let before = last.replace(now).unwrap_or(now);
    ProgramProgress {
        worked: now.worked.saturating_sub(before.worked),
        awaited_pages: now.awaited_pages.saturating_sub(before.awaited_pages),
    }
}

/// The stall account of a control group of version 2: `memory.pressure` (`Documentation/accounting/psi.rst`). The account of
/// the root group is the whole machine's, and of no use here.
#[derive(Debug)]
struct StallCounter {
    file: PathBuf,
    last: u64,
}

impl StallCounter {
    fn open(root: &Path, pid: u32) -> Option<Self> {
        let lines = lines_of(root, pid);
        let group = unified_group(&lines).trim_start_matches('/');
        if group.is_empty() || group.split('/').any(|name| name == "..") {
            return None;
        }
        let mounts = ["sys/fs/cgroup", "sys/fs/cgroup/unified"];
        let files = mounts.map(|mount| root.join(mount).join(group).join("memory.pressure"));
        let file = files.into_iter().find(|file| file.exists())?;
        let last = total(&std::fs::read_to_string(&file).ok()?)?;
        Some(Self { file, last })
    }

    fn since_last(&mut self) -> Option<Nanos> {
        let now = total(&std::fs::read_to_string(&self.file).ok()?)?;
        let microseconds = now.saturating_sub(std::mem::replace(&mut self.last, now));
        Some(Nanos(microseconds.saturating_mul(1_000)))
    }
}

/// Microseconds of `some avg10=0.00 avg60=0.00 avg300=0.00 total=4711`.
fn total(pressure: &str) -> Option<u64> {
    let some = pressure
        .lines()
        .find_map(|line| line.strip_prefix("some "))?;
    some.split_ascii_whitespace()
        .find_map(|word| word.strip_prefix("total=")?.parse().ok())
}

/// The parts of an outcome that left memory.
fn left(outcome: &RangeOutcome) -> Vec<Span> {
    let moved = outcome.ranges().filter(|(_, fate)| **fate == Fate::Moved);
    moved.map(|(range, _)| range.start..range.end()).collect()
}

fn out(placed: &[PlacedSpan]) -> Vec<Span> {
    let out = placed.iter().filter(|placed| placed.is_out);
    out.map(|placed| placed.span.clone()).collect()
}

/// Adds the spans up by unit. What is in memory and was out at the last scan, `before`, has returned.
fn units(process: Process, unit: u64, placed: &[PlacedSpan], before: &[Span]) -> Vec<PagedUnit> {
    let mut units: Vec<PagedUnit> = Vec::new();
    for placed in placed {
        for (start, part) in spans::by_unit(&placed.span, unit) {
            if units.last().is_none_or(|last| last.unit.start != start) {
                units.push(PagedUnit {
                    unit: Unit { process, start },
                    present: Bytes::ZERO,
                    out: Bytes::ZERO,
                    returned: Bytes::ZERO,
                    grain: Bytes(unit),
                    has_huge: false,
                });
            }
            let Some(last) = units.last_mut() else { break };
            match placed.is_out {
                true => last.out += Bytes(part.end - part.start),
                false => {
                    last.present += Bytes(part.end - part.start);
                    last.returned += Bytes(spans::bytes_within(before, &part));
                }
            }
            if placed.is_huge {
                last.has_huge = true;
                last.grain = Bytes(unit.max(HUGE_PAGE));
            }
        }
    }
    units
}

/// Spans in order, with their part within `range` replaced.
fn replaced(spans: &[Span], range: &Span, with: &[Span]) -> Vec<Span> {
    let before = spans
        .iter()
        .map(|span| span.start..span.end.min(range.start));
    let after = spans.iter().map(|span| span.start.max(range.end)..span.end);
    let all = before.chain(with.iter().cloned()).chain(after);
    let mut all: Vec<Span> = all.filter(|span| span.start < span.end).collect();
    all.sort_unstable_by_key(|span| span.start);
    all
}

#[cfg(test)]
mod tests {
    use isotherm_model::batch::Process;
    use isotherm_model::movement::{AddressRange, RangeAction, RangeOutcome};
    use isotherm_model::outcome::Fate;
    use isotherm_model::paged::{IN_MEMORY, PAGED_OUT};
    use isotherm_model::units::{Bytes, Nanos};
    use isotherm_sys::node_memory::NodeMemory;

    use super::{
        PagedMemory, PlacedSpan, ProgramProgress, StallCounter, progress_since, replaced, total,
        units,
    };

    const PAGE: u64 = 4096;
    const UNIT: u64 = 4 * PAGE;

    fn placed(pages: std::ops::Range<u64>, is_out: bool) -> PlacedSpan {
        PlacedSpan {
            span: pages.start * PAGE..pages.end * PAGE,
            is_out,
            is_huge: false,
        }
    }

    #[test]
    fn pages_are_counted_by_unit_and_those_that_were_out_have_returned() {
        let now = [placed(1..3, false), placed(3..5, true), placed(6..9, false)];
        let before = [0..2 * PAGE, 4 * PAGE..7 * PAGE];
        let found = units(Process::default(), UNIT, &now, &before);
        let pages = |bytes: Bytes| bytes.0 / PAGE;
        let counts: Vec<_> = found
            .iter()
            .map(|unit| {
                (
                    unit.unit.start / UNIT,
                    pages(unit.present),
                    pages(unit.out),
                    pages(unit.returned),
                )
            })
            .collect();
        assert_eq!(counts, [(0, 2, 1, 1), (1, 2, 1, 1), (2, 1, 0, 0)]);
        assert!(found.iter().all(|unit| unit.grain == Bytes(UNIT)));
    }

    #[test]
    fn what_was_moved_is_replaced_and_its_surroundings_stay() {
        let spans = [0..10, 20..30, 40..50];
        let with = std::slice::from_ref(&(22..24));
        assert_eq!(replaced(&spans, &(5..45), with), [0..5, 22..24, 45..50]);
        assert_eq!(replaced(&spans, &(60..70), &[]), spans);
    }

    #[test]
    fn a_group_that_stalls_is_read_and_the_root_is_not() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let pressure = |total: u64| {
            format!(
                "some avg10=0.00 avg60=0.00 avg300=0.00 total={total}\nfull avg10=0.00 total=1\n"
            )
        };
        write("proc/7/cgroup", "5:memory:/a\n0::/app\n");
        write("proc/8/cgroup", "0::/\n");
        write("sys/fs/cgroup/memory.pressure", &pressure(5));
        write("sys/fs/cgroup/unified/app/memory.pressure", &pressure(100));
        assert!(StallCounter::open(root.path(), 8).is_none());
        let mut counter = StallCounter::open(root.path(), 7).expect("a group");
        write("sys/fs/cgroup/unified/app/memory.pressure", &pressure(350));
        assert_eq!(counter.since_last(), Some(Nanos(250_000)));
        assert_eq!(counter.since_last(), Some(Nanos(0)));
        assert_eq!(total("some avg10=1\n"), None);
    }

    #[test]
    fn counts_of_a_process_begin_at_the_first_look() {
        let root = tempfile::tempdir().unwrap();
        let own = std::fs::read_to_string("/proc/self/stat").unwrap();
        let (name, rest) = own.rsplit_once(')').unwrap();
        let stat = |faults: u64, ticks: u64| {
            let mut fields: Vec<String> = rest.split_whitespace().map(str::to_owned).collect();
            fields[9] = faults.to_string();
            fields[11] = ticks.to_string();
            let process = root.path().join("7");
            std::fs::create_dir_all(&process).unwrap();
            std::fs::write(
                process.join("stat"),
                format!("{name}) {}\n", fields.join(" ")),
            )
            .unwrap();
        };
        let mut last = None;
        let mut since_last = |pid| progress_since(&mut last, root.path(), pid);
        let none = ProgramProgress::default();
        stat(1_000, 50);
        assert_eq!(since_last(7), none);
        stat(1_250, 50 + rustix::param::clock_ticks_per_second());
        let second = ProgramProgress {
            worked: Nanos(1_000_000_000),
            awaited_pages: 250,
        };
        assert_eq!(since_last(7), second);
        assert_eq!(since_last(7), none);
        assert_eq!(since_last(8), none, "no such process");
    }

    #[test]
    fn memory_of_this_process_is_present_and_what_it_brought_back_itself_has_not_returned() {
        let mut memory = NodeMemory::map(4 << 20).unwrap();
        memory.words().fill(7);
        let start = memory.words().as_ptr() as u64;
        let process = Process {
            pid: std::process::id(),
            image: 0,
        };
        let mut paged = PagedMemory::new("/".as_ref(), Bytes(1 << 20));
        let ours = |paged: &mut PagedMemory| {
            paged.turn += 1;
            let units = paged.units(process).expect("own page tables");
            let ours = units.into_iter();
            let ours: Vec<_> = ours
                .filter(|unit| (start..start + (4 << 20)).contains(&unit.unit.start))
                .collect();
            let sum = |of: fn(&super::PagedUnit) -> Bytes| ours.iter().map(of).sum::<Bytes>();
            (
                sum(|it| it.present),
                sum(|it| it.out),
                sum(|it| it.returned),
            )
        };
        let all = Bytes(4 << 20);
        assert_eq!(ours(&mut paged), (all, Bytes(0), Bytes(0)));
        // Without swap the pages stay.
        memory.page_out(0..512).expect("is advised");
        let (present, out, returned) = ours(&mut paged);
        assert_eq!((present.saturating_add(out), returned), (all, Bytes(0)));
        assert!(memory.words().iter().all(|word| *word == 7));
        let action = |node| RangeAction {
            process,
            range: AddressRange { start, bytes: all },
            node,
        };
        paged.moved(&[RangeOutcome::whole(action(PAGED_OUT), Fate::Moved)]);
        assert_eq!(
            ours(&mut paged),
            (all, Bytes(0), all),
            "it left and returned"
        );
        paged.moved(&[RangeOutcome::whole(action(PAGED_OUT), Fate::Moved)]);
        paged.moved(&[RangeOutcome::whole(action(IN_MEMORY), Fate::Moved)]);
        assert_eq!(ours(&mut paged), (all, Bytes(0), Bytes(0)));
        for _ in 0..2 {
            // The second time it had come back meanwhile.
            paged.moved(&[RangeOutcome::whole(action(PAGED_OUT), Fate::Moved)]);
        }
        let twice = Bytes(2 * all.0);
        assert_eq!(
            ours(&mut paged),
            (all, Bytes(0), twice),
            "it returned twice"
        );
        let is_ours = |action: &RangeAction| (start..start + all.0).contains(&action.range.start);
        assert!(!paged.ways_back().iter().any(is_ours));
    }
}
