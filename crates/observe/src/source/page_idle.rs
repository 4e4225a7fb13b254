//! [`PageIdle`], a source of the daemon's watcher, reads the accessed bits of a few pages of each unit by the kernel's bitmap of idle
//! pages.
//!
//! A window marks pages idle, waits, and reads which pages are no longer idle. The kernel checks the
//! page tables of all processes that map a page and clears the bits there, about a microsecond a
//! page, so only a few pages of each unit are marked, others in every window; they represent the
//! unit.
//!
//! ```text
//! unit, 512 pages     | . . x . . . x . . . x . . . x . |   four of the eight that are marked
//! after the window      idle    not      not     idle       result: 256 accessed pages
//! ```
//!
//! The bitmap is by page frame (`frames`). A huge page has one bit, that of its first frame; and pages that are on no
//! LRU list of the kernel cannot be marked. `/proc/kpageflags` shows both.
//!
//! Kernel document: `admin-guide/mm/idle_page_tracking.rst`.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use isotherm_model::batch::{Process, SourceReport};
use isotherm_model::movement::AddressRange;
use isotherm_model::source_kind::SourceKind;
use isotherm_model::units::Nanos;

use super::cost_budget::CostBudget;
use super::frames::{Frame, Frames, word};
use super::mapping_bits::{WINDOW, next_window};
use super::{AccessList, ScanContext, Source};
use crate::watch::memory::ProcessMemory;
use isotherm_model::port::Clock;

/// The path of the bitmap, below the root.
pub(crate) const BITMAP: &str = "sys/kernel/mm/page_idle/bitmap";

/// The requirements of the bitmap.
pub(crate) const REMEDY: &str = "a kernel with CONFIG_IDLE_PAGE_TRACKING (Debian's have it off), and the \
                                 rights of root with CAP_SYS_ADMIN";

/// Pages of a unit that are marked in one window.
const PAGES: u64 = 8;

/// Frames in one word of the bitmap.
const WORD: u64 = 64;

/// Flag bits of a frame: it is on an LRU list, and it is a part of a huge page other than the
/// first.
const LISTED: u64 = 1 << 5;
const TAIL: u64 = 1 << 16;

/// Frames of the largest huge page that is searched for its first frame: 2 MiB of pages of 4 KiB.
const HUGE: u64 = 512;

/// The source of accessed bits by page.
#[derive(Debug)]
pub struct PageIdle {
    bitmap: File,
    flags: File,
    interval: CostBudget,
    windows: u64,
    window: Nanos,
    report: SourceReport,
}

/// A part of a process's memory and the frames that represent it.
struct MarkedPage {
    process: Process,
    range: AddressRange,
    /// Resident pages of this part.
    pages: u64,
    frames: Vec<u64>,
}

impl PageIdle {
    /// Opens the bitmap below this root, for a source that may use this many millionths of one
    /// processor's time.
    ///
    /// # Errors
    /// A message with the remedy: the kernel has no bitmap, or it may not be written.
    pub fn open(root: &Path, budget_ppm: u64) -> Result<Self, String> {
        let refused = |name: &str, error: io::Error| {
            let path = root.join(name);
            format!("{}: {error}; idle pages need {REMEDY}", path.display())
        };
        let mut options = OpenOptions::new();
        let bitmap = options.read(true).write(true).open(root.join(BITMAP));
        let bitmap = bitmap.map_err(|error| refused(BITMAP, error))?;
        let flags = File::open(root.join("proc/kpageflags"));
        let flags = flags.map_err(|error| refused("proc/kpageflags", error))?;
        let note = "about 1 us for each of eight pages a unit to mark, and as much to look; the program \
                    sets each bit again, 0.3 us for a page of 4 KiB";
        Ok(Self {
            bitmap,
            flags,
            interval: CostBudget::new(budget_ppm),
            windows: 0,
            window: WINDOW,
            report: SourceReport::new(SourceKind::PageIdle.word(), note),
        })
    }

