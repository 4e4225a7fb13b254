//! Moves memory in ATMem's original form (section 5, figure 4), for comparison: copies it into a staging buffer on the target, maps fresh
//! pages of the target in place of the source, and copies it back.
//!
//! Two copies and two first touches for each page, and no protection against a writer: the paper moves between
//! two iterations of the program, when no thread writes. The stress test uses it as the method whose errors it
//! must catch.

use isotherm_sys::memory;
use isotherm_sys::policy::{self, MempolicyMode, NodeMask};
use isotherm_sys::staged::{PageKind, UNIT_BYTES};

use crate::field::advice;

/// Moves a range in the paper's form, by the given number of threads. The mapping is replaced; its pages are of
/// `kind`.
///
/// # Errors
/// The kernel's error number. A failure before the source is replaced changes nothing.
///
/// # Safety
/// The range is private anonymous memory on unit boundaries, all of its pages are resident, and **no thread
/// touches it** until this returns.
pub unsafe fn move_by_two_copies(
    start: usize,
    bytes: usize,
    node: u32,
    kind: PageKind,
    threads: usize,
) -> memory::Result<()> {
    let reserved = memory::reserve(bytes + UNIT_BYTES)?;
    let staging = reserved.next_multiple_of(UNIT_BYTES);
    // SAFETY: the caller's range and a staging buffer of the same size, which no other code knows.
    let moved = fresh_at(staging, bytes, node, kind).and_then(|()| unsafe {
        copy(start, staging, bytes, threads);
        fresh_at(start, bytes, node, kind)?;
        copy(staging, start, bytes, threads);
        Ok(())
    });
    // SAFETY: the staging buffer was made here and is not used any more.
    unsafe { memory::unmap(reserved, bytes + UNIT_BYTES)? };
    moved
}

/// memcpy, cut among the threads.
///
/// # Safety
/// Both ranges are mapped and apart, and no other thread touches them.
pub unsafe fn copy(from: usize, to: usize, bytes: usize, threads: usize) {
    let piece = bytes.div_ceil(threads.max(1));
    std::thread::scope(|scope| {
        for at in (0..bytes).step_by(piece) {
            let length = piece.min(bytes - at);
            // SAFETY: the caller's promise; the pieces do not overlap.
            scope.spawn(move || unsafe {
                std::ptr::copy_nonoverlapping(
                    (from + at) as *const u8,
                    (to + at) as *mut u8,
                    length,
                );
            });
        }
    });
}

fn fresh_at(address: usize, bytes: usize, node: u32, kind: PageKind) -> memory::Result<()> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: callers own the range, and have a copy of its content.
    unsafe {
        memory::map(address, bytes, access, flags, -1, 0)?;
        // A kernel without huge pages or nodes refuses; the pages then stay as they are.
        let _ = memory::advise(address, bytes, advice(kind));
        if let Some(nodes) = NodeMask::of(&[node]) {
            let _ = policy::set_for_range(address, bytes, MempolicyMode::Preferred, &nodes);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{fresh_at, move_by_two_copies};
    use isotherm_sys::memory;
    use isotherm_sys::staged::{PageKind, UNIT_BYTES};

    #[test]
    fn memory_that_no_thread_touches_keeps_its_words() {
        let bytes = 4 * UNIT_BYTES;
        for kind in [PageKind::Small, PageKind::Huge] {
            let map = memory::fresh(bytes + UNIT_BYTES).expect("memory");
            let start = map.next_multiple_of(UNIT_BYTES);
            fresh_at(start, bytes, 0, kind).expect("maps");
            // SAFETY: the range was mapped here, and this thread alone uses it.
            unsafe {
                for word in (start..start + bytes).step_by(8) {
                    (word as *mut usize).write(word ^ 0x5eed);
                }
                move_by_two_copies(start, bytes, 0, kind, 2).expect("moves");
                let intact = |word: usize| (word as *const usize).read() == word ^ 0x5eed;
                assert!((start..start + bytes).step_by(8).all(intact));
                memory::unmap(map, bytes + UNIT_BYTES).expect("unmap");
            }
        }
    }
}
