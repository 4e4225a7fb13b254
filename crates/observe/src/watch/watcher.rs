//! [`Watcher`] opens the daemon's sources as its [`WatcherConfig`] says, reads them within a budget of cost, and joins them into one
//! observation of the watched processes in each epoch: their memory and their accesses, and how much of both is in the fast tier.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use isotherm_model::batch::{Epoch, Process, SourceReport};
use isotherm_model::movement::NodeId;
use isotherm_model::source_kind::ProfilingMethod;
use isotherm_model::tier_loads::EmulatedUse;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::watch::{Observation, Placed, UnitResidency, Watched};

use super::candidates::{Candidate, Candidates, Filter, ProcessSelection};
use super::emulated::EmulatedProcesses;
use super::memory::{NodeLayout, ProcessMemory, capacity, promotion_lacks_room};
use super::rate_change::RateChange;
use super::sample_nodes::SampleNodes;
use crate::source::cost_budget::{CostBudget, affordable_hz};
use crate::source::process_samples::{ProcessSamples, SampleRate};
use crate::source::registry::{self, ScanSettings};
use crate::source::throttle::{SourceThrottle, ThrottleStatus};
use crate::source::{AccessList, ScanContext, Source};
use isotherm_model::port::Clock;
use isotherm_model::source_kind::SourceKind;

/// The configured source of accessed bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessedBitChoice {
    /// DAMON where available, else mappings if no sample is usable: a mapping adds little to samples, and
    /// its pages cost the program more than those do.
    #[default]
    Auto,
    /// This source where available, else mappings.
    Source(SourceKind),
    /// No accessed bits.
    Off,
}

impl AccessedBitChoice {
    /// The source finer than mappings that is to be opened.
    const fn finer(self) -> Option<SourceKind> {
        match self {
            Self::Auto => Some(SourceKind::Damon),
            Self::Source(SourceKind::AccessedBits) | Self::Off => None,
            Self::Source(source) => Some(source),
        }
    }
}

/// The configuration of a watcher.
#[derive(Clone, Debug)]
pub struct WatcherConfig {
    /// Root of the file system that holds `proc` and `sys`.
    pub root: PathBuf,
    /// A directory that only we may write and that outlives us: it records what the next watcher
    /// needs if we are killed; None for no record.
    pub state: Option<PathBuf>,
    /// The processes that may be watched.
    pub selection: ProcessSelection,
    /// The filter of processes that are worth their cost.
    pub filter: Filter,
    /// Bytes of a unit.
    pub unit: Bytes,
    /// Nodes of the fast tier; empty on a machine with one tier.
    pub fast: BTreeSet<NodeId>,
    /// Watch processes on emulated machines only, and their memory on these instead of on nodes.
    pub emulated: bool,
    /// The most of the fast tier that may be used.
    pub fast_limit: Bytes,
    /// The kernel promotes too, and needs free memory on the fast nodes for that.
    pub kernel_promotes: bool,
    /// The source of accessed bits.
    pub bits: AccessedBitChoice,
    /// The source of samples; None for no samples.
    pub samples: Option<SourceKind>,
    /// Bytes of cache of a watched process, for the estimate of the timer samples that it served; zero for no estimate.
    pub cache: Bytes,
    /// Upper limits of the sample rate.
    pub sample_rate: SampleRate,
    /// A first guess at the time that one timer sample takes of the interrupted program; None for the default.
    pub sample_cost: Option<Nanos>,
    /// The cost limit of watching, in millionths of one processor for each processor that the
    /// watched processes use.
    pub budget_ppm: u64,
}

/// Watches the processes of a machine.
pub struct Watcher {
    config: WatcherConfig,
    clock: Box<dyn Clock>,
    layout: NodeLayout,
    candidates: Candidates,
    watched: Vec<Candidate>,
    /// The source of accessed bits that is finer than mappings.
    bits: Option<Box<dyn Source>>,
    /// Accessed bits by mappings.
    mappings: Option<Box<dyn Source>>,
    samples: Option<ProcessSamples>,
    sample_nodes: SampleNodes,
    emulated: Option<EmulatedProcesses>,
    bits_throttle: SourceThrottle,
    samples_throttle: SourceThrottle,
    /// The resident memory of each process at the last read.
    resident: BTreeMap<Process, ProcessMemory>,
    memory: SourceReport,
    memory_budget: CostBudget,
    scan: SourceReport,
    counters: SourceReport,
    accesses: AccessList,
    placed: BTreeMap<Process, Placed>,
    rate_change: RateChange,
    /// Epochs without any sample, before the first one, in which samples were possible.
    without_samples: u32,
    warning: BTreeMap<Process, String>,
    epoch_began: Nanos,
    ticked: Nanos,
}

