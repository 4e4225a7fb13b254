//! Attaches a [`LiveRun`] to a process that runs already, for `isotherm record --pid`, and reads the mappings and variables of its memory.

use std::collections::BTreeSet;

use isotherm_model::batch::Process;
use isotherm_model::port::Clock;
use isotherm_model::source_kind::ProfilingMethod;
use isotherm_model::units::Nanos;

use super::{LiveConfig, LiveRun, Program};
use crate::clock::MachineClock;
use crate::cpu_time::CpuTime;
use crate::regions::Regions;
use crate::source::program_samples::ProgramSamples;
use crate::source::throttle::SourceThrottle;
use crate::watch::candidates::Candidates;

impl LiveRun {
    /// Attaches to all threads of a process that runs already, and observes it from now on, with the threads and processes that it starts. Its memory
    /// without an allocation site is known by its mappings and variables. With a session directory `process` is the image that it runs there.
    /// The report of each source that cannot be used gives the reason. Nothing of the process is stopped or changed, but for the accessed bits
    /// of its pages where a source of these is wanted.
    #[must_use]
    pub fn attach_running(config: LiveConfig, process: Process) -> Self {
        let pid = process.pid;
        let mut run = Self::open(config, |config| {
            let LiveConfig { sources, root, .. } = config;
            let settings = (config.events, config.cache);
            Program {
                cpu: CpuTime::of_running(pid, root),
                worth: None,
                candidates: Candidates::new(&root.join("proc")),
                bits: Some(SourceThrottle::never(ProfilingMethod::AccessedBits)),
                hardware: None,
                samples: ProgramSamples::open_running(sources, root, settings, pid, &MachineClock),
            }
        });
        run.regions = Some(Regions::new(&run.config.root.join("proc")));
        run.sessions.follow_only(process);
        run.drain();
        run
    }

    /// The kernel's refusal of the last source of samples, where none could be opened and no source scans.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        let samples = &self.program.samples;
        samples.refusal().filter(|_| self.scans.is_empty())
    }

    /// Reads what the processes have mapped, in a run of a process that ran already; returns the cost.
    pub(super) fn read_regions(&mut self) -> Nanos {
        let Some(regions) = &mut self.regions else {
            return Nanos::ZERO;
        };
        let begin = self.clock.busy();
        let processes = self.program.samples.processes();
        let image = |pid| self.sessions.image_at(processes, pid, u64::MAX);
        let living: BTreeSet<Process> = processes.pids().map(image).collect();
        regions.end_others(&living);
        for process in living {
            let stacks = self.program.samples.stacks_of(process.pid);
            regions.read(process, &self.sessions.ranges(process), &stacks);
        }
        let cost = self.clock.busy().saturating_sub(begin);
        regions.add_cost(cost);
        cost
    }
}
