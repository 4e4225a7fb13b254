//! [`SwapSystem`] is the kernel interface of page-out: the places of pages (`pagemap`), the ranges that stay in memory (`smaps`), advice to
//! page ranges out (`process_madvise`), touches that bring pages back, and the room for both. It is implemented here for the real
//! [`Kernel`], and for [`DrySystem`], which prints the advice and touches and makes none.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use isotherm_model::movement::AddressRange;
use isotherm_model::units::Bytes;
use isotherm_sys::memory::Errno;
use isotherm_sys::pagemap::{self, FILE, HUGE, PRESENT, Region, SWAPPED, Wanted, ZERO_PAGE};
use isotherm_sys::process::ProcessHandle;
use isotherm_sys::remote_memory::{self, PageAdvice};
use isotherm_sys::swap_room::swap_room;

use super::memory_room::memory_room;
use crate::movement::system::{PAGE_BYTES, Refusal};

/// Regions read in one scan of a page table.
const REGIONS: usize = 512;
/// Pages whose entries are read in one go.
const ENTRIES: usize = 512;
/// Bit 61 of a pagemap entry: the page is of a file or of shared memory (`Documentation/admin-guide/mm/pagemap.rst`).
const ENTRY_FILE: u64 = 1 << 61;
/// Bit 56: no other mapping has the page.
const ENTRY_EXCLUSIVE: u64 = 1 << 56;

/// A call that pages memory out or brings it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageOutCall {
    /// The process.
    pub process: u32,
    /// Number of ranges, or of pages for reads.
    pub ranges: usize,
    /// From the first to the last of them.
    pub within: AddressRange,
    /// Their bytes.
    pub bytes: Bytes,
    /// What is advised; `None` for reads of one byte a page.
    pub advice: Option<PageAdvice>,
}

impl fmt::Display for PageOutCall {
    /// `process_madvise(7, 2 ranges of 3 MiB in 0x7f5500000000-0x7f5500400000, MADV_PAGEOUT)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (process, ranges) = (self.process, self.ranges);
        let (start, end) = (self.within.start, self.within.end());
        match self.advice {
            Some(advice) => write!(
                f,
                "process_madvise({process}, {ranges} ranges of {} in {start:#x}-{end:#x}, {})",
                self.bytes,
                advice.name()
            ),
            None => write!(
                f,
                "process_vm_readv({process}, 1 byte of {ranges} pages in {start:#x}-{end:#x})"
            ),
        }
    }
}

/// The place of a page: memory, swap or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagePlace {
    /// Small pages in memory.
    Memory,
    /// Huge pages in memory.
    HugePage,
    /// Pages in swap.
    Out,
    /// Pages of a file or of shared memory.
    File,
}

/// A run of pages that are in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedRun {
    /// The addresses of the run.
    pub range: AddressRange,
    /// The place of its pages.
    pub place: PagePlace,
}

/// A range that the kernel does not page out, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptRange {
    /// The addresses.
    pub range: AddressRange,
    /// The reason.
    pub why: &'static str,
}

/// The system calls that page-out needs.
pub trait SwapSystem {
    /// The pages of a range that exist, in order; `None` if the page tables cannot be read.
    fn placed(&mut self, process: u32, range: AddressRange) -> Option<Vec<PlacedRun>>;

    /// Advises the kernel about ranges ([`remote_memory::advise`]).
    ///
    /// # Errors
    /// As [`remote_memory::advise`].
    fn advise(
        &mut self,
        process: u32,
        ranges: &[AddressRange],
        advice: PageAdvice,
    ) -> Result<u64, Refusal>;

    /// Touches pages so that they come back ([`remote_memory::touch`]).
    ///
    /// # Errors
    /// As [`remote_memory::touch`].
    fn touch(&mut self, process: u32, pages: &[u64]) -> Result<usize, Refusal>;