/// Parts of the budget for samples, for accessed bits, and for reading memory maps, of ten.
const PARTS: [u64; 3] = [4, 4, 2];

/// Part of the budget that timer samples may take of each processor's time, in hundredths. Scans of
/// mappings beside them, whose bits the programs set again, have the rest.
const INTERRUPTS: u64 = 75;

/// Epochs for which `auto` waits for the first sample before it scans mappings: one scan costs a program of 8
/// GiB two seconds.
const PATIENCE: u32 = 3;

impl Watcher {
    /// Opens the sources. The report of each unavailable one gives the reason.
    #[must_use]
    pub fn new(config: WatcherConfig, clock: Box<dyn Clock>) -> Self {
        let proc_root = config.root.join("proc");
        let now = clock.now();
        let memory_note = "0.05 us a page of 4 KiB without PAGEMAP_SCAN, less with it, and 0.3 us for \
                           each of four pages a unit";
        let mut watcher = Self {
            layout: NodeLayout {
                proc_root: proc_root.clone(),
                unit: config.unit.0,
                page: rustix::param::page_size() as u64,
                fast: config.fast.clone(),
            },
            candidates: Candidates::new(&proc_root),
            watched: Vec::new(),
            bits: None,
            mappings: None,
            samples: None,
            sample_nodes: SampleNodes::new(&config.root),
            emulated: config.emulated.then(|| EmulatedProcesses::new(&proc_root)),
            bits_throttle: SourceThrottle::open(ProfilingMethod::AccessedBits, &config.root),
            samples_throttle: SourceThrottle::open(ProfilingMethod::TraceSamples, &config.root),
            resident: BTreeMap::new(),
            memory: SourceReport::new("memory", memory_note),
            memory_budget: CostBudget::new(config.budget_ppm),
            scan: SourceReport::new("processes", "some 50 us a process and second"),
            counters: SourceReport::new("counters", "read once an epoch"),
            accesses: AccessList::default(),
            placed: BTreeMap::new(),
            rate_change: RateChange::default(),
            without_samples: 0,
            warning: BTreeMap::new(),
            epoch_began: now,
            ticked: now,
            clock,
            config,
        };
        watcher.open_sources();
        watcher
    }

    fn open_sources(&mut self) {
        let config = &self.config;
        let [samples, bits, _] = PARTS.map(|part| config.budget_ppm / 10 * part);
        let (root, state) = (config.root.as_path(), config.state.as_deref());
        let settings = |budget_ppm| ScanSettings {
            root,
            state,
            budget_ppm,
            cache_filter: None,
        };
        let finer = config.bits.finer();
        let opened = finer.and_then(|source| registry::open(source, &settings(bits)));
        let (opened, why) = match opened.transpose() {
            Ok(opened) => (opened, String::new()),
            Err(why) => (None, why),
        };
        let by_mappings = match config.bits {
            AccessedBitChoice::Auto => true,
            AccessedBitChoice::Source(_) => opened.is_none(),
            AccessedBitChoice::Off => false,
        };
        let of_mappings = settings(self.of_mappings(config.budget_ppm));
        let mappings = registry::open(SourceKind::AccessedBits, &of_mappings);
        let mappings = mappings.and_then(Result::ok).filter(|_| by_mappings);
        (self.bits, self.mappings, self.counters.warning) = (opened, mappings, why);
        let rate = SampleRate {
            timer_hz: self.timer_hz(),
            ..config.sample_rate
        };
        self.samples = config
            .samples
            .and_then(|source| ProcessSamples::open(source, &config.root, rate, samples));
        if let Some(samples) = &mut self.samples {
            samples.assume_cache(config.cache);
        }
        if let Some((samples, guess)) = self.samples.as_mut().zip(config.sample_cost) {
            samples.guess_cost(guess);
        }
        if self.bits_throttle.never_rests() || self.samples_throttle.never_rests() {
            let why = "a kind of source never rests by the rule of 20 %: see below";
            let before = std::mem::take(&mut self.counters.warning);
            self.counters.warning = match before.is_empty() {
                true => why.to_owned(),
                false => format!("{before}; {why}"),
            };
        }
    }

