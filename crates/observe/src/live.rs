//! [`LiveRun`] observes one running program and its child processes, for `isotherm record` and `isotherm run`: it joins the sources, the
//! session files and page tables into batches. It also gives the program's memory in units, for epoch policies, and in runs of pages of one
//! tier, for an *optimization*.
//!
//! ```text
//! program_samples -------------------> accesses --+
//! sources that scan -----------------> accesses --+--> Batch
//! session files, page tables --------> sites, extents, counters --+
//! regions (of a process that ran already) -> sites, extents ------+
//! ```
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use isotherm_model::{batch::Epoch, port::Observer, source_kind::SourceKind};
//! use isotherm_observe::live::{LiveConfig, LiveRun};
//! let config = LiveConfig::new("/tmp/session".as_ref(), vec![SourceKind::Timer]);
//! let mut run = LiveRun::attach(config, 4711); // before exec: counting begins there
//! run.drain(); // a few times an epoch
//! let batch = run.observe(Epoch(0))?;
//! # Ok(()) }
//! ```

mod running;
mod without_runtime;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use isotherm_model::batch::{Batch, Count, Epoch, Extent, Process, SourceReport};
use isotherm_model::movement::NodeId;
use isotherm_model::port::{Clock, Observer};
use isotherm_model::site::Site;
use isotherm_model::source_kind::{ProfilingMethod, SourceKind};
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::watch::{Observation, ResidentRun, Watched};

use crate::clock::MachineClock;
use crate::cpu_time::CpuTime;
use crate::extent_changes::ExtentChanges;
use crate::java::{self, JavaHeaps};
use crate::page_units;
use crate::regions::Regions;
use crate::resident::PageTables;
use crate::sessions::Sessions;
use crate::source::cost_budget::rest_after;
use crate::source::program_samples::ProgramSamples;
use crate::source::registry::{self, ScanSettings};
use crate::source::sampled_event::EventSettings;
use crate::source::throttle::SourceThrottle;
use crate::source::{AccessList, ScanContext, Source, silence};
use crate::watch::candidates::{Candidates, Filter, ProcessSelection};
use crate::watch::memory::NodeLayout;
use without_runtime::WithoutRuntime;

/// The configuration of a live run.
#[derive(Clone, Debug)]
pub struct LiveConfig {
    /// The directory of the runtime's session files; `None` of a process without the runtime.
    pub session_dir: Option<PathBuf>,
    /// Sources to use.
    pub sources: Vec<SourceKind>,
    /// The rates and periods of the sampled events.
    pub events: EventSettings,
    /// Bytes of cache of the program, for the estimate of what they served; zero for no estimate.
    pub cache: Bytes,
    /// Size of the cache filter in the runtime, where it has one: only its misses are counted.
    pub cache_filter: Option<Bytes>,
    /// Root of the file system that holds `proc` and `sys`.
    pub root: PathBuf,
}

impl LiveConfig {
    /// These sources at 1 kHz, on this machine, without an estimate of the caches.
    #[must_use]
    pub fn new(session_dir: &Path, sources: Vec<SourceKind>) -> Self {
        Self {
            session_dir: Some(session_dir.to_owned()),
            sources,
            events: EventSettings::at(1_000),
            cache: Bytes::ZERO,
            cache_filter: None,
            root: PathBuf::from("/"),
        }
    }
}

/// Why a run cannot be observed: the session directory cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the session directory {path}: {error}; was it removed during the run?")]
pub struct LiveError {
    path: String,
    error: std::io::Error,
}

/// The resident data of processes, and its tiers.
#[derive(Clone, Debug, Default)]
pub struct ResidentRuns {
    /// The runs of each process, by address.
    pub runs: BTreeMap<Process, Vec<ResidentRun>>,
    /// Room of the emulated machine's fast tier.
    pub fast_capacity: Option<Bytes>,
}

/// The part of the time that measuring resident pages may take, in millionths.
const RESIDENT_PPM: u64 = 20_000;

/// Processor time after which a source without samples has a warning.
const A_WHILE: Nanos = Nanos(100_000_000);

/// Time for which the choice of the processes that are worth a scan stays valid.
const CHOICE_STAYS: Nanos = Nanos(1_000_000_000);

/// One observed program and its child processes.
pub struct LiveRun {
    config: LiveConfig,
    clock: MachineClock,
    program: Program,
    /// The sources that scan, each with the reason if it could not be opened.
    scans: Vec<Box<dyn Source>>,
    /// The report on the session files: not a source of accesses, but with a cost and a warning.
    files: SourceReport,
    resident: SourceReport,
    resident_next: Nanos,
    sessions: Sessions,
    java: JavaHeaps,
    /// The memory without an allocation site, of a process that ran already.
    regions: Option<Regions>,
    accesses: AccessList,
    without_runtime: WithoutRuntime,
    extents: ExtentChanges,
    since: Nanos,
    /// Accesses are observed. Sizes always are.
    is_sampling: bool,
}

