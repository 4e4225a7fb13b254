//! [`select`] runs the stages of chunk selection over all objects (critical by samples, promoted by neighbours, limited to the capacity),
//! and returns the ranges that go to fast memory, and those without room, as a [`ChunkSelection`].

use isotherm_model::units::Bytes;

use super::capacity;
use super::global::WeightSpace;
use super::granularity::{Chunks, add_chunks, chunk_bytes};
use super::local::{self, Category, Local, Priorities};
use super::object::{DataObject, ObjectError, in_order};
use super::object_selection::ObjectSelection;
use super::parameters::{ChunkParameters, ParameterError};
use super::ranges::{Categorised, FastRange};
use super::tree::Tree;

/// The ranges that go to fast memory, and the numbers behind them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChunkSelection {
    /// The objects, by process and address.
    pub objects: Vec<ObjectSelection>,
    /// The ranges, by process and address; none touches another of the same object.
    pub ranges: Vec<FastRange>,
    /// The critical ranges for which the capacity had no room, by process and address.
    pub left: Vec<FastRange>,
    /// Critical bytes for which the capacity had no room.
    pub left_out: Bytes,
}

/// The reason why no selection was made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SelectionError {
    /// A parameter is out of range.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// An object is inconsistent.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

impl ChunkSelection {
    /// Bytes of all ranges.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.ranges.iter().map(|range| range.bytes).sum()
    }
}

/// The chunks of all objects in a few arrays.
struct AllChunks {
    reads: Vec<u64>,
    categories: Vec<Category>,
    /// Index of the first chunk of each object, and the end.
    starts: Vec<usize>,
}

impl AllChunks {
    fn of<'a>(&'a self, object: usize, facts: &'a ObjectSelection) -> Categorised<'a> {
        let all = self.starts[object]..self.starts[object + 1];
        Categorised {
            object,
            facts,
            chunks: Chunks {
                reads: &self.reads[all.clone()],
                chunk: facts.chunk,
                bytes: facts.bytes,
            },
            categories: &self.categories[all],
        }
    }
}

/// Selects the ranges of these objects that go into a fast tier of this capacity.
///
/// The result does not depend on the order of the objects and is the same in every run.
///
/// # Errors
/// A parameter out of its range, or an object that overlaps another or whose address, grain or
/// counts are inconsistent.
pub fn select(
    objects: &[DataObject<'_>],
    parameters: &ChunkParameters,
    capacity: Bytes,
) -> Result<ChunkSelection, SelectionError> {
    parameters.check()?;
    let objects = in_order(objects)?;
    let counts = objects.iter().map(|object| object.missed_reads.len()).sum();
    let mut all = AllChunks {
        reads: Vec::with_capacity(counts),
        categories: Vec::with_capacity(counts),
        starts: Vec::with_capacity(objects.len() + 1),
    };
    let mut facts = sampled(&objects, parameters, &mut all);
    promote(&mut facts, parameters, &mut all);
    let (left, left_out) = left_by_capacity(&facts, &all, capacity);
    let (mut ranges, mut ranges_left) = (Vec::new(), Vec::new());
    for (object, facts) in facts.iter().enumerate() {
        let first = all.starts[object];
        let is_left = |chunk: usize| left.get(first + chunk).is_some_and(|left| *left);
        let object = all.of(object, facts);
        object.add_runs(|chunk| !is_left(chunk), &mut ranges);
        if left_out > Bytes::ZERO {
            object.add_runs(is_left, &mut ranges_left);
        }
    }
    Ok(ChunkSelection {
        objects: facts,
        ranges,
        left: ranges_left,
        left_out,
    })
}

/// The last stage: marks the critical chunks for which there is no room, and adds up their bytes. No marks if all chunks fit.
fn left_by_capacity(
    facts: &[ObjectSelection],
    all: &AllChunks,
    capacity: Bytes,
) -> (Vec<bool>, Bytes) {
    let objects = || facts.iter().enumerate();
    let critical = objects().map(|(object, facts)| u128::from(all.of(object, facts).bytes().0));
    if critical.sum::<u128>() <= u128::from(capacity.0) {
        return (Vec::new(), Bytes::ZERO);
    }
    let mut candidates = Vec::with_capacity(all.reads.len());
    for (object, facts) in objects() {
        let first = all.starts[object];
        all.of(object, facts)
            .candidates(first, |chunk| candidates.push(chunk));
    }
    let mut left = vec![false; all.reads.len()];
    let left_out = capacity::bound(&mut candidates, capacity, |chunk| left[chunk] = true);
    (left, left_out)
}

/// The first stage: makes the chunks, and finds the critical ones of each object by its own samples.
fn sampled(
    objects: &[&DataObject<'_>],
    parameters: &ChunkParameters,
    all: &mut AllChunks,
) -> Vec<ObjectSelection> {
    let mut priorities = Priorities::default();
    let mut facts = Vec::with_capacity(objects.len());
    for object in objects {
        let chunk = chunk_bytes(object.bytes, object.grain, parameters.most_chunks);
        let start = all.reads.len();
        all.starts.push(start);
        add_chunks(object, chunk, &mut all.reads);
        let chunks = Chunks {
            reads: &all.reads[start..],
            chunk,
            bytes: object.bytes,
        };
        let Local { threshold, weight } =
            local::select(chunks, parameters, &mut all.categories, &mut priorities);
        facts.push(ObjectSelection {
            process: object.process,
            site: object.site,
            address: object.address,
            bytes: object.bytes,
            chunk,
            // `most_chunks` bounds the number.
            chunks: (all.reads.len() - start) as u32,
            threshold,
            weight,
            tree_threshold: None,
        });
    }
    all.starts.push(all.reads.len());
    facts
}

/// The second stage: promotes chunks among many critical ones, by thresholds that compare all objects.
fn promote(facts: &mut [ObjectSelection], parameters: &ChunkParameters, all: &mut AllChunks) {
    let space = WeightSpace::of(facts.iter().filter_map(|object| object.weight));
    let mut tree = Tree::default();
    for (object, facts) in facts.iter_mut().enumerate() {
        let Some(weight) = facts.weight else { continue };
        let threshold = space.threshold(weight, parameters);
        facts.tree_threshold = Some(threshold);
        let categories = &mut all.categories[all.starts[object]..all.starts[object + 1]];
        let critical = categories.iter().map(|c| *c == Category::Sampled);
        tree.build(parameters.arity, critical);
        tree.promote(threshold, |leaves| {
            let cold = categories[leaves]
                .iter_mut()
                .filter(|c| **c == Category::Cold);
            cold.for_each(|category| *category = Category::Estimated);
        });
    }
}