    /// Sets the timer's rate by the measured cost of samples to the programs.
    fn follow_sample_cost(&mut self) {
        let wanted = self.timer_hz();
        let samples = self.samples.as_mut();
        if let Some((samples, hz)) = samples.and_then(|it| it.of_timer().map(|hz| (it, hz)))
            && self.rate_change.is_due(hz, wanted)
        {
            samples.set_timer_hz(wanted);
        }
    }

    /// Timer samples a second and processor: the configured rate, or fewer, within the programs' share of
    /// the cost.
    fn timer_hz(&self) -> u32 {
        let budget = self.config.budget_ppm.saturating_mul(INTERRUPTS) / 100;
        let affordable = affordable_hz(budget, self.sample_cost());
        self.config.sample_rate.timer_hz.min(affordable)
    }

    /// Timer samples a second and processor now, and the measured cost of one to a program; None where
    /// samples come from another source.
    #[must_use]
    pub fn timer_samples(&self) -> Option<(u32, Option<Nanos>)> {
        let hz = self.samples.as_ref()?.of_timer()?;
        Some((hz, self.sample_cost()))
    }

    fn sample_cost(&self) -> Option<Nanos> {
        match &self.samples {
            Some(samples) => samples.price(),
            None => self.config.sample_cost,
        }
    }

    /// The source of samples, if there is one.
    #[must_use]
    pub const fn samples(&self) -> Option<&ProcessSamples> {
        self.samples.as_ref()
    }

    /// Samples of watched processes by the memory node of their data, since the start; None stands for an
    /// unknown node. Empty where no sample has a physical address.
    #[must_use]
    pub const fn samples_by_node(&self) -> &BTreeMap<Option<NodeId>, u64> {
        self.sample_nodes.samples()
    }

    /// The counter that throttles each kind of source, and whether the kind is off now.
    pub fn throttle(&self) -> impl Iterator<Item = ThrottleStatus> {
        [&self.bits_throttle, &self.samples_throttle]
            .into_iter()
            .map(SourceThrottle::throttle)
    }

    /// Changes the selected processes, at the next tick.
    pub fn select(&mut self, selection: ProcessSelection, filter: Filter) {
        (self.config.selection, self.config.filter) = (selection, filter);
    }

    /// Sets whether the kernel promotes: only then is room left for that.
    pub const fn set_kernel_promotes(&mut self, promotes: bool) {
        self.config.kernel_promotes = promotes;
    }

    /// True where the kernel promotes, and has used up half of the room that was left for that.
    #[must_use]
    pub fn kernel_lacks_room(&self) -> bool {
        let config = &self.config;
        config.kernel_promotes && promotion_lacks_room(&config.root, &config.fast)
    }

    /// Changes the limits of the fast tier's use and of the cost of watching.
    pub fn set_limits(&mut self, fast: Bytes, budget_ppm: u64) {
        (self.config.fast_limit, self.config.budget_ppm) = (fast, budget_ppm);
        let hz = self.timer_hz();
        if let Some(samples) = &mut self.samples {
            samples.set_timer_hz(hz);
        }
    }

