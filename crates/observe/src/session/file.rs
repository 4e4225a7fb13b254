//! An open session file, and the touches that it delivers.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::mem::{offset_of, size_of};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};

use isotherm_abi::session::{SessionHeader, TouchRecord, TouchRing};
use isotherm_sys::private::check_file;
use rustix::fs::OFlags;

use super::error::SessionError;
use super::header::{HEADER_BYTES, Header, Progress};
use super::record::long;

/// Counts by slot at the last read; slots without counts are absent.
type CountsRead = BTreeMap<u64, Vec<u64>>;

/// An open session file.
#[derive(Debug)]
pub struct SessionFile {
    pub(super) file: File,
    path: PathBuf,
    pub(super) header: Header,
    /// The file is also writable: then the runtime is notified how many touches were read.
    writable: bool,
    touches_read: u64,
    pub(super) counts_read: CountsRead,
}

impl SessionFile {
    /// Opens and checks a file.
    ///
    /// # Errors
    /// It cannot be opened, is not a plain file that only this user can write, or its header is wrong or
    /// still empty.
    pub fn open(path: &Path) -> Result<Self, SessionError> {
        // The open does not follow a planted link and does not wait for the other end of a planted pipe.
        let careful = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let open = |write| {
            OpenOptions::new()
                .read(true)
                .write(write)
                .custom_flags(careful.bits() as i32)
                .open(path)
        };
        let (file, writable) = match open(true) {
            Ok(file) => (file, true),
            Err(_) => (open(false)?, false),
        };
        check_file(&file).map_err(|error| SessionError::Wrong(error.to_string()))?;
        let header = Header::check(&read_header(&file)?, file.metadata()?.len())?;
        Ok(Self {
            file,
            path: path.to_owned(),
            header,
            writable,
            touches_read: 0,
            counts_read: CountsRead::default(),
        })
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The part of its header that never changes.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The current counts and state of the runtime.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn progress(&self) -> Result<Progress, SessionError> {
        let bytes = read_header(&self.file)?;
        // The records are read after the counts that announce them.
        fence(Ordering::Acquire);
        Ok(self.header.progress(&bytes))
    }

    /// Passes the unread trapped accesses to `take` as (address, time), oldest first. Returns the
    /// number that were overwritten before they could be read.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn read_touches(
        &mut self,
        progress: &Progress,
        mut take: impl FnMut(u64, u64),
    ) -> Result<u64, SessionError> {
        const RECORD: u64 = size_of::<TouchRecord>() as u64;
        let slots = self.header.touches.slots;
        let written = progress.touches_written;
        if slots == 0 || written <= self.touches_read {
            return Ok(0);
        }
        let first = self.touches_read.max(written.saturating_sub(slots));
        let mut records = Vec::with_capacity((written - first) as usize);
        let mut position = first;
        while position < written {
            let slot = position & (slots - 1);
            let run = (slots - slot).min(written - position);
            let mut bytes = vec![0; (run * RECORD) as usize];
            let offset = self.header.touches.offset + slot * RECORD;
            self.file.read_exact_at(&mut bytes, offset)?;
            records.extend(bytes.chunks_exact(RECORD as usize).map(|record| {
                let (address, time) = record.split_at(offset_of!(TouchRecord, time_ns));
                (long(address, 0), long(time, 0))
            }));
            position += run;
        }
        // The runtime may have overwritten the oldest of these since.
        let since = self.progress()?.touches_written;
        let overwritten = since.saturating_sub(slots).saturating_sub(first);
        let skipped = overwritten.min(records.len() as u64);
        for (address, time) in &records[skipped as usize..] {
            take(*address, *time);
        }
        let lost = first - self.touches_read + skipped;
        self.touches_read = written;
        self.tell_touches_read();
        Ok(lost)
    }

    /// Informs the runtime only: it never waits for the reader, so a failure changes nothing.
    fn tell_touches_read(&self) {
        const READ: usize = offset_of!(SessionHeader, touches) + offset_of!(TouchRing, read);
        if self.writable {
            let _ = self
                .file
                .write_all_at(&self.touches_read.to_ne_bytes(), READ as u64);
        }
    }
}

fn read_header(file: &File) -> Result<[u8; HEADER_BYTES], SessionError> {
    let mut bytes = [0; HEADER_BYTES];
    let mut filled = 0;
    while filled < HEADER_BYTES {
        match file.read_at(&mut bytes[filled..], filled as u64)? {
            // Truncated, or just created without its length.
            0 => return Err(SessionError::NotYet),
            more => filled += more,
        }
    }
    Ok(bytes)
}
