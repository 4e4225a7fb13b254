//! [`StayReason`] says why a range of memory ([`StayedRange`]) is in slow memory after an *optimization*, or was not moved: hotter data
//! took the capacity, nothing proves it hot, it has no pages, it cannot be placed, or its move failed. Data that the optimization itself
//! moves to slow memory counts, too. [`StayedBytes`] adds up the bytes by reason, and those of failed moves.

use crate::batch::Process;
use crate::movement::AddressRange;
use crate::units::Bytes;

variant_words! {
    /// The reason why data is in slow memory after an optimization, or was not moved.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum StayReason {
        /// The data is hot, and hotter data takes the fast memory that may be used.
        Capacity = "capacity",
        /// Neither samples nor hints prove it hot.
        NotHot = "not_hot",
        /// The data has no pages.
        NotTouched = "not_touched",
        /// A hint calls it hot, but it is not data that can be placed.
        NotMovable = "not_movable",
        /// The memory that it was to enter was full.
        NoRoom = "no_room",
        /// Its pages were in use, or the program did not obey in time.
        InUse = "in_use",
        /// The data is shared with another process since a fork.
        Shared = "shared",
        /// The kernel refused.
        Refused = "refused",
    }
}

/// Reasons of moves that failed.
const FAILED: [StayReason; 4] = [
    StayReason::NoRoom,
    StayReason::InUse,
    StayReason::Shared,
    StayReason::Refused,
];

/// Bytes that stay, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StayedBytes([Bytes; StayReason::ALL.len()]);

impl StayedBytes {
    /// Adds bytes that stay for this reason.
    pub fn add(&mut self, reason: StayReason, bytes: Bytes) {
        self.0[reason as usize] += bytes;
    }

    /// The bytes that stay for this reason.
    #[must_use]
    pub const fn of(&self, reason: StayReason) -> Bytes {
        self.0[reason as usize]
    }

    /// Bytes that were to move and could not.
    #[must_use]
    pub fn failed(&self) -> Bytes {
        FAILED.iter().map(|reason| self.of(*reason)).sum()
    }
}

/// A range of memory that is in slow memory after an optimization, or was not moved, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StayedRange {
    /// Process that owns the memory.
    pub process: Process,
    /// Range of its addresses.
    pub range: AddressRange,
    /// Why it stays.
    pub reason: StayReason,
}

impl<'a> FromIterator<&'a StayedRange> for StayedBytes {
    fn from_iter<I: IntoIterator<Item = &'a StayedRange>>(ranges: I) -> Self {
        let mut sum = Self::default();
        for stayed in ranges {
            sum.add(stayed.reason, stayed.range.bytes);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::{StayReason, StayedBytes};
    use crate::units::Bytes;

    #[test]
    fn what_was_not_chosen_or_has_no_pages_is_no_move_that_failed() {
        let mut sum = StayedBytes::default();
        for (power, reason) in StayReason::ALL.into_iter().enumerate() {
            sum.add(reason, Bytes(1 << power));
        }
        assert_eq!(sum.of(StayReason::NotTouched), Bytes(4));
        assert_eq!(sum.failed(), Bytes(16 + 32 + 64 + 128));
    }
}
