//! [`Sample`] is the state of the sampling by page faults: the list of the pages that are trapped now, the time until which they are, and
//! the generator of the random numbers by which `resample.rs` chooses them.

/// Most pages trapped at a time. Beyond this the program pays more than the sample tells.
pub(super) const MOST_PAGES: usize = 1024;

pub(crate) struct Sample {
    pub(super) pages: [u32; MOST_PAGES],
    pub(super) count: usize,
    pub(super) until_ns: u64,
    random: u64,
}

impl Sample {
    /// An empty choice. A seed of 0 is replaced, because the generator would never leave it.
    pub(crate) const fn new(seed: u64) -> Self {
        Self {
            pages: [0; MOST_PAGES],
            count: 0,
            until_ns: 0,
            random: if seed == 0 {
                0x9e37_79b9_7f4a_7c15
            } else {
                seed
            },
        }
    }

    /// Forgets the choice without touching the pages.
    pub(crate) fn clear(&mut self) {
        self.count = 0;
        self.until_ns = 0;
    }

    /// Xorshift64 (Marsaglia 2003).
    fn next(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// A number below `bound`, which is small against 2^32, so that the bias is too.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        (((self.next() >> 32) * u64::from(bound)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::Sample;

    #[test]
    fn the_choice_is_uniform_and_repeats_with_its_seed() {
        let mut sample = Sample::new(42);
        let mut counts = [0_u32; 16];
        for _ in 0..16_000 {
            counts[sample.below(16) as usize] += 1;
        }
        assert!(
            counts.iter().all(|&count| (800..1200).contains(&count)),
            "seed 42: {counts:?}"
        );
        let (mut one, mut other) = (Sample::new(7), Sample::new(7));
        assert!((0..100).all(|_| one.below(1000) == other.below(1000)));
        assert_ne!(Sample::new(0).next(), 0);
    }
}
