//! Tests properties of every selection, and compares it with a reference implementation: the equations written again, leaf by leaf.

use isotherm_model::batch::Process;
use isotherm_model::site::SiteId;
use isotherm_model::units::Bytes;
use proptest::prelude::*;

use super::{ChunkParameters, ChunkSelection, CutReading, DataObject, FastRange, Fit, select};

const PAGE: u64 = 4096;
const AMPLE: Bytes = Bytes(u64::MAX);

/// Counts of one object, the unused bytes of its last page, the free pages after it.
type Shape = (Vec<u64>, u64, u64);

fn objects(shapes: &[Shape]) -> Vec<DataObject<'_>> {
    let mut address = PAGE;
    let mut objects = Vec::new();
    for (number, (counts, lacking, gap)) in shapes.iter().enumerate() {
        let bytes = counts.len() as u64 * PAGE;
        objects.push(DataObject {
            process: Process {
                pid: number as u32 % 2,
                image: 0,
            },
            site: SiteId(number as u64 + 2),
            address,
            bytes: Bytes(bytes.saturating_sub(*lacking)),
            grain: Bytes(PAGE),
            missed_reads: counts,
        });
        address += bytes + gap * PAGE;
    }
    objects
}

fn shapes() -> impl Strategy<Value = Vec<Shape>> {
    let count = prop_oneof![4 => Just(0_u64), 4 => 1_u64..20, 1 => 1000_u64..2000];
    let counts = prop::collection::vec(count, 0..70);
    prop::collection::vec((counts, 0..PAGE, 0_u64..3), 0..5)
}

prop_compose! {
    fn parameters()(
        arity in 2_u32..6, alpha in 0.0_f64..1.0, top_percent in 1.0_f64..=100.0,
        above in 0.0_f64..0.5, tree_ratio in 0.0_f64..1.0, sample_period in 1_u64..6,
        most_chunks in 1_u32..90, prose in any::<bool>()
    ) -> ChunkParameters {
        let epsilon = 1.0 / f64::from(arity) + above;
        ChunkParameters {
            arity, alpha, top_percent, epsilon, tree_ratio, sample_period, most_chunks,
            cut: if prose { CutReading::Prose } else { CutReading::Printed },
        }
    }
}

/// The fast chunks of each object, from the definitions: every chunk checks each of its ancestors.
fn slow_twin(objects: &[DataObject<'_>], parameters: &ChunkParameters) -> Vec<Vec<bool>> {
    let local: Vec<(Vec<bool>, Option<f64>)> = objects
        .iter()
        .map(|object| critical_and_weight(object, parameters))
        .collect();
    let weights: Vec<f64> = local.iter().filter_map(|(_, weight)| *weight).collect();
    let highest = weights.iter().copied().fold(f64::MIN, f64::max);
    let lowest = weights.iter().copied().fold(f64::MAX, f64::min);
    let fast = |(critical, weight): &(Vec<bool>, Option<f64>)| {
        let above = match weight {
            Some(weight) if highest > lowest => {
                parameters.tree_ratio * (highest - weight) / (highest - lowest)
            }
            _ => 0.0,
        };
        let threshold = parameters.epsilon + above;
        let is_fast = |leaf: usize| {
            let mut width = parameters.arity as usize;
            loop {
                let first = leaf / width * width;
                let node = &critical[first..critical.len().min(first + width)];
                let below = node.iter().filter(|leaf| **leaf).count();
                if below as f64 / node.len() as f64 >= threshold {
                    return true;
                }
                if width >= critical.len() {
                    return critical[leaf];
                }
                width *= parameters.arity as usize;
            }
        };
        (0..critical.len()).map(is_fast).collect()
    };
    local.iter().map(fast).collect()
}

fn critical_and_weight(
    object: &DataObject<'_>,
    parameters: &ChunkParameters,
) -> (Vec<bool>, Option<f64>) {
    let pages = object.missed_reads.len() as u64;
    let pages_a_chunk = pages.div_ceil(u64::from(parameters.most_chunks)).max(1);
    let chunk = pages_a_chunk * PAGE;
    let mut chunks = Vec::new();
    let mut left = object.bytes.0;
    for counts in object.missed_reads.chunks(pages_a_chunk as usize) {
        let bytes = chunk.min(left);
        left -= bytes;
        chunks.push((counts.iter().sum::<u64>(), bytes));
    }
    let priority = |&(reads, bytes): &(u64, u64)| reads as f64 / bytes as f64;
    let mut descending: Vec<f64> = chunks.iter().map(priority).collect();
    descending.sort_by(|a, b| b.total_cmp(a));
    let top = (parameters.top_percent * chunks.len() as f64 / 100.0).ceil() as usize;
    let bounds = [
        descending.get(top.max(1) - 1).copied().unwrap_or(0.0),
        parameters.alpha * descending.first().copied().unwrap_or(0.0),
        parameters.sample_period as f64 / chunk as f64,
    ];
    let threshold = bounds.into_iter().fold(0.0, f64::max);
    let critical: Vec<bool> = chunks.iter().map(|c| priority(c) >= threshold).collect();
    let of_critical = chunks
        .iter()
        .zip(&critical)
        .filter(|(_, critical)| **critical);
    let (reads, bytes) =
        of_critical.fold((0, 0), |sum, (chunk, _)| (sum.0 + chunk.0, sum.1 + chunk.1));
    (critical, (bytes > 0).then(|| reads as f64 / bytes as f64))
}

/// The chunks of each object that the ranges hold, in the order of the selection.
fn chunks_of(selection: &ChunkSelection) -> Vec<Vec<bool>> {
    let mut fast: Vec<Vec<bool>> = selection
        .objects
        .iter()
        .map(|object| vec![false; object.chunks as usize])
        .collect();
    for range in &selection.ranges {
        let object = &selection.objects[range.object];
        let first = (range.address - object.address) / object.chunk.0;
        let end = first + range.bytes.0.div_ceil(object.chunk.0);
        fast[range.object][first as usize..end as usize].fill(true);
    }
    fast
}

fn in_order<'a>(objects: &[DataObject<'a>]) -> Vec<DataObject<'a>> {
    let mut sorted = objects.to_vec();
    sorted.sort_by_key(|object| (object.process, object.address, object.bytes));
    sorted
}

