//! Attaches a [`LiveRun`] to a process that runs already, for `isotherm record --pid`, and reads the mappings and variables of its memory.

use std::collections::BTreeSet;

use isotherm_model::batch::Process;
use isotherm_model::source_kind::ProfilingMethod;
use isotherm_model::units::Nanos;

use super::{LiveConfig, LiveError, LiveRun, Program};
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
    ///
    /// # Errors
    /// It was called before, or [`Self::attach`] was.
    pub fn attach_running(&mut self, process: Process) -> Result<(), LiveError> {
        self.check_unattached()?;
        let LiveConfig {
            sources,
            root,
            events,
            cache,
            ..
        } = &self.config;
        let pid = process.pid;
        let settings = (*events, *cache);
        let samples = ProgramSamples::open_running(sources, root, settings, pid, &*self.clock);
        self.program = Some(Program {
            cpu: CpuTime::of_running(pid, root),
            worth: None,
            candidates: Candidates::new(&root.join("proc")),
            bits: Some(SourceThrottle::never(ProfilingMethod::AccessedBits)),
            hardware: None,
            samples,
        });
        self.regions = Some(Regions::new(&root.join("proc")));
        self.sessions.follow_only(process);
        self.since = self.clock.now();
        self.drain();
        Ok(())
    }

    /// The kernel's refusal of the last source of samples, where none could be opened and no source scans.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        let program = self.program.as_ref().filter(|_| self.scans.is_empty());
        program?.samples.refusal()
    }

    /// Reads what the processes have mapped, in a run of a process that ran already; returns the cost.
    pub(super) fn read_regions(&mut self) -> Nanos {
        let (Some(regions), Some(program)) = (&mut self.regions, &self.program) else {
            return Nanos::ZERO;
        };
        let begin = self.clock.busy();
        let processes = program.samples.processes();
        let image = |pid| self.sessions.image_at(processes, pid, u64::MAX);
        let living: BTreeSet<Process> = processes.pids().map(image).collect();
        regions.end_others(&living);
        for process in living {
            let stacks = program.samples.stacks_of(process.pid);
            regions.read(process, &self.sessions.ranges(process), &stacks);
        }
        let cost = self.clock.busy().saturating_sub(begin);
        regions.add_cost(cost);
        cost
    }
}
