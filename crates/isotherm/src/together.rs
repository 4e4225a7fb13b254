//! Runs programs at the same time. Each that ends early starts again, until every one has ended once, so that none has the machine for itself
//! in the time that counts (CoMerge, section 4).
//!
//! ```text
//! a  |======|======|====x            x: ended, because all have ended once
//! b  |================|
//! ```

use std::ffi::OsString;
use std::fs::File;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use isotherm_act::configuration::Configuration;
use isotherm_model::units::Nanos;

use crate::launch::{self, EndedProgram, Output};

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

/// How a program ended first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstEnd {
    /// Its status.
    pub status: ExitStatus,
    /// Time from its start to its end.
    pub took: Nanos,
    /// How often it was started again.
    pub restarts: u32,
}

/// What the threads of the programs share.
struct Progress {
    /// Programs that have not ended yet.
    left: AtomicUsize,
    /// A signal asked for the end.
    interrupted: AtomicBool,
}

impl Progress {
    fn goes_on(&self) -> bool {
        self.left.load(Ordering::Acquire) > 0 && !self.interrupted.load(Ordering::Acquire)
    }
}

/// Runs the programs to the end of the last; `None` where a signal ended them before.
///
/// # Errors
/// A program cannot be started, or Isotherm was off in it. The others are then ended.
pub(crate) fn run(programs: &[PlacedProgram]) -> Result<Option<Vec<FirstEnd>>> {
    let progress = Progress {
        left: AtomicUsize::new(programs.len()),
        interrupted: AtomicBool::new(false),
    };
    let all: Result<Vec<FirstEnd>> = std::thread::scope(|scope| {
        let threads: Vec<_> = programs
            .iter()
            .map(|program| scope.spawn(|| run_one(program, &progress)))
            .collect();
        let ended = threads.into_iter().map(|thread| match thread.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect()
    });
    let all = all?;
    Ok((!progress.interrupted.load(Ordering::Acquire)).then_some(all))
}

/// Runs one program until all have ended once.
fn run_one(program: &PlacedProgram, progress: &Progress) -> Result<FirstEnd> {
    let first = run_while(program, || !progress.interrupted.load(Ordering::Acquire));
    progress.left.fetch_sub(1, Ordering::AcqRel);
    let first = first.inspect_err(|_| progress.interrupted.store(true, Ordering::Release))?;
    if first.interrupted.is_some() {
        progress.interrupted.store(true, Ordering::Release);
    }
    let mut restarts = 0;
    // One that failed would fail again.
    while first.status.success() && progress.goes_on() {
        restarts += 1;
        let again = run_while(program, || progress.goes_on())?;
        if !again.status.success() {
            break;
        }
    }
    Ok(FirstEnd {
        status: first.status,
        took: first.took,
        restarts,
    })
}

/// Runs a program to its end, or as long as `goes_on`.
fn run_while(program: &PlacedProgram, goes_on: impl Fn() -> bool) -> Result<EndedProgram> {
    let nowhere = File::options().write(true).open("/dev/null");
    let nowhere = nowhere.context("/dev/null cannot be written")?;
    let ready = launch::prepare(
        &program.words,
        &program.configuration,
        Output::File(nowhere),
    );
    let mut running = ready
        .and_then(launch::Ready::start)
        .with_context(|| format!("program \"{}\"", program.name))?;
    while !running.wait(LOOK)? {
        if !goes_on() {
            running.kill();
        }
    }
    running.finish()
}
