//! The second ring of events whose hardware writes its records itself, such as Arm SPE.
//!
//! ```text
//! ring of records   ... | AUX: 40 bytes at 96, thread 7 | ...
//! AUX ring          | read already | 40 bytes of thread 7 | being written |
//!                                   ^ 96                   ^ 136
//! ```
//!
//! A record in the ordinary ring tells which bytes are complete and whose they are. The hardware goes
//! on behind them, and stops where it would meet what was not given back.

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use perf_event_open_sys::bindings::perf_event_mmap_page;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::ring::{Ring, spans};

/// The smallest AUX ring that Arm's driver takes.
const PAGES_AT_LEAST: usize = 2;

/// A mapped AUX ring. It must be dropped before the ring that it belongs to.
#[derive(Debug)]
pub(super) struct AuxRing {
    data: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone and reading it needs `&mut self`, so it may be
// handed to another thread.
unsafe impl Send for AuxRing {}

/// What the hardware wrote for one thread, as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// When it was complete, `CLOCK_MONOTONIC`, nanoseconds.
    pub time_ns: u64,
    /// Processor.
    pub cpu: u32,
    /// Something is missing behind it, because the ring was full or the hardware failed.
    pub truncated: bool,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl AuxRing {
    /// Maps an AUX ring of about this size for an event whose ring is mapped.
    ///
    /// # Errors
    /// `EOPNOTSUPP`: the event has none. `EPERM`, `ENOMEM`: it is too large.
    pub(super) fn map(event: &OwnedFd, ring: &Ring, bytes: usize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let least = PAGES_AT_LEAST * page;
        let bytes = bytes.clamp(least, 1 << 30).next_power_of_two();
        let offset = ring.mapped_bytes() as u64;
        // The kernel reads both when the AUX ring is mapped.
        ring.position(std::mem::offset_of!(perf_event_mmap_page, aux_offset))
            .store(offset, Ordering::Relaxed);
        ring.position(std::mem::offset_of!(perf_event_mmap_page, aux_size))
            .store(bytes as u64, Ordering::Release);
        // SAFETY: a new mapping at an address of the kernel's choice disturbs no other memory.
        let data = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                event,
                offset,
            )
        }?;
        let data = NonNull::new(data.cast::<u8>()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { data, bytes })
    }

    /// The bytes that a record announces, given back to the hardware; none where the record cannot
    /// be right.
    pub(super) fn take(&mut self, ring: &Ring, offset: u64, size: u64) -> Option<Vec<u8>> {
        let end = offset.checked_add(size)?;
        let head = ring.position(std::mem::offset_of!(perf_event_mmap_page, aux_head));
        let tail = ring.position(std::mem::offset_of!(perf_event_mmap_page, aux_tail));
        // Acquire: the bytes are read only after the head that announces them.
        let is_there =
            offset >= tail.load(Ordering::Relaxed) && end <= head.load(Ordering::Acquire);
        let parts = spans(self.bytes, offset, end).filter(|_| is_there)?;
        let mut bytes: Vec<u8> = Vec::with_capacity(usize::try_from(size).ok()?);
        for part in parts {
            // SAFETY: `spans` keeps the range within the mapping, and the hardware leaves bytes
            // between tail and head alone. The destination was reserved for both parts.
            unsafe {
                let from = self.data.as_ptr().add(part.start);
                std::ptr::copy_nonoverlapping(
                    from,
                    bytes.as_mut_ptr().add(bytes.len()),
                    part.len(),
                );
                bytes.set_len(bytes.len() + part.len());
            }
        }
        // Release: the hardware may overwrite the bytes only after they were copied.
        tail.store(end, Ordering::Release);
        Some(bytes)
    }
}

impl Drop for AuxRing {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this length, nobody else holds it, and no
        // reference into it outlives `self`. Failure would leave it mapped, which is safe.
        let _ = unsafe { munmap(self.data.as_ptr().cast(), self.bytes) };
    }
}
