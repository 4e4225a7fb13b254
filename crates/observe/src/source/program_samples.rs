//! [`ProgramSamples`] samples the accesses of one program and its child processes by perf events, for a live run: it finds the accessed
//! address (or Java site) of each sample and, for sources that cannot see the caches, what the program waited for. Records of forks, execs
//! and mappings come through the same rings, so that each sample is decoded with the code that ran at its time.
//!
//! ```text
//! perf rings ---> perf events, by time --> code, processes ---> data addresses --> accesses
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use isotherm_decode::Architecture;
use isotherm_model::batch::{ObservedAccess, Process, SourceReport};
use isotherm_model::code_access::{InstructionId, SampledInstruction};
use isotherm_model::port::Clock;
use isotherm_model::source_kind::SourceKind;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_symbols::code::{Code, SampledData};
use isotherm_sys::perf::PerfEventAttributes;
use isotherm_sys::perf::record::PerfSample;
use isotherm_topology::cpu_list;

use super::AccessList;
use super::perf_ring::{EventKind, PerfEvent, PerfSource};
use super::registry::sampled_event;
use super::sampled_event::{EventSettings, timer_period};
use super::waits::{BlindSample, WaitEstimates, WaitedFor};
use crate::java::{HeapSample, JavaHeaps};
use crate::open_files::make_room;
use crate::processes::{Processes, threads};
use crate::sessions::Sessions;

/// Bytes of one timer sample with its registers, rounded up.
const SAMPLE_BYTES: usize = 256;

/// Most samples kept between two epochs; more are counted as lost.
const SAMPLES_AT_MOST: usize = 4 << 20;

/// A sample whose process image is not yet known.
#[derive(Clone, Copy, Debug)]
struct RawSample {
    source: SourceKind,
    pid: u32,
    tid: u32,
    time_ns: u64,
    ip: u64,
    data: SampledData,
    instruction: Option<InstructionId>,
    weight: u64,
    /// As [`ObservedAccess::sampled_hz`].
    hz: u32,
    /// The address at which the sample counts instead of its data address: in the range of a Java site.
    place: Option<u64>,
}

/// An address in the stack of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StackPointer {
    /// Its process.
    pid: u32,
    address: u64,
}

/// The perf events of one program.
#[derive(Debug)]
pub struct ProgramSamples {
    sources: Vec<(SourceKind, PerfSource)>,
    processes: Processes,
    code: Code,
    waiting: Vec<PerfEvent>,
    raw: Vec<RawSample>,
    /// Samples since the last call of [`Self::attribute`], with their place in `raw`, if they have one. Empty without a Java heap.
    heap_samples: Vec<(HeapSample, Option<usize>)>,
    /// A process has a Java heap.
    has_java: bool,
    waits: WaitEstimates,
    /// Rates of the timer: the first, and those that it can change to.
    rates: Vec<u32>,
    /// Index of the present rate.
    rate: usize,
    /// The time of the last change, and the rate before it.
    change: (Nanos, u32),
    /// The last stack pointer of each thread that was sampled with its registers; `None` for a program that was started.
    stacks: Option<BTreeMap<u32, StackPointer>>,
}

/// Most searches for threads that started while events were opened for other threads; each search finds the threads that a thread without
/// events started meanwhile.
const THREAD_ROUNDS: usize = 16;

/// Time in which the record of a thread that has just started reaches its ring.
const RECORD_ARRIVES: Nanos = Nanos(2_000_000);

/// Most threads whose stacks are remembered.
const STACKS_AT_MOST: usize = 1 << 16;

impl ProgramSamples {
    /// Opens the events of these sources, as far as they are perf's, for a process that waits before its exec. The
    /// report of each one that cannot be opened gives the reason. Which timer samples `cache` bytes of cache served is
    /// estimated; with none, no sample counts as served.
    #[must_use]
    pub fn open(
        sources: &[SourceKind],
        root: &Path,
        (settings, cache): (EventSettings, Bytes),
        pid: u32,
    ) -> Self {
        let hz = settings.hz.clamp(1, 100_000);
        let (settings, proc_root) = (EventSettings { hz, ..settings }, root.join("proc"));
        let cpus = cpu_list::online_cpus(root);
        // Room for two seconds of samples: the reader may be late.
        let ring_bytes = (hz as usize * 2 * SAMPLE_BYTES).clamp(64 << 10, 8 << 20);
        let mut opened: Vec<(SourceKind, PerfSource)> = Vec::new();
        let mut rates = vec![hz];
        for source in sources {
            let Some(sampled) = sampled_event(*source, root, settings) else {
                continue;
            };
            // Only one source records forks and mappings.
            let tasks = !opened.iter().any(|(_, other)| other.is_attached());
            let adapt = |event| PerfEventAttributes { tasks, ..event };
            let timer = sampled.event.clone().map(adapt).ok();
            let timer =
                timer.filter(|_| *source == SourceKind::Timer && !settings.other_hz.is_empty());
            let mut perf = PerfSource::open(*source, sampled, adapt, pid, (&cpus, &|_| ring_bytes));
            let periods: Vec<u64> = settings
                .other_hz
                .iter()
                .map(|hz| timer_period(*hz))
                .collect();
            let events = cpus.len() * periods.len();
            let open = |event| make_room(events as u64) && perf.open_periods(&event, pid, &periods);
            if timer.is_some_and(open) {
                rates.extend(settings.other_hz);
            }
            opened.push((*source, perf));
        }
        Self {
            sources: opened,
            processes: Processes::new(pid, &proc_root),
            code: Code::new(Architecture::HERE, &proc_root),
            waiting: Vec::new(),
            raw: Vec::new(),
            heap_samples: Vec::new(),
            has_java: false,
            waits: WaitEstimates::new(cache),
            rates,
            rate: 0,
            change: (Nanos::ZERO, hz),
            stacks: None,
        }
    }

