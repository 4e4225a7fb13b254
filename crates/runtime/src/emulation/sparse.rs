//! [`Sparse`] is a large array in one anonymous mapping, zero at first, which takes memory only where it is written: for the runtime's
//! tables of pages. [`PageList`] is a list of page numbers in such a mapping, with a limit.
//!
//! One mapping, made once, never released: the tables live as long as the process. No allocator is involved,
//! because the tables are used under the allocator's own locks.

use core::ops::Deref;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

/// A type of which a value made of zero bytes is valid.
///
/// # Safety
/// Every bit pattern of zeroes must be a valid value, and dropping it must do nothing.
pub(crate) unsafe trait Zeroed: 'static {}

// SAFETY: zero is a valid value of every integer and atomic integer; none has a destructor.
unsafe impl Zeroed for u32 {}
// SAFETY: as above.
unsafe impl Zeroed for core::sync::atomic::AtomicU16 {}
// SAFETY: as above.
unsafe impl Zeroed for core::sync::atomic::AtomicU8 {}

/// The array.
#[derive(Clone, Copy)]
pub(crate) struct Sparse<T: Zeroed> {
    items: &'static [T],
}

impl<T: Zeroed> Sparse<T> {
    /// Maps room for `length` items.
    pub(crate) fn map(length: usize) -> Result<Self, Errno> {
        let start = map_zeroes(length * size_of::<T>())? as *const T;
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

impl<T: Zeroed> Deref for Sparse<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.items
    }
}

/// Maps `bytes` of private zeroes that count against no limit until they are written.
pub(crate) fn map_zeroes(bytes: usize) -> Result<usize, Errno> {
    // SAFETY: a fresh mapping at an address that the kernel chooses; nothing refers to it.
    let start = unsafe {
        rustix::mm::mmap_anonymous(
            core::ptr::null_mut(),
            bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::NORESERVE,
        )?
    };
    Ok(start as usize)
}

/// A list of page numbers in such a mapping, with room for every page of the pool.
pub(crate) struct PageList {
    start: *mut u32,
    length: usize,
    capacity: usize,
}

impl PageList {
    /// Maps room for `capacity` pages.
    pub(crate) fn map(capacity: usize) -> Result<Self, Errno> {
        Ok(Self {
            start: map_zeroes(capacity * size_of::<u32>())? as *mut u32,
            length: 0,
            capacity,
        })
    }

    /// Adds a page. A full list drops it: the page then stays as it is, which is always safe.
    pub(crate) fn push(&mut self, page: u32) {
        if self.length < self.capacity {
            // SAFETY: in bounds of the mapping, which `&mut self` makes exclusively ours.
            unsafe { self.start.add(self.length).write(page) };
            self.length += 1;
        }
    }

    /// The pages in the order they were added, or as sorted since.
    pub(crate) fn pages(&mut self) -> &mut [u32] {
        // SAFETY: the first `length` items were written, and `&mut self` makes them exclusively ours.
        unsafe { core::slice::from_raw_parts_mut(self.start, self.length) }
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
