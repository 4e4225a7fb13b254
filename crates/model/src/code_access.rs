//! [`CodeAccess`] is a row of a profile: the sampled accesses of one instruction to the data of one site; [`SampleWalk`] finds their
//! [`CodePattern`]: stream, stride or random. [`SampledInstruction`] is an instruction as the sources report it.
//!
//! ```text
//! address   ^            . '          .     '         '   .          '
//!           |        . '            '   .                 .      '
//!           |    . '               .        '       .          .
//!           +------------->       ---------------->         ------------>
//!            stream: the samples   random                    random, in few steps
//!            of a thread go on
//! ```
//!
//! The *pattern* of an instruction follows from its successive samples in one thread: between two of them it made thousands of accesses, so
//! only their direction and the greatest common divisor of their distances are known. Of three random addresses the last continues the
//! direction of the first two in one case of three.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::site::{Frame, SiteId};
use crate::units::{Accesses, Bytes};

/// Number of a sampled instruction within a run, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstructionId(pub NonZeroU32);

variant_words! {
    /// The way in which an instruction accesses its operand in memory.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum AccessKind {
        /// Reads its operand.
        Load = "load",
        /// Writes its operand.
        Store = "store",
        /// Reads and writes its operand.
        Both = "load and store",
    }
}

/// An instruction that was sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledInstruction {
    /// Its number in the run.
    pub id: InstructionId,
    /// Path of its module; empty for code without a file, which counts as one instruction at 0.
    pub module: Arc<str>,
    /// GNU build-id of the module in hexadecimal, where it has one.
    pub build_id: Option<Arc<str>>,
    /// Its own address as an ELF virtual address of the module.
    pub offset: u64,
    /// The way in which it accesses its operand; `None` where the decoder does not know.
    pub kind: Option<AccessKind>,
}

/// Fewest pairs of successive samples from which a pattern is concluded.
const PAIRS_LEAST: u64 = 8;

/// The least share of pairs that continue the direction of the pair before, for a stream: between the share of random samples, a third, and
/// that of a walk, all but two for each time that it begins anew.
const CONTINUED: f64 = 0.6;

/// Distance from which each access of a walk goes to another cache line, and to another pair of lines that are fetched together.
const STRIDE_LEAST: Bytes = Bytes(128);

/// How the samples of an instruction follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodePattern {
    /// Samples go on in one direction, and accesses are close to each other.
    Stream,
    /// Samples go on in one direction, in steps of a multiple of this many bytes.
    Stride(Bytes),
    /// Samples go to and fro; or the data is so small that they pass through it several times between two samples.
    Random,
}

impl CodePattern {
    /// The pattern without its distance.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Stride(_) => "stride",
            Self::Random => "random",
        }
    }
}

impl fmt::Display for CodePattern {
    /// `stream`, `stride of 4 KiB`, `random`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stride(bytes) => write!(f, "stride of {bytes}"),
            _ => f.write_str(self.word()),
        }
    }
}

/// Sums over the pairs of successive samples of an instruction in one thread, for all threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleWalk {
    /// Pairs of successive samples at different addresses.
    pub pairs: u64,
    /// Pairs with the direction of the pair before.
    pub continued: u64,
    /// Greatest common divisor of their distances; zero without a pair.
    pub divisor: Bytes,
}

impl SampleWalk {
    /// Adds a pair of successive samples, `distance` bytes apart.
    pub fn add(&mut self, distance: u64, continues: bool) {
        if distance > 0 {
            self.pairs = self.pairs.saturating_add(1);
            self.continued = self.continued.saturating_add(u64::from(continues));
            self.divisor = Bytes(greatest_common_divisor(self.divisor.0, distance));
        }
    }

    /// Adds the pairs of another run.
    pub fn merge(&mut self, other: &Self) {
        self.pairs = self.pairs.saturating_add(other.pairs);
        self.continued = self.continued.saturating_add(other.continued);
        self.divisor = Bytes(greatest_common_divisor(self.divisor.0, other.divisor.0));
    }

