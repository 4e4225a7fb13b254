//! Tests with ATMem's own examples, computed by hand: figure 3, equations 1 to 5, and the limits
//! that the paper leaves open.

use isotherm_model::batch::Process;
use isotherm_model::site::SiteId;
use isotherm_model::units::Bytes;

use super::{ChunkParameters, ChunkSelection, DataObject, Fit, select};

const PAGE: u64 = 4096;
const AMPLE: Bytes = Bytes(u64::MAX);

/// An object with one count per page; object number `i` begins at `i + 1` MiB.
fn object(number: u64, missed_reads: &[u64]) -> DataObject<'_> {
    DataObject {
        process: Process { pid: 1, image: 0 },
        site: SiteId(number + 2),
        address: (number + 1) << 20,
        bytes: Bytes(missed_reads.len() as u64 * PAGE),
        grain: Bytes(PAGE),
        missed_reads,
    }
}

/// Counts of pages from priorities in missed reads a byte.
fn of_priorities(priorities: &[u64]) -> Vec<u64> {
    priorities.iter().map(|priority| priority * PAGE).collect()
}

/// (object, first page, pages, sampled, estimated) of each range.
fn pages(selection: &ChunkSelection) -> Vec<(usize, u64, u64, u32, u32)> {
    let facts = |range: &super::FastRange| {
        let offset = range.address - selection.objects[range.object].address;
        (
            range.object,
            offset / PAGE,
            range.bytes.0 / PAGE,
            range.sampled,
            range.estimated,
        )
    };
    selection.ranges.iter().map(facts).collect()
}

#[test]
fn figure_3_promotes_the_gap_below_the_node_with_three_of_four_and_leaves_one_range() {
    // Eight chunks below a binary tree. The right node of the second level has a tree ratio of 3/4
    // and the threshold is 0.5, so its one chunk without samples is promoted; the root has 3/8.
    let chunks = [object(0, &[0, 0, 0, 0, 7, 0, 7, 7])];
    let binary = ChunkParameters::of_arity(2);
    let selection = select(&chunks, &binary, AMPLE).unwrap();
    assert_eq!(selection.objects[0].tree_threshold, Some(0.5));
    assert_eq!(pages(&selection), [(0, 4, 4, 3, 1)]);

    let with_epsilon = |epsilon| {
        let parameters = ChunkParameters { epsilon, ..binary };
        pages(&select(&chunks, &parameters, AMPLE).unwrap())
    };
    assert_eq!(with_epsilon(0.75), [(0, 4, 4, 3, 1)]);
    assert_eq!(with_epsilon(0.76), [(0, 4, 1, 1, 0), (0, 6, 2, 2, 0)]);
}

/// The written example of the equations: priorities are whole numbers of missed reads a byte.
///
/// | | priorities | P_n (N = 50 %) | α max PR | min PR / Freq | θ | W | θ' |
/// |---|---|---|---|---|---|---|---|
/// | A | 8 6 2 1 0 0 0 0 | 1 | 4 | 1 | 4 | (8 + 6) / 2 = 7 | 0.5 |
/// | B | 0 0 2 2 0 0 2 0 | 0 | 1 | 1 | 1 | 2 | 0.5 + 0.5 (7 - 2) / 5 = 1 |
/// | C | 3 3 3 3 | 3 | 1.5 | 1 | 3 | 3 | 0.5 + 0.5 (7 - 3) / 5 = 0.9 |
fn written_example() -> ChunkSelection {
    let (a, b, c) = (
        of_priorities(&[8, 6, 2, 1, 0, 0, 0, 0]),
        of_priorities(&[0, 0, 2, 2, 0, 0, 2, 0]),
        of_priorities(&[3, 3, 3, 3]),
    );
    let objects = [object(0, &a), object(1, &b), object(2, &c)];
    let parameters = ChunkParameters {
        alpha: 0.5,
        top_percent: 50.0,
        tree_ratio: 0.5,
        sample_period: PAGE,
        ..ChunkParameters::of_arity(2)
    };
    select(&objects, &parameters, AMPLE).unwrap()
}

#[test]
fn equation_1_divides_by_the_size_so_that_chunks_of_different_objects_compare() {
    // The same counts in chunks of twice the size are half the priority, and half the weight.
    let counts = [64, 64, 64, 64];
    let small = object(0, &counts);
    let large = DataObject {
        grain: Bytes(2 * PAGE),
        bytes: Bytes(8 * PAGE),
        ..object(1, &counts)
    };
    let selection = select(&[small, large], &ChunkParameters::of_arity(2), AMPLE).unwrap();
    let weights: Vec<f64> = selection.objects.iter().filter_map(|o| o.weight).collect();
    assert_eq!(weights, [64.0 / 4096.0, 32.0 / 4096.0]);
}

#[test]
fn equation_2_takes_the_highest_of_percentile_alpha_and_one_sample() {
    let thresholds: Vec<f64> = written_example()
        .objects
        .iter()
        .map(|object| object.threshold)
        .collect();
    assert_eq!(thresholds, [4.0, 1.0, 3.0]);
}

#[test]
fn equation_3_calls_a_chunk_at_the_threshold_critical() {
    let sampled = |selection: &ChunkSelection, object: usize| -> u32 {
        let ranges = selection.ranges.iter().filter(|r| r.object == object);
        ranges.map(|range| range.sampled).sum()
    };
    let selection = written_example();
    assert_eq!(
        [0, 1, 2].map(|object| sampled(&selection, object)),
        [2, 3, 4]
    );
}

