//! Reads recordings of other tools: single accesses, or profiles with access counts, and either as what the daemon would have observed
//! ([`Replay`]). Each format has a module of its own; `docs/traces.md` describes each with an example.
//!
//! ```text
//! text, perf script, perf.data            --> Access, Access, ...   (one at a time)
//! DAMON traces, damo records, MemProf     --> Profile               (sums by epoch and chunk)
//! either                                  --> Observation, ...      (one an epoch, as for the daemon)
//! ```
//!
//! Files are read as streams: a trace of many gigabytes takes no more memory than a short one, and
//! a profile as much as its sums. For any input bytes, the result is a value or an [`Error`] that
//! names the file, the place and the expected form; no input causes a panic. Isotherm's own
//! profiles are directories and read by `isotherm-profile`.
//!
//! ```
//! use std::io::Cursor;
//! use isotherm_trace::{Format, accesses};
//! let trace = "time_us,address,access\n0,0x1000,r\n0.5,0x1040,w\n";
//! let format = Format::guess(trace.as_bytes()).expect("the header identifies the format");
//! let read: Result<Vec<_>, _> = accesses(format, "a.csv", Cursor::new(trace))?.collect();
//! assert!(read?[1].write);
//! # Ok::<(), isotherm_trace::Error>(())
//! ```
#![forbid(unsafe_code)]

mod accesses;
mod damo_record;
mod damon;
mod damon_trace;
mod error;
mod format;
mod grain;
mod lines;
mod memprof;
mod number;
mod perf_data;
mod perf_script;
mod replay;
mod sample;
mod site_hash;
mod text;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use isotherm_model::profile::Profile;
use isotherm_sys::files::open_input;

pub use accesses::{Accesses, Tally};
pub use error::Error;
use error::{Fault, Place};
pub use format::{Format, HEAD};
pub use grain::Grain;
pub use replay::{Cut, Replay};
use sample::Samples;

/// Largest file that is read. Traces are streams, so memory is no limit; at a hundred million
/// accesses a minute reading a file of this size takes hours.
const FILE_BYTES: u64 = 1 << 40;

/// The content of a file.
#[derive(Debug)]
pub enum Trace {
    /// Single accesses.
    Accesses(Accesses),
    /// Sums. A box, because the profile is far larger.
    Profile(Box<Profile>),
}

/// Opens a file and detects its format if none is given. Accesses are read later, one by one; a
/// profile is read at once, in epochs and chunks of `grain`.
///
/// # Errors
/// The file cannot be read, has no known format, or does not follow its format.
pub fn open(path: &Path, format: Option<Format>, grain: Grain) -> Result<Trace, Error> {
    let name = path.display().to_string();
    let failed = |source| Error::read(&name, source);
    let mut file = open_input(path, FILE_BYTES).map_err(failed)?;
    let format = match format {
        Some(format) => format,
        None => guess(&mut file, &name)?,
    };
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let source = BufReader::new(file);
    if format.has_single_accesses() {
        accesses(format, &name, source).map(Trace::Accesses)
    } else {
        let profile = profile(format, &name, source, grain)?;
        Ok(Trace::Profile(Box::new(profile)))
    }
}

fn guess(file: &mut File, name: &str) -> Result<Format, Error> {
    let mut head = Vec::new();
    let mut begin = file.take(HEAD as u64);
    begin
        .read_to_end(&mut head)
        .map_err(|source| Error::read(name, source))?;
    Format::guess(&head).ok_or_else(|| {
        let known = Format::ALL.map(Format::word).join(", ");
        let fault = Fault::new(
            "its beginning matches no known format",
            format!("one of {known}, named with --format if it is one after all"),
        );
        fault.at(name, Place::Whole)
    })
}

/// The accesses of a source in a format with single accesses; `name` is for messages.
///
/// # Errors
/// The format holds no single accesses, or the beginning does not follow it. The iterator reports
/// later errors.
pub fn accesses(
    format: Format,
    name: &str,
    source: impl BufRead + Seek + 'static,
) -> Result<Accesses, Error> {
    Ok(match format {
        Format::Text => Accesses::new(text::Text::new(source, name), name),
        Format::PerfScript => {
            let samples = Samples::new(perf_script::samples(source, name));
            Accesses::new(samples, name)
        }
        Format::PerfData => {
            let samples = Samples::new(perf_data::PerfData::open(source, name)?);
            Accesses::new(samples, name)
        }
        Format::DamonTrace | Format::DamoRecord | Format::MemProf | Format::MemProfRaw => {
            let found = format!("{} files hold sums, not single accesses", format.word());
            return Err(Fault::new(found, "text, perf-script or perf-data").at(name, Place::Whole));
        }
    })
}

/// The profile of a source in a format with sums; `name` is for messages.
///
/// # Errors
/// The format holds single accesses, or the source does not follow it.
pub fn profile(
    format: Format,
    name: &str,
    source: impl BufRead + 'static,
    grain: Grain,
) -> Result<Profile, Error> {
    match format {
        Format::DamonTrace => damon_trace::read(source, name, grain),
        Format::DamoRecord => damo_record::read(source, name, grain),
        Format::MemProf => memprof::read(source, name, grain),
        Format::MemProfRaw => memprof::raw::read(source, name, grain),
        Format::Text | Format::PerfScript | Format::PerfData => {
            let found = format!("{} files hold single accesses, not sums", format.word());
            let expected = "damon-trace, damo-record, memprof or memprof-raw";
            Err(Fault::new(found, expected).at(name, Place::Whole))
        }
    }
}
