//! [`on`] starts the use of a swap area, with a priority, and [`off`] ends it: `swapon(2)` and `swapoff(2)`, which need CAP_SYS_ADMIN.
//! `isotherm tiers --make-compressed` and `--remove-compressed` use them for compressed memory, by the system calls because the program
//! `swapon` of a busybox may have no option for the priority.

use core::ffi::CStr;

use crate::system_call::{Result, call};

/// `SWAP_FLAG_PREFER` of the kernel's `include/linux/swap.h`: the other bits of the low half are a priority.
const PREFER: usize = 0x8000;

/// Puts a swap area to use. The kernel fills areas of a higher priority first; without a choice they are negative.
///
/// # Errors
/// `EPERM`, `EINVAL` where it is no swap area, `EBUSY` where it is in use.
pub fn on(area: &CStr, priority: u8) -> Result<()> {
    let path = area.as_ptr().expose_provenance();
    let arguments = [path, PREFER | usize::from(priority)];
    // SAFETY: the path ends with a zero and lives until the call returns.
    unsafe { call(libc::SYS_swapon, arguments) }.map(|_| ())
}

/// Brings the pages of an area back to memory and ends its use.
///
/// # Errors
/// `EPERM`, `EINVAL` where it is not in use, `ENOMEM` where memory has no room for its pages, `EINTR` after a signal.
pub fn off(area: &CStr) -> Result<()> {
    let path = area.as_ptr().expose_provenance();
    // SAFETY: the path ends with a zero and lives until the call returns.
    unsafe { call(libc::SYS_swapoff, [path]) }.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::{off, on};

    #[test]
    fn what_is_no_swap_area_is_refused() {
        assert!(on(c"/dev/null", 1).is_err());
        assert!(off(c"/dev/null").is_err());
    }
}
