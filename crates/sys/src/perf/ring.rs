//! A [`Ring`] maps the buffer in which the kernel passes on the records of an event, copies new records out, and releases their room.
//!
//! ```text
//! page 0              pages 1 to 2^n
//! +-------------+     +------+------------------------+---------+
//! | head, tail  |     | free | records not yet read   | free    |
//! +-------------+     +------+------------------------+---------+
//!                            ^ tail (ours)            ^ head (kernel's)
//! ```
//!
//! Both positions only grow; a position modulo the size is the place in the buffer. The kernel never writes
//! between tail and head, so those bytes are copied out before they are decoded.

use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::perf_event_mmap_page;

use super::event_memory::{EventMemory, map_largest};

/// The smallest useful ring: a few dozen samples.
const SMALLEST_BYTES: usize = 16 << 10;

/// A mapped ring.
#[derive(Debug)]
pub struct Ring {
    memory: EventMemory,
    /// Offset of the records, behind the first page.
    records: usize,
}

/// A head and tail that no kernel writes: the memory is not a ring, or another reader moved it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inconsistent;

impl Ring {
    /// Maps a ring of about this size for an event, or the largest smaller one the kernel grants.
    ///
    /// # Errors
    /// `EPERM`: not even the smallest ring fits the limit of lockable memory
    /// (`/proc/sys/kernel/perf_event_mlock_kb`, `ulimit -l`). `ENOMEM`: no memory.
    pub fn map(event: impl AsFd, bytes: usize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let smallest = SMALLEST_BYTES.next_multiple_of(page).next_power_of_two();
        let map = |bytes| EventMemory::map(&event, 0, page + bytes);
        Ok(Self {
            memory: map_largest(smallest, bytes, map)?,
            records: page,
        })
    }

    /// Bytes of records that the ring can hold.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.memory.bytes() - self.records
    }

    /// Appends the records to `out` and releases their room to the kernel.
    ///
    /// # Errors
    /// Head and tail contradict each other. The ring is then emptied, so that the next call starts afresh.
    pub fn read(&mut self, out: &mut Vec<u8>) -> Result<(), Inconsistent> {
        let head = self.position(std::mem::offset_of!(perf_event_mmap_page, data_head));
        let tail = self.position(std::mem::offset_of!(perf_event_mmap_page, data_tail));
        // Acquire: the records are read only after the head that announces them.
        let end = head.load(Ordering::Acquire);
        let found = spans(self.bytes(), tail.load(Ordering::Relaxed), end);
        if let Some(parts) = &found {
            out.reserve(parts.iter().map(ExactSizeIterator::len).sum());
            for part in parts {
                let part = self.records + part.start..self.records + part.end;
                self.memory.copy(part, out);
            }
        }
        // Release: the kernel may overwrite the records only after they were copied.
        tail.store(end, Ordering::Release);
        found.map(|_| ()).ok_or(Inconsistent)
    }

    /// Bytes mapped, the first page included.
    pub(super) const fn mapped_bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// A word of the first page, by the offset of an aligned 64-bit field of `perf_event_mmap_page`.
    pub(super) fn position(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset < self.records);
        self.memory.word(offset)
    }
}

/// The bytes of a ring of `size` (a power of two) between two positions: one range, or two where the records
/// wrap. None where the positions cannot be right.
#[must_use]
pub fn spans(size: usize, tail: u64, head: u64) -> Option<[Range<usize>; 2]> {
    let length = usize::try_from(head.checked_sub(tail)?).ok()?;
    if !size.is_power_of_two() || length > size {
        return None;
    }
    let start = (tail as usize) & (size - 1);
    let first = length.min(size - start);
    Some([start..start + first, 0..length - first])
}

#[cfg(test)]
mod tests {
    use super::spans;

    #[test]
    fn records_that_wrap_come_in_two_parts_and_wrong_positions_in_none() {
        assert_eq!(spans(16, 0, 0), Some([0..0, 0..0]));
        assert_eq!(spans(16, 20, 28), Some([4..12, 0..0]));
        assert_eq!(spans(16, 12, 20), Some([12..16, 0..4]));
        assert_eq!(spans(16, 16, 32), Some([0..16, 0..0]));
        assert_eq!(spans(16, 5, 4), None, "tail past head");
        assert_eq!(spans(16, 0, 17), None, "more than the ring holds");
        assert_eq!(spans(15, 0, 1), None, "not a power of two");
        assert_eq!(spans(16, u64::MAX, u64::MAX), Some([15..15, 0..0]));
    }
}
