//! `open` opens the input of `isotherm simulate`, `curve` and `import`, an Isotherm profile or a file of another tool, as the flags of
//! `Reading` say; `workload` makes of it what `simulate` replays. Other functions here parse flag values for many commands: sizes, shares,
//! slow-downs and times.

use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use clap::Args;
use isotherm_model::count_unit::CountUnit;
use isotherm_model::profile::Profile;
use isotherm_model::units::{Bytes, Capacity, Nanos};
use isotherm_pipeline::{CountWorth, count_worth};
use isotherm_sim::generate::{LARGEST_FOOTPRINT, SMALLEST_FOOTPRINT};
use isotherm_sim::{EpochLength, Workload};
use isotherm_trace::{Accesses, Format, Grain, Trace};

use crate::known_values::KnownValues;
use isotherm_console::Console;

/// Default page of a trace, and the smallest.
pub(crate) const PAGE: Bytes = Bytes(4096);
/// Largest page of a trace and unit of a run, the largest huge page of x86-64: larger ones hold hot and cold data alike.
const LARGEST_PAGE: Bytes = Bytes(1 << 30);
/// Default number of epochs of a trace: enough for a policy to adapt and to
/// show that it follows changes.
pub(crate) const EPOCHS: u64 = 64;

/// A format that these commands read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputFormat {
    /// A profile of Isotherm, a directory.
    Profile,
    /// A file of another tool.
    Other(Format),
}

impl InputFormat {
    /// The flag that selects it, to append to a command.
    pub(crate) fn option(self) -> String {
        let word = match self {
            Self::Profile => "profile",
            Self::Other(format) => format.word(),
        };
        format!(" --format {word}")
    }
}

/// The formats, as a flag with known values.
pub(crate) const FORMATS: KnownValues<InputFormat> = KnownValues::new(formats, format);

/// How to read a file that may be of several formats.
#[derive(Clone, Debug, Args)]
pub(crate) struct Reading {
    /// The file's format: profile, text, perf-script, perf-data, damon-trace, damo-record, memprof
    /// or memprof-raw [default: detected from its content]
    #[arg(long, value_name = "FORMAT", value_parser = FORMATS, hide_possible_values = true)]
    pub format: Option<InputFormat>,
    /// Size of the pages into which a trace is cut, a power of two from 4KiB to 1GiB [default: 4KiB;
    /// 64KiB for DAMON and MemProf]. Profiles of Isotherm keep their chunks
    #[arg(long, value_name = "SIZE", value_parser = page)]
    pub page: Option<Bytes>,
    /// Length of an epoch [default: 1s for DAMON, else a 64th of the trace]. Profiles of Isotherm keep
    /// theirs
    #[arg(long, value_name = "TIME", value_parser = epoch)]
    pub epoch: Option<Nanos>,
}

impl Reading {
    /// The given flags, to append to a command that reads the same input.
    pub(crate) fn options(&self) -> String {
        let mut options = self.format.map(InputFormat::option).unwrap_or_default();
        if let Some(page) = self.page {
            options += &format!(" --page {}", page.exact());
        }
        if let Some(epoch) = self.epoch {
            options += &format!(" --epoch {}", epoch.exact());
        }
        options
    }
}

/// The values of `--format`.
pub(crate) fn formats() -> Vec<&'static str> {
    let others = Format::ALL.map(Format::word);
    std::iter::once("profile").chain(others).collect()
}

/// Parses the value of `--format`.
///
/// # Errors
/// There is no such format.
pub(crate) fn format(word: &str) -> Result<InputFormat, String> {
    if word == "profile" {
        return Ok(InputFormat::Profile);
    }
    Format::from_word(word)
        .map(InputFormat::Other)
        .ok_or_else(|| {
            let known = formats().join(", ");
            format!("there is no format \"{word}\"; there are {known}")
        })
}

/// The full form of a size with a short unit, `4GiB` of `4G`; None for any other text.
pub(crate) fn with_whole_unit(text: &str) -> Option<String> {
    let text = text.trim();
    let number = text.strip_suffix(['K', 'M', 'G', 'T', 'P'])?;
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    (!number.is_empty() && number.chars().all(is_number)).then(|| format!("{text}iB"))
}

/// Parses a size (`Bytes`), or a size or a share of a footprint (`Capacity`); `4G` as `4GiB`, which the command line reports.
///
/// # Errors
/// The text is none.
pub(crate) fn size<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    let whole = with_whole_unit(text);
    let read = whole.as_deref().unwrap_or(text).parse();
    read.map_err(|error: T::Err| error.to_string())
}

/// Parses a share, above 0 and at most 100 %.
///
/// # Errors
/// The text is no such share.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(Capacity::Share(share)) => Ok(share),
        Ok(Capacity::Bytes(_)) | Err(_) => {
            Err("is no share such as 2%, above 0 and at most 100%".to_owned())
        }
    }
}