/// The program's samples, and the choice of its processes and sources that are worth their cost.
struct Program {
    samples: ProgramSamples,
    cpu: CpuTime,
    /// The processes that are worth a scan of accessed bits, as of the given time.
    worth: Option<(Nanos, Vec<u32>)>,
    candidates: Candidates,
    /// Throttles the scans of accessed bits, where there are any.
    bits: Option<SourceThrottle>,
    /// Throttles the events of PMUs, where there are any.
    hardware: Option<SourceThrottle>,
}

impl LiveRun {
    /// Attaches to a process that waits before its exec; counting begins there. The report of each
    /// source that cannot be used gives the reason.
    #[must_use]
    pub fn attach(config: LiveConfig, pid: u32) -> Self {
        Self::open(config, |config| {
            let LiveConfig { sources, root, .. } = config;
            let samples = ProgramSamples::open(sources, root, (config.events, config.cache), pid);
            let throttle = |method| SourceThrottle::of_program(method, root, pid);
            let scans_bits = sources
                .iter()
                .any(|source| source.method() == ProfilingMethod::AccessedBits);
            Program {
                cpu: CpuTime::new(pid),
                worth: None,
                candidates: Candidates::new(&root.join("proc")),
                bits: scans_bits.then(|| throttle(ProfilingMethod::AccessedBits)),
                hardware: samples
                    .has_hardware()
                    .then(|| throttle(ProfilingMethod::TraceSamples)),
                samples,
            }
        })
    }

    /// Opens the sources that scan, and the program by `program`.
    fn open(mut config: LiveConfig, program: impl FnOnce(&LiveConfig) -> Program) -> Self {
        // A source that is named twice observes once.
        let mut known = BTreeSet::new();
        config.sources.retain(|source| known.insert(*source));
        let settings = ScanSettings {
            root: &config.root,
            state: None,
            // The user chose the source and its cost.
            budget_ppm: u64::MAX,
            cache_filter: config.cache_filter,
        };
        let scans = config.sources.iter();
        let scans = scans.filter_map(|source| registry::open(*source, &settings)?.ok());
        let proc_root = config.root.join("proc");
        let directory = config.session_dir.as_deref();
        Self {
            scans: scans.collect(),
            files: SourceReport::new("session-files", "written by the runtime as it works"),
            resident: SourceReport::new(
                "resident-set",
                "read from outside, about 0.05 us a page without PAGEMAP_SCAN; at most 2 % of the time",
            ),
            resident_next: Nanos::ZERO,
            sessions: match directory {
                Some(directory) => Sessions::new(directory, &proc_root),
                None => Sessions::none(&proc_root),
            },
            // A directory that does not exist holds no agent's file.
            java: JavaHeaps::new(directory.unwrap_or(Path::new("")), &proc_root),
            regions: None,
            program: program(&config),
            accesses: AccessList::default(),
            without_runtime: WithoutRuntime::default(),
            extents: ExtentChanges::default(),
            since: MachineClock.now(),
            is_sampling: true,
            clock: MachineClock,
            config,
        }
    }

    /// Finds the session files of processes that are new since the last [`Self::drain`].
    pub fn discover(&mut self) {
        // `observe` reports an unreadable directory.
        let _ = self.sessions.discover();
    }

    /// The living processes that have a session file, as of the last [`Self::drain`] or [`Self::discover`].
    pub fn living(&self) -> impl Iterator<Item = Process> {
        self.sessions.live()
    }

    /// Starts or stops the observation of accesses, and with it its cost, but for that of sources within the program. Samples that were
    /// taken before are in the next batch.
    pub fn switch_sampling(&mut self, on: bool) {
        if self.is_sampling == on {
            return;
        }
        self.is_sampling = on;
        self.program.samples.switch(on);
    }

    /// The rates that the timer can have, in samples a second of each thread's processor time; none without a timer.
    #[must_use]
    pub fn timer_rates(&self) -> &[u32] {
        self.program.samples.timer_rates()
    }

    /// The rate that the timer has; `None` without one.
    #[must_use]
    pub fn timer_hz(&self) -> Option<u32> {
        self.program.samples.timer_hz()
    }

    /// Changes the rate of the timer to one of [`LiveRun::timer_rates`].
    pub fn set_timer_hz(&mut self, hz: u32) {
        self.program.samples.set_timer_hz(hz, &self.clock);
    }

