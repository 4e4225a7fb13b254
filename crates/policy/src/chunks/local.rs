//! [`select`] finds the critical chunks of one object, those whose priority (missed reads a byte) is at least the highest of three bounds,
//! and the object's weight, which is the mean priority of these chunks: hybrid local selection (ATMem, section 4.2).

use super::cut::{CutReading, percentile, search};
use super::granularity::Chunks;
use super::parameters::ChunkParameters;

/// The category of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Category {
    /// Not critical.
    Cold,
    /// Critical by its samples (the paper's sampled selection).
    Sampled,
    /// Critical by its neighbours (the paper's estimated selection).
    Estimated,
}

/// The result of local selection for one object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Local {
    /// θ (equation 2).
    pub(super) threshold: f64,
    /// W (equation 4); `None` where no chunk is critical, because the mean of no values is
    /// undefined.
    pub(super) weight: Option<f64>,
}

/// Storage for the priorities of one object after another: all in order of address, and a copy to be sorted.
#[derive(Default)]
pub(super) struct Priorities {
    chunks: Vec<f64>,
    scratch: Vec<f64>,
}

/// θ (equation 2): the highest of three lower bounds.
///
/// - the cut: P_n, the priority of the last chunk among the top N per cent (their number rounded up), or where the search of the
///   paper's text ends ([`CutReading`]);
/// - α times the highest priority, which leaves out the long tail of a skewed object;
/// - min PR / Freq. The paper defines min PR as the least possible priority of a chunk of this
///   size, that is, one missed read in a chunk. Divided by the sampling frequency it is the
///   priority that a single sample gives. A chunk without a sample is therefore never critical.
fn threshold(priorities: &mut Priorities, chunk_bytes: f64, parameters: &ChunkParameters) -> f64 {
    let Priorities { chunks, scratch } = priorities;
    let one_sample = parameters.sample_period as f64 / chunk_bytes;
    let highest = chunks.iter().copied().fold(0.0, f64::max);
    let floor = one_sample.max(parameters.alpha * highest);
    scratch.clear();
    scratch.extend(chunks.iter().filter(|priority| **priority >= floor));
    if scratch.is_empty() {
        return floor;
    }
    // The product comes before the division: whole per cent of a whole number are exact.
    let top = (parameters.top_percent * chunks.len() as f64 / 100.0).ceil() as usize;
    let top = top.clamp(1, chunks.len());
    match parameters.cut {
        // The last chunk of the top is below the other bounds.
        CutReading::Printed if top > scratch.len() => floor,
        CutReading::Printed => percentile(scratch, top),
        CutReading::Prose => {
            let steep = (parameters.alpha * highest).max(chance(highest, one_sample));
            search(scratch, top, steep)
        }
    }
}

/// The fall of priority that sampling makes by chance: twice the standard deviation of the hottest chunk, whose n samples deviate by the
/// square root of n.
fn chance(highest: f64, one_sample: f64) -> f64 {
    2.0 * (highest * one_sample).sqrt()
}

