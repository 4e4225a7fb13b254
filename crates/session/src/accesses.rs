//! Reads the counts of a program that counts its own accesses (a profile build) from its session file: for each page those that were added
//! since the last read.

use std::os::unix::fs::FileExt;

use isotherm_abi::accesses::{PAGE_SHIFT, REGION_COUNT_BYTES, REGION_PAGES, REGION_SHIFT};
use zerocopy::IntoBytes;

use crate::error::SessionError;
use crate::file::SessionFile;

impl SessionFile {
    /// Passes the counts since the last call to `take`, as (address of a page of 4 KiB, counts).
    ///
    /// # Errors
    /// The file was cut short.
    pub fn read_accesses(&mut self, mut take: impl FnMut(u64, u64)) -> Result<(), SessionError> {
        let mut regions = Vec::new();
        let (table, counts) = (self.header.regions, self.header.access_counts);
        self.read_records(table, 0, table.slots, |slot, number: u64| {
            // The runtime stores the region's number plus 1.
            if let Some(region) = number.checked_sub(1) {
                regions.push((slot, region));
            }
        })?;
        let mut present = vec![0_u64; REGION_PAGES as usize];
        for (slot, region) in regions {
            let Some(start) = region.checked_mul(1 << REGION_SHIFT) else {
                continue;
            };
            let place = counts.offset + slot * REGION_COUNT_BYTES;
            self.file.read_exact_at(present.as_mut_bytes(), place)?;
            if present.iter().all(|count| *count == 0) {
                continue;
            }
            let read = self.counts_read.entry(slot);
            let read = read.or_insert_with(|| vec![0; REGION_PAGES as usize]);
            for ((page, known), &now) in (0..).zip(read).zip(&present) {
                if now > *known {
                    take(start + (page << PAGE_SHIFT), now - *known);
                }
                *known = now;
            }
        }
        Ok(())
    }
}
