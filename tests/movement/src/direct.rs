//! [`Direct`] reads a file by direct I/O into memory that moves: a disk writes to the page itself, past every page table.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use isotherm_sys::staged::{PageKind, UNIT_BYTES};

use crate::field::Field;

/// Bytes of the file and of the memory it is read into.
const BYTES: usize = 4 * UNIT_BYTES;
/// Bytes read at once.
const BLOCK: usize = 64 << 10;

/// A file that is read again and again into memory that moves.
#[derive(Debug)]
pub struct Direct {
    file: File,
    /// Only `read(2)` and raw reads touch it.
    memory: Field,
}

fn byte(at: usize) -> u8 {
    (at.wrapping_mul(0x9e37_79b1) >> 13) as u8
}

impl Direct {
    /// Writes the file into `folder` and maps the memory.
    ///
    /// # Errors
    /// The file system has no direct I/O.
    pub fn new(folder: &Path) -> Result<Self> {
        let path = folder.join(format!("direct-{}", std::process::id()));
        let bytes: Vec<u8> = (0..BYTES).map(byte).collect();
        let mut file = File::create(&path).context("creating the file")?;
        file.write_all(&bytes).and_then(|()| file.sync_all())?;
        let direct = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECT)
            .open(&path);
        std::fs::remove_file(&path)?;
        let file = direct.context("the file system of the folder has no direct I/O")?;
        let memory = Field::new(BYTES, PageKind::Small)?;
        Ok(Self { file, memory })
    }

    /// The addresses of the memory.
    pub const fn range(&self) -> Range<usize> {
        self.memory.start..self.memory.start + BYTES
    }

    /// Reads blocks at random until `stop`; returns blocks read, and the number of wrong ones.
    pub fn read_often(&self, stop: &AtomicBool, seed: u64) -> Result<(u64, u64)> {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut blocks, mut wrong) = (0, 0);
        while !stop.load(Ordering::Relaxed) {
            let at = random.usize(..BYTES / BLOCK) * BLOCK;
            let block = std::ptr::with_exposed_provenance_mut::<u8>(self.memory.start + at);
            // SAFETY: in bounds of memory that this thread alone reads and writes.
            let read = unsafe {
                std::ptr::write_bytes(block, 0, BLOCK);
                libc::pread(
                    self.file.as_raw_fd(),
                    block.cast(),
                    BLOCK,
                    at as libc::off_t,
                )
            };
            if read != BLOCK as isize {
                anyhow::bail!("direct read: {}", std::io::Error::last_os_error());
            }
            // SAFETY: as above; no thread writes to the block now.
            let seen = unsafe { std::slice::from_raw_parts(block, BLOCK) };
            let right = seen
                .iter()
                .enumerate()
                .all(|(i, seen)| *seen == byte(at + i));
            blocks += 1;
            wrong += u64::from(!right);
        }
        Ok((blocks, wrong))
    }
}
