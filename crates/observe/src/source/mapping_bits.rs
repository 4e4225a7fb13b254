//! [`MappingBits`], the source `accessed-bits`, clears the accessed bits of processes, waits for a short window, and reads how much of each
//! mapping was accessed (`/proc/pid/clear_refs`, the `Referenced` lines of `/proc/pid/smaps`).
//!
//! It works on every kernel, but is coarse: the kernel reports kilobytes of a whole mapping, so hot and cold data in
//! one mapping cannot be separated. DAMON finds regions inside mappings and adapts them to the access pattern; it
//! needs the right to write its sysfs files. A window of a whole epoch would saturate, because a program touches
//! every page of a hot set within a second; so the windows are short.

use std::io::{BufRead, BufReader};
use std::path::Path;

use isotherm_model::batch::{ObservedAccess, Process, SourceReport};
use isotherm_model::source_kind::SourceKind;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_sys::memory_map::mapped_range;

use super::cost_budget::CostBudget;
use super::{AccessList, ScanContext, Source};

/// The first and longest length of a window.
pub(crate) const WINDOW: Nanos = Nanos(50_000_000);

/// The shortest length of a window.
const SHORTEST: Nanos = Nanos(1_000_000);

/// The cost to the program of each page whose bit is cleared: its next access walks the page table and
/// sets the bit again. Measured with pages of 4 KiB in a virtual machine, where it is most expensive; a
/// huge page is counted as the small ones in it.
const PROGRAM_PAYS: Nanos = Nanos(1_000);

const COST: &str = "25 ms to clear and 35 ms to read per GiB; programs on 4 KiB pages ran 1.3 to 1.5 times as long in \
                    a virtual machine with shadow paging, on huge pages 1.0 times (2-core EPYC virtual machine, Linux \
                    6.18, 1 GiB)";

/// A mapping of `/proc/pid/smaps`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vma {
    /// First address.
    pub start: u64,
    /// First address past it.
    pub end: u64,
    /// Bytes that are resident.
    pub resident_bytes: u64,
    /// Bytes whose accessed bit is set.
    pub referenced_bytes: u64,
}

/// The length of the next window, from the result of the last one: half, where more than half of
/// the resident bytes were touched (hot and cold pages look the same), twice, where less than a
/// twentieth were.
pub(crate) fn next_window(window: Nanos, referenced: u64, resident: u64) -> Nanos {
    let share = |parts: u64| resident / parts;
    if referenced > share(2) {
        Nanos((window.0 / 2).max(SHORTEST.0))
    } else if referenced < share(20) {
        Nanos((window.0 * 2).min(WINDOW.0))
    } else {
        window
    }
}

/// Parses the mappings from the text of `smaps`. Malformed lines are skipped.
///
/// # Errors
/// The text could not be read to its end.
pub fn parse_smaps(text: impl BufRead, mut take: impl FnMut(Vma)) -> std::io::Result<()> {
    let mut vma: Option<Vma> = None;
    for line in text.split(b'\n') {
        let bytes = line?;
        let line = String::from_utf8_lossy(&bytes);
        if let (Some(bytes), Some(vma)) = (bytes_after(&line, "Rss:"), &mut vma) {
            vma.resident_bytes = bytes.min(vma.end - vma.start);
        } else if let Some(bytes) = bytes_after(&line, "Referenced:") {
            if let Some(mut vma) = vma.take() {
                vma.referenced_bytes = bytes.min(vma.end - vma.start);
                take(vma);
            }
        } else if let Some(mapping) = mapped_range(&bytes) {
            vma = Some(Vma {
                start: mapping.range.start,
                end: mapping.range.end,
                ..Vma::default()
            });
        }
    }
    Ok(())
}

/// The size in a line such as `Rss:  512 kB`.
fn bytes_after(line: &str, name: &str) -> Option<u64> {
    let value = line.strip_prefix(name)?.trim().strip_suffix("kB")?;
    value.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Accessed bits by mapping. Their cost to the program counts towards the budget.
#[derive(Debug)]
pub struct MappingBits {
    report: SourceReport,
    window: Nanos,
    budget: CostBudget,
}

impl MappingBits {
    /// A source that may use this many millionths of one processor's time.
    #[must_use]
    pub fn new(budget_ppm: u64) -> Self {
        Self {
            report: SourceReport::new(SourceKind::AccessedBits.word(), COST),
            window: WINDOW,
            budget: CostBudget::new(budget_ppm),
        }
    }

    /// Clears the bits of these processes; returns the processes for which that worked.
    fn clear(&mut self, proc_root: &Path, processes: &[Process]) -> Vec<Process> {
        let mut open = Vec::new();
        for process in processes {
            let file = proc_root.join(process.pid.to_string()).join("clear_refs");
            match std::fs::write(file, "1") {
                Ok(()) => open.push(*process),
                // The process ended after it was chosen.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    self.report.warning = format!(
                        "/proc/{}/clear_refs: {error}; it needs the same user, and a kernel \
                         with CONFIG_PROC_PAGE_MONITOR",
                        process.pid
                    );
                }
            }
        }
        open
    }

    /// Opens a window on the processes, waits, and adds the accesses in it; returns their number.
    fn window(&mut self, scan: &ScanContext<'_>, accesses: &mut AccessList) -> u64 {
        let open = self.clear(scan.proc_root, scan.processes);
        if open.is_empty() {
            return 0;
        }
        scan.clock.sleep(self.window);
        let (mut referenced, mut resident, mut taken) = (0, 0, 0);
        for process in open {
            let smaps = scan.proc_root.join(process.pid.to_string()).join("smaps");
            let Ok(smaps) = std::fs::File::open(smaps) else {
                continue;
            };
            // A process that ends during the read yields the mappings read so far.
            let smaps = BufReader::with_capacity(256 << 10, smaps);
            let _ = parse_smaps(smaps, |vma| {
                referenced += vma.referenced_bytes;
                resident += vma.resident_bytes;
                if let Some(access) = access(process, vma, scan.page) {
                    taken += access.count;
                    accesses.add(&mut self.report, access.count, access);
                }
            });
        }
        self.window = next_window(self.window, referenced, resident);
        taken
    }
}

