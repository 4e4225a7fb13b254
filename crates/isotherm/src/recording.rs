//! Watches a running program, epoch by epoch, until it ends.

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
use isotherm_observe::instrumented::{Instrumentation, instrumentation};
use isotherm_observe::live::{LiveConfig, LiveError, LiveRun, Source};
use isotherm_observe::probe::Machine;
use isotherm_pipeline::{Step, StepReport};

use crate::cli::Observing;
use crate::launch::{Ready, Running};
use crate::naming::Naming;
use crate::notes::Notes;
use crate::program;

/// Pages trapped at a time by the source `trapped-pages`, and for how long: KERNEL measurements
/// gave 0.97 to 0.995 of the ideal capture for 32 to 128 chunks at 100 ms.
const TRAPPED_PAGES: u64 = 128;
const TRAP_PERIOD: Nanos = Nanos(100_000_000);
const TRAP_SEED: u64 = 1;

/// Rings and the touch table are emptied this often, so that a full processor cannot overrun them
/// within a long epoch.
const DRAIN_EVERY: Duration = Duration::from_millis(100);

/// Epochs shorter than this would spend most of their time in reading the program's state.
const SHORTEST_EPOCH: Nanos = Nanos(20_000_000);

/// Checks what the flag table cannot.
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

/// Tells the runtime what it has to do for the sources: trap pages, count accesses.
pub(crate) fn for_sources(
    mut configuration: Configuration,
    observing: &Observing,
) -> Configuration {
    if observing.source.contains(&Source::TrappedPages) {
        configuration.trapping = Some((TRAPPED_PAGES, TRAP_PERIOD, TRAP_SEED));
    }
    if observing.source.contains(&Source::Instrumented) {
        configuration.access_period = Some(observing.period.unwrap_or(DEFAULT_PERIOD));
        configuration.access_filter = observing.cache_filter;
    }
    configuration
}

/// The flags with the sources to use: those asked for, else the program's own counts if it was built
/// to count, else the best that this machine has.
///
/// # Errors
/// A flag is given for a source that is not used.
pub(crate) fn with_sources(
    observing: &Observing,
    words: &[OsString],
    notes: Notes,
) -> Result<Observing> {
    let mut observing = observing.clone();
    if observing.source.is_empty() {
        // A program that cannot be found is refused when it is started.
        let program = words.first().and_then(|name| program::check(name).ok());
        let built = program.map_or(Instrumentation::None, |path| instrumentation(&path));
        if let Instrumentation::Other(version) = built {
            notes.warn(&format!(
                "the program counts its accesses, but for version {version} of the runtime; \
                 compile it again with this version's isotherm-cc --profile"
            ));
        }
        let source = match built {
            Instrumentation::Current => Some(Source::Instrumented),
            Instrumentation::None | Instrumentation::Other(_) => {
                best_source(Path::new("/"), &Machine)
            }
        };
        observing.source.extend(source);
    }
    if observing.source.contains(&Source::Instrumented) {
        return Ok(observing);
    }
    if observing.cache_filter.is_some() {
        bail!(
            "--cache-filter: works with the source instrumented only, for programs compiled with \
             isotherm-cc --profile; other sources sample what the processor's own caches miss, or pages"
        );
    }
    if observing.period.is_some() {
        bail!(
            "--period: works with the source instrumented only, for programs compiled with isotherm-cc \
             --profile; --frequency says how often other sources sample"
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
    step: &Step<LiveRun, E, R>,
    naming: Naming,
) -> Vec<Site> {
    naming.finish(step.attribution().sites().values().cloned().collect())
}

/// What the profile says of the run before it begins.
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

/// The processor's own name, where the kernel tells it.
fn processor_name() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line
        .and_then(|line| line.split(':').nth(1))
        .unwrap_or("unknown");
    name.trim().to_owned()
}

/// Says that a recording held nothing, and so did not replace the profile that was there.
pub(crate) fn warn_of_former(path: &Path, notes: Notes) {
    notes.warn(&format!(
        "nothing was seen of the program, so {} stays the profile that it was",
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

/// Troubles of the sources that have not been said yet: each is said once.
#[derive(Debug, Default)]
pub(crate) struct Troubles {
    said: BTreeSet<String>,
    unwritten: bool,
}

impl Troubles {
    /// Says those of a segment.
    fn say(&mut self, segment: &Segment, notes: Notes) {
        for source in segment
            .sources
            .iter()
            .filter(|source| !source.trouble.is_empty())
        {
            self.once(
                &format!("source {}: {}", source.name, source.trouble),
                notes,
            );
        }
    }

    /// Says what went wrong in a step, and returns what it learnt. What the last step could not write
    /// the end tries once more, and tells of it.
    pub(crate) fn hear<F: std::error::Error>(
        &mut self,
        report: Result<StepReport<F>, LiveError>,
        last: bool,
        notes: Notes,
    ) -> Option<Segment> {
        match report {
            Ok(report) => {
                self.say(&report.segment, notes);
                if let Err(error) = report.recorded
                    && !last
                {
                    self.unwritten = true;
                    self.once(&error.to_string(), notes);
                }
                Some(report.segment)
            }
            Err(error) => {
                self.once(&format!("nothing could be observed: {error}"), notes);
                None
            }
        }
    }

    /// What the end of a recording to `path` failed of; without the reason where that was said while the
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

    /// Says a sentence unless it was said before.
    fn once(&mut self, sentence: &str, notes: Notes) {
        if self.is_new(sentence) {
            notes.warn(sentence);
        }
    }

    /// Notes a sentence and answers whether it was not said before. The same sentence with other
    /// figures is no news: many a trouble grows with every epoch.
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
    use super::Troubles;

    #[test]
    fn a_trouble_that_only_grows_is_said_once() {
        let mut troubles = Troubles::default();
        assert!(troubles.is_new("source timer: no samples in 10.1 ms"));
        assert!(!troubles.is_new("source timer: no samples in 12 ms"));
        assert!(troubles.is_new("source timer: throttled 3 times"));
    }
}
