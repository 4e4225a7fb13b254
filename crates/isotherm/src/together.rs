//! `run` runs each `PlacedProgram` by its configuration, several at the same time or one alone, for `isotherm colocate --run`. A program
//! that ends early starts again until every one has ended once, so that none has the machine for itself in the time that counts, that of
//! its first run (CoMerge, section 4). Where the bandwidth of the emulated pair is limited, the programs share one emulated machine.
//!
//! ```text
//! a  |======|======|====x            x: ended, because all have ended once
//! b  |================|
//! ```

use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use isotherm_act::configuration::Configuration;
use isotherm_model::units::Nanos;

use crate::emulated_machine;
use crate::launch::{self, EndedProgram};
use crate::session_directory::SessionDirectory;

/// Interval at which a program that runs again looks whether all have ended.
const LOOK: Duration = Duration::from_millis(20);

/// A program, placed.
#[derive(Clone, Debug)]
pub(crate) struct PlacedProgram {
    /// Its name in messages.
    pub name: String,
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// The runtime's configuration.
    pub configuration: Configuration,
}

/// The times of one run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunTimes {
    /// From the program's start to its end.
    pub took: Nanos,
    /// The processor time of it and its descendants.
    pub processor_time: Nanos,
}

/// How a program ended first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstEnd {
    /// The times of its first run.
    pub times: RunTimes,
    /// How often it was started again.
    pub restarts: u32,
}

/// How the programs ended.
#[derive(Debug)]
pub(crate) enum TogetherEnd {
    /// Each has ended once, in the programs' order.
    All(Vec<FirstEnd>),
    /// This signal ended them before.
    Interrupted(ExitStatus),
}

/// What the threads of the programs share.
struct Progress {
    /// The session of the emulated machine that the programs share; `None` where it has no limit, or a name by which they find it.
    machine: Option<SessionDirectory>,
    /// Programs that have not ended yet.
    left: AtomicUsize,
    /// A signal or a failed program ends all.
    stopped: AtomicBool,
}

impl Progress {
    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    fn goes_on(&self) -> bool {
        self.left.load(Ordering::Acquire) > 0 && !self.is_stopped()
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }
}

/// The end of one run of a program.
enum RunEnd {
    /// It ended by itself.
    Finished(RunTimes),
    /// This signal interrupted it.
    Interrupted(ExitStatus),
    /// The other programs no longer needed it.
    Killed,
}

/// Runs the programs to the end of the last, each for `limit` at most.
///
/// # Errors
/// A program cannot be started, fails (also when it runs again), runs for longer, or had Isotherm off. The others are then ended at once.
pub(crate) fn run(programs: &[PlacedProgram], limit: Option<Nanos>) -> Result<TogetherEnd> {
    let progress = Progress {
        machine: shared_machine(programs)?,
        left: AtomicUsize::new(programs.len()),
        stopped: AtomicBool::new(false),
    };
    let ends: Vec<Result<(RunEnd, u32)>> = std::thread::scope(|scope| {
        let start = |program| {
            let progress = &progress;
            scope.spawn(move || {
                let end = run_one(program, limit, progress);
                if !matches!(end, Ok((RunEnd::Finished(_), _))) {
                    progress.stop();
                }
                end
            })
        };
        let threads: Vec<_> = programs.iter().map(start).collect();
        let ended = threads.into_iter().map(|thread| match thread.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect()
    });
    let mut first_ends = Vec::new();
    let mut interrupted = None;
    for end in ends {
        match end? {
            (RunEnd::Finished(times), restarts) => first_ends.push(FirstEnd { times, restarts }),
            (RunEnd::Interrupted(signal), _) => interrupted = Some(signal),
            (RunEnd::Killed, _) => {}
        }
    }
    Ok(interrupted.map_or(TogetherEnd::All(first_ends), TogetherEnd::Interrupted))
}

/// Makes the emulated machine that programs share which run at the same time, if it has a limit and no name by which they find it.
fn shared_machine(programs: &[PlacedProgram]) -> Result<Option<SessionDirectory>> {
    let mut limits = programs
        .iter()
        .map(|program| program.configuration.shared_bandwidth());
    let limit = limits.find_map(|shared| shared.filter(|shared| shared.machine().is_none()));
    let Some(shared) = limit.filter(|_| programs.len() > 1) else {
        return Ok(None);
    };
    let mut session = SessionDirectory::new()?;
    session.join_machine(&shared, None)?;
    Ok(Some(session))
}

/// Runs one program until all have ended once: the end of its first run, and how often it was started again.
fn run_one(
    program: &PlacedProgram,
    limit: Option<Nanos>,
    progress: &Progress,
) -> Result<(RunEnd, u32)> {
    let machine = progress.machine.as_ref();
    let first = run_while(program, (limit, machine), || !progress.is_stopped())?;
    progress.left.fetch_sub(1, Ordering::AcqRel);
    let mut restarts = 0;
    while matches!(first, RunEnd::Finished(_)) && progress.goes_on() {
        restarts += 1;
        let again = run_while(program, (limit, machine), || progress.goes_on());
        if let RunEnd::Interrupted(signal) = again.context("when it ran again")? {
            return Ok((RunEnd::Interrupted(signal), restarts));
        }
    }
    Ok((first, restarts))
}

/// Runs a program to its end, or as long as `goes_on`, on this emulated machine, or on its own.
///
/// # Errors
/// As for [`run`].
fn run_while(
    program: &PlacedProgram,
    (limit, machine): (Option<Nanos>, Option<&SessionDirectory>),
    goes_on: impl Fn() -> bool,
) -> Result<RunEnd> {
    let session = SessionDirectory::new()?;
    let configuration = &program.configuration;
    if let Some(machine) = machine.filter(|_| configuration.shared_bandwidth().is_some()) {
        emulated_machine::join_other(session.path(), machine.path())?;
    }
    let ready = launch::prepare(session, &program.words, configuration, Stdio::null());
    let mut running = ready
        .and_then(|ready| ready.within(limit).start())
        .with_context(|| format!("program \"{}\"", program.name))?;
    let mut is_unneeded = false;
    while !running.wait(LOOK)? {
        is_unneeded |= !goes_on();
        if is_unneeded {
            running.kill();
        }
    }
    if is_unneeded {
        // Its last descendants may have started others meanwhile.
        running.kill();
    }
    let ended = running.finish()?;
    match (ended.interrupted, ended.exceeded) {
        (Some(signal), _) => Ok(RunEnd::Interrupted(signal)),
        (None, Some(limit)) => bail!(
            "program \"{}\" did not end within {limit}; give it less to do, or a longer --time-limit",
            program.name
        ),
        (None, None) if is_unneeded => Ok(RunEnd::Killed),
        (None, None) => checked(&program.name, &ended).map(RunEnd::Finished),
    }
}

/// The times of a run that succeeded by its plan.
fn checked(name: &str, ended: &EndedProgram) -> Result<RunTimes> {
    if let Some((pid, why)) = ended.summary.off.first_key_value() {
        bail!("program \"{name}\": Isotherm was off in process {pid}: {why}");
    }
    if !ended.status.success() {
        bail!(
            "program \"{name}\" ended with {}; its time cannot be compared",
            ended.status
        );
    }
    Ok(RunTimes {
        took: ended.took,
        processor_time: ended.processor_time,
    })
}
