//! [`ProcessSamples`] samples running processes for the daemon, at a rate that its cost lowers, that of a timer to 100 a second at the
//! least: all processes at once where the kernel allows that (never with SPE, whose records do not name their process), else each thread of
//! the watched ones. It also measures the cost of a timer sample, and estimates which of these samples the caches served.
//!
//! Sampling all at once needs one event a processor, and `CAP_PERFMON` or
//! `kernel.perf_event_paranoid` of 0 or less. Otherwise one event for each thread and processor is
//! opened on processes of the same user; threads started later inherit them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use isotherm_model::batch::{ObservedAccess, Process, SourceReport};
use isotherm_model::count_unit::CountUnit;
use isotherm_model::source_kind::SourceKind;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::words::counted;
use isotherm_sys::perf::{PerfEventAttributes, Sampler};

use super::cost_budget::CostBudget;
use super::own_samples::THIS_THREAD;
use super::perf_ring::{EventKind, PerfEvent, PerfSource};
use super::registry::sampled_event;
use super::sample_cost::{GUESS, Gaps, RunningSampleCost};
use super::sampled_event::{Addressing, EventSettings};
use super::waits::{BlindSample, WaitEstimates, WaitedFor};
use super::{AccessList, ScanContext, Source, silence};
use crate::processes::threads;
use isotherm_decode::Architecture;
use isotherm_model::port::Clock;
use isotherm_symbols::code::Code;

/// Most open events where each thread has its own: each costs a descriptor and a ring.
const EVENTS_AT_MOST: usize = 512;

/// Processor time of watched programs after which a source without samples is broken, not slow.
const LONG_ENOUGH: Nanos = Nanos(2_000_000_000);

/// Time for which this thread is sampled at once to measure the cost of a sample: a thousandth of a second's time. At
/// 340 samples a second every third measurement has a sample.
const OWN: Nanos = Nanos(1_000_000);

/// Most distinct addresses of an epoch; further samples are dropped.
const ADDRESSES_AT_MOST: usize = 1 << 20;

/// Most timer samples of an epoch: 52 processors at the highest rate. Further samples are dropped.
const TIMED_AT_MOST: usize = 1 << 20;

/// Samples a second and processor for which the ring of a PMU is sized: the result of a period of 262,144
/// operations.
const PMU_HZ: u32 = 10_000;

/// The highest rate of timer samples a second and processor: one takes a processor up to 30 us.
pub const TIMER_HZ_MAX: u32 = 20_000;

/// The lowest rate, even where the daemon's own cost allows fewer: of an emulated processor, where a scan takes 3.4 ms, a sample adds 9 us to
/// it. What the samples take of the programs limits the rate apart from this.
pub const TIMER_HZ_LEAST: u32 = 100;

/// Upper limits of the sample rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleRate {
    /// Timer samples a second and processor.
    pub timer_hz: u32,
    /// PMU samples for each one of the default period, such as 262,144 operations: TMP has 1 and 4. A
    /// power of two.
    pub pmu: u32,
}

/// The weight of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleWorth {
    /// Time of the program.
    Time(Nanos),
    /// Accesses of the sampled kind.
    Accesses(u64),
}

/// The source of samples.
pub struct ProcessSamples {
    source: SourceKind,
    root: PathBuf,
    rate: SampleRate,
    cpus: Vec<u32>,
    code: Code,
    /// The event on all processes at once.
    all: Option<PerfSource>,
    /// The events on each thread, by thread number.
    threads: BTreeMap<u32, PerfSource>,
    interval: CostBudget,
    waits: WaitEstimates,
    report: SourceReport,
    /// The report of closed events, so that sums never decrease.
    closed: SourceReport,
    closed_by_cpu: Vec<u64>,
    /// Processor time of the watched processes since the start.
    watched: Nanos,
    /// The process of each thread's source.
    owners: HashMap<u32, Process>,
    /// This thread, where it is not among all processes: the cost of its samples represents the others.
    own: Option<PerfSource>,
    price: RunningSampleCost,
    /// The cost of measuring the price.
    own_cost: Nanos,
    /// How often samples were read since the last scan, and from the scan before it to that scan, itself included.
    reads: [u32; 2],
}

