//! [`add_sensitivity`] and [`add_isolation`] each add a table to a profile that is no longer being recorded, or replace it: the timed runs
//! of `isotherm sensitivity`, and the runs of `isotherm record --isolate` in which a site is alone in a tier. [`check_addition`] checks
//! before the measurement that this is possible.
//!
//! A table is one file, written under a hidden name, flushed to the device and renamed, as all are; it replaces the runs of an
//! earlier measurement. The other tables are not touched, so a kill leaves the profile with the old runs, with none, or with the
//! new ones. A profile that is being recorded gets none; several additions at a time replace each other's.

use std::io;
use std::path::Path;

use isotherm_model::isolation_runs::IsolationRuns;
use isotherm_model::profile::Profile;
use isotherm_model::sensitivity_runs::SensitivityRuns;
use isotherm_sys::files::{Directory, followed_output};

use crate::error::Error;
use crate::layout::{META_FILE, temporary};
use crate::lock::open_locked;
use crate::recognition::recognised;
use crate::tables::{IsolationRow, Row, SensitivityRow};
use crate::writer::{Pending, replace};

/// Adds the timed runs of the program to its profile, or replaces those that it has. `profile` is the one that was read from the
/// path: a profile that was recorded there since has other sites, and its reader leaves these runs out.
///
/// # Errors
/// There is no profile at the path, it is being recorded, or the file cannot be written; the other tables stay as they are either way.
pub fn add_sensitivity(
    path: &Path,
    profile: &Profile,
    runs: &SensitivityRuns,
) -> Result<(), Error> {
    let rows = runs.runs.iter().map(|run| SensitivityRow {
        started: profile.meta.started.clone(),
        tiers: runs.tiers.as_str().to_owned(),
        run: *run,
    });
    let rows: Vec<SensitivityRow> = rows.collect();
    add(path, &rows)
}

/// Adds the runs in which sites of the program were alone in a tier to its profile, or replaces those that it has. `profile` is as for
/// [`add_sensitivity`].
///
/// # Errors
/// As [`add_sensitivity`].
pub fn add_isolation(path: &Path, profile: &Profile, runs: &IsolationRuns) -> Result<(), Error> {
    let rows = runs.runs.iter().map(|run| IsolationRow {
        started: profile.meta.started.clone(),
        tiers: runs.tiers.as_str().to_owned(),
        counter: runs.counter,
        run: *run,
    });
    let rows: Vec<IsolationRow> = rows.collect();
    add(path, &rows)
}

/// Writes the only file of a table.
fn add<R: Row + Sync>(path: &Path, rows: &[R]) -> Result<(), Error> {
    let directory = opened(path)?;
    let pending = Pending::of(R::TABLE.file(0), rows);
    replace(&directory.path(), &[pending]).map_err(|(file, cause)| Error::Add {
        path: path.join(file),
        cause,
    })?;
    directory.sync().map_err(|cause| failed(path, cause))
}

/// Checks that a table could be added to the profile at the path: for a caller that takes long to measure what it adds.
///
/// # Errors
/// As [`add_sensitivity`].
pub fn check_addition(path: &Path) -> Result<(), Error> {
    let directory = opened(path)?;
    // What a kill leaves of the trial has a name that the next writer knows.
    let (begin, end) = temporary(META_FILE);
    let trial = tempfile::Builder::new()
        .prefix(&begin)
        .suffix(end)
        .tempfile_in(directory.path());
    trial.map(drop).map_err(|cause| failed(path, cause))
}

fn failed(path: &Path, cause: io::Error) -> Error {
    Error::Add {
        path: path.to_owned(),
        cause,
    }
}

/// The directory of the profile, locked against a recording.
fn opened(path: &Path) -> Result<Directory, Error> {
    match recognised(path) {
        Ok(true) => {}
        Ok(false) => {
            return Err(Error::NotAProfile {
                path: path.to_owned(),
                found: "it holds no file of a profile".to_owned(),
            });
        }
        Err((path, cause)) => return Err(Error::Read { path, cause }),
    }
    let target = followed_output(path).map_err(|cause| failed(path, cause))?;
    let opened = open_locked(&target, Directory::lock_shared);
    let opened = opened.map_err(|cause| failed(path, cause))?;
    opened.ok_or_else(|| Error::BeingRecorded(path.to_owned()))
}
