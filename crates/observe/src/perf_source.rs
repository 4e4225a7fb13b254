//! A source of samples that come through perf rings: the timer, precise hardware events, page
//! faults. Live runs and the daemon's watcher read it.

use std::io;

use isotherm_model::batch::SourceReport;
use isotherm_model::units::Nanos;
use isotherm_model::words::counted;
use isotherm_sys::perf::aux::AuxTrace;
use isotherm_sys::perf::record::{Mapping, PerfSample, Record, Records, SampleLayout};
use isotherm_sys::perf::{PerfEventAttributes, Sampler};

use isotherm_symbols::code::Code;

/// First address of the kernel's half on both architectures.
const KERNEL_HALF: u64 = 1 << 63;

/// The method that turns a sample into a data address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// Decodes the instruction.
    Decoded,
    /// Reads it from the sample.
    Given,
}

/// One perf event on all processors and its samples.
#[derive(Debug)]
pub struct PerfSource {
    /// The report of this source so far.
    pub report: SourceReport,
    samplers: Vec<Sampler>,
    addressing: Addressing,
    hardware: bool,
    malformed: u64,
    throttled: u64,
    /// Samples of accesses that hit a cache of the core.
    in_core: u64,
    /// Samples by processor number.
    by_cpu: Vec<u64>,
}

/// Processors that are counted separately; those beyond count as the last one.
const CPUS_AT_MOST: usize = 1 << 16;

/// A perf record with its time, independent of its ring.
#[derive(Clone, Debug)]
pub struct PerfEvent {
    /// `CLOCK_MONOTONIC`, nanoseconds; 0 where it was not recorded.
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
    /// A process ran another program.
    Exec(u32),
    /// A process ended.
    Exit(u32),
    /// A process mapped code.
    Map(OwnedMapping),
    /// A sample of the source with this number.
    Sample(usize, Box<PerfSample>),
}

/// An executable mapping that owns its path.
#[derive(Clone, Debug)]
pub struct OwnedMapping {
    pid: u32,
    address: u64,
    bytes: u64,
    file_offset: u64,
    inode: u64,
    path: Vec<u8>,
    time_ns: u64,
}

impl OwnedMapping {
    /// The mapping as the record had it.
    #[must_use]
    pub fn borrow(&self) -> Mapping<'_> {
        Mapping {
            pid: self.pid,
            address: self.address,
            bytes: self.bytes,
            file_offset: self.file_offset,
            inode: self.inode,
            path: &self.path,
            time_ns: self.time_ns,
        }
    }
}

impl From<Mapping<'_>> for OwnedMapping {
    fn from(mapping: Mapping<'_>) -> Self {
        Self {
            pid: mapping.pid,
            address: mapping.address,
            bytes: mapping.bytes,
            file_offset: mapping.file_offset,
            inode: mapping.inode,
            path: mapping.path.to_vec(),
            time_ns: mapping.time_ns,
        }
    }
}

impl PerfSource {
    /// A source that is not yet attached. `cost_note` gives the cost to the program, and the origin
    /// of the figure.
    #[must_use]
    pub fn new(name: &str, addressing: Addressing, cost_note: String) -> Self {
        Self {
            report: empty_report(name, cost_note),
            samplers: Vec::new(),
            addressing,
            hardware: false,
            malformed: 0,
            throttled: 0,
            in_core: 0,
            by_cpu: Vec::new(),
        }
    }

    /// Opens the event for a process, and the event that belongs to it if there is one. An error
    /// becomes the report's warning.
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

    /// True while it is attached.
    #[must_use]
    pub const fn is_attached(&self) -> bool {
        !self.samplers.is_empty()
    }

