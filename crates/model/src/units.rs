//! Defines quantities with units ([`Bytes`], [`Nanos`], [`Accesses`], [`Nanojoules`], [`Nanowatts`]), each a type of its own, so that bytes
//! are never added to nanoseconds. Sums and differences saturate; all are printed for people, and sizes and times are also read, with their
//! unit (`4GiB`, `10us`). [`Capacity`] is a size or a share of the footprint.

use std::fmt;
use std::str::FromStr;

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl $name {
            /// Zero.
            pub const ZERO: Self = Self(0);

            /// The sum, or the largest value where it would overflow.
            #[must_use]
            pub const fn saturating_add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }

            /// The difference, or zero where it would be negative.
            #[must_use]
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }

        impl std::ops::AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = self.saturating_add(other);
            }
        }

        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
                values.fold(Self::ZERO, Self::saturating_add)
            }
        }
    };
}

quantity!(
    /// A number of bytes.
    Bytes
);
quantity!(
    /// A time or a span in nanoseconds.
    Nanos
);
quantity!(
    /// Memory accesses, as counted or weighted by the source.
    Accesses
);
quantity!(
    /// An energy in nanojoules. 64 bits hold 18 GJ, 200 W for three years.
    Nanojoules
);
quantity!(
    /// A power in nanowatts: microamperes times millivolts.
    Nanowatts
);

/// A text that is not a quantity: the error, and the correct form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" {wrong}")]
pub struct QuantityError {
    text: String,
    wrong: Wrong,
}

/// The kind of error, each with the correct form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Wrong {
    /// The text does not have the form of the quantity.
    #[error("is not {0}")]
    Form(&'static str),
    /// The quantity is too small or too large.
    #[error("is out of range: {0}")]
    Range(&'static str),
}

const BINARY: [(&str, u64); 6] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("PiB", 1 << 50),
];
const DECIMAL: [(&str, u64); 5] = [
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("PB", 1_000_000_000_000_000),
];
const TIME: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
const SIZE_WANTED: &str = "a size such as 512MiB, 4GiB or 1.5GB (a unit is required: B, KiB, MiB, GiB, TiB, PiB, \
                           or kB, MB, GB, TB, PB)";
const SIZE_RANGE: &str = "a size is below 16384PiB";
const TIME_WANTED: &str =
    "a time such as 10us, 100ms or 1s (a unit is required: ns, us, ms, s, min or h)";
const TIME_RANGE: &str = "a time is at most 5124095h";
const SHARE_RANGE: &str = "a share is above 0% and at most 100%";
/// The first number that does not fit 64 bits.
const TOO_LARGE: f64 = 18_446_744_073_709_551_616.0;

/// Splits `1.5GiB` into its number and its unit and multiplies them. Rounds to nearest; rejects
/// negative, infinite and overflowing numbers.
fn scaled(
    text: &str,
    units: &[(&str, u64)],
    [wanted, range]: [&'static str; 2],
) -> Result<u64, QuantityError> {
    let error = |wrong| QuantityError {
        text: text.to_owned(),
        wrong,
    };
    let wrong = || error(Wrong::Form(wanted));
    let too_large = || error(Wrong::Range(range));
    let trimmed = text.trim();
    let split = trimmed
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .ok_or_else(wrong)?;
    let (number, unit) = trimmed.split_at(split);
    let unit = unit.trim();
    let factor = units
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(wrong)?
        .1;
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(too_large);
    }
    let value = number.parse::<f64>().map_err(|_| wrong())? * factor as f64;
    if value >= TOO_LARGE {
        return Err(too_large());
    }
    Ok(value.round() as u64)
}

impl FromStr for Bytes {
    type Err = QuantityError;

    /// Reads `512MiB`, `1.5GB`, `4096B`. A bare number is rejected, because its unit is unknown.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let units: Vec<_> = BINARY.iter().chain(&DECIMAL).copied().collect();
        scaled(text, &units, [SIZE_WANTED, SIZE_RANGE]).map(Self)
    }
}

impl Bytes {
    /// The size as in files, without rounding and without a space: the largest binary unit that
    /// divides it, `128MiB`, `134217729B`. Read back by [`FromStr`].
    #[must_use]
    pub fn exact(self) -> String {
        let (name, factor) = BINARY
            .iter()
            .rev()
            .find(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor))
            .unwrap_or(&BINARY[0]);
        format!("{}{name}", self.0 / factor)
    }
}

impl Nanos {
    /// The middle one of these times; of an even number, the mean of the middle two. `None` without times.
    #[must_use]
    pub fn median(times: &[Self]) -> Option<Self> {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let middle = sorted.len() / 2;
        let above = *sorted.get(middle)?;
        Some(match sorted.len() % 2 {
            1 => above,
            _ => Self(u64::midpoint(sorted[middle - 1].0, above.0)),
        })
    }

