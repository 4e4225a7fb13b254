//! [`LeadingTable`] holds the leading records of a configuration: each gives the tier of the memory that a site allocates first, how many
//! bytes of it there are, and the tier of the rest. The target of a site ([`crate::plan`]) names a record by its index.
//!
//! As in [`crate::plan`], the table is checked when it is made, and made of memory that never changes.

use isotherm_abi::config::{LEADING_MAX, LeadingRecord};

#[derive(Clone, Copy, Debug)]
pub(crate) struct LeadingTable(&'static [LeadingRecord]);

impl LeadingTable {
    /// The table. `None` unless all tiers are below `tiers`, and the records are not too many.
    pub(crate) fn checked(records: &'static [LeadingRecord], tiers: usize) -> Option<Self> {
        let is_tier = |tier: u32| (tier as usize) < tiers;
        let is_sound =
            |record: &LeadingRecord| is_tier(record.first_tier) && is_tier(record.later_tier);
        let fits = records.len() <= LEADING_MAX as usize;
        (fits && records.iter().all(is_sound)).then_some(Self(records))
    }

    /// Number of records.
    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    /// A record, by its index.
    pub(crate) fn get(&self, index: u32) -> Option<LeadingRecord> {
        self.0.get(index as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_a_tier_that_is_not_there_is_refused() {
        let table = |first_tier, later_tier| {
            let record = LeadingRecord {
                first_tier,
                later_tier,
                bytes: 1,
            };
            LeadingTable::checked(Box::leak(Box::new([record])), 2)
        };
        assert_eq!(table(0, 1).map(|table| table.len()), Some(1));
        assert!(table(2, 1).is_none());
        assert!(table(0, 2).is_none());
        let many = vec![LeadingRecord::default(); LEADING_MAX as usize + 1];
        assert!(LeadingTable::checked(many.leak(), 2).is_none());
    }
}
