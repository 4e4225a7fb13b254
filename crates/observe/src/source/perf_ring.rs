//! [`PerfSource`] opens a perf event on each processor, for a process, a thread or all processes, and turns the records that the kernel
//! writes into its ring buffers into [`PerfEvent`]s: samples, forks, new threads, execs, exits and executable mappings. It also finds the
//! instruction of a sample, and its data address unless a cache served it; [`refusal`] says why an event cannot be opened.
//!
//! The event is a timer, PEBS, IBS, SPE or page faults. The report of a source counts the samples and the lost
//! records; its warning states why an event could not be opened, throttling by the kernel, and malformed records.

use std::io;

use isotherm_decode::AccessOrder;
use isotherm_model::batch::SourceReport;
use isotherm_model::code_access::InstructionId;
use isotherm_model::source_kind::SourceKind;
use isotherm_model::units::Nanos;
use isotherm_model::words::counted;
use isotherm_sys::perf::aux::AuxTrace;
use isotherm_sys::perf::record::{Mapping, PerfSample, Record, Records, SampleLayout};
use isotherm_sys::perf::{PerfEventAttributes, Sampler};

use isotherm_symbols::code::{Code, SampledData, SampledPlace};

use super::sampled_event::{Addressing, SampledEvent};
use super::silence;

/// Number of the kernel's error: no such process or thread.
const ESRCH: i32 = 3;

/// First address of the kernel's half of the address space, on x86-64 and AArch64.
const KERNEL_HALF: u64 = 1 << 63;

/// Size of each ring buffer of an event, in bytes.
type RingBytes<'a> = &'a dyn Fn(&PerfEventAttributes) -> usize;

/// A perf event on all processors, with the optional second event of the same source, and counters of their samples.
#[derive(Debug, Default)]
pub struct PerfSource {
    /// The report of this source so far.
    pub report: SourceReport,
    samplers: Vec<Sampler>,
    addressing: Addressing,
    /// Stores count.
    stores: bool,
    /// The event is one of a PMU.
    hardware: bool,
    /// Records, rings and traces with content that could not be read.
    malformed: u64,
    /// `PERF_RECORD_THROTTLE` records.
    throttled: u64,
    /// Samples with the address of an access to memory.
    addressed: u64,
    /// Samples of accesses that hit a cache, and of stores where they are left out.
    not_memory: u64,
    /// Samples by processor number.
    by_cpu: Vec<u64>,
}

/// Most processors with a sample count of their own; higher numbers share the last count.
const CPUS_AT_MOST: usize = 1 << 16;

/// A perf record with its time; a copy that outlives the ring buffer.
#[derive(Clone, Debug)]
pub struct PerfEvent {
    /// Time of `CLOCK_MONOTONIC`, in nanoseconds; 0 if the record has none.
    pub time_ns: u64,
    /// The kind of record.
    pub kind: EventKind,
}

/// The kinds of records.
#[derive(Clone, Debug)]
pub enum EventKind {
    /// A process forked.
    Fork {
        /// The parent process.
        parent: u32,
        /// The new process.
        child: u32,
    },
    /// A process started a thread with this number.
    Thread(u32),
    /// The process with this pid executed a program (`execve`), by which the kernel names it.
    Exec(u32, String),
    /// The process with this pid ended.
    Exit(u32),
    /// A process mapped a file executable.
    Map(Mapping<Vec<u8>>),
    /// A sample of the source with this number.
    Sample(usize, Box<PerfSample>),
}

impl PerfSource {
    /// A source without an open event. `cost_note` states the cost to the program, and the origin of the figure.
    #[must_use]
    pub fn new(name: &str, addressing: Addressing, cost_note: &str) -> Self {
        Self {
            report: SourceReport::new(name, cost_note),
            addressing,
            stores: true,
            ..Self::default()
        }
    }

