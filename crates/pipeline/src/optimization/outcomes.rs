//! [`object_outcomes`] computes the outcome of an optimization for each data object, and for the data of a site between objects: how many
//! of its bytes were chosen, moved or stayed, and how many are fast then.
//!
//! ```text
//! objects          |     a     |   |  b  |
//! between              (of an extent)      | c |
//! chosen             ====           ===
//! moved                ==           =
//! stays: in use                      ==
//! ```
//!
//! A page that two objects share counts for the first of them.

use std::collections::BTreeMap;
use std::ops::Range;

use isotherm_model::batch::{AllocatedObject, Extent, Process};
use isotherm_model::movement::AddressRange;
use isotherm_model::site::SiteId;
use isotherm_model::spans;
use isotherm_model::stay::{StayReason, StayedBytes, StayedRange};
use isotherm_model::units::Bytes;
use isotherm_model::watch::ResidentRun;

use super::addresses::{ProcessRange, pages};
use crate::access_counts::AccessCounts;

/// The input of an optimization, and the result of its moves.
#[derive(Clone, Copy)]
pub struct CarriedOut<'a> {
    /// The data objects of all processes; objects that were freed may be among them.
    pub objects: &'a [AllocatedObject],
    /// The extents of all processes.
    pub extents: &'a [Extent],
    /// The accesses.
    pub counts: &'a AccessCounts,
    /// The resident pages of each process before the moves.
    pub before: &'a BTreeMap<Process, Vec<ResidentRun>>,
    /// The resident pages of each process after the moves.
    pub after: &'a BTreeMap<Process, Vec<ResidentRun>>,
    /// Ranges that were chosen for the fast tier.
    pub selected: &'a [ProcessRange],
    /// Ranges that moved to the fast tier.
    pub promoted: &'a [ProcessRange],
    /// Ranges that moved to the slow tier.
    pub demoted: &'a [ProcessRange],
    /// Ranges that are in slow memory or did not move, each with the reason.
    pub stayed: &'a [StayedRange],
}

/// The outcome for one data object, or for the data of a site between data objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectOutcome {
    /// Its site.
    pub site: SiteId,
    /// Its addresses.
    pub range: AddressRange,
    /// Number of samples in its addresses.
    pub samples: u64,
    /// Resident bytes after the moves.
    pub resident: Bytes,
    /// Resident bytes that are in the fast tier after the moves.
    pub fast: Bytes,
    /// Resident bytes that were chosen for the fast tier.
    pub selected: Bytes,
    /// Bytes that were chosen and were in the fast tier before the moves.
    pub placed: Bytes,
    /// Bytes that moved to the fast tier.
    pub promoted: Bytes,
    /// Bytes that moved to the slow tier.
    pub demoted: Bytes,
    /// Bytes in the slow tier, or not moved, by reason.
    pub stayed: StayedBytes,
}

impl ObjectOutcome {
    /// True if the object has no resident page and no outcome: it was freed, or never touched.
    fn is_empty(&self) -> bool {
        let bytes = [self.resident, self.selected, self.promoted, self.demoted];
        bytes.iter().all(|bytes| *bytes == Bytes::ZERO) && self.stayed == StayedBytes::default()
    }
}

/// The outcomes of a process's objects and of the data of its sites between objects, by address. Those without a page and without a reason
/// are left out.
#[must_use]
pub fn object_outcomes(process: Process, done: &CarriedOut<'_>) -> Vec<ObjectOutcome> {
    let sets = Sets::of(process, done);
    let mut next = 0;
    let mut found = Vec::new();
    for (range, site) in data_of(process, done) {
        let own = pages(&range);
        let first = own.start.max(next);
        next = own.end.max(next);
        let outcome = sets.outcome(first..own.end.max(first), (site, &range));
        if !outcome.is_empty() {
            found.push(outcome);
        }
    }
    found
}