    /// The pattern; `None` for too few samples.
    #[must_use]
    pub fn pattern(&self) -> Option<CodePattern> {
        if self.pairs < PAIRS_LEAST {
            return None;
        }
        let continued = self.continued as f64 / (self.pairs - 1) as f64;
        Some(match continued >= CONTINUED {
            false => CodePattern::Random,
            true if self.divisor >= STRIDE_LEAST => CodePattern::Stride(self.divisor),
            true => CodePattern::Stream,
        })
    }
}

/// Euclid's algorithm; for 0 and a number the result is the number.
const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The sampled accesses of one instruction to the data of one site, over a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeAccess {
    /// Site that allocated the data.
    pub site: SiteId,
    /// The instruction: [`Frame::offset`] is its own address. Its function is the innermost one of the program's own source.
    pub code: Arc<Frame>,
    /// The way in which it accesses the data, where that is known.
    pub kind: Option<AccessKind>,
    /// Accesses, weighted by the source as in [`Heat`](crate::profile::Heat).
    pub accesses: Accesses,
    /// Accesses that follow a stream.
    pub streamed: Accesses,
    /// Accesses beside `accesses` that the caches served.
    pub served: Accesses,
    /// Number of threads that were sampled in it, [`CODE_THREADS_AT_MOST`] at most.
    pub threads: u32,
    /// How its samples follow each other.
    pub walk: SampleWalk,
}

/// Most threads that are counted at one instruction.
pub const CODE_THREADS_AT_MOST: usize = 16;

/// Name of the counter of accesses whose instruction is in no row of a profile, because the profile has too many rows.
pub const CODE_ACCESSES_FOLDED: &str = "code_accesses_folded";

/// Identifies a row: site, module, and address in it.
pub type CodeKey<'a> = (SiteId, &'a str, u64);

impl CodeAccess {
    /// The key of the row.
    #[must_use]
    pub fn key(&self) -> CodeKey<'_> {
        (self.site, &self.code.module, self.code.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::{CodePattern, SampleWalk};
    use crate::units::Bytes;

    /// The walk of successive samples.
    fn walk(addresses: &[u64]) -> SampleWalk {
        let mut walk = SampleWalk::default();
        let mut direction = None;
        for pair in addresses.windows(2) {
            let up = pair[1] > pair[0];
            walk.add(pair[1].abs_diff(pair[0]), direction == Some(up));
            direction = Some(up);
        }
        walk
    }

    #[test]
    fn a_walk_through_memory_is_a_stream_or_has_a_stride() {
        let steps = |bytes: u64| (1..30).map(move |step| 4096 * 4096 + step * step * bytes);
        let pattern = |bytes| walk(&steps(bytes).collect::<Vec<_>>()).pattern();
        assert_eq!(pattern(8), Some(CodePattern::Stream));
        assert_eq!(pattern(4096), Some(CodePattern::Stride(Bytes(4096))));
        let down: Vec<u64> = steps(8).rev().collect();
        assert_eq!(walk(&down).pattern(), Some(CodePattern::Stream));
        assert_eq!(
            CodePattern::Stride(Bytes(4096)).to_string(),
            "stride of 4 KiB"
        );
    }

    #[test]
    fn a_walk_that_begins_anew_every_ten_samples_is_a_stream_still() {
        let addresses: Vec<u64> = (0..60).map(|step| (step % 10) * 1_000_008 + step).collect();
        assert_eq!(walk(&addresses).pattern(), Some(CodePattern::Stream));
    }

    #[test]
    fn random_samples_are_random_and_few_say_nothing() {
        let mut state = 1_u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 40) * 8
        };
        let addresses: Vec<u64> = (0..200).map(|_| random()).collect();
        assert_eq!(walk(&addresses).pattern(), Some(CodePattern::Random));
        assert_eq!(walk(&addresses[..8]).pattern(), None);
        assert_eq!(
            walk(&[64; 100]).pattern(),
            None,
            "one address again and again"
        );
    }

    #[test]
    fn walks_of_two_runs_are_added() {
        let mut one = walk(&[0, 24, 48]);
        one.merge(&walk(&[0, 36]));
        assert_eq!((one.pairs, one.continued, one.divisor), (3, 1, Bytes(12)));
        one.merge(&SampleWalk::default());
        assert_eq!(one.divisor, Bytes(12));
    }
}
