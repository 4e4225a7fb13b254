//! `Reserve` is the fast memory that [`LeastSlowdown`](super::LeastSlowdown) sets aside for each program before it shares the rest: for its
//! floor, the percentage of its possible gain that it must get; and, by `made_fair`, enough that its slowdown is at most a factor of that
//! under equal split, where each program gets an equal part of the tier. If that does not fit beside the floors, only they are kept.
//!
//! ```text
//!     slow-down       all slow |....................... nothing fast
//!                              |
//!              1.25 times that |.......................  the bound: the fewest chunks that reach it are reserved
//!           under equal split  |....................... the objects that fit into an equal part
//! ```

use std::num::NonZeroU32;

use isotherm_model::units::Bytes;

use super::colocation::Colocation;
use super::floor::fewest;
use super::paper_policy::PaperPolicy;
use super::policy::SharingPolicy;
use super::slowdown::{Allotment, allotment, avoidable, gain};

/// The least gain of each program, and fast bytes with which each has that gain.
pub(super) struct Reserve {
    /// Gains from 0 to 1, by program.
    pub(super) targets: Vec<f64>,
    /// Fast bytes.
    pub(super) fast: Allotment,
}

impl Reserve {
    /// Adds the bytes with which no program is slowed by more than this percentage of its slowdown under equal split: the fewest chunks, or
    /// the objects of equal split itself if these are fewer bytes, so that the bytes of all programs fit. If they do not fit beside the
    /// floors, which come first, nothing is added.
    pub(super) fn made_fair(
        self,
        percent: NonZeroU32,
        colocation: &Colocation,
        capacity: Bytes,
        chunk: u64,
    ) -> Self {
        let Ok(equal) = PaperPolicy::EqualSplit.share(colocation, capacity) else {
            return self;
        };
        let equal = allotment(colocation, &equal);
        let factor = f64::from(percent.get().max(100)) / 100.0;
        let (mut targets, mut fast) = (self.targets.clone(), self.fast.clone());
        for (at, program) in colocation.programs().iter().enumerate() {
            let of_equal = program.slowdown() - avoidable(program) * gain(program, &equal[at]);
            let target = (program.slowdown() - factor * of_equal) / avoidable(program);
            // For a program without a gain from fast memory the quotient is not a number, and no comparison holds.
            if target > targets[at] {
                targets[at] = target;
                let chunks = fewest(program, target, chunk);
                let bytes = |fast: &[Bytes]| fast.iter().copied().sum::<Bytes>();
                fast[at] = match bytes(&chunks) <= bytes(&equal[at]) {
                    true => chunks,
                    false => equal[at].clone(),
                };
            }
        }
        let needed: Bytes = fast.iter().flatten().copied().sum();
        match needed <= capacity {
            true => Self { targets, fast },
            false => self,
        }
    }
}
