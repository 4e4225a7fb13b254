//! [`PageTables`] finds by the kernel's pagemap which pages of a process are in memory, in swap or huge, as spans or as bytes of ranges:
//! for live runs, the daemon's watcher, and page-out. A page that the emulation keeps at a second address, its shadow, is in memory, too.
//!
//! `PAGEMAP_SCAN` (Linux 6.7) walks page tables and costs almost nothing for absent or huge pages; on older kernels `/proc/pid/pagemap` is
//! read, eight bytes and about 0.05 us a page. Neither needs a right beyond read access to the process (`ptrace_scope` does not matter).

use std::fs::File;
use std::io;
use std::path::Path;

use isotherm_model::spans;
use isotherm_sys::pagemap::{self, HUGE, Region, SWAPPED, Wanted, ZERO_PAGE, scan};

/// A range of addresses, its end not included.
pub type Span = std::ops::Range<u64>;

/// Regions requested in one system call.
const REGIONS: usize = 1024;

/// Pages side by side that are all in memory, or all in swap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedSpan {
    /// Their addresses.
    pub span: Span,
    /// Whether they are in swap.
    pub is_out: bool,
    /// Whether they are huge pages; never where the kernel does not report them (before Linux 6.7).
    pub is_huge: bool,
}

/// The method that finds resident pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResidencyMethod {
    /// The ioctl `PAGEMAP_SCAN`.
    Scan,
    /// Reads of `/proc/pid/pagemap`.
    Read,
}

/// The page tables of one process.
#[derive(Debug)]
pub struct PageTables {
    pagemap: File,
    method: ResidencyMethod,
    page_bytes: u64,
}

impl PageTables {
    /// Opens the page tables of a process found under this directory (`/proc`).
    ///
    /// # Errors
    /// The process has ended, belongs to another user, or has no pagemap.
    pub fn open(proc_root: &Path, pid: u32) -> io::Result<Self> {
        let pagemap = File::open(proc_root.join(pid.to_string()).join("pagemap"))?;
        // A scan of an empty range shows whether the ioctl exists, at no cost.
        let method = match scan(&pagemap, 0..0, Wanted::RESIDENT, &mut [Region::default()]) {
            Ok(_) => ResidencyMethod::Scan,
            Err(_) => ResidencyMethod::Read,
        };
        Ok(Self {
            pagemap,
            method,
            page_bytes: rustix::param::page_size() as u64,
        })
    }

    /// The method in use.
    #[must_use]
    pub const fn method(&self) -> ResidencyMethod {
        self.method
    }

    /// Resident bytes of each range. The ranges are sorted and do not overlap.
    ///
    /// With a `shadow` other than 0, a page is also resident while its content is at its address
    /// plus the shadow. The two places are read one after the other, so a page that moves meanwhile
    /// may be found at both: it counts once.
    ///
    /// # Errors
    /// The process has ended.
    pub fn resident(&self, ranges: &[Span], shadow: u64) -> io::Result<Vec<u64>> {
        let mut present = self.spans(ranges)?;
        if shadow != 0 {
            let shifted: Vec<Span> = ranges.iter().map(|range| moved(range, shadow)).collect();
            if shifted.iter().any(|range| range.start >= range.end) {
                return Ok(covered(ranges, &present));
            }
            let away = self.spans(&shifted)?;
            let back = away.iter().map(|span| moved(span, shadow.wrapping_neg()));
            present.extend(back);
            present = spans::joined(present);
        }
        Ok(covered(ranges, &present))
    }

    /// The runs of resident pages in the ranges, which are sorted and do not overlap.
    ///
    /// # Errors
    /// The process has ended.
    pub fn spans(&self, ranges: &[Span]) -> io::Result<Vec<Span>> {
        self.runs(ranges, Wanted::RESIDENT)
    }

