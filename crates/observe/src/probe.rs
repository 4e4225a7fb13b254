//! [`Probe`] tries features of the kernel on this process (sampled events, the cost of a timer sample, counters, accessed bits, the search
//! for resident pages, userfaultfd): for [`crate::doctor`], whose results also choose the source of a run, and for the daemon's estimate of
//! the cost of samples. [`KernelProbe`] asks the running kernel. The *probe* of page-out is another thing.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use isotherm_model::units::Nanos;
use isotherm_sys::clock::thread_ns;
use isotherm_sys::perf::{PerfEventAttributes, Sampler};
use isotherm_sys::userfaultfd::{OpenError, Userfaultfd};

use crate::clock::MachineClock;
use crate::counters::CounterEvent;
use crate::resident::{PageTables, ResidencyMethod};
use crate::source::own_samples::{THIS_THREAD, samples};
use crate::source::sample_cost::sample_cost;

/// The result of a few milliseconds of samples by an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventTrial {
    /// Samples taken.
    pub samples: u32,
    /// Samples with the program's registers, as timer samples have them.
    pub with_registers: u32,
    /// Samples whose address is in the memory that the trial used.
    pub in_memory: u32,
    /// Samples in that memory that report the level of memory that served them.
    pub with_level: u32,
}

/// Queries to the kernel. [`KernelProbe`] is the production implementation.
pub trait Probe {
    /// Samples this process with the timer for a moment.
    ///
    /// # Errors
    /// The event cannot be opened.
    fn timer(&self) -> io::Result<EventTrial> {
        self.event(&PerfEventAttributes::cpu_clock(1_000_000))
    }

    /// The time that one timer sample takes of the interrupted program.
    ///
    /// # Errors
    /// The event cannot be opened, or delivers nothing.
    fn sample_cost(&self) -> io::Result<Nanos>;

    /// Samples this process by an event, for a moment in which it works on memory of its own.
    ///
    /// # Errors
    /// The event cannot be opened.
    fn event(&self, event: &PerfEventAttributes) -> io::Result<EventTrial>;

    /// Opens an event that is only counted, and closes it again.
    ///
    /// # Errors
    /// The event cannot be opened.
    fn counter(&self, event: &CounterEvent) -> io::Result<()>;

    /// Clears the accessed bits of this process.
    ///
    /// # Errors
    /// The file does not exist or is not writable.
    fn clear_refs(&self) -> io::Result<()>;

    /// The method that finds resident pages.
    ///
    /// # Errors
    /// No method works.
    fn page_tables(&self) -> io::Result<ResidencyMethod>;

    /// Opens a userfaultfd as the runtime does, and closes it again.
    ///
    /// # Errors
    /// The missing feature or right.
    fn userfaultfd(&self) -> Result<(), OpenError>;
}

/// The kernel we run on.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelProbe;

/// The longest time that a trial keeps the processor busy: a hundred samples of the timer.
const TRIAL: Duration = Duration::from_millis(100);

/// Bytes of memory that the trial works on, more than the caches of a core.
pub(crate) const WORKED_ON: usize = 8 << 20;

/// Samples that prove that an event works.
const ENOUGH: u32 = 5;

/// The time of a trial, elapsed and worked: on a loaded machine the calling thread may not run for a while.
struct TrialTime {
    begun: Instant,
    worked_ns: u64,
}

impl TrialTime {
    fn begin() -> Self {
        Self {
            begun: Instant::now(),
            worked_ns: thread_ns(),
        }
    }

    fn is_over(&self) -> bool {
        // The processor time is queried last: an event that leaves out the kernel takes no sample within that call.
        self.begun.elapsed() >= TRIAL && self.worked() >= TRIAL
    }

    fn worked(&self) -> Duration {
        Duration::from_nanos(thread_ns().saturating_sub(self.worked_ns))
    }
}

impl Probe for KernelProbe {
    fn sample_cost(&self) -> io::Result<Nanos> {
        sample_cost(&MachineClock)
    }

    fn event(&self, event: &PerfEventAttributes) -> io::Result<EventTrial> {
        let cpus = isotherm_topology::cpu_list::online_cpus(Path::new("/"));
        // Forks and mappings are not recorded, and the event does not wait for an exec.
        let event = PerfEventAttributes {
            tasks: false,
            ..event.clone()
        };
        let mut sampler = Sampler::open(&event, THIS_THREAD, &cpus, 0)?;
        sampler.enable()?;
        let time = TrialTime::begin();
        let mut trial = EventTrial::default();
        while trial.in_memory.max(trial.with_registers) < ENOUGH && !time.is_over() {
            // Fresh each time: the event may count first touches.
            let memory = vec![1_u8; WORKED_ON];
            let sum: u64 = memory.iter().step_by(64).map(|byte| u64::from(*byte)).sum();
            std::hint::black_box(sum);
            let from = memory.as_ptr() as u64;
            let range = from..from + memory.len() as u64;
            for sample in samples(&mut sampler) {
                trial.samples += 1;
                trial.with_registers += u32::from(sample.registers.get(0).is_some());
                let is_ours = range.contains(&sample.address);
                trial.in_memory += u32::from(is_ours);
                trial.with_level += u32::from(is_ours && sample.data_source != 0);
            }
        }
        sampler.disable()?;
        Ok(trial)
    }

    fn counter(&self, event: &CounterEvent) -> io::Result<()> {
        event.open().map(drop)
    }

    fn clear_refs(&self) -> io::Result<()> {
        std::fs::write("/proc/self/clear_refs", "1")
    }

    fn page_tables(&self) -> io::Result<ResidencyMethod> {
        PageTables::open(Path::new("/proc"), std::process::id()).map(|tables| tables.method())
    }

    fn userfaultfd(&self) -> Result<(), OpenError> {
        Userfaultfd::open().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::{KernelProbe, Probe, TRIAL, TrialTime};
    use isotherm_sys::perf::PerfEventAttributes;

    /// Page faults report addresses on every machine, with a PMU or without.
    #[test]
    fn the_trial_of_an_event_finds_the_memory_that_it_worked_on() {
        match KernelProbe.event(&PerfEventAttributes::page_faults(1)) {
            Ok(trial) => {
                assert!(
                    trial.in_memory > 0 && trial.in_memory <= trial.samples,
                    "{trial:?}"
                );
                assert_eq!(trial.with_level, 0, "page faults have no level");
            }
            Err(error) => isotherm_skip::skip!("samples of page faults: {error}"),
        }
    }

    #[test]
    fn a_trial_goes_on_until_its_thread_has_worked() {
        let time = TrialTime::begin();
        std::thread::sleep(TRIAL);
        assert!(!time.is_over(), "this thread did not run");
        while time.worked() < TRIAL {}
        assert!(time.is_over());
    }
}
