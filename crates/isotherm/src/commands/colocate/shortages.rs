//! Words two warnings of `isotherm colocate`: fewer processors than programs, and a fast tier that holds no object that would gain by it.

use isotherm_model::units::Bytes;
use isotherm_model::words::counted;
use isotherm_policy::sharing::{Benefit, Colocation, MeasuredObject, MeasuredProgram};

use crate::sharing::SharedObjects;

/// The warning about programs that have to take turns on the processors.
pub(super) fn of_processors(programs: usize, processors: usize) -> Option<String> {
    (programs > processors).then(|| {
        format!(
            "{} on {}: run together they wait for processors, too, which their expected slow-downs leave out",
            counted(programs, "program"),
            counted(processors, "processor")
        )
    })
}

/// The warning about a fast tier that is smaller than every object that would gain by it. `has_chunks`: the tiers place parts of sites.
pub(super) fn of_room(
    colocation: &Colocation,
    objects: SharedObjects,
    has_chunks: bool,
    capacity: Bytes,
) -> Option<String> {
    let useful = |program: &MeasuredProgram, object: &MeasuredObject| {
        Benefit::of(program, object).value() > 0.0
    };
    let of_program = |program: &MeasuredProgram| {
        let objects = program.objects().iter();
        let sizes = objects.filter(|object| useful(program, object));
        let smallest = sizes.map(|object| object.size).min();
        smallest.map(|size| (size, program.name().to_owned()))
    };
    let programs = colocation.programs().iter();
    let (smallest, program) = programs.filter_map(of_program).min()?;
    let (object, remedy) = match objects {
        SharedObjects::Sites if has_chunks => {
            ("whole site", ", or share parts of sites by --share chunks")
        }
        SharedObjects::Sites => ("whole site", ""),
        SharedObjects::Chunks => ("chunk", ", or a smaller --chunk"),
    };
    (capacity < smallest).then(|| {
        format!(
            "the fast memory of {capacity} holds no {object}: the smallest that would gain by it has {smallest} (program \"{program}\"); give \
             more by --fast{remedy}"
        )
    })
}

#[cfg(test)]
mod tests {
    use isotherm_model::units::{Bytes, Nanos};
    use isotherm_policy::sharing::{Colocation, MeasuredObject, MeasuredProgram};

    use super::{of_processors, of_room};
    use crate::sharing::SharedObjects::{Chunks, Sites};

    #[test]
    fn more_programs_than_processors_are_warned_of() {
        assert_eq!(of_processors(2, 2), None);
        let warning = of_processors(2, 1).expect("a shortage");
        assert!(
            warning.starts_with("2 programs on 1 processor: "),
            "{warning}"
        );
    }

    #[test]
    fn only_objects_that_gain_count_for_the_smallest() {
        let object = |(name, size, alone): (&str, u64, u64)| MeasuredObject {
            name: name.to_owned(),
            size: Bytes(size << 20),
            alone: Nanos(alone),
        };
        let program = |name, objects: &[_]| {
            let objects = objects.iter().copied().map(object).collect();
            MeasuredProgram::new(name, Nanos(20), Nanos(100), objects).expect("times")
        };
        let large = program("large", &[("all", 8, 20)]);
        let mixed = program("mixed", &[("useful", 4, 60), ("useless", 1, 100)]);
        let colocation = Colocation::new(vec![large, mixed]).expect("two programs");
        let of = |objects, has_chunks, mebibytes: u64| {
            of_room(&colocation, objects, has_chunks, Bytes(mebibytes << 20))
        };
        assert_eq!(of(Sites, true, 4), None);
        assert_eq!(
            of(Sites, true, 3).as_deref(),
            Some(
                "the fast memory of 3 MiB holds no whole site: the smallest that would gain by it has 4 MiB (program \"mixed\"); \
                 give more by --fast, or share parts of sites by --share chunks"
            )
        );
        let without_chunks = of(Sites, false, 3).expect("a shortage");
        assert!(
            without_chunks.ends_with("give more by --fast"),
            "{without_chunks}"
        );
        let of_chunks = of(Chunks, true, 3).expect("a shortage");
        assert!(of_chunks.contains("holds no chunk"), "{of_chunks}");
        let none = Colocation::new(vec![]).expect("no program");
        assert_eq!(of_room(&none, Sites, true, Bytes(0)), None);
    }
}
