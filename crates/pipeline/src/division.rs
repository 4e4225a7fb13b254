//! Divides the count of an access over the parts of its range, so that no count is lost in rounding.

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
        // The product of two 64-bit numbers fits 128 bits.
        let due = u128::from(self.count) * u128::from(self.covered) / u128::from(self.total.max(1));
        let due = u64::try_from(due).unwrap_or(u64::MAX);
        due - std::mem::replace(&mut self.given, due)
    }
}
