//! Who frees a block.
//!
//! `free` and every form of `operator delete` jump to one of two functions, by a byte that is set once it
//! is decided what the hooks do; programs of the compiler pass are told which and call it themselves.
//!
//! ```text
//! undecided, profiling      heap::free_hook    looks the owner up
//! passing through, guided   instance 0's own   takes what is its own
//!                             `-- the rest -->  address >> 21  -->  a byte  -->  FREE[byte]
//! ```
//!
//! Nobody asks first whose a block is. jemalloc's fast way finds the page in its own tree and takes the
//! block only if it lies in a slab of its own; with everything else it turns to a function that the
//! build leads here ([`INSTANCES`]). So a block of the first tier costs what it costs in plain
//! jemalloc. That tier is the fast one: what is freed most often is small and lives shortly, and so
//! has the most accesses for its bytes.
//!
//! The bytes are a map of the whole address space, so that nobody asks either whether a block lies in
//! the pool: outside of it they are 0, where a block may be instance 0's or none of ours
//! ([`crate::c_library`]). Only the part for the pool can be written; the rest is the kernel's page of zeroes.

use core::ffi::c_void;
use core::sync::atomic::Ordering;

use isotherm_abi::CHUNK_SHIFT;
use isotherm_sys::memory::{self, Errno};

use crate::arena;
use crate::c_library;
#[cfg(target_arch = "x86_64")]
use crate::fast_path::FastPathState;
use crate::fast_path::HOT;
use crate::heap;
use crate::instance::{self, INSTANCES};
use crate::pool::CHUNK;
use crate::state;

/// `free`.
pub(crate) type Free = unsafe extern "C" fn(*mut c_void);

/// Bits of the addresses that the kernel gives a program which does not ask for higher ones.
const ADDRESS_BITS: u32 = if cfg!(target_arch = "x86_64") { 47 } else { 48 };

/// Bytes of the map: 64 MiB of address space, or twice as much.
const MAP_BYTES: usize = 1 << (ADDRESS_BITS - CHUNK_SHIFT);

/// The part of the map that is opened begins and ends at multiples of the largest page there is.
const PAGE: usize = 1 << 16;

/// Stands in the map for chunks whose blocks are no instance's that is called straight away.
const LOOKED_UP: u8 = u8::MAX;

/// Stands in the map for chunks of instance 0; the others stand for themselves.
const FIRST: u8 = INSTANCES.len() as u8;

unsafe extern "C" {
    /// Instance 0's way for whatever its fast one does not take.
    fn _je0_free_slowly(block: *mut c_void);
}

/// By the bytes of the map. All bytes lead somewhere, because the byte for an address that no program
/// has lies beyond the map.
static FREE: [Free; 256] = {
    let mut free: [Free; 256] = [looked_up; 256];
    free[0] = outside;
    free[FIRST as usize] = _je0_free_slowly;
    free[1] = INSTANCES[1].free;
    free[2] = INSTANCES[2].free;
    free[3] = INSTANCES[3].free;
    free
};
const _: () = assert!(INSTANCES.len() == 4);

/// Frees a block outside of the pool, or where there is no map: while passing through and profiling.
unsafe extern "C" fn outside(block: *mut c_void) {
    // SAFETY: the caller's promise, and the block is freed by who made it.
    unsafe {
        if c_library::has(block) {
            c_library::release(block);
        } else {
            _je0_free_slowly(block);
        }
    }
}

/// Frees a block of a chunk that is no instance's. A block that is nobody's is the program's error,
/// which is for jemalloc to answer.
unsafe extern "C" fn looked_up(block: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe {
        if heap::arena_of(block) < arena::count() {
            heap::free_hook(block);
        } else {
            _je0_free_slowly(block);
        }
    }
}

// What instance 0's fast way does not take, under the name that it calls.
#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    // As below; in Rust the places of both tables would be looked up.
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

/// Frees what instance 0's fast way does not take.
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

/// Who frees blocks now.
#[inline]
pub(crate) fn current() -> Free {
    if HOT.frees_in_first.load(Ordering::Relaxed) {
        INSTANCES[0].free
    } else {
        heap::free_hook
    }
}

/// Says who frees blocks in a state that was decided.
pub(crate) fn decide(decided: u8) {
    let in_first = matches!(decided, state::DIRECT | state::GUIDED);
    HOT.frees_in_first.store(in_first, Ordering::Release);
}

/// Makes the map, for a pool. Called once, at the start of a guided run, before anything is taken from
/// the pool.
///
/// # Errors
/// The kernel has no address space for it.
pub(crate) fn open(base: usize, bytes: usize) -> Result<(), Errno> {
    let map = memory::reserve(MAP_BYTES)?;
    let first = (base >> CHUNK_SHIFT) / PAGE * PAGE;
    let end = ((base + bytes) >> CHUNK_SHIFT).next_multiple_of(PAGE);
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the ranges lie within the map, which was made just now.
    unsafe {
        memory::protect(map, MAP_BYTES, libc::PROT_READ)?;
        memory::protect(map + first, end - first, access)?;
    }
    HOT.free_map.store(
        core::ptr::with_exposed_provenance_mut(map),
        Ordering::Release,
    );
    Ok(())
}

/// Notes who owns some chunks of the pool now, if that decides who frees. Lock-free.
pub(crate) fn note(address: usize, chunks: usize, owner: u32) {
    let map = HOT.free_map.load(Ordering::Relaxed);
    if map.is_null() {
        return;
    }
    // Owners are arenas counted from 1; 0 is nobody.
    let number = owner.wrapping_sub(1);
    let byte = match number {
        0 => FIRST,
        number if number < instance::in_use() => number as u8,
        _ => LOOKED_UP,
    };
    for index in 0..chunks {
        // SAFETY: the chunks lie in the pool, whose bytes of the map can be written.
        let place = unsafe { &*map.add((address + index * CHUNK) >> CHUNK_SHIFT) };
        place.store(byte, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
