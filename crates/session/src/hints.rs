//! [`SessionFile::read_hints`] reads from a session file all hints of the program about the heat of its memory that hold now, the oldest
//! first ([`MemoryHint`]); each call reads all of them again.

use isotherm_abi::from_number;
use isotherm_abi::interface::{HINT_SLOTS, HintRecord, InterfaceHint};

use crate::error::SessionError;
use crate::file::{SessionFile, at};

/// A hint of the program on a range of its memory.
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
        let table: [HintRecord; HINT_SLOTS] = self.read(at!(hints))?;
        let mut hints: Vec<_> = table.into_iter().filter_map(hint).collect();
        hints.sort_unstable_by_key(|(number, _)| *number);
        Ok(hints.into_iter().map(|(_, hint)| hint).collect())
    }
}

/// The hint of a record with its number; `None` for a free slot, and where it says nothing.
fn hint(record: HintRecord) -> Option<(u64, MemoryHint)> {
    let number = record.number.into_inner();
    let (address, bytes) = (record.address.into_inner(), record.bytes.into_inner());
    address.checked_add(bytes)?;
    let hint = from_number(record.hint.into_inner())?;
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
