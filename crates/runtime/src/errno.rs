//! Reads and sets `errno`, and converts results to the return values of the C library.

use isotherm_sys::memory::Errno;

/// Sets `errno`.
pub(crate) fn set_errno(number: i32) {
    // SAFETY: the C library gives each of its threads an `errno`; only such threads come here.
    unsafe { *libc::__errno_location() = number };
}

/// This thread's `errno`.
pub(crate) fn errno() -> i32 {
    // SAFETY: as in `set_errno`.
    unsafe { *libc::__errno_location() }
}

/// The C library's way to answer: 0, or -1 and `errno`.
pub(crate) fn answer(result: Result<(), Errno>) -> i32 {
    answer_number(result.map(|()| 0)) as i32
}

/// The C library's way to answer an address or a number: it, or all bits set (`MAP_FAILED`, -1) and
/// `errno`.
pub(crate) fn answer_number(result: Result<usize, Errno>) -> usize {
    result.unwrap_or_else(|error| {
        set_errno(error.raw_os_error());
        usize::MAX
    })
}
