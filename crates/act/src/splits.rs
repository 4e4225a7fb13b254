//! Converts the sites of a plan whose objects are placed in parts to the records that the runtime reads (`abi::config`), and rejects parts
//! that are not whole pages in order, or whose tier does not exist.

use std::collections::BTreeMap;

use isotherm_abi::config::{PartRecord, SPLITS_MAX, SplitRecord};
use isotherm_abi::page_tiers::PAGE_BYTES;
use isotherm_model::plan::{Assignment, PlacedPart};
use isotherm_model::site::SiteId;
use isotherm_model::tier::TierIndex;
use isotherm_model::units::Bytes;

/// The placement of each object of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Tier of the bytes in no part.
    pub tier: TierIndex,
    /// Ranges of each object that go elsewhere, in order.
    pub parts: Vec<PlacedPart>,
}

/// The reason why parts of objects cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    /// A part, or the rest of an object, has a tier that does not exist.
    #[error("there is no tier number {}", .0.0)]
    NoSuchTier(TierIndex),
    /// A part is not made of whole pages, or does not follow the part before it.
    #[error(
        "the part from byte {} to byte {} of site {site} is not possible; parts are whole pages, in order, and do not overlap",
        .start.0,
        .end.0
    )]
    Part {
        /// The site.
        site: SiteId,
        /// First byte of the part.
        start: Bytes,
        /// First byte past it.
        end: Bytes,
    },
    /// This number of sites cannot be placed in parts.
    #[error("{0} sites with parts are too many; at most {most} are possible", most = SPLITS_MAX)]
    TooMany(usize),
}

/// The sites of a plan that are placed in parts.
pub(crate) fn of_plan(assignments: &[Assignment]) -> BTreeMap<SiteId, Split> {
    let split = |site: &&Assignment| !site.parts.is_empty() && site.site > SiteId::SHARED;
    let entry = |site: &Assignment| {
        let split = Split {
            tier: site.tier,
            parts: site.parts.clone(),
        };
        (site.site, split)
    };
    assignments.iter().filter(split).map(entry).collect()
}

/// The records of the splits, in the order of their sites, and the records of their parts.
#[derive(Default)]
pub(crate) struct SplitTables {
    pub(crate) splits: Vec<SplitRecord>,
    pub(crate) parts: Vec<PartRecord>,
}

/// Makes the records of the splits.
///
/// # Errors
/// The errors of [`check`], and too many splits.
pub(crate) fn tables(
    splits: &BTreeMap<SiteId, Split>,
    tiers: usize,
) -> Result<SplitTables, SplitError> {
    if splits.len() > SPLITS_MAX as usize {
        return Err(SplitError::TooMany(splits.len()));
    }
    let mut tables = SplitTables::default();
    for (site, split) in splits {
        check(*site, split, tiers)?;
        tables.splits.push(SplitRecord {
            tier: split.tier.0,
            first_part: tables.parts.len() as u32,
            parts: split.parts.len() as u32,
            reserved: 0,
        });
        tables.parts.extend(split.parts.iter().map(record));
    }
    Ok(tables)
}

fn record(part: &PlacedPart) -> PartRecord {
    PartRecord {
        start: part.start.0,
        end: part.end.0,
        tier: part.tier.0,
        reserved: 0,
    }
}

/// Checks that the tiers exist, and that the parts are whole pages, in order, and disjoint.
///
/// # Errors
/// [`SplitError::NoSuchTier`], [`SplitError::Part`].
fn check(site: SiteId, split: &Split, tiers: usize) -> Result<(), SplitError> {
    let named = split.parts.iter().map(|part| part.tier);
    let mut named = named.chain([split.tier]);
    if let Some(tier) = named.find(|tier| tier.0 as usize >= tiers) {
        return Err(SplitError::NoSuchTier(tier));
    }
    let mut end = 0;
    for part in &split.parts {
        let pages =
            part.start.0.is_multiple_of(PAGE_BYTES) && part.end.0.is_multiple_of(PAGE_BYTES);
        if !pages || part.start.0 < end || part.start >= part.end {
            let (start, end) = (part.start, part.end);
            return Err(SplitError::Part { site, start, end });
        }
        end = part.end.0;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use isotherm_abi::config::{PartRecord, SplitRecord};
    use isotherm_model::plan::PlacedPart;
    use isotherm_model::site::SiteId;
    use isotherm_model::tier::TierIndex;
    use isotherm_model::units::Bytes;

    use super::{Split, SplitError, tables};

    fn split(tier: u32, parts: &[(u64, u64, u32)]) -> Split {
        let part = |&(start, end, tier): &(u64, u64, u32)| PlacedPart {
            start: Bytes(start),
            end: Bytes(end),
            tier: TierIndex(tier),
            value: 1,
            weight: Bytes(1),
        };
        Split {
            tier: TierIndex(tier),
            parts: parts.iter().map(part).collect(),
        }
    }

    #[test]
    fn the_parts_of_all_splits_follow_one_another() {
        let splits = BTreeMap::from([
            (SiteId(9), split(0, &[(0x1000, 0x3000, 1)])),
            (SiteId(5), split(1, &[(0, 0x1000, 0), (0x1000, 0x9000, 1)])),
        ]);
        let tables = tables(&splits, 2).unwrap_or_else(|error| panic!("{error}"));
        let record = |tier, first_part, parts| SplitRecord {
            tier,
            first_part,
            parts,
            reserved: 0,
        };
        assert_eq!(tables.splits, [record(1, 0, 2), record(0, 2, 1)]);
        let third = PartRecord {
            start: 0x1000,
            end: 0x3000,
            tier: 1,
            reserved: 0,
        };
        assert_eq!(tables.parts[2], third);
    }

    #[test]
    fn parts_that_overlap_or_are_no_pages_and_unknown_tiers_are_refused() {
        let refused = |split| tables(&BTreeMap::from([(SiteId(5), split)]), 2).err();
        assert_eq!(refused(split(1, &[(0, 0x1000, 0)])), None);
        for wrong in [
            [(0, 0x1000, 0), (0, 0x1000, 0)],
            [(0x2000, 0x4000, 0), (0, 0x1000, 0)],
            [(0, 0x1000, 0), (0x1000, 0x1000, 0)],
            [(0, 0x1000, 0), (0x1800, 0x3000, 0)],
            [(0, 0x1000, 0), (0x2000, 0x2fff, 0)],
        ] {
            let error = refused(split(1, &wrong));
            assert!(matches!(error, Some(SplitError::Part { .. })));
        }
        let no_tier = Some(SplitError::NoSuchTier(TierIndex(2)));
        assert_eq!(refused(split(1, &[(0, 0x1000, 2)])), no_tier);
        assert_eq!(refused(split(2, &[(0, 0x1000, 0)])), no_tier);
    }
}
