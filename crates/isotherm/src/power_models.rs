//! `PowerModels` is the value of `--power`, the energy models of the fast tier and of the others: built in, or read from a file of a user
//! who knows more about the memory (TOML).
//!
//! ```toml
//! name = "NVM module of 128 GB"
//! source = "its data sheet, table 4"             # where the figures are from: reports print it
//! background_milliwatts_per_gib = 31.0
//! read_picojoules_per_line = 5120                # a line of 64 bytes
//! write_picojoules_per_line = 20480
//! ```

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use isotherm_sim::{ENERGY_MODELS, EnergyModel, FlatTier, PairPower, PlainPower};
use isotherm_sys::files::read_input_text;
use serde::Deserialize;

/// Largest file that is read; a model takes some hundred bytes.
const FILE_AT_MOST: u64 = 1 << 16;

/// Highest figure of a file: a kilowatt for each GiB, a millijoule for each line.
const HIGHEST: f64 = 1e6;

#[derive(Clone)]
pub(crate) struct PowerModels {
    fast: PowerModel,
    slow: PowerModel,
}

/// A model, and the word by which it was asked for.
#[derive(Clone)]
enum PowerModel {
    BuiltIn(&'static str, &'static dyn EnergyModel),
    File(PathBuf, Arc<PlainPower>),
}

impl fmt::Debug for PowerModels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for PowerModels {
    /// `ddr5`, `ddr5,cxl`: as [`read`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (fast, slow) = (self.fast.word(), self.slow.word());
        match fast == slow {
            true => f.write_str(&fast),
            false => write!(f, "{fast},{slow}"),
        }
    }
}

impl PowerModel {
    fn word(&self) -> String {
        match self {
            Self::BuiltIn(name, _) => (*name).to_owned(),
            Self::File(path, _) => path.display().to_string(),
        }
    }

    fn model(&self) -> &dyn EnergyModel {
        match self {
            Self::BuiltIn(_, model) => *model,
            Self::File(_, model) => model.as_ref(),
        }
    }
}

impl PowerModels {
    /// The models of both tiers.
    pub(crate) fn pair(&self) -> PairPower<'_> {
        PairPower {
            fast: self.fast.model(),
            slow: self.slow.model(),
        }
    }

    /// The model, where both tiers have the same.
    pub(crate) fn only(&self) -> Option<&dyn EnergyModel> {
        (self.fast.word() == self.slow.word()).then(|| self.fast.model())
    }
}

pub(crate) fn names() -> Vec<&'static str> {
    ENERGY_MODELS.iter().map(|(name, _)| *name).collect()
}

/// Parses the value of `--power`: a model, or one for each tier.
///
/// # Errors
/// There is no such model, or its file cannot be read.
pub(crate) fn read(text: &str) -> Result<PowerModels, String> {
    let (fast, slow) = text.split_once(',').unwrap_or((text, text));
    let read = |word: &str| model(word.trim()).map_err(|error| format!("{error:#}"));
    Ok(PowerModels {
        fast: read(fast)?,
        slow: read(slow)?,
    })
}

fn model(word: &str) -> Result<PowerModel> {
    if let Some((name, model)) = ENERGY_MODELS.into_iter().find(|(name, _)| *name == word) {
        return Ok(PowerModel::BuiltIn(name, model));
    }
    let path = Path::new(word);
    if path.extension().is_none_or(|extension| extension != "toml") {
        bail!(
            "there is no power model \"{word}\"; there are {}, files that end in .toml, and two of them joined by a comma for fast and \
             slow memory",
            names().join(", ")
        );
    }
    let text = read_input_text(path, FILE_AT_MOST).with_context(|| word.to_owned())?;
    let model = parse(&text).with_context(|| word.to_owned())?;
    Ok(PowerModel::File(path.to_owned(), Arc::new(model)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelTable {
    name: String,
    source: String,
    background_milliwatts_per_gib: f64,
    read_picojoules_per_line: f64,
    write_picojoules_per_line: f64,
}

fn parse(text: &str) -> Result<PlainPower> {
    let table: ModelTable = toml::from_str(text)?;
    for (key, word) in [("name", &table.name), ("source", &table.source)] {
        if word.trim().is_empty() {
            bail!("{key} is empty; reports print it beside the figures");
        }
    }
    let whole = |key: &str, figure: f64| match (0.0..=HIGHEST).contains(&figure) {
        true => Ok(figure.round() as u64),
        false => bail!("{key} = {figure} is not from 0 to {HIGHEST}"),
    };
    let background = table.background_milliwatts_per_gib;
    Ok(PlainPower {
        words: format!("{} ({})", table.name.trim(), table.source.trim()),
        tier: FlatTier {
            background_mw_per_gib: whole("background_milliwatts_per_gib", background)?,
            read_pj: whole("read_picojoules_per_line", table.read_picojoules_per_line)?,
            write_pj: whole("write_picojoules_per_line", table.write_picojoules_per_line)?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::{parse, read};

    const FILE: &str = "name = \"NVM\"\nsource = \"data sheet\"\nbackground_milliwatts_per_gib = 31\n\
                        read_picojoules_per_line = 5120\nwrite_picojoules_per_line = 20480.4\n";

    #[test]
    fn a_file_is_a_model_that_names_its_source() {
        let model = parse(FILE).expect("a model");
        assert_eq!(model.words, "NVM (data sheet)");
        assert_eq!((model.tier.read_pj, model.tier.write_pj), (5_120, 20_480));
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("nvm.toml");
        std::fs::write(&path, FILE).expect("written");
        let both = read(&format!("ddr5,{}", path.display())).expect("two models");
        assert!(both.only().is_none());
        assert_eq!(both.pair().slow.words(), "NVM (data sheet)");
        assert_eq!(both.to_string(), format!("ddr5,{}", path.display()));
        assert!(read("ddr4").expect("a model").only().is_some());
    }

    #[test]
    fn what_is_no_model_is_refused_with_what_is_wrong() {
        let refused = |from: &str, to: &str| {
            let error = parse(&FILE.replace(from, to)).expect_err("refused");
            format!("{error:#}")
        };
        assert!(refused("= 31", "= -1").contains("background_milliwatts_per_gib = -1"));
        assert!(refused("= 31", "= nan").contains("is not from 0"));
        assert!(refused("\"data sheet\"", "\" \"").contains("source is empty"));
        assert!(refused("name", "title").contains("title"));
        let unknown = read("sram").expect_err("refused");
        assert!(
            unknown.contains("there are flat, ddr4") && unknown.contains(".toml"),
            "{unknown}"
        );
        let missing = read("missing.toml").expect_err("refused");
        assert!(missing.contains("missing.toml"), "{missing}");
    }
}
