//! Writes the names of Python functions to the text area of the session, and remembers the place of each, so that it is there once as a
//! rule ([`place`]).

use core::sync::atomic::{AtomicU64, Ordering};

use isotherm_abi::hash::{SiteHashKind, SiteHasher};
use isotherm_abi::python_code::{NO_TEXT, PythonCode};

use crate::text_area;

/// Slots; a large program runs a few thousand functions that allocate.
const SLOTS: usize = 1 << 14;
/// Slots that are looked at for one function; a function without a slot there is written again each time.
const LOOKED_AT: usize = 8;
/// Bits of a slot that hold the place in the text area, plus one; the rest is part of the function's hash.
const PLACE_MASK: u64 = (1 << 32) - 1;

static KNOWN: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];

/// The place of a function in the text area; [`NO_TEXT`] where there is no room.
pub(super) fn place(code: &PythonCode<'_>) -> u32 {
    let hash = SiteHasher::new(SiteHashKind::Heap)
        .frame(code.file, code.first_line.into())
        .frame(code.function, 0)
        .finish();
    let tag = hash & !PLACE_MASK;
    let slots = (0..LOOKED_AT).map(|step| &KNOWN[(hash as usize).wrapping_add(step) % SLOTS]);
    for slot in slots.clone() {
        let known = slot.load(Ordering::Acquire);
        if known != 0 && known & !PLACE_MASK == tag {
            return (known & PLACE_MASK) as u32 - 1;
        }
    }
    let header = code.header();
    let written = header.and_then(|header| text_area::append(&[&header, code.file, code.function]));
    let Some(place) = written else {
        return NO_TEXT;
    };
    let word = tag | u64::from(place + 1);
    let mut slots = slots;
    // Another thread may write the same function meanwhile; then it is there twice.
    let _ = slots.find(|slot| {
        slot.compare_exchange(0, word, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    });
    place
}
