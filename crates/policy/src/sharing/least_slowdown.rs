//! [`LeastSlowdown`] is our own sharing policy: fast memory goes, chunk by chunk, to the parts of objects that save most of the summed
//! slowdown in the model of [`super::slowdown`], unless a plan of CoMerge's policies is better in it. Before that each program gets what
//! keeps its floor, a percentage of its possible gain, and, if there is room, what keeps it from being slowed much more than if all had
//! equal parts of the tier (equal split). [`least_possible`] is the bound of that sum.
//!
//! The paper's policies place whole objects, which leaves holes (0.45 to 0.96 of the tier used on
//! its own example), rank by benefit and not by benefit per byte, and may leave a program without
//! fast memory. Here:
//!
//! 1. Each program with a floor gets the fewest chunks that keep it, or the plan is refused.
//! 2. Each program that would be slowed by more over equal split than the fairness allows gets the bytes that it needs
//!    ([`super::fairness`]).
//! 3. The rest goes to the bytes that save the most of the summed slowdown, chunk by chunk.
//! 4. If a plan of the paper's policies is better in the same model and keeps the floors and the
//!    fairness, it is used instead: with chunks as large as objects the third step alone could be
//!    worse.
//!
//! ```text
//!     STREAM |cccccccccc|aaaaaaaa..|..........|      fast: c, a part of a
//!     CLOMP  |zzzzzzzzzzzzzzzzzzzz|....|             fast: zones
//!     XSBench|n|..................|                  fast: nuclide
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroU32, NonZeroU64};

use isotherm_model::units::Bytes;

use super::colocation::{Colocation, Grant, MeasuredObject, MeasuredProgram, SharedPlan};
use super::fairness::Reserve;
use super::floor::{self, FloorError};
use super::increment::{Increment, increments};
use super::paper_policy::PaperPolicy;
use super::policy::SharingPolicy;
use super::rivals;
use super::slowdown::{Allotment, allotment, avoidable, gain, summed, useful_benefit};
use super::whole_objects::{Candidate, candidates};

/// Default bytes of a chunk: a huge page, which the kernel moves as a whole.
pub const DEFAULT_CHUNK: NonZeroU64 = NonZeroU64::new(2 << 20).unwrap();

/// Default fairness, in percent: a slowdown of at most 1.25 times that under equal split.
pub const DEFAULT_FAIRNESS: NonZeroU32 = NonZeroU32::new(125).unwrap();

/// Shares objects in chunks for the least summed slowdown, with an optional floor for each program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeastSlowdown {
    /// Bytes of a chunk. An object is fast in whole chunks from its first byte on; its last chunk
    /// may be shorter.
    pub chunk: NonZeroU64,
    /// The least that a program must get, by its name: 0 to 100 percent of the most that fast
    /// memory can gain it. A program without a gain from fast memory keeps every floor.
    pub floors: BTreeMap<String, u32>,
    /// The most that a program may be slowed, in percent of its slowdown under equal split, 100 or more; `None` for no limit. If the floors
    /// leave too little room for it, only they are kept.
    pub fairness: Option<NonZeroU32>,
}

impl Default for LeastSlowdown {
    fn default() -> Self {
        Self {
            chunk: DEFAULT_CHUNK,
            floors: BTreeMap::new(),
            fairness: Some(DEFAULT_FAIRNESS),
        }
    }
}

impl SharingPolicy for LeastSlowdown {
    fn name(&self) -> &'static str {
        "least-slowdown"
    }

    fn share(&self, colocation: &Colocation, capacity: Bytes) -> Result<SharedPlan, FloorError> {
        let chunk = self.chunk.get();
        let targets = floor::targets(colocation, &self.floors)?;
        let fast = floor::reserve(colocation, &targets, capacity, chunk)?;
        let floors = Reserve { targets, fast };
        let Reserve { targets, mut fast } = match self.fairness {
            Some(percent) => floors.made_fair(percent, colocation, capacity, chunk),
            None => floors,
        };
        let steps = increments(colocation, chunk);
        fill(&mut fast, &steps, capacity, chunk);
        let mut without_promises = nothing(colocation);
        fill(&mut without_promises, &steps, capacity, chunk);
        let is_bound = fast != without_promises;
        for policy in PaperPolicy::ALL {
            let other = allotment(colocation, &policy.share(colocation, capacity)?);
            let is_better = summed(colocation, &other) < summed(colocation, &fast);
            if is_better && floor::are_kept(colocation, &targets, &other) {
                fast = other;
            }
        }
        Ok(SharedPlan {
            policy: self.name().to_owned(),
            capacity,
            grants: grants(colocation, &fast, is_bound),
        })
    }
}

