//! Tests the choice and the moves of an optimization for one process whose memory is described by page.

use std::collections::BTreeMap;

use super::{
    ChunkChoice, HeatHint, HeatHints, Optimization, OptimizationInput, ProcessRange, optimize,
};
use crate::access_counts::AccessCounts;
use isotherm_model::batch::{AllocatedObject, Extent, ObservedAccess, Process};
use isotherm_model::movement::AddressRange;
use isotherm_model::site::SiteId;
use isotherm_model::source_kind::SourceKind;
use isotherm_model::stay::{StayReason, StayedBytes};
use isotherm_model::units::Bytes;
use isotherm_model::watch::ResidentRun;
use isotherm_policy::Thermos;
use isotherm_policy::chunks::ChunkParameters;
use proptest::prelude::*;

const PROCESS: Process = Process { pid: 7, image: 0 };
const PAGE: u64 = 4096;

/// A process with memory by page.
#[derive(Default)]
struct Machine {
    objects: Vec<AllocatedObject>,
    extents: Vec<Extent>,
    resident: BTreeMap<Process, Vec<ResidentRun>>,
    counts: AccessCounts,
    hints: HeatHints,
}

impl Machine {
    fn object(&mut self, page: u64, pages: u64) {
        self.objects.push(AllocatedObject {
            process: PROCESS,
            site: SiteId(5),
            range: AddressRange {
                start: page * PAGE,
                bytes: Bytes(pages * PAGE),
            },
        });
    }

    fn extent(&mut self, page: u64, pages: u64) {
        self.extents.push(Extent {
            process: PROCESS,
            site: SiteId(5),
            address: page * PAGE,
            bytes: Bytes(pages * PAGE),
            resident: Bytes(0),
            tier: None,
        });
    }

    fn run(&mut self, page: u64, pages: u64, is_fast: bool) {
        let range = AddressRange {
            start: page * PAGE,
            bytes: Bytes(pages * PAGE),
        };
        self.resident.entry(PROCESS).or_default().push(ResidentRun {
            range,
            is_fast,
            is_huge: false,
        });
    }

    /// As many samples of each of these pages.
    fn access(&mut self, pages: std::ops::Range<u64>, samples: u64) {
        let source = SourceKind::Timer;
        for page in pages {
            let access =
                ObservedAccess::at((PROCESS, page * PAGE), source, (1, source.unit(false)));
            for _ in 0..samples {
                self.counts.add(&[access]);
            }
        }
    }

    fn optimize(&self, pages: u64, choice: &ChunkChoice) -> Optimization {
        let input = OptimizationInput {
            objects: &self.objects,
            extents: &self.extents,
            resident: &self.resident,
            counts: &self.counts,
            hints: &self.hints,
            capacity: Bytes(pages * PAGE),
        };
        optimize(&input, choice).expect("good parameters")
    }
}

impl Machine {
    fn hint(&mut self, pages: std::ops::Range<u64>, hint: HeatHint) {
        let range = AddressRange {
            start: pages.start * PAGE,
            bytes: Bytes((pages.end - pages.start) * PAGE),
        };
        self.hints.add(PROCESS, range, hint);
    }
}

#[test]
fn what_the_program_says_comes_before_what_the_samples_say() {
    for choice in [atmem(), thermos()] {
        let mut machine = uneven();
        machine.hint(1900..1964, HeatHint::Hot);
        machine.hint(1000..1032, HeatHint::Cold);
        machine.hint(1512..1576, HeatHint::Streaming);
        let found = machine.optimize(256, &choice);
        // Half of what the samples say is a stream, by the program.
        assert_eq!(pages(&found.promotions), [(1576, 64), (1900, 64)]);
        assert_eq!(pages(&found.demotions), [(1000, 128)]);
        // Cold memory leaves where nothing needs its room; hot memory takes no more than there is.
        let found = machine.optimize(1024, &choice);
        assert_eq!(pages(&found.demotions), [(1000, 32)]);
        let found = machine.optimize(32, &choice);
        assert_eq!(pages(&found.promotions), [(1900, 32)]);
    }
}

#[test]
fn a_hint_needs_no_samples() {
    let mut machine = uneven();
    machine.counts.forget(PROCESS);
    machine.hint(1900..1964, HeatHint::Hot);
    let found = machine.optimize(320, &atmem());
    assert_eq!(pages(&found.promotions), [(1900, 64)]);
    assert_eq!(found.figures.selected, Bytes(64 * PAGE));
    assert_eq!(pages(&found.demotions), []);
}

fn atmem() -> ChunkChoice {
    ChunkChoice::Selection(ChunkParameters {
        epsilon: 0.75,
        ..ChunkParameters::default()
    })
}

fn thermos() -> ChunkChoice {
    ChunkChoice::Policy(Box::new(Thermos::default()))
}

