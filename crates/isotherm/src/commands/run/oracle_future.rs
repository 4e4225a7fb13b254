//! `OracleFuture` tells the oracle policy the accesses to come in a run, from a profile of an earlier run of the same command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use isotherm_console::{Console, shell_quoting};
use isotherm_model::batch::{Batch, Count, Extent, ObservedAccess};
use isotherm_model::units::Nanos;
use isotherm_pipeline::RecordedFuture;
use isotherm_report::page_moves::FutureFound;

use crate::commands::read_placeable;

/// A recorded run, and how much of it was found in this one.
pub(super) struct OracleFuture {
    recorded: RecordedFuture,
    pub(super) found: FutureFound,
}

impl OracleFuture {
    /// Reads the future from the profile at this path, which must be of this command.
    ///
    /// # Errors
    /// The profile cannot be read, is of another command, or tells no future.
    pub(super) fn read(path: &Path, words: &[OsString], console: Console) -> Result<Self> {
        let profile = read_placeable(path, console)?;
        let shown = path.display();
        let words = shell_quoting::as_text(words);
        if profile.meta.command != words {
            bail!(
                "{shown}: is a profile of `{}`, which tells nothing of the future of `{}`; name one of the same command with --profile",
                profile.meta.command.join(" "),
                words.join(" ")
            );
        }
        match RecordedFuture::new(&profile) {
            Ok(recorded) => Ok(Self {
                recorded,
                found: FutureFound {
                    profile: PathBuf::from(path).display().to_string(),
                    ..FutureFound::default()
                },
            }),
            Err(why) => bail!("{shown}: {why}"),
        }
    }

    /// Follows the memory of the run's sites.
    pub(super) fn follow(&mut self, extents: &[Extent]) {
        self.recorded.follow(extents);
    }

    /// The accesses to come after this batch, in an epoch as long as its own.
    pub(super) fn next(&mut self, batch: &Batch) -> Vec<ObservedAccess> {
        let sum = |name| Count::total(&batch.counts, name);
        // The delays of slow memory count as processor time of the program, too.
        let worked = Nanos(sum("cpu_ns").saturating_sub(sum("delay_ns")));
        let next = self.recorded.next(worked, batch.span);
        self.found.recorded = self.found.recorded.saturating_add(next.recorded);
        self.found.found = self.found.found.saturating_add(next.found);
        next.accesses
    }
}
