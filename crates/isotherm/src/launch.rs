//! Starts a program with the runtime preloaded: `prepare` writes its configuration and holds it before its exec (`Ready`); `Running` waits
//! for it, passes signals on, keeps its time limit and adds up the energy of the whole machine meanwhile; `EndedProgram` has the results.
//! `ended` makes the exit status of this command, a failure where a result was lost, and `end_as` ends the command by it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use isotherm_abi::env;
use isotherm_act::configuration::Configuration;
use isotherm_model::port::Clock as _;
use isotherm_model::profile::Ending;
use isotherm_model::tier::{Tier, Tiers};
use isotherm_model::units::{Bytes, Nanos};
use isotherm_observe::clock::MachineClock;
use isotherm_observe::energy::EnergyMeter;
use isotherm_sys::affinity;
use isotherm_sys::process::{ProcessHandle, wait_with_processor_time};
use isotherm_sys::spawn::{SuspendedChild, spawn_suspended};
use isotherm_topology::caches;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::emulated_machine;
use crate::program;
use crate::program_signals::ProgramSignals;
use crate::session_directory::SessionDirectory;
use crate::session_processes;
use crate::session_summary::SessionSummary;
use crate::time_limit::{EndSignal, TimeLimit};
use isotherm_console::Console;

/// Name of the runtime's file.
const LIBRARY: &str = "libisotherm.so";

/// A program that is held before its exec.
#[derive(Debug)]
pub(crate) struct Ready {
    /// Its directory of session files.
    pub session: SessionDirectory,
    held: SuspendedChild,
    name: String,
    time_limit: Option<TimeLimit>,
}

/// A program that ended.
#[derive(Debug)]
pub(crate) struct EndedProgram {
    pub status: ExitStatus,
    /// Time from its start to its end.
    pub took: Nanos,
    /// Energy that the machine measured in this time.
    pub energy: EnergyMeter,
    /// Processor time of it and of those of its descendants that it waited for.
    pub processor_time: Nanos,
    /// The signal that requested its end (SIGINT, SIGTERM, SIGHUP).
    pub interrupted: Option<ExitStatus>,
    /// The limit of its time, if it ran into it.
    pub exceeded: Option<Nanos>,
    /// The runtime's last state in each of its processes.
    pub summary: SessionSummary,
    /// Its directory of session files.
    pub session: SessionDirectory,
}

/// A program that runs.
#[derive(Debug)]
pub(crate) struct Running {
    session: SessionDirectory,
    child: Child,
    handle: ProcessHandle,
    signals: ProgramSignals,
    started: Instant,
    ended: Option<End>,
    energy: EnergyMeter,
    energy_read: Instant,
    time_limit: Option<TimeLimit>,
}

/// The end of a program.
#[derive(Clone, Copy, Debug)]
struct End {
    status: ExitStatus,
    took: Duration,
    processor_time: Duration,
}

/// Finds the runtime: beside this program, or in `../lib` of it.
fn library() -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    let beside = own.parent().unwrap_or(Path::new("/"));
    let places = [beside.join(LIBRARY), beside.join("../lib").join(LIBRARY)];
    places
        .iter()
        .find(|path| path.is_file())
        .cloned()
        .with_context(|| {
            format!(
                "{LIBRARY} is neither at {} nor at {}; `make build` puts it beside this program",
                places[0].display(),
                places[1].display()
            )
        })
}

/// The value of `LD_PRELOAD`. Spaces and colons separate its paths, so a library whose path has one of these is reached by a link.
fn preload(library: &Path, session: &SessionDirectory) -> Result<OsString> {
    let bytes = library.as_os_str().as_bytes();
    let plain = !bytes
        .iter()
        .any(|byte| *byte == b':' || byte.is_ascii_whitespace());
    let mut value = if plain {
        library.as_os_str().to_owned()
    } else {
        let link = session.path().join(LIBRARY);
        std::os::unix::fs::symlink(library, &link).context("cannot link to the runtime")?;
        link.into_os_string()
    };
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        value.push(":");
        value.push(others);
    }
    Ok(value)
}

/// The file of the program to run.
///
/// # Errors
/// One sentence on the reason why it cannot be run.
pub(crate) fn program(words: &[OsString]) -> Result<PathBuf> {
    program::check(words.first().context("no program was named")?)
}