    /// The time as in files, without rounding and without a space: the largest unit up to a second
    /// that divides it, `10us`, `1500ms`. Read back by [`FromStr`].
    #[must_use]
    pub fn exact(self) -> String {
        let (name, factor) = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)]
            .into_iter()
            .find(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor))
            .unwrap_or(("ns", 1));
        format!("{}{name}", self.0 / factor)
    }
}

impl FromStr for Nanos {
    type Err = QuantityError;

    /// Reads `10us`, `100ms`, `1.5s`.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        scaled(text, &TIME, [TIME_WANTED, TIME_RANGE]).map(Self)
    }
}

impl fmt::Display for Bytes {
    /// The largest binary unit that leaves a number of at least 1, with one decimal where it is
    /// not whole: `1.5 GiB`, `512 MiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, factor) = BINARY
            .iter()
            .rev()
            .find(|(_, factor)| self.0 >= *factor)
            .unwrap_or(&BINARY[0]);
        if self.0.is_multiple_of(*factor) {
            f.pad(&format!("{} {name}", self.0 / factor))
        } else {
            f.pad(&format!("{:.1} {name}", self.0 as f64 / *factor as f64))
        }
    }
}

impl fmt::Display for Nanos {
    /// `850 ns`, `13.0 us`, `1.25 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        engineering(f, self.0, ["ns", "us", "ms", "s"])
    }
}

/// A number in the largest of the units (each a thousand times the one before) that leaves at least 1.
fn engineering(f: &mut fmt::Formatter<'_>, value: u64, units: [&str; 4]) -> fmt::Result {
    let text = match value {
        0..1_000 => format!("{value} {}", units[0]),
        1_000..1_000_000 => format!("{:.1} {}", value as f64 / 1e3, units[1]),
        1_000_000..1_000_000_000 => format!("{:.1} {}", value as f64 / 1e6, units[2]),
        _ => format!("{:.2} {}", value as f64 / 1e9, units[3]),
    };
    f.pad(&text)
}

impl fmt::Display for Nanojoules {
    /// `850 nJ`, `13.0 uJ`, `1.25 J`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        engineering(f, self.0, ["nJ", "uJ", "mJ", "J"])
    }
}

impl fmt::Display for Nanowatts {
    /// `850 nW`, `40.8 mW`, `1.25 W`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        engineering(f, self.0, ["nW", "uW", "mW", "W"])
    }
}

impl fmt::Display for Accesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.to_string())
    }
}

/// A capacity in user input: a size, or a share of the program's footprint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// A number of bytes.
    Bytes(Bytes),
    /// A share of the footprint, above 0 and at most 1.
    Share(f64),
}

impl Capacity {
    /// The capacity in bytes, rounded down; a share is a share of `whole`, which is the footprint where it is known.
    #[must_use]
    pub fn of(self, whole: Bytes) -> Bytes {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Share(share) => Bytes((whole.0 as f64 * share) as u64),
        }
    }
}

impl FromStr for Capacity {
    type Err = QuantityError;

    /// Reads `4GiB` or `25%`.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        const WANTED: &str = "a size such as 4GiB or a share of the footprint such as 25%";
        let error = |wrong| QuantityError {
            text: text.to_owned(),
            wrong,
        };
        let Some(percent) = text.trim().strip_suffix('%') else {
            let size = text.parse().map(Self::Bytes);
            return size.map_err(|failed: QuantityError| match failed.wrong {
                Wrong::Form(_) => error(Wrong::Form(WANTED)),
                Wrong::Range(_) => failed,
            });
        };
        let number = percent.trim().parse::<f64>().ok();
        let number = number.filter(|number| number.is_finite());
        let share = number.ok_or_else(|| error(Wrong::Form(WANTED)))? / 100.0;
        if share > 0.0 && share <= 1.0 {
            Ok(Self::Share(share))
        } else {
            Err(error(Wrong::Range(SHARE_RANGE)))
        }
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Share(share) => write!(f, "{}%", percent(*share)),
        }
    }
}

/// The shortest number of percent that is read as this share: 7 for 0.07, of which a hundred times is 7.000000000000001.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let mut texts = (0..f64::DIGITS as usize).map(|decimals| format!("{percent:.decimals$}"));
    let is_exact = |text: &String| text.parse().is_ok_and(|read: f64| read / 100.0 == share);
    texts.find(is_exact).unwrap_or_else(|| percent.to_string())
}

