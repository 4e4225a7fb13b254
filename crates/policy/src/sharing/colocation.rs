//! [`Colocation`] holds the run times, measured or predicted, and object sizes of programs that share one fast tier, the input of a sharing
//! policy, and how sensitive each program is ([`SensitivityClass`]). [`SharedPlan`] is the output: the fast bytes of each object
//! ([`Grant`]), the reason, and the object of another program that competes with it ([`Rival`]).
//!
//! A *co-located* program runs beside others on the same machine. Three run times of each are
//! measured: all data in the fast tier, all data in the slow tier, and one *data object* at a time
//! in the fast tier (CoMerge, Doudali and Gavrilovska, MEMSYS 2017, section 3.2). Its *sensitivity
//! class* ranks how well it runs without fast memory.

use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::words::share;

/// The longest run time that is accepted: 2^60 ns, 36 years. At this limit three times the product
/// of two differences of times fits 128 bits, so comparisons of benefits never round.
pub const LONGEST_RUN: Nanos = Nanos(1 << 60);

/// One data object of a program, and the run in which it alone was fast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredObject {
    /// Its name, unique within the program.
    pub name: String,
    /// Its size, above 0.
    pub size: Bytes,
    /// Run time of the program with this object in the fast tier and the others in the slow one.
    pub alone: Nanos,
}

/// A program and the runs that measure its benefit from fast memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredProgram {
    name: String,
    all_fast: Nanos,
    all_slow: Nanos,
    objects: Vec<MeasuredObject>,
}

isotherm_model::variant_words! {
    /// How much a program suffers from slow memory (CoMerge, section 3.1 and table 2).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum SensitivityClass {
        /// All slow takes less than 1.2 times as long as all fast. The paper prints no limit; its
        /// examples need one between 1.042 (doitgen, none) and 1.439 (adi, low).
        None = "none",
        /// Less than 2 times as long.
        Low = "low",
        /// Less than 3 times as long.
        Medium = "medium",
        /// 3 times as long, or longer.
        High = "high",
    }
}

/// Programs that share a fast tier, sorted by name: the order of the input no longer matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Colocation(Vec<MeasuredProgram>);

/// The reason why measurements were rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ColocationError {
    /// A run of this program has a time of zero, or longer than [`LONGEST_RUN`].
    #[error(
        "program \"{program}\": the run {run} took {taken}; a time above 0 and up to {longest} is needed, so measure it again",
        taken = .time.exact(),
        longest = LONGEST_RUN
    )]
    Time {
        /// The program.
        program: String,
        /// The run, in words.
        run: String,
        /// The reported run time.
        time: Nanos,
    },
    /// This object of this program has no bytes.
    #[error(
        "program \"{program}\": object \"{object}\" has no bytes; leave it out, it needs no memory"
    )]
    EmptyObject {
        /// The program.
        program: String,
        /// The object.
        object: String,
    },
    /// Two objects of this program have this name.
    #[error("program \"{program}\": two objects are named \"{object}\"; names must differ")]
    SameObject {
        /// The program.
        program: String,
        /// The name.
        object: String,
    },
    /// The objects of all programs together are larger than a 64-bit number of bytes.
    #[error(
        "the objects of all programs together have more bytes than 64 bits can count; check the sizes"
    )]
    TooLarge,
    /// Two programs have this name.
    #[error("two programs are named \"{0}\"; names must differ, number them where one runs twice")]
    SameProgram(String),
}

