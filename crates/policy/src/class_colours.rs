//! [`ClassColours`] decides which classes of a Java heap are hot during a run with neither a plan nor `--java-stacks`: from the class with
//! most heat a byte on, each whose objects fit what is left of hot memory; the hottest even if it does not fit. It decides in each epoch; a
//! class changes its colour when two epochs in a row choose the other one.
//!
//! ```text
//! epoch        1      2      3      4
//! accesses    80      0      0      0        of a class
//! heat        80     40     20     10        heat of the epoch before / 2 + accesses
//! choice     hot    hot   cold   cold        what the epoch alone would choose
//! colour     hot    hot    hot   cold        changes when two epochs in a row choose the other one
//! ```
//!
//! To change the colour of a class moves its objects, so a single epoch that differs changes nothing. All classes are hot at first, and
//! nothing is chosen by the heat of less than 16 accesses.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use isotherm_model::colour::Colour;
use isotherm_model::units::{Accesses, Bytes};

/// Epochs in a row that must choose the other colour.
const AGREEING_EPOCHS: u32 = 2;
/// Heat of an access, so that few accesses outlast several halvings.
const HEAT_OF_ACCESS: u64 = 256;
/// Least heat of all classes together: differences between fewer accesses are chance.
const LEAST_HEAT: u64 = 16 * HEAT_OF_ACCESS;

/// A class in one epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassSample {
    /// Its name.
    pub class: String,
    /// Sampled accesses to its objects.
    pub accesses: Accesses,
    /// Bytes of its objects at the end of the epoch.
    pub live: Bytes,
}

#[derive(Clone, Copy, Debug, Default)]
struct ClassState {
    heat: u64,
    live: Bytes,
    colour: Colour,
    /// Epochs in a row that chose the other colour.
    differing: u32,
}

impl ClassState {
    /// Adopts the other colour once enough epochs chose it. True where the colour changed.
    fn follow(&mut self, chosen: Colour) -> bool {
        if chosen == self.colour {
            self.differing = 0;
            return false;
        }
        self.differing += 1;
        let changes = self.differing >= AGREEING_EPOCHS;
        if changes {
            self.colour = chosen;
            self.differing = 0;
        }
        changes
    }
}

/// The colours of the classes of a program, and the heat by which they are chosen.
#[derive(Clone, Debug)]
pub struct ClassColours {
    /// Bytes of objects for which hot memory has room.
    room: Bytes,
    classes: BTreeMap<String, ClassState>,
}

impl ClassColours {
    /// All classes are hot.
    #[must_use]
    pub const fn new(room: Bytes) -> Self {
        Self {
            room,
            classes: BTreeMap::new(),
        }
    }

    /// Follows an epoch, in which each class is listed at most once. True if a class changed its colour. A class whose objects cannot be
    /// cold takes part as any other: it has room only before colder ones.
    pub fn decide(&mut self, samples: impl IntoIterator<Item = ClassSample>) -> bool {
        for class in self.classes.values_mut() {
            class.heat /= 2;
            class.live = Bytes::ZERO;
        }
        for sample in samples {
            let class = self.classes.entry(sample.class).or_default();
            let heat = sample.accesses.0.saturating_mul(HEAT_OF_ACCESS);
            class.heat = class.heat.saturating_add(heat);
            class.live = sample.live;
        }
        let heat = self.classes.values().map(|class| class.heat);
        if heat.fold(0, u64::saturating_add) < LEAST_HEAT {
            return false;
        }
        self.adopt_choice()
    }

    /// The names of the cold classes, sorted.
    pub fn cold(&self) -> impl Iterator<Item = &str> {
        let cold = self.classes.iter();
        let cold = cold.filter(|(_, class)| class.colour == Colour::Cold);
        cold.map(|(name, _)| name.as_str())
    }

    /// Fills the room by heat per byte. The hottest class is hot even if it is larger than the room: some of its objects then have room. A
    /// class without objects keeps its colour.
    fn adopt_choice(&mut self) -> bool {
        let mut room = self.room;
        let living = self.classes.values_mut();
        let mut living: Vec<&mut ClassState> =
            living.filter(|class| class.live > Bytes::ZERO).collect();
        living.sort_by(|one, other| by_heat_per_byte(one, other));
        let mut has_changed = false;
        for (rank, class) in living.into_iter().enumerate() {
            let is_hot = class.live <= room || (rank == 0 && class.heat > 0);
            if is_hot {
                room = room.saturating_sub(class.live);
            }
            let chosen = if is_hot { Colour::Hot } else { Colour::Cold };
            has_changed |= class.follow(chosen);
        }
        has_changed
    }
}

/// The hottest class first; of equal ones those that are hot already, which then do not move.
fn by_heat_per_byte(one: &ClassState, other: &ClassState) -> Ordering {
    let product = |heat: u64, bytes: Bytes| u128::from(heat) * u128::from(bytes.0);
    let (mine, theirs) = (product(one.heat, other.live), product(other.heat, one.live));
    Reverse(mine)
        .cmp(&Reverse(theirs))
        .then(one.colour.cmp(&other.colour))
}

