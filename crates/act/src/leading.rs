//! Sites of which the memory that is allocated first goes elsewhere than the rest, as the runtime reads them (`abi::config`).

use std::collections::BTreeMap;

use isotherm_abi::config::{LEADING_MAX, LeadingRecord};
use isotherm_model::plan::Assignment;
use isotherm_model::site::SiteId;

/// The records of a plan's sites: the first [`LEADING_MAX`] of them, in the plan's order. All data of others goes to the tier of their rest.
pub(crate) fn of_plan(assignments: &[Assignment]) -> BTreeMap<SiteId, LeadingRecord> {
    let record = |site: &Assignment| {
        let first = site.leading?;
        let record = LeadingRecord {
            first_tier: first.tier.0,
            later_tier: site.tier.0,
            bytes: first.bytes.0,
        };
        (site.site > SiteId::SHARED).then_some((site.site, record))
    };
    let records = assignments.iter().filter_map(record);
    records.take(LEADING_MAX as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::of_plan;
    use isotherm_abi::config::{LEADING_MAX, LeadingRecord};
    use isotherm_model::plan::{Assignment, Caller, LeadingBytes};
    use isotherm_model::site::SiteId;
    use isotherm_model::tier::TierIndex;
    use isotherm_model::units::Bytes;

    #[test]
    fn each_site_has_a_record_and_the_shared_arena_none() {
        let site = |id, bytes: Option<u64>| Assignment {
            site: SiteId(id),
            tier: TierIndex(1),
            value: 9,
            weight: Bytes(9 << 20),
            parts: Vec::new(),
            leading: bytes.map(|bytes| LeadingBytes {
                tier: TierIndex(0),
                bytes: Bytes(bytes),
                value: 1,
            }),
            caller: Caller::None,
            reason: String::new(),
            label: String::new(),
        };
        let shared = SiteId::SHARED.0;
        let records = of_plan(&[site(7, Some(5)), site(8, None), site(shared, Some(5))]);
        let record = LeadingRecord {
            first_tier: 0,
            later_tier: 1,
            bytes: 5,
        };
        assert_eq!(records, [(SiteId(7), record)].into());
        let many: Vec<_> = (0..LEADING_MAX as u64 + 9)
            .map(|id| site(id + 7, Some(5)))
            .collect();
        assert_eq!(of_plan(&many).len(), LEADING_MAX as usize);
    }
}
