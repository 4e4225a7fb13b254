//! [`Sparse`] is a large array in one anonymous mapping, zero at first, which takes memory only where it is written: for the runtime's
//! tables of pages. [`PageList`] is a list of page numbers in such a mapping, with a limit.
//!
//! One mapping, made once, never released: the tables live as long as the process. No allocator is involved,
//! because the tables are used under the allocator's own locks.

use core::ops::Deref;

use isotherm_sys::memory::{self, Errno};
use zerocopy::FromZeros;

#[derive(Clone, Copy)]
pub(crate) struct Sparse<T: FromZeros + 'static> {
    items: &'static [T],
}

impl<T: FromZeros> Sparse<T> {
    /// Maps room for `length` items.
    pub(crate) fn map(length: usize) -> Result<Self, Errno> {
        let start = memory::fresh(length * size_of::<T>())? as *const T;
        // SAFETY: the mapping is page-aligned, large enough, zeroed, never unmapped, and `T` is
        // valid as zeroes. Shared references are sound because `T`s that change are atomics.
        let items = unsafe { core::slice::from_raw_parts(start, length) };
        Ok(Self { items })
    }

    /// The items, for as long as the process lives.
    pub(crate) const fn items(&self) -> &'static [T] {
        self.items
    }
}

impl<T: FromZeros> Deref for Sparse<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.items
    }
}

/// A list of page numbers in a mapping of its own, with room for every page of the pool.
pub(crate) struct PageList {
    room: &'static mut [u32],
    length: usize,
}

impl PageList {
    /// Maps room for `capacity` pages.
    pub(crate) fn map(capacity: usize) -> Result<Self, Errno> {
        let start = memory::fresh(capacity * size_of::<u32>())? as *mut u32;
        // SAFETY: the mapping is fresh, zeroed, large enough and never unmapped, and no other code knows it.
        let room = unsafe { core::slice::from_raw_parts_mut(start, capacity) };
        Ok(Self { room, length: 0 })
    }

    /// Adds a page. A full list drops it: the page then stays as it is, which is always safe.
    pub(crate) fn push(&mut self, page: u32) {
        if let Some(place) = self.room.get_mut(self.length) {
            *place = page;
            self.length += 1;
        }
    }

    /// The pages in the order they were added, or as sorted since.
    pub(crate) fn pages(&mut self) -> &mut [u32] {
        &mut self.room[..self.length]
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(crate) fn clear(&mut self) {
        self.length = 0;
    }
}
