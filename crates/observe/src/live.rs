//! A live run for `isotherm record` and `isotherm run`: joins the sources, the session files and
//! the process tree of one program into batches.
//!
//! ```text
//! perf rings ---> perf events, by time --> code, processes ---> data addresses --+
//! touch rings --------------------------------------------------> addresses -----+--> Batch
//! accessed bits ------------------------------------------------> addresses -----+
//! access counts ------------------------------------------------> addresses -----+
//! session files ---> owners, sites, counters; page tables ---> extents ----------+
//! ```
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use isotherm_model::{batch::Epoch, port::Observer};
//! use isotherm_observe::live::{LiveConfig, LiveRun};
//! use isotherm_observe::source::SampleSource;
//! let config = LiveConfig::new("/tmp/session".as_ref(), vec![SampleSource::Timer]);
//! let mut run = LiveRun::new(config);
//! run.attach(4711)?; // before exec: counting begins there
//! run.drain(); // a few times an epoch
//! let batch = run.observe(Epoch(0))?;
//! # Ok(()) }
//! ```

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use isotherm_model::batch::{Batch, Count, Epoch, Process, Sample, SourceReport};
use isotherm_model::port::Observer;
use isotherm_model::site::Site;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_sys::perf::{PerfCounter, PerfEventAttributes};

use crate::accessed::{AccessedBits, spread};
use crate::clock::MachineClock;
use crate::counter_throttle::CounterThrottle;
use crate::cpu_time::CpuTime;
use crate::instrumented::Instrumented;
use crate::perf_source::{EventKind, PerfEvent, PerfSource, empty_report};
use crate::processes::Processes;
use crate::sessions::Sessions;
pub use crate::source::SampleSource;
use isotherm_model::port::Clock;
use isotherm_symbols::code::Code;
use isotherm_symbols::decode::Architecture;
use isotherm_topology::cpu_list;

/// The configuration of a live run.
#[derive(Clone, Debug)]
pub struct LiveConfig {
    /// The directory of the runtime's session files.
    pub session_dir: PathBuf,
    /// Sources to use.
    pub sources: Vec<SampleSource>,
    /// Timer samples per second of processor time.
    pub sample_hz: u32,
    /// Size of the cache filter in the runtime, where it has one: only its misses are counted.
    pub cache_filter: Option<Bytes>,
    /// Root of the file system that holds `proc` and `sys`.
    pub root: PathBuf,
}

impl LiveConfig {
    /// These sources at 1 kHz, on this machine.
    #[must_use]
    pub fn new(session_dir: &Path, sources: Vec<SampleSource>) -> Self {
        Self {
            session_dir: session_dir.to_owned(),
            sources,
            sample_hz: 1_000,
            cache_filter: None,
            root: PathBuf::from("/"),
        }
    }
}

/// Why a run cannot be observed.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The session directory cannot be read.
    #[error("cannot read the session directory {path}: {error}; was it removed during the run?")]
    Directory {
        /// The directory.
        path: String,
        /// The error of the kernel.
        error: std::io::Error,
    },
    /// `attach` was not called, or called twice.
    #[error("{0}")]
    Order(&'static str),
}

/// Most samples kept in one epoch; more are counted as dropped. 32 bytes each.
const SAMPLES_AT_MOST: usize = 4 << 20;

/// Bytes of one timer sample with its registers, rounded up.
const SAMPLE_BYTES: usize = 256;

/// Measuring resident pages may take one part in this number of the time.
const RESIDENT_SHARE: u64 = 50;

/// A sample whose process image is not yet known.
#[derive(Clone, Copy, Debug)]
struct Raw {
    pid: u32,
    time_ns: u64,
    address: u64,
    weight: u64,
}

/// One observed program and its child processes.
pub struct LiveRun {
    config: LiveConfig,
    clock: Box<dyn Clock + Send>,
    attached: Option<Attached>,
    perf: Vec<PerfSource>,
    accessed: Option<AccessedBits>,
    touches: Option<SourceReport>,
    instrumented: Option<Instrumented>,
    /// The report on the session files: not a source of samples, but with a cost and a warning.
    files: SourceReport,
    resident: SourceReport,
    resident_next: Nanos,
    sessions: Sessions,
    samples: Vec<Sample>,
    raw: Vec<Raw>,
    waiting: Vec<PerfEvent>,
    since: Nanos,
}

/// The state of a run once the program is known.
struct Attached {
    processes: Processes,
    code: Code,
    cpu: CpuTime,
    tlb: Option<(PerfCounter, CounterThrottle)>,
    cache: Option<(PerfCounter, CounterThrottle)>,
}