/// No byte of any object.
fn nothing(colocation: &Colocation) -> Allotment {
    let programs = colocation.programs().iter();
    let of_program = |program: &MeasuredProgram| vec![Bytes::ZERO; program.objects().len()];
    programs.map(of_program).collect()
}

/// Takes the steps in order while there is room; a step that does not fit is taken in whole chunks. Returns the summed slowdown that the
/// taken bytes save.
fn fill(fast: &mut Allotment, steps: &[Increment], capacity: Bytes, chunk: u64) -> f64 {
    let used: Bytes = fast.iter().flatten().copied().sum();
    let mut room = capacity.saturating_sub(used);
    let mut saved = 0.0;
    for step in steps {
        let taken = &mut fast[step.program][step.object];
        let wanted = step.upto.saturating_sub(*taken);
        let bytes = if wanted <= room {
            wanted
        } else {
            Bytes(room.0 / chunk * chunk)
        };
        saved += step.worth * bytes.0 as f64;
        *taken += bytes;
        room = room.saturating_sub(bytes);
    }
    saved
}

/// Every object with its fast bytes, the highest worth per byte first. `is_bound`: floors or the fairness changed which bytes are fast.
fn grants(colocation: &Colocation, fast: &Allotment, is_bound: bool) -> Vec<Grant> {
    let worth = |program: &MeasuredProgram, object: &MeasuredObject| {
        avoidable(program) * useful_benefit(program, object)
    };
    let mut order = candidates(colocation);
    order.sort_by(|a, b| {
        let density = |c: &Candidate<'_>| worth(c.program, c.object) / c.object.size.0 as f64;
        density(b).total_cmp(&density(a))
    });
    let grant = |candidate: &Candidate<'_>| {
        let (program, object) = (candidate.program, candidate.object);
        let of_program = &fast[candidate.at.0];
        let fast = of_program[candidate.at.1];
        let end = match (gain(program, of_program) >= 1.0, is_bound) {
            (true, _) => "its program is as fast as it can be with the placed objects",
            (false, false) => "the room went to bytes that save more",
            (false, true) => {
                "the room went to bytes that save more, or that a floor or the fairness keeps"
            }
        };
        let reason = reason(object, fast, worth(program, object), end);
        candidate.granted(fast, reason)
    };
    let mut grants: Vec<Grant> = order.iter().map(grant).collect();
    let programs = colocation.programs().iter().zip(fast);
    let enough = programs.filter(|(program, fast)| gain(program, fast) >= 1.0);
    let enough: BTreeSet<&str> = enough.map(|(program, _)| program.name()).collect();
    rivals::name(&mut grants, |program| enough.contains(program));
    grants
}

/// The reason for these bytes; `end` is the reason why there are no more.
fn reason(object: &MeasuredObject, fast: Bytes, worth: f64, end: &str) -> String {
    if fast == Bytes::ZERO && worth <= 0.0 {
        return "left out: alone in the fast tier it did not make its program faster".to_owned();
    }
    let worth = format!("all of it saves up to {worth:.3} of the summed slowdown");
    if fast == object.size {
        return format!("placed whole: {worth}");
    }
    if fast == Bytes::ZERO {
        format!("left out: {worth}, but {end}")
    } else {
        format!("placed in part, {fast}: {worth}, but {end}")
    }
}

/// The least summed slowdown that any plan without floors and fairness can reach in the model: the bound for every result. Bytes are taken
/// by worth, without rounding to chunks.
#[must_use]
pub fn least_possible(colocation: &Colocation, capacity: Bytes) -> f64 {
    let steps = increments(colocation, 1);
    let saved = fill(&mut nothing(colocation), &steps, capacity, 1);
    let programs = colocation.programs().iter();
    programs.map(MeasuredProgram::slowdown).sum::<f64>() - saved
}