    /// Threads of a process; none of one that has ended.
    #[must_use]
    pub fn threads(&self, process: Process) -> usize {
        let tasks = self.config.root.join(format!("proc/{}/task", process.pid));
        std::fs::read_dir(tasks).map_or(0, Iterator::count)
    }

    /// Reads all records since the last call, so that no ring overflows and no process or mapping
    /// that lives for less than an epoch is missed. Call it about ten times a second; `observe`
    /// calls it too.
    pub fn drain(&mut self) {
        // `observe` reports an unreadable directory.
        let _ = self.read_all();
    }

    /// As [`Self::drain`].
    ///
    /// # Errors
    /// The session directory cannot be read; everything else was.
    fn read_all(&mut self) -> Result<(), LiveError> {
        let program = &mut self.program;
        program.samples.drain(&self.clock);
        self.java.discover();
        program.samples.attribute(&mut self.java);
        if !self.is_sampling {
            program.samples.look_up();
        }
        let processes = program.samples.processes();
        program.cpu.update(processes, &self.config.root);
        let begin = self.clock.busy();
        if self.regions.is_some() {
            self.sessions.follow_later(processes.pids());
        }
        let discovered = self.sessions.discover();
        self.sessions.refresh(processes);
        self.files.taken = self.sessions.len() as u64;
        self.files.usable = self.files.taken;
        self.files.lost = self.sessions.refused().len() as u64;
        self.files.cost += self.clock.busy().saturating_sub(begin);
        self.scan(Nanos::ZERO, &[], |source| source.overflows());
        self.measure();
        let directory = self.config.session_dir.as_deref();
        let directory = directory.unwrap_or(Path::new(""));
        discovered.map_err(|error| LiveError {
            path: directory.display().to_string(),
            error,
        })
    }

    /// The time within which [`Self::read_heap_samples`] is to be called again.
    #[must_use]
    pub fn samples_within(&self) -> Duration {
        match self.java.is_empty() {
            true => Duration::MAX,
            false => java::READ_EVERY,
        }
    }

    /// Reads the samples of programs with a Java heap, before its objects move. Does nothing for other programs.
    pub fn read_heap_samples(&mut self) {
        if !self.java.is_empty() {
            self.program.samples.drain(&self.clock);
            self.program.samples.attribute(&mut self.java);
        }
    }

    /// Sites that own memory and did not when this was last called, as of the last [`LiveRun::drain`].
    pub fn take_owners(&mut self) -> Vec<Site> {
        self.sessions.take_owners()
    }

    /// Scans these processes by the sources that are wanted.
    fn scan(&mut self, span: Nanos, processes: &[Process], wanted: impl Fn(&dyn Source) -> bool) {
        if !self.is_sampling {
            return;
        }
        let mut scan = ScanContext {
            clock: &self.clock,
            proc_root: &self.config.root.join("proc"),
            page: rustix::param::page_size() as u64,
            span,
            busy: Nanos::ZERO,
            processes,
            resident: &BTreeMap::new(),
            sessions: Some(&mut self.sessions),
        };
        for source in self.scans.iter_mut().filter(|source| wanted(&***source)) {
            source.scan(&mut scan, &mut self.accesses);
        }
    }

    /// Measures resident pages, unless that would take more than its share of the time.
    fn measure(&mut self) {
        let now = self.clock.now();
        if now < self.resident_next {
            return;
        }
        let begin = self.clock.busy();
        let measured = self.sessions.measure() as u64;
        let cost = self.clock.busy().saturating_sub(begin);
        self.resident.taken += measured;
        self.resident.usable += measured;
        self.resident.cost += cost;
        let cost: Nanos = [cost, self.read_regions()].into_iter().sum();
        self.resident_next = [now, rest_after(cost, RESIDENT_PPM)].into_iter().sum();
    }

    /// Names the images of scanned processes: a forked child without a session file has the memory of its parent.
    fn name_images(&mut self, now: Nanos) {
        let processes = self.program.samples.processes();
        let mut images = BTreeMap::new();
        for access in self.accesses.iter_mut() {
            if access.source.method() == ProfilingMethod::AccessedBits {
                let pid = access.process.pid;
                let image = images.entry(pid);
                access.process =
                    *image.or_insert_with(|| self.sessions.image_at(processes, pid, now.0));
            }
        }
    }