impl MeasuredProgram {
    /// Checks and wraps measurements.
    ///
    /// # Errors
    /// A time of 0 or beyond [`LONGEST_RUN`], an object without bytes, a name given twice.
    pub fn new(
        name: &str,
        all_fast: Nanos,
        all_slow: Nanos,
        mut objects: Vec<MeasuredObject>,
    ) -> Result<Self, ColocationError> {
        let check = |time: Nanos, run: &str| {
            if time == Nanos::ZERO || time > LONGEST_RUN {
                return Err(ColocationError::Time {
                    program: name.to_owned(),
                    run: run.to_owned(),
                    time,
                });
            }
            Ok(())
        };
        check(all_fast, "with all data fast")?;
        check(all_slow, "with all data slow")?;
        objects.sort_by(|a, b| a.name.cmp(&b.name));
        for object in &objects {
            check(object.alone, &format!("with \"{}\" fast", object.name))?;
            if object.size == Bytes::ZERO {
                return Err(ColocationError::EmptyObject {
                    program: name.to_owned(),
                    object: object.name.clone(),
                });
            }
        }
        if let Some(pair) = objects.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(ColocationError::SameObject {
                program: name.to_owned(),
                object: pair[0].name.clone(),
            });
        }
        Ok(Self {
            name: name.to_owned(),
            all_fast,
            all_slow,
            objects,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Run time with all data in the fast tier, F in the paper.
    #[must_use]
    pub const fn all_fast(&self) -> Nanos {
        self.all_fast
    }

    /// Run time with all data in the slow tier, S in the paper.
    #[must_use]
    pub const fn all_slow(&self) -> Nanos {
        self.all_slow
    }

    /// Its objects, by name.
    #[must_use]
    pub fn objects(&self) -> &[MeasuredObject] {
        &self.objects
    }

    /// Bytes of all its objects.
    #[must_use]
    pub fn footprint(&self) -> Bytes {
        self.objects.iter().map(|object| object.size).sum()
    }

    /// All slow over all fast, S / F.
    #[must_use]
    pub fn slowdown(&self) -> f64 {
        self.all_slow.0 as f64 / self.all_fast.0 as f64
    }

    /// The factor of co-benefits by the paper's printed formula: S / F without its fraction.
    #[must_use]
    pub const fn printed_factor(&self) -> u64 {
        self.all_slow.0 / self.all_fast.0
    }

    /// Its sensitivity class, from S / F.
    #[must_use]
    pub fn class(&self) -> SensitivityClass {
        // Times are at most 2^60, so six times one of them fits 64 bits.
        if 5 * self.all_slow.0 < 6 * self.all_fast.0 {
            return SensitivityClass::None;
        }
        match self.all_slow.0 / self.all_fast.0 {
            0 | 1 => SensitivityClass::Low,
            2 => SensitivityClass::Medium,
            _ => SensitivityClass::High,
        }
    }
}

impl SensitivityClass {
    /// Factor from benefit to co-benefit (CoMerge, section 4.2): 0, 1, 2, 3.
    #[must_use]
    pub const fn factor(self) -> u32 {
        self as u32
    }
}

impl Colocation {
    /// Checks and wraps the programs.
    ///
    /// # Errors
    /// Two programs of one name, or objects whose total bytes exceed 64 bits.
    pub fn new(mut programs: Vec<MeasuredProgram>) -> Result<Self, ColocationError> {
        programs.sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(pair) = programs
            .windows(2)
            .find(|pair| pair[0].name == pair[1].name)
        {
            return Err(ColocationError::SameProgram(pair[0].name.clone()));
        }
        let mut sizes = programs
            .iter()
            .flat_map(|program| &program.objects)
            .map(|object| object.size.0);
        let total = sizes.try_fold(0_u64, u64::checked_add);
        if total.is_none() {
            return Err(ColocationError::TooLarge);
        }
        Ok(Self(programs))
    }

    /// The programs, by name.
    #[must_use]
    pub fn programs(&self) -> &[MeasuredProgram] {
        &self.0
    }

    /// Bytes of all objects of all programs.
    #[must_use]
    pub fn footprint(&self) -> Bytes {
        self.0.iter().map(MeasuredProgram::footprint).sum()
    }
}

/// An object of another program beside a [`Grant`]: the reason why one program has memory that another lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rival {
    /// The other program.
    pub program: String,
    /// Its object.
    pub object: String,
    /// True if that object is placed and comes before the granted one in the order of the policy; false if it comes after it and is left
    /// out, at least in part.
    pub comes_before: bool,
}

impl Rival {
    /// The rival in words, with `object` as the name of its object for people.
    #[must_use]
    pub fn text(&self, object: &str) -> String {
        let program = &self.program;
        match self.comes_before {
            true => format!("{program} has {object}, which comes before it"),
            false => format!("{program} lacks {object}, which comes after it"),
        }
    }
}

/// The share of one object in the fast tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The program.
    pub program: String,
    /// The object.
    pub object: String,
    /// Its size.
    pub size: Bytes,
    /// Its bytes in the fast tier, from its first byte on; 0 if it is left out.
    pub fast: Bytes,
    /// The reason for this number of bytes, one sentence.
    pub reason: String,
    /// The nearest object of another program in the order of the policy with the opposite outcome. `None` for policies that give each
    /// program a part of the tier.
    pub rival: Option<Rival>,
}

/// The share of each object of each program in a fast tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPlan {
    /// Name of the policy.
    pub policy: String,
    /// Bytes of the fast tier.
    pub capacity: Bytes,
    /// Every object of every program once, in the order in which the policy handled them.
    pub grants: Vec<Grant>,
}

impl SharedPlan {
    /// Bytes of the fast tier that are used.
    #[must_use]
    pub fn used(&self) -> Bytes {
        self.grants.iter().map(|grant| grant.fast).sum()
    }