    /// Opens the event of a source, and its second event if it has one, for a process. `adapt` sets the attributes that
    /// depend on the consumer of the samples; `ring_bytes` computes the size of a ring buffer. A failure becomes the
    /// report's warning.
    pub(super) fn open(
        source: SourceKind,
        sampled: SampledEvent,
        adapt: impl Fn(PerfEventAttributes) -> PerfEventAttributes,
        pid: u32,
        (cpus, ring_bytes): (&[u32], RingBytes<'_>),
    ) -> Self {
        let mut perf = Self::new(source.word(), sampled.addressing, sampled.cost_note);
        perf.stores = sampled.stores;
        match sampled.event.map(&adapt) {
            Ok(event) => {
                let ring_bytes = ring_bytes(&event);
                let beside = sampled.beside.map(|beside| PerfEventAttributes {
                    tasks: false,
                    ..adapt(beside)
                });
                perf.attach(&event, beside.as_ref(), pid, (cpus, ring_bytes));
            }
            Err(why) => perf.report.warning = why,
        }
        perf
    }

    /// Opens the event for a process, and the second event `beside` it (the stores that a PEBS load event omits). An
    /// error becomes the report's warning.
    pub fn attach(
        &mut self,
        event: &PerfEventAttributes,
        beside: Option<&PerfEventAttributes>,
        pid: u32,
        (cpus, ring_bytes): (&[u32], usize),
    ) {
        self.hardware = event.weight || event.aux_bytes > 0;
        match open(event, pid, cpus, ring_bytes) {
            Ok((sampler, without)) => {
                self.samplers.push(sampler);
                self.report.warning = without;
            }
            Err(error) => {
                self.report.warning = refusal(&error);
                return;
            }
        }
        let beside = beside.map(|event| open(event, pid, cpus, ring_bytes));
        match beside.transpose() {
            Ok(opened) => self.samplers.extend(opened.map(|(sampler, _)| sampler)),
            Err(error) => {
                self.report.warning = format!("stores are not sampled: {}", refusal(&error));
            }
        }
    }

    /// True if the event is open.
    #[must_use]
    pub const fn is_attached(&self) -> bool {
        !self.samplers.is_empty()
    }

    /// True if the event is open and of a PMU: sampling by it is switched off while the program has few cache misses.
    #[must_use]
    pub fn is_hardware(&self) -> bool {
        self.hardware && self.is_attached()
    }

    /// Opens the event with these periods, too, for [`PerfSource::choose_period`]; `pid` is that of [`PerfSource::open`]. False where the
    /// kernel refuses that.
    pub(super) fn open_periods(
        &mut self,
        event: &PerfEventAttributes,
        pid: u32,
        periods: &[u64],
    ) -> bool {
        let mut samplers = self.samplers.iter_mut();
        samplers.all(|sampler| sampler.open_periods(event, pid, periods).is_ok())
    }

    /// Samples from now on with the first period (0), or with one of [`PerfSource::open_periods`] (1 for the first of them). False where the
    /// kernel refuses that, and the period is the former one.
    pub(super) fn choose_period(&self, period: usize) -> bool {
        let mut samplers = self.samplers.iter();
        samplers.all(|sampler| sampler.choose_period(period).is_ok())
    }

    /// Opens the event, and the second one if there is one, for a further thread too: it is sampled at once, and so are the threads that
    /// it starts from now on. Nothing is opened for a thread that has ended; another refusal becomes the report's warning.
    pub(super) fn add_thread(&mut self, thread: u32) {
        for sampler in &mut self.samplers {
            match sampler.add_thread(thread) {
                Err(error) if error.raw_os_error() != Some(ESRCH) => {
                    let why = refusal(&error);
                    self.report.warning =
                        format!("thread {thread} and others are not sampled: {why}");
                    return;
                }
                Ok(()) | Err(_) => {}
            }
        }
    }

    /// Starts or stops sampling.
    pub fn switch(&self, on: bool) {
        for sampler in &self.samplers {
            // An event that was opened can always be enabled and disabled.
            let _ = if on {
                sampler.enable()
            } else {
                sampler.disable()
            };
        }
    }

    /// Reads all records from the ring buffers and appends them to `events`. `number` is the number of this source in
    /// [`EventKind::Sample`].
    pub fn read(&mut self, number: usize, events: &mut Vec<PerfEvent>) {
        let all = |_| true;
        self.drain(number, &all, |_, event| events.push(event));
    }

    /// As [`Self::read`], but passes each record to `take` and stores none: the samples of one second, with their
    /// registers, would need more memory than all data that the daemon derives from them. The report counts as taken
    /// only the samples of processes for whose pid `wanted` is true.
    pub fn drain(
        &mut self,
        number: usize,
        wanted: &dyn Fn(u32) -> bool,
        mut take: impl FnMut(&mut Self, PerfEvent),
    ) {
        let (mut bytes, mut traces) = (Vec::new(), Vec::new());
        for at in 0..self.samplers.len() {
            for ring in 0..self.samplers[at].rings() {
                bytes.clear();
                traces.clear();
                let sampler = &mut self.samplers[at];
                let is_intact = sampler.read_ring(ring, &mut bytes, &mut traces);
                let layout = sampler.layout();
                self.malformed += u64::from(!is_intact);
                self.parse((number, wanted), (&bytes, layout), &traces, &mut take);
            }
        }
    }

    /// Size of all ring buffers in bytes; see [`Sampler::mapped_bytes`].
    #[must_use]
    pub fn ring_bytes(&self) -> usize {
        self.samplers.iter().map(Sampler::mapped_bytes).sum()
    }

    /// Parses the content of one ring buffer, `bytes`, and of its AUX area, `traces`.
    fn parse(
        &mut self,
        (number, wanted): (usize, &dyn Fn(u32) -> bool),
        (bytes, layout): (&[u8], SampleLayout),
        traces: &[AuxTrace],
        take: &mut impl FnMut(&mut Self, PerfEvent),
    ) {
        self.parse_traces((number, wanted), traces, take);
        let mut records = Records::new(bytes, layout);
        for record in &mut records {
            let (time_ns, kind) = match record {
                Record::Sample(sample) => {
                    self.report.taken += u64::from(wanted(sample.pid));
                    count(&mut self.by_cpu, sample.cpu);
                    (sample.time_ns, EventKind::Sample(number, Box::new(sample)))
                }
                Record::Lost(count) => {
                    self.report.lost += count;
                    continue;
                }
                Record::Fork {
                    pid,
                    parent,
                    tid,
                    time_ns,
                } => match forked((pid, tid), parent) {
                    Some(kind) => (time_ns, kind),
                    None => continue,
                },
                Record::Exit { pid, tid, time_ns } if pid == tid => (time_ns, EventKind::Exit(pid)),
                Record::Comm {
                    pid,
                    name,
                    exec: true,
                    time_ns,
                } => {
                    let name = String::from_utf8_lossy(name).into_owned();
                    (time_ns, EventKind::Exec(pid, name))
                }
                Record::Mapping(mapping) => (mapping.time_ns, EventKind::Map(mapping.owned())),
                Record::Throttled(on) => {
                    self.throttled += u64::from(on);
                    continue;
                }
                Record::Malformed(_) => {
                    self.malformed += 1;
                    continue;
                }
                Record::Exit { .. }
                | Record::Comm { .. }
                | Record::Aux { .. }
                | Record::Other(_) => {
                    continue;
                }
            };
            take(self, PerfEvent { time_ns, kind });
        }
        self.malformed += u64::from(records.rest() > 0);
    }

    /// Parses the content of an AUX area.
    fn parse_traces(
        &mut self,
        (number, wanted): (usize, &dyn Fn(u32) -> bool),
        traces: &[AuxTrace],
        take: &mut impl FnMut(&mut Self, PerfEvent),
    ) {
        for trace in traces {
            self.report.lost += u64::from(trace.truncated);
            let unknown = super::spe::samples(trace, |sample| {
                self.report.taken += u64::from(wanted(sample.pid));
                count(&mut self.by_cpu, sample.cpu);
                let event = PerfEvent {
                    time_ns: sample.time_ns,
                    kind: EventKind::Sample(number, Box::new(sample)),
                };
                take(self, event);
            });
            self.malformed += u64::from(unknown > 0);
        }
    }

    /// The data of a sample of this source. None if it has none, if the address is the kernel's, if a cache served the access,
    /// or if it is a store and these are left out. Whether the sample is usable or lost is counted where the access is kept.
    pub fn data_address(&mut self, sample: &PerfSample, code: &mut Code) -> Option<SampledData> {
        let data = match self.addressing {
            Addressing::Decoded => code.data_address(sample)?,
            Addressing::Given => SampledData {
                address: sample.address,
                order: AccessOrder::Retired,
                bases: [0; 2],
            },
        };
        if data.address == 0 || data.address >= KERNEL_HALF {
            return None;
        }
        // The tier of the data has no effect on the latency of a hit.
        let left_out = !self.stores && sample.is_store();
        if left_out || sample.hit_a_cache() {
            self.not_memory += 1;
            return None;
        }
        self.addressed += 1;
        Some(data)
    }

    /// The number of the instruction that made the access of a sample, where it is known.
    pub fn instruction(&self, sample: &PerfSample, code: &mut Code) -> Option<InstructionId> {
        let place = match self.addressing {
            Addressing::Decoded => SampledPlace::Near(sample.ip),
            Addressing::Given => SampledPlace::Access(sample.ip),
        };
        code.instruction(sample.pid, place)
    }

    /// Number of samples of each processor. A processor with none, where others have some, has no such event or ran no
    /// sampled program.
    #[must_use]
    pub fn by_cpu(&self) -> &[u64] {
        &self.by_cpu
    }

    /// True if samples were taken, but none has a data address, hit a cache, or is a store that is left out.
    #[must_use]
    pub const fn is_blind(&self) -> bool {
        self.report.taken > 0 && self.addressed + self.not_memory == 0
    }

    /// What is wrong with this source; empty if nothing is. No sample at all counts as a fault once the program has
    /// `used` more than `enough` processor time.
    #[must_use]
    pub fn warning(&self, used: Nanos, enough: Nanos) -> String {
        if !self.report.warning.is_empty() || self.samplers.is_empty() {
            return self.report.warning.clone();
        }
        let mut faults = Vec::new();
        if let Some(silence) = silence(&self.report, used, enough) {
            faults.push(silence);
        } else if self.is_blind() {
            faults.push(format!(
                "no data address in any of {}",
                counted(self.report.taken, "sample")
            ));
        }
        if self.throttled > 0 {
            faults.push(format!(
                "the kernel throttled it {} (kernel.perf_cpu_time_max_percent)",
                counted(self.throttled, "time")
            ));
        }
        if self.malformed > 0 {
            let records = counted(self.malformed, "record");
            faults.push(format!("not readable: {records}"));
        }
        faults.join("; ")
    }
}

/// Opens an event; if the kernel refuses its physical addresses, without them. Returns the warning about that, or an
/// empty text.
fn open(
    event: &PerfEventAttributes,
    pid: u32,
    cpus: &[u32],
    ring_bytes: usize,
) -> io::Result<(Sampler, String)> {
    let refused = match Sampler::open(event, pid, cpus, ring_bytes) {
        Err(error) if event.physical.is_some() => error,
        opened => return opened.map(|sampler| (sampler, String::new())),
    };
    let plain = PerfEventAttributes {
        physical: None,
        ..event.clone()
    };
    let sampler = Sampler::open(&plain, pid, cpus, ring_bytes)?;
    let why = format!(
        "its samples do not show on which memory node their data is: physical addresses are refused \
         ({refused}); they need CAP_PERFMON (Linux 5.8), or kernel.perf_event_paranoid of 1 or less"
    );
    Ok((sampler, why))
}

/// The event of a fork record: process `parent` made a thread of process `pid`. `None` for a later thread of another process.
fn forked((pid, thread): (u32, u32), parent: u32) -> Option<EventKind> {
    match pid == parent {
        true => Some(EventKind::Thread(thread)),
        false => (pid == thread).then_some(EventKind::Fork { parent, child: pid }),
    }
}

fn count(by_cpu: &mut Vec<u64>, cpu: u32) {
    let cpu = (cpu as usize).min(CPUS_AT_MOST - 1);
    if by_cpu.len() <= cpu {
        by_cpu.resize(cpu + 1, 0);
    }
    by_cpu[cpu] += 1;
}

/// The reason why an event could not be opened, and the remedy where there is one.
#[must_use]
pub fn refusal(error: &io::Error) -> String {
    use io::ErrorKind;
    match error.kind() {
        ErrorKind::PermissionDenied => format!(
            "perf_event_open is not allowed ({error}); run with CAP_PERFMON, or set \
             kernel.perf_event_paranoid to 2 or less, or allow it in the container's seccomp \
             profile"
        ),
        ErrorKind::NotFound | ErrorKind::Unsupported => {
            format!("this machine has no such event ({error})")
        }
        // EMFILE.
        _ if error.raw_os_error() == Some(24) => format!(
            "too many open files for one event on each processor ({error}); raise `ulimit -n`"
        ),
        _ => format!("perf_event_open failed: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Addressing, EventKind, PerfSource};
    use std::path::Path;

    use isotherm_decode::Architecture;
    use isotherm_symbols::code::Code;
    use isotherm_sys::perf::PerfEventAttributes;
    use isotherm_sys::perf::record::{PerfSample, Registers, STORE, level};

    /// A source of this thread's page faults, which have addresses on every machine, with `beside` as its second event.
    fn attached(beside: &PerfEventAttributes) -> PerfSource {
        let mut source = PerfSource::new("page-faults", Addressing::Given, "");
        let cpus = isotherm_topology::cpu_list::online_cpus("/".as_ref());
        let event = PerfEventAttributes::page_faults(1);
        source.attach(&event, Some(beside), 0, (&cpus, 1 << 20));
        source
    }

    const BYTES: usize = 64 << 20;

    #[test]
    fn samples_of_both_events_are_counted_by_processor() {
        let mut source = attached(&PerfEventAttributes::page_faults(1));
        if !source.is_attached() {
            return isotherm_skip::skip!("{}", source.report.warning);
        }
        // So large that the heap maps fresh memory, which no earlier test has touched.
        let mut data = vec![0_u8; BYTES];
        source.switch(true);
        data[..4 << 20].fill(1);
        source.switch(false);
        let data = std::hint::black_box(data);
        let mut events = Vec::new();
        source.read(0, &mut events);
        let from = data.as_ptr() as u64;
        let within = |kind: &EventKind| matches!(kind, EventKind::Sample(_, sample) if sample.address >= from && sample.address < from + BYTES as u64);
        let faults = events.iter().filter(|event| within(&event.kind)).count();
        // Each event counts each fault, unless a ring was too small.
        assert!(
            faults >= 2 && (faults % 2 == 0 || source.report.lost > 0),
            "{faults}"
        );
        let by_cpu: u64 = source.by_cpu().iter().sum();
        assert_eq!(by_cpu, source.report.taken);
    }

    #[test]
    fn where_physical_addresses_are_refused_samples_come_without_them_and_a_warning_says_so() {
        let mut source = PerfSource::new("page-faults", Addressing::Given, "");
        let cpus = isotherm_topology::cpu_list::online_cpus("/".as_ref());
        let event = PerfEventAttributes {
            // No software event has such a number.
            physical: Some(1 << 40),
            ..PerfEventAttributes::page_faults(1)
        };
        source.attach(&event, None, 0, (&cpus, 1 << 20));
        if !source.is_attached() {
            return isotherm_skip::skip!("{}", source.report.warning);
        }
        let warning = &source.report.warning;
        assert!(
            warning.contains("on which memory node") && warning.contains("CAP_PERFMON"),
            "{warning}"
        );
        // So large that the heap maps fresh, untouched memory from the kernel.
        let mut fresh = vec![0_u8; 64 << 20];
        source.switch(true);
        fresh
            .iter_mut()
            .step_by(4096)
            .take(64)
            .for_each(|byte| *byte = 1);
        source.switch(false);
        std::hint::black_box(fresh);
        let mut events = Vec::new();
        source.read(0, &mut events);
        let has_no_physical = |kind: &EventKind| matches!(kind, EventKind::Sample(_, sample) if sample.physical.is_none());
        assert!(!events.is_empty());
        assert!(events.iter().all(|event| has_no_physical(&event.kind)));
    }

    #[test]
    fn a_source_whose_second_event_is_refused_goes_on_and_says_so() {
        let nonsense = PerfEventAttributes {
            kind: u32::MAX,
            ..PerfEventAttributes::page_faults(1)
        };
        let source = attached(&nonsense);
        if !source.is_attached() {
            return isotherm_skip::skip!("{}", source.report.warning);
        }
        assert!(source.report.warning.starts_with("stores are not sampled"));
    }

    #[test]
    fn hits_of_any_cache_and_stores_that_are_left_out_are_no_accesses() {
        let mut code = Code::new(Architecture::HERE, Path::new("/proc"));
        let mut source = PerfSource::new("pebs", Addressing::Given, "");
        let sample = |data_source| PerfSample {
            ip: 1,
            pid: 1,
            tid: 1,
            time_ns: 0,
            cpu: 0,
            address: 4096,
            weight: 300,
            data_source,
            physical: None,
            registers: Registers::NONE,
        };
        let missed = level::MISS | level::THIRD;
        let kinds = [
            level::HIT | level::SECOND,
            level::HIT | level::THIRD,
            missed,
            missed | STORE,
            0,
        ];
        let mut found = |stores| {
            source.stores = stores;
            kinds.map(|kind| source.data_address(&sample(kind), &mut code).is_some())
        };
        assert_eq!(found(true), [false, false, true, true, true]);
        assert_eq!(found(false), [false, false, true, false, true]);
        source.report.taken = 10;
        assert!(!source.is_blind() && source.not_memory == 5);
        assert_eq!(
            (source.report.usable, source.report.lost),
            (0, 0),
            "no access is kept yet"
        );
    }
}
