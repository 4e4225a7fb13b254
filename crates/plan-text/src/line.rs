//! [`Line`] is one line of a plan's text, split into words and a comment, for the modules that read plans. Its methods read numbers, sizes,
//! tiers and name-value pairs ([`Pairs`]) from the words; an error is a [`PlanTextError`], with the number of the line.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use isotherm_model::tier::{TierIndex, Tiers};

use super::words::quoted_word;

/// Why a text is not a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct PlanTextError {
    /// Line, from 1.
    pub line: usize,
    /// The error, and the correct form.
    pub what: String,
}

/// One line: its number, its words, and the text after `#`.
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) words: Vec<String>,
    pub(super) comment: String,
}

impl Line {
    pub(super) fn wrong<T>(&self, what: impl Into<String>) -> Result<T, PlanTextError> {
        Err(PlanTextError {
            line: self.number,
            what: what.into(),
        })
    }

    pub(super) fn split(number: usize, text: &str) -> Result<Self, PlanTextError> {
        let mut line = Self {
            number,
            words: Vec::new(),
            comment: String::new(),
        };
        let mut rest = text.trim();
        while !rest.is_empty() {
            if let Some(comment) = rest.strip_prefix('#') {
                line.comment = comment.trim().to_owned();
                break;
            }
            let length = if rest.starts_with('"') {
                let Some((word, length)) = quoted_word(rest) else {
                    return line.wrong("a word opens with a double quote and never closes");
                };
                line.words.push(word);
                length
            } else {
                let length = rest
                    .find(|c: char| c.is_whitespace() || c == '#')
                    .unwrap_or(rest.len());
                line.words.push(rest[..length].to_owned());
                length
            };
            let apart = rest[length..].starts_with(|c: char| c.is_whitespace() || c == '#');
            if !apart && length < rest.len()
                || !rest.starts_with('"') && rest[..length].contains('"')
            {
                return line.wrong("a double quote stands inside a word; quote the whole word");
            }
            rest = rest[length..].trim_start();
        }
        Ok(line)
    }

    /// The single argument of the line.
    pub(super) fn only(&self) -> Result<&str, PlanTextError> {
        match self.words.as_slice() {
            [_, word] => Ok(word),
            [name, ..] => self.wrong(format!("`{name}` takes one word")),
            [] => self.wrong("the line is empty"),
        }
    }

    pub(super) fn number<T: FromStr>(&self, name: &str, text: &str) -> Result<T, PlanTextError> {
        // The standard parser accepts a leading plus; the format does not.
        match text.parse() {
            Ok(number) if !text.starts_with('+') => Ok(number),
            _ => self.wrong(format!("{name} \"{text}\" is not a whole number in range")),
        }
    }

    pub(super) fn quantity<T>(&self, name: &str, text: &str) -> Result<T, PlanTextError>
    where
        T: FromStr,
        T::Err: fmt::Display,
    {
        text.parse()
            .or_else(|error| self.wrong(format!("{name}: {error}")))
    }

    /// A whole number of at most `most`.
    pub(super) fn bounded<T>(&self, name: &str, text: &str, most: T) -> Result<T, PlanTextError>
    where
        T: FromStr + PartialOrd + fmt::Display,
    {
        let number = self.number(name, text)?;
        self.at_most(name, number, &most)
    }

    /// The number if it is at most `most`: a larger one is a mistake or an attack.
    pub(super) fn at_most<T>(&self, name: &str, number: T, most: &T) -> Result<T, PlanTextError>
    where
        T: PartialOrd + fmt::Display,
    {
        match number <= *most {
            true => Ok(number),
            false => self.wrong(format!(
                "{name}: {number} is out of range, the most that is taken is {most}; correct the line, or make \
                 the plan again from its profile"
            )),
        }
    }

    /// The tier of this name.
    pub(super) fn tier(&self, tiers: &Tiers, name: &str) -> Result<TierIndex, PlanTextError> {
        match tiers.find(name) {
            Some(index) => Ok(index),
            None => {
                let names: Vec<&str> = tiers.all().iter().map(|tier| tier.name.as_str()).collect();
                let names = names.join(", ");
                self.wrong(format!("unknown tier \"{name}\"; the tiers are {names}"))
            }
        }
    }

    /// The words from `first` on as name and value pairs, each name at most once.
    pub(super) fn pairs(&self, first: usize) -> Result<Pairs<'_>, PlanTextError> {
        let mut values = BTreeMap::new();
        for pair in self.words.get(first..).unwrap_or_default().chunks(2) {
            let [name, value] = pair else {
                return self.wrong(format!("`{}` lacks its value", pair[0]));
            };
            if values.insert(name.as_str(), value.as_str()).is_some() {
                return self.wrong(format!("`{name}` is given twice"));
            }
        }
        Ok(Pairs { line: self, values })
    }
}

/// The pairs of a line that were not read yet.
pub(super) struct Pairs<'a> {
    line: &'a Line,
    values: BTreeMap<&'a str, &'a str>,
}

impl<'a> Pairs<'a> {
    pub(super) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// The value of this name, if it is given.
    pub(super) fn given(&mut self, name: &str) -> Option<&'a str> {
        self.values.remove(name)
    }

    /// The value of this name, which must be given.
    pub(super) fn text(&mut self, name: &str) -> Result<&'a str, PlanTextError> {
        match self.given(name) {
            Some(value) => Ok(value),
            None => self.line.wrong(format!("`{name}` is missing")),
        }
    }

    /// The value of this name, which must be given, as [`Line::quantity`] reads it.
    pub(super) fn quantity<T>(&mut self, name: &str) -> Result<T, PlanTextError>
    where
        T: FromStr,
        T::Err: fmt::Display,
    {
        let text = self.text(name)?;
        self.line.quantity(name, text)
    }

    /// The value of this name, if it is given, as [`Line::quantity`] reads it.
    pub(super) fn optional<T>(&mut self, name: &str) -> Result<Option<T>, PlanTextError>
    where
        T: FromStr,
        T::Err: fmt::Display,
    {
        let text = self.given(name);
        text.map(|text| self.line.quantity(name, text)).transpose()
    }

    /// A quantity of at most `most`.
    pub(super) fn quantity_to<T>(&mut self, name: &str, most: &T) -> Result<T, PlanTextError>
    where
        T: FromStr + PartialOrd + fmt::Display,
        T::Err: fmt::Display,
    {
        let quantity = self.quantity(name)?;
        self.line.at_most(name, quantity, most)
    }

    /// A whole number of at most `most`.
    pub(super) fn bounded<T>(&mut self, name: &str, most: T) -> Result<T, PlanTextError>
    where
        T: FromStr + PartialOrd + fmt::Display,
    {
        let text = self.text(name)?;
        self.line.bounded(name, text, most)
    }

    /// Refuses pairs that were not read.
    pub(super) fn done(&self) -> Result<(), PlanTextError> {
        match self.values.keys().next() {
            Some(name) => self.line.wrong(format!("`{name}` is not known here")),
            None => Ok(()),
        }
    }
}