/// A number times `part / whole`, rounded down: no product overflows, the result saturates, and a whole of 0 counts as 1.
#[must_use]
pub fn portion(of: u64, part: u64, whole: u64) -> u64 {
    let portion = u128::from(of) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(portion).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Bytes, Capacity, Nanojoules, Nanos, Nanowatts};

    #[test]
    fn a_portion_is_exact_and_saturates() {
        use super::portion;
        assert_eq!(portion(u64::MAX, 3, 4), u64::MAX / 4 * 3 + 2);
        assert_eq!(portion(u64::MAX, 2, 1), u64::MAX);
        assert_eq!(portion(7, 3, 0), 21);
    }

    #[test]
    fn energy_and_power_are_printed_in_a_unit_that_leaves_at_least_one() {
        assert_eq!(Nanowatts(40_800_000).to_string(), "40.8 mW");
        assert_eq!(Nanowatts(999).to_string(), "999 nW");
        assert_eq!(Nanojoules(13_000).to_string(), "13.0 uJ");
        assert_eq!(Nanojoules(1_250_000_000).to_string(), "1.25 J");
    }

    #[test]
    fn sizes_are_read_with_their_unit_and_printed_back() {
        assert_eq!("512MiB".parse(), Ok(Bytes(512 << 20)));
        assert_eq!("1.5GiB".parse(), Ok(Bytes(3 << 29)));
        assert_eq!("2 GB".parse(), Ok(Bytes(2_000_000_000)));
        assert_eq!(Bytes(3 << 29).to_string(), "1.5 GiB");
        assert_eq!(Bytes(0).to_string(), "0 B");
    }

    #[test]
    fn a_size_without_unit_negative_unknown_or_overflowing_is_refused() {
        for text in [
            "512",
            "-1MiB",
            "12parsec",
            "",
            "MiB",
            "99999999999PiB",
            "1e3MiB",
            "..KiB",
        ] {
            assert!(text.parse::<Bytes>().is_err(), "{text} was taken");
        }
    }

    #[test]
    fn an_exact_size_is_read_back_whole() {
        for (bytes, text) in [
            (0, "0B"),
            (1 << 27, "128MiB"),
            ((1 << 27) + 1, "134217729B"),
            (u64::MAX, "18446744073709551615B"),
        ] {
            assert_eq!(Bytes(bytes).exact(), text);
            assert_eq!(text.parse(), Ok(Bytes(bytes)));
        }
    }

    #[test]
    fn times_are_read_with_their_unit() {
        assert_eq!("10us".parse(), Ok(Nanos(10_000)));
        assert_eq!("1.5s".parse(), Ok(Nanos(1_500_000_000)));
        assert!("5".parse::<Nanos>().is_err());
        for (nanos, text) in [(0, "0ns"), (10_000, "10us"), (1_500_000_000, "1500ms")] {
            assert_eq!(Nanos(nanos).exact(), text);
            assert_eq!(text.parse(), Ok(Nanos(nanos)));
        }
    }

    #[test]
    fn a_share_is_of_the_footprint_and_must_lie_in_range() {
        for text in ["7%", "14%", "29%", "58%", "12.5%", "0.1%", "100%"] {
            let share: Capacity = text.parse().unwrap();
            assert_eq!(share.to_string(), text);
        }
        let quarter: Capacity = "25%".parse().unwrap();
        assert_eq!(quarter.of(Bytes(1000)), Bytes(250));
        for text in ["0%", "101%", "-5%", "x%", "%"] {
            assert!(text.parse::<Capacity>().is_err(), "{text} was taken");
        }
    }

    #[test]
    fn an_error_tells_a_wrong_form_from_a_number_out_of_range() {
        let capacity = |text: &str| text.parse::<Capacity>().unwrap_err().to_string();
        let share = "is out of range: a share is above 0% and at most 100%";
        assert_eq!(capacity("101%"), format!("\"101%\" {share}"));
        assert_eq!(capacity("0%"), format!("\"0%\" {share}"));
        for size in ["99999999999TiB", "16384PiB", "16384.0PiB"] {
            let wanted = format!("\"{size}\" is out of range: a size is below 16384PiB");
            assert_eq!(capacity(size), wanted);
        }
        for text in ["x%", "inf%", "nan%", "12parsec"] {
            assert!(capacity(text).contains("is not a size such as"), "{text}");
        }
        let largest = "16383PiB".parse::<Bytes>().unwrap();
        assert_eq!("16383.0PiB".parse(), Ok(largest));
        let time = |text: &str| text.parse::<Nanos>().unwrap_err().to_string();
        assert!(time("1m").contains("ns, us, ms, s, min or h"));
        assert!(time("5124096h").ends_with("out of range: a time is at most 5124095h"));
        assert!("5124095h".parse::<Nanos>().is_ok());
    }
}
