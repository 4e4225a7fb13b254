//! [`in_order`] places whole objects of all programs in a given order while they fit, [`in_parts`] those of each program, by benefit,
//! in a part of the tier: the common code of the paper's policies. An object that does not fit is skipped and the next one tried (CoMerge,
//! section 4). An object that alone in the fast tier made its program slower than all slow is left out even if there is room: the paper
//! states that benefits are between 0 and 1.

use isotherm_model::units::Bytes;

use super::benefit::Benefit;
use super::colocation::{Colocation, Grant, MeasuredObject, MeasuredProgram};
use super::rivals;

/// An object of a program, and the positions of both in the colocation.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) program: &'a MeasuredProgram,
    pub(super) object: &'a MeasuredObject,
    pub(super) at: (usize, usize),
}

impl Candidate<'_> {
    pub(super) fn benefit(&self) -> Benefit {
        Benefit::of(self.program, self.object)
    }

    /// The grant of this many bytes of the object, without a rival.
    pub(super) fn granted(&self, fast: Bytes, reason: String) -> Grant {
        Grant {
            program: self.program.name().to_owned(),
            object: self.object.name.clone(),
            size: self.object.size,
            fast,
            reason,
            rival: None,
        }
    }
}

/// Every object of every program, by program and object name.
pub(super) fn candidates(colocation: &Colocation) -> Vec<Candidate<'_>> {
    let programs = colocation.programs().iter().enumerate();
    let objects = programs.flat_map(|(p, program)| {
        let objects = program.objects().iter().enumerate();
        objects.map(move |(o, object)| Candidate {
            program,
            object,
            at: (p, o),
        })
    });
    objects.collect()
}

/// The objects of each program, by benefit descending. Objects of the same benefit keep the order
/// of their names.
pub(super) fn by_program(colocation: &Colocation) -> Vec<Vec<Candidate<'_>>> {
    let mut lists = vec![Vec::new(); colocation.programs().len()];
    for candidate in candidates(colocation) {
        lists[candidate.at.0].push(candidate);
    }
    for list in &mut lists {
        list.sort_by_key(|candidate| std::cmp::Reverse(candidate.benefit()));
    }
    lists
}

/// The measure by which a policy orders objects, with its name.
pub(super) type Measure = (
    &'static str,
    fn(&MeasuredProgram, &MeasuredObject) -> Benefit,
);

/// The benefit, which ranks the objects of one program.
pub(super) const BENEFIT: Measure = ("benefit", Benefit::of);

/// Places objects in this order while they fit into the room, and records each with its reason.
fn fill(order: &[Candidate<'_>], (name, measure): Measure, room: Bytes, grants: &mut Vec<Grant>) {
    let mut left = room;
    for candidate in order {
        let size = candidate.object.size;
        let benefit = candidate.benefit();
        let measured = measure(candidate.program, candidate.object).value();
        let worth = format!("its {name} is {measured:.3}");
        let (fast, reason) = if benefit.is_harm() {
            let reason = "left out: its program was slower with it in the fast tier".to_owned();
            (Bytes::ZERO, reason)
        } else if size <= left {
            (size, format!("placed: {worth}, and it fits"))
        } else {
            let reason = format!("left out: {worth}, but it does not fit into the {left} left");
            (Bytes::ZERO, reason)
        };
        left = left.saturating_sub(fast);
        grants.push(candidate.granted(fast, reason));
    }
}

/// One order for all programs, by this measure.
pub(super) fn in_order(order: &[Candidate<'_>], measure: Measure, capacity: Bytes) -> Vec<Grant> {
    let mut grants = Vec::new();
    fill(order, measure, capacity, &mut grants);
    rivals::name(&mut grants, |_| false);
    grants
}

/// A part of the tier for each program, filled by benefit.
pub(super) fn in_parts(
    colocation: &Colocation,
    part: impl Fn(&MeasuredProgram) -> Bytes,
) -> Vec<Grant> {
    let mut grants = Vec::new();
    for (program, list) in colocation.programs().iter().zip(by_program(colocation)) {
        fill(&list, BENEFIT, part(program), &mut grants);
    }
    grants
}
