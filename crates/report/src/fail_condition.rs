//! [`FailCondition`] is a condition under which `isotherm diff` fails, such as `footprint > +5%`, read from text: a limit for a measure of
//! the program or of sites in the later run, or for its change since the earlier one.
//!
//! ```text
//! condition  =  measure [ "of" site ] comparison limit
//! measure    =  "time" | "footprint" | "heat" | "allocations" | "requested"
//! site       =  "any", or a part of a location, of a caller, or the beginning of an id
//! comparison =  ">" | ">=" | "<" | "<="
//! limit      =  sign number "%"     change, of the earlier value
//!            |  sign amount         change
//!            |  amount              the later value itself
//! sign       =  "+" | "-"
//! amount     =  a size (16MiB), a time (1.5s) or a number (1000), as the measure has it
//! ```

use std::str::FromStr;

use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::variant_words;

variant_words! {
    /// A number of a profile, of the whole program or of a site.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum DifferenceMeasure {
        /// Length of the run; not of a site.
        Time = "time",
        /// The footprint; of a site, its peak resident bytes.
        Footprint = "footprint",
        /// Time waiting for memory where a timer sampled it, else the counted accesses or misses.
        Heat = "heat",
        /// Allocations.
        Allocations = "allocations",
        /// Bytes requested over the run.
        Requested = "requested",
    }
}

/// The data whose measure is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionSubject {
    /// All of the program.
    Program,
    /// Each site.
    AnySite,
    /// Each site with this text in its location or callers, or at the beginning of its id.
    Sites(String),
}

/// The amount with which a measure is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConditionLimit {
    /// Growth as a share of the earlier value; negative for a fall.
    Share(f64),
    /// Growth by an amount; negative for a fall.
    Change(f64),
    /// The later value.
    Value(f64),
}

/// How a measure is compared with the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionOrder {
    /// Above the limit.
    Above,
    /// The limit, or above it.
    AtLeast,
    /// Below the limit.
    Below,
    /// The limit, or below it.
    AtMost,
}

/// A condition under which a comparison fails.
#[derive(Clone, Debug, PartialEq)]
pub struct FailCondition {
    /// As it was given.
    pub text: String,
    /// The measure.
    pub measure: DifferenceMeasure,
    /// The data that is measured.
    pub subject: ConditionSubject,
    /// The comparison.
    pub order: ConditionOrder,
    /// The limit.
    pub limit: ConditionLimit,
    /// Whether the limit has an amount that is a time.
    pub is_time: bool,
}

/// A text that is no condition: the sentence that says why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FailConditionError(String);

impl ConditionOrder {
    /// Whether a value is above, below or at a limit, as the order says.
    #[must_use]
    pub fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Above => value > limit,
            Self::AtLeast => value >= limit,
            Self::Below => value < limit,
            Self::AtMost => value <= limit,
        }
    }
}

impl FailCondition {
    /// Whether it holds for a measure that was `before` and is `after`. A growth from nothing is greater than any share.
    #[must_use]
    pub fn holds(&self, before: f64, after: f64) -> bool {
        match self.limit {
            ConditionLimit::Share(limit) => {
                let growth = after - before;
                let share = match before > 0.0 {
                    true => growth / before,
                    false if growth > 0.0 => f64::INFINITY,
                    false => 0.0,
                };
                self.order.holds(share, limit)
            }
            ConditionLimit::Change(limit) => self.order.holds(after - before, limit),
            ConditionLimit::Value(limit) => self.order.holds(after, limit),
        }
    }
}

impl FromStr for FailCondition {
    type Err = FailConditionError;

    fn from_str(text: &str) -> Result<Self, FailConditionError> {
        // Names of C++ contain `<` and `>`, limits do not.
        let at = text.rfind(['<', '>']);
        let Some((left, right)) = at.map(|at| text.split_at(at)) else {
            return Err(FailConditionError(format!(
                "\"{text}\" compares nothing; write it as 'footprint > +5%'"
            )));
        };
        let (order, limit) = match (right.strip_prefix(">="), right.strip_prefix("<=")) {
            (Some(limit), _) => (ConditionOrder::AtLeast, limit),
            (_, Some(limit)) => (ConditionOrder::AtMost, limit),
            _ if right.starts_with('>') => (ConditionOrder::Above, &right[1..]),
            _ => (ConditionOrder::Below, &right[1..]),
        };
        let (word, subject) = subject(left.trim());
        let measure = DifferenceMeasure::from_word(word).ok_or_else(|| {
            let known = DifferenceMeasure::ALL.map(DifferenceMeasure::word);
            let known = known.join(", ");
            FailConditionError(format!("there is no measure \"{word}\"; there are {known}"))
        })?;
        if measure == DifferenceMeasure::Time && subject != ConditionSubject::Program {
            return Err(FailConditionError(
                "`time` is of the whole run; of a site there are footprint, heat, allocations and requested"
                    .to_owned(),
            ));
        }
        let (limit, is_time) = read_limit(measure, limit.trim())?;
        Ok(Self {
            text: text.trim().to_owned(),
            measure,
            subject,
            order,
            limit,
            is_time,
        })
    }
}

/// The measure's word, and the data that it is of.
fn subject(left: &str) -> (&str, ConditionSubject) {
    match left.split_once(" of ") {
        None => (left, ConditionSubject::Program),
        Some((word, site)) if site.trim() == "any" => (word.trim(), ConditionSubject::AnySite),
        Some((word, site)) => (word.trim(), ConditionSubject::Sites(site.trim().to_owned())),
    }
}