    /// True for events of a PMU, which may rest while the cache misses little.
    #[must_use]
    pub fn is_hardware(&self) -> bool {
        self.hardware && self.is_attached()
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

    /// Reads the records in the rings. `number` marks the samples as this source's.
    pub fn read(&mut self, number: usize, happenings: &mut Vec<PerfEvent>) {
        self.drain(number, |_, happening| happenings.push(happening));
    }

    /// As [`Self::read`], but passes on one record at a time and keeps none: a second's samples with
    /// their registers take more memory than all data that the daemon derives from them.
    pub fn drain(&mut self, number: usize, mut take: impl FnMut(&mut Self, PerfEvent)) {
        let (mut bytes, mut traces) = (Vec::new(), Vec::new());
        for at in 0..self.samplers.len() {
            for ring in 0..self.samplers[at].rings() {
                bytes.clear();
                traces.clear();
                let sampler = &mut self.samplers[at];
                let is_well = sampler.read_ring(ring, &mut bytes, &mut traces);
                let layout = sampler.layout();
                self.malformed += u64::from(!is_well);
                self.take_apart(number, (&bytes, layout), &traces, &mut take);
            }
        }
    }

    /// Bytes of all rings; see [`Sampler::mapped_bytes`].
    #[must_use]
    pub fn ring_bytes(&self) -> usize {
        self.samplers.iter().map(Sampler::mapped_bytes).sum()
    }

    fn take_apart(
        &mut self,
        number: usize,
        (bytes, layout): (&[u8], SampleLayout),
        traces: &[AuxTrace],
        take: &mut impl FnMut(&mut Self, PerfEvent),
    ) {
        for trace in traces {
            self.report.lost += u64::from(trace.truncated);
            let unknown = crate::spe::samples(trace, |sample| {
                self.report.taken += 1;
                count(&mut self.by_cpu, sample.cpu);
                let event = PerfEvent {
                    time_ns: sample.time_ns,
                    kind: EventKind::Sample(number, Box::new(sample)),
                };
                take(self, event);
            });
            self.malformed += u64::from(unknown > 0);
        }
        let mut records = Records::new(bytes, layout);
        for record in &mut records {
            let (time_ns, kind) = match record {
                Record::Sample(sample) => {
                    self.report.taken += 1;
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
                } if pid != parent && pid == tid => {
                    (time_ns, EventKind::Fork { parent, child: pid })
                }
                Record::Exit { pid, tid, time_ns } if pid == tid => (time_ns, EventKind::Exit(pid)),
                Record::Comm {
                    pid,
                    exec: true,
                    time_ns,
                } => (time_ns, EventKind::Exec(pid)),
                Record::Mapping(mapping) => (mapping.time_ns, EventKind::Map(mapping.into())),
                Record::Throttled(on) => {
                    self.throttled += u64::from(on);
                    continue;
                }
                Record::Malformed(_) => {
                    self.malformed += 1;
                    continue;
                }
                Record::Fork { .. }
                | Record::Exit { .. }
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

    /// The data address of a sample of this source, counted as usable if there is one.
    pub fn data_address(&mut self, sample: &PerfSample, code: &mut Code) -> Option<u64> {
        let address = match self.addressing {
            Addressing::Decoded => code.data_address(sample),
            Addressing::Given => Some(sample.address).filter(|address| *address != 0),
        };
        let address = address.filter(|address| *address < KERNEL_HALF)?;
        // The placement of memory has no effect on a cache hit.
        if sample.stayed_in_core() {
            self.in_core += 1;
            return None;
        }
        self.report.usable += 1;
        Some(address)
    }

    /// Samples by processor number: a processor without samples, while others have some, has no such
    /// event, or ran no program.
    #[must_use]
    pub fn by_cpu(&self) -> &[u64] {
        &self.by_cpu
    }

    /// True where samples came, but none with a data address, and caches are not the reason.
    #[must_use]
    pub const fn is_blind(&self) -> bool {
        self.report.taken > 0 && self.report.usable + self.in_core == 0
    }

    /// The fault of this source, given the processor time that the program has used; empty where it
    /// works.
    #[must_use]
    pub fn trouble(&self, cpu: Nanos, period: Nanos) -> String {
        if !self.report.warning.is_empty() || self.samplers.is_empty() {
            return self.report.warning.clone();
        }
        let mut troubles = Vec::new();
        // Ten periods without a sample are no accident.
        if self.report.taken == 0 && cpu.0 > period.0.saturating_mul(10) {
            troubles.push(format!(
                "it delivered no samples although the program used {cpu} of processor time"
            ));
        } else if self.is_blind() {
            troubles.push(format!(
                "no data address in any of {}",
                counted(self.report.taken, "sample")
            ));
        }
        if self.throttled > 0 {
            troubles.push(format!(
                "the kernel throttled it {} (kernel.perf_cpu_time_max_percent)",
                counted(self.throttled, "time")
            ));
        }
        if self.malformed > 0 {
            let records = counted(self.malformed, "record");
            troubles.push(format!("not readable: {records}"));
        }
        troubles.join("; ")
    }
}

/// Opens an event, without physical addresses where those are refused; the warning then says why.
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

fn count(by_cpu: &mut Vec<u64>, cpu: u32) {
    let cpu = (cpu as usize).min(CPUS_AT_MOST - 1);
    if by_cpu.len() <= cpu {
        by_cpu.resize(cpu + 1, 0);
    }
    by_cpu[cpu] += 1;
}

/// An empty report of a source.
#[must_use]
pub fn empty_report(name: &str, cost_note: String) -> SourceReport {
    SourceReport {
        name: name.to_owned(),
        taken: 0,
        usable: 0,
        lost: 0,
        cost: Nanos::ZERO,
        cost_note,
        warning: String::new(),
    }
}

/// Why an event could not be opened, and the remedy.
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
        _ if error.raw_os_error() == Some(24) => format!(
            "too many open files for one event on each processor ({error}); raise `ulimit -n`"
        ),
        _ => format!("perf_event_open failed: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Addressing, EventKind, PerfSource};
    use isotherm_sys::perf::PerfEventAttributes;

    /// A source of this thread's page faults, which have addresses on every machine, with another event
    /// beside them.
    fn attached(beside: &PerfEventAttributes) -> PerfSource {
        let mut source = PerfSource::new("page-faults", Addressing::Given, String::new());
        let cpus = isotherm_topology::cpu_list::online_cpus("/".as_ref());
        let event = PerfEventAttributes::page_faults(1);
        source.attach(&event, Some(beside), 0, (&cpus, 1 << 20));
        source
    }

    #[test]
    fn samples_of_both_events_are_counted_by_processor() {
        let mut source = attached(&PerfEventAttributes::page_faults(1));
        if !source.is_attached() {
            return isotherm_skip::skip!("{}", source.report.warning);
        }
        source.switch(true);
        let data = std::hint::black_box(vec![1_u8; 4 << 20]);
        source.switch(false);
        let mut happenings = Vec::new();
        source.read(0, &mut happenings);
        let from = data.as_ptr() as u64;
        let within = |what: &EventKind| matches!(what, EventKind::Sample(_, sample) if sample.address >= from && sample.address < from + (4 << 20));
        let faults = happenings.iter().filter(|one| within(&one.kind)).count();
        // Each event counts each fault, unless a ring was too small.
        assert!(
            faults >= 2 && (faults % 2 == 0 || source.report.lost > 0),
            "{faults}"
        );
        let by_cpu: u64 = source.by_cpu().iter().sum();
        assert_eq!(by_cpu, source.report.taken);
    }

    #[test]
    fn where_physical_addresses_are_refused_samples_come_without_them_and_it_is_said() {
        let mut source = PerfSource::new("page-faults", Addressing::Given, String::new());
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
        let trouble = &source.report.warning;
        assert!(
            trouble.contains("on which memory node") && trouble.contains("CAP_PERFMON"),
            "{trouble}"
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
        let mut happenings = Vec::new();
        source.read(0, &mut happenings);
        let without = |what: &EventKind| matches!(what, EventKind::Sample(_, sample) if sample.physical.is_none());
        assert!(!happenings.is_empty());
        assert!(happenings.iter().all(|one| without(&one.kind)));
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
}
