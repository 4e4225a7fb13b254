//! `Pcg32` gives the generated traces their random numbers, the same for a seed in every version: it wraps the generator of the crate
//! `rand_pcg` (PCG-XSH-RR 64/32), and makes numbers below a limit from its bits itself.
//!
//! A trace is identified by its seed. The generator is published with example numbers, which a test compares (O'Neill, "PCG: A Family of
//! Simple Fast Space-Efficient Statistically Good Algorithms for Random Number Generation", 2014). How many of its bits make a number below
//! a limit is decided here and not by `rand`, which has changed that between versions.

use rand_pcg::rand_core::Rng;

/// The stream of the published example.
const STREAM: u64 = 54;

/// A generator of 32-bit random numbers.
#[derive(Clone, Debug)]
pub(super) struct Pcg32(rand_pcg::Pcg32);

impl Pcg32 {
    pub(super) fn new(seed: u64) -> Self {
        Self(rand_pcg::Pcg32::new(seed, STREAM))
    }

    /// A number below `limit`, or 0 if that is 0. Multiplies 64 random bits by the limit and keeps
    /// the upper half, so the bias towards any number is at most limit / 2^64.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        let bits = u64::from(self.0.next_u32()) << 32 | u64::from(self.0.next_u32());
        ((u128::from(bits) * u128::from(limit)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::{Pcg32, Rng};

    #[test]
    fn the_numbers_are_those_of_the_published_example() {
        let mut random = Pcg32::new(42);
        let numbers: Vec<u32> = (0..6).map(|_| random.0.next_u32()).collect();
        let published = [
            0xa15c_02b7,
            0x7b47_f409,
            0xba1d_3330,
            0x83d2_f293,
            0xbfa4_784b,
            0xcbed_606e,
        ];
        assert_eq!(numbers, published);
    }

    #[test]
    fn numbers_stay_below_their_limit_and_reach_all_of_it() {
        let mut random = Pcg32::new(7);
        let mut seen = [0; 5];
        for _ in 0..1_000 {
            seen[random.below(5) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| count > 100), "{seen:?}");
        assert_eq!(random.below(0), 0);
    }
}
