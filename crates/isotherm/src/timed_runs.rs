//! `TimedRuns` times one program under several placements for `isotherm compare`, `isotherm sensitivity` and `isotherm record --isolate`:
//! in each round every placement runs once, so that a change of the machine's load affects all of them. `RunResults` has the times, and
//! whether outputs differed or a placement ran into the time limit; `without_limit` lifts the capacities of tiers.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::ExitStatus;

use anyhow::{Context, Result, bail};
use isotherm_act::configuration::Configuration;
use isotherm_console::Console;
use isotherm_model::tier::{Tier, TierKind, Tiers};
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::words::counted;

use crate::launch::{self, EndedProgram};
use crate::program_signals;
use crate::session_directory::SessionDirectory;

/// One placement of the program's data.
#[derive(Debug)]
pub(crate) struct TimedPlacement {
    /// Its name in messages.
    pub name: String,
    /// The runtime's configuration.
    pub configuration: Configuration,
    /// Whether the other placements mean nothing without its times.
    pub is_bound: bool,
}

/// The treatment of a run with an output that differs from the first run's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DifferingOutput {
    /// An error.
    Refused,
    /// A warning.
    Warned,
    /// Nothing.
    Accepted,
}

impl DifferingOutput {
    /// The treatment for the flag `--check-output`.
    pub(crate) const fn by_flag(check_output: bool) -> Self {
        match check_output {
            true => Self::Refused,
            false => Self::Warned,
        }
    }
}

/// The program, and how it is timed.
#[derive(Debug)]
pub(crate) struct TimedRuns<'a> {
    /// The program and its arguments.
    pub words: &'a [OsString],
    /// The placements, in the order of the runs of a round.
    pub placements: &'a [TimedPlacement],
    /// How often each placement runs.
    pub rounds: u32,
    /// The treatment of a run whose output differs.
    pub differing: DifferingOutput,
    /// The longest that a run may take; `None` for no limit.
    pub limit: Option<Nanos>,
}

/// The results of all runs.
#[derive(Debug, Default)]
pub(crate) struct RunResults {
    /// Times by placement and round.
    pub times: Vec<Vec<Nanos>>,
    /// True if the program's output differed between runs.
    pub outputs_differ: bool,
    /// The signal that ended the runs early.
    pub interrupted: Option<ExitStatus>,
    /// The placements in which the program did not end within the limit, by number. They have no times.
    pub exceeded: BTreeSet<usize>,
    /// A sentence, if the program ran into the limit in a placement without which the others mean nothing: the runs ended with it.
    pub stopped: Option<String>,
}

impl RunResults {
    /// Drops the round in which the runs were interrupted or stopped, with a warning, and the times of placements that ran into the limit.
    /// Returns the number of complete rounds.
    pub(crate) fn keep_whole_rounds(&mut self, wanted: u32, console: Console) -> usize {
        let numbered = self.times.iter().enumerate();
        let ended = numbered.filter(|(number, _)| !self.exceeded.contains(number));
        let whole = ended.map(|(_, times)| times.len()).min().unwrap_or(0);
        for (number, times) in self.times.iter_mut().enumerate() {
            times.truncate(match self.exceeded.contains(&number) {
                true => 0,
                false => whole,
            });
        }
        let how = match (&self.interrupted, &self.stopped) {
            (Some(_), _) => "interrupted",
            (None, Some(_)) => "stopped",
            (None, None) => return whole,
        };
        console.warn(&format!(
            "{how} after {whole} of {}",
            counted(wanted, "round")
        ));
        whole
    }
}

