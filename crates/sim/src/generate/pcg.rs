//! Random numbers: PCG-XSH-RR 64/32 (O'Neill, "PCG: A Family of Simple Fast Space-Efficient
//! Statistically Good Algorithms for Random Number Generation", 2014).
//! Twenty lines of our own rather than a crate, because a trace is identified by its seed: the
//! numbers must not change with the version of a dependency.
//! not change with the version of a dependency.

const MULTIPLIER: u64 = 6_364_136_223_846_793_005;

/// The stream of the published example.
const STREAM: u64 = 54;

/// A generator of 32-bit random numbers.
#[derive(Clone, Debug)]
pub(super) struct Pcg32 {
    state: u64,
    increment: u64,
}

impl Pcg32 {
    pub(super) const fn new(seed: u64) -> Self {
        let mut random = Self {
            state: 0,
            increment: STREAM << 1 | 1,
        };
        random.step();
        random.state = random.state.wrapping_add(seed);
        random.step();
        random
    }

    const fn step(&mut self) {
        self.state = self
            .state
            .wrapping_mul(MULTIPLIER)
            .wrapping_add(self.increment);
    }

    const fn next_32(&mut self) -> u32 {
        let state = self.state;
        self.step();
        let shifted = ((state >> 18 ^ state) >> 27) as u32;
        shifted.rotate_right((state >> 59) as u32)
    }

    /// A number below `limit`, or 0 if that is 0. Multiplies 64 random bits by the limit and keeps
    /// the upper half, so the bias towards any number is at most limit / 2^64.
    pub(super) const fn below(&mut self, limit: u64) -> u64 {
        let bits = (self.next_32() as u64) << 32 | self.next_32() as u64;
        ((bits as u128 * limit as u128) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Pcg32;

    #[test]
    fn the_numbers_are_those_of_the_published_example() {
        let mut random = Pcg32::new(42);
        let numbers: Vec<u32> = (0..6).map(|_| random.next_32()).collect();
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