/// Priority, number in the order of all chunks, and bytes of each selected chunk.
fn ranked(objects: &[DataObject<'_>], selection: &ChunkSelection) -> Vec<(f64, usize, u64)> {
    let mut found = Vec::new();
    let mut number = 0;
    for ((object, facts), fast) in objects
        .iter()
        .zip(&selection.objects)
        .zip(chunks_of(selection))
    {
        let counts_a_chunk = (facts.chunk.0 / PAGE) as usize;
        let counts = object.missed_reads.chunks(counts_a_chunk);
        for (chunk, (fast, counts)) in fast.into_iter().zip(counts).enumerate() {
            let start = chunk as u64 * facts.chunk.0;
            let bytes = facts.chunk.0.min(object.bytes.0 - start);
            if fast {
                let reads: u64 = counts.iter().sum();
                found.push((reads as f64 / bytes as f64, number, bytes));
            }
            number += 1;
        }
    }
    found
}

proptest! {
    #[test]
    fn the_selection_is_that_of_the_equations_leaf_by_leaf(
        shapes in shapes(), parameters in parameters()
    ) {
        let parameters = ChunkParameters { cut: CutReading::Printed, ..parameters };
        let mut objects = objects(&shapes);
        objects.sort_by_key(|object| (object.process, object.address));
        let selection = select(&objects, &parameters, AMPLE).unwrap();
        prop_assert_eq!(chunks_of(&selection), slow_twin(&objects, &parameters));
        prop_assert_eq!(selection.left_out, Bytes(0));
    }

    #[test]
    fn ranges_fit_the_capacity_lie_in_their_objects_and_never_touch(
        shapes in shapes(), parameters in parameters(), pages in 0_u64..200
    ) {
        let objects = objects(&shapes);
        let ample = select(&objects, &parameters, AMPLE).unwrap();
        let capacity = Bytes(pages * PAGE / 2);
        let selection = select(&objects, &parameters, capacity).unwrap();
        prop_assert!(selection.bytes() <= capacity);
        prop_assert_eq!(selection.bytes().0 + selection.left_out.0, ample.bytes().0);
        if ample.bytes() <= capacity {
            prop_assert_eq!(&selection, &ample);
        }
        for range in &selection.ranges {
            let object = &selection.objects[range.object];
            let offset = range.address - object.address;
            prop_assert!(range.bytes > Bytes(0));
            prop_assert!(offset.is_multiple_of(object.chunk.0));
            prop_assert!(offset + range.bytes.0 <= object.bytes.0);
            let chunks = range.bytes.0.div_ceil(object.chunk.0);
            prop_assert_eq!(u64::from(range.sampled + range.estimated), chunks);
            if let Fit::Cut { of } = range.fit {
                prop_assert!(range.bytes < of);
            }
        }
        for pair in selection.ranges.windows(2) {
            let end = pair[0].address + pair[0].bytes.0;
            let apart = pair[0].object < pair[1].object || end < pair[1].address;
            prop_assert!(apart, "{pair:?}");
        }
        let (kept, all) = (chunks_of(&selection), chunks_of(&ample));
        for (kept, all) in kept.iter().flatten().zip(all.iter().flatten()) {
            prop_assert!(*all || !*kept, "the capacity brought a chunk in");
        }
    }

    #[test]
    fn the_best_chunks_are_kept_and_more_capacity_never_keeps_fewer_missed_reads(
        shapes in shapes(), parameters in parameters(), capacity in 0_u64..100 * PAGE,
        more in 0_u64..20 * PAGE
    ) {
        let objects = objects(&shapes);
        let ample = select(&objects, &parameters, AMPLE).unwrap();
        let selection = select(&objects, &parameters, Bytes(capacity)).unwrap();
        let sorted = in_order(&objects);
        let mut critical = ranked(&sorted, &ample);
        critical.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut used = 0;
        let best = critical.iter().take_while(|chunk| {
            used += chunk.2;
            used <= capacity
        });
        let mut best: Vec<_> = best.map(|chunk| chunk.1).collect();
        best.sort_unstable();
        let kept: Vec<_> = ranked(&sorted, &selection).iter().map(|chunk| chunk.1).collect();
        prop_assert_eq!(kept, best);

        let larger = select(&objects, &parameters, Bytes(capacity + more)).unwrap();
        let reads = |selection: &ChunkSelection| -> u64 {
            selection.ranges.iter().map(|range| range.missed_reads).sum()
        };
        prop_assert!(reads(&selection) <= reads(&larger));
    }

    #[test]
    fn a_range_is_whole_if_it_is_one_without_a_capacity(
        shapes in shapes(), parameters in parameters(), capacity in 0_u64..100 * PAGE
    ) {
        let objects = objects(&shapes);
        let ample = select(&objects, &parameters, AMPLE).unwrap();
        for range in select(&objects, &parameters, Bytes(capacity)).unwrap().ranges {
            let holds = |all: &&FastRange| {
                all.object == range.object
                    && (all.address..all.address + all.bytes.0).contains(&range.address)
            };
            let all = ample.ranges.iter().find(holds).unwrap();
            match range.fit {
                Fit::Whole => prop_assert_eq!(range, *all),
                Fit::Cut { of } => prop_assert!(of == all.bytes && range.bytes < of),
            }
        }
    }

    #[test]
    fn the_selection_does_not_depend_on_the_order_of_the_objects(
        shapes in shapes(), parameters in parameters(), pages in 0_u64..200, turn in 0_usize..5
    ) {
        let objects = objects(&shapes);
        let mut turned = objects.clone();
        turned.rotate_left(turn % objects.len().max(1));
        turned.reverse();
        let capacity = Bytes(pages * PAGE);
        let selection = select(&objects, &parameters, capacity);
        prop_assert_eq!(select(&turned, &parameters, capacity), selection);
    }

    #[test]
    fn a_lower_epsilon_never_selects_less(
        shapes in shapes(), parameters in parameters(), lower in 0.0_f64..1.0
    ) {
        let objects = objects(&shapes);
        let least = 1.0 / f64::from(parameters.arity);
        let epsilon = least + (parameters.epsilon - least) * lower;
        let eager = ChunkParameters { epsilon, ..parameters };
        let few = chunks_of(&select(&objects, &parameters, AMPLE).unwrap());
        let many = chunks_of(&select(&objects, &eager, AMPLE).unwrap());
        for (few, many) in few.iter().flatten().zip(many.iter().flatten()) {
            prop_assert!(*many || !*few);
        }
    }
}
