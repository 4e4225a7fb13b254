//! [`SwapSystem`] is the kernel interface of page-out: the places of pages (`pagemap`), the ranges that stay in memory (`smaps`), advice to
//! page ranges out (`process_madvise`), touches that bring pages back, and the room for both. It is implemented here for the real
//! [`Kernel`], and for [`DrySystem`], which prints the advice and touches and makes none.

use std::fmt;
use std::fs::File;
use std::path::Path;

use isotherm_model::movement::AddressRange;
use isotherm_model::units::Bytes;
use isotherm_sys::memory::Errno;
use isotherm_sys::memory_map::{MappedRange, mapped_range};
use isotherm_sys::pagemap::{
    FILE, HUGE, PRESENT, SWAPPED, Wanted, ZERO_PAGE, categories, read_entries,
};
use isotherm_sys::process::ProcessHandle;
use isotherm_sys::remote_memory::{self, PageAdvice};
use isotherm_topology::swap_room;

use super::memory_room::memory_room;
use crate::movement::system::{DrySystem, Kernel, PAGE_BYTES, ProcessSystem, Refusal, scan};

/// Bit 56 of a pagemap entry: no other mapping has the page (`Documentation/admin-guide/mm/pagemap.rst`).
const ENTRY_EXCLUSIVE: u64 = 1 << 56;

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
pub trait SwapSystem: ProcessSystem {
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
}

impl SwapSystem for Kernel {
    fn placed(&mut self, process: u32, range: AddressRange) -> Option<Vec<PlacedRun>> {
        let wanted = Wanted {
            inverted: ZERO_PAGE,
            all: ZERO_PAGE,
            any: PRESENT | SWAPPED,
            told: PRESENT | SWAPPED | HUGE | FILE,
        };
        let run = |range, categories| PlacedRun {
            range,
            place: place(categories),
        };
        let pagemap = self.pagemap(process)?;
        scan(pagemap, range, wanted, run).or_else(|| read(pagemap, range))
    }

    fn advise(
        &mut self,
        process: u32,
        ranges: &[AddressRange],
        advice: PageAdvice,
    ) -> Result<u64, Refusal> {
        let handle = self.handle(process).ok_or(Errno::SRCH)?;
        let pair = |range: &AddressRange| (range.start as usize, range.bytes.0 as usize);
        let ranges: Vec<(usize, usize)> = ranges.iter().map(pair).collect();
        Ok(remote_memory::advise(handle, &ranges, advice)? as u64)
    }

    fn touch(&mut self, process: u32, pages: &[u64]) -> Result<usize, Refusal> {
        // Another process may have the number by now.
        if self.handle(process).is_none_or(ProcessHandle::has_ended) {
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
            let is = |entry: u64| entry & ENTRY_EXCLUSIVE != 0 && categories(entry) & FILE == 0;
            let add = |_, entry| exclusive.push(is(entry));
            let _ = read_entries(pagemap, range.span(), PAGE_BYTES, add);
        }
        exclusive.resize(pages, true);
        exclusive
    }

    fn swap_room(&mut self) -> Bytes {
        swap_room(Path::new("/"))
    }

    fn memory_room(&mut self, process: u32) -> Bytes {
        memory_room(Path::new("/"), process)
    }
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
    let mut found: Vec<PlacedRun> = Vec::new();
    let is_whole = read_entries(pagemap, range.span(), PAGE_BYTES, |address, entry| {
        let categories = categories(entry);
        if categories & (PRESENT | SWAPPED) == 0 {
            return;
        }
        let place = place(categories);
        match found.last_mut() {
            Some(last) if last.place == place && last.range.end() == address => {
                last.range.bytes += Bytes(PAGE_BYTES);
            }
            _ => found.push(PlacedRun {
                range: AddressRange::between(address, address + PAGE_BYTES),
                place,
            }),
        }
    });
    is_whole.unwrap_or(false).then_some(found)
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
        } else if let Some(MappedRange { range: found, .. }) = mapped_range(line.as_bytes()) {
            range = Some(AddressRange::between(found.start, found.end));
        }
    }
    kept
}

impl<S: SwapSystem, F: FnMut(fmt::Arguments<'_>)> SwapSystem for DrySystem<S, F> {
    fn placed(&mut self, process: u32, range: AddressRange) -> Option<Vec<PlacedRun>> {
        self.inner.placed(process, range)
    }

    fn advise(
        &mut self,
        process: u32,
        ranges: &[AddressRange],
        advice: PageAdvice,
    ) -> Result<u64, Refusal> {
        let start = ranges.first().map_or(0, |range| range.start);
        let end = ranges.last().map_or(0, AddressRange::end);
        let bytes: Bytes = ranges.iter().map(|range| range.bytes).sum();
        let (count, advice) = (ranges.len(), advice.name());
        (self.say)(format_args!(
            "process_madvise({process}, {count} ranges of {bytes} in {start:#x}-{end:#x}, {advice})"
        ));
        Err(Refusal::DryRun)
    }

    fn touch(&mut self, process: u32, pages: &[u64]) -> Result<usize, Refusal> {
        let start = pages.first().copied().unwrap_or(0);
        let end = pages
            .last()
            .map_or(0, |page| page.saturating_add(PAGE_BYTES));
        let count = pages.len();
        (self.say)(format_args!(
            "process_vm_readv({process}, 1 byte of {count} pages in {start:#x}-{end:#x})"
        ));
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
}

#[cfg(test)]
mod tests {
    use super::{KeptRange, kept};
    use isotherm_model::movement::AddressRange;

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
            range: AddressRange::between(start, end),
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