    /// The runs of huge pages in the ranges, as [`Self::spans`]. None where the kernel does not
    /// report them (before Linux 6.7).
    ///
    /// # Errors
    /// The process has ended.
    pub fn huge_spans(&self, ranges: &[Span]) -> io::Result<Vec<Span>> {
        match self.method {
            ResidencyMethod::Scan => self.runs(ranges, Wanted::RESIDENT_HUGE),
            ResidencyMethod::Read => Ok(Vec::new()),
        }
    }

    /// The runs of pages in memory and in swap, in order; the ranges are sorted and do not overlap.
    ///
    /// # Errors
    /// The process has ended.
    pub fn placed(&self, ranges: &[Span]) -> io::Result<Vec<PlacedSpan>> {
        let wanted = Wanted {
            inverted: ZERO_PAGE,
            all: ZERO_PAGE,
            any: pagemap::PRESENT | SWAPPED,
            told: pagemap::PRESENT | SWAPPED | HUGE,
        };
        let mut placed: Vec<PlacedSpan> = Vec::new();
        let mut add = |region: &Region| {
            let is_out = region.categories & SWAPPED != 0;
            let is_huge = region.categories & HUGE != 0;
            match placed.last_mut() {
                Some(last)
                    if last.span.end == region.start
                        && (last.is_out, last.is_huge) == (is_out, is_huge) =>
                {
                    last.span.end = region.end;
                }
                _ => placed.push(PlacedSpan {
                    span: region.start..region.end,
                    is_out,
                    is_huge,
                }),
            }
        };
        for range in ranges {
            self.walk(range.clone(), wanted, &mut add)?;
        }
        Ok(placed)
    }

    /// Walks the ranges and joins adjacent runs.
    fn runs(&self, ranges: &[Span], wanted: Wanted) -> io::Result<Vec<Span>> {
        let mut present: Vec<Span> = Vec::new();
        let mut first = 0;
        while first < ranges.len() {
            // Ranges that touch are walked in one go.
            let mut last = first;
            while ranges
                .get(last + 1)
                .is_some_and(|next| next.start == ranges[last].end)
            {
                last += 1;
            }
            let whole = ranges[first].start..ranges[last].end;
            self.walk(whole, wanted, &mut |region| match present.last_mut() {
                Some(before) if before.end == region.start => before.end = region.end,
                _ => present.push(region.start..region.end),
            })?;
            first = last + 1;
        }
        Ok(present)
    }

    /// Passes the matching regions of a range to `found`: runs of pages, or single ones.
    fn walk(&self, span: Span, wanted: Wanted, found: &mut dyn FnMut(&Region)) -> io::Result<()> {
        if self.method == ResidencyMethod::Read {
            return self.read(span, wanted, found);
        }
        let mut regions = [Region::default(); REGIONS];
        // The last page of the address space has no end that fits; no program has memory there.
        let end = span.end.checked_next_multiple_of(self.page_bytes);
        let end = end.unwrap_or(u64::MAX - u64::MAX % self.page_bytes);
        let start = span.start - span.start % self.page_bytes;
        pagemap::walk(&self.pagemap, start..end, wanted, &mut regions, found)?;
        Ok(())
    }

    /// Reads the page table entry of each page, which tells whether it is in memory or in swap, and no more.
    fn read(&self, span: Span, wanted: Wanted, found: &mut dyn FnMut(&Region)) -> io::Result<()> {
        pagemap::read_entries(&self.pagemap, span, self.page_bytes, |start, entry| {
            let categories = pagemap::categories(entry);
            if categories & (wanted.all | wanted.any) != 0 {
                found(&Region {
                    start,
                    end: start + self.page_bytes,
                    categories,
                });
            }
        })?;
        Ok(())
    }
}

fn moved(span: &Span, by: u64) -> Span {
    span.start.wrapping_add(by)..span.end.wrapping_add(by)
}

/// Bytes of each range that the spans cover, which are in order and do not overlap.
fn covered(ranges: &[Span], spans: &[Span]) -> Vec<u64> {
    let of_range = |range| spans::bytes_within(spans, range);
    ranges.iter().map(of_range).collect()
}