    /// The mappings of a process that are locked, hugetlb or a device's.
    fn kept(&mut self, process: u32) -> Vec<KeptRange>;

    /// For each page of a range in memory, whether this process alone maps it.
    fn exclusive(&mut self, process: u32, range: AddressRange) -> Vec<bool>;

    /// Bytes of pages for which swap has room, whatever their contents.
    fn swap_room(&mut self) -> Bytes;

    /// Bytes that may come back before a control group of the process comes near a limit of memory, or the machine is short of memory.
    fn memory_room(&mut self, process: u32) -> Bytes;

    /// Whether the process has ended since the first query.
    fn has_ended(&mut self, process: u32) -> bool;

    /// A monotonic clock in nanoseconds.
    fn now_ns(&mut self) -> u64;
}

/// The real kernel.
#[derive(Debug)]
pub struct SwapKernel {
    began: Instant,
    processes: HashMap<u32, Option<Opened>>,
}

/// A process that is there.
#[derive(Debug)]
struct Opened {
    handle: ProcessHandle,
    pagemap: Option<File>,
}

impl Default for SwapKernel {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            processes: HashMap::new(),
        }
    }
}

impl SwapKernel {
    fn opened(&mut self, process: u32) -> Option<&Opened> {
        let open = || {
            let handle = ProcessHandle::open(process).ok()?;
            let pagemap = File::open(format!("/proc/{process}/pagemap")).ok();
            Some(Opened { handle, pagemap })
        };
        let entry = self.processes.entry(process).or_insert_with(open);
        entry.as_ref()
    }

    fn pagemap(&mut self, process: u32) -> Option<&File> {
        self.opened(process)?.pagemap.as_ref()
    }
}

impl SwapSystem for SwapKernel {
    fn placed(&mut self, process: u32, range: AddressRange) -> Option<Vec<PlacedRun>> {
        let pagemap = self.pagemap(process)?;
        scan(pagemap, range).or_else(|| read(pagemap, range))
    }

    fn advise(
        &mut self,
        process: u32,
        ranges: &[AddressRange],
        advice: PageAdvice,
    ) -> Result<u64, Refusal> {
        let opened = self.opened(process).ok_or(Errno::SRCH)?;
        let pair = |range: &AddressRange| (range.start as usize, range.bytes.0 as usize);
        let ranges: Vec<(usize, usize)> = ranges.iter().map(pair).collect();
        Ok(remote_memory::advise(&opened.handle, &ranges, advice)? as u64)
    }

    fn touch(&mut self, process: u32, pages: &[u64]) -> Result<usize, Refusal> {
        // Another process may have its number by now.
        if self.has_ended(process) {
            return Err(Errno::SRCH.into());
        }
        let pages: Vec<usize> = pages.iter().map(|page| *page as usize).collect();
        Ok(remote_memory::touch(process, &pages)?)
    }

    fn kept(&mut self, process: u32) -> Vec<KeptRange> {
        let smaps = std::fs::read_to_string(format!("/proc/{process}/smaps"));
        kept(&smaps.unwrap_or_default())
    }

    fn exclusive(&mut self, process: u32, range: AddressRange) -> Vec<bool> {
        let pages = (range.bytes.0 / PAGE_BYTES) as usize;
        let mut exclusive = Vec::with_capacity(pages);
        if let Some(pagemap) = self.pagemap(process) {
            let is = |entry: u64| entry & ENTRY_EXCLUSIVE != 0 && entry & ENTRY_FILE == 0;
            entries(pagemap, range, |_, entry| exclusive.push(is(entry)));
        }
        exclusive.resize(pages, true);
        exclusive
    }

    fn swap_room(&mut self) -> Bytes {
        Bytes(swap_room(Path::new("/")))
    }

    fn memory_room(&mut self, process: u32) -> Bytes {
        memory_room(Path::new("/"), process)
    }

    fn has_ended(&mut self, process: u32) -> bool {
        self.opened(process)
            .is_none_or(|opened| opened.handle.has_ended())
    }

