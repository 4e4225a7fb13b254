//! Reserves the fast memory of the floors of [`LeastSlowdown`](super::LeastSlowdown): the least that a program must get, in percent of the
//! most that fast memory can gain it. A [`FloorError`] says why floors cannot be kept.
//!
//! A floor is a percentage of the gain and not a number of bytes, because equal bytes save unequal
//! time: 30 MB of XSBench gain 0.91 of its gap, 250 MB of CLOMP 0.02 (CoMerge, table 3).

use std::collections::BTreeMap;

use isotherm_model::units::Bytes;

use super::colocation::{Colocation, MeasuredProgram};
use super::increment::by_density;
use super::slowdown::{Allotment, gain, useful_benefit};

/// Tolerance of a gain below its floor: the rounding of sums of fractions.
const ROUNDING: f64 = 1e-9;

/// The reason why floors cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FloorError {
    /// There is no program of this name.
    #[error("the floor for \"{0}\" is for no program that is here; check the name")]
    UnknownProgram(String),
    /// A floor is more than 100 percent.
    #[error("the floor of {percent} % for \"{program}\" is more than all; give 0 to 100")]
    OutOfRange {
        /// The program.
        program: String,
        /// Its floor in percent.
        percent: u32,
    },
    /// Even with all its objects in the fast tier the program does not reach its floor in the
    /// model, because the benefits of the objects sum to less.
    #[error(
        "the floor of {percent} % for \"{program}\" cannot be kept: its objects together bring {reachable} %; lower the floor, or \
         measure the objects that are missing"
    )]
    Unreachable {
        /// The program.
        program: String,
        /// Its floor in percent.
        percent: u32,
        /// The gain with all objects fast, in percent, rounded down.
        reachable: u32,
    },
    /// The floors together need more bytes than the tier has.
    #[error(
        "the floors need {total} and the fast tier has {capacity}:{list} so lower one of them or add fast memory",
        total = .needed.iter().map(|(_, bytes)| *bytes).sum::<Bytes>(),
        list = .needed.iter().map(|(name, bytes)| format!(" \"{name}\" needs {bytes},")).collect::<String>()
    )]
    NoRoom {
        /// Bytes of the tier.
        capacity: Bytes,
        /// The programs that have a floor, and the bytes that each needs.
        needed: Vec<(String, Bytes)>,
    },
}

/// The floor of each program as a gain from 0 to 1; 0 where it has none.
pub(super) fn targets(
    colocation: &Colocation,
    floors: &BTreeMap<String, u32>,
) -> Result<Vec<f64>, FloorError> {
    let programs = colocation.programs();
    for (name, &percent) in floors {
        if !programs.iter().any(|program| program.name() == name) {
            return Err(FloorError::UnknownProgram(name.clone()));
        }
        if percent > 100 {
            return Err(FloorError::OutOfRange {
                program: name.clone(),
                percent,
            });
        }
    }
    let target = |program: &MeasuredProgram| {
        let percent = floors.get(program.name()).copied().unwrap_or(0);
        f64::from(percent) / 100.0
    };
    Ok(programs.iter().map(target).collect())
}

/// True where each program's gain reaches its floor.
pub(super) fn are_kept(colocation: &Colocation, targets: &[f64], fast: &Allotment) -> bool {
    let mut programs = colocation.programs().iter().zip(fast).zip(targets);
    programs.all(|((program, fast), target)| gain(program, fast) >= target - ROUNDING)
}

/// The fewest chunks that keep each floor.
pub(super) fn reserve(
    colocation: &Colocation,
    targets: &[f64],
    capacity: Bytes,
    chunk: u64,
) -> Result<Allotment, FloorError> {
    let mut reserved = Allotment::new();
    let mut needed = Vec::new();
    for (program, &target) in colocation.programs().iter().zip(targets) {
        let fast = fewest(program, target, chunk);
        if gain(program, &fast) < target - ROUNDING {
            return Err(FloorError::Unreachable {
                program: program.name().to_owned(),
                percent: (target * 100.0).round() as u32,
                reachable: (gain(program, &fast) * 100.0) as u32,
            });
        }
        let bytes: Bytes = fast.iter().copied().sum();
        if bytes > Bytes::ZERO {
            needed.push((program.name().to_owned(), bytes));
        }
        reserved.push(fast);
    }
    // The sizes of all objects together fit 64 bits, so these bytes do too.
    let total: Bytes = needed.iter().map(|(_, bytes)| *bytes).sum();
    if total > capacity {
        return Err(FloorError::NoRoom { capacity, needed });
    }
    Ok(reserved)
}

/// The densest bytes with this gain, the last object in whole chunks, rounded up; all bytes with a
/// gain if even they do not reach it.
pub(super) fn fewest(program: &MeasuredProgram, target: f64, chunk: u64) -> Vec<Bytes> {
    let mut fast = vec![Bytes::ZERO; program.objects().len()];
    let mut missing = target - gain(program, &fast);
    for index in by_density(program) {
        if missing <= 0.0 {
            break;
        }
        let object = &program.objects()[index];
        let benefit = useful_benefit(program, object);
        let share = (missing / benefit).min(1.0);
        let bytes = (object.size.0 as f64 * share).ceil() as u64;
        let whole_chunks = bytes.div_ceil(chunk).saturating_mul(chunk);
        fast[index] = Bytes(whole_chunks).min(object.size);
        missing -= benefit * (fast[index].0 as f64 / object.size.0 as f64);
    }
    fast
}
