//! ATMem's original form (section 5, figure 4), for comparison: copy into a staging buffer on the target, map
//! fresh pages of the target in place of the source, copy back.
//!
//! Two copies and two first touches for each page, and no protection against a writer: the paper moves between
//! two iterations of the program, when no thread writes. The stress test uses it as the method whose errors it
//! must catch.

use super::unit_pages::{PAGE_BYTES, UnitPages};
use super::{PageKind, StagedCopy, UNIT_BYTES};
use crate::memory;
use crate::policy::{self, MempolicyMode, NodeMask};

impl StagedCopy {
    /// Moves whole units in the paper's form. The mapping is replaced; its pages are of `kind`.
    ///
    /// # Errors
    /// The kernel's error number. A failure before the source is replaced changes nothing.
    ///
    /// # Safety
    /// The range is private anonymous memory on unit boundaries, all of its pages are resident, and **no thread
    /// touches it** until this returns.
    pub unsafe fn move_by_two_copies(
        &mut self,
        start: usize,
        units: usize,
        node: u32,
        kind: PageKind,
    ) -> memory::Result<()> {
        let bytes = units * UNIT_BYTES;
        let reserved = memory::reserve(bytes + UNIT_BYTES)?;
        let staging = reserved.next_multiple_of(UNIT_BYTES);
        let moved = fresh_at(staging, bytes, node, kind).and_then(|()| {
            self.copy_units(start, staging, units);
            fresh_at(start, bytes, node, kind)?;
            self.copy_units(staging, start, units);
            Ok(())
        });
        // SAFETY: the staging buffer was made here and is not used any more.
        unsafe { memory::unmap(reserved, bytes + UNIT_BYTES)? };
        moved
    }

    fn copy_units(&self, from: usize, to: usize, units: usize) {
        let all = UnitPages::default().inverse();
        for unit in 0..units {
            let at = unit * UNIT_BYTES;
            // SAFETY: the caller's range and its staging buffer, both of the given number of units.
            unsafe { self.crew.copy(from + at, to + at, &all) };
        }
    }
}

fn fresh_at(address: usize, bytes: usize, node: u32, kind: PageKind) -> memory::Result<()> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    let advice = match kind {
        PageKind::Small => libc::MADV_NOHUGEPAGE,
        PageKind::Huge => libc::MADV_HUGEPAGE,
    };
    // SAFETY: callers own the range, and have a copy of its content.
    unsafe {
        memory::map(address, bytes, access, flags, -1, 0)?;
        // A kernel without huge pages or nodes refuses; the pages then stay as they are.
        let _ = memory::advise(address, bytes, advice);
        if let Some(nodes) = NodeMask::of(&[node]) {
            let _ = policy::set_for_range(address, bytes, MempolicyMode::Preferred, &nodes);
        }
    }
    Ok(())
}

const _: () = assert!(UNIT_BYTES.is_multiple_of(PAGE_BYTES));
