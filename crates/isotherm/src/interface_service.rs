//! `InterfaceService` serves the requests that the processes of a run without a plan make by the functions of `include/isotherm.h`, and
//! leave in their session files: start and stop a profile (here the counts of that time in memory, no recording in a file), and move data
//! by it. Until the first request the run's own `Follower` (the part of the command that acts each epoch), which it wraps, decides.
//!
//! ```text
//! session file: a request ---> the epoch ends, so that every sample until now is there ---> start, stop, or choose and move ---> answer
//! ```
//!
//! From the first request on the run places data on request only, and samples between the start and the end of a profile.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use isotherm_abi::interface::{
    InterfaceAction, InterfaceObject, InterfacePolicy, InterfaceReason, InterfaceResult,
    InterfaceStatus, REASONS, SHARE_WHOLE_PPM,
};
use isotherm_model::batch::{ObservedAccess, Process};
use isotherm_model::port::Executor;
use isotherm_model::site::{Site, SiteId, SiteKind};
use isotherm_model::stay::{StayReason, StayedBytes};
use isotherm_model::units::{Bytes, Capacity};
use isotherm_observe::live::LiveRun;
use isotherm_pipeline::{AccessCounts, Attribution, ObjectOutcome, StepReport, at_highest_rate};
use isotherm_profile::Error;
use isotherm_report::optimizations::OptimizationSummary;
use isotherm_session::{InterfaceCommand, OpenFiles};

use crate::launch::Ready;
use crate::observed_run::{Attention, Follower, ObservedStep};
use crate::optimizer::{OptimizationLimits, Optimizer};
use crate::profile_rate::{self, EXPECTED};

/// Interval at which requests are read while a program uses the interface, and at the beginning of a run, which may begin with one.
const LOOK: Duration = Duration::from_millis(10);
const BEGINNING: Duration = Duration::from_secs(1);

/// Interval at which the record that a process is served is renewed.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// Most optimizations that are kept.
const KEPT: usize = 10_000;

/// Wraps the follower of a run without a plan, and serves its processes.
pub(crate) struct InterfaceService<'a, F> {
    /// What the run does until the first request.
    pub inner: F,
    /// Makes the moves that processes request.
    pub optimizer: Optimizer,
    /// The first optimizations at the program's request, in order.
    pub done: Vec<OptimizationSummary>,
    files: OpenFiles,
    /// The policy of the run, and its limit of fast memory.
    policy: &'a str,
    fast: Option<Capacity>,
    started: Instant,
    /// When each of these processes was last told that it is served.
    told: Option<(Instant, BTreeSet<Process>)>,
    waiting: Vec<(Process, InterfaceCommand)>,
    is_used: bool,
    profiling: BTreeSet<Process>,
    /// Samples a second of each thread, where the last profile's start named them.
    frequency: Option<u32>,
    counts: AccessCounts,
}

