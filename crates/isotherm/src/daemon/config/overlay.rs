//! A file over the defaults: merged key by key, and errors told with the line of the file.

use anyhow::{Result, bail};

use super::{COMMENTED, Config};

/// Puts what a file gives over what is there; sections go key by key.
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

/// Refuses keys that the commented file does not have.
pub(super) fn check_keys(text: &str, given: &toml::Table, known: &toml::Table) -> Result<()> {
    for (key, value) in given {
        match (known.get(key), value) {
            (None, _) => {
                let there: Vec<&str> = known.keys().map(String::as_str).collect();
                let line = line_of(text, key);
                bail!(
                    "line {line}: there is no key `{key}` here; there are {}",
                    there.join(", ")
                );
            }
            // By names that nobody knows before; what stands below them is checked as it is read.
            (Some(_), _) if key == "groups" => {}
            (Some(toml::Value::Table(known)), toml::Value::Table(given)) => {
                check_keys(text, given, known)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// The line in which a key stands first, from 1.
fn line_of(text: &str, key: &str) -> usize {
    let names = |line: &str| {
        let line = line.trim_start().trim_start_matches('[');
        let line = line.strip_prefix("groups.").unwrap_or(line);
        let line = line.trim_start_matches('"');
        line.strip_prefix(key)
            .is_some_and(|rest| rest.trim_start().starts_with(['=', ']', '"', '.']))
    };
    text.lines().position(names).map_or(1, |line| line + 1)
}

/// The error of the merged file with the line in the given one: the first key there whose value
/// alone makes the defaults invalid.
pub(super) fn with_line(text: &str, given: &toml::Table, error: &toml::de::Error) -> String {
    let wrong = |table: toml::Table| {
        let mut whole: toml::Table = COMMENTED.parse().unwrap_or_default();
        merge(&mut whole, table);
        whole.try_into::<Config>().is_err()
    };
    for (section, value) in given {
        let entries = match value {
            toml::Value::Table(table) => table.clone(),
            _ => toml::Table::from_iter([(section.clone(), value.clone())]),
        };
        for (key, value) in entries {
            let one = toml::Table::from_iter([(key.clone(), value)]);
            let alone = match given[section].is_table() {
                true => toml::Table::from_iter([(section.clone(), toml::Value::Table(one))]),
                false => one,
            };
            if wrong(alone) {
                return format!("line {}: `{key}`: {}", line_of(text, &key), error.message());
            }
        }
    }
    error.message().to_owned()
}
