//! Finds the sites of a plan whose memory goes to one tier until the site has allocated a number of bytes, and then to another (`leading`
//! lines of a plan), and makes the records of them that the runtime reads (`abi::config`), at most `LEADING_MAX`.

use isotherm_abi::config::{LEADING_MAX, LeadingRecord};
use isotherm_model::plan::Assignment;
use isotherm_model::site::SiteId;

/// The records of these sites, each with all names of its site: the first [`LEADING_MAX`] sites in the plan's order. All data of further
/// sites goes to the tier for the rest.
pub(crate) fn of_plan(assignments: &[Assignment]) -> Vec<(LeadingRecord, Vec<SiteId>)> {
    let placed = assignments.iter().filter(|site| site.site > SiteId::SHARED);
    let divided = placed.filter_map(|site| site.leading.map(|first| (site, first)));
    let mut of_sites: Vec<SiteId> = Vec::new();
    let mut records: Vec<(LeadingRecord, Vec<SiteId>)> = Vec::new();
    for (name, first) in divided {
        let known = of_sites.iter().position(|site| *site == first.site);
        if let Some(index) = known {
            records[index].1.push(name.site);
        } else if records.len() < LEADING_MAX as usize {
            let record = LeadingRecord {
                first_tier: first.tier.0,
                later_tier: name.tier.0,
                bytes: first.bytes.0,
            };
            of_sites.push(first.site);
            records.push((record, vec![name.site]));
        }
    }
    records
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
        let named = |id, site, bytes: Option<u64>| Assignment {
            site: SiteId(id),
            tier: TierIndex(1),
            value: 9,
            weight: Bytes(9 << 20),
            parts: Vec::new(),
            leading: bytes.map(|bytes| LeadingBytes {
                site: SiteId(site),
                tier: TierIndex(0),
                bytes: Bytes(bytes),
                value: 1,
            }),
            caller: Caller::None,
            reason: String::new(),
            label: String::new(),
        };
        let site = |id, bytes| named(id, id, bytes);
        let shared = SiteId::SHARED.0;
        let records = of_plan(&[site(7, Some(5)), site(8, None), site(shared, Some(5))]);
        let record = LeadingRecord {
            first_tier: 0,
            later_tier: 1,
            bytes: 5,
        };
        assert_eq!(records, [(record, vec![SiteId(7)])]);
        // Two names of one site.
        let records = of_plan(&[named(7, 5, Some(5)), named(9, 5, Some(5))]);
        assert_eq!(records, [(record, vec![SiteId(7), SiteId(9)])]);
        let many: Vec<_> = (0..LEADING_MAX as u64 + 9)
            .map(|id| site(id + 7, Some(5)))
            .collect();
        assert_eq!(of_plan(&many).len(), LEADING_MAX as usize);
    }
}