/// Checks the program, writes the configuration and holds the program before its exec. Its standard output goes to `output`. The files
/// of the run are in the directory of the session, which may hold others; if it has an emulated machine, the program shares that.
///
/// # Errors
/// One sentence on the fault of the program, the runtime or the machine.
pub(crate) fn prepare(
    mut session: SessionDirectory,
    words: &[OsString],
    configuration: &Configuration,
    output: Stdio,
) -> Result<Ready> {
    let path = program(words)?;
    let (name, arguments) = words.split_first().context("no program was named")?;
    let library = library()?;
    let configuration = with_limits(with_cache(configuration));
    if configuration.limits_a_tier() {
        emulated_machine::make_capacity(session.path())?;
    }
    if !session.has_machine()
        && let Some(shared) = configuration.shared_bandwidth()
    {
        session.join_machine(&shared, configuration.shared_capacity())?;
    }
    let file = session.write_file("configuration", &configuration.to_bytes()?)?;
    let mut command = Command::new(path);
    std::os::unix::process::CommandExt::arg0(&mut command, name);
    command
        .args(arguments)
        .env("LD_PRELOAD", preload(&library, &session)?)
        .env(env::CONFIG, &file)
        .env(env::SESSION, session.path())
        .stdout(output);
    let name = name.to_string_lossy().into_owned();
    let held = spawn_suspended(command).with_context(|| format!("{name}: cannot be started"))?;
    Ok(Ready {
        session,
        held,
        name,
        time_limit: None,
    })
}

/// The configuration with the size of this machine's caches, if it names no other.
fn with_cache(configuration: &Configuration) -> Configuration {
    let known = || caches::expected(Path::new("/"), &affinity::allowed().unwrap_or_default());
    Configuration {
        cache: configuration.cache.or_else(known),
        ..configuration.clone()
    }
}

/// The configuration with a limit only for tiers of which less is to be used than their nodes hold: the kernel keeps count of
/// the others.
fn with_limits(configuration: Configuration) -> Configuration {
    let tiers = configuration.tiers.as_ref();
    let is_real = |tier: &Tier| !tier.is_emulated();
    if !tiers.is_some_and(|tiers| tiers.all().iter().any(is_real)) {
        return configuration;
    }
    let detected = isotherm_topology::detect(Path::new("/")).ok();
    let capacity = |tier: &Tier| -> Option<Bytes> {
        let mut same = detected.iter().flat_map(Tiers::all);
        same.find(|other| other.kind == tier.kind)
            .map(|tier| tier.capacity)
    };
    let without_own = |tier: &Tier| {
        let holds_no_more = is_real(tier) && capacity(tier).is_some_and(|all| tier.capacity >= all);
        Tier {
            capacity: match holds_no_more {
                true => Bytes(u64::MAX),
                false => tier.capacity,
            },
            ..tier.clone()
        }
    };
    let tiers = tiers.map(|tiers| tiers.all().iter().map(without_own).collect());
    Configuration {
        // The same names and nodes as before are valid.
        tiers: tiers.and_then(|tiers| Tiers::new(tiers).ok()),
        ..configuration
    }
}

/// Runs a program to its end, unobserved.
///
/// # Errors
/// As [`prepare`]; the exec failed, or the program could not be waited for.
pub(crate) fn run(words: &[OsString], configuration: &Configuration) -> Result<EndedProgram> {
    let session = SessionDirectory::new()?;
    let ready = prepare(session, words, configuration, Stdio::inherit())?;
    ready.start()?.finish()
}

impl EndedProgram {
    /// The exit status of a command after a signal that requested the end of its program, even if the program handled it; `None` without
    /// one.
    pub(crate) fn interruption(&self) -> Option<ExitStatus> {
        let signal = self.interrupted?;
        Some(match self.status.success() {
            true => signal,
            false => self.status,
        })
    }

    /// The kind and the time of the run, and what it did if the runtime worked in it.
    pub(crate) fn in_words(&self, kind: &str, tiers: &Tiers, did: &str) -> String {
        let took = self.summary.took(kind, self.took, tiers);
        match self.summary.worked() {
            true => format!("{took}: {did}"),
            false => took,
        }
    }
}

impl Ready {
    /// The process id the program will have.
    pub(crate) const fn pid(&self) -> u32 {
        self.held.pid
    }

    /// The same program, to be ended after this time; `None` for no limit.
    pub(crate) fn within(self, limit: Option<Nanos>) -> Self {
        Self {
            time_limit: limit.map(TimeLimit::new),
            ..self
        }
    }

    /// Lets the program run.
    ///
    /// # Errors
    /// The exec failed.
    pub(crate) fn start(self) -> Result<Running> {
        let signals = ProgramSignals::catch()?;
        let energy = EnergyMeter::open(Path::new("/"), MachineClock.now());
        let started = Instant::now();
        let child = self
            .held
            .release()
            .with_context(|| format!("{}: cannot be run", self.name))?;
        let handle = ProcessHandle::open(child.id()).context("cannot watch the program")?;
        Ok(Running {
            session: self.session,
            child,
            handle,
            signals,
            started,
            ended: None,
            energy,
            energy_read: started,
            time_limit: self.time_limit,
        })
    }
}

