//! The program's hints about the heat of its memory ([`HintRecord`]).

use std::mem::offset_of;
use std::os::unix::fs::FileExt;

use isotherm_abi::interface::{HINT_SLOTS, HintRecord, InterfaceHint};
use isotherm_abi::session::SessionHeader;

use crate::error::SessionError;
use crate::file::SessionFile;
use crate::record::{long, word};

/// What the program says of a range of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryHint {
    /// First address.
    pub address: u64,
    /// Bytes, not zero; `address + bytes` does not overflow.
    pub bytes: u64,
    /// How hot it is.
    pub hint: InterfaceHint,
}

impl SessionFile {
    /// The hints that hold now, oldest first: where two are about the same memory, the later one holds.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn read_hints(&self) -> Result<Vec<MemoryHint>, SessionError> {
        let mut table = [0; HINT_SLOTS * size_of::<HintRecord>()];
        let at = offset_of!(SessionHeader, hints) as u64;
        self.file.read_exact_at(&mut table, at)?;
        let mut hints: Vec<_> = table
            .chunks_exact(size_of::<HintRecord>())
            .filter_map(hint)
            .collect();
        hints.sort_unstable_by_key(|(number, _)| *number);
        Ok(hints.into_iter().map(|(_, hint)| hint).collect())
    }
}

/// The hint of a record with its number; `None` for a free slot, and where it says nothing.
fn hint(record: &[u8]) -> Option<(u64, MemoryHint)> {
    let number = long(record, offset_of!(HintRecord, number));
    let address = long(record, offset_of!(HintRecord, address));
    let bytes = long(record, offset_of!(HintRecord, bytes));
    address.checked_add(bytes)?;
    let hint = InterfaceHint::from_number(word(record, offset_of!(HintRecord, hint)))?;
    let says_something = number > 0 && bytes > 0 && hint != InterfaceHint::Unknown;
    says_something.then_some((
        number,
        MemoryHint {
            address,
            bytes,
            hint,
        },
    ))
}