    /// Marks pages, waits, and reads the bits.
    fn window(
        &mut self,
        clock: &dyn Clock,
        asked: &[MarkedPage],
        accesses: &mut AccessList,
    ) -> io::Result<()> {
        let mut words = BTreeMap::<u64, u64>::new();
        for frame in asked.iter().flat_map(|asked| &asked.frames) {
            *words.entry(frame / WORD).or_default() |= 1 << (frame % WORD);
        }
        if words.is_empty() {
            return Ok(());
        }
        for (word, bits) in &words {
            // Bits that are 0 have no effect.
            self.bitmap.write_all_at(&bits.to_ne_bytes(), word * 8)?;
        }
        clock.sleep(self.window);
        for (number, bits) in &mut words {
            *bits = word(&self.bitmap, *number)?;
        }
        let is_idle = |frame: &u64| {
            let bits = words.get(&(frame / WORD)).copied().unwrap_or(0);
            bits & (1 << (frame % WORD)) != 0
        };
        let (mut marked, mut accessed) = (0, 0);
        for part in asked {
            let all = part.frames.len() as u64;
            let idle = part.frames.iter().filter(|frame| is_idle(frame)).count() as u64;
            (marked, accessed) = (marked + all, accessed + all - idle);
            // Both factors count pages of one unit.
            let hits = part.pages.saturating_mul(all - idle) / all.max(1);
            let (place, hits) = ((part.process, part.range), (SourceKind::PageIdle, hits));
            accesses.add_hits(&mut self.report, place, hits);
        }
        self.report.taken += marked;
        self.report.usable += accessed;
        self.window = next_window(self.window, accessed, marked);
        Ok(())
    }

    /// Frames that represent each unit of a process.
    fn frames(
        &mut self,
        proc_root: &Path,
        process: Process,
        resident: &ProcessMemory,
        page: u64,
    ) -> io::Result<Vec<MarkedPage>> {
        let pagemap = Frames::open(proc_root, process.pid, page)?;
        let (mut parts, mut hidden) = (Vec::new(), false);
        for (range, bytes, addresses) in resident.samples(page, PAGES, self.windows) {
            let mut frames = Vec::new();
            for address in addresses {
                match pagemap.of(address)? {
                    Frame::Absent => {}
                    Frame::Hidden => hidden = true,
                    Frame::Number(frame) => frames.extend(self.markable(frame)?),
                }
            }
            parts.push(MarkedPage {
                process,
                range,
                pages: bytes.0 / page.max(1),
                frames,
            });
        }
        if hidden {
            self.report.warning =
                format!("the kernel hides frame numbers; idle pages need {REMEDY}");
        }
        Ok(parts)
    }

    /// The frame whose bit covers this one; None where it cannot be marked now.
    fn markable(&self, frame: u64) -> io::Result<Option<u64>> {
        let mut flags = word(&self.flags, frame)?;
        let mut first = frame;
        let last = frame.saturating_sub(HUGE);
        while flags & TAIL != 0 && first > last {
            first -= 1;
            flags = word(&self.flags, first)?;
        }
        Ok((flags & LISTED != 0 && flags & TAIL == 0).then_some(first))
    }
}

impl Source for PageIdle {
    fn report(&self) -> SourceReport {
        self.report.clone()
    }

    fn set_budget(&mut self, budget_ppm: u64) {
        self.interval.set(budget_ppm);
    }

    fn covers(&self, _process: &Process) -> bool {
        true
    }

    /// Opens a window on the resident memory of these processes and adds the accesses. Where the
    /// source costs more than its budget, most calls do nothing.
    fn scan(&mut self, scan: &mut ScanContext<'_>, accesses: &mut AccessList) {
        let Some(strides) = self.interval.due() else {
            return;
        };
        let begin = scan.clock.busy();
        self.windows = self.windows.wrapping_add(1);
        let mut asked = Vec::new();
        for (process, resident) in scan.resident {
            // A process that has ended is no failure; any other error applies to all.
            match self.frames(scan.proc_root, *process, resident, scan.page) {
                Ok(parts) => asked.extend(parts),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.report.warning = format!("frame numbers: {error}"),
            }
        }
        if let Err(error) = self.window(scan.clock, &asked, accesses) {
            self.report.warning = format!("the bitmap of idle pages: {error}");
        }
        self.report.cost += scan.clock.busy().saturating_sub(begin);
        let span = Nanos(scan.span.0.saturating_mul(u64::from(strides)));
        self.interval.learn(self.report.cost, span);
    }
}

#[cfg(test)]
mod tests;
