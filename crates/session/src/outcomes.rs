//! What the last optimization did to each data object of a process: written by the observer, for the program
//! ([`isotherm_abi::interface::OutcomeRecord`]).

use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use isotherm_abi::interface::{OutcomeRecord, OutcomeTable, REASONS};
use isotherm_abi::named_data::NAME_BYTES_MAX;
use isotherm_abi::session::SessionHeader;
use zerocopy::IntoBytes;

use crate::error::SessionError;
use crate::file::SessionFile;

/// What an optimization did to a data object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceOutcome {
    /// Its name, cut to what a name may have; empty where the program gave none.
    pub name: String,
    /// First address.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
    /// Samples in it.
    pub samples: u64,
    /// Bytes with pages after the moves.
    pub resident_bytes: u64,
    /// Of these, bytes in fast memory.
    pub fast_bytes: u64,
    /// Bytes with pages that were chosen for fast memory.
    pub selected_bytes: u64,
    /// Of these, bytes that were there before.
    pub placed_bytes: u64,
    /// Bytes that moved to fast memory.
    pub promoted_bytes: u64,
    /// Bytes that moved to slow memory.
    pub demoted_bytes: u64,
    /// Bytes that stay where they are, by [`isotherm_abi::interface::InterfaceReason`].
    pub stayed_bytes: [u64; REASONS],
}

impl InterfaceOutcome {
    /// The bytes of its record.
    fn record(&self) -> Vec<u8> {
        let mut record = OutcomeRecord {
            name: Default::default(),
            address: self.address.into(),
            bytes: self.bytes.into(),
            samples: self.samples.into(),
            resident_bytes: self.resident_bytes.into(),
            fast_bytes: self.fast_bytes.into(),
            selected_bytes: self.selected_bytes.into(),
            placed_bytes: self.placed_bytes.into(),
            promoted_bytes: self.promoted_bytes.into(),
            demoted_bytes: self.demoted_bytes.into(),
            stayed_bytes: self.stayed_bytes.map(AtomicU64::new),
        };
        // A cut name may end in the middle of a letter, as one that the program gave may.
        let name = &self.name.as_bytes()[..self.name.len().min(NAME_BYTES_MAX)];
        record.name.as_mut_bytes()[..name.len()].copy_from_slice(name);
        record.as_mut_bytes().to_vec()
    }
}

impl SessionFile {
    /// How many outcomes the program can be told.
    #[must_use]
    pub fn outcome_slots(&self) -> usize {
        usize::try_from(self.header.outcomes.slots).unwrap_or(usize::MAX)
    }

    /// Replaces the outcomes of an optimization, as far as there is room for them: to be called before the request is answered.
    ///
    /// # Errors
    /// The file was cut short, or cannot be written.
    pub fn write_outcomes(&self, outcomes: &[InterfaceOutcome]) -> Result<(), SessionError> {
        let table = self.header.outcomes;
        let told = &outcomes[..outcomes.len().min(self.outcome_slots())];
        let count = offset_of!(SessionHeader, outcomes) + offset_of!(OutcomeTable, count);
        let store = |number: u64| {
            let bytes = number.to_ne_bytes();
            self.file.write_all_at(&bytes, count as u64)
        };
        store(0)?;
        let records: Vec<u8> = told.iter().flat_map(InterfaceOutcome::record).collect();
        self.file.write_all_at(&records, table.offset)?;
        fence(Ordering::Release);
        Ok(store(told.len() as u64)?)
    }
}
