//! `Division` divides a number, such as the count of an access, in proportion to the sizes of parts, without a loss by rounding.

use isotherm_model::units::portion;

/// A count that is divided in proportion to the sizes of its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Division {
    count: u64,
    /// The sizes of all parts.
    total: u64,
    covered: u64,
    given: u64,
}

impl Division {
    /// Divides a count over parts of this total size.
    pub(crate) const fn new(count: u64, total: u64) -> Self {
        Self {
            count,
            total,
            covered: 0,
            given: 0,
        }
    }

    /// The share of the next part: its cumulative share minus the counts given before.
    pub(crate) fn next(&mut self, size: u64) -> u64 {
        self.covered = self.covered.saturating_add(size);
        let due = portion(self.count, self.covered, self.total);
        due - std::mem::replace(&mut self.given, due)
    }
}