    /// Chooses the processes that are worth watching, and reads the samples so far. Call it about
    /// once a second; `observe` calls it too.
    pub fn tick(&mut self) {
        let begin = self.clock.busy();
        let now = self.clock.now();
        let (selection, filter) = (&self.config.selection, self.config.filter);
        self.watched = self
            .candidates
            .look(selection, filter, now, std::process::id());
        if let Some(emulated) = &mut self.emulated {
            self.watched.retain(|one| emulated.has(one.process));
        }
        self.scan.taken += self.watched.len() as u64;
        self.scan.usable = self.scan.taken;
        let processes = self.processes();
        let is_watched = |process: &Process| processes.binary_search(process).is_ok();
        self.resident.retain(|process, _| is_watched(process));
        self.warning.retain(|process, _| is_watched(process));
        if let Some(emulated) = &mut self.emulated {
            emulated.retain(is_watched);
        }
        self.set_budgets();
        if let Some(bits) = &mut self.bits {
            let mut by_size: Vec<&Candidate> = self.watched.iter().collect();
            by_size.sort_by_key(|candidate| std::cmp::Reverse(candidate.resident));
            let processes: Vec<Process> = by_size.iter().map(|one| one.process).collect();
            bits.watch(&processes);
        }
        self.scan.cost += self.clock.busy().saturating_sub(begin);
        if let Some(samples) = &mut self.samples {
            samples.watch(&processes);
        }
        let span = now.saturating_sub(self.ticked);
        self.take_samples(&processes, now);
        self.follow_sample_cost();
        self.read_ring_of_bits(&processes, span);
    }

    /// Reads the source of accessed bits where its ring would overflow within an epoch.
    fn read_ring_of_bits(&mut self, processes: &[Process], span: Nanos) {
        if let Some(bits) = self.bits.as_mut().filter(|bits| bits.overflows()) {
            let machine = (&*self.clock, &self.layout);
            let mut scan = context(machine, span, processes, &self.resident);
            bits.scan(&mut scan, &mut self.accesses);
        }
    }

    /// Reads the samples so far, and returns the sums of this epoch's samples whose tier is known; `None` where reading so often in an
    /// epoch would cost more than the source's part of the budget.
    pub fn read_samples(&mut self, times: u32) -> Option<Placed> {
        let (processes, before) = (self.processes(), self.accesses.as_slice().len());
        let samples = self.samples.as_mut();
        let samples = samples.filter(|samples| samples.affords_reads(times))?;
        samples.gather_more(&*self.clock, &processes, &mut self.accesses);
        self.place(before, true);
        let placed = self.placed.values();
        Some(placed.fold(Placed::default(), |sum, more| Placed {
            samples: sum.samples.saturating_add(more.samples),
            fast: sum.fast.saturating_add(more.fast),
        }))
    }

    /// Reads the samples that came during moves: the node of each at the time of the sample is unknown, unless it has a
    /// physical address. Call it when the moves of an epoch are done.
    pub fn end_moves(&mut self) {
        let (processes, before) = (self.processes(), self.accesses.as_slice().len());
        if let Some(samples) = &mut self.samples {
            samples.gather_more(&*self.clock, &processes, &mut self.accesses);
            self.place(before, false);
        }
    }

    fn take_samples(&mut self, processes: &[Process], now: Nanos) {
        let span = now.saturating_sub(std::mem::replace(&mut self.ticked, now));
        // Parts per million of a span: the product fits 128 bits.
        let busy = u128::from(span.0) * u128::from(self.busy_ppm()) / 1_000_000;
        let busy = Nanos(u64::try_from(busy).unwrap_or(u64::MAX));
        if let Some(samples) = &mut self.samples {
            let before = self.accesses.as_slice().len();
            let machine = (&*self.clock, &self.layout);
            let mut scan = context(machine, span, processes, &self.resident);
            scan.busy = busy;
            samples.scan(&mut scan, &mut self.accesses);
            self.place(before, true);
        }
    }

    /// Records the tier of the samples from this one on: by their physical address, or, where `now`, by the node that
    /// has their page now.
    fn place(&mut self, from: usize, now: bool) {
        let begin = self.clock.busy();
        let (fast, placed) = (&self.config.fast, &mut self.placed);
        let new = &self.accesses.as_slice()[from..];
        self.sample_nodes.count(new, |access, node| {
            if let Some(node) = node.filter(|_| !fast.is_empty()) {
                let hits = if fast.contains(&node) {
                    access.count
                } else {
                    0
                };
                add(placed, access.process, access.count, hits);
            }
        });
        let mut by_process = BTreeMap::<Process, Vec<(u64, u64)>>::new();
        for access in new.iter().filter(|one| now && one.physical.is_none()) {
            let of_process = by_process.entry(access.process).or_default();
            of_process.push((access.address, access.count));
        }
        for (process, samples) in by_process {
            let seen = match &self.emulated {
                Some(emulated) => emulated.placed(process, new),
                None => self.layout.placed(process.pid, &samples),
            };
            add(placed, process, seen.samples, seen.fast);
        }
        self.memory.cost += self.clock.busy().saturating_sub(begin);
    }