impl LiveRun {
    /// A run on this machine that is not yet attached to a process.
    #[must_use]
    pub fn new(config: LiveConfig) -> Self {
        Self::with_clock(config, Box::new(MachineClock))
    }

    /// As [`LiveRun::new`], with another clock.
    #[must_use]
    pub fn with_clock(config: LiveConfig, clock: Box<dyn Clock + Send>) -> Self {
        let wants = |source| config.sources.contains(&source);
        let touches_note = "3.2 us a trapped access by a signal handler, about 10 us by \
                            userfaultfd (2-core EPYC virtual machine, Linux 6.18)";
        let resident_note = "read from outside, about 0.05 us a page without PAGEMAP_SCAN; at \
                             most 2 % of the time";
        Self {
            accessed: wants(SampleSource::AccessedBits).then(AccessedBits::new),
            touches: wants(SampleSource::TrappedPages)
                .then(|| empty_report(SampleSource::TrappedPages.name(), touches_note.to_owned())),
            instrumented: wants(SampleSource::Instrumented)
                .then(|| Instrumented::new(config.cache_filter)),
            files: empty_report(
                "session-files",
                "written by the runtime as it works".to_owned(),
            ),
            resident: empty_report("resident-set", resident_note.to_owned()),
            resident_next: Nanos::ZERO,
            sessions: Sessions::new(&config.session_dir, &config.root.join("proc")),
            perf: Vec::new(),
            attached: None,
            samples: Vec::new(),
            raw: Vec::new(),
            waiting: Vec::new(),
            since: clock.now(),
            clock,
            config,
        }
    }

    /// Attaches to a process that waits before its exec; counting begins there. The report of each
    /// source that cannot be used gives the reason.
    ///
    /// # Errors
    /// It was called before.
    pub fn attach(&mut self, pid: u32) -> Result<(), LiveError> {
        if self.attached.is_some() {
            return Err(LiveError::Order(
                "a live run is attached to one process only",
            ));
        }
        let proc_root = self.config.root.join("proc");
        let cpus = cpu_list::online_cpus(&self.config.root);
        for source in self.config.sources.clone() {
            let tasks = !self.perf.iter().any(PerfSource::is_attached);
            self.perf.extend(self.open(source, pid, &cpus, tasks));
        }
        let gate = |event| {
            PerfCounter::open(event, pid)
                .ok()
                .map(|it| (it, CounterThrottle::default()))
        };
        self.attached = Some(Attached {
            processes: Processes::new(pid, &proc_root),
            code: Code::new(Architecture::HERE, &proc_root),
            cpu: CpuTime::new(pid),
            tlb: self
                .accessed
                .as_ref()
                .and_then(|_| gate(PerfCounter::TLB_MISSES)),
            cache: (self.perf.iter().any(PerfSource::is_hardware))
                .then(|| gate(PerfCounter::CACHE_MISSES))
                .flatten(),
        });
        self.since = self.clock.now();
        Ok(())
    }

    /// Opens a perf source; other sources need no event. Only one perf source records forks and
    /// mappings.
    fn open(
        &self,
        source: SampleSource,
        pid: u32,
        cpus: &[u32],
        tasks: bool,
    ) -> Option<PerfSource> {
        let hz = self.config.sample_hz.clamp(1, 100_000);
        let (event, addressing, note) = source.event(&self.config.root, hz)?;
        let mut perf = PerfSource::new(source.name(), addressing, note.to_owned());
        match event {
            Ok(event) => {
                // Room for two seconds of samples: the reader may be late.
                let ring_bytes = (hz as usize * 2 * SAMPLE_BYTES).clamp(64 << 10, 8 << 20);
                let event = PerfEventAttributes { tasks, ..event };
                let beside = source.beside(&self.config.root);
                perf.attach(&event, beside.as_ref(), pid, (cpus, ring_bytes));
            }
            Err(why) => perf.report.warning = why,
        }
        Some(perf)
    }

    /// Reads all records since the last call, so that no ring overflows and no process or mapping
    /// that lives for less than an epoch is missed. Call it about ten times a second; `observe`
    /// calls it too.
    pub fn drain(&mut self) {
        let Some(attached) = &mut self.attached else {
            return;
        };
        let now = self.clock.now();
        for (number, source) in self.perf.iter_mut().enumerate() {
            let begin = self.clock.busy();
            source.read(number, &mut self.waiting);
            source.report.cost += self.clock.busy().saturating_sub(begin);
        }
        if !self.perf.iter().any(PerfSource::is_attached) {
            attached.processes.look_up();
        }
        attached.cpu.update(&attached.processes, &self.config.root);
        self.settle(now);
        let Some(attached) = &self.attached else {
            return;
        };
        let begin = self.clock.busy();
        // `observe` reports an unreadable directory.
        let _ = self.sessions.discover();
        self.sessions.refresh(&attached.processes);
        self.files.taken = self.sessions.len() as u64;
        self.files.usable = self.files.taken;
        self.files.lost = self.sessions.refused().len() as u64;
        self.files.cost += self.clock.busy().saturating_sub(begin);
        self.read_touches();
        self.measure();
    }