impl std::fmt::Debug for ProcessSamples {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessSamples")
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}

impl ProcessSamples {
    /// Samples of this source, at most at this rate, for this many millionths of one processor's time.
    /// None for sources that are not perf's.
    #[must_use]
    pub fn open(
        source: SourceKind,
        root: &Path,
        rate: SampleRate,
        budget_ppm: u64,
    ) -> Option<Self> {
        let sampled = sampled_event(source, root, settings(rate.timer_hz.max(1)))?;
        let proc_root = root.join("proc");
        let rate = SampleRate {
            timer_hz: timer_hz(rate.timer_hz),
            pmu: rate.pmu.max(1),
        };
        let mut samples = Self {
            source,
            root: root.to_owned(),
            rate,
            cpus: isotherm_topology::cpu_list::online_cpus(root),
            code: Code::new(Architecture::HERE, &proc_root),
            all: None,
            threads: BTreeMap::new(),
            interval: CostBudget::new(budget_ppm),
            waits: WaitEstimates::new(Bytes::ZERO),
            report: SourceReport::new(source.word(), sampled.cost_note),
            closed: SourceReport::new(source.word(), ""),
            closed_by_cpu: Vec::new(),
            watched: Nanos::ZERO,
            owners: HashMap::new(),
            own: None,
            price: RunningSampleCost::new(GUESS),
            own_cost: Nanos::ZERO,
            reads: [0, 1],
        };
        samples.attach_to_all();
        Some(samples)
    }

    fn attach_to_all(&mut self) {
        // SPE records do not name their process; it is known only for an event of a single thread.
        if self.source == SourceKind::Spe {
            return;
        }
        let all = self.attach(Sampler::EVERY_PROCESS);
        self.report.warning.clone_from(&all.report.warning);
        self.all = all.is_attached().then_some(all);
        let is_apart = self.all.is_none() && self.source == SourceKind::Timer;
        self.own = is_apart.then(|| self.attach(THIS_THREAD));
    }

    /// Estimates, from now on, which timer samples this much cache served; none without a call.
    pub fn assume_cache(&mut self, cache: Bytes) {
        self.waits = WaitEstimates::new(cache);
    }

    /// Sets the cost of a timer sample until enough were measured.
    pub fn guess_cost(&mut self, guess: Nanos) {
        self.price = RunningSampleCost::new(guess);
    }

    /// The cost of a timer sample to a program; None where the source is another.
    #[must_use]
    pub fn price(&self) -> Option<Nanos> {
        (self.source == SourceKind::Timer).then(|| self.price.get())
    }

    /// Lets timer samples interrupt this thread for a moment, and measures their cost. This costs the same at any
    /// sample rate, so it is no reason for a lower one.
    fn watch_own(&mut self, clock: &dyn Clock) -> Gaps {
        if self.source != SourceKind::Timer {
            return Gaps::default();
        }
        let begin = clock.busy();
        let gaps = Gaps::watch(clock, OWN);
        self.own_cost += clock.busy().saturating_sub(begin);
        gaps
    }

    /// The self-test: samples must come where programs work, and have data addresses.
    fn silence(&self) -> String {
        let mut open = self.attached().peekable();
        if open.peek().is_none() {
            return String::new();
        }
        let taken = self.report.taken;
        match silence(&self.report, self.watched, LONG_ENOUGH) {
            Some(silence) => silence,
            None if taken > 0 && open.all(PerfSource::is_blind) => {
                format!("no data address in any of {}", counted(taken, "sample"))
            }
            None => String::new(),
        }
    }

    /// Samples by processor number, those of other processes included: shows which processors
    /// deliver.
    #[must_use]
    pub fn by_cpu(&self) -> Vec<u64> {
        let mut sums = self.closed_by_cpu.clone();
        for source in self.attached() {
            add(&mut sums, source.by_cpu());
        }
        sums
    }

    fn attached(&self) -> impl Iterator<Item = &PerfSource> {
        self.all.iter().chain(self.threads.values())
    }

