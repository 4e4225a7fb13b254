//! `AuxRing` maps the second ring of an event whose hardware writes its records itself, such as Arm SPE: it copies out the bytes that a
//! record of the first ring announces, and releases them to the hardware.
//!
//! ```text
//! ring of records   ... | AUX: 40 bytes at 96, thread 7 | ...
//! AUX ring          | read already | 40 bytes of thread 7 | being written |
//!                                   ^ 96                   ^ 136
//! ```
//!
//! A record in the ordinary ring reports which bytes are complete and their thread. The hardware continues
//! behind them, and stops before the bytes that were not released.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use perf_event_open_sys::bindings::perf_event_mmap_page;

use super::event_memory::{EventMemory, map_largest};
use super::record::RecordOrigin;
use super::ring::{Ring, spans};

/// The smallest AUX ring that Arm's driver accepts.
const PAGES_AT_LEAST: usize = 2;

/// A mapped AUX ring. Drop it before the ring that it belongs to.
#[derive(Debug)]
pub(super) struct AuxRing(EventMemory);

/// The records that the hardware wrote for one thread, as they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuxTrace {
    /// The thread and the processor of the records, and the time of completion.
    pub origin: RecordOrigin,
    /// Whether data after these bytes is missing, because the ring was full or the hardware failed.
    pub truncated: bool,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl AuxRing {
    /// Maps an AUX ring of about this size for an event whose ring is mapped, or the largest smaller
    /// one that the kernel grants.
    ///
    /// # Errors
    /// `EOPNOTSUPP`: the event has none. `EPERM`: not even the smallest fits the limit of lockable memory.
    /// `ENOMEM`: no memory.
    pub(super) fn map(event: impl AsFd, ring: &Ring, bytes: usize) -> io::Result<Self> {
        let least = PAGES_AT_LEAST * rustix::param::page_size();
        let offset = ring.mapped_bytes() as u64;
        let map = |bytes| {
            // The kernel reads both when the AUX ring is mapped.
            ring.position(std::mem::offset_of!(perf_event_mmap_page, aux_offset))
                .store(offset, Ordering::Relaxed);
            ring.position(std::mem::offset_of!(perf_event_mmap_page, aux_size))
                .store(bytes as u64, Ordering::Release);
            EventMemory::map(&event, offset, bytes)
        };
        map_largest(least, bytes, map).map(Self)
    }

    /// Bytes mapped.
    pub(super) const fn mapped_bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Copies the bytes that a record announces, and releases them to the hardware; `None` if the record is invalid.
    pub(super) fn take(&mut self, ring: &Ring, offset: u64, size: u64) -> Option<Vec<u8>> {
        let end = offset.checked_add(size)?;
        let head = ring.position(std::mem::offset_of!(perf_event_mmap_page, aux_head));
        let tail = ring.position(std::mem::offset_of!(perf_event_mmap_page, aux_tail));
        // Acquire: the bytes are read only after the head that announces them.
        let is_there =
            offset >= tail.load(Ordering::Relaxed) && end <= head.load(Ordering::Acquire);
        let parts = spans(self.0.bytes(), offset, end).filter(|_| is_there)?;
        let mut bytes: Vec<u8> = Vec::with_capacity(usize::try_from(size).ok()?);
        for part in parts {
            self.0.copy(part, &mut bytes);
        }
        // Release: the hardware may overwrite the bytes only after they were copied.
        tail.store(end, Ordering::Release);
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{AuxRing, Ring};
    use perf_event_open_sys::bindings::perf_event_mmap_page;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use std::os::fd::OwnedFd;
    use std::sync::atomic::Ordering;

    const HEAD: usize = std::mem::offset_of!(perf_event_mmap_page, aux_head);
    const TAIL: usize = std::mem::offset_of!(perf_event_mmap_page, aux_tail);

    /// A file in place of an event: both rings are parts of it, and the test writes in place of the hardware.
    fn played() -> (OwnedFd, Ring, AuxRing, u64) {
        let file = memfd_create("event", MemfdFlags::CLOEXEC).expect("a file");
        ftruncate(&file, 1 << 20).expect("has a size");
        let ring = Ring::map(&file, 0).expect("maps");
        let begins = ring.mapped_bytes() as u64;
        let aux = AuxRing::map(&file, &ring, 0).expect("maps");
        (file, ring, aux, begins)
    }

    #[test]
    fn what_hardware_wrote_is_taken_whole_also_over_the_end_of_its_ring() {
        let (file, ring, mut aux, begins) = played();
        let size = aux.mapped_bytes() as u64;
        let announce = |head: u64| ring.position(HEAD).store(head, Ordering::Release);
        // Positions only grow: this is the third time round.
        let at = 2 * size + size - 3;
        ring.position(TAIL).store(at, Ordering::Release);
        rustix::io::pwrite(&file, b"abc", begins + size - 3).expect("writes");
        rustix::io::pwrite(&file, b"defg", begins).expect("writes");
        announce(at + 7);
        assert_eq!(aux.take(&ring, at, 5).as_deref(), Some(b"abcde".as_slice()));
        assert_eq!(
            ring.position(TAIL).load(Ordering::Acquire),
            at + 5,
            "given back"
        );
        assert_eq!(
            aux.take(&ring, at + 5, 2).as_deref(),
            Some(b"fg".as_slice())
        );
        assert_eq!(aux.take(&ring, at + 7, 0).as_deref(), Some(b"".as_slice()));
    }

    #[test]
    fn an_announcement_that_cannot_be_right_takes_nothing() {
        let (_file, ring, mut aux, _) = played();
        let size = aux.mapped_bytes() as u64;
        ring.position(TAIL).store(100, Ordering::Release);
        ring.position(HEAD).store(200, Ordering::Release);
        for (offset, bytes) in [
            (99, 1),
            (150, 51),
            (100, size + 1),
            (u64::MAX, 2),
            (100, u64::MAX),
        ] {
            assert_eq!(aux.take(&ring, offset, bytes), None, "{bytes} at {offset}");
        }
        assert_eq!(ring.position(TAIL).load(Ordering::Acquire), 100);
    }

    #[test]
    fn an_event_without_such_a_ring_is_refused_by_the_kernel() {
        let event = crate::perf::PerfEventAttributes {
            aux_bytes: 1 << 16,
            ..crate::perf::PerfEventAttributes::cpu_clock(1_000_000)
        };
        let cpus: Vec<u32> = (0..1).collect();
        let opened = crate::perf::Sampler::open(&event, 0, &cpus, 0);
        let error = opened.expect_err("a timer has no AUX ring");
        println!("refused: {error}");
    }
}
