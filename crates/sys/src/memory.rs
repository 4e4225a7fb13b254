//! Maps, protects and advises memory of this process, and finds which of its pages are resident.
//!
//! These are the plain system calls, without the C library: a preloaded allocator must not look up symbols,
//! allocate or set `errno` in a hook, and a thread that the C library does not know has no `errno` to set.
//! The unsafe functions are so in the same way: they may replace, unmap or protect memory that other code still
//! uses. The caller owns the range.

use crate::system_call::call;
pub use crate::system_call::{Errno, Result};

/// `mmap(2)`. Returns the address.
///
/// # Errors
/// The kernel's error number.
///
/// # Safety
/// With `MAP_FIXED` the caller owns the range that is replaced.
pub unsafe fn map(
    address: usize,
    bytes: usize,
    protection: i32,
    flags: i32,
    descriptor: i32,
    offset: i64,
) -> Result<usize> {
    let arguments = [
        address,
        bytes,
        protection as usize,
        flags as usize,
        descriptor as usize,
        offset as usize,
    ];
    // SAFETY: the caller's promise.
    unsafe { call(libc::SYS_mmap, arguments) }
}

/// Reserves address space that cannot be touched and is not counted as memory.
///
/// # Errors
/// The kernel's error number, `ENOMEM` where the address space is limited.
pub fn reserve(bytes: usize) -> Result<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: without MAP_FIXED the kernel picks a range that no mapping uses.
    unsafe { map(0, bytes, libc::PROT_NONE, flags, -1, 0) }
}

/// Fresh zeroed private memory, taken page by page at first touch.
///
/// # Errors
/// The kernel's error number.
pub fn fresh(bytes: usize) -> Result<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: without MAP_FIXED the kernel picks a range that no mapping uses.
    unsafe { map(0, bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) }
}

/// Turns a range back into a reservation as [`reserve`] makes it; its contents are gone.
///
/// # Errors
/// The kernel's error number.
///
/// # Safety
/// The caller owns the range.
pub unsafe fn reserve_again(address: usize, bytes: usize) -> Result<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: the caller's promise.
    unsafe { map(address, bytes, libc::PROT_NONE, flags, -1, 0) }.map(|_| ())
}

/// `munmap(2)`.
///
/// # Errors
/// The kernel's error number.
///
/// # Safety
/// The caller owns the range.
pub unsafe fn unmap(address: usize, bytes: usize) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { call(libc::SYS_munmap, [address, bytes]) }.map(|_| ())
}

/// `mremap(2)`. Returns the new address.
///
/// # Errors
/// The kernel's error number.
///
/// # Safety
/// The caller owns both ranges.
pub unsafe fn remap(
    address: usize,
    bytes: usize,
    new_bytes: usize,
    flags: i32,
    new_address: usize,
) -> Result<usize> {
    let arguments = [address, bytes, new_bytes, flags as usize, new_address];
    // SAFETY: the caller's promise.
    unsafe { call(libc::SYS_mremap, arguments) }
}

/// `mprotect(2)`.
///
/// # Errors
/// The kernel's error number.
///
/// # Safety
/// The caller owns the range.
pub unsafe fn protect(address: usize, bytes: usize, protection: i32) -> Result<()> {
    let arguments = [address, bytes, protection as usize];
    // SAFETY: the caller's promise.
    unsafe { call(libc::SYS_mprotect, arguments) }.map(|_| ())
}

/// `madvise(2)`.
///
/// # Errors
/// The kernel's error number.
///
/// # Safety
/// The caller owns the range: some advice discards contents.
pub unsafe fn advise(address: usize, bytes: usize, advice: i32) -> Result<()> {
    let arguments = [address, bytes, advice as usize];
    // SAFETY: the caller's promise.
    unsafe { call(libc::SYS_madvise, arguments) }.map(|_| ())
}

/// Whether the page that holds `address` is resident (`mincore(2)`). An address that is not mapped
/// is not.
#[must_use]
pub fn is_resident(address: usize) -> bool {
    let mut resident = [0];
    residency(address & !(PAGE_BYTES - 1), &mut resident);
    resident[0] & 1 != 0
}

/// Bytes of a page as the kernel counts them in [`residency`], on the machines that are supported.
pub const PAGE_BYTES: usize = 4096;

/// Sets the lowest bit of one byte for each page from `address` on to whether the page is resident
/// (`mincore(2)`). Where part of the range is not mapped the bytes stay as they are.
pub fn residency(address: usize, pages: &mut [u8]) {
    let arguments = [
        address,
        pages.len() * PAGE_BYTES,
        pages.as_mut_ptr().expose_provenance(),
    ];
    // SAFETY: mincore reads no memory of the range, and writes one byte for each of its pages.
    let _ = unsafe { call(libc::SYS_mincore, arguments) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_opens_holds_data_and_closes_again() {
        let base = reserve(1 << 22).unwrap();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the range was reserved here and no other code knows it.
        unsafe {
            protect(base, 4096, access).unwrap();
            (base as *mut u64).write(7);
            assert_eq!((base as *const u64).read(), 7);
            reserve_again(base, 4096).unwrap();
            protect(base, 4096, access).unwrap();
            assert_eq!((base as *const u64).read(), 0);
            unmap(base, 1 << 22).unwrap();
        }
    }

    #[test]
    fn pages_that_were_written_are_resident_and_no_others() {
        let base = fresh(4 * PAGE_BYTES).unwrap();
        // SAFETY: the range was mapped here and no other code has its address.
        unsafe { ((base + 2 * PAGE_BYTES) as *mut u8).write(1) };
        let mut pages = [0; 4];
        residency(base, &mut pages);
        assert_eq!(pages.map(|page| page & 1), [0, 0, 1, 0]);
        // SAFETY: as above.
        unsafe { unmap(base, 4 * PAGE_BYTES).unwrap() };
        residency(base, &mut pages);
        assert_eq!(pages.map(|page| page & 1), [0, 0, 1, 0], "as they were");
    }

    #[test]
    fn an_error_of_the_kernel_is_returned_as_its_number() {
        // SAFETY: address 1 is not a page, so the kernel refuses and nothing happens.
        let answer = unsafe { protect(1, 4096, 0) };
        assert_eq!(answer, Err(Errno::INVAL));
    }
}