    /// Bytes of all rings, which are kernel memory charged to us.
    #[must_use]
    pub fn ring_bytes(&self) -> u64 {
        self.attached()
            .map(|source| source.ring_bytes() as u64)
            .sum()
    }

    /// The current weight of a sample: at a period of N operations it is N accesses.
    #[must_use]
    pub fn worth(&self) -> SampleWorth {
        let sampled = sampled_event(self.source, &self.root, settings(self.hz()));
        match sampled.map(|sampled| (sampled.event, sampled.addressing)) {
            Some((Ok(event), Addressing::Given)) => {
                SampleWorth::Accesses(self.given_period(event.period))
            }
            _ => SampleWorth::Time(Nanos(1_000_000_000 / u64::from(self.hz()))),
        }
    }

    /// Timer samples a second and processor. A few are always taken, whatever their cost to the daemon: most of that is
    /// spent for each scan and not for each sample, and a hit rate of three samples is meaningless.
    fn hz(&self) -> u32 {
        let least = self.rate.timer_hz.min(TIMER_HZ_LEAST);
        (self.rate.timer_hz / self.interval.get()).max(least)
    }

    /// The period of a PMU's event whose default period is given.
    fn given_period(&self, default: u64) -> u64 {
        let slowed = default.saturating_mul(self.interval.get().into());
        (slowed / u64::from(self.rate.pmu)).max(1)
    }

    /// Changes the upper limit of the timer's rate.
    pub fn set_timer_hz(&mut self, hz: u32) {
        let hz = timer_hz(hz);
        if std::mem::replace(&mut self.rate.timer_hz, hz) != hz {
            self.open_again();
        }
    }

    /// Timer samples a second and processor; None where the source is another.
    #[must_use]
    pub fn of_timer(&self) -> Option<u32> {
        (self.source == SourceKind::Timer).then(|| self.hz())
    }

    fn attach(&self, thread: u32) -> PerfSource {
        let hz = self.hz();
        let Some(sampled) = sampled_event(self.source, &self.root, settings(hz)) else {
            return PerfSource::new(self.source.word(), Addressing::Given, "");
        };
        let (addressing, physical) = (sampled.addressing, sampled.physical);
        let slowed = |event: PerfEventAttributes| PerfEventAttributes {
            period: match addressing {
                Addressing::Decoded => event.period,
                // The timer has its rate; other events are slowed by the same factor.
                Addressing::Given => self.given_period(event.period),
            },
            // Forks and mappings of all processes would cost more than the samples, and paths
            // of other users' programs are not opened: code is read from memory.
            tasks: false,
            physical,
            ..event
        };
        let a_second = match addressing {
            Addressing::Decoded => hz,
            Addressing::Given => PMU_HZ.saturating_mul(self.rate.pmu) / self.interval.get(),
        };
        let ring = |event: &PerfEventAttributes| ring_bytes(event, a_second);
        let perf = PerfSource::open(self.source, sampled, slowed, thread, (&self.cpus, &ring));
        perf.switch(true);
        perf
    }

    fn is_there(&self, pid: u32, thread: u32) -> bool {
        self.root.join(format!("proc/{pid}/task/{thread}")).exists()
    }

    /// True where reading the samples so often between two scans keeps to the budget.
    #[must_use]
    pub fn affords_reads(&self, times: u32) -> bool {
        let [_, last] = self.reads;
        self.interval.affords(times, last)
    }

    /// Adds the accesses since the last read, as a scan does, without adapting to the cost.
    pub fn gather_more(
        &mut self,
        clock: &dyn Clock,
        processes: &[Process],
        accesses: &mut AccessList,
    ) {
        let [reads, _] = &mut self.reads;
        *reads = reads.saturating_add(1);
        self.gather(clock, processes, &Gaps::default(), accesses);
    }