    /// Sites that own memory and did not when this was last called, as of the last [`LiveRun::drain`].
    pub fn take_owners(&mut self) -> Vec<Site> {
        self.sessions.take_owners()
    }

    /// Works off, in the order of time, what happened before `now`. What is later waits: a ring
    /// read first may lack what made a record possible that another ring already holds.
    fn settle(&mut self, now: Nanos) {
        let Some(attached) = &mut self.attached else {
            return;
        };
        self.waiting.sort_by_key(|happening| happening.time_ns);
        let ready = self
            .waiting
            .partition_point(|happening| happening.time_ns <= now.0);
        let begin = self.clock.busy();
        let mut last_source = None;
        for PerfEvent {
            time_ns,
            kind: what,
        } in self.waiting.drain(..ready)
        {
            match what {
                EventKind::Fork { parent, child } => {
                    attached.processes.fork(parent, child);
                    attached.code.fork(parent, child);
                }
                EventKind::Exec(pid) => {
                    attached.processes.exec(pid, time_ns);
                    attached.code.forget(pid);
                }
                EventKind::Exit(pid) => {
                    attached.processes.exit(pid);
                    attached.code.forget(pid);
                }
                EventKind::Map(mapping) => attached.code.map(&mapping.borrow()),
                EventKind::Sample(number, sample) => {
                    let source = &mut self.perf[number];
                    last_source = Some(number);
                    let address = source.data_address(&sample, &mut attached.code);
                    let Some(address) = address else { continue };
                    if self.raw.len() >= SAMPLES_AT_MOST {
                        source.report.lost += 1;
                        continue;
                    }
                    self.raw.push(Raw {
                        pid: sample.pid,
                        time_ns,
                        address,
                        weight: sample.weight.max(1),
                    });
                }
            }
        }
        if let Some(number) = last_source {
            self.perf[number].report.cost += self.clock.busy().saturating_sub(begin);
        }
    }

    fn read_touches(&mut self) {
        let Some(report) = &mut self.touches else {
            return;
        };
        let begin = self.clock.busy();
        let samples = &mut self.samples;
        let mut dropped = 0;
        let lost = self.sessions.read_touches(|process, address, _| {
            report.taken += 1;
            if samples.len() >= SAMPLES_AT_MOST {
                dropped += 1;
                return;
            }
            report.usable += 1;
            samples.push(Sample {
                process,
                address,
                weight: 1,
            });
        });
        report.lost += lost + dropped;
        report.cost += self.clock.busy().saturating_sub(begin);
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
        self.resident_next = Nanos(now.0.saturating_add(cost.0.saturating_mul(RESIDENT_SHARE)));
    }

    fn look_at_accessed_bits(&mut self) {
        let (Some(accessed), Some(attached)) = (&mut self.accessed, &mut self.attached) else {
            return;
        };
        if let Some((counter, gate)) = &mut attached.tlb
            && let Ok(misses) = counter.value()
            && !gate.is_open(misses)
        {
            return;
        }
        let begin = self.clock.busy();
        let pids: Vec<u32> = attached.processes.pids().collect();
        let now = self.clock.now();
        let page_bytes = rustix::param::page_size() as u64;
        let (sessions, processes) = (&self.sessions, &attached.processes);
        let samples = &mut self.samples;
        let (mut taken, mut lost) = (0, 0);
        let mut current = None;
        accessed.look(
            &*self.clock,
            &self.config.root.join("proc"),
            &pids,
            |pid, vma| {
                let (process, ranges) = match &current {
                    Some((known, process, ranges)) if *known == pid => (*process, ranges),
                    _ => {
                        let process = sessions.image_at(processes, pid, now.0);
                        let (_, process, ranges) =
                            current.insert((pid, process, sessions.ranges(process)));
                        (*process, &*ranges)
                    }
                };
                spread(vma, ranges, page_bytes, |address, weight| {
                    taken += weight;
                    if samples.len() >= SAMPLES_AT_MOST {
                        lost += weight;
                        return;
                    }
                    samples.push(Sample {
                        process,
                        address,
                        weight,
                    });
                });
            },
        );
        accessed.report.taken += taken;
        accessed.report.usable += taken - lost;
        accessed.report.lost += lost;
        accessed.report.cost += self.clock.busy().saturating_sub(begin);
    }

