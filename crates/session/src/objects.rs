//! [`SessionFile::read_objects`] reads from the ring in a session file the large allocations ([`LargeAllocation`]: of 64 KiB or more, of
//! sites with an arena of their own) that are new since the last read, and counts those that were lost.

use isotherm_abi::session::ObjectRecord;

use crate::error::SessionError;
use crate::file::SessionFile;
use crate::header::Progress;

/// A large allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargeAllocation {
    /// First address.
    pub address: u64,
    /// Bytes, not zero; `address + bytes` does not overflow.
    pub bytes: u64,
    /// Number of its site in the site table.
    pub site: u32,
}

impl SessionFile {
    /// Passes the large allocations since the last call to `take`, oldest first. Returns the number of allocations that
    /// were overwritten or are not complete.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn read_objects(
        &mut self,
        progress: &Progress,
        mut take: impl FnMut(LargeAllocation),
    ) -> Result<u64, SessionError> {
        let table = self.header.objects;
        let written = progress.objects_written;
        if table.slots == 0 || written <= self.objects_read {
            return Ok(0);
        }
        let first = self.objects_read.max(written.saturating_sub(table.slots));
        let mut lost = first - self.objects_read;
        self.read_ring(table, first..written, |number, record| {
            match allocation(number, record) {
                Some(allocation) => take(allocation),
                None => lost += 1,
            }
        })?;
        self.objects_read = written;
        Ok(lost)
    }
}

/// The allocation with this number; `None` where its slot holds another one, or one that is being written.
fn allocation(number: u64, record: ObjectRecord) -> Option<LargeAllocation> {
    let (address, bytes) = (record.address.into_inner(), record.bytes.into_inner());
    address.checked_add(bytes).filter(|_| bytes > 0)?;
    (record.number.into_inner() == number + 1).then(|| LargeAllocation {
        address,
        bytes,
        site: record.site.into_inner(),
    })
}