    /// Adds the accesses of the watched processes since samples were last gathered; `gaps` are those of this thread,
    /// to measure the cost of samples.
    fn gather(
        &mut self,
        clock: &dyn Clock,
        processes: &[Process],
        gaps: &Gaps,
        accesses: &mut AccessList,
    ) {
        let begin = clock.busy();
        let by_pid: HashMap<u32, Process> = processes
            .iter()
            .map(|process| (process.pid, *process))
            .collect();
        let mut sums = AccessSums::default();
        let mut timed = Vec::new();
        let is_blind = self.source.is_blind_to_caches();
        let (code, price, own) = (&mut self.code, &mut self.price, std::process::id());
        let mut take = |source: &mut PerfSource, event: PerfEvent| {
            let EventKind::Sample(_, sample) = event.kind else {
                return;
            };
            if sample.pid == own
                && let Some(gap) = gaps.taken_by(sample.time_ns)
            {
                price.add(gap);
            }
            let Some(process) = by_pid.get(&sample.pid) else {
                return;
            };
            let Some(data) = source.data_address(&sample, code) else {
                return;
            };
            let sampled = (*process, data.address, sample.physical);
            let has_room = match is_blind {
                true => timed.len() < TIMED_AT_MOST,
                false => sums.add(sampled, false),
            };
            match (has_room, is_blind) {
                (true, true) => timed.push(TimedSample {
                    blind: BlindSample {
                        process: *process,
                        thread: sample.tid,
                        time_ns: sample.time_ns,
                        instruction: sample.ip,
                        address: data.address,
                        is_behind_access: data.is_behind_access(),
                    },
                    physical: sample.physical,
                }),
                (true, false) => {}
                (false, _) => source.report.lost += 1,
            }
        };
        let attached = self.all.iter_mut().chain(self.threads.values_mut());
        for source in attached.chain(&mut self.own) {
            source.drain(0, &|pid| by_pid.contains_key(&pid), &mut take);
        }
        // The process may have other code by the next scan.
        for pid in by_pid.keys() {
            self.code.forget(*pid);
        }
        self.closed.lost += sums.add_timed(timed, &mut self.waits);
        sums.add_to(accesses, self.source, &mut self.closed);
        self.sum_up(clock.busy().saturating_sub(begin));
    }

    fn sum_up(&mut self, spent: Nanos) {
        let report = &mut self.report;
        report.cost += spent;
        let open = self
            .all
            .iter()
            .chain(self.threads.values())
            .map(|source| &source.report);
        (report.taken, report.usable, report.lost) = (0, 0, 0);
        open.chain([&self.closed])
            .for_each(|one| add_counts(report, one));
    }

    fn close(&mut self, source: &PerfSource) {
        add_counts(&mut self.closed, &source.report);
        add(&mut self.closed_by_cpu, source.by_cpu());
    }

    /// Closes all events and opens them at another rate.
    fn open_again(&mut self) {
        self.own = None;
        let sources = self.all.take().into_iter();
        for source in sources.chain(std::mem::take(&mut self.threads).into_values()) {
            self.close(&source);
        }
        let processes: BTreeSet<Process> = self.owners.drain().map(|(_, owner)| owner).collect();
        self.attach_to_all();
        let processes: Vec<Process> = processes.into_iter().collect();
        self.watch(&processes);
    }
}

impl Source for ProcessSamples {
    fn report(&self) -> SourceReport {
        let mut report = self.report.clone();
        report.cost += self.own_cost;
        let silence = self.silence();
        report.warning = match (report.warning.as_str(), silence.as_str()) {
            ("", _) => silence,
            (_, "") => report.warning,
            (warning, silence) => format!("{silence}; {warning}"),
        };
        report
    }

    fn set_budget(&mut self, budget_ppm: u64) {
        self.interval.set(budget_ppm);
    }

    fn watch(&mut self, processes: &[Process]) {
        if self.all.is_some() {
            return;
        }
        let wanted: BTreeSet<&Process> = processes.iter().collect();
        let gone: Vec<u32> = self
            .owners
            .iter()
            .filter(|(thread, owner)| {
                !wanted.contains(owner) || !self.is_there(owner.pid, **thread)
            })
            .map(|(thread, _)| *thread)
            .collect();
        for thread in gone {
            self.owners.remove(&thread);
            if let Some(source) = self.threads.remove(&thread) {
                self.close(&source);
            }
        }
        for process in processes {
            if self.owners.values().any(|owner| owner == process) {
                continue;
            }
            for thread in threads(&self.root.join("proc"), process.pid) {
                if (self.threads.len() + 1) * self.cpus.len() > EVENTS_AT_MOST {
                    self.report.warning = format!(
                        "{EVENTS_AT_MOST} events are open, and more threads are not sampled; \
                         CAP_PERFMON makes one event a processor do for all"
                    );
                    return;
                }
                let source = self.attach(thread);
                self.report.warning.clone_from(&source.report.warning);
                if source.is_attached() {
                    self.threads.insert(thread, source);
                    self.owners.insert(thread, *process);
                }
            }
        }
    }