#[test]
fn equation_4_is_the_mean_priority_of_the_critical_chunks_alone() {
    let weights = written_example().objects.into_iter().map(|o| o.weight);
    assert_eq!(
        weights.collect::<Vec<_>>(),
        [Some(7.0), Some(2.0), Some(3.0)]
    );
}

#[test]
fn equation_5_asks_a_higher_tree_ratio_of_objects_that_weigh_less() {
    let selection = written_example();
    let thresholds: Vec<Option<f64>> = selection.objects.iter().map(|o| o.tree_threshold).collect();
    assert_eq!(thresholds, [Some(0.5), Some(1.0), Some(0.9)]);
    // A: two of the first four suffice. B: only the full pair does, and it has no other leaf to
    // promote.
    assert_eq!(
        pages(&selection),
        [
            (0, 0, 4, 2, 2),
            (1, 2, 2, 2, 0),
            (1, 6, 1, 1, 0),
            (2, 0, 4, 4, 0)
        ]
    );
}

#[test]
fn one_object_and_objects_of_equal_weight_promote_at_epsilon_though_equation_5_divides_by_zero() {
    let parameters = ChunkParameters {
        tree_ratio: 0.5,
        ..ChunkParameters::of_arity(4)
    };
    // Five reads in three pages are no binary fraction: equal weights must still come out equal,
    // regardless of the number of critical chunks in the mean.
    let of_three_pages = |number, counts: &'static [u64]| DataObject {
        grain: Bytes(3 * PAGE),
        bytes: Bytes(3 * PAGE * counts.len() as u64),
        ..object(number, counts)
    };
    let objects = [
        of_three_pages(0, &[5, 5, 5, 0]),
        of_three_pages(1, &[5; 32]),
        of_three_pages(2, &[5]),
    ];
    for count in 1..=objects.len() {
        let selection = select(&objects[..count], &parameters, AMPLE).unwrap();
        for object in &selection.objects {
            assert_eq!(object.tree_threshold, Some(0.25));
        }
        assert_eq!(pages(&selection)[0], (0, 0, 12, 3, 1));
    }
}

#[test]
fn without_samples_nothing_is_critical_and_the_object_has_no_part_in_equation_5() {
    let parameters = ChunkParameters {
        tree_ratio: 0.5,
        ..ChunkParameters::of_arity(2)
    };
    let nothing = select(&[object(0, &[0; 9])], &parameters, AMPLE).unwrap();
    assert_eq!((nothing.ranges.len(), nothing.left_out), (0, Bytes(0)));
    assert_eq!(nothing.objects[0].weight, None);
    assert_eq!(nothing.objects[0].tree_threshold, None);

    // A weight of zero would make it the lowest, and the colder of the others would not be at the
    // end.
    let objects = [object(0, &[0; 4]), object(1, &[8; 4]), object(2, &[2; 4])];
    let selection = select(&objects, &parameters, AMPLE).unwrap();
    let thresholds: Vec<Option<f64>> = selection.objects.iter().map(|o| o.tree_threshold).collect();
    assert_eq!(thresholds, [None, Some(0.5), Some(1.0)]);
    assert_eq!(
        select(&[], &parameters, AMPLE),
        Ok(ChunkSelection::default())
    );
}

#[test]
fn an_object_touched_evenly_goes_fast_whole() {
    let counts = [5; 100];
    let parameters = ChunkParameters::default();
    let selection = select(&[object(0, &counts)], &parameters, AMPLE).unwrap();
    assert_eq!(pages(&selection), [(0, 0, 100, 100, 0)]);
}

#[test]
fn the_best_chunks_come_first_and_what_is_kept_side_by_side_is_one_range() {
    let (a, b) = ([0, 9, 0, 0, 0, 1, 0, 0], [0, 4, 6, 5, 7, 0, 0, 0]);
    let parameters = ChunkParameters {
        epsilon: 1.0,
        ..ChunkParameters::of_arity(2)
    };
    let objects = [object(0, &a), object(1, &b)];
    let at = |capacity| select(&objects, &parameters, Bytes(capacity)).unwrap();
    let fast = |capacity| -> Vec<(usize, u64, u64)> {
        let pages = pages(&at(capacity)).into_iter();
        pages
            .map(|(object, first, count, ..)| (object, first, count))
            .collect()
    };
    assert!(fast(PAGE - 1).is_empty());
    assert_eq!(fast(PAGE), [(0, 1, 1)]);
    assert_eq!(fast(2 * PAGE), [(0, 1, 1), (1, 4, 1)]);
    assert_eq!(fast(3 * PAGE), [(0, 1, 1), (1, 2, 1), (1, 4, 1)]);
    assert_eq!(fast(4 * PAGE), [(0, 1, 1), (1, 2, 3)]);
    assert_eq!(fast(5 * PAGE), [(0, 1, 1), (1, 1, 4)]);
    assert_eq!(fast(6 * PAGE), [(0, 1, 1), (0, 5, 1), (1, 1, 4)]);
    let cut = at(4 * PAGE);
    assert_eq!(
        (cut.bytes(), cut.left_out),
        (Bytes(4 * PAGE), Bytes(2 * PAGE))
    );
    let of = Bytes(4 * PAGE);
    let fits: Vec<Fit> = cut.ranges.iter().map(|range| range.fit).collect();
    assert_eq!(fits, [Fit::Whole, Fit::Cut { of }]);
    assert_eq!(cut.ranges[1].missed_reads, 18);
}
