//! `EventMemory` maps memory of a perf event (a ring, or the control page), which the kernel or the hardware writes while we read.

use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Most bytes of a ring.
const BYTES_AT_MOST: usize = 1 << 30;

/// Shared memory of an event.
#[derive(Debug)]
pub(super) struct EventMemory {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, and only atomic words and bytes that no other party writes are
// read, so it may be handed to another thread.
unsafe impl Send for EventMemory {}

impl EventMemory {
    /// Maps a part of an event.
    pub(super) fn map(event: impl AsFd, offset: u64, bytes: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice disturbs no other memory.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                event,
                offset,
            )
        }?;
        let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { start, bytes })
    }

    /// Bytes mapped.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The aligned 64-bit word at an offset.
    pub(super) fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset < self.bytes);
        // SAFETY: the word is mapped as long as `self` lives, and aligned. Other parties write it while we read,
        // both by atomic accesses.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(offset).cast()) }
    }

    /// Appends a copy of bytes that no other party writes now.
    pub(super) fn copy(&self, part: Range<usize>, out: &mut Vec<u8>) {
        assert!(part.start <= part.end && part.end <= self.bytes);
        out.reserve(part.len());
        // SAFETY: the range is mapped, and bytes outside it may change, so no reference is made. The destination
        // is reserved above.
        unsafe {
            let from = self.start.as_ptr().add(part.start);
            std::ptr::copy_nonoverlapping(from, out.as_mut_ptr().add(out.len()), part.len());
            out.set_len(out.len() + part.len());
        }
    }
}

impl Drop for EventMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this length, no other value holds it, and no reference into
        // it outlives `self`. Failure would leave it mapped, which is safe.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Maps about this many bytes, a power of two, or the largest smaller one that the kernel grants, `least` at least.
pub(super) fn map_largest(
    least: usize,
    bytes: usize,
    map: impl Fn(usize) -> io::Result<EventMemory>,
) -> io::Result<EventMemory> {
    let mut bytes = bytes.clamp(least, BYTES_AT_MOST).next_power_of_two();
    loop {
        match map(bytes) {
            Err(error)
                if bytes > least
                    && matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM)) =>
            {
                bytes /= 2;
            }
            other => return other,
        }
    }
}
