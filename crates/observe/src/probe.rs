//! Abilities of the running kernel, tried for real on this process.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use isotherm_sys::perf::record::{Record, Records};
use isotherm_sys::perf::{Event, Sampler};
use isotherm_sys::userfaultfd::{OpenError, Userfaultfd};

use crate::resident::{Method, PageTables};

/// What a few milliseconds of timer samples brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerTrial {
    /// Samples taken.
    pub samples: u32,
    /// Of these, samples with the program's registers.
    pub with_registers: u32,
}

/// Questions to the kernel. The production answers are those of [`Machine`].
pub trait Probe {
    /// Samples this process with the timer for a moment.
    ///
    /// # Errors
    /// The event cannot be opened.
    fn timer(&self) -> io::Result<TimerTrial>;

    /// Opens a hardware event and closes it again.
    ///
    /// # Errors
    /// The event cannot be opened.
    fn event(&self, event: &Event) -> io::Result<()>;

    /// Clears the accessed bits of this process.
    ///
    /// # Errors
    /// The file is not there or not writable.
    fn clear_refs(&self) -> io::Result<()>;

    /// How resident pages can be found.
    ///
    /// # Errors
    /// Not at all.
    fn page_tables(&self) -> io::Result<Method>;

    /// Opens a userfaultfd as the runtime does, and closes it again.
    ///
    /// # Errors
    /// What is missing.
    fn userfaultfd(&self) -> Result<(), OpenError>;
}

/// The kernel we run on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine;

/// How long the trial of the timer works the processor, at most: a hundred samples.
const TRIAL: Duration = Duration::from_millis(100);

/// To perf, a process id names its first thread, and 0 the thread that asks.
const THIS_THREAD: u32 = 0;

impl Probe for Machine {
    fn timer(&self) -> io::Result<TimerTrial> {
        let cpus = crate::list::online_cpus(Path::new("/"));
        let event = Event::cpu_clock(1_000_000);
        let mut sampler = Sampler::open(&event, THIS_THREAD, &cpus, 0)?;
        sampler.enable()?;
        let begin = Instant::now();
        let mut trial = TimerTrial {
            samples: 0,
            with_registers: 0,
        };
        // Ends with the first samples: a busy machine may give us no time for a while.
        while begin.elapsed() < TRIAL && trial.with_registers < 5 {
            let mut bytes = Vec::new();
            sampler.read(&mut bytes);
            for record in Records::new(&bytes, sampler.layout()) {
                if let Record::Sample(sample) = record {
                    trial.samples += 1;
                    trial.with_registers += u32::from(sample.registers.get(0).is_some());
                }
            }
        }
        sampler.disable()?;
        Ok(trial)
    }

    fn event(&self, event: &Event) -> io::Result<()> {
        let cpus = crate::list::online_cpus(Path::new("/"));
        let first = cpus.first().copied().unwrap_or(0);
        Sampler::open(event, THIS_THREAD, &[first], 0).map(drop)
    }

    fn clear_refs(&self) -> io::Result<()> {
        std::fs::write("/proc/self/clear_refs", "1")
    }

    fn page_tables(&self) -> io::Result<Method> {
        PageTables::open(Path::new("/proc"), std::process::id()).map(|tables| tables.method())
    }

    fn userfaultfd(&self) -> Result<(), OpenError> {
        Userfaultfd::open().map(drop)
    }
}