    /// TMP's rule for hardware samples: off while cache misses are few.
    fn gate_hardware(&mut self) {
        let Some((counter, gate)) = self.attached.as_mut().and_then(|it| it.cache.as_mut()) else {
            return;
        };
        if let Ok(misses) = counter.value() {
            let open = gate.is_open(misses);
            self.perf
                .iter()
                .filter(|source| source.is_hardware())
                .for_each(|source| source.switch(open));
        }
    }

    /// The reports of all sources so far.
    #[must_use]
    pub fn reports(&self) -> Vec<SourceReport> {
        let cpu = self
            .attached
            .as_ref()
            .map_or(Nanos::ZERO, |it| it.cpu.used());
        let period = Nanos(1_000_000_000 / u64::from(self.config.sample_hz.max(1)));
        let perf = self.perf.iter().map(|source| SourceReport {
            warning: source.trouble(cpu, period),
            ..source.report.clone()
        });
        let others = self.accessed.as_ref().map(|accessed| &accessed.report);
        let others = others.into_iter().chain(&self.touches).map(|report| {
            let mut report = report.clone();
            if report.taken == 0 && report.warning.is_empty() && cpu > A_WHILE {
                report.warning = format!(
                    "it delivered nothing although the program used {cpu} of processor time"
                );
            }
            report
        });
        let instrumented = self.instrumented.iter();
        let instrumented = instrumented.map(|source| source.report(cpu, A_WHILE));
        let files = SourceReport {
            warning: self.session_trouble(cpu),
            ..self.files.clone()
        };
        let mut resident = self.resident.clone();
        let unmeasured = resident.taken == 0 && !self.sessions.have_measured_themselves();
        if unmeasured && !self.sessions.is_empty() {
            resident.warning = "the program ended before its memory was measured: sizes are those \
                                that it asked for at one time, or mapped"
                .to_owned();
        }
        perf.chain(others)
            .chain(instrumented)
            .chain([files, resident])
            .collect()
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
        String::new()
    }

    /// The last batch, once the program has ended.
    ///
    /// # Errors
    /// As [`Observer::observe`].
    pub fn finish(mut self, epoch: Epoch) -> Result<Batch, LiveError> {
        self.accessed_rests();
        let mut batch = self.observe(epoch)?;
        batch.sources = self.reports();
        Ok(batch)
    }

    /// Opens no window on a program that has ended.
    fn accessed_rests(&mut self) {
        if let (Some(_), Some(attached)) = (&self.accessed, &mut self.attached) {
            attached.processes.look_up();
        }
    }
}

impl Observer for LiveRun {
    type Error = LiveError;

    fn observe(&mut self, epoch: Epoch) -> Result<Batch, LiveError> {
        if self.attached.is_none() {
            return Err(LiveError::Order("observe was called before attach"));
        }
        self.sessions
            .discover()
            .map_err(|error| LiveError::Directory {
                path: self.config.session_dir.display().to_string(),
                error,
            })?;
        self.drain();
        if let Some(source) = &mut self.instrumented {
            let (sessions, samples) = (&mut self.sessions, &mut self.samples);
            source.read(&*self.clock, sessions, samples, SAMPLES_AT_MOST);
        }
        self.look_at_accessed_bits();
        self.gate_hardware();
        let begin = self.clock.busy();
        self.sessions.read_sites();
        self.files.cost += self.clock.busy().saturating_sub(begin);
        let Some(attached) = &mut self.attached else {
            return Err(LiveError::Order("observe was called before attach"));
        };
        attached.code.begin_epoch();
        let mut samples = std::mem::take(&mut self.samples);
        samples.extend(self.raw.drain(..).map(|raw| {
            Sample {
                process: self
                    .sessions
                    .image_at(&attached.processes, raw.pid, raw.time_ns),
                address: raw.address,
                weight: raw.weight,
            }
        }));
        let sampled: BTreeSet<Process> = samples.iter().map(|sample| sample.process).collect();
        let extents = self.sessions.extents(&sampled);
        let mut counts = self.sessions.counts();
        counts.push(Count {
            process: None,
            name: "cpu_ns".to_owned(),
            value: attached.cpu.used().0,
        });
        let now = self.clock.now();
        let span = now.saturating_sub(std::mem::replace(&mut self.since, now));
        Ok(Batch {
            epoch,
            span,
            sites: self.sessions.take_changed_sites(),
            extents,
            samples,
            counts,
            sources: self.reports(),
        })
    }
}

/// Processor time after which the report of a source without samples has a warning.
const A_WHILE: Nanos = Nanos(100_000_000);
