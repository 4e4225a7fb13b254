//! Computes runs of neighbouring pages of the pool, which the service thread handles by one system call: [`run_length`] finds the
//! consecutive pages at the start of a sorted list, [`populate_length`] the number of pages to make at a first touch.

/// Pages of 4 KiB in a chunk of the pool. No run crosses a chunk, because two chunks may be in
/// different mappings of the kernel (`UFFDIO_MOVE` refuses a range that spans two).
pub(crate) const CHUNK_PAGES: u32 = (isotherm_abi::CHUNK_BYTES / 4096) as u32;

/// Length of the run of consecutive pages at the start of `sorted`, at most `limit`, within one chunk. 0 only
/// for an empty slice.
pub(crate) fn run_length(sorted: &[u32], limit: usize) -> usize {
    let Some(&first) = sorted.first() else {
        return 0;
    };
    let in_chunk = (CHUNK_PAGES - first % CHUNK_PAGES) as usize;
    sorted
        .iter()
        .take(limit.min(in_chunk))
        .enumerate()
        .take_while(|&(distance, &page)| page == first + distance as u32)
        .count()
}

/// Number of pages to make at a first touch that has `before` touched pages right before it and `free`
/// untouched ones from it on: as many as `before`, so that a run doubles while a program walks on, and a
/// program with random accesses pays for the page that it touches and no other.
pub(crate) fn populate_length(before: usize, free: usize, limit: usize) -> usize {
    before.clamp(1, limit).min(free.max(1))
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_PAGES, populate_length, run_length};

    #[test]
    fn a_run_ends_at_a_gap_at_the_limit_and_at_the_end_of_the_chunk() {
        assert_eq!(run_length(&[], 8), 0);
        assert_eq!(run_length(&[5], 8), 1);
        assert_eq!(run_length(&[5, 6, 7, 9], 8), 3);
        assert_eq!(run_length(&[5, 6, 7, 8], 2), 2);
        assert_eq!(run_length(&[5, 5, 6], 8), 1, "a page may be listed twice");
        let last = CHUNK_PAGES - 1;
        assert_eq!(run_length(&[last, last + 1], 8), 1);
    }

    #[test]
    fn a_walk_doubles_its_runs_and_a_hop_makes_one_page() {
        let (mut touched, mut calls) = (0, 0);
        while touched < 64 {
            touched += populate_length(touched, 1000, 32);
            calls += 1;
        }
        assert_eq!(calls, 7, "1, 1, 2, 4, 8, 16, 32");
        assert_eq!(populate_length(0, 1000, 32), 1);
        assert_eq!(populate_length(100, 3, 32), 3);
        assert_eq!(populate_length(100, 0, 32), 1);
    }
}
