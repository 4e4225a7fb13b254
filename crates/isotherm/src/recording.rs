//! Observes a running program, epoch by epoch, until it ends, for `record` and `run`.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, anyhow, bail};
use isotherm_abi::accesses::DEFAULT_PERIOD;
use isotherm_act::configuration::Configuration;
use isotherm_model::port::{Executor, Recorder};
use isotherm_model::profile::{Meta, Profile, Segment};
use isotherm_model::site::Site;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_observe::doctor::best_source;
use isotherm_observe::live::{LiveConfig, LiveError, LiveRun, SampleSource};
use isotherm_observe::probe::KernelProbe;
use isotherm_pipeline::{Step, StepReport};
use isotherm_symbols::access_counting::{Instrumentation, instrumentation};

use crate::cli::Observing;
use crate::launch::{Ready, Running};
use crate::program;
use crate::site_names::Naming;
use isotherm_console::Console;

/// Pages trapped at a time by the source `trapped-pages`, and the length of a window: measurements of the kernel
/// gave 0.97 to 0.995 of the ideal capture for 32 to 128 chunks at 100 ms.
const TRAPPED_PAGES: u64 = 128;
const TRAP_PERIOD: Nanos = Nanos(100_000_000);
const TRAP_SEED: u64 = 1;

/// Rings and the touch table are emptied this often, so that a full processor cannot overrun them
/// within a long epoch.
const DRAIN_EVERY: Duration = Duration::from_millis(100);

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
    if observing.source.contains(&SampleSource::TrappedPages) {
        configuration.trapping = Some((TRAPPED_PAGES, TRAP_PERIOD, TRAP_SEED));
    }
    if observing.source.contains(&SampleSource::Instrumented) {
        configuration.access_period = Some(observing.period.unwrap_or(DEFAULT_PERIOD));
        configuration.access_filter = observing.cache_filter;
    }
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
            Instrumentation::Current => Some(SampleSource::Instrumented),
            Instrumentation::None | Instrumentation::Other(_) => {
                best_source(Path::new("/"), &KernelProbe)
            }
        };
        observing.source.extend(source);
    }
    if observing.source.contains(&SampleSource::Instrumented) {
        return Ok(observing);
    }
    if observing.cache_filter.is_some() {
        bail!(
            "--cache-filter: works with the source instrumented only, for programs compiled with \
             isotherm-cc --profile; other sources sample misses of the processor's own caches, or pages"
        );
    }
    if observing.period.is_some() {
        bail!(
            "--period: works with the source instrumented only, for programs compiled with isotherm-cc \
             --profile; --frequency sets the rate of other sources"
        );
    }
    Ok(observing)
}

/// Attaches to a program that is held before its exec.
///
/// # Errors
/// The session directory cannot be read.
pub(crate) fn attach(ready: &Ready, observing: &Observing) -> Result<LiveRun> {
    let mut config = LiveConfig::new(ready.session.path(), observing.source.clone());
    config.sample_hz = observing.frequency;
    config.cache_filter = observing.cache_filter;
    let mut run = LiveRun::new(config);
    run.attach(ready.pid())?;
    Ok(run)
}

/// Runs a step each epoch until the program ends, and one more for what came after the last; or until
/// `stop` says so, which is asked after each wait. `note` hears of each step, and whether it was the
/// last; the sites of the segment that it returns are named. Returns how the program ended, if it did.
///
/// # Errors
/// The program could not be waited for.
pub(crate) fn watch<E: Executor, R: Recorder>(
    step: &mut Step<LiveRun, E, R>,
    running: &mut Running,
    epoch: Nanos,
    naming: &mut Naming,
    stop: impl Fn(&Running) -> bool,
    mut note: impl FnMut(Result<StepReport<R::Error>, LiveError>, bool) -> Option<Segment>,
) -> Result<Option<ExitStatus>> {
    let epoch = Duration::from_nanos(epoch.0);
    let mut due = Instant::now() + epoch;
    loop {
        let left = due.saturating_duration_since(Instant::now());
        let ended = running.wait(left.min(DRAIN_EVERY))?;
        step.observer.drain();
        naming.look_up_early(step.observer.take_owners());
        if ended.is_none() && stop(running) {
            return Ok(None);
        }
        if ended.is_none() && Instant::now() < due {
            continue;
        }
        let report = match ended {
            Some(_) => step.run_last(),
            None => step.run(),
        };
        if let Some(segment) = note(report, ended.is_some()) {
            naming.look_up(&segment);
        }
        if ended.is_some() {
            return Ok(ended);
        }
        // A step that took longer than an epoch must not be followed by a burst of steps.
        due = (due + epoch).max(Instant::now() + epoch / 2);
    }
}