    /// The processes to scan for accessed bits, their images not yet named; none while the counter that they depend on is low.
    fn worth_a_scan(&mut self) -> Vec<Process> {
        let now = self.clock.now();
        let program = &mut self.program;
        if program.bits.as_mut().is_none_or(SourceThrottle::rests) {
            return Vec::new();
        }
        let processes = program.samples.processes();
        let alive: Vec<u32> = processes.pids().collect();
        let is_old = |(chosen, _): &(Nanos, _)| now.saturating_sub(*chosen) >= CHOICE_STAYS;
        if program.worth.as_ref().is_none_or(is_old) {
            let selection = ProcessSelection {
                pids: alive.clone(),
                ..ProcessSelection::default()
            };
            let own = std::process::id();
            // A process that was named is worth it.
            let filter = match self.regions {
                Some(_) => Filter::Off,
                None => Filter::Tmp,
            };
            let chosen = program.candidates.look(&selection, filter, now, own);
            let chosen = chosen.iter().map(|one| one.process.pid).collect();
            program.worth = Some((now, chosen));
        }
        let chosen = program.worth.iter().flat_map(|(_, chosen)| chosen);
        chosen
            .filter(|pid| alive.contains(pid))
            .map(|pid| Process {
                pid: *pid,
                image: 0,
            })
            .collect()
    }

    /// TMP's rule for hardware samples: off while cache misses are few.
    fn throttle_hardware(&mut self) {
        if self.is_sampling
            && let Some(throttle) = &mut self.program.hardware
        {
            let rests = throttle.rests();
            self.program.samples.switch_hardware(!rests);
        }
    }

    /// The input of the daemon's step for the program's processes on an emulated machine: the units of their memory now, and the
    /// accesses of `batch`, which is the last one.
    #[must_use]
    pub fn observation(&self, batch: &Batch, unit: Bytes) -> Observation {
        let mut seen = Observation {
            epoch: batch.epoch,
            span: batch.span,
            accesses: batch.accesses.clone(),
            sources: batch.sources.clone(),
            ..Observation::default()
        };
        for (process, pages) in self.sessions.page_tiers() {
            let comm = format!("proc/{}/comm", process.pid);
            let name = std::fs::read_to_string(self.config.root.join(comm)).unwrap_or_default();
            seen.processes.push(Watched {
                process,
                name: name.trim_end().to_owned(),
                control_group: String::new(),
                warning: String::new(),
            });
            let statics = self.sessions.static_tiers(process);
            let own = batch.accesses.iter().filter(|one| one.process == process);
            let placed = page_units::placed(&pages, &statics, own);
            seen.placed.insert(process, placed);
            seen.residency
                .extend(page_units::units(process, &pages, &statics, unit));
            // One machine, of which each process says what its static data leaves.
            let fast = page_units::fast_statics(&statics);
            let capacity = pages.fast_capacity.saturating_add(fast);
            seen.capacity = seen.capacity.max(capacity);
        }
        seen
    }

    /// The runs of resident data of each living process, each fast or slow: by the tiers of an emulated machine or, where `fast_nodes` is
    /// not empty, by the nodes of the pages. Also the room of the emulated fast tier. A process that ends meanwhile has no runs.
    #[must_use]
    pub fn resident_runs(&self, fast_nodes: &BTreeSet<NodeId>) -> ResidentRuns {
        let mut found = ResidentRuns::default();
        for (process, pages) in self.sessions.page_tiers() {
            let statics = self.sessions.static_tiers(process);
            let mut runs = match statics.is_empty() {
                true => Vec::new(),
                false => page_units::static_runs(&statics, &self.sessions.ranges(process)),
            };
            // What the process owns of static data may move, and is a part of the room.
            let fast = runs.iter().filter(|run| run.is_fast);
            let fast: Bytes = fast.map(|run| run.range.bytes).sum();
            let most = found.fast_capacity.unwrap_or_default();
            let own = pages.fast_capacity.saturating_add(fast);
            found.fast_capacity = Some(most.max(own));
            runs.extend(page_units::runs(pages.start, &pages.tiers));
            runs.sort_unstable_by_key(|run| run.range.start);
            found.runs.insert(process, runs);
        }
        if !fast_nodes.is_empty() {
            let layout = NodeLayout {
                proc_root: self.config.root.join("proc"),
                unit: page_units::NODE_UNIT.0,
                page: rustix::param::page_size() as u64,
                fast: fast_nodes.clone(),
            };
            for process in self.sessions.live() {
                let resident = layout.resident(process, 0);
                let held = resident.and_then(|resident| layout.held(process, &resident));
                let owned = self.sessions.ranges(process);
                let tables = PageTables::open(&layout.proc_root, process.pid);
                let spans = tables.and_then(|tables| tables.spans(&owned));
                let (units, spans) = (held.unwrap_or_default(), spans.unwrap_or_default());
                let runs = page_units::runs_of_units(&units, &spans);
                found.runs.insert(process, runs);
            }
        }
        found
    }

