//! [`CpuTime`] counts the processor time that the observed program and its child processes use: by a perf event, or from `/proc`, which
//! omits processes that have ended, where that event cannot be opened or the program ran already. A live run reports it (`cpu_ns`), and
//! tells a broken source, which delivers nothing, from an idle program by it.

use std::path::Path;

use isotherm_model::units::Nanos;
use isotherm_sys::perf::PerfCounter;

use crate::process_usage::ProcessStat;
use crate::processes::Processes;

/// The processor time of a program and its child processes.
#[derive(Debug, Default)]
pub struct CpuTime {
    counter: Option<PerfCounter>,
    /// Processor time that a running process had used before the observation.
    before: Nanos,
    used: Nanos,
}

impl CpuTime {
    /// Counts from the exec of this process on.
    #[must_use]
    pub fn new(pid: u32) -> Self {
        Self {
            counter: PerfCounter::open(PerfCounter::CPU_CLOCK, pid).ok(),
            ..Self::default()
        }
    }

    /// Counts from now on, of a process that runs already.
    #[must_use]
    pub fn of_running(pid: u32, root: &Path) -> Self {
        let before = ProcessStat::read(&root.join("proc"), pid);
        Self {
            before: before.map_or(Nanos::ZERO, |stat| stat.cpu_time),
            ..Self::default()
        }
    }

    /// Processor time so far.
    #[must_use]
    pub const fn used(&self) -> Nanos {
        self.used
    }

    /// Reads the counter, or else adds up the live processes, which omits the ended ones; the value
    /// never decreases.
    pub fn update(&mut self, processes: &Processes, root: &Path) {
        let counted = self
            .counter
            .as_mut()
            .and_then(|it| it.value().ok().map(Nanos));
        let proc_root = root.join("proc");
        let now = counted.unwrap_or_else(|| {
            let stats = processes.pids();
            let stats = stats.filter_map(|pid| ProcessStat::read(&proc_root, pid));
            let all: Nanos = stats.map(|stat| stat.cpu_time).sum();
            all.saturating_sub(self.before)
        });
        self.used = self.used.max(now);
    }
}
