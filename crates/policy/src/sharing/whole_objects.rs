//! [`in_order`] places whole objects of all programs in a given order while they fit, [`in_parts`] those of each program, by benefit,
//! in a part of the tier: the common code of the paper's policies. An object that does not fit is skipped and the next one tried (CoMerge,
//! section 4). An object that alone in the fast tier made its program slower than all slow is left out even if there is room: the paper
//! states that benefits are between 0 and 1.

use isotherm_model::units::Bytes;

use super::benefit::Benefit;
use super::colocation::{Colocation, Grant, MeasuredObject, MeasuredProgram, SharedPlan};
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

/// What a policy orders objects by, in words.
pub(super) type Worth = fn(&Candidate<'_>) -> String;

/// The benefit, which ranks the objects of one program.
pub(super) fn in_words_of_benefit(candidate: &Candidate<'_>) -> String {
    format!("its benefit is {:.3}", candidate.benefit().value())
}

/// The co-benefit, which ranks those of all programs.
pub(super) fn in_words_of_co_benefit(candidate: &Candidate<'_>) -> String {
    let co_benefit = Benefit::co_benefit(candidate.program, candidate.object);
    format!("its co-benefit is {:.3}", co_benefit.value())
}

/// The co-benefit by the paper's formula.
pub(super) fn in_words_of_printed_co_benefit(candidate: &Candidate<'_>) -> String {
    let co_benefit = Benefit::printed_co_benefit(candidate.program, candidate.object);
    format!("its printed co-benefit is {:.3}", co_benefit.value())
}

/// Places objects in this order while they fit into the room, and records each with its reason.
fn fill(order: &[Candidate<'_>], worth: Worth, room: Bytes, grants: &mut Vec<Grant>) {
    let mut left = room;
    for candidate in order {
        let size = candidate.object.size;
        let benefit = candidate.benefit();
        let worth = worth(candidate);
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
        grants.push(Grant {
            program: candidate.program.name().to_owned(),
            object: candidate.object.name.clone(),
            size,
            fast,
            reason,
            rival: None,
        });
    }
}

/// One order for all programs, by this worth.
pub(super) fn in_order(
    policy: &str,
    (order, worth): (&[Candidate<'_>], Worth),
    capacity: Bytes,
) -> SharedPlan {
    let mut grants = Vec::new();
    fill(order, worth, capacity, &mut grants);
    rivals::name(&mut grants, |_| false);
    SharedPlan {
        policy: policy.to_owned(),
        capacity,
        grants,
    }
}

/// A part of the tier for each program, filled by benefit.
pub(super) fn in_parts(
    policy: &str,
    colocation: &Colocation,
    capacity: Bytes,
    part: impl Fn(&MeasuredProgram) -> Bytes,
) -> SharedPlan {
    let mut grants = Vec::new();
    for (program, list) in colocation.programs().iter().zip(by_program(colocation)) {
        fill(&list, in_words_of_benefit, part(program), &mut grants);
    }
    SharedPlan {
        policy: policy.to_owned(),
        capacity,
        grants,
    }
}