impl TimedRuns<'_> {
    /// Times every placement in turn, round by round, until a signal ends it. `examine` sees the first run of each placement.
    ///
    /// # Errors
    /// A program that fails, what `examine` refuses, and a run whose output differs where that is refused.
    pub(crate) fn run(
        &self,
        console: Console,
        examine: impl FnMut(usize, &EndedProgram) -> Result<()>,
    ) -> Result<RunResults> {
        self.run_observed(console, || Ok(()), examine)
    }

    /// As [`Self::run`]; `begin` is called directly before each program starts, and `examine` directly after its end.
    ///
    /// # Errors
    /// As [`Self::run`], and what `begin` refuses.
    pub(crate) fn run_observed(
        &self,
        console: Console,
        mut begin: impl FnMut() -> Result<()>,
        mut examine: impl FnMut(usize, &EndedProgram) -> Result<()>,
    ) -> Result<RunResults> {
        program_signals::catch_from_here()?;
        let directory = tempfile::tempdir().context("no temporary directory")?;
        let path = directory.path().join("output");
        let mut outputs = Outputs::default();
        let mut results = RunResults {
            times: vec![Vec::new(); self.placements.len()],
            ..RunResults::default()
        };
        let progress = console.progress("running");
        for round in 1..=self.rounds {
            for (number, placement) in self.placements.iter().enumerate() {
                if results.exceeded.contains(&number) {
                    continue;
                }
                let name = &placement.name;
                progress.set_message(format!("round {round} of {}: {name}", self.rounds));
                let ended = self.time(placement, &path, &mut begin)?;
                results.interrupted = ended.interruption();
                if results.interrupted.is_some() {
                    progress.finish_and_clear();
                    return Ok(results);
                }
                if let Some(limit) = ended.exceeded {
                    let over = format!(
                        "round {round}, {name}: the program did not end within {limit} and was ended"
                    );
                    if placement.is_bound {
                        progress.finish_and_clear();
                        results.stopped = Some(over);
                        return Ok(results);
                    }
                    progress.suspend(|| console.warn(&over));
                    results.exceeded.insert(number);
                    continue;
                }
                if round == 1 {
                    progress.suspend(|| examine(number, &ended))?;
                }
                results.times[number].push(ended.took);
                if self.differing != DifferingOutput::Accepted && !outputs.same(&path)? {
                    results.outputs_differ = true;
                    let run = format!("round {round}, {name}");
                    progress.suspend(|| self.say_difference(&run, console))?;
                }
            }
        }
        progress.finish_and_clear();
        Ok(results)
    }

    /// One run of a placement.
    fn time(
        &self,
        placement: &TimedPlacement,
        output: &Path,
        begin: &mut impl FnMut() -> Result<()>,
    ) -> Result<EndedProgram> {
        let name = &placement.name;
        let file = File::create(output).context("the program's output cannot be kept")?;
        let session = SessionDirectory::new()?;
        let ready = launch::prepare(session, self.words, &placement.configuration, file.into())?;
        begin()?;
        let ended = ready.within(self.limit).start()?.finish()?;
        if ended.interrupted.is_some() || ended.exceeded.is_some() {
            return Ok(ended);
        }
        if let Some((pid, why)) = ended.summary.off.first_key_value() {
            bail!("in the {name} run Isotherm was off in process {pid}: {why}");
        }
        if !ended.status.success() {
            bail!(
                "the {name} run ended with {}; its time cannot be compared",
                ended.status
            );
        }
        Ok(ended)
    }

    /// Says that the output of a run differs from that of the first one.
    ///
    /// # Errors
    /// Outputs must not differ.
    fn say_difference(&self, run: &str, console: Console) -> Result<()> {
        let what = format!("{run}: the program's output differs from that of its first run");
        if self.differing == DifferingOutput::Refused {
            bail!(
                "{what}; leave times and other changing text out of it, or leave out --check-output"
            );
        }
        console.warn(&format!(
            "{what}; its times are compared all the same, and --check-output makes this an error"
        ));
        Ok(())
    }
}

/// These tiers without limits of Isotherm's own. The kernel limits real ones to what their nodes hold.
pub(crate) fn without_limit(tiers: &Tiers) -> Tiers {
    let lifted = |tier: &Tier| match tier.kind {
        TierKind::EmulatedFast | TierKind::Nodes(_) => Tier {
            capacity: Bytes(u64::MAX),
            ..tier.clone()
        },
        TierKind::EmulatedSlow(_) => tier.clone(),
    };
    let all = tiers.all().iter().map(lifted).collect();
    Tiers::new(all).unwrap_or_else(|_| tiers.clone())
}

/// The program's output, until one run differs.
#[derive(Debug, Default)]
struct Outputs {
    first: Option<Vec<u8>>,
    differed: bool,
}

impl Outputs {
    /// False for the first run whose output differs; later ones are not compared.
    fn same(&mut self, path: &Path) -> Result<bool> {
        if self.differed {
            return Ok(true);
        }
        let output = std::fs::read(path).context("the program's output cannot be read")?;
        self.differed = self.first.as_ref().is_some_and(|first| *first != output);
        self.first.get_or_insert(output);
        Ok(!self.differed)
    }
}

#[cfg(test)]
mod tests {
    use super::{Outputs, RunResults};
    use isotherm_console::Console;
    use isotherm_model::units::Nanos;

    #[test]
    fn an_output_that_differs_is_reported_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("output");
        let mut outputs = Outputs::default();
        let same = ["a", "a", "b", "c"].map(|output| {
            std::fs::write(&path, output).unwrap();
            outputs.same(&path).unwrap()
        });
        assert_eq!(same, [true, true, false, true]);
    }

    #[test]
    fn a_placement_that_ran_into_the_limit_has_no_times() {
        let mut results = RunResults {
            times: [&[1, 2, 3][..], &[4], &[5, 6, 7]]
                .map(|it| it.iter().copied().map(Nanos).collect())
                .to_vec(),
            exceeded: [1].into(),
            ..RunResults::default()
        };
        assert_eq!(results.keep_whole_rounds(3, Console::new(true)), 3);
        let left: Vec<usize> = results.times.iter().map(Vec::len).collect();
        assert_eq!(left, [3, 0, 3]);
    }

    #[test]
    fn a_round_that_was_interrupted_is_dropped() {
        let mut results = RunResults {
            times: [&[1, 2, 3][..], &[4, 5]]
                .map(|it| it.iter().copied().map(Nanos).collect())
                .to_vec(),
            ..RunResults::default()
        };
        assert_eq!(results.keep_whole_rounds(3, Console::new(true)), 2);
        assert_eq!(results.times, [[1, 2].map(Nanos), [4, 5].map(Nanos)]);
    }
}
