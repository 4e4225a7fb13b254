//! Reads the file of a bandwidth model and makes its text: how many memory devices hot data needs at a bandwidth (TOML). `isotherm
//! fit-bandwidth` writes the file; `--bandwidth-model` and `--remap` read it.
//!
//! ```toml
//! # fitted by isotherm fit-bandwidth from 44 runs
//! bounds = ["1.2GB/s", "2.3GB/s", "3.1GB/s"]    # one device below the first, two below the second, ...
//! ```

use std::path::Path;

use anyhow::{Context, Error, Result};
use isotherm_policy::energy::BandwidthModel;
use isotherm_sys::files::read_input_text;
use serde::{Deserialize, Serialize};

use crate::cli_devices::bandwidth;

/// Largest file that is read: a thousand bounds take some ten kilobytes.
const FILE_AT_MOST: u64 = 1 << 20;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ModelTable {
    bounds: Vec<String>,
}

/// Reads a model.
///
/// # Errors
/// The file cannot be read, or it is no model.
pub(crate) fn read(path: &Path) -> Result<BandwidthModel> {
    let shown = path.display().to_string();
    let text = read_input_text(path, FILE_AT_MOST).context(shown.clone())?;
    parse(&text).context(shown)
}

fn parse(text: &str) -> Result<BandwidthModel> {
    let table: ModelTable = toml::from_str(text)?;
    let bounds = table.bounds.iter().map(|text| bandwidth(text));
    let bounds: Result<Vec<u64>, String> = bounds.collect();
    Ok(BandwidthModel::new(bounds.map_err(Error::msg)?)?)
}

/// The text of a model, which [`read`] reads back.
///
/// # Errors
/// None: a list of words can be written.
pub(crate) fn text(model: &BandwidthModel, heading: &str) -> Result<String> {
    let bounds = model.bounds().iter().map(|bound| format!("{bound}B/s"));
    let table = ModelTable {
        bounds: bounds.collect(),
    };
    Ok(format!("# {heading}\n{}", toml::to_string(&table)?))
}

#[cfg(test)]
mod tests {
    use super::{parse, text};
    use isotherm_policy::energy::BandwidthModel;

    #[test]
    fn a_model_is_read_as_it_is_written() {
        let model = BandwidthModel::paper();
        let text = text(&model, "by hand").unwrap();
        assert!(
            text.starts_with("# by hand\nbounds = [\"10100000000B/s\""),
            "{text}"
        );
        assert_eq!(parse(&text).unwrap(), model);
        assert_eq!(
            parse("bounds = [\"1GB/s\"]")
                .unwrap()
                .devices(2_000_000_000),
            2
        );
    }

    #[test]
    fn what_is_no_model_is_refused_with_its_reason() {
        for (text, part) in [
            ("", "missing field"),
            ("bounds = [5]", "invalid type"),
            ("bounds = [\"5GB\"]", "write 8GB/s"),
            (
                "bounds = [\"5GB/s\", \"4GB/s\"]",
                "from the lowest to the highest",
            ),
            ("bounds = []\nunit = 5", "unknown field"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