/// The data objects of a process, and the parts of its extents between them, by address.
fn data_of(process: Process, done: &CarriedOut<'_>) -> Vec<(Range<u64>, SiteId)> {
    let own = done
        .objects
        .iter()
        .filter(|object| object.process == process);
    let mut all: Vec<_> = own
        .map(|object| (object.range.span(), object.site))
        .collect();
    let objects = spans::joined(all.iter().map(|(range, _)| range.clone()).collect());
    let extents = done.extents.iter();
    let placeable =
        extents.filter(|extent| extent.process == process && extent.site.is_placeable());
    for extent in placeable {
        let between = spans::difference(&[extent.range().span()], &objects);
        all.extend(between.into_iter().map(|range| (range, extent.site)));
    }
    all.sort_unstable_by_key(|(range, _)| (range.start, range.end));
    all
}

/// The addresses of a process by each total of a result.
struct Sets<'a> {
    process: Process,
    counts: &'a AccessCounts,
    resident: Vec<Range<u64>>,
    fast: Vec<Range<u64>>,
    selected: Vec<Range<u64>>,
    placed: Vec<Range<u64>>,
    promoted: Vec<Range<u64>>,
    demoted: Vec<Range<u64>>,
    /// The stayed ranges of each reason.
    stayed: [(StayReason, Vec<Range<u64>>); StayReason::ALL.len()],
}

impl<'a> Sets<'a> {
    fn of(process: Process, done: &CarriedOut<'a>) -> Self {
        let own = |ranges: &[ProcessRange]| {
            let own = ranges.iter().filter(|(other, _)| *other == process);
            spans::joined(own.map(|(_, range)| range.span()).collect())
        };
        let runs = |runs: &BTreeMap<Process, Vec<ResidentRun>>, only_fast: bool| {
            let runs = runs.get(&process).into_iter().flatten();
            let runs = runs.filter(|run| run.is_fast || !only_fast);
            spans::joined(runs.map(|run| run.range.span()).collect())
        };
        let before = runs(done.before, false);
        let selected = spans::intersection(&own(done.selected), &before);
        let stayed = StayReason::ALL.map(|reason| {
            let stayed = done.stayed.iter();
            let stayed = stayed.filter(|one| one.process == process && one.reason == reason);
            let ranges = spans::joined(stayed.map(|one| one.range.span()).collect());
            (reason, ranges)
        });
        Self {
            process,
            counts: done.counts,
            resident: runs(done.after, false),
            fast: runs(done.after, true),
            placed: spans::intersection(&selected, &runs(done.before, true)),
            selected,
            promoted: own(done.promoted),
            demoted: own(done.demoted),
            stayed,
        }
    }