#[cfg(test)]
mod tests {
    use super::{ClassColours, ClassSample};
    use isotherm_model::units::{Accesses, Bytes};

    const MIB: u64 = 1 << 20;

    fn sample((class, accesses, mib): (&str, u64, u64)) -> ClassSample {
        ClassSample {
            class: class.to_owned(),
            accesses: Accesses(accesses),
            live: Bytes(mib * MIB),
        }
    }

    /// Room for 10 MiB.
    struct Run(ClassColours);

    impl Run {
        fn new() -> Self {
            Self(ClassColours::new(Bytes(10 * MIB)))
        }

        /// Whether a colour changed in an epoch of these classes (name, accesses, MiB).
        fn epoch(&mut self, classes: &[(&str, u64, u64)]) -> bool {
            self.0.decide(classes.iter().copied().map(sample))
        }

        fn cold(&self) -> Vec<&str> {
            self.0.cold().collect()
        }
    }

    #[test]
    fn two_epochs_that_agree_make_the_class_without_accesses_cold() {
        let mut run = Run::new();
        let epoch = [("Cold", 0, 8), ("Hot", 50, 8)];
        assert!(!run.epoch(&epoch));
        assert!(run.cold().is_empty());
        assert!(run.epoch(&epoch));
        assert_eq!(run.cold(), ["Cold"]);
        assert!(!run.epoch(&epoch), "nothing changes any more");
    }

    #[test]
    fn an_epoch_that_differs_alone_changes_nothing() {
        let mut run = Run::new();
        let usual = [("A", 50, 8), ("B", 1, 8)];
        run.epoch(&usual);
        run.epoch(&usual);
        assert_eq!(run.cold(), ["B"]);
        assert!(!run.epoch(&[("A", 0, 8), ("B", 60, 8)]));
        // The heat of that epoch halves.
        assert!(!run.epoch(&usual));
        assert_eq!(run.cold(), ["B"]);
    }

    #[test]
    fn a_class_that_becomes_hot_changes_places_with_one_that_cools() {
        let mut run = Run::new();
        for _ in 0..4 {
            run.epoch(&[("A", 50, 8), ("B", 0, 8)]);
        }
        let changes: Vec<bool> = (0..4)
            .map(|_| run.epoch(&[("A", 0, 8), ("B", 30, 8)]))
            .collect();
        assert_eq!(changes, [false, false, true, false], "heat halves first");
        assert_eq!(run.cold(), ["A"]);
    }

    #[test]
    fn heat_counts_by_the_byte_and_smaller_classes_fill_what_is_left() {
        let mut run = Run::new();
        let epoch = [
            ("Dense", 40, 4),
            ("Large", 60, 8),
            ("Small", 1, 2),
            ("Tiny", 0, 5),
        ];
        run.epoch(&epoch);
        run.epoch(&epoch);
        assert_eq!(run.cold(), ["Large", "Tiny"]);
    }

    #[test]
    fn classes_that_all_have_room_stay_hot() {
        let mut run = Run::new();
        for _ in 0..3 {
            assert!(!run.epoch(&[("A", 90, 5), ("B", 0, 5)]));
        }
        assert!(run.cold().is_empty());
    }

    #[test]
    fn the_hottest_class_is_hot_though_it_has_no_room() {
        let mut run = Run::new();
        let epoch = [("Huge", 90, 64), ("Other", 1, 8)];
        run.epoch(&epoch);
        run.epoch(&epoch);
        assert_eq!(run.cold(), ["Other"]);
    }

    #[test]
    fn by_few_accesses_nothing_is_chosen_and_without_objects_a_colour_stays() {
        let mut run = Run::new();
        for _ in 0..9 {
            assert!(!run.epoch(&[("A", 7, 8), ("B", 0, 64)]));
        }
        assert!(run.cold().is_empty());
        for _ in 0..2 {
            run.epoch(&[("A", 50, 8), ("B", 0, 64)]);
        }
        assert_eq!(run.cold(), ["B"]);
        for _ in 0..3 {
            assert!(!run.epoch(&[("A", 50, 8), ("B", 0, 0)]));
            assert!(!run.epoch(&[("A", 50, 8)]));
        }
        assert_eq!(run.cold(), ["B"]);
    }

    #[test]
    fn any_numbers_are_followed() {
        let mut run = Run::new();
        let most = ClassSample {
            class: "A".to_owned(),
            accesses: Accesses(u64::MAX),
            live: Bytes(u64::MAX),
        };
        for _ in 0..3 {
            run.0.decide([most.clone(), sample(("B", 1, 1))]);
        }
        assert_eq!(run.cold(), ["B"]);
    }
}
