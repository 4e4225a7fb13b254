//! [`merge`] overwrites the defaults with a configuration file key by key, [`check_keys`] rejects unknown keys, and [`KeyPositions`] adds
//! the line to the message about an invalid value: that of the first key whose value alone makes the defaults invalid. Where values are
//! invalid only together, the message has no line.

use anyhow::{Result, bail};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::checks::Refusal;
use super::keys::{COMMENTED, Config};

/// Overwrites keys with those of a file; sections are merged key by key.
pub(super) fn merge(into: &mut toml::Table, from: toml::Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(toml::Value::Table(into)), toml::Value::Table(from)) => merge(into, from),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

/// Rejects keys that the commented file does not have. `above` are the names of the sections that
/// contain the given table.
pub(super) fn check_keys(
    places: &KeyPositions<'_>,
    above: &mut Vec<String>,
    given: &toml::Table,
    known: &toml::Table,
) -> Result<()> {
    for (key, value) in given {
        above.push(key.clone());
        match (known.get(key), value) {
            (None, _) => {
                let there: Vec<&str> = known.keys().map(String::as_str).collect();
                let line = places.line(above);
                bail!(
                    "line {line}: there is no key `{key}` here; there are {}",
                    there.join(", ")
                );
            }
            // Sections named by the user; their contents are checked when they are parsed.
            (Some(_), _) if key == "groups" => {}
            (Some(toml::Value::Table(known)), toml::Value::Table(given)) => {
                check_keys(places, above, given, known)?;
            }
            _ => {}
        }
        above.pop();
    }
    Ok(())
}

/// Line numbers of the keys of a file.
pub(super) struct KeyPositions<'a> {
    text: &'a str,
    keys: Spanned<DeTable<'a>>,
}

impl<'a> KeyPositions<'a> {
    /// # Errors
    /// The text is not valid TOML.
    pub(super) fn of(text: &'a str) -> Result<Self> {
        let keys = DeTable::parse(text)?;
        Ok(Self { text, keys })
    }

    /// The line of a key, named with its sections from the outside in, from 1.
    fn line(&self, names: &[String]) -> usize {
        let mut table = Some(self.keys.get_ref());
        let mut start = 0;
        for name in names {
            let Some((key, value)) = table.and_then(|table| table.get_key_value(name.as_str()))
            else {
                break;
            };
            start = key.span().start;
            table = match value.get_ref() {
                DeValue::Table(table) => Some(table),
                _ => None,
            };
        }
        let before = self.text.as_bytes().get(..start).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }

    /// The message of a rejection, with the line of the first key whose value alone makes the
    /// defaults invalid; without a line if values conflict.
    pub(super) fn tell(&self, given: &toml::Table, refusal: &Refusal) -> String {
        let found = leaves(given).into_iter().find_map(|(names, alone)| {
            let mut whole: toml::Table = COMMENTED.parse().ok()?;
            merge(&mut whole, alone);
            let wrong = Config::checked(whole).err()?;
            Some((self.line(&names), names, wrong))
        });
        match (found, refusal) {
            (Some((line, names, Refusal::Unread(why))), _) => {
                format!("line {line}: `{}`: {why}", names.join("."))
            }
            (Some((line, _, Refusal::Unfit(why))), _) => format!("line {line}: {why}"),
            (None, Refusal::Unread(why) | Refusal::Unfit(why)) => why.clone(),
        }
    }
}

/// Each value that is not a section: its key and those of its sections from the outside in, and a file with this value only.
fn leaves(table: &toml::Table) -> Vec<(Vec<String>, toml::Table)> {
    let mut all = Vec::new();
    for (name, value) in table {
        let below = match value {
            toml::Value::Table(inner) if !inner.is_empty() => leaves(inner)
                .into_iter()
                .map(|(names, alone)| (names, toml::Value::Table(alone)))
                .collect(),
            _ => vec![(Vec::new(), value.clone())],
        };
        all.extend(below.into_iter().map(|(mut names, value)| {
            names.insert(0, name.clone());
            (names, toml::Table::from_iter([(name.clone(), value)]))
        }));
    }
    all
}