fn read_limit(
    measure: DifferenceMeasure,
    text: &str,
) -> Result<(ConditionLimit, bool), FailConditionError> {
    let (sign, rest) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(rest), _) => (Some(1.0), rest.trim_start()),
        (_, Some(rest)) => (Some(-1.0), rest.trim_start()),
        _ => (None, text),
    };
    if let Some(number) = rest.strip_suffix('%') {
        let share = decimal(number.trim())
            .ok_or_else(|| FailConditionError(format!("\"{text}\" is not a share such as +5%")))?;
        let sign = sign.ok_or_else(|| {
            FailConditionError(format!(
                "\"{text}\" needs a sign: +{rest} is a growth, -{rest} a fall"
            ))
        })?;
        return Ok((ConditionLimit::Share(sign * share / 100.0), false));
    }
    let (amount, is_time) = amount(measure, rest)?;
    let limit = match sign {
        Some(sign) => ConditionLimit::Change(sign * amount),
        None => ConditionLimit::Value(amount),
    };
    Ok((limit, is_time))
}

/// A number without sign, exponent or words.
fn decimal(text: &str) -> Option<f64> {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.parse().ok().filter(|_| is_plain)
}

/// An amount in the unit of a measure, and whether it is a time. The unit of heat depends on the profiles.
fn amount(measure: DifferenceMeasure, text: &str) -> Result<(f64, bool), FailConditionError> {
    let wrong = |error: String| FailConditionError(format!("{}: {error}", measure.word()));
    let bytes = || text.parse::<Bytes>().map(|bytes| (bytes.0 as f64, false));
    let bytes = || bytes().map_err(|e| wrong(e.to_string()));
    let time = || text.parse::<Nanos>().map(|time| (time.0 as f64, true));
    let time = || time().map_err(|e| wrong(e.to_string()));
    let number = || decimal(text).map(|number| (number, false));
    match measure {
        DifferenceMeasure::Time => time(),
        DifferenceMeasure::Footprint | DifferenceMeasure::Requested => bytes(),
        DifferenceMeasure::Heat => number().map_or_else(time, Ok),
        DifferenceMeasure::Allocations => number().ok_or_else(|| {
            wrong(format!(
                "\"{text}\" is neither a share such as +5% nor a number such as 1000"
            ))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        ConditionLimit, ConditionOrder, ConditionSubject, DifferenceMeasure, FailCondition,
    };

    fn read(text: &str) -> FailCondition {
        text.parse().expect(text)
    }

    fn refused(text: &str) -> String {
        text.parse::<FailCondition>().expect_err(text).to_string()
    }

    #[test]
    fn a_condition_has_a_measure_a_subject_a_comparison_and_a_limit() {
        let grown = read("footprint > +5%");
        assert_eq!(grown.measure, DifferenceMeasure::Footprint);
        assert_eq!(grown.subject, ConditionSubject::Program);
        assert_eq!(grown.order, ConditionOrder::Above);
        assert_eq!(grown.limit, ConditionLimit::Share(0.05));
        let site = read("heat of std::vector<int> < main>=+1.5ms");
        let named = ConditionSubject::Sites("std::vector<int> < main".to_owned());
        assert_eq!((site.subject, site.order), (named, ConditionOrder::AtLeast));
        assert_eq!(site.limit, ConditionLimit::Change(1_500_000.0));
        assert!(site.is_time);
        let any = read("requested of any <= 4GiB");
        assert_eq!(any.subject, ConditionSubject::AnySite);
        assert_eq!(any.order, ConditionOrder::AtMost);
        assert_eq!(any.limit, ConditionLimit::Value(4_294_967_296.0));
        assert_eq!(read("allocations<-10").limit, ConditionLimit::Change(-10.0));
        assert!(!read("heat > 1000").is_time);
    }

    #[test]
    fn growth_from_nothing_is_above_any_share_and_no_change_is_not() {
        let grown = read("footprint > +5%");
        let held = [(100.0, 105.0), (100.0, 105.1), (0.0, 1.0), (0.0, 0.0)];
        let held = held.map(|(before, after)| grown.holds(before, after));
        assert_eq!(held, [false, true, true, false]);
        assert!(read("time < -10%").holds(100.0, 89.0));
        assert!(read("footprint >= +1KiB").holds(0.0, 1024.0));
        assert!(!read("footprint > 1KiB").holds(0.0, 1024.0));
    }

    #[test]
    fn what_is_no_condition_is_refused_with_the_right_form() {
        for (text, says) in [
            ("footprint", "write it as 'footprint > +5%'"),
            ("size > +5%", "there are time, footprint, heat"),
            ("footprint > 5%", "+5% is a growth, -5% a fall"),
            ("footprint > +5", "a unit is required"),
            ("footprint > +1e3%", "is not a share such as +5%"),
            ("footprint > +inf%", "is not a share such as +5%"),
            ("time > +1MiB", "is not a time such as"),
            ("time of main > +1s", "`time` is of the whole run"),
            ("allocations > +1s", "nor a number such as 1000"),
            ("heat > +1MiB", "is not a time such as"),
            ("> +5%", "there is no measure \"\""),
            ("footprint > ", "is not a size"),
        ] {
            let said = refused(text);
            assert!(said.contains(says), "{text}: {said}");
        }
    }
}
