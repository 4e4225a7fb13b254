//! Which frame of memory a page of a process lies in.
//!
//! Frame numbers stand in `/proc/pid/pagemap`, as zeros for whoever lacks `CAP_SYS_ADMIN`.
//!
//! Kernel document: `admin-guide/mm/pagemap.rst`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bits of a pagemap entry that hold the frame number, and the one that says that there is one.
const FRAME: u64 = (1 << 55) - 1;
pub(super) const PRESENT: u64 = 1 << 63;

/// Where a page lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Nowhere.
    Absent,
    /// The kernel does not say.
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
    /// Those of a process found under this directory (`/proc`), with pages of so many bytes.
    ///
    /// # Errors
    /// The process is gone, is another user's, or there is no pagemap.
    pub(super) fn open(proc_root: &Path, pid: u32, page: u64) -> io::Result<Self> {
        let pagemap = File::open(proc_root.join(pid.to_string()).join("pagemap"))?;
        let page = page.max(1);
        Ok(Self { pagemap, page })
    }

    /// Where the page at an address lies.
    ///
    /// # Errors
    /// The process is gone.
    pub(super) fn of(&self, address: u64) -> io::Result<Frame> {
        let entry = word(&self.pagemap, address / self.page)?;
        Ok(match (entry & PRESENT != 0, entry & FRAME) {
            (false, _) => Frame::Absent,
            (true, 0) => Frame::Hidden,
            (true, number) => Frame::Number(number),
        })
    }
}

/// One word of a file of such words.
pub(super) fn word(file: &File, number: u64) -> io::Result<u64> {
    let mut word = [0; 8];
    let at = number.checked_mul(8).ok_or(io::ErrorKind::InvalidInput)?;
    file.read_exact_at(&mut word, at)?;
    Ok(u64::from_ne_bytes(word))
}