/// Parses a slow-down, a share of the time that a program takes otherwise: 0 % or more.
///
/// # Errors
/// The text is no such share.
pub(crate) fn slowdown(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').map(str::trim);
    let percent = number.and_then(|number| number.parse::<f64>().ok());
    percent
        .filter(|percent| percent.is_finite() && percent.is_sign_positive())
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "is no slow-down such as 2%, from 0% on".to_owned())
}

/// Parses the value of `--page` or `--unit`, the size of a piece of memory that is hot or cold, and moves, as a whole.
///
/// # Errors
/// The text is no size, no power of two, or out of range.
pub(crate) fn page(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = size(text)?;
    if !(PAGE..=LARGEST_PAGE).contains(&bytes) || !bytes.0.is_power_of_two() {
        return Err(format!(
            "{bytes} is no power of two from {PAGE} to {LARGEST_PAGE}"
        ));
    }
    Ok(bytes)
}

/// Parses the value of `--device-capacity`.
///
/// # Errors
/// The text is not a size, or zero.
pub(crate) fn device_capacity(text: &str) -> Result<Bytes, String> {
    match size(text)? {
        Bytes::ZERO => Err("a device of no size holds no data".to_owned()),
        bytes => Ok(bytes),
    }
}

/// Parses the value of `--footprint`.
///
/// # Errors
/// The text is not a size, or out of the range of the generators.
pub(crate) fn footprint(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = size(text)?;
    if !(SMALLEST_FOOTPRINT..=LARGEST_FOOTPRINT).contains(&bytes) {
        return Err(format!(
            "a trace is generated of {} to {}",
            SMALLEST_FOOTPRINT.exact(),
            LARGEST_FOOTPRINT.exact()
        ));
    }
    Ok(bytes)
}

/// Parses the value of `--epoch`.
///
/// # Errors
/// The text is not a time, or zero.
pub(crate) fn epoch(text: &str) -> Result<Nanos, String> {
    let length: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    match length {
        Nanos::ZERO => Err("an epoch must be longer than nothing".to_owned()),
        length => Ok(length),
    }
}

/// Shortest time of `--java-stacks`: some pauses between samples, which take 20 ms at most.
const SHORTEST_COOLING: Nanos = Nanos(50_000_000);

/// Longest time of `--java-stacks`.
const LONGEST_COOLING: Nanos = Nanos(1_000_000_000_000);

/// Parses the value of `--java-stacks`.
///
/// # Errors
/// The text is not a time, or out of the range of the virtual machine.
pub(crate) fn cooling(text: &str) -> Result<Nanos, String> {
    let time: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    if !(SHORTEST_COOLING..=LONGEST_COOLING).contains(&time) {
        return Err("a class cools in 50 ms to 1000 s".to_owned());
    }
    Ok(time)
}

/// The content of a file.
pub(crate) enum Input {
    /// Sums by epoch and chunk.
    Profile(Box<Profile>),
    /// Single accesses, to be read.
    Accesses(Accesses),
}

/// Opens the file at the path. A directory is a profile, whatever its name.
///
/// # Errors
/// It cannot be read, or does not have its format.
pub(crate) fn open(path: &Path, reading: &Reading, console: Console) -> Result<Input> {
    let ours = match reading.format {
        Some(InputFormat::Profile) => true,
        Some(InputFormat::Other(_)) => false,
        None => path.is_dir(),
    };
    if ours {
        if reading.page.is_some() || reading.epoch.is_some() {
            bail!(
                "{}: a profile of Isotherm keeps the chunks and epochs with which it was recorded; \
                 leave out --page and --epoch",
                path.display()
            );
        }
        let profile = crate::commands::read_placeable(path, console)?;
        return Ok(Input::Profile(Box::new(profile)));
    }
    let format = match reading.format {
        Some(InputFormat::Other(format)) => Some(format),
        _ => None,
    };
    let default = Grain::default();
    let grain = Grain {
        epoch: reading.epoch.unwrap_or(default.epoch),
        chunk: reading.page.unwrap_or(default.chunk),
    };
    Ok(match isotherm_trace::open(path, format, grain)? {
        Trace::Profile(profile) => {
            let diagnostics = profile.sources.iter().map(|source| &source.warning);
            diagnostics
                .filter(|problem| !problem.is_empty())
                .for_each(|problem| console.warn(&format!("{}: {problem}", path.display())));
            Input::Profile(profile)
        }
        Trace::Accesses(accesses) => Input::Accesses(accesses),
    })
}

/// A workload, the unit of its counts, and the accesses that one count stands for.
pub(crate) struct Replayable {
    pub workload: Workload,
    pub counted: CountUnit,
    pub worth: CountWorth,
}