impl<'a, F> InterfaceService<'a, F> {
    /// The service for a program that is held before its start.
    pub(crate) fn new(
        inner: F,
        optimizer: Optimizer,
        ready: &Ready,
        (policy, fast): (&'a str, Option<Capacity>),
    ) -> Self {
        Self {
            inner,
            optimizer,
            done: Vec::new(),
            files: OpenFiles::new(ready.session.path().to_owned()),
            policy,
            fast,
            started: Instant::now(),
            told: None,
            waiting: Vec::new(),
            is_used: false,
            profiling: BTreeSet::new(),
            frequency: None,
            counts: AccessCounts::default(),
        }
    }

    /// Whether a process made a request.
    pub(crate) const fn is_used(&self) -> bool {
        self.is_used
    }

    /// Tells the living processes that they are no longer served.
    pub(crate) fn end(&mut self) {
        let told = self.told.take();
        for process in told.into_iter().flat_map(|(_, told)| told) {
            // The file of one that has ended may be gone.
            let _ = self.files.of(process).map(|file| file.serve_interface(0));
        }
    }

    /// Looks requests up, and tells processes that they are served.
    fn look(&mut self, observer: &mut LiveRun) {
        if self.started.elapsed() < BEGINNING {
            observer.discover();
        }
        let living: BTreeSet<Process> = observer.living().collect();
        let known = self.told.take();
        let known = known.filter(|(at, _)| at.elapsed() < HEARTBEAT);
        let (at, told) = known.unwrap_or_else(|| (Instant::now(), BTreeSet::new()));
        for process in &living {
            let Ok(file) = self.files.of(*process) else {
                continue;
            };
            if !told.contains(process) {
                // A file that cannot be written has no requests either.
                let _ = file.serve_interface(std::process::id());
            }
            if let Ok(Some(command)) = file.read_interface_request() {
                self.waiting.push((*process, command));
            }
        }
        self.files.retain(|process| living.contains(process));
        self.profiling.retain(|process| living.contains(process));
        self.told = Some((at, living));
    }

    /// Carries out one request.
    fn serve<E: Executor>(
        &mut self,
        process: Process,
        command: InterfaceCommand,
        step: &ObservedStep<E>,
    ) -> InterfaceResult {
        match (command.action, command.policy) {
            (Some(InterfaceAction::ProfileStart), _) => {
                self.counts.forget(process);
                self.profiling.insert(process);
                self.frequency = command.frequency;
                InterfaceResult::of_status(InterfaceStatus::Ok)
            }
            (Some(InterfaceAction::ProfileStop), _) => {
                self.profiling.remove(&process);
                InterfaceResult::of_status(InterfaceStatus::Ok)
            }
            (Some(InterfaceAction::Optimize), Some(policy)) => {
                self.optimize(process, (command, policy), step)
            }
            (None, _) | (_, None) => InterfaceResult::of_status(InterfaceStatus::Invalid),
        }
    }

    fn optimize<E: Executor>(
        &mut self,
        process: Process,
        (command, policy): (InterfaceCommand, InterfacePolicy),
        step: &ObservedStep<E>,
    ) -> InterfaceResult {
        let limits = OptimizationLimits {
            process: Some(process),
            fast: limit(&command).or(self.fast),
            policy: match policy {
                InterfacePolicy::Default => self.policy,
                InterfacePolicy::Atmem => "atmem",
                InterfacePolicy::Thermos => "thermos",
            },
        };
        let seen = (&step.observer, step.attribution());
        let Ok(done) = self.optimizer.optimize(seen, &self.counts, limits) else {
            return InterfaceResult::of_status(InterfaceStatus::Failed);
        };
        let answer = answer(&done.summary);
        if let Ok(file) = self.files.of(process) {
            let named = |site| name(step.attribution(), site);
            // The program may have ended, or memory may be full: then it reads no outcomes.
            let _ = file.write_outcomes(&outcomes(&done.objects, named, file.outcome_slots()));
        }
        if self.done.len() < KEPT {
            self.done.push(done.summary);
        }
        answer
    }
}

/// The limit that a request names, if it names one.
fn limit(command: &InterfaceCommand) -> Option<Capacity> {
    match (command.fast_bytes, command.share_ppm) {
        (0, 0) => None,
        (0, share) => Some(Capacity::Share(share as f64 / SHARE_WHOLE_PPM as f64)),
        (bytes, _) => Some(Capacity::Bytes(Bytes(bytes))),
    }
}

/// The answer to a request for moves; in a dry run nothing moved. The status is `NoSamples` only if nothing was selected, demoted or
/// failed: hints demote without samples, and where hot data has no room nothing is selected.
fn answer(done: &OptimizationSummary) -> InterfaceResult {
    let is_decided = done.lacks_room() || done.selected_bytes + done.demoted_bytes > 0;
    let status = match is_decided || done.failed_bytes > 0 {
        true => InterfaceStatus::Ok,
        false => InterfaceStatus::NoSamples,
    };
    let moved = |bytes: u64| if done.dry_run { 0 } else { bytes };
    InterfaceResult {
        promoted_bytes: moved(done.promoted_bytes),
        demoted_bytes: moved(done.demoted_bytes),
        placed_bytes: done.placed_bytes,
        failed_bytes: done.failed_bytes,
        selected_bytes: done.selected_bytes,
        samples: done.samples,
        selection_ns: done.selection_ns,
        migration_ns: done.migration_ns,
        capacity_bytes: done.capacity_bytes,
        stayed_bytes: by_interface_reason(&done.stayed_bytes),
        frequency: done.sampling_hz.map_or(0, u64::from),
        ..InterfaceResult::of_status(status)
    }
}

/// The outcomes of a process's data objects as its program reads them, by address. Beyond `at_most` those without a name and small ones are
/// left out.
fn outcomes(
    objects: &[ObjectOutcome],
    named: impl Fn(SiteId) -> String,
    at_most: usize,
) -> Vec<InterfaceObject> {
    let mut all: Vec<InterfaceObject> = objects
        .iter()
        .map(|object| InterfaceObject {
            address: object.range.start,
            bytes: object.range.bytes.0,
            samples: object.samples,
            resident_bytes: object.resident.0,
            fast_bytes: object.fast.0,
            selected_bytes: object.selected.0,
            placed_bytes: object.placed.0,
            promoted_bytes: object.promoted.0,
            demoted_bytes: object.demoted.0,
            stayed_bytes: by_interface_reason(&object.stayed),
            ..InterfaceObject::of_name(&named(object.site))
        })
        .collect();
    if all.len() > at_most {
        all.sort_by_key(|one| (one.name[0] == 0, std::cmp::Reverse(one.bytes)));
        all.truncate(at_most);
        all.sort_by_key(|one| one.address);
    }
    all
}

/// The program's name for the data of a site; empty where it gave none.
fn name(attribution: &Attribution, site: SiteId) -> String {
    let site = attribution.sites().get(&site);
    let named = site.filter(|site| site.kind == SiteKind::Named);
    named.map_or_else(String::new, Site::label)
}

/// Bytes by the reasons of the header.
fn by_interface_reason(stayed: &StayedBytes) -> [u64; REASONS] {
    let mut bytes = [0; REASONS];
    for reason in StayReason::ALL {
        bytes[interface_reason(reason) as usize] = stayed.of(reason).0;
    }
    bytes
}

/// A reason in the numbers of the header.
const fn interface_reason(reason: StayReason) -> InterfaceReason {
    match reason {
        StayReason::Capacity => InterfaceReason::Capacity,
        StayReason::NotHot => InterfaceReason::NotHot,
        StayReason::NotTouched => InterfaceReason::NotTouched,
        StayReason::NotMovable => InterfaceReason::NotMovable,
        StayReason::NoRoom => InterfaceReason::NoRoom,
        StayReason::InUse => InterfaceReason::InUse,
        StayReason::Shared => InterfaceReason::Shared,
        StayReason::Refused => InterfaceReason::Refused,
    }
}

impl<E: Executor, F: Follower<E>> Follower<E> for InterfaceService<'_, F> {
    fn attend(&mut self, step: &mut ObservedStep<E>) -> Attention {
        self.look(&mut step.observer);
        let inner = match self.is_used {
            true => Attention::default(),
            false => self.inner.attend(step),
        };
        let is_quick = self.is_used || self.started.elapsed() < BEGINNING;
        Attention {
            within: match is_quick {
                true => inner.within.min(LOOK),
                false => inner.within,
            },
            ends_epoch: inner.ends_epoch || !self.waiting.is_empty(),
        }
    }