    fn now_ns(&mut self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// By `PAGEMAP_SCAN`; `None` before Linux 6.7.
fn scan(pagemap: &File, range: AddressRange) -> Option<Vec<PlacedRun>> {
    let wanted = Wanted {
        inverted: ZERO_PAGE,
        all: ZERO_PAGE,
        any: PRESENT | SWAPPED,
        told: PRESENT | SWAPPED | HUGE | FILE,
    };
    let mut found = Vec::new();
    let mut regions = [Region::default(); REGIONS];
    let add = |region: &Region| {
        found.push(PlacedRun {
            range: span(region.start, region.end),
            place: place(region.categories),
        });
    };
    let whole = range.start..range.end();
    let reached = pagemap::walk(pagemap, whole, wanted, &mut regions, add).ok()?;
    (reached >= range.end()).then_some(found)
}

const fn place(categories: u64) -> PagePlace {
    if categories & FILE != 0 {
        PagePlace::File
    } else if categories & SWAPPED != 0 {
        PagePlace::Out
    } else if categories & HUGE != 0 {
        PagePlace::HugePage
    } else {
        PagePlace::Memory
    }
}

/// The runs by the entries of the page table, which do not show huge pages.
fn read(pagemap: &File, range: AddressRange) -> Option<Vec<PlacedRun>> {
    /// Bits 63 and 62 of an entry.
    const IN_MEMORY: u64 = 1 << 63;
    const IN_SWAP: u64 = 1 << 62;
    let mut found: Vec<PlacedRun> = Vec::new();
    let complete = entries(pagemap, range, |address, entry| {
        let place = match entry {
            entry if entry & (IN_MEMORY | IN_SWAP) == 0 => return,
            entry if entry & ENTRY_FILE != 0 => PagePlace::File,
            entry if entry & IN_SWAP != 0 => PagePlace::Out,
            _ => PagePlace::Memory,
        };
        match found.last_mut() {
            Some(last) if last.place == place && last.range.end() == address => {
                last.range.bytes += Bytes(PAGE_BYTES);
            }
            _ => found.push(PlacedRun {
                range: span(address, address + PAGE_BYTES),
                place,
            }),
        }
    });
    complete.then_some(found)
}

/// Reads the entries of a range's pages. False where the process has ended.
fn entries(pagemap: &File, range: AddressRange, mut each: impl FnMut(u64, u64)) -> bool {
    let mut bytes = [0; 8 * ENTRIES];
    let mut address = range.start / PAGE_BYTES * PAGE_BYTES;
    while address < range.end() {
        let pages = (range.end() - address).div_ceil(PAGE_BYTES);
        let wanted = (8 * pages).min(bytes.len() as u64) as usize;
        let read = pagemap.read_at(&mut bytes[..wanted], address / PAGE_BYTES * 8);
        let Ok(read) = read else { return false };
        if read < 8 {
            return false;
        }
        for entry in bytes[..read].chunks_exact(8) {
            each(address, entry.try_into().map_or(0, u64::from_ne_bytes));
            address += PAGE_BYTES;
        }
    }
    true
}

const fn span(start: u64, end: u64) -> AddressRange {
    AddressRange {
        start,
        bytes: Bytes(end.saturating_sub(start)),
    }
}

/// The mappings in the text of `smaps` that stay in memory, by their flags (`Documentation/filesystems/proc.rst`).
fn kept(smaps: &str) -> Vec<KeptRange> {
    let mut kept = Vec::new();
    let mut range = None;
    for line in smaps.lines() {
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            let why = flags.split_ascii_whitespace().find_map(|flag| match flag {
                "lo" => Some("locked in memory"),
                "ht" => Some("huge pages of hugetlb, which stay in memory"),
                "pf" | "io" => Some("memory of a device"),
                _ => None,
            });
            kept.extend(range.zip(why).map(|(range, why)| KeptRange { range, why }));
        } else if let Some(found) = heading(line) {
            range = Some(found);
        }
    }
    kept
}

/// The range of `7f00-7f10 rw-p 00000000 00:00 0`.
fn heading(line: &str) -> Option<AddressRange> {
    let (start, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = (number(start)?, number(end)?);
    (start < end).then(|| span(start, end))
}

/// Queries the machine without changing it: each call that would is passed to `say` instead.
pub struct DrySwap<S, F> {
    inner: S,
    say: F,
}

impl<S, F: FnMut(&PageOutCall)> DrySwap<S, F> {
    /// `say` receives every call that would have been made, in order.
    pub const fn new(inner: S, say: F) -> Self {
        Self { inner, say }
    }

    fn say(&mut self, process: u32, ranges: &[AddressRange], advice: Option<PageAdvice>) {
        let start = ranges.first().map_or(0, |range| range.start);
        let end = ranges.last().map_or(0, AddressRange::end);
        (self.say)(&PageOutCall {
            process,
            ranges: ranges.len(),
            within: span(start, end),
            bytes: ranges.iter().map(|range| range.bytes).sum(),
            advice,
        });
    }
}

impl<S: SwapSystem, F: FnMut(&PageOutCall)> SwapSystem for DrySwap<S, F> {
    fn placed(&mut self, process: u32, range: AddressRange) -> Option<Vec<PlacedRun>> {
        self.inner.placed(process, range)
    }

    fn advise(
        &mut self,
        process: u32,
        ranges: &[AddressRange],
        advice: PageAdvice,
    ) -> Result<u64, Refusal> {
        self.say(process, ranges, Some(advice));
        Err(Refusal::DryRun)
    }

    fn touch(&mut self, process: u32, pages: &[u64]) -> Result<usize, Refusal> {
        let page = |start: &u64| span(*start, start.saturating_add(PAGE_BYTES));
        let ranges: Vec<AddressRange> = pages.iter().map(page).collect();
        self.say(process, &ranges, None);
        Err(Refusal::DryRun)
    }

    fn kept(&mut self, process: u32) -> Vec<KeptRange> {
        self.inner.kept(process)
    }

    fn exclusive(&mut self, process: u32, range: AddressRange) -> Vec<bool> {
        self.inner.exclusive(process, range)
    }

    /// A dry run makes no calls, so it needs no room.
    fn swap_room(&mut self) -> Bytes {
        Bytes(u64::MAX)
    }

    fn memory_room(&mut self, process: u32) -> Bytes {
        self.inner.memory_room(process)
    }

    fn has_ended(&mut self, process: u32) -> bool {
        self.inner.has_ended(process)
    }

    fn now_ns(&mut self) -> u64 {
        self.inner.now_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::{KeptRange, kept, span};

    #[test]
    fn locked_hugetlb_and_device_mappings_stay_and_others_do_not() {
        let smaps = "\
1000-3000 rw-p 00000000 00:00 0   [heap]
Size:                  8 kB
VmFlags: rd wr mr mw me ac
3000-4000 rw-p 00000000 00:00 0
VmFlags: rd wr lo ac
nonsense
200000-400000 rw-p 00000000 00:00 0
VmFlags: rd wr de ht
500000-501000 rw-s 00000000 00:05 7   /dev/mem
VmFlags: rd wr pf io
";
        let stays = |start, end, why| KeptRange {
            range: span(start, end),
            why,
        };
        assert_eq!(
            kept(smaps),
            [
                stays(0x3000, 0x4000, "locked in memory"),
                stays(
                    0x0020_0000,
                    0x0040_0000,
                    "huge pages of hugetlb, which stay in memory"
                ),
                stays(0x0050_0000, 0x0050_1000, "memory of a device"),
            ]
        );
        assert_eq!(kept("VmFlags: lo\n5-4 rw-p\nVmFlags: lo\n"), []);
    }
}
