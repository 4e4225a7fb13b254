//! Prepares an observed run, for `record` and for a `run` without a plan: checks its flags, chooses the sources, configures the runtime for
//! them, attaches the observer to a program or to a process that runs already, and makes the metadata of the profile.

use std::ffi::OsString;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Result, bail};
use isotherm_abi::accesses::DEFAULT_PERIOD;
use isotherm_act::configuration::Configuration;
use isotherm_model::profile::Meta;
use isotherm_model::source_kind::{ProfilingMethod, SourceKind};
use isotherm_model::units::{Bytes, Nanos};
use isotherm_observe::doctor::best_source;
use isotherm_observe::live::{LiveConfig, LiveRun};
use isotherm_observe::probe::KernelProbe;
use isotherm_observe::source::sampled_event::EventSettings;
use isotherm_pipeline::USUAL_HZ;
use isotherm_symbols::access_counting::{Instrumentation, instrumentation};
use isotherm_sys::affinity;
use isotherm_topology::caches;

use crate::cli::Observing;
use crate::java;
use crate::launch::Ready;
use crate::program;
use crate::running_process::RunningProcess;
use crate::tiers_choice;
use isotherm_console::{Console, shell_quoting};

/// Pages trapped at a time by the source `trapped-pages`, and the length of a window: measurements of the kernel
/// gave 0.97 to 0.995 of the ideal capture for 32 to 128 chunks at 100 ms.
const TRAPPED_PAGES: u64 = 128;
const TRAP_PERIOD: Nanos = Nanos(100_000_000);
const TRAP_SEED: u64 = 1;

/// Shortest epoch: a shorter one would spend most of its time reading the program's state.
const SHORTEST_EPOCH: Nanos = Nanos(20_000_000);

/// Checks the limits that the flag table cannot express.
///
/// # Errors
/// An epoch or a chunk out of range.
pub(crate) fn check(observing: &Observing) -> Result<()> {
    if observing.epoch < SHORTEST_EPOCH {
        bail!(
            "--epoch {}: is too short; use {SHORTEST_EPOCH} or more",
            observing.epoch
        );
    }
    let chunk = observing.chunk;
    if !chunk.0.is_power_of_two() || chunk < Bytes(4096) || chunk > Bytes(1 << 30) {
        bail!("--chunk {chunk}: must be a power of two from 4KiB to 1GiB");
    }
    Ok(())
}

/// Configures the runtime for the sources: trap pages, count accesses.
pub(crate) fn for_sources(
    mut configuration: Configuration,
    observing: &Observing,
) -> Configuration {
    if observing.source.contains(&SourceKind::TrappedPages) {
        configuration.trapping = Some((TRAPPED_PAGES, TRAP_PERIOD, TRAP_SEED));
    }
    if observing.source.contains(&SourceKind::Instrumented) {
        configuration.access_period = Some(observing.period.unwrap_or(DEFAULT_PERIOD));
        configuration.access_filter = observing.cache_filter;
    }
    configuration.cache = observing.cache;
    configuration
}

/// The flags with the sources to use: the requested ones, else the program's own counts if it is a profile
/// build, else the best source of this machine.
///
/// # Errors
/// A flag is given for a source that is not used.
pub(crate) fn with_sources(
    observing: &Observing,
    words: &[OsString],
    console: Console,
) -> Result<Observing> {
    let mut observing = observing.clone();
    if observing.source.is_empty() {
        // A program that cannot be found is refused at its start.
        let program = words.first().and_then(|name| program::check(name).ok());
        let built = program.map_or(Instrumentation::None, |path| instrumentation(&path));
        if let Instrumentation::Other(version) = built {
            console.warn(&format!(
                "the program counts its accesses, but for version {version} of the runtime; \
                 compile it again with this version's isotherm-cc --profile"
            ));
        }
        let source = match built {
            Instrumentation::Current => Some(SourceKind::Instrumented),
            Instrumentation::None | Instrumentation::Other(_) => {
                best_source(Path::new("/"), &KernelProbe)
            }
        };
        observing.source.extend(source);
    }
    checked(observing, java::is_java(words))
}

/// The flags with the sources to use for a process that runs already, as [`with_sources`].
///
/// # Errors
/// A source cannot observe this process, or a flag is given for one that is not used.
pub(crate) fn with_sources_for(
    process: &RunningProcess,
    observing: &Observing,
    console: Console,
) -> Result<Observing> {
    let mut observing = observing.clone();
    let shown = process.shown();
    if observing.source.is_empty() {
        let best = best_source(Path::new("/"), &KernelProbe);
        match best.filter(|source| *source != SourceKind::TrappedPages) {
            Some(source) => {
                if source.method() == ProfilingMethod::AccessedBits {
                    console.warn(
                        "perf events are not allowed here, so accessed pages are counted, by mapping, and no code is known; run as root, or set \
                         kernel.perf_event_paranoid to 2 or less",
                    );
                }
                observing.source.push(source);
            }
            None => bail!(
                "process {shown}: no source can see its accesses here: perf events and accessed bits are both refused; run as root, or set \
                 kernel.perf_event_paranoid to 2 or less"
            ),
        }
    }
    let of_runtime = [
        SourceKind::Instrumented,
        SourceKind::TrappedPages,
        SourceKind::JavaCounts,
    ];
    let of_runtime = observing
        .source
        .iter()
        .find(|source| of_runtime.contains(source));
    if let (Some(source), None) = (of_runtime, &process.session) {
        bail!(
            "--source {}: is made inside the program, and process {shown} runs without Isotherm; use timer or accessed-bits, or start the program by \
             `isotherm record`",
            source.word()
        );
    }
    if process.is_32_bit && observing.source.contains(&SourceKind::Timer) {
        bail!(
            "process {shown}: is a 32-bit program, and the source timer decodes 64-bit code; --source accessed-bits counts its accessed pages, by \
             mapping"
        );
    }
    if let Some(session) = &process.session {
        observing.depth = session.depth;
    }
    checked(observing, true)
}

