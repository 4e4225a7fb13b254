//! [`append`] adds text, a path of a module or a Python function, to the text area of the private tables and the session file; records
//! refer to it by its place. Text that was added never changes.

use core::sync::atomic::Ordering;

use crate::lock::Lock;
use crate::session;
use crate::tables::{self, Tables, part};

pub(crate) static LOCK: Lock = Lock::new();

/// Appends these parts as one text and returns its place, for the private tables and the session file alike. `None` where there is no
/// room, or where this thread is appending already.
pub(crate) fn append(parts: &[&[u8]]) -> Option<u32> {
    let private = tables::private()?;
    let _guard = LOCK.lock()?;
    let used = private.header().text_bytes.load(Ordering::Relaxed);
    let room = private.layout().text_slots.checked_sub(used)?;
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    if bytes > room as usize {
        return None;
    }
    let store = |tables: &Tables| {
        let mut place = used as usize;
        for part in parts {
            // SAFETY: the bytes are in the text area and belong to no text yet.
            unsafe {
                let to = tables.text().add(place);
                core::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
            }
            place += part.len();
        }
        let after = used + bytes as u32;
        tables.header().text_bytes.store(after, Ordering::Release);
    };
    store(private);
    let offset = private.offset(part::TEXT) + u64::from(used);
    if let Some(session) = session::writable(offset, bytes as u64) {
        store(session);
    }
    Some(used)
}
