//! Publishes the program's hints about the heat of ranges of its memory in the session file ([`HintRecord`]), where the observer, the
//! `isotherm` process outside, reads them; a new hint replaces those within its range.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use isotherm_abi::interface::{HintRecord, InterfaceHint, InterfaceStatus};

use crate::lock::Lock;
use crate::session;

pub(crate) static LOCK: Lock = Lock::new();
/// Hints so far.
static GIVEN: AtomicU64 = AtomicU64::new(0);

/// Publishes a hint, which replaces those within its range.
pub(crate) fn give(range: &Range<usize>, hint: InterfaceHint) -> Result<(), InterfaceStatus> {
    session::ensure();
    let session = session::current().ok_or(InterfaceStatus::NoObserver)?;
    let _guard = LOCK.lock().ok_or(InterfaceStatus::Busy)?;
    let slots = &session.header().hints;
    for slot in slots.iter().filter(|slot| is_within(slot, range)) {
        slot.number.store(0, Ordering::Release);
    }
    if hint == InterfaceHint::Unknown {
        return Ok(());
    }
    let is_free = |slot: &&HintRecord| slot.number.load(Ordering::Relaxed) == 0;
    let free = slots.iter().find(is_free);
    let slot = free.ok_or(InterfaceStatus::NoRoom)?;
    slot.address.store(range.start as u64, Ordering::Relaxed);
    slot.bytes.store(range.len() as u64, Ordering::Relaxed);
    slot.hint.store(hint as u32, Ordering::Relaxed);
    let number = GIVEN.fetch_add(1, Ordering::Relaxed) + 1;
    slot.number.store(number, Ordering::Release);
    Ok(())
}

/// Whether a slot has a hint that lies wholly within the range.
fn is_within(slot: &HintRecord, range: &Range<usize>) -> bool {
    let first = slot.address.load(Ordering::Relaxed);
    let end = first.saturating_add(slot.bytes.load(Ordering::Relaxed));
    slot.number.load(Ordering::Relaxed) > 0
        && first >= range.start as u64
        && end <= range.end as u64
}