    /// Starts the scans of slow sources, so that their reports are there when the epoch ends. Call it in the middle
    /// of an epoch.
    pub fn prepare(&mut self) {
        if let Some(bits) = &mut self.bits {
            bits.prepare();
        }
    }

    /// Processor use of the watched processes, in millionths of one processor.
    fn busy_ppm(&self) -> u64 {
        let busy = self.watched.iter().map(|one| one.busy_ppm);
        busy.fold(0, u64::saturating_add)
    }

    /// Sets each source's part, for as many processors as the watched processes use, at least one.
    fn set_budgets(&mut self) {
        let cores = self.busy_ppm().div_ceil(1_000_000).max(1);
        let whole = self.config.budget_ppm.saturating_mul(cores);
        let [samples, bits, memory] = PARTS.map(|part| whole / 10 * part);
        if let Some(source) = &mut self.samples {
            source.set_budget(samples);
        }
        if let Some(source) = &mut self.bits {
            source.set_budget(bits);
        }
        let of_mappings = self.of_mappings(whole);
        if let Some(source) = &mut self.mappings {
            source.set_budget(of_mappings);
        }
        self.memory_budget.set(memory);
    }

    /// The part of a budget for scans of mappings, their cost to the programs included.
    fn of_mappings(&self, budget_ppm: u64) -> u64 {
        let [_, bits, _] = PARTS;
        match self.config.samples {
            Some(SourceKind::Timer) => budget_ppm / 100 * (100 - INTERRUPTS),
            _ => budget_ppm / 10 * bits,
        }
    }

    fn processes(&self) -> Vec<Process> {
        self.watched
            .iter()
            .map(|candidate| candidate.process)
            .collect()
    }

    /// Ends an epoch: returns the accesses since the last call, and the memory that the processes
    /// hold now.
    pub fn observe(&mut self, epoch: Epoch) -> Observation {
        self.tick();
        let now = self.clock.now();
        let span = now.saturating_sub(std::mem::replace(&mut self.epoch_began, now));
        let processes = self.processes();
        match self.bits_throttle.rests() {
            true => self.forget(ProfilingMethod::AccessedBits),
            false => self.look_at_bits(&processes, span),
        }
        if self.samples_throttle.rests() {
            self.forget(ProfilingMethod::TraceSamples);
            self.placed.clear();
        }
        let held = self.held(span);
        let fast = held.iter().map(|held| held.fast).sum();
        let limit = self.config.fast_limit;
        let capacity = match &self.emulated {
            Some(emulated) => limit.min(emulated.capacity()),
            None if self.config.fast.is_empty() => limit,
            None => {
                let (root, nodes) = (&self.config.root, &self.config.fast);
                capacity(root, nodes, (fast, limit), self.config.kernel_promotes)
            }
        };
        Observation {
            epoch,
            span,
            processes: self.watched.iter().map(|one| self.named(one)).collect(),
            residency: held,
            accesses: self.accesses.take(),
            placed: std::mem::take(&mut self.placed),
            capacity,
            sources: self.reports(),
        }
    }

    /// Drops the accesses of a method that rests.
    fn forget(&mut self, method: ProfilingMethod) {
        self.accesses
            .retain(|access| access.source.method() != method);
    }

    fn named(&self, candidate: &Candidate) -> Watched {
        Watched {
            process: candidate.process,
            name: candidate.name.clone(),
            control_group: candidate.control_group.clone(),
            warning: self
                .warning
                .get(&candidate.process)
                .cloned()
                .unwrap_or_default(),
        }
    }

    /// True where `auto` needs no mappings: samples deliver, or may soon.
    fn samples_suffice(&mut self) -> bool {
        if self.config.bits != AccessedBitChoice::Auto {
            return false;
        }
        match &self.samples {
            None => false,
            Some(samples) if samples.report().usable > 0 => true,
            Some(_) => {
                self.without_samples = self.without_samples.saturating_add(1);
                self.without_samples <= PATIENCE
            }
        }
    }