/// First page and number of pages of each range.
fn pages(ranges: &[ProcessRange]) -> Vec<(u64, u64)> {
    let page = |(_, range): &ProcessRange| (range.start / PAGE, range.bytes.0 / PAGE);
    ranges.iter().map(page).collect()
}

/// An array of 1,024 pages of which 128 are hot; the first quarter is fast.
fn uneven() -> Machine {
    let mut machine = Machine::default();
    machine.object(1000, 1024);
    machine.extent(1000, 1024);
    machine.run(1000, 256, true);
    machine.run(1256, 768, false);
    machine.access(1512..1640, 8);
    machine
}

#[test]
fn the_hot_part_of_an_array_takes_the_place_of_cold_data_as_far_as_it_needs_room() {
    for choice in [atmem(), thermos()] {
        let machine = uneven();
        let found = machine.optimize(256, &choice);
        assert_eq!(pages(&found.promotions), [(1512, 128)]);
        assert_eq!(pages(&found.demotions), [(1000, 128)]);
        let figures = found.figures;
        assert_eq!((figures.samples, figures.regions), (1024, 1));
        assert_eq!(
            figures.selected,
            Bytes(128 * PAGE),
            "nothing that was not accessed"
        );
        assert_eq!(figures.placed, Bytes(0));
        assert_eq!(figures.fast, Bytes(256 * PAGE));
        // If there is room for all data, no page has to leave.
        assert!(machine.optimize(1024, &choice).demotions.is_empty());
    }
}

/// Pages that stay, by reason.
fn stayed(found: &Optimization) -> [u64; 4] {
    [
        StayReason::Capacity,
        StayReason::NotHot,
        StayReason::NotTouched,
        StayReason::NotMovable,
    ]
    .map(|reason| found.stayed.iter().collect::<StayedBytes>().of(reason).0 / PAGE)
}

#[test]
fn slow_data_that_is_not_chosen_has_no_room_or_is_not_hot() {
    for choice in [atmem(), thermos()] {
        let machine = uneven();
        // 768 pages are slow, of which 128 are hot. What leaves fast memory is not hot.
        for capacity in [0, 32, 100, 128, 256, 1024] {
            let found = machine.optimize(capacity, &choice);
            let selected = found.figures.selected.0 / PAGE;
            assert!(selected <= capacity);
            let left: u64 = pages(&found.demotions).iter().map(|(_, pages)| pages).sum();
            let expected = [128 - selected, 640 + left, 0, 0];
            assert_eq!(stayed(&found), expected, "{capacity}");
        }
    }
    // The hot part is fast, and leaves for lack of room.
    let mut machine = uneven();
    machine.resident.clear();
    machine.run(1000, 512, false);
    machine.run(1512, 128, true);
    machine.run(1640, 384, false);
    let found = machine.optimize(0, &atmem());
    assert_eq!(stayed(&found), [128, 896, 0, 0]);
    let mut machine = uneven();
    machine.counts = AccessCounts::default();
    assert_eq!(stayed(&machine.optimize(64, &atmem())), [0, 768, 0, 0]);
}

#[test]
fn a_hot_hint_without_pages_or_without_data_of_the_run_says_so() {
    let mut machine = uneven();
    // No page of the data object that follows was touched; the last pages are of a stack.
    machine.extent(3000, 16);
    machine.hint(3000..3016, HeatHint::Hot);
    machine.hint(9000..9008, HeatHint::Hot);
    // The capacity takes 32 of the 64 hot pages.
    machine.hint(1900..1964, HeatHint::Hot);
    let found = machine.optimize(32, &atmem());
    assert_eq!(pages(&found.promotions), [(1900, 32)]);
    assert_eq!(pages(&found.demotions), [(1000, 256)]);
    assert_eq!(stayed(&found), [128 + 32, 1024 - 64 - 128, 16, 8]);
}

#[test]
fn a_chunk_is_no_larger_than_the_fast_memory_that_it_is_for() {
    // By 100 samples, four a chunk, a chunk has 41 pages.
    let mut machine = uneven();
    machine.counts = AccessCounts::default();
    machine.access(1512..1612, 1);
    for capacity in [40, 8, 1] {
        let found = machine.optimize(capacity, &atmem());
        let selected = found.figures.selected.0 / PAGE;
        assert!((1..=capacity).contains(&selected), "{selected}, {capacity}");
        let left: u64 = pages(&found.demotions).iter().map(|(_, pages)| pages).sum();
        assert!(left >= 256 - capacity, "the limit holds");
    }
}

#[test]
fn with_less_than_a_page_of_fast_memory_all_that_is_fast_leaves() {
    for choice in [atmem(), thermos()] {
        let machine = uneven();
        let found = machine.optimize(0, &choice);
        assert_eq!(pages(&found.demotions), [(1000, 256)]);
        assert!(found.promotions.is_empty());
        assert_eq!(found.figures.selected, Bytes(0));
    }
    let mut machine = uneven();
    machine.counts = AccessCounts::default();
    assert!(machine.optimize(0, &atmem()).demotions.is_empty());
}

