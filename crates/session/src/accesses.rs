//! Access counts of a session file: reads the counts added since the last read.

use std::mem::size_of;
use std::os::unix::fs::FileExt;

use isotherm_abi::accesses::{PAGE_SHIFT, REGION_COUNT_BYTES, REGION_PAGES, REGION_SHIFT};

use crate::error::SessionError;
use crate::file::SessionFile;
use crate::record::long;

impl SessionFile {
    /// Passes the counts since the last call to `take`, as (address of a page of 4 KiB, counts).
    ///
    /// # Errors
    /// The file was cut short.
    pub fn read_accesses(&mut self, mut take: impl FnMut(u64, u64)) -> Result<(), SessionError> {
        let mut regions = Vec::new();
        let (table, counts) = (self.header.regions, self.header.access_counts);
        self.read_records(table, 0, table.slots, |slot, record| {
            // The runtime stores the region's number plus 1.
            if let Some(region) = long(record, 0).checked_sub(1) {
                regions.push((slot, region));
            }
        })?;
        let mut bytes = vec![0; REGION_COUNT_BYTES as usize];
        for (slot, region) in regions {
            let Some(start) = region.checked_mul(1 << REGION_SHIFT) else {
                continue;
            };
            self.file
                .read_exact_at(&mut bytes, counts.offset + slot * REGION_COUNT_BYTES)?;
            if bytes.iter().all(|byte| *byte == 0) {
                continue;
            }
            let read = self.counts_read.entry(slot);
            let read = read.or_insert_with(|| vec![0; REGION_PAGES as usize]);
            let words = bytes.chunks_exact(size_of::<u64>());
            for ((page, known), word) in (0..).zip(read).zip(words) {
                let now = long(word, 0);
                if now > *known {
                    take(start + (page << PAGE_SHIFT), now - *known);
                }
                *known = now;
            }
        }
        Ok(())
    }
}
