//! Writes the outcomes of the last optimization of a process into its session file, for the program to read: for each data object, as far
//! as the file has room, its samples, its resident bytes, and how many were selected, moved, or stayed for which reason
//! ([`isotherm_abi::interface::OutcomeRecord`]).

use std::mem::offset_of;
use std::sync::atomic::{Ordering, fence};

use isotherm_abi::interface::InterfaceObject;
use zerocopy::IntoBytes;

use crate::error::SessionError;
use crate::file::{SessionFile, at};

impl SessionFile {
    /// The number of outcomes for which the session file has room.
    #[must_use]
    pub fn outcome_slots(&self) -> usize {
        usize::try_from(self.header.outcomes.slots).unwrap_or(usize::MAX)
    }

    /// Replaces the outcomes of an optimization, as far as there is room for them: to be called before the request is answered.
    ///
    /// # Errors
    /// The file was cut short, or cannot be written.
    pub fn write_outcomes(&self, outcomes: &[InterfaceObject]) -> Result<(), SessionError> {
        let table = self.header.outcomes;
        let told = &outcomes[..outcomes.len().min(self.outcome_slots())];
        let store = |number: u64| self.write(at!(outcomes.count), &number);
        store(0)?;
        let first = offset_of!(InterfaceObject, name);
        let records = told.iter().flat_map(|object| &object.as_bytes()[first..]);
        let records: Vec<u8> = records.copied().collect();
        self.write(table.offset, &records[..])?;
        fence(Ordering::Release);
        store(told.len() as u64)
    }
}