    fn scan(&mut self, scan: &mut ScanContext<'_>, accesses: &mut AccessList) {
        let gaps = self.watch_own(scan.clock);
        self.watched += scan.busy;
        self.gather(scan.clock, scan.processes, &gaps, accesses);
        let [reads, _] = self.reads;
        self.reads = [0, reads.saturating_add(1)];
        if self.interval.learn(self.report.cost, scan.span) {
            self.open_again();
        }
    }
}

/// The events of the daemon: stores count, because a page that is written is hot, too (TMP).
const fn settings(hz: u32) -> EventSettings {
    EventSettings {
        stores: true,
        ..EventSettings::at(hz)
    }
}

/// The nearest rate at which the timer can sample.
fn timer_hz(hz: u32) -> u32 {
    hz.clamp(1, TIMER_HZ_MAX)
}

/// Bytes of a ring that is read about once a second and receives this many samples a second: it holds those
/// of a second and a quarter.
fn ring_bytes(event: &PerfEventAttributes, samples: u32) -> usize {
    let wanted = event.layout().sample_bytes() * (samples + samples / 4) as usize;
    wanted.clamp(64 << 10, 1 << 20)
}

/// The address of a sample: its process, its virtual address, and its physical address where known.
type SampledAddress = (Process, u64, Option<u64>);

/// A sample whose wait is judged in the order of time.
#[derive(Clone, Copy, Debug)]
struct TimedSample {
    blind: BlindSample,
    physical: Option<u64>,
}

/// Numbers of samples by address: samples beyond the caches, and samples that the caches served.
#[derive(Debug, Default)]
struct AccessSums(BTreeMap<SampledAddress, [u64; 2]>);

impl AccessSums {
    /// Counts a sample; false where it is at a new address and there are too many distinct ones.
    fn add(&mut self, address: SampledAddress, served: bool) -> bool {
        let has_room = self.0.len() < ADDRESSES_AT_MOST || self.0.contains_key(&address);
        if has_room {
            self.0.entry(address).or_default()[usize::from(served)] += 1;
        }
        has_room
    }

    /// Counts samples whose caches are estimated in the order of their times; returns the number of those without room.
    fn add_timed(&mut self, mut timed: Vec<TimedSample>, estimates: &mut WaitEstimates) -> u64 {
        // Each processor has a ring of its own.
        timed.sort_by_key(|sample| sample.blind.time_ns);
        let blind: Vec<BlindSample> = timed.iter().map(|sample| sample.blind).collect();
        let waits = estimates.judge(&blind);
        let both = timed.into_iter().zip(waits);
        let add = |(TimedSample { blind, physical }, waited)| {
            let sampled = (blind.process, blind.address, physical);
            u64::from(!self.add(sampled, waited == WaitedFor::Caches))
        };
        both.map(add).sum()
    }

    /// Adds the accesses of this source, and counts their samples in its report.
    fn add_to(self, accesses: &mut AccessList, source: SourceKind, report: &mut SourceReport) {
        for ((process, address, physical), [samples, served]) in self.0 {
            let access = ObservedAccess {
                physical,
                served,
                ..ObservedAccess::at((process, address), source, (samples, CountUnit::Samples))
            };
            accesses.add(report, samples + served, access);
        }
    }
}

fn add_counts(sum: &mut SourceReport, more: &SourceReport) {
    sum.taken += more.taken;
    sum.usable += more.usable;
    sum.lost += more.lost;
}

fn add(sums: &mut Vec<u64>, more: &[u64]) {
    sums.resize(sums.len().max(more.len()), 0);
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum += more;
    }
}

#[cfg(test)]
mod tests;
