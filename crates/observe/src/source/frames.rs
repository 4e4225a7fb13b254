//! `Frames` looks up the page frame numbers of a process's pages in `/proc/pid/pagemap`, for the sources of accessed bits that work on
//! frames; the numbers read as zero without `CAP_SYS_ADMIN`. `word` reads one 64-bit word of this or a similar file.
//!
//! Kernel document: `admin-guide/mm/pagemap.rst`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bits of a pagemap entry that hold the frame number, and the present bit.
const FRAME: u64 = (1 << 55) - 1;
pub(crate) const PRESENT: u64 = 1 << 63;

/// The location of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// The page is not present.
    Absent,
    /// The kernel hides the frame number.
    Hidden,
    /// In the frame with this number.
    Number(u64),
}

/// The pages of a process.
#[derive(Debug)]
pub(super) struct Frames {
    pagemap: File,
    page: u64,
}

impl Frames {
    /// Opens the pages of a process found under this directory (`/proc`), with pages of this many
    /// bytes.
    ///
    /// # Errors
    /// The process has ended, belongs to another user, or has no pagemap.
    pub(super) fn open(proc_root: &Path, pid: u32, page: u64) -> io::Result<Self> {
        let pagemap = File::open(proc_root.join(pid.to_string()).join("pagemap"))?;
        let page = page.max(1);
        Ok(Self { pagemap, page })
    }

    /// The frame of the page at an address.
    ///
    /// # Errors
    /// The process has ended.
    pub(super) fn of(&self, address: u64) -> io::Result<Frame> {
        let entry = word(&self.pagemap, address / self.page)?;
        Ok(match (entry & PRESENT != 0, entry & FRAME) {
            (false, _) => Frame::Absent,
            (true, 0) => Frame::Hidden,
            (true, number) => Frame::Number(number),
        })
    }
}

/// Word `number` of a file of 64-bit words.
pub(super) fn word(file: &File, number: u64) -> io::Result<u64> {
    let mut word = [0; 8];
    let at = number.checked_mul(8).ok_or(io::ErrorKind::InvalidInput)?;
    file.read_exact_at(&mut word, at)?;
    Ok(u64::from_ne_bytes(word))
}
