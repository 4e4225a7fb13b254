//! Reads plain text and CSV: a header that names columns and units, then one access a line.
//!
//! ```text
//! # text after a hash is a comment
//! time_us,address,access
//! 0,0x7f0000001000,r
//! 0.5,0x7f0000001040,w
//! ```
//!
//! Columns may be in any order. `time_s`, `time_ms`, `time_us` or `time_ns` is required, so is
//! `address` (decimal, or hexadecimal after `0x`) or `address_hex` (bare hexadecimal). Without
//! `access` every access is a read. Other columns are ignored. Values are separated like the names
//! in the header: by commas, by tabs, or by blanks. Times must not decrease: a replay divides the
//! trace into epochs as it reads, and an unsorted trace would be divided wrongly.

use std::io::BufRead;

use isotherm_model::trace::Access;
use isotherm_model::units::Nanos;

use crate::accesses::{Reader, Tally};
use crate::error::{Error, Fault, shown};
use crate::lines::Lines;
use crate::number;

const TIME_COLUMNS: [(&str, u64); 4] = [
    ("time_ns", 1),
    ("time_us", 1_000),
    ("time_ms", 1_000_000),
    ("time_s", 1_000_000_000),
];
const HEADER: &str =
    "a header such as `time_us,address,access` (time_s, time_ms, time_us or time_ns)";

/// The values of a line; `None` separates them by blanks.
fn split(line: &str, separator: Option<char>) -> Vec<&str> {
    match separator {
        Some(separator) => line.split(separator).map(str::trim).collect(),
        None => line.split_whitespace().collect(),
    }
}

/// The columns of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Columns {
    /// The separator between two values; `None` for blanks.
    separator: Option<char>,
    /// The names, for messages.
    names: String,
    count: usize,
    time: usize,
    /// Nanoseconds in one unit of time.
    unit: u64,
    address: usize,
    hexadecimal: bool,
    access: Option<usize>,
}

impl Columns {
    fn parse(header: &str) -> Result<Self, Fault> {
        let separator = [',', '\t'].into_iter().find(|c| header.contains(*c));
        let names = split(header, separator);
        let mut time = None;
        let mut address = None;
        let mut access = None;
        for (index, name) in names.iter().enumerate() {
            let unit = TIME_COLUMNS.iter().find(|(known, _)| known == name);
            let twice = match *name {
                "address" => address.replace((index, false)).is_some(),
                "address_hex" => address.replace((index, true)).is_some(),
                "access" => access.replace(index).is_some(),
                _ => match unit {
                    Some((_, unit)) => time.replace((index, *unit)).is_some(),
                    None if name.starts_with("time") => return Err(wrong_unit(name)),
                    None => false,
                },
            };
            if twice {
                let found = format!("{} is the second column of its kind", shown(name));
                return Err(Fault::new(found, HEADER));
            }
        }
        let missing = |what: &str| Fault::new(format!("the first line names no {what}"), HEADER);
        let (time, unit) = time.ok_or_else(|| missing("time column"))?;
        let (address, hexadecimal) = address.ok_or_else(|| missing("address column"))?;
        Ok(Self {
            separator,
            names: names.join(", "),
            count: names.len(),
            time,
            unit,
            address,
            hexadecimal,
            access,
        })
    }

    fn access(&self, line: &str) -> Result<Access, Fault> {
        let values = split(line, self.separator);
        if values.len() != self.count {
            let found = format!("the line has {} values", values.len());
            let expected = format!("{}, as in the header: {}", self.count, self.names);
            return Err(Fault::new(found, expected));
        }
        let address = match self.hexadecimal {
            true => number::hexadecimal_address(values[self.address]),
            false => number::address(values[self.address]),
        };
        Ok(Access {
            time: Nanos(number::time(values[self.time], self.unit)?),
            address: address?,
            write: self.access.map_or(Ok(false), |at| is_write(values[at]))?,
        })
    }
}

fn wrong_unit(name: &str) -> Fault {
    let name = shown(name);
    let found = format!("the time column {name} has no unit, or an unknown one");
    Fault::new(found, "time_s, time_ms, time_us or time_ns")
}

fn is_write(word: &str) -> Result<bool, Fault> {
    let is = |words: &[&str]| words.iter().any(|known| known.eq_ignore_ascii_case(word));
    if is(&["r", "read", "l", "load"]) {
        Ok(false)
    } else if is(&["w", "write", "s", "store"]) {
        Ok(true)
    } else {
        let found = format!("the access {} is neither a read nor a write", shown(word));
        Err(Fault::new(found, "r, read, load, w, write or store"))
    }
}

/// True where the line is a header of this format.
pub(crate) fn is_header(line: &str) -> bool {
    Columns::parse(line).is_ok()
}

/// True for a line without data.
pub(crate) fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

/// Accesses of a text trace.
pub(crate) struct Text<R> {
    lines: Lines<R>,
    columns: Option<Columns>,
    /// Time of the access before, and its line.
    last: (u64, u64),
    tally: Tally,
}

impl<R: BufRead> Text<R> {
    pub(crate) fn new(source: R, file: &str) -> Self {
        Self {
            lines: Lines::new(source, file),
            columns: None,
            last: (0, 0),
            tally: Tally::default(),
        }
    }

    fn in_order(&self, access: &Access) -> Result<(), Fault> {
        let (time, line) = self.last;
        if access.time.0 >= time {
            return Ok(());
        }
        let now = access.time.0;
        let found = format!("the time {now} ns is before the {time} ns of line {line}");
        Err(Fault::new(found, "lines in the order of time (sort them)"))
    }
}

impl<R: BufRead> Reader for Text<R> {
    fn next_access(&mut self) -> Result<Option<Access>, Error> {
        loop {
            let Some(line) = self.lines.next_line()? else {
                return Ok(None);
            };
            if is_comment(&line) {
                continue;
            }
            let Some(columns) = &self.columns else {
                let columns = Columns::parse(&line);
                self.columns = Some(self.lines.checked(columns)?);
                continue;
            };
            let access = columns.access(&line);
            let access = self.lines.checked(access)?;
            self.lines.checked(self.in_order(&access))?;
            self.last = (access.time.0, self.lines.number());
            self.tally.records += 1;
            return Ok(Some(access));
        }
    }

    fn tally(&self) -> Tally {
        self.tally
    }
}

#[cfg(test)]
mod tests {
    use super::{Columns, is_write};

    #[test]
    fn columns_stand_in_any_order_and_others_are_passed_over() {
        let columns = Columns::parse("access address_hex size time_ms").unwrap();
        assert_eq!(columns.separator, None);
        let access = columns.access("W   7fff0000 8  1.5").unwrap();
        assert_eq!(
            (access.time.0, access.address, access.write),
            (1_500_000, 0x7fff_0000, true)
        );
    }

    #[test]
    fn a_header_without_unit_without_column_or_with_two_of_a_kind_is_refused_with_the_reason() {
        for (header, what) in [
            ("time,address", "no unit"),
            ("time_min,address", "no unit"),
            ("address,access", "names no time"),
            ("time_us,access", "names no address"),
            ("time_us,time_ns,address", "second column"),
            ("0,0x1000,r", "names no time"),
        ] {
            let fault = Columns::parse(header).unwrap_err();
            assert!(fault.found.contains(what), "{header}: {fault:?}");
        }
    }

    #[test]
    fn reads_and_writes_have_several_words() {
        for (word, write) in [("R", false), ("load", false), ("Store", true), ("w", true)] {
            assert_eq!(is_write(word), Ok(write));
        }
        assert!(is_write("0").is_err());
    }
}
