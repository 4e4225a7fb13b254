//! Writes the data by which `free` finds the copy of jemalloc (instance) that a block belongs to ([`crate::free_route`]): [`decide`]
//! whether instance 0 is always called first, [`open`] and [`note`] a map of the address space with a byte for each 2 MiB. The byte stands
//! for the instance of the blocks there, or ([`LOOKED_UP`]) for a lookup of their arena; outside the pool it is 0.

use core::sync::atomic::Ordering;

use isotherm_abi::CHUNK_SHIFT;
use isotherm_sys::memory::{self, Errno};

use crate::fast_path::HOT;
use crate::state;

/// Bits of the addresses that the kernel gives a program which does not ask for higher ones.
pub(crate) const ADDRESS_BITS: u32 = if cfg!(target_arch = "x86_64") { 47 } else { 48 };

/// Bytes of the map, of which few take memory: 64 MiB of address space with 47 bits, 128 MiB with 48.
const MAP_BYTES: usize = 1 << (ADDRESS_BITS - CHUNK_SHIFT);

/// The part of the map that is opened begins and ends at multiples of the largest page there is.
const PAGE: usize = 1 << 16;

/// Stands in the map for chunks whose blocks belong to no instance that is called directly.
pub(crate) const LOOKED_UP: u8 = u8::MAX;

/// Stands in the map for chunks of instance 0; the others stand for themselves. It is the number of
/// instances, as [`crate::free_route`] asserts.
pub(crate) const FIRST: u8 = 4;

/// Sets the allocator that frees blocks, for a mode that was decided.
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

/// Records the new owner of some chunks of the pool, if the owner determines which allocator frees. Lock-free.
pub(crate) fn note(address: usize, chunks: usize, owner: u32) {
    let map = HOT.free_map.load(Ordering::Relaxed);
    if map.is_null() {
        return;
    }
    // Owners are arenas counted from 1; 0 is a free chunk.
    let number = owner.wrapping_sub(1);
    let byte = match number {
        0 => FIRST,
        number if number < HOT.instances.load(Ordering::Relaxed) => number as u8,
        _ => LOOKED_UP,
    };
    for index in 0..chunks {
        // SAFETY: the chunks lie in the pool, whose bytes of the map can be written.
        let place = unsafe { &*map.add((address >> CHUNK_SHIFT) + index) };
        place.store(byte, Ordering::Release);
    }
}