/// Marks the critical chunks (equation 3) by appending a category for each.
///
/// W (equation 4) is the mean priority of the critical chunks, computed as their missed reads
/// divided by their bytes. For equal chunks this is the same number; a short last chunk counts by
/// its size. The sums are whole numbers, so equal weights come out equal, which equation 5 needs.
pub(super) fn select(
    chunks: Chunks<'_>,
    parameters: &ChunkParameters,
    categories: &mut Vec<Category>,
    priorities: &mut Priorities,
) -> Local {
    priorities.chunks.clear();
    priorities.chunks.extend(chunks.priorities());
    let threshold = threshold(priorities, chunks.chunk.0 as f64, parameters);
    let first = categories.len();
    categories.extend(
        priorities
            .chunks
            .iter()
            .map(|priority| match *priority >= threshold {
                true => Category::Sampled,
                false => Category::Cold,
            }),
    );
    let (mut reads, mut critical) = (0_u128, 0_u64);
    for (category, count) in categories[first..].iter().zip(chunks.reads) {
        let is_critical = *category == Category::Sampled;
        reads += u128::from(*count) * u128::from(is_critical);
        critical += u64::from(is_critical);
    }
    let last = chunks.reads.len().saturating_sub(1);
    let lacking = match categories[first..].last() {
        Some(Category::Sampled) => chunks.chunk.0 - chunks.bytes_between(last, last + 1).0,
        _ => 0,
    };
    let bytes = u128::from(critical) * u128::from(chunks.chunk.0) - u128::from(lacking);
    Local {
        threshold,
        weight: (bytes > 0).then(|| reads as f64 / bytes as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::{Category, Priorities, select};
    use crate::chunks::cut::CutReading;
    use crate::chunks::granularity::Chunks;
    use crate::chunks::parameters::ChunkParameters;
    use isotherm_model::units::Bytes;

    fn critical(reads: &[u64], parameters: &ChunkParameters) -> Vec<usize> {
        let chunks = Chunks {
            reads,
            chunk: Bytes(4096),
            bytes: Bytes(4096 * reads.len() as u64),
        };
        let mut categories = Vec::new();
        select(
            chunks,
            parameters,
            &mut categories,
            &mut Priorities::default(),
        );
        (0..reads.len())
            .filter(|&i| categories[i] == Category::Sampled)
            .collect()
    }

    const ALL: ChunkParameters = ChunkParameters {
        arity: 2,
        cut: CutReading::Printed,
        alpha: 0.0,
        top_percent: 100.0,
        epsilon: 0.5,
        tree_ratio: 0.0,
        sample_period: 1,
        most_chunks: u32::MAX,
    };

    #[test]
    fn each_of_the_three_bounds_is_the_threshold_where_it_is_the_highest() {
        let reads = [100, 60, 50, 40, 30, 20, 10, 2, 1, 0];
        assert_eq!(critical(&reads, &ALL), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        let top = ChunkParameters {
            top_percent: 30.0,
            ..ALL
        };
        assert_eq!(critical(&reads, &top), [0, 1, 2]);
        let steep = ChunkParameters { alpha: 0.55, ..top };
        assert_eq!(critical(&reads, &steep), [0, 1]);
        let sparse = ChunkParameters {
            sample_period: 61,
            ..steep
        };
        assert_eq!(critical(&reads, &sparse), [0]);
    }

    #[test]
    fn chunks_that_tie_with_the_last_of_the_top_are_critical_too() {
        let top = ChunkParameters {
            top_percent: 10.0,
            ..ALL
        };
        assert_eq!(critical(&[5; 7], &top), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(critical(&[1, 5, 5, 1], &top), [1, 2]);
    }

    /// A hundred chunks, of which one in seven has this many samples and the others that many.
    fn hundred(hot: u64, cold: u64) -> Vec<u64> {
        let count = |chunk: u64| if chunk.is_multiple_of(7) { hot } else { cold };
        (0..100).map(count).collect()
    }

    #[test]
    fn by_the_papers_text_a_skewed_object_has_fewer_than_n_per_cent_and_an_even_one_all() {
        let prose = ChunkParameters {
            cut: CutReading::Prose,
            alpha: 0.1,
            top_percent: 20.0,
            ..ALL
        };
        let printed = ChunkParameters {
            cut: CutReading::Printed,
            ..prose
        };
        let count = |reads: &[u64], parameters| critical(reads, parameters).len();
        let (skewed, even) = (hundred(1000, 300), hundred(1000, 950));
        assert_eq!((count(&skewed, &prose), count(&even, &prose)), (15, 100));
        assert_eq!(
            (count(&skewed, &printed), count(&even, &printed)),
            (100, 100)
        );
        // Ties aside, the printed equation selects N per cent of each.
        let decline: Vec<u64> = (0..100).map(|chunk| 1000 - chunk).collect();
        assert_eq!(
            (count(&decline, &prose), count(&decline, &printed)),
            (100, 20)
        );
    }

    #[test]
    fn by_the_papers_text_what_sampling_makes_by_chance_is_no_fall() {
        let prose = ChunkParameters {
            cut: CutReading::Prose,
            alpha: 0.1,
            top_percent: 20.0,
            ..ALL
        };
        let (few, many) = (hundred(6, 3), hundred(600, 300));
        assert_eq!(critical(&few, &prose).len(), 100);
        assert_eq!(critical(&many, &prose).len(), 15);
        let sampled = ChunkParameters {
            sample_period: 100,
            ..prose
        };
        assert_eq!(critical(&many, &sampled).len(), 100);
    }
}
