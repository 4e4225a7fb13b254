//! Routes a block that is freed to the allocator that owns it. In a guided run, or where the runtime passes everything through, the `free`
//! of jemalloc's copy 0 (instance) is called first; what is not its own goes on by the table [`FREE`], a function for each byte of the map
//! of the address space ([`crate::free_map`]). Else [`heap::free_hook`] looks the owner up; [`current`] is the one of the two that is
//! called now.
//!
//! `free` and every form of `operator delete` jump to one of two functions, by a byte that is set when the mode
//! is decided; programs of the compiler pass get the function's address and call it directly.
//!
//! ```text
//! undecided, profiling      heap::free_hook    looks the owner up
//! passing through, guided   instance 0's own   takes what is its own
//!                             `-- the rest -->  address >> 21  -->  a byte  -->  FREE[byte]
//! ```
//!
//! No code checks the owner first. jemalloc's fast path finds the page in its own tree and frees the block only
//! if it is in a slab of its own; it passes all others to a function that the build redirects here
//! ([`INSTANCES`]). So a block of the first tier costs what it costs in plain jemalloc. That tier is the fast
//! one: most freed blocks are small and short-lived, and so have the most accesses for their bytes.
//!
//! The bytes are a map of the whole address space, so that no check is needed either whether a block is in the
//! pool: outside of it they are 0, where a block may be instance 0's or none of ours ([`crate::c_library`]).
//! Only the part for the pool is writable; the rest is the kernel's page of zeroes.

use core::ffi::c_void;
use core::sync::atomic::Ordering;

use isotherm_abi::CHUNK_SHIFT;

use crate::arena;
use crate::block;
use crate::c_library;
#[cfg(target_arch = "x86_64")]
use crate::fast_path::FastPathState;
use crate::fast_path::HOT;
use crate::free_map::FIRST;
use crate::heap;
use crate::instance::INSTANCES;

/// `free`.
pub(crate) type Free = unsafe extern "C" fn(*mut c_void);

unsafe extern "C" {
    /// Instance 0's function for blocks that its fast path does not handle.
    fn _je0_free_slowly(block: *mut c_void);
}

/// Indexed by the bytes of the map. All byte values have an entry, because the byte for an address that no
/// program has is beyond the map.
static FREE: [Free; 256] = {
    let mut free: [Free; 256] = [looked_up; 256];
    free[0] = outside;
    free[FIRST as usize] = _je0_free_slowly;
    free[1] = INSTANCES[1].free;
    free[2] = INSTANCES[2].free;
    free[3] = INSTANCES[3].free;
    free
};
const _: () = assert!(INSTANCES.len() == 4 && FIRST == 4);

/// Frees a block outside the pool, or where there is no map: while passing through and profiling.
unsafe extern "C" fn outside(block: *mut c_void) {
    // SAFETY: the caller's promise, and the block is freed by the allocator that made it.
    unsafe {
        if c_library::has(block) {
            c_library::release(block);
        } else {
            _je0_free_slowly(block);
        }
    }
}

/// Frees a block of a chunk that is no instance's. A block without an owner is the program's error, which
/// jemalloc handles.
unsafe extern "C" fn looked_up(block: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe {
        if block::arena_of(block) < arena::count() {
            heap::free_hook(block);
        } else {
            _je0_free_slowly(block);
        }
    }
}

// Called for blocks that instance 0's fast path does not handle, under the name that jemalloc calls.
#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    // As `not_taken` below; in Rust the places of both tables would be looked up.
    ".text",
    ".p2align 5",
    ".globl _je0_je_free_default",
    ".hidden _je0_je_free_default",
    ".type _je0_je_free_default, @function",
    "_je0_je_free_default:",
    "mov rcx, [rip + {hot} + {map}]",
    "test rcx, rcx",
    "jz {outside}",
    "mov rax, rdi",
    "shr rax, {shift}",
    "movzx eax, byte ptr [rcx + rax]",
    "lea rcx, [rip + {free}]",
    "jmp [rcx + rax * 8]",
    hot = sym HOT,
    map = const core::mem::offset_of!(FastPathState, free_map),
    outside = sym outside,
    shift = const CHUNK_SHIFT,
    free = sym FREE,
);

#[cfg(not(target_arch = "x86_64"))]
crate::hidden_symbols::hidden! {
    "_je0_je_free_default" => not_taken,
}

/// Frees blocks that instance 0's fast path does not handle.
#[cfg(not(target_arch = "x86_64"))]
unsafe extern "C" fn not_taken(block: *mut c_void) {
    let map = HOT.free_map.load(Ordering::Relaxed);
    // SAFETY: the map, where there is one, has a byte for every address, and the function is the one
    // for the block's owner, with the caller's promise.
    unsafe {
        let byte = if map.is_null() {
            0
        } else {
            (*map.add(block.addr() >> CHUNK_SHIFT)).load(Ordering::Relaxed)
        };
        FREE[usize::from(byte)](block);
    }
}

/// The function that frees blocks now.
#[inline]
pub(crate) fn current() -> Free {
    if HOT.frees_in_first.load(Ordering::Relaxed) {
        INSTANCES[0].free
    } else {
        heap::free_hook
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::free_map::{ADDRESS_BITS, LOOKED_UP, note, open};
    use crate::pool::CHUNK;

    const BASE: usize = 0x7000_0000_0000;

    fn byte(address: usize) -> u8 {
        let map = HOT.free_map.load(Ordering::Relaxed);
        // SAFETY: the map has a byte for every address.
        unsafe { (*map.add(address >> CHUNK_SHIFT)).load(Ordering::Relaxed) }
    }

    /// One test, because the map is the process's own.
    #[test]
    fn every_address_has_a_byte_and_blocks_of_every_size_reach_their_instance() {
        open(BASE, 1 << 30).unwrap();
        note(BASE, 2, 1);
        note(BASE + 2 * CHUNK, 3, 2);
        assert_eq!(byte(BASE + CHUNK), FIRST, "instance 0");
        assert_eq!(byte(BASE + 2 * CHUNK), LOOKED_UP, "no instance in use");
        assert_eq!(byte(BASE + 5 * CHUNK - 1), LOOKED_UP);
        assert_eq!(byte(BASE + 5 * CHUNK), 0, "never taken");
        assert_eq!(byte(0), 0);
        assert_eq!(byte((1 << ADDRESS_BITS) - 1), 0, "outside of the pool");
        note(BASE, 1, 0);
        assert_eq!(byte(BASE), LOOKED_UP, "given back");
        for bytes in [0, 8, 4096, 40_000, 4 << 20] {
            // SAFETY: each block is freed once, the second by the instance that made it.
            unsafe {
                for instance in [&INSTANCES[0], &INSTANCES[1]] {
                    let block = (instance.malloc)(bytes);
                    assert!(!block.is_null());
                    (instance.free)(block);
                }
                (INSTANCES[0].free)(core::ptr::null_mut());
            }
        }
        HOT.free_map.store(core::ptr::null_mut(), Ordering::Release);
    }
}