    fn note(&mut self, report: &StepReport<Error>, step: &mut ObservedStep<E>) {
        if !self.is_used && self.waiting.is_empty() {
            return self.inner.note(report, step);
        }
        if !self.is_used {
            self.is_used = true;
            step.stop_deciding();
        }
        let profiled = report.batch.accesses.iter();
        let profiled = profiled.filter(|access| self.profiling.contains(&access.process));
        let profiled: Vec<ObservedAccess> = profiled.copied().collect();
        self.counts.add(&at_highest_rate(&profiled));
        for (process, command) in std::mem::take(&mut self.waiting) {
            let answer = self.serve(process, command, step);
            step.observer.switch_sampling(!self.profiling.is_empty());
            let is_profiling = self.profiling.contains(&process);
            if let Ok(file) = self.files.of(process) {
                // The program may have ended, or have given the request up.
                let _ = file.answer_interface_request(command.number, &answer, is_profiling);
            }
        }
        // After the answers, for which the program waits: the first choice of a rate measures the cost of a sample.
        if !self.profiling.is_empty() {
            match self.frequency {
                Some(frequency) => profile_rate::set(step, frequency),
                None => profile_rate::choose(step, &self.profiling, EXPECTED),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ObjectOutcome, SiteId, outcomes};
    use isotherm_model::movement::AddressRange;
    use isotherm_model::stay::{StayReason, StayedBytes};
    use isotherm_model::units::Bytes;

    #[test]
    fn of_too_many_objects_those_without_a_name_are_left_out_the_smallest_first() {
        let object = |site, start, bytes| ObjectOutcome {
            site: SiteId(site),
            range: AddressRange {
                start,
                bytes: Bytes(bytes),
            },
            samples: 0,
            resident: Bytes(0),
            fast: Bytes(0),
            selected: Bytes(0),
            placed: Bytes(0),
            promoted: Bytes(0),
            demoted: Bytes(0),
            stayed: StayedBytes::default(),
        };
        let mut objects = [(9, 10, 5), (7, 20, 1), (9, 30, 9), (9, 40, 7)]
            .map(|(site, start, bytes)| object(site, start, bytes));
        objects[1].stayed.add(StayReason::Shared, Bytes(3));
        let named = |site| match site {
            SiteId(7) => "small".to_owned(),
            _ => String::new(),
        };
        let starts = |at_most| -> Vec<u64> {
            let kept = outcomes(&objects, named, at_most);
            kept.iter().map(|one| one.address).collect()
        };
        assert_eq!(starts(4), [10, 20, 30, 40]);
        assert_eq!(starts(3), [20, 30, 40]);
        assert_eq!(starts(1), [20]);
        let kept = outcomes(&objects, named, 1);
        assert!(kept[0].name.starts_with(b"small\0"));
        assert_eq!(kept[0].stayed_bytes[6], 3);
    }
}
