//! What an access says about memory that may be paged out: how many pages of a unit were touched.
//!
//! A page that is out costs once, at its first touch, however often it is accessed afterwards. So the heat of a unit is the number
//! of its pages that an epoch touches, not the number of accesses. Pages that came back were counted exactly, by the page table. Of
//! a unit in memory samples tell a part: `h` samples on `d` different pages are most likely where `k` pages are accessed alike, with
//! `d = k (1 - (1 - 1/k)^h)`. Where no page was sampled twice the whole unit was.
//!
//! Counts are in quarters of a unit, because a sample is one observation, however many pages it stands for.

use std::collections::{BTreeMap, BTreeSet};

use isotherm_model::batch::ObservedAccess;
use isotherm_model::paged::PagedUnit;
use isotherm_model::source_kind::{ProfilingMethod, SourceKind};
use isotherm_model::units::Bytes;
use isotherm_model::watch::Unit;

/// Counts of a unit that was touched as a whole.
pub(super) const PARTS: u64 = 4;

/// Samples of a unit, and the pages on which they fell.
#[derive(Debug, Default)]
struct Sampled {
    samples: u64,
    pages: BTreeSet<u64>,
}

/// The touches of an epoch as accesses to whole units. `seen_share` is the share of the units that are touched as a whole and in
/// memory in which a sample falls: those that came back count as much.
pub(super) fn touches(
    accesses: &[ObservedAccess],
    units: &[PagedUnit],
    (unit, page): (u64, u64),
    seen_share: f64,
) -> Vec<ObservedAccess> {
    let mut sampled: BTreeMap<Unit, Sampled> = BTreeMap::new();
    let mut touches = Vec::new();
    let pages_of_unit = (unit / page.max(1)).max(1);
    for access in accesses {
        if access.source.method() == ProfilingMethod::AccessedBits {
            let count = access.count.saturating_mul(PARTS).div_ceil(pages_of_unit);
            touches.push(ObservedAccess { count, ..*access });
            continue;
        }
        // What a cache served is a touch, too.
        let count = access.count.saturating_add(access.served);
        let of_unit = sampled.entry(Unit {
            process: access.process,
            start: access.address / unit * unit,
        });
        let of_unit = of_unit.or_default();
        of_unit.samples = of_unit.samples.saturating_add(count);
        of_unit.pages.insert(access.address / page.max(1));
    }
    for held in units {
        let pages = held.all().0 / page.max(1);
        let seen = sampled.get(&held.unit);
        let of_samples = seen.map_or(0, |seen| {
            touched(seen.samples, seen.pages.len() as u64, pages)
        });
        let returned = (held.returned.0 / page.max(1)) as f64 * seen_share;
        let of_unit = of_samples.max(returned.ceil() as u64);
        if of_unit == 0 || pages == 0 {
            continue;
        }
        let source = SourceKind::PageFaults;
        let count = of_unit.saturating_mul(PARTS).div_ceil(pages).min(PARTS);
        touches.push(ObservedAccess {
            bytes: Bytes(unit),
            ..ObservedAccess::at(
                (held.unit.process, held.unit.start),
                source,
                (count, source.unit(false)),
            )
        });
    }
    touches
}

/// Pages that were touched, of `pages`, where this many samples fell on `distinct` ones.
fn touched(samples: u64, distinct: u64, pages: u64) -> u64 {
    let distinct = distinct.min(pages);
    if samples <= distinct {
        return if samples == 0 { 0 } else { pages };
    }
    let expected = |among: u64| {
        let among = among as f64;
        among * (1.0 - (1.0 - 1.0 / among).powf(samples as f64))
    };
    // The expected number of different pages grows with the number of pages.
    let (mut low, mut high) = (distinct.max(1), pages.max(1));
    while low < high {
        let middle = low + (high - low) / 2;
        match expected(middle) < distinct as f64 {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use isotherm_model::batch::{ObservedAccess, Process};
    use isotherm_model::paged::PagedUnit;
    use isotherm_model::source_kind::SourceKind;
    use isotherm_model::units::Bytes;
    use isotherm_model::watch::Unit;
    use proptest::prelude::*;

    use super::{touched, touches};

    const PAGE: u64 = 4096;
    const UNIT: u64 = 512 * PAGE;

    fn sample(page: u64) -> ObservedAccess {
        let source = SourceKind::Timer;
        let at = (Process::default(), page * PAGE + 8);
        ObservedAccess::at(at, source, (1, source.unit(false)))
    }

    fn held(number: u64, returned: u64) -> PagedUnit {
        PagedUnit {
            unit: Unit {
                process: Process::default(),
                start: number * UNIT,
            },
            present: Bytes(UNIT),
            out: Bytes::ZERO,
            returned: Bytes(returned * PAGE),
            grain: Bytes(UNIT),
            has_huge: false,
        }
    }

    /// Counts by number of the unit.
    fn counts(accesses: &[ObservedAccess], units: &[PagedUnit]) -> Vec<(u64, u64)> {
        let touches = touches(accesses, units, (UNIT, PAGE), 0.4);
        let count = |it: &ObservedAccess| (it.address / UNIT, it.count);
        touches.iter().map(count).collect()
    }

    #[test]
    fn samples_all_over_a_unit_touch_it_whole_and_on_one_page_a_part() {
        let units = [held(0, 0), held(1, 0), held(2, 0)];
        let one_page = [sample(520); 9];
        let accesses = [&[sample(3), sample(77)][..], &one_page].concat();
        assert_eq!(counts(&accesses, &units), [(0, 4), (1, 1)]);
    }

    #[test]
    fn what_came_back_counts_as_a_unit_in_memory_would_have_been_seen() {
        let units = [held(0, 512), held(1, 1), held(2, 0)];
        assert_eq!(counts(&[], &units), [(0, 2), (1, 1)]);
    }

    #[test]
    fn accessed_bits_are_touches_of_single_pages() {
        let source = SourceKind::Damon;
        let bits = ObservedAccess {
            bytes: Bytes(4 * UNIT),
            ..ObservedAccess::at((Process::default(), 0), source, (1024, source.unit(false)))
        };
        assert_eq!(counts(&[bits], &[]), [(0, 8)]);
    }

    #[test]
    fn repeated_pages_tell_how_many_there_are() {
        assert_eq!(touched(0, 0, 512), 0);
        assert_eq!(touched(1, 1, 512), 512);
        assert_eq!(touched(5, 5, 512), 512);
        assert_eq!(touched(100, 1, 512), 1);
        let ten = touched(20, 9, 512);
        assert!((9..=12).contains(&ten), "{ten}");
    }

    proptest! {
        #[test]
        fn no_more_pages_than_there_are_and_no_fewer_than_were_seen(
            samples in 0_u64..10_000, distinct in 0_u64..600, pages in 1_u64..512,
        ) {
            let distinct = distinct.min(samples);
            let found = touched(samples, distinct, pages);
            prop_assert!(found <= pages && found >= distinct.min(pages));
        }
    }
}