#[cfg(test)]
mod tests {
    use super::{PageTables, ResidencyMethod, covered};
    use std::path::Path;

    #[test]
    fn both_ways_count_the_pages_that_were_written() {
        let page = rustix::param::page_size() as u64;
        // Written page by page: memory that was only reserved is not resident.
        let data = vec![1u8; 40 * page as usize];
        let start = (data.as_ptr() as u64).next_multiple_of(page);
        let ranges = [
            start..start + 10 * page,
            start + 10 * page..start + 16 * page,
            start + 20 * page..start + 21 * page,
        ];
        let mut tables = PageTables::open(Path::new("/proc"), std::process::id()).expect("opens");
        for method in [tables.method(), ResidencyMethod::Read] {
            tables.method = method;
            let resident = tables.resident(&ranges, 0).expect("reads");
            assert_eq!(resident, [10 * page, 6 * page, page], "{method:?}");
        }
    }

    /// The kernel gathers 512 runs at a time, and the test requests more.
    #[test]
    fn more_runs_than_the_kernel_gathers_at_a_time_are_each_counted_once() {
        let page = rustix::param::page_size();
        for runs in [500, 600, 1000, 1100, 3000] {
            // Zeroes that were never written have no pages.
            let mut data = vec![0u8; (2 * runs + 1) * page];
            data.iter_mut().step_by(2 * page).for_each(|byte| *byte = 1);
            let start = (data.as_ptr() as u64).next_multiple_of(page as u64);
            let range = start..start + (2 * runs * page) as u64;
            let mut tables =
                PageTables::open(Path::new("/proc"), std::process::id()).expect("opens");
            let by_scan = tables
                .resident(std::slice::from_ref(&range), 0)
                .expect("scans");
            tables.method = ResidencyMethod::Read;
            let by_reading = tables
                .resident(std::slice::from_ref(&range), 0)
                .expect("reads");
            assert_eq!(by_scan, by_reading, "{runs} runs");
            assert!(by_scan[0] >= (runs * page) as u64, "{runs} runs");
        }
    }

    #[test]
    fn the_end_of_the_address_space_is_looked_at_and_empty() {
        let mut tables = PageTables::open(Path::new("/proc"), std::process::id()).expect("opens");
        let last = u64::MAX - 3 * 4096..u64::MAX;
        for method in [tables.method(), ResidencyMethod::Read] {
            tables.method = method;
            let resident = tables.resident(std::slice::from_ref(&last), 0);
            // The kernel refuses to scan addresses that no program can have.
            assert!(
                resident.is_err() || resident.is_ok_and(|bytes| bytes == [0]),
                "{method:?}"
            );
        }
    }

    #[test]
    fn a_page_at_its_place_or_in_the_shadow_counts_once() {
        let page = rustix::param::page_size() as u64;
        let data = vec![1u8; 64 * page as usize];
        let start = (data.as_ptr() as u64).next_multiple_of(page);
        let tables = PageTables::open(Path::new("/proc"), std::process::id()).expect("opens");
        // The shadow of the first ten pages are the next ten, which are resident as well.
        let place = start..start + 10 * page;
        let ranges = std::slice::from_ref(&place);
        let resident = tables.resident(ranges, 10 * page).expect("reads");
        assert_eq!(resident, [10 * page]);
        // An address without memory, with a shadow that has some.
        let nowhere = 1 << 20;
        let place = nowhere..nowhere + 10 * page;
        let ranges = std::slice::from_ref(&place);
        let resident = tables
            .resident(ranges, start.wrapping_sub(nowhere))
            .expect("reads");
        assert_eq!(resident, [10 * page]);
    }

    #[test]
    fn spans_are_cut_to_the_ranges() {
        assert_eq!(
            covered(&[0..5, 5..7, 24..31, 50..60], &[0..25, 30..40]),
            [5, 2, 2, 0]
        );
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        assert!(PageTables::open(Path::new("/proc"), u32::MAX).is_err());
    }
}
