//! Converts the meta data of a profile (how it was recorded, and how the run ended) to rows of key and value, and back.
//!
//! ```text
//! format_version 1          depth           4          command.0  ./bfs
//! isotherm       0.1.0      epoch_length_ns 1000000000 command.1  g.el
//! started        2026-...   chunk_bytes     65536      machine.kernel  6.18.0
//! emulated       false      ending          exited     ending_value    0
//! sample_interval_ns 1000000      cache_filter_bytes 32768
//! ```

use isotherm_model::profile::{Ending, Meta};
use isotherm_model::units::{Bytes, Nanos};

use crate::layout::FORMAT_VERSION;
use crate::tables::MetaRow;

/// The rows of this meta data.
pub(crate) fn rows(meta: &Meta, ending: Ending) -> Vec<MetaRow> {
    let row = |key: &str, value: String| MetaRow {
        key: key.to_owned(),
        value,
    };
    let mut rows = vec![
        row("format_version", FORMAT_VERSION.to_string()),
        row("isotherm", meta.isotherm.clone()),
        row("started", meta.started.clone()),
        row("depth", meta.depth.to_string()),
        row("epoch_length_ns", meta.epoch_length.0.to_string()),
        row("chunk_bytes", meta.chunk.0.to_string()),
        row("emulated", meta.emulated.to_string()),
    ];
    let interval = meta.sample_interval;
    rows.extend(interval.map(|interval| row("sample_interval_ns", interval.0.to_string())));
    let filter = meta.cache_filter;
    rows.extend(filter.map(|size| row("cache_filter_bytes", size.0.to_string())));
    let cache = meta.cache;
    rows.extend(cache.map(|size| row("cache_bytes", size.0.to_string())));
    let (word, value) = match ending {
        Ending::Exited(status) => ("exited", Some(status)),
        Ending::Signalled(signal) => ("signalled", Some(signal)),
        Ending::Detached => ("detached", None),
        Ending::Unknown => ("unknown", None),
    };
    rows.push(row("ending", word.to_owned()));
    rows.extend(value.map(|value| row("ending_value", value.to_string())));
    let command = meta.command.iter().enumerate();
    rows.extend(command.map(|(i, word)| row(&format!("command.{i}"), word.clone())));
    let machine = meta.machine.iter();
    rows.extend(machine.map(|(name, value)| row(&format!("machine.{name}"), value.clone())));
    rows
}

/// The meta data in these rows, or what is wrong with them. Unknown keys are left out, so that a
/// later version may add some.
pub(crate) fn read(rows: Vec<MetaRow>) -> Result<(Meta, Ending), String> {
    let mut meta = Meta::default();
    let mut ending = String::new();
    let mut ending_value = 0;
    for MetaRow { key, value } in rows {
        let wrong = |_| format!("its \"{key}\" is \"{value}\", which is no number");
        let number = || value.parse().map_err(wrong);
        match key.as_str() {
            "isotherm" => meta.isotherm = value,
            "started" => meta.started = value,
            "depth" => meta.depth = value.parse().map_err(wrong)?,
            "epoch_length_ns" => meta.epoch_length = Nanos(number()?),
            "chunk_bytes" => meta.chunk = Bytes(number()?),
            "emulated" => meta.emulated = value == "true",
            "sample_interval_ns" => meta.sample_interval = Some(Nanos(number()?)),
            "cache_filter_bytes" => meta.cache_filter = Some(Bytes(number()?)),
            "cache_bytes" => meta.cache = Some(Bytes(number()?)),
            "ending" => ending = value,
            "ending_value" => ending_value = value.parse().map_err(wrong)?,
            _ => {
                if let Some(name) = key.strip_prefix("machine.") {
                    meta.machine.push((name.to_owned(), value));
                } else if key.starts_with("command.") {
                    meta.command.push(value);
                }
            }
        }
    }
    let ending = match ending.as_str() {
        "exited" => Ending::Exited(ending_value),
        "signalled" => Ending::Signalled(ending_value),
        "detached" => Ending::Detached,
        _ => Ending::Unknown,
    };
    Ok((meta, ending))
}
