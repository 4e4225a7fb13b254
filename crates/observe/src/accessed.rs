//! Samples accessed bits for a live run: clear them, wait for a short window, and read which pages
//! were accessed (`/proc/pid/clear_refs`, the `Referenced` lines of `/proc/pid/smaps`).
//!
//! The result is coarse: the kernel reports kilobytes for each mapping, not single pages. The
//! referenced bytes of a mapping are spread evenly over the chunks of the extents in it. A window
//! of a whole epoch would saturate, because a program touches every page of a hot set within a
//! second; so the windows are short.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;

use isotherm_abi::CHUNK_BYTES;
use isotherm_model::batch::SourceReport;
use isotherm_model::units::Nanos;

use crate::perf_source::empty_report;
use crate::resident::Span;
use isotherm_model::port::Clock;

/// The first and longest length of a window.
pub(crate) const WINDOW: Nanos = Nanos(50_000_000);

/// The shortest length of a window.
const SHORTEST: Nanos = Nanos(1_000_000);

/// The interval at which the source selects the processes that are worth a window.
const RECHECK: Nanos = Nanos(1_000_000_000);

/// A process gets no window if it uses less processor time than this share ...
const CPU_PERCENT: u64 = 5;

/// ... and less of the machine's memory than this (TMP, section IV).
const MEMORY_PERCENT: u64 = 10;

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
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        if let (Some(bytes), Some(vma)) = (bytes_after(&line, "Rss:"), &mut vma) {
            vma.resident_bytes = bytes.min(vma.end - vma.start);
        } else if let Some(bytes) = bytes_after(&line, "Referenced:") {
            if let Some(mut vma) = vma.take() {
                vma.referenced_bytes = bytes.min(vma.end - vma.start);
                take(vma);
            }
        } else if let Some(range) = range_of(&line) {
            vma = Some(Vma {
                start: range.start,
                end: range.end,
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

/// The range at the start of `7f00-7f10 rw-p ...`.
fn range_of(line: &str) -> Option<Span> {
    let (start, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let range = number(start)?..number(end)?;
    (range.start < range.end).then_some(range)
}

/// Spreads the referenced pages of a mapping over the chunks of the extents in it, as (address,
/// pages). `extents` are sorted and do not overlap. A mapping without extents counts at its first
/// address.
pub fn spread(vma: Vma, extents: &[Span], page_bytes: u64, mut take: impl FnMut(u64, u64)) {
    let pages = vma.referenced_bytes / page_bytes.max(1);
    if pages == 0 {
        return;
    }
    let first = extents.partition_point(|extent| extent.end <= vma.start);
    let inside = || {
        extents[first..]
            .iter()
            .take_while(|extent| extent.start < vma.end)
            .map(|extent| extent.start.max(vma.start)..extent.end.min(vma.end))
    };
    let total: u64 = inside().map(|part| part.end - part.start).sum();
    if total == 0 {
        return take(vma.start, pages);
    }
    // The sum is exact: each chunk gets its cumulative share minus the pages given before. The
    // product of pages and bytes fits 128 bits.
    let (mut covered, mut given) = (0u64, 0u64);
    for part in inside() {
        let mut at = part.start;
        while at < part.end {
            // The last chunk of the address space has no end that fits.
            let end = (at / CHUNK_BYTES + 1)
                .saturating_mul(CHUNK_BYTES)
                .min(part.end);
            covered += end - at;
            let due = (u128::from(pages) * u128::from(covered) / u128::from(total)) as u64;
            if due > given {
                take(at, due - given);
                given = due;
            }
            at = end;
        }
    }
}

/// The source of accessed bits by mapping.
#[derive(Debug)]
pub struct AccessedBits {
    /// The report of this source so far.
    pub report: SourceReport,
    window: Nanos,
    checked: Option<Nanos>,
    cpu: HashMap<u32, u64>,
    active: Vec<u32>,
}

impl Default for AccessedBits {
    fn default() -> Self {
        Self::new()
    }
}

impl AccessedBits {
    /// A source without any result yet.
    #[must_use]
    pub fn new() -> Self {
        let note = "25 ms to clear and 35 ms to read per GiB; programs on 4 KiB pages ran 1.3 to \
                    1.5 times as long in a virtual machine with shadow paging, on huge pages 1.0 \
                    times (2-core EPYC virtual machine, Linux 6.18, 1 GiB)";
        Self {
            report: empty_report("accessed-bits", note.to_owned()),
            window: WINDOW,
            checked: None,
            cpu: HashMap::new(),
            active: Vec::new(),
        }
    }

    /// Opens a window on the processes that are worth it, waits, and passes each touched mapping to
    /// the caller as (pid, mapping).
    pub fn look(
        &mut self,
        clock: &dyn Clock,
        proc_root: &Path,
        pids: &[u32],
        take: impl FnMut(u32, Vma),
    ) {
        self.choose(clock, proc_root, pids);
        let active = std::mem::take(&mut self.active);
        self.look_at(clock, proc_root, &active, take);
        self.active = active;
    }

    /// As [`Self::look`], on processes that the caller has chosen.
    pub fn look_at(
        &mut self,
        clock: &dyn Clock,
        proc_root: &Path,
        pids: &[u32],
        mut take: impl FnMut(u32, Vma),
    ) {
        let mut open = Vec::new();
        for pid in pids {
            match std::fs::write(proc_root.join(pid.to_string()).join("clear_refs"), "1") {
                Ok(()) => open.push(*pid),
                // The process ended after it was chosen.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    self.report.warning = format!(
                        "/proc/{pid}/clear_refs: {error}; it needs the same user, and a kernel \
                         with CONFIG_PROC_PAGE_MONITOR"
                    );
                }
            }
        }
        if open.is_empty() {
            return;
        }
        clock.sleep(self.window);
        let (mut referenced, mut resident) = (0, 0);
        for pid in open {
            let smaps = proc_root.join(pid.to_string()).join("smaps");
            let Ok(smaps) = std::fs::File::open(smaps) else {
                continue;
            };
            // A process that ends during the read yields the mappings read so far.
            let smaps = BufReader::with_capacity(256 << 10, smaps);
            let _ = parse_smaps(smaps, |vma| {
                referenced += vma.referenced_bytes;
                resident += vma.resident_bytes;
                take(pid, vma);
            });
        }
        self.window = next_window(self.window, referenced, resident);
    }

    /// Chooses the processes that are worth a window, once a second.
    fn choose(&mut self, clock: &dyn Clock, proc_root: &Path, pids: &[u32]) {
        let now = clock.now();
        let since = self.checked.map(|checked| now.saturating_sub(checked));
        if since.is_some_and(|since| since < RECHECK) {
            self.active.retain(|pid| pids.contains(pid));
            return;
        }
        self.checked = Some(now);
        let total =
            isotherm_topology::meminfo::total_bytes(&proc_root.join("meminfo")).unwrap_or(0);
        let mut cpu = HashMap::new();
        self.active = pids
            .iter()
            .copied()
            .filter(|pid| {
                let Some((used, resident)) = usage(proc_root, *pid) else {
                    return false;
                };
                cpu.insert(*pid, used);
                let spent = self.cpu.get(pid).map(|before| used.saturating_sub(*before));
                is_worth(spent.zip(since), resident, total)
            })
            .collect();
        self.cpu = cpu;
    }
}

/// Whether a process is worth a window, given its processor time over a span (None: it was never
/// measured before) and its resident bytes out of the machine's.
pub(crate) fn is_worth(cpu: Option<(u64, Nanos)>, resident: u64, total: u64) -> bool {
    let idle = cpu.is_some_and(|(spent, span)| {
        u128::from(spent) * 100 < u128::from(span.0) * u128::from(CPU_PERCENT)
    });
    let small = u128::from(resident) * 100 < u128::from(total) * u128::from(MEMORY_PERCENT);
    !(idle && small)
}

/// Processor time in nanoseconds and resident bytes of a process.
pub(crate) fn usage(proc_root: &Path, pid: u32) -> Option<(u64, u64)> {
    let process = procfs::process::Process::new_with_root(proc_root.join(pid.to_string())).ok()?;
    let stat = process.stat().ok()?;
    let ticks = stat.utime.saturating_add(stat.stime);
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    let nanos = ticks.saturating_mul(1_000_000_000 / per_second);
    Some((
        nanos,
        stat.rss.saturating_mul(rustix::param::page_size() as u64),
    ))
}

#[cfg(test)]
mod tests {
    use super::{SHORTEST, Vma, WINDOW, is_worth, next_window, parse_smaps, spread};
    use isotherm_model::units::Nanos;

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
    fn pages_are_spread_over_the_chunks_of_the_extents_and_none_is_lost() {
        const MIB: u64 = 1 << 20;
        let vma = Vma {
            start: 0,
            end: 8 * MIB,
            resident_bytes: 8 * MIB,
            referenced_bytes: 7 * 4096,
        };
        let mut found = Vec::new();
        // Half a chunk, a gap, and an extent that reaches beyond the mapping.
        let extents = [MIB..2 * MIB, 4 * MIB..12 * MIB];
        spread(vma, &extents, 4096, |address, pages| {
            found.push((address, pages))
        });
        assert_eq!(found, [(MIB, 1), (4 * MIB, 3), (6 * MIB, 3)]);
        found.clear();
        spread(vma, &[], 4096, |address, pages| {
            found.push((address, pages))
        });
        assert_eq!(found, [(0, 7)]);
    }

    #[test]
    fn pages_in_the_last_chunk_of_the_address_space_are_spread_too() {
        let vma = Vma {
            start: u64::MAX - 0xffff,
            end: u64::MAX,
            referenced_bytes: 0x3000,
            ..Vma::default()
        };
        let mut found = Vec::new();
        let whole = vma.start..vma.end;
        spread(vma, std::slice::from_ref(&whole), 4096, |address, pages| {
            found.push((address, pages))
        });
        assert_eq!(found, [(vma.start, 3)]);
    }

    #[test]
    fn only_a_process_both_idle_and_small_is_left_alone() {
        let second = Nanos(1_000_000_000);
        let cpu = |percent: u64| Some((percent * 10_000_000, second));
        assert!(!is_worth(cpu(4), 9, 100));
        assert!(is_worth(cpu(5), 9, 100));
        assert!(is_worth(cpu(4), 10, 100));
        assert!(is_worth(None, 0, 100), "not looked at before");
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