    /// The reports of all sources so far.
    #[must_use]
    pub fn reports(&self) -> Vec<SourceReport> {
        let used = self.program.cpu.used();
        let mut reports: Vec<SourceReport> = self.program.samples.reports(used).collect();
        reports.extend(self.scans.iter().map(|source| {
            let mut report = source.report();
            if report.warning.is_empty()
                && let Some(silence) = silence(&report, used, A_WHILE)
            {
                let advice = source.advice();
                let between = if advice.is_empty() { "" } else { "; " };
                report.warning = format!("{silence}{between}{advice}");
            }
            report
        }));
        let trouble = match self.config.session_dir {
            Some(_) => self.session_trouble(used),
            None => String::new(),
        };
        let is_known = !self.sessions.is_empty() && trouble.is_empty();
        reports.extend(self.config.session_dir.is_some().then(|| SourceReport {
            warning: trouble,
            ..self.files.clone()
        }));
        reports.extend(self.regions.iter().map(Regions::report));
        let mut resident = self.resident.clone();
        let unmeasured = resident.taken == 0 && !self.sessions.have_measured_themselves();
        if unmeasured && is_known {
            resident.warning = "the program ended before its memory was measured: sizes are those \
                                that it asked for at one time, or mapped"
                .to_owned();
        }
        reports.push(resident);
        reports.extend(self.java.reports());
        reports
    }

    /// Adds the extents of Java sites to those of the living images.
    fn add_java_extents(&mut self, live: &mut Vec<Extent>) {
        let (sessions, processes) = (&self.sessions, self.program.samples.processes());
        let image = |pid| sessions.image_at(processes, pid, u64::MAX);
        self.java.add_extents(live, image);
    }

    fn session_trouble(&self, cpu: Nanos) -> String {
        if let Some((name, why)) = self.sessions.refused().iter().next() {
            let count = self.sessions.refused().len();
            return format!("{count} session files cannot be used; {name}: {why}");
        }
        if self.sessions.is_empty() && cpu > A_WHILE {
            return "no process made a session file: is libisotherm.so preloaded, and the program \
                    linked dynamically?"
                .to_owned();
        }
        self.without_runtime
            .warning(|process| self.sessions.has(process))
    }
}

impl Observer for LiveRun {
    type Error = LiveError;

    fn observe(&mut self, epoch: Epoch) -> Result<Batch, LiveError> {
        self.read_all()?;
        let now = self.clock.now();
        let span = now.saturating_sub(std::mem::replace(&mut self.since, now));
        let processes = self.worth_a_scan();
        self.scan(span, &processes, |source| !source.overflows());
        self.name_images(now);
        self.throttle_hardware();
        let begin = self.clock.busy();
        self.sessions.read_sites();
        self.files.cost += self.clock.busy().saturating_sub(begin);
        let samples = &mut self.program.samples;
        samples.take_accesses(&self.sessions, &mut self.accesses);
        let instructions = samples.take_instructions();
        let mut counts = vec![Count::of_run("cpu_ns", self.program.cpu.used().0)];
        self.java.read_sites();
        let (sessions, processes) = (&self.sessions, samples.processes());
        let image = |pid| sessions.image_at(processes, pid, u64::MAX);
        self.java.count_accesses(image, &mut self.accesses);
        let accesses = self.accesses.take();
        let has_file = |process| sessions.has(process);
        self.without_runtime.count(&accesses, processes, has_file);
        let sampled: BTreeSet<Process> = accesses.iter().map(|access| access.process).collect();
        let mut now = self.sessions.extents(&sampled);
        self.add_java_extents(&mut now.live);
        let mut objects = self.sessions.take_objects();
        let mut region_sites = Vec::new();
        if let Some(regions) = &mut self.regions {
            let own = regions.extents();
            now.live.extend(own.live);
            now.departed.extend(own.departed);
            objects.extend(regions.take_objects());
            region_sites = regions.take_sites();
        }
        let (extents, freed) = self.extents.since(now.live);
        counts.extend(self.sessions.counts());
        counts.extend(self.java.counts());
        let mut sites = self.sessions.take_changed_sites();
        sites.extend(self.java.take_changed_sites());
        sites.extend(region_sites);
        Ok(Batch {
            epoch,
            span,
            sites,
            extents,
            freed,
            departed: now.departed,
            objects,
            accesses,
            instructions,
            counts,
            sources: self.reports(),
        })
    }
}