/// The sites of a run with their frames named, for the profile's end.
pub(crate) fn named<E: Executor, R: Recorder>(
    step: &mut Step<LiveRun, E, R>,
    naming: Naming,
) -> Vec<Site> {
    let sites = step.attribution().sites().values().cloned().collect();
    // A failure is reported by the end of the recording, which writes the same again.
    naming.finish(sites, || drop(step.recorder.write_noted()))
}

/// The profile's metadata that is known before the run.
pub(crate) fn meta(words: &[OsString], observing: &Observing, emulated: bool) -> Meta {
    let uname = rustix::system::uname();
    let info = rustix::system::sysinfo();
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = info.totalram as u64 * u64::from(info.mem_unit);
    let pairs = [
        ("kernel", uname.release().to_string_lossy().into_owned()),
        (
            "architecture",
            uname.machine().to_string_lossy().into_owned(),
        ),
        ("processor", processor_name()),
        ("processors", processors.to_string()),
        ("memory_bytes", memory.to_string()),
    ];
    Meta {
        isotherm: env!("CARGO_PKG_VERSION").to_owned(),
        command: words
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        machine: pairs.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        depth: observing.depth,
        epoch_length: observing.epoch,
        chunk: observing.chunk,
        sample_interval: Some(sample_interval(observing)),
        cache_filter: observing.cache_filter,
        emulated,
    }
}

/// Processor time between two samples of the timer.
pub(crate) fn sample_interval(observing: &Observing) -> Nanos {
    Nanos(1_000_000_000 / u64::from(observing.frequency.max(1)))
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

/// Warns that a recording was empty, and so did not replace the existing profile.
pub(crate) fn warn_of_former(path: &Path, console: Console) {
    console.warn(&format!(
        "nothing of the program was observed, so {} is left unchanged",
        path.display()
    ));
}

/// Keeps the whole profile in memory, for online runs that write none.
#[derive(Debug)]
pub(crate) struct InMemory(pub Profile);

impl Recorder for InMemory {
    type Error = Infallible;

    fn record(&mut self, segment: &Segment) -> Result<(), Infallible> {
        self.0.absorb(segment.clone());
        Ok(())
    }
}

/// Warnings of the sources: each is printed once.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    said: BTreeSet<String>,
    unwritten: bool,
}

impl Diagnostics {
    /// Prints the warnings of a segment.
    fn say(&mut self, segment: &Segment, console: Console) {
        for source in segment
            .sources
            .iter()
            .filter(|source| !source.warning.is_empty())
        {
            self.once(
                &format!("source {}: {}", source.name, source.warning),
                console,
            );
        }
    }

    /// Prints the errors of a step, and returns its segment. Data that the last step could not write
    /// is tried again at the end, which reports it.
    pub(crate) fn hear<F: std::error::Error>(
        &mut self,
        report: Result<StepReport<F>, LiveError>,
        last: bool,
        console: Console,
    ) -> Option<Segment> {
        match report {
            Ok(report) => {
                self.say(&report.segment, console);
                if let Err(error) = report.recorded
                    && !last
                {
                    self.unwritten = true;
                    self.once(&error.to_string(), console);
                }
                Some(report.segment)
            }
            Err(error) => {
                self.once(&format!("nothing could be observed: {error}"), console);
                None
            }
        }
    }

    /// The error at the end of a recording to `path`; without the reason if it was printed while the
    /// program ran.
    pub(crate) fn at_the_end(&self, error: isotherm_profile::Error, path: &Path) -> anyhow::Error {
        let isotherm_profile::Error::Finish { kept_epochs, .. } = &error else {
            return error.into();
        };
        let shown = path.display();
        match (self.unwritten, kept_epochs) {
            (false, _) => error.into(),
            (true, 0) => anyhow!("{shown}: nothing of the run could be recorded"),
            (true, kept) => {
                anyhow!("{shown}: the end of the run is not recorded, {kept} of its epochs are")
            }
        }
    }

    /// Prints a sentence unless it was printed before.
    fn once(&mut self, sentence: &str, console: Console) {
        if self.is_new(sentence) {
            console.warn(sentence);
        }
    }

    /// Records a sentence and returns true if it is new. The same sentence with other
    /// figures is not new, because many warnings have a count that grows with every epoch.
    fn is_new(&mut self, sentence: &str) -> bool {
        let is_figure = |letter: char| letter.is_ascii_digit() || letter == '.';
        self.said.insert(
            sentence
                .chars()
                .filter(|&letter| !is_figure(letter))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Diagnostics;

    #[test]
    fn a_trouble_that_only_grows_is_said_once() {
        let mut diagnostics = Diagnostics::default();
        assert!(diagnostics.is_new("source timer: no samples in 10.1 ms"));
        assert!(!diagnostics.is_new("source timer: no samples in 12 ms"));
        assert!(diagnostics.is_new("source timer: throttled 3 times"));
    }
}