    fn look_at_bits(&mut self, processes: &[Process], span: Nanos) {
        let samples_suffice = self.samples_suffice();
        let machine = (&*self.clock, &self.layout);
        let mut scan = context(machine, span, processes, &self.resident);
        let mut left = processes.to_vec();
        if let Some(bits) = &mut self.bits {
            left.retain(|process| !bits.covers(process));
            // A ring was read at the tick that ends the epoch.
            if !bits.overflows() {
                bits.scan(&mut scan, &mut self.accesses);
            }
        }
        if let Some(mappings) = &mut self.mappings
            && !samples_suffice
            && !left.is_empty()
        {
            scan.processes = &left;
            mappings.scan(&mut scan, &mut self.accesses);
        }
    }

    /// The memory of the processes. Resident pages are read in every epoch, or less often where that
    /// is too expensive, but always for a process that has grown or shrunk; nodes are queried in
    /// every epoch, because moves change them.
    fn held(&mut self, span: Nanos) -> Vec<UnitResidency> {
        let begin = self.clock.busy();
        if let Some(emulated) = &mut self.emulated {
            emulated.begin();
        }
        let due = self.memory_budget.due();
        let mut held = Vec::new();
        let watched = self.watched.iter();
        let watched: Vec<_> = watched.map(|one| (one.process, one.resident)).collect();
        for (process, bytes) in watched {
            match self.held_by(process, bytes, due.is_some()) {
                Ok(of_process) => {
                    self.warning.remove(&process);
                    held.extend(of_process);
                }
                Err(error) => {
                    let why = format!(
                        "its memory cannot be read: {error}; it needs the same user, or \
                         CAP_SYS_PTRACE (and CAP_SYS_NICE to move it)"
                    );
                    self.warning.insert(process, why);
                }
            }
        }
        self.memory.taken += held.len() as u64;
        self.memory.usable = self.memory.taken;
        self.memory.cost += self.clock.busy().saturating_sub(begin);
        if let Some(turns) = due {
            let span = Nanos(span.0.saturating_mul(u64::from(turns)));
            self.memory_budget.learn(self.memory.cost, span);
        }
        held
    }

    fn held_by(
        &mut self,
        process: Process,
        bytes: u64,
        again: bool,
    ) -> io::Result<Vec<UnitResidency>> {
        let known = self.resident.get(&process);
        if again || known.is_none_or(|resident| resident.is_old(bytes)) {
            let resident = self.layout.resident(process, bytes)?;
            self.resident.insert(process, resident);
        }
        if let Some(emulated) = &mut self.emulated {
            return emulated.held(process, self.config.unit);
        }
        match self.resident.get(&process) {
            Some(resident) => self.layout.held(process, resident),
            None => Ok(Vec::new()),
        }
    }

    /// The use of emulated machines by the watched processes since the last call; nothing on memory nodes.
    pub fn take_emulated_use(&mut self) -> EmulatedUse {
        let emulated = self.emulated.as_mut();
        emulated.map_or_else(EmulatedUse::default, EmulatedProcesses::take_used)
    }

    fn reports(&self) -> Vec<SourceReport> {
        let mut reports = vec![
            self.scan.clone(),
            self.memory.clone(),
            self.counters.clone(),
        ];
        let scans = self.bits.iter().chain(&self.mappings);
        reports.extend(scans.map(|source| source.report()));
        reports.extend(self.samples.as_ref().map(Source::report));
        reports
    }
}

/// The input of a scan of a source, without the processor time of the processes.
fn context<'a>(
    (clock, layout): (&'a dyn Clock, &'a NodeLayout),
    span: Nanos,
    processes: &'a [Process],
    resident: &'a BTreeMap<Process, ProcessMemory>,
) -> ScanContext<'a> {
    ScanContext {
        clock,
        proc_root: &layout.proc_root,
        page: layout.page,
        span,
        busy: Nanos::ZERO,
        processes,
        resident,
        sessions: None,
    }
}

fn add(placed: &mut BTreeMap<Process, Placed>, process: Process, samples: u64, fast: u64) {
    let sum = placed.entry(process).or_default();
    sum.samples = sum.samples.saturating_add(samples);
    sum.fast = sum.fast.saturating_add(fast);
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watcher")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
