//! [`SessionFile::read_touches`] reads from the ring in a session file the trapped accesses that are new since the last read, each with its
//! page and time, and counts those that were lost. The runtime traps a random choice of touched pages of the emulated pair, of both tiers,
//! and records the next access to each, a page fault.

use isotherm_abi::session::TouchRecord;

use crate::error::SessionError;
use crate::file::{SessionFile, at};
use crate::header::Progress;

impl SessionFile {
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
        let table = self.header.touches;
        let slots = table.slots;
        let written = progress.touches_written;
        if slots == 0 || written <= self.touches_read {
            return Ok(0);
        }
        let first = self.touches_read.max(written.saturating_sub(slots));
        let mut records = Vec::with_capacity((written - first) as usize);
        self.read_ring(table, first..written, |_, record: TouchRecord| {
            records.push((record.address.into_inner(), record.time_ns.into_inner()));
        })?;
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
        let _ = self.write(at!(touches.read), &self.touches_read);
    }
}
