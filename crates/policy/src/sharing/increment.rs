//! `Increment` is a stretch of a data object in which each byte of fast memory saves its program the same slowdown, the worth of the
//! stretch. The stretches of all programs, by worth descending, are the steps in which [`LeastSlowdown`] gives out fast memory.
//!
//! Within a program the objects go by benefit per byte. Once their benefits sum to 1 the program is
//! at its best, and every further byte is worth nothing. So an object is divided into at most three
//! stretches of equal worth:
//!
//! ```text
//!     |  whole chunks before  | chunk across |      rest      |
//!       worth = benefit/size     part of it      worth = 0
//!                                    ^ here the benefits reach 1
//! ```
//!
//! The gain of a program never rises faster with more bytes, so taking the steps of all programs by
//! worth is optimal up to the size of a chunk.
//!
//! [`LeastSlowdown`]: super::LeastSlowdown

use isotherm_model::units::Bytes;

use super::colocation::{Colocation, MeasuredProgram};
use super::slowdown::{avoidable, useful_benefit};

/// A stretch of an object, each byte of which is worth the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Increment {
    pub(super) program: usize,
    pub(super) object: usize,
    /// Bytes of the object up to the end of the stretch.
    pub(super) upto: Bytes,
    /// Summed slowdown that a byte saves.
    pub(super) worth: f64,
    /// The slowdown that a byte would save if the program were not yet at its best.
    pub(super) plain: f64,
}

/// The objects of a program with a positive benefit, by benefit per byte descending, then by name.
pub(super) fn by_density(program: &MeasuredProgram) -> Vec<usize> {
    let density = |index: usize| {
        let object = &program.objects()[index];
        useful_benefit(program, object) / object.size.0 as f64
    };
    let mut order: Vec<usize> = (0..program.objects().len())
        .filter(|&index| density(index) > 0.0)
        .collect();
    // A stable sort: equal densities keep the order of the names.
    order.sort_by(|&a, &b| density(b).total_cmp(&density(a)));
    order
}

/// All stretches of all programs, the most valuable first; ties by program, object and position.
pub(super) fn increments(colocation: &Colocation, chunk: u64) -> Vec<Increment> {
    let mut increments = Vec::new();
    for (index, program) in colocation.programs().iter().enumerate() {
        of_program(index, program, chunk, &mut increments);
    }
    increments.sort_by(|a, b| {
        let key = |i: &Increment| (i.program, i.object, i.upto);
        let by_worth = b.worth.total_cmp(&a.worth);
        let by_plain = b.plain.total_cmp(&a.plain);
        by_worth.then(by_plain).then(key(a).cmp(&key(b)))
    });
    increments
}

fn of_program(index: usize, program: &MeasuredProgram, chunk: u64, into: &mut Vec<Increment>) {
    let avoidable = avoidable(program);
    let mut missing = 1.0_f64;
    for object in by_density(program) {
        let size = program.objects()[object].size.0;
        let benefit = useful_benefit(program, &program.objects()[object]);
        let plain = avoidable * benefit / size as f64;
        let mut push = |upto: u64, worth: f64| {
            into.push(Increment {
                program: index,
                object,
                upto: Bytes(upto),
                worth,
                plain,
            });
        };
        if benefit <= missing {
            push(size, plain);
            missing -= benefit;
            continue;
        }
        // Below the size, so that the chunk across has at least one byte.
        let reach = ((size as f64 * (missing / benefit)) as u64).min(size - 1);
        let before = reach / chunk * chunk;
        let across = before.saturating_add(chunk).min(size);
        if before > 0 {
            push(before, plain);
        }
        let rest = (missing - benefit * before as f64 / size as f64).max(0.0);
        push(across, avoidable * rest / (across - before) as f64);
        if across < size {
            push(size, 0.0);
        }
        missing = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::increments;
    use crate::sharing::colocation::{Colocation, MeasuredObject, MeasuredProgram};
    use isotherm_model::units::{Bytes, Nanos};

    #[test]
    fn an_object_is_cut_where_its_program_is_at_its_best() {
        // Benefits 0.5 and 1, of 100 bytes each: the dense one alone brings the program to its
        // best, so the other is worth nothing. With 0.75 and 0.5 the second is cut at half its
        // bytes.
        let stretches = |alone: [u64; 2]| {
            let object = |(name, alone): (&str, u64)| MeasuredObject {
                name: name.to_owned(),
                size: Bytes(100),
                alone: Nanos(alone),
            };
            let objects = [("a", alone[0]), ("b", alone[1])].map(object).to_vec();
            let program = MeasuredProgram::new("p", Nanos(20), Nanos(100), objects).unwrap();
            let colocation = Colocation::new(vec![program]).unwrap();
            let list = increments(&colocation, 40);
            let rounded = |worth: f64| (worth * 1e6).round() as u64;
            list.iter()
                .map(|i| (i.object, i.upto.0, rounded(i.worth)))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            stretches([60, 20]),
            [(1, 100, 40_000), (0, 40, 0), (0, 100, 0)]
        );
        // A byte of a saves 4 * 0.75 / 100, of b 4 * 0.5 / 100; its chunk from 40 to 80 holds the
        // missing 0.25 - 0.2, spread over 40 bytes.
        assert_eq!(
            stretches([40, 60]),
            [
                (0, 100, 30_000),
                (1, 40, 20_000),
                (1, 80, 5_000),
                (1, 100, 0)
            ]
        );
    }
}
