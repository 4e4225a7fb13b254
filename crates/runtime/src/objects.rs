//! Publishes large allocations (64 KiB or more) of the arenas of sites in the session file, so that the observer, the `isotherm` process
//! outside, can attribute accesses to places within them. Where the table of the records is full, the newest one overwrites the oldest.
//!
//! A record is not taken back when its block is freed: what is allocated later at the same addresses replaces it for the reader.

use core::sync::atomic::Ordering;

use isotherm_abi::session::OBJECT_BYTES;

use crate::session;
use crate::site;
use crate::tables::{self, part};

/// Publishes a block of a site's arena, if it is large.
#[inline]
pub(crate) fn publish(arena: u32, address: usize, bytes: usize) {
    if bytes as u64 >= OBJECT_BYTES {
        write(arena, address, bytes);
    }
}

#[cold]
fn write(arena: u32, address: usize, bytes: usize) {
    let Some(private) = tables::private() else {
        return;
    };
    // Arenas without a site are instances.
    let Some(site) = site::of_arena(private, arena) else {
        return;
    };
    let slots = private.layout().object_slots;
    if slots == 0 {
        return;
    }
    // Numbered in private memory, which the observer cannot change.
    let number = private
        .header()
        .objects
        .written
        .fetch_add(1, Ordering::Relaxed);
    let slot = number % slots;
    let Some(session) = session::with_record(part::OBJECTS, slot) else {
        return;
    };
    let record = session.object(slot);
    record.number.store(0, Ordering::Release);
    record.address.store(address as u64, Ordering::Relaxed);
    record.bytes.store(bytes as u64, Ordering::Relaxed);
    record.site.store(site, Ordering::Relaxed);
    record.number.store(number + 1, Ordering::Release);
    session
        .header()
        .objects
        .written
        .fetch_max(number + 1, Ordering::Release);
}