impl Running {
    /// Waits at most `span` for the program to end. True if it has ended.
    ///
    /// # Errors
    /// The kernel refused to wait.
    pub(crate) fn wait(&mut self, span: Duration) -> Result<bool> {
        let end = Instant::now() + span;
        if self.ended.is_none() && self.energy_read.elapsed() >= self.energy_interval() {
            self.energy.update(MachineClock.now());
            self.energy_read = Instant::now();
        }
        while self.ended.is_none() {
            self.signals.pass_on(&self.child);
            self.keep_limit();
            let now = Instant::now();
            let left = end
                .min(self.limit_due().unwrap_or(end))
                .saturating_duration_since(now);
            match self.handle.ends_within(left) {
                Ok(false) if Instant::now() < end => {}
                Ok(false) => break,
                Ok(true) => {
                    let took = self.started.elapsed();
                    let (status, processor_time) = wait_with_processor_time(&self.child)
                        .context("cannot wait for the program")?;
                    self.ended = Some(End {
                        status,
                        took,
                        processor_time,
                    });
                    self.energy.update(MachineClock.now());
                }
                Err(Errno::INTR) => {}
                Err(error) => bail!("cannot wait for the program: {error}"),
            }
        }
        Ok(self.ended.is_some())
    }

    /// Longest time between two readings of the energy counters.
    fn energy_interval(&self) -> Duration {
        Duration::from_nanos(self.energy.interval().0)
    }

    /// Sends the program the signal that its limit asks for by now.
    fn keep_limit(&mut self) {
        let age = self.started.elapsed();
        match self.time_limit.as_mut().and_then(|limit| limit.due(age)) {
            // It may have ended meanwhile; then the signal is dropped.
            Some(EndSignal::Term) => drop(kill_process(Pid::from_child(&self.child), Signal::TERM)),
            Some(EndSignal::Kill) => drop(self.child.kill()),
            None => {}
        }
    }

    /// When its limit asks for the next signal.
    fn limit_due(&self) -> Option<Instant> {
        let age = self.time_limit.as_ref()?.next()?;
        self.started.checked_add(age)
    }

    /// Ends the program if it still runs, and those of its descendants that have the runtime, by SIGKILL.
    pub(crate) fn kill(&mut self) {
        if self.ended.is_none() {
            // It may have ended meanwhile.
            let _ = self.child.kill();
        }
        session_processes::kill_all(self.session.path());
    }

    /// Waits until the program ends.
    ///
    /// # Errors
    /// The kernel refused to wait.
    pub(crate) fn finish(mut self) -> Result<EndedProgram> {
        loop {
            self.wait(self.energy_interval())?;
            if let Some(end) = self.ended {
                let exceeded = self.time_limit.and_then(|limit| limit.exceeded());
                if exceeded.is_some() {
                    // Its descendants may not have received the signal.
                    session_processes::kill_all(self.session.path());
                }
                let nanos = |time: Duration| Nanos(time.as_nanos() as u64);
                return Ok(EndedProgram {
                    status: end.status,
                    took: nanos(end.took),
                    processor_time: nanos(end.processor_time),
                    interrupted: self.interrupted(),
                    exceeded,
                    energy: self.energy,
                    summary: SessionSummary::read(&self.session),
                    session: self.session,
                });
            }
        }
    }

    /// The signal that requested the end since the start.
    pub(crate) fn interrupted(&self) -> Option<ExitStatus> {
        self.signals.wanted()
    }
}

/// The program's end, as the profile records it.
pub(crate) fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, Some(signal)) => Ending::Signalled(signal),
        (None, None) => Ending::Unknown,
    }
}

/// The exit status of a command whose program has ended: the program's own, or a failure if the program succeeded
/// and a result of the run could not be stored. Prints each such error.
pub(crate) fn ended(
    status: ExitStatus,
    kept: impl IntoIterator<Item = Result<()>>,
    console: Console,
) -> ExitStatus {
    let lost: Vec<_> = kept.into_iter().filter_map(Result::err).collect();
    for error in &lost {
        match status.success() {
            true => console.error(&format!("{error:#}")),
            false => console.warn(&format!("{error:#}")),
        }
    }
    match status.success() && !lost.is_empty() {
        // The wait status of exit status 1.
        true => ExitStatus::from_raw(1 << 8),
        false => status,
    }
}

/// Ends with the program's exit status, or by its signal.
pub(crate) fn end_as(status: ExitStatus) -> ! {
    if let Some(signal) = status.signal() {
        // A core file of this process would overwrite the program's.
        let none = rustix::process::Rlimit {
            current: Some(0),
            maximum: Some(0),
        };
        let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
        let _ = signal_hook::low_level::emulate_default_handler(signal);
        std::process::exit(128 + signal);
    }
    std::process::exit(status.code().unwrap_or(1));
}

/// Prints the processes that ran without the runtime, and the number of those that run on unobserved.
pub(crate) fn warn_of(summary: &SessionSummary, console: Console) {
    for (pid, why) in &summary.off {
        console.warn(&format!("Isotherm was off in process {pid}: {why}"));
    }
    if summary.images == 0 {
        console.warn(
            "no process of the program wrote a session file: unless a line above says why, it was linked \
             statically, or it clears LD_PRELOAD or its environment",
        );
    }
    match summary.running.len() {
        0 => {}
        1 => console.warn("1 descendant of the program still runs and is no longer observed"),
        count => console.warn(&format!(
            "{count} descendants of the program still run and are no longer observed"
        )),
    }
}