/// Whether the accesses of a trace are all accesses or samples.
pub(crate) fn counted(accesses: &Accesses) -> CountUnit {
    match accesses.tally().sampled {
        true => CountUnit::Unknown,
        false => CountUnit::Accesses,
    }
}

/// Reads the file at the path, ready to be replayed.
///
/// # Errors
/// As [`open`]; or it contains nothing to replay.
pub(crate) fn workload(path: &Path, reading: &Reading, console: Console) -> Result<Replayable> {
    let shown = || path.display().to_string();
    let progress = console.progress("reading the trace");
    let read = match open(path, reading, console)? {
        Input::Profile(profile) => Replayable {
            workload: Workload::of_profile(&profile).with_context(shown)?,
            counted: profile.counted(),
            worth: count_worth(&profile),
        },
        Input::Accesses(accesses) => {
            let length = match reading.epoch {
                Some(length) => length,
                None => part_of(accesses, EPOCHS)?,
            };
            let Input::Accesses(accesses) = open(path, reading, console)? else {
                bail!("{}: it changed while it was read", path.display());
            };
            let page = reading.page.unwrap_or(PAGE);
            replayable(path, accesses, page, EpochLength::Time(length), console)?
        }
    };
    progress.finish_and_clear();
    Ok(read)
}

/// The length of one of the equal parts of a trace, at least a nanosecond.
fn part_of(accesses: Accesses, parts: u64) -> Result<Nanos> {
    let mut last = Nanos::ZERO;
    for access in accesses {
        last = access?.time;
    }
    // The last access itself belongs to the last part.
    Ok(Nanos(last.0 / parts + 1))
}

fn replayable(
    path: &Path,
    mut accesses: Accesses,
    page: Bytes,
    epoch: EpochLength,
    console: Console,
) -> Result<Replayable> {
    let mut failed = None;
    let readable = accesses.by_ref().map_while(|access| match access {
        Ok(access) => Some(access),
        Err(error) => {
            failed = Some(error);
            None
        }
    });
    let workload = Workload::of_trace(readable, page, epoch);
    if let Some(error) = failed {
        return Err(error.into());
    }
    warn_of(path, &accesses, console);
    let counted = counted(&accesses);
    Ok(Replayable {
        workload: workload.with_context(|| path.display().to_string())?,
        counted,
        worth: match counted {
            CountUnit::Accesses => CountWorth::OneAccess,
            _ => CountWorth::Unknown,
        },
    })
}

/// Warns of samples that could not be used, and of processes that cannot be distinguished.
pub(crate) fn warn_of(path: &Path, accesses: &Accesses, console: Console) {
    let tally = accesses.tally();
    if tally.without_address > 0 {
        console.warn(&format!(
            "{}: {} of {} samples have no data address and are left out",
            path.display(),
            tally.without_address,
            tally.records
        ));
    }
    if tally.processes > 1 {
        console.warn(&format!(
            "{}: {} processes are treated as one; print one of them with `perf script --pid N`",
            path.display(),
            tally.processes
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::{InputFormat, epoch, format, page, slowdown};
    use crate::cli::Cli;
    use clap::Parser;
    use isotherm_model::units::Bytes;
    use isotherm_trace::Format;

    #[test]
    fn words_are_read_and_others_are_refused_with_the_list() {
        assert_eq!(format("profile"), Ok(InputFormat::Profile));
        let text = format(Format::Text.word());
        assert_eq!(text, Ok(InputFormat::Other(Format::Text)));
        assert!(format("csv").unwrap_err().contains("profile, text"));
        let words = ["isotherm", "simulate", "app.iso", "--source", "pebs"];
        let refused = Cli::try_parse_from(words).unwrap_err().to_string();
        assert!(refused.contains("exact"), "{refused}");
    }

    #[test]
    fn a_slow_down_is_a_percentage_from_nothing_on() {
        let read = ["0%", "2 %", "0.5%", "150%"].map(slowdown);
        assert_eq!(read, [Ok(0.0), Ok(0.02), Ok(0.005), Ok(1.5)]);
        for text in ["-1%", "-0%", "2", "%", "inf%", "nan%", "1.02x"] {
            assert!(slowdown(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_page_is_a_power_of_two_and_an_epoch_longer_than_nothing() {
        assert_eq!(page("64KiB"), Ok(Bytes(65_536)));
        for text in ["1KiB", "12KiB", "4096"] {
            assert!(page(text).is_err(), "{text}");
        }
        assert_eq!(page("1GiB"), Ok(Bytes(1 << 30)));
        for text in ["2GiB", "8192PiB"] {
            let said = page(text).unwrap_err();
            assert!(said.contains("from 4 KiB to 1 GiB"), "{said}");
        }
        assert!(epoch("0s").is_err() && epoch("5").is_err() && epoch("1ms").is_ok());
    }
}
