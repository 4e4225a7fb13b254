//! `SessionFile::read_ring` reads records from a ring of a session file, by number: record i is in slot `i % slots`, and a later record
//! takes its place. Large allocations (`objects`) and trapped accesses (`touches`) are read by it.

use std::ops::Range;

use zerocopy::FromBytes;

use crate::error::SessionError;
use crate::file::SessionFile;
use crate::header::Table;

impl SessionFile {
    /// Passes the records with these numbers to `take`, in order. The ring has slots, at least as many as there are numbers.
    pub(crate) fn read_ring<T: FromBytes>(
        &self,
        ring: Table,
        numbers: Range<u64>,
        mut take: impl FnMut(u64, T),
    ) -> Result<(), SessionError> {
        let mut next = numbers.start;
        while next < numbers.end {
            let slot = next % ring.slots;
            let run = (ring.slots - slot).min(numbers.end - next);
            self.read_records(ring, slot, slot + run, |at, record| {
                take(next + (at - slot), record);
            })?;
            next += run;
        }
        Ok(())
    }
}
