//! Divides each data object into chunks (ATMem, section 4.1): equal, but for a shorter last one, of as few grains as keep their number
//! within a bound; a grain is the page, or the larger piece, for which the profile has one count. [`Chunks`] has the missed reads of each
//! chunk of an object, the sum of its counts, and computes the priority of each chunk, its missed reads a byte.

use isotherm_model::units::Bytes;

use super::object::DataObject;

/// Bytes of a chunk: the smallest multiple of the grain that keeps the chunks within the bound.
pub(super) fn chunk_bytes(bytes: Bytes, grain: Bytes, most_chunks: u32) -> Bytes {
    let grains = bytes.0.div_ceil(grain.0);
    let grains_a_chunk = grains.div_ceil(u64::from(most_chunks)).max(1);
    Bytes(grains_a_chunk.saturating_mul(grain.0))
}

/// Appends the missed reads of each chunk of the object.
pub(super) fn add_chunks(object: &DataObject<'_>, chunk: Bytes, reads: &mut Vec<u64>) {
    // The chunk is a multiple of the grain; the quotient is at most the number of counts or 1.
    let counts_a_chunk = usize::try_from(chunk.0 / object.grain.0).unwrap_or(usize::MAX);
    if counts_a_chunk == 1 {
        reads.extend_from_slice(object.missed_reads);
        return;
    }
    reads.extend(object.missed_reads.chunks(counts_a_chunk).map(total));
}

/// The sum of some counts.
pub(super) fn total(counts: &[u64]) -> u64 {
    counts.iter().copied().fold(0, u64::saturating_add)
}

/// The chunks of one object: their missed reads and their size.
#[derive(Clone, Copy)]
pub(super) struct Chunks<'a> {
    pub(super) reads: &'a [u64],
    pub(super) chunk: Bytes,
    /// Bytes of the object.
    pub(super) bytes: Bytes,
}

impl Chunks<'_> {
    /// Bytes of the chunks from `first` up to, but not including, `end`.
    pub(super) fn bytes_between(&self, first: usize, end: usize) -> Bytes {
        let offset = |index: usize| self.chunk.0.saturating_mul(index as u64).min(self.bytes.0);
        Bytes(offset(end) - offset(first))
    }

    /// PR of each chunk (equation 1): missed reads per byte. A single rounded division keeps equal
    /// priorities equal.
    pub(super) fn priorities(&self) -> impl Iterator<Item = f64> {
        let last = self.reads.len().saturating_sub(1);
        let full = self.chunk.0 as f64;
        let short = self.bytes_between(last, last + 1).0 as f64;
        let size = move |index: usize| if index == last { short } else { full };
        let reads = self.reads.iter().enumerate();
        reads.map(move |(index, &reads)| reads as f64 / size(index))
    }
}

#[cfg(test)]
mod tests {
    use super::{Chunks, chunk_bytes};
    use isotherm_model::units::Bytes;

    #[test]
    fn chunks_are_equal_page_multiples_and_never_more_than_the_bound() {
        const PAGE: u64 = 4096;
        for (bytes, most, chunk) in [
            (0, 4, PAGE),
            (1, 4, PAGE),
            (4 * PAGE, 4, PAGE),
            (4 * PAGE + 1, 4, 2 * PAGE),
            (9 * PAGE, 4, 3 * PAGE),
            (9 * PAGE, 1, 9 * PAGE),
            (u64::MAX, u32::MAX, 1_048_577 * PAGE),
        ] {
            let got = chunk_bytes(Bytes(bytes), Bytes(PAGE), most);
            assert_eq!(got, Bytes(chunk), "{bytes} in {most}");
            assert!(bytes.div_ceil(got.0) <= u64::from(most));
        }
        let profile = Bytes(16 * PAGE);
        assert_eq!(chunk_bytes(Bytes(33 * PAGE), profile, 2), Bytes(32 * PAGE));
    }

    #[test]
    fn a_short_last_chunk_has_the_priority_of_its_own_bytes() {
        let chunks = Chunks {
            reads: &[8, 4],
            chunk: Bytes(8),
            bytes: Bytes(10),
        };
        assert_eq!(chunks.priorities().collect::<Vec<_>>(), [1.0, 2.0]);
        assert_eq!(chunks.bytes_between(0, 2), Bytes(10));
        assert_eq!(chunks.bytes_between(1, 2), Bytes(2));
    }
}