    /// The outcome of an object by its pages.
    fn outcome(&self, pages: Range<u64>, (site, range): (SiteId, &Range<u64>)) -> ObjectOutcome {
        let sum = |set: &[Range<u64>]| Bytes(spans::bytes_within(set, &pages));
        let mut stayed = StayedBytes::default();
        for (reason, ranges) in &self.stayed {
            stayed.add(*reason, sum(ranges));
        }
        ObjectOutcome {
            site,
            range: AddressRange::between(range.start, range.end),
            samples: self.counts.samples_within(self.process, pages.clone()),
            resident: sum(&self.resident),
            fast: sum(&self.fast),
            selected: sum(&self.selected),
            placed: sum(&self.placed),
            promoted: sum(&self.promoted),
            demoted: sum(&self.demoted),
            stayed,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{CarriedOut, ObjectOutcome, object_outcomes};
    use crate::access_counts::AccessCounts;
    use crate::optimization::ProcessRange;
    use isotherm_model::batch::{AllocatedObject, Extent, ObservedAccess, Process};
    use isotherm_model::movement::AddressRange;
    use isotherm_model::site::SiteId;
    use isotherm_model::source_kind::SourceKind;
    use isotherm_model::stay::{StayReason, StayedRange};
    use isotherm_model::units::Bytes;
    use isotherm_model::watch::ResidentRun;

    const PROCESS: Process = Process { pid: 7, image: 0 };
    const PAGE: u64 = 4096;

    fn pages(first: u64, end: u64) -> AddressRange {
        AddressRange {
            start: first * PAGE,
            bytes: Bytes((end - first) * PAGE),
        }
    }

    fn runs(all: &[(u64, u64, bool)]) -> BTreeMap<Process, Vec<ResidentRun>> {
        let run = |&(first, end, is_fast): &(u64, u64, bool)| ResidentRun {
            range: pages(first, end),
            is_fast,
            is_huge: false,
        };
        BTreeMap::from([(PROCESS, all.iter().map(run).collect())])
    }

    fn in_pages(outcome: &ObjectOutcome) -> [u64; 6] {
        let bytes = [
            outcome.resident,
            outcome.fast,
            outcome.selected,
            outcome.placed,
            outcome.promoted,
            outcome.demoted,
        ];
        bytes.map(|bytes| bytes.0 / PAGE)
    }

    fn object(site: u64, first: u64, end: u64) -> AllocatedObject {
        AllocatedObject {
            process: PROCESS,
            site: SiteId(site),
            range: AddressRange {
                start: first,
                bytes: Bytes(end - first),
            },
        }
    }

    fn own(first: u64, end: u64) -> ProcessRange {
        (PROCESS, pages(first, end))
    }

    fn stayed(first: u64, end: u64, reason: StayReason) -> StayedRange {
        StayedRange {
            process: PROCESS,
            range: pages(first, end),
            reason,
        }
    }

    /// Samples of these pages.
    fn counts(pages: &[u64]) -> AccessCounts {
        let source = SourceKind::Timer;
        let access = |page: &u64| {
            ObservedAccess::at((PROCESS, page * PAGE), source, (1, source.unit(false)))
        };
        let mut counts = AccessCounts::default();
        counts.add(&pages.iter().map(access).collect::<Vec<_>>());
        counts
    }

    #[test]
    fn each_object_has_its_part_of_the_sums_and_a_shared_page_counts_once() {
        // Two objects that share page 4, and one that was freed; the rest of the extent is between them.
        let objects = [
            object(5, 0, 4 * PAGE + 100),
            object(6, 4 * PAGE + 200, 8 * PAGE),
            object(7, 20 * PAGE, 24 * PAGE),
        ];
        let extent = Extent {
            process: PROCESS,
            site: SiteId(5),
            address: 0,
            bytes: Bytes(12 * PAGE),
            resident: Bytes(0),
            tier: None,
        };
        let after = [
            (0, 1, false),
            (1, 2, true),
            (2, 5, false),
            (5, 6, true),
            (6, 12, false),
        ];
        let done = CarriedOut {
            objects: &objects,
            extents: &[extent],
            counts: &counts(&[1, 4, 6, 9]),
            before: &runs(&[(0, 2, true), (2, 12, false)]),
            after: &runs(&after),
            // Page 30 has no memory.
            selected: &[own(1, 2), own(4, 7), own(30, 31)],
            promoted: &[own(5, 6)],
            demoted: &[own(0, 1)],
            stayed: &[
                stayed(6, 7, StayReason::InUse),
                stayed(4, 5, StayReason::NoRoom),
                stayed(7, 12, StayReason::NotHot),
                stayed(0, 4, StayReason::NotHot),
            ],
        };
        let found = object_outcomes(PROCESS, &done);
        let facts: Vec<_> = found.iter().map(|one| (one.site.0, one.samples)).collect();
        assert_eq!(facts, [(5, 2), (6, 1), (5, 1)], "{found:?}");
        assert_eq!(in_pages(&found[0]), [5, 1, 2, 1, 0, 1]);
        assert_eq!(in_pages(&found[1]), [3, 1, 2, 0, 1, 0]);
        assert_eq!(in_pages(&found[2]), [4, 0, 0, 0, 0, 0]);
        let why = |number: usize, reason| found[number].stayed.of(reason).0 / PAGE;
        assert_eq!(
            (why(0, StayReason::NotHot), why(0, StayReason::NoRoom)),
            (4, 1)
        );
        assert_eq!(
            (why(1, StayReason::NotHot), why(1, StayReason::InUse)),
            (1, 1)
        );
        assert_eq!(why(2, StayReason::NotHot), 4);
        assert_eq!(found[1].range.start, 4 * PAGE + 200);
        let other = Process { pid: 8, image: 0 };
        assert_eq!(object_outcomes(other, &done), []);
    }
}