/// The flags, if each is of a source that is used.
fn checked(observing: Observing, is_java: bool) -> Result<Observing> {
    if observing.cache.is_some() && !observing.source.iter().any(|it| it.is_blind_to_caches()) {
        bail!(
            "--cache: works with the source timer only; other sources see what the processor's caches served, \
             or count pages"
        );
    }
    if observing.source.contains(&SourceKind::JavaCounts) && !is_java {
        bail!(
            "--source java-counts: works with Java programs only, whose command begins with the `java` of a JDK"
        );
    }
    if observing.source.contains(&SourceKind::Instrumented) {
        return Ok(observing);
    }
    if observing.cache_filter.is_some() {
        bail!(
            "--cache-filter: works with the source instrumented only, for programs compiled with \
             isotherm-cc --profile; other sources sample misses of the processor's own caches, or pages"
        );
    }
    let has_hardware = observing.source.iter().any(|it| it.is_hardware());
    if observing.period.is_some() && !has_hardware {
        bail!(
            "--period: works with the sources instrumented, for programs compiled with isotherm-cc --profile, pebs, ibs \
             and spe; --frequency sets the rate of other sources"
        );
    }
    if observing.stores && !has_hardware {
        bail!(
            "--stores: works with the sources pebs, ibs and spe only; others count stores where they see them"
        );
    }
    Ok(observing)
}

/// Attaches to a program that is held before its exec. The timer can change to the other rates.
pub(crate) fn attach(ready: &Ready, observing: &Observing, other_hz: &'static [u32]) -> LiveRun {
    let config = live_config(Some(ready.session.path()), observing, other_hz);
    LiveRun::attach(config, ready.pid())
}

/// Attaches to a process that runs already, and to its session where it has one.
///
/// # Errors
/// The kernel refuses all of the sources.
pub(crate) fn attach_running(process: &RunningProcess, observing: &Observing) -> Result<LiveRun> {
    let session = process.session.as_ref();
    let directory = session.map(|session| session.directory.as_path());
    let config = live_config(directory, observing, &[]);
    let run = LiveRun::attach_running(config, process.process);
    if let Some(why) = run.refusal() {
        bail!(
            "process {}: cannot be sampled: {why}; --source accessed-bits counts its accessed pages without perf",
            process.shown()
        );
    }
    Ok(run)
}

fn live_config(
    session: Option<&Path>,
    observing: &Observing,
    other_hz: &'static [u32],
) -> LiveConfig {
    let mut config = LiveConfig::new(session.unwrap_or(Path::new("")), observing.source.clone());
    config.session_dir = session.map(Path::to_owned);
    config.events = EventSettings {
        hz: timer_hz(observing),
        other_hz,
        // The period of a program's own counts is in the runtime's configuration.
        period: observing.period,
        stores: observing.stores,
    };
    config.cache = cache(observing).unwrap_or_default();
    config.cache_filter = observing.cache_filter;
    config
}

/// The profile's metadata that is known before the run.
pub(crate) fn meta(words: &[OsString], observing: &Observing, emulated: bool) -> Meta {
    let uname = rustix::system::uname();
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let pairs = [
        ("kernel", uname.release().to_string_lossy().into_owned()),
        (
            "architecture",
            uname.machine().to_string_lossy().into_owned(),
        ),
        ("processor", processor_name()),
        ("processors", processors.to_string()),
        ("memory_bytes", tiers_choice::memory().0.to_string()),
    ];
    Meta {
        isotherm: env!("CARGO_PKG_VERSION").to_owned(),
        command: shell_quoting::as_text(words),
        started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        machine: pairs.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        depth: observing.depth,
        epoch_length: observing.epoch,
        chunk: observing.chunk,
        sample_interval: Some(sample_interval(observing)),
        cache_filter: observing.cache_filter,
        emulated,
        cache: cache(observing),
    }
}

/// Bytes of cache that the estimate of served samples assumes; `None` where no source needs one, or none is known.
fn cache(observing: &Observing) -> Option<Bytes> {
    let mut sources = observing.source.iter();
    if !sources.any(|source| source.is_blind_to_caches()) {
        return None;
    }
    let known = || caches::expected(Path::new("/"), &affinity::allowed().unwrap_or_default());
    observing
        .cache
        .or_else(known)
        .filter(|cache| *cache > Bytes::ZERO)
}

/// Samples a second of processor time of each thread, of a timer whose rate is not chosen otherwise.
fn timer_hz(observing: &Observing) -> u32 {
    observing.frequency.unwrap_or(USUAL_HZ)
}

/// Processor time between two samples of the timer.
pub(crate) fn sample_interval(observing: &Observing) -> Nanos {
    Nanos(1_000_000_000 / u64::from(timer_hz(observing).max(1)))
}

/// The processor's model name, if the kernel reports it.
fn processor_name() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line
        .and_then(|line| line.split(':').nth(1))
        .unwrap_or("unknown");
    name.trim().to_owned()
}