    /// Used bytes by capacity (CoMerge, section 4): from 0 to 1, and 0 where the capacity is 0.
    #[must_use]
    pub fn utility(&self) -> f64 {
        share(self.used().0, self.capacity.0)
    }

    /// The objects that are in the fast tier, whole or in part, in the order of the policy.
    pub fn placed(&self) -> impl Iterator<Item = &Grant> {
        self.grants.iter().filter(|grant| grant.fast > Bytes::ZERO)
    }

    /// Bytes of this object of this program in the fast tier.
    #[must_use]
    pub fn fast_bytes(&self, program: &str, object: &str) -> Bytes {
        self.grants
            .iter()
            .find(|grant| grant.program == program && grant.object == object)
            .map_or(Bytes::ZERO, |grant| grant.fast)
    }
}

#[cfg(test)]
mod tests {
    use super::{Colocation, ColocationError, LONGEST_RUN, MeasuredObject, MeasuredProgram};
    use super::{Grant, SensitivityClass, SharedPlan};
    use isotherm_model::units::{Bytes, Nanos};

    fn object(name: &str, size: u64, alone: u64) -> MeasuredObject {
        MeasuredObject {
            name: name.to_owned(),
            size: Bytes(size),
            alone: Nanos(alone),
        }
    }

    fn program(name: &str, fast: u64, slow: u64) -> MeasuredProgram {
        MeasuredProgram::new(name, Nanos(fast), Nanos(slow), vec![object("a", 1, 1)]).unwrap()
    }

    #[test]
    fn the_class_follows_the_slow_down_and_its_limits_belong_to_the_class_above() {
        let class = |slow| program("p", 10, slow).class();
        assert_eq!(class(9), SensitivityClass::None);
        assert_eq!(class(11), SensitivityClass::None);
        assert_eq!(class(12), SensitivityClass::Low);
        assert_eq!(class(19), SensitivityClass::Low);
        assert_eq!(class(20), SensitivityClass::Medium);
        assert_eq!(class(30), SensitivityClass::High);
        assert_eq!(class(500), SensitivityClass::High);
        assert_eq!(class(500).factor(), 3);
        assert_eq!(
            program("p", 1, LONGEST_RUN.0).class(),
            SensitivityClass::High
        );
    }

    #[test]
    fn measurements_that_cannot_be_are_refused_with_what_where_and_a_remedy() {
        let wrong = MeasuredProgram::new("p", Nanos(0), Nanos(5), vec![]).unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "program \"p\": the run with all data fast took 0ns; a time above 0 and up to \
             1152921504.61 s is needed, so measure it again"
        );
        let endless = Nanos(LONGEST_RUN.0 + 1);
        assert!(MeasuredProgram::new("p", Nanos(5), endless, vec![]).is_err());
        let run = |objects| MeasuredProgram::new("p", Nanos(5), Nanos(6), objects);
        assert!(run(vec![object("a", 1, 0)]).is_err());
        assert!(matches!(
            run(vec![object("a", 0, 5)]),
            Err(ColocationError::EmptyObject { .. })
        ));
        assert!(matches!(
            run(vec![object("a", 1, 5), object("a", 2, 5)]),
            Err(ColocationError::SameObject { .. })
        ));
    }

    #[test]
    fn programs_are_told_apart_by_name_and_their_order_is_forgotten() {
        let (a, b) = (program("a", 1, 2), program("b", 1, 3));
        let one = Colocation::new(vec![a.clone(), b.clone()]).unwrap();
        assert_eq!(Colocation::new(vec![b, a.clone()]), Ok(one));
        assert_eq!(
            Colocation::new(vec![a.clone(), a]),
            Err(ColocationError::SameProgram("a".to_owned()))
        );
        let large = |name| {
            MeasuredProgram::new(name, Nanos(1), Nanos(2), vec![object("x", u64::MAX, 1)]).unwrap()
        };
        assert_eq!(
            Colocation::new(vec![large("a"), large("b")]),
            Err(ColocationError::TooLarge)
        );
    }

    #[test]
    fn utility_is_used_bytes_by_capacity_and_nothing_without_capacity() {
        let plan = |capacity| SharedPlan {
            policy: "p".to_owned(),
            capacity: Bytes(capacity),
            grants: vec![Grant {
                program: "a".to_owned(),
                object: "x".to_owned(),
                size: Bytes(9),
                fast: Bytes(3),
                reason: String::new(),
                rival: None,
            }],
        };
        assert!((plan(12).utility() - 0.25).abs() < 1e-12);
        assert!(plan(0).utility() < 1e-12);
        assert_eq!(plan(12).fast_bytes("a", "x"), Bytes(3));
        assert_eq!(plan(12).fast_bytes("b", "x"), Bytes(0));
    }
}
