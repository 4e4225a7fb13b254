//! Makes system calls without the C library: no symbol is looked up, nothing is allocated, and `errno` stays
//! unchanged.

use core::arch::asm;

/// An error number of the kernel, and the result of a system call.
pub use rustix::io::{Errno, Result};

/// Makes system call `number` with at most six arguments; those that are not given are 0. Returns the kernel's result.
///
/// # Errors
/// The kernel's error number.
///
/// # Safety
/// As the system call itself.
#[inline]
pub unsafe fn call<const GIVEN: usize>(
    number: libc::c_long,
    given: [usize; GIVEN],
) -> Result<usize> {
    const { assert!(GIVEN <= 6) };
    let mut arguments = [0; 6];
    arguments[..GIVEN].copy_from_slice(&given);
    let answer: isize;
    // SAFETY: the kernel clobbers only rax, rcx and r11, all named; what the call does to memory
    // is the caller's promise.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    // SAFETY: the kernel keeps every register but x0; what the call does to memory is the
    // caller's promise.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") arguments[0] as isize => answer,
            in("x1") arguments[1],
            in("x2") arguments[2],
            in("x3") arguments[3],
            in("x4") arguments[4],
            in("x5") arguments[5],
            options(nostack),
        );
    }
    check(answer)
}

/// The kernel returns an error as a number from -4,095 to -1.
fn check(answer: isize) -> Result<usize> {
    if (-4095..0).contains(&answer) {
        Err(Errno::from_raw_os_error(-answer as i32))
    } else {
        Ok(answer as usize)
    }
}