    /// As [`Self::open`], for a process that runs already: the events of all its threads, which sample at once. Threads and processes that it
    /// starts later are sampled as those of a new program. Its code is that of its mappings now.
    #[must_use]
    pub fn open_running(
        sources: &[SourceKind],
        root: &Path,
        settings: (EventSettings, Bytes),
        pid: u32,
        clock: &dyn Clock,
    ) -> Self {
        let proc_root = root.join("proc");
        let there = threads(&proc_root, pid);
        let events = there.len() * cpu_list::online_cpus(root).len() * sources.len();
        // Where there is no room, the first refusal is reported.
        let _ = make_room(events as u64);
        let first = there.first().copied().unwrap_or(pid);
        let mut samples = Self::open(sources, root, settings, first);
        samples.processes = Processes::new(pid, &proc_root);
        samples.stacks = Some(BTreeMap::new());
        let attached = samples.sources.iter().map(|(_, source)| source);
        attached.for_each(|source| source.switch(true));
        samples.add_threads((pid, first), &proc_root, clock);
        samples.code.map_running(pid);
        samples
    }

    /// Opens the events for all threads of a process but the first: threads that are there, and threads that a thread without events
    /// started meanwhile. A thread that was started by one with events has inherited them, as a record shows.
    fn add_threads(&mut self, (pid, first): (u32, u32), proc_root: &Path, clock: &dyn Clock) {
        let mut sampled = BTreeSet::from([first]);
        for round in 0..THREAD_ROUNDS {
            let there = threads(proc_root, pid);
            if round > 0 {
                clock.sleep(RECORD_ARRIVES);
            }
            for (number, (_, source)) in self.sources.iter_mut().enumerate() {
                source.read(number, &mut self.waiting);
            }
            sampled.extend(self.waiting.iter().filter_map(|event| match event.kind {
                EventKind::Thread(thread) => Some(thread),
                _ => None,
            }));
            let new: Vec<u32> = there
                .into_iter()
                .filter(|thread| sampled.insert(*thread))
                .collect();
            if new.is_empty() {
                return;
            }
            for thread in new {
                let attached = self.sources.iter_mut().map(|(_, source)| source);
                attached.for_each(|source| source.add_thread(thread));
            }
        }
    }