impl Source for MappingBits {
    fn report(&self) -> SourceReport {
        self.report.clone()
    }

    fn set_budget(&mut self, budget_ppm: u64) {
        self.budget.set(budget_ppm);
    }

    fn scan(&mut self, scan: &mut ScanContext<'_>, accesses: &mut AccessList) {
        let Some(epochs) = self.budget.due() else {
            return;
        };
        let begin = scan.clock.busy();
        let taken = self.window(scan, accesses);
        self.report.taken += taken;
        self.report.cost += scan.clock.busy().saturating_sub(begin);
        self.report.cost += Nanos(taken.saturating_mul(PROGRAM_PAYS.0));
        // The window stands for all epochs since the last one.
        let span = Nanos(scan.span.0.saturating_mul(u64::from(epochs)));
        self.budget.learn(self.report.cost, span);
    }
}

fn access(process: Process, vma: Vma, page: u64) -> Option<ObservedAccess> {
    let source = SourceKind::AccessedBits;
    let count = vma.referenced_bytes / page.max(1);
    (count > 0).then_some(ObservedAccess {
        bytes: Bytes(vma.end - vma.start),
        ..ObservedAccess::at((process, vma.start), source, (count, source.unit(false)))
    })
}

#[cfg(test)]
mod tests {
    use super::{
        MappingBits, PROGRAM_PAYS, SHORTEST, Source, Vma, WINDOW, next_window, parse_smaps,
    };
    use crate::clock::MachineClock;
    use crate::source::scan_of;
    use isotherm_model::batch::ObservedAccess;
    use isotherm_model::batch::Process;
    use isotherm_model::units::Nanos;
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    const PROCESS: u32 = 3;

    fn look(bits: &mut MappingBits) -> Vec<ObservedAccess> {
        let process = Process {
            pid: std::process::id(),
            image: PROCESS,
        };
        scan_of(
            bits,
            (&MachineClock, Path::new("/proc")),
            &[process],
            &BTreeMap::new(),
        )
    }

    #[test]
    fn what_this_process_touches_in_a_window_is_seen() {
        let data = vec![1_u8; 8 << 20];
        let at = data.as_ptr() as u64;
        let stop = AtomicBool::new(false);
        let mut bits = MappingBits::new(1_000_000_000);
        let hit = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let sum: u64 = data.iter().step_by(4096).map(|b| u64::from(*b)).sum();
                    std::hint::black_box(sum);
                }
            });
            // On a busy machine the other thread may not run in a window.
            let looks = (0..100).flat_map(|_| look(&mut bits));
            let hit = looks
                .into_iter()
                .find(|hit| hit.address <= at && at < hit.end() && hit.count >= 2000);
            stop.store(true, Ordering::Relaxed);
            hit
        });
        if bits.report().taken == 0 {
            return isotherm_skip::skip!("accessed bits: {}", bits.report().warning);
        }
        assert_eq!(hit.expect("the mapping of the data").process.image, PROCESS);
        let pays = bits.report().usable * PROGRAM_PAYS.0;
        assert!(bits.report().cost > Nanos(pays), "{:?}", bits.report());
    }

    #[test]
    fn a_source_without_a_budget_opens_fewer_windows() {
        // One millionth of a processor: every window costs more.
        let mut bits = MappingBits::new(1);
        let windows = (0..10).filter(|_| !look(&mut bits).is_empty()).count();
        assert!(windows <= 3, "{windows} windows in ten epochs");
    }

    const SMAPS: &str = "\
55d0c0a00000-55d0c0c00000 rw-p 00000000 00:00 0                          [heap]
Size:               2048 kB
Rss:                1024 kB
Referenced:          512 kB
VmFlags: rd wr mr mw me ac
7f0000000000-7f0000400000 rw-p 00000000 00:00 0 [anon:a-b c]
Referenced:         4096 kB
garbage
Referenced: many kB
7f0000500000-7f0000400000 rw-p backwards
Referenced:  1 kB
";

    #[test]
    fn mappings_are_read_and_nonsense_is_skipped() {
        let mut vmas = Vec::new();
        parse_smaps(SMAPS.as_bytes(), |vma| vmas.push(vma)).expect("reads");
        let vma = |start, end, resident_bytes, referenced_bytes| Vma {
            start,
            end,
            resident_bytes,
            referenced_bytes,
        };
        assert_eq!(
            vmas,
            [
                vma(0x55d0_c0a0_0000, 0x55d0_c0c0_0000, 1 << 20, 512 << 10),
                vma(0x7f00_0000_0000, 0x7f00_0040_0000, 0, 4 << 20)
            ]
        );
    }

    #[test]
    fn windows_shorten_where_all_is_touched_and_lengthen_where_little_is() {
        let half = Nanos(WINDOW.0 / 2);
        assert_eq!(next_window(WINDOW, 60, 100), half);
        assert_eq!(next_window(half, 30, 100), half);
        assert_eq!(next_window(half, 4, 100), WINDOW);
        assert_eq!(next_window(WINDOW, 0, 100), WINDOW);
        assert_eq!(next_window(SHORTEST, 100, 100), SHORTEST);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..2000)) {
            parse_smaps(bytes.as_slice(), |vma| assert!(vma.start < vma.end)).expect("reads");
        }
    }
}