#[test]
fn what_is_where_it_should_be_does_not_move() {
    let mut machine = uneven();
    machine.resident.clear();
    machine.run(1000, 512, false);
    machine.run(1512, 128, true);
    machine.run(1640, 384, false);
    let found = machine.optimize(128, &atmem());
    assert!(found.promotions.is_empty() && found.demotions.is_empty());
    assert_eq!(found.figures.placed, found.figures.selected);
}

#[test]
fn a_limit_below_what_is_fast_makes_the_coldest_leave() {
    let mut machine = uneven();
    machine.access(1000..1010, 1);
    let found = machine.optimize(64, &atmem());
    let entered: u64 = pages(&found.promotions)
        .iter()
        .map(|(_, pages)| pages)
        .sum();
    let left: u64 = pages(&found.demotions).iter().map(|(_, pages)| pages).sum();
    assert!(entered > 0 && 256 - left + entered <= 64, "{found:?}");
}

#[test]
fn without_samples_of_its_data_nothing_moves() {
    let mut machine = uneven();
    machine.counts = AccessCounts::default();
    assert!(machine.optimize(64, &atmem()).demotions.is_empty());
    // Samples of other memory count, and prove nothing of this.
    machine.access(9000..9100, 5);
    let found = machine.optimize(64, &atmem());
    assert!(found.demotions.is_empty() && found.promotions.is_empty());
    assert_eq!(found.figures.samples, 500);
}

#[test]
fn memory_between_objects_is_chosen_too_and_freed_objects_are_not() {
    let mut machine = Machine::default();
    machine.object(1000, 100);
    machine.object(5000, 100);
    machine.extent(1000, 400);
    // The second object has no pages any more.
    machine.run(1000, 400, false);
    machine.access(1200..1250, 8);
    let found = machine.optimize(50, &atmem());
    let promoted = pages(&found.promotions);
    let inside = promoted
        .iter()
        .filter(|(page, pages)| *page >= 1190 && page + pages <= 1260);
    assert_eq!(inside.count(), promoted.len(), "{promoted:?}");
    assert!(!promoted.is_empty());
}

#[test]
fn huge_pages_are_chosen_as_a_whole() {
    let mut machine = uneven();
    for run in machine.resident.values_mut().flatten() {
        run.is_huge = true;
    }
    let found = machine.optimize(1024, &atmem());
    // The page of 2 MiB from page 1536 on holds most of the hot pages, and the one before it the others.
    for (page, pages) in pages(&found.promotions) {
        let is_edge = |page: u64| page.is_multiple_of(512) || page == 1256 || page == 2024;
        assert!(is_edge(page) && is_edge(page + pages), "{page} {pages}");
    }
}

proptest! {
    #[test]
    fn the_capacity_holds_and_no_page_moves_that_is_not_resident(
        objects in prop::collection::vec((0_u64..400, 16_u64..60), 0..6),
        runs in prop::collection::vec((1_u64..40, any::<bool>(), any::<bool>()), 1..12),
        heat in prop::collection::vec((0_u64..480, 1_u64..9), 0..40),
        capacity in 0_u64..300,
        by_policy in any::<bool>(),
    ) {
        let mut machine = Machine::default();
        for (page, pages) in objects {
            machine.object(page, pages);
        }
        machine.extent(0, 480);
        let mut page = 0;
        for (pages, is_fast, gap) in runs {
            page += u64::from(gap) * 3;
            machine.run(page, pages, is_fast);
            page += pages;
        }
        for (page, samples) in heat {
            machine.access(page..page + 1, samples);
        }
        let choice = if by_policy { thermos() } else { atmem() };
        let found = machine.optimize(capacity, &choice);
        let runs = &machine.resident[&PROCESS];
        let tier = |page: u64| {
            let run = runs.iter().find(|run| run.range.start <= page * PAGE && page * PAGE < run.range.end());
            run.map(|run| run.is_fast)
        };
        let each = |ranges: &[ProcessRange]| -> Vec<u64> {
            pages(ranges).into_iter().flat_map(|(page, pages)| page..page + pages).collect()
        };
        let (left, entered) = (each(&found.demotions), each(&found.promotions));
        prop_assert!(left.iter().all(|page| tier(*page) == Some(true)));
        prop_assert!(entered.iter().all(|page| tier(*page) == Some(false)));
        let fast = (0..600).filter(|page| tier(*page) == Some(true)).count();
        if !(left.is_empty() && entered.is_empty()) {
            prop_assert!(fast - left.len() + entered.len() <= capacity as usize, "{:?}", found);
        }
    }
}