    /// The kernel's refusal of the last source, where no event is open. `None` where one is, or no source is perf's.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        let (_, last) = self.sources.last()?;
        let is_open = self.sources.iter().any(|(_, source)| source.is_attached());
        (!is_open).then_some(last.report.warning.as_str())
    }

    /// Addresses in the stacks of the sampled threads of a process, where it ran already.
    #[must_use]
    pub fn stacks_of(&self, pid: u32) -> Vec<u64> {
        let stacks = self.stacks.iter().flat_map(BTreeMap::values);
        let own = stacks.filter(|stack| stack.pid == pid);
        own.map(|stack| stack.address).collect()
    }

    /// Timer samples a second of processor time, of each thread; `None` where no timer samples.
    #[must_use]
    pub fn timer_hz(&self) -> Option<u32> {
        self.timer().and(self.rates.get(self.rate)).copied()
    }

    /// The rates that the timer can have.
    #[must_use]
    pub fn timer_rates(&self) -> &[u32] {
        match self.timer() {
            Some(_) => &self.rates,
            None => &[],
        }
    }

    /// Changes the rate of the timer to one that it can have; another one changes nothing.
    pub fn set_timer_hz(&mut self, hz: u32, clock: &dyn Clock) {
        let wanted = self.rates.iter().position(|rate| *rate == hz);
        let Some(rate) = wanted.filter(|rate| *rate != self.rate) else {
            return;
        };
        // Only the last change is remembered.
        self.drain(clock);
        let Some(timer) = self.timer() else {
            return;
        };
        if timer.choose_period(rate) {
            self.change = (clock.now(), self.rates[self.rate]);
            self.rate = rate;
        }
        self.look_up_again();
    }

    /// The rate at which a sample was taken at this time, as [`ObservedAccess::sampled_hz`].
    fn hz_at(&self, source: SourceKind, time: Nanos) -> u32 {
        if source != SourceKind::Timer || self.rates.len() < 2 {
            return 0;
        }
        match self.change {
            (since, former) if time < since => former,
            _ => self.rates[self.rate],
        }
    }

    fn timer(&self) -> Option<&PerfSource> {
        let mut sources = self.sources.iter();
        let timer = sources.find(|(source, _)| *source == SourceKind::Timer);
        timer
            .map(|(_, perf)| perf)
            .filter(|perf| perf.is_attached())
    }

    /// The process tree, as of the last [`Self::drain`].
    #[must_use]
    pub const fn processes(&self) -> &Processes {
        &self.processes
    }

    /// Looks the processes up in `/proc`.
    pub fn look_up(&mut self) {
        self.processes.look_up();
    }

    /// True where an event of a PMU is open.
    #[must_use]
    pub fn has_hardware(&self) -> bool {
        self.sources.iter().any(|(_, source)| source.is_hardware())
    }

    /// Starts or stops the events of PMUs.
    pub fn switch_hardware(&self, on: bool) {
        let sources = self.sources.iter().map(|(_, source)| source);
        sources
            .filter(|source| source.is_hardware())
            .for_each(|source| source.switch(on));
    }

    /// Starts or stops all events. While they are stopped no fork or mapping is recorded either.
    pub fn switch(&mut self, on: bool) {
        for (_, source) in &self.sources {
            source.switch(on);
        }
        if on {
            self.look_up_again();
        }
    }

    /// Looks up what was not recorded: processes in `/proc`, and mappings, which are read again.
    fn look_up_again(&mut self) {
        self.processes.look_up();
        let pids: Vec<u32> = self.processes.pids().collect();
        pids.into_iter().for_each(|pid| self.code.forget(pid));
    }

    /// Reads all records since the last call, so that no ring overflows and no process or mapping that lives for
    /// less than an epoch is missed. Call it about ten times a second.
    pub fn drain(&mut self, clock: &dyn Clock) {
        let now = clock.now();
        for (number, (_, source)) in self.sources.iter_mut().enumerate() {
            let begin = clock.busy();
            source.read(number, &mut self.waiting);
            source.report.cost += clock.busy().saturating_sub(begin);
        }
        if !self.sources.iter().any(|(_, source)| source.is_attached()) {
            self.processes.look_up();
        }
        self.settle(now, clock);
    }

    /// Works off, in the order of time, the records from before `now`. Later ones wait: a ring read first may lack
    /// the record of a fork, of whose child another ring already holds samples.
    fn settle(&mut self, now: Nanos, clock: &dyn Clock) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_by_key(|event| event.time_ns);
        let ready = waiting.partition_point(|event| event.time_ns <= now.0);
        let begin = clock.busy();
        let mut last_source = None;
        for event in waiting.drain(..ready) {
            last_source = self.take(event).or(last_source);
        }
        if let Some(number) = last_source {
            self.sources[number].1.report.cost += clock.busy().saturating_sub(begin);
        }
        self.waiting = waiting;
    }

    /// Takes one record; returns the source of a sample.
    fn take(&mut self, event: PerfEvent) -> Option<usize> {
        match event.kind {
            EventKind::Fork { parent, child } => {
                self.processes.fork(parent, child);
                self.code.fork(parent, child);
            }
            EventKind::Thread(_) => {}
            EventKind::Exec(pid, name) => {
                self.processes.exec(pid, event.time_ns);
                self.processes.rename(pid, name);
                self.code.forget(pid);
            }
            EventKind::Exit(pid) => {
                self.processes.exit(pid);
                self.code.forget(pid);
            }
            EventKind::Map(mapping) => self.code.map(&mapping),
            EventKind::Sample(number, sample) => {
                let hz = self.hz_at(self.sources[number].0, Nanos(event.time_ns));
                self.note_stack(&sample);
                let (source, perf) = &mut self.sources[number];
                let data = perf.data_address(&sample, &mut self.code);
                let has_room = self.raw.len() < SAMPLES_AT_MOST;
                if self.has_java && self.heap_samples.len() < SAMPLES_AT_MOST {
                    let sample = HeapSample {
                        pid: sample.pid,
                        tid: sample.tid,
                        time_ns: event.time_ns,
                        ip: sample.ip,
                        address: data.map(|data| data.address),
                        bases: data.map_or([0; 2], |data| data.bases),
                    };
                    let kept = (data.is_some() && has_room).then_some(self.raw.len());
                    self.heap_samples.push((sample, kept));
                }
                if let Some(data) = data {
                    let raw = RawSample {
                        source: *source,
                        pid: sample.pid,
                        tid: sample.tid,
                        time_ns: event.time_ns,
                        ip: sample.ip,
                        data,
                        instruction: perf.instruction(&sample, &mut self.code),
                        weight: sample.weight.max(1),
                        hz,
                        place: None,
                    };
                    match has_room {
                        true => self.raw.push(raw),
                        false => perf.report.lost += 1,
                    }
                }
                return Some(number);
            }
        }
        None
    }

    /// Remembers the stack pointer of a sample, where that is wanted and the sample has one.
    fn note_stack(&mut self, sample: &PerfSample) {
        let Some(stacks) = &mut self.stacks else {
            return;
        };
        let Some(address) = Architecture::HERE.stack_pointer(&sample.registers) else {
            return;
        };
        if stacks.len() < STACKS_AT_MOST || stacks.contains_key(&sample.tid) {
            let pid = sample.pid;
            stacks.insert(sample.tid, StackPointer { pid, address });
        }
    }

    /// Finds the Java sites of the samples since the last call. To be called soon after each [`Self::drain`]: objects move.
    pub fn attribute(&mut self, java: &mut JavaHeaps) {
        self.has_java = !java.is_empty();
        let (samples, kept): (Vec<_>, Vec<_>) = self.heap_samples.drain(..).unzip();
        for (place, kept) in java.places(&samples).into_iter().zip(kept) {
            if let Some(raw) = kept.and_then(|number| self.raw.get_mut(number)) {
                raw.place = place;
            }
        }
    }

    /// Adds the samples since the last call, each of the process image that ran at its time, and ends an epoch.
    pub fn take_accesses(&mut self, sessions: &Sessions, accesses: &mut AccessList) {
        self.code.begin_epoch();
        let raw = std::mem::take(&mut self.raw);
        let process = |raw: &RawSample| sessions.image_at(&self.processes, raw.pid, raw.time_ns);
        let processes: Vec<Process> = raw.iter().map(process).collect();
        let mut waits = self.waits_of(&raw, &processes).into_iter();
        for (raw, process) in raw.iter().zip(processes) {
            let counted = (raw.weight, raw.source.unit(false));
            let place = (process, raw.place.unwrap_or(raw.data.address));
            let mut access = ObservedAccess {
                sampled_hz: raw.hz,
                thread: raw.tid,
                instruction: raw.instruction,
                ..ObservedAccess::at(place, raw.source, counted)
            };
            if raw.source.is_blind_to_caches() {
                match waits.next() {
                    Some(WaitedFor::Caches) => {
                        std::mem::swap(&mut access.count, &mut access.served);
                    }
                    Some(WaitedFor::Bandwidth) => access.streamed = access.count,
                    Some(WaitedFor::Latency) | None => {}
                }
            }
            let mut sources = self.sources.iter_mut();
            if let Some((_, perf)) = sources.find(|(kind, _)| *kind == raw.source) {
                accesses.add(&mut perf.report, 1, access);
            }
        }
    }

    /// The instructions of samples that are new since the last call.
    pub fn take_instructions(&mut self) -> Vec<SampledInstruction> {
        self.code.take_instructions()
    }

    /// What the program waited for at each sample of a source that cannot see the caches.
    fn waits_of(&mut self, raw: &[RawSample], processes: &[Process]) -> Vec<WaitedFor> {
        let both = raw.iter().zip(processes);
        let blind = both.filter(|(raw, _)| raw.source.is_blind_to_caches());
        let sample = |(raw, process): (&RawSample, &Process)| BlindSample {
            process: *process,
            thread: raw.tid,
            time_ns: raw.time_ns,
            instruction: raw.ip,
            address: raw.data.address,
            is_behind_access: raw.data.is_behind_access(),
        };
        let samples: Vec<BlindSample> = blind.map(sample).collect();
        self.waits.judge(&samples)
    }

    /// The reports of the sources so far, given the processor time that the program has used.
    pub fn reports(&self, used: Nanos) -> impl Iterator<Item = SourceReport> {
        // Ten periods without a sample are no accident, at the lowest rate that the timer may have had.
        let lowest = self.rates.iter().copied().min().unwrap_or(1);
        let enough = Nanos(timer_period(lowest).saturating_mul(10));
        self.sources.iter().map(move |(_, source)| SourceReport {
            warning: source.warning(used, enough),
            ..source.report.clone()
        })
    }
}
