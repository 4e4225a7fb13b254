//! [`EpochReport`] holds the results of an epoch of the unit step, in all and by process and control group, for people and for metrics.

use std::collections::BTreeMap;

use isotherm_model::batch::{Epoch, Process, SourceReport};
use isotherm_model::movement::RangeOutcome;
use isotherm_model::outcome::{Fate, Reason};
use isotherm_model::source_kind::ProfilingMethod;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::watch::{Observation, Placed, Unit};

use super::groups::{GroupLimit, entry_of};
use super::index::Index;
use super::rank::Ranks;

/// The results of one epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EpochReport {
    /// Number of the epoch.
    pub epoch: Epoch,
    /// Length of the epoch.
    pub span: Nanos,
    /// Bytes of the fast tier that watched processes may use.
    pub capacity: Bytes,
    /// Bytes that watched processes have resident.
    pub resident: Bytes,
    /// Resident bytes that are in the fast tier after the epoch's moves.
    pub fast: Bytes,
    /// Bytes that the policy wants in the fast tier.
    pub wanted: Bytes,
    /// Units that the policy wants in the fast tier.
    pub wanted_units: Vec<Unit>,
    /// Units that are watched.
    pub units: usize,
    /// Units that could not be moved and are in backoff.
    pub backoff: usize,
    /// Units of which little is hot, with their hot parts in the fast tier and the rest in the slow one.
    pub split_units: usize,
    /// Bytes that these units have in the fast tier.
    pub split_fast: Bytes,
    /// Hits of accessed bits and of trace samples that fell on a unit.
    pub hits: [u64; 2],
    /// The kind of hits that the next two fields count; `None` if there was no hit.
    pub seen_by: Option<ProfilingMethod>,
    /// Observed accesses: trace samples if there were any, else accessed bits. The latter count a
    /// page once per scan, regardless of its accesses.
    pub accesses: u64,
    /// Observed accesses to memory that was fast at that time.
    pub accesses_fast: u64,
    /// The outcome of the moves.
    pub moves: Sums,
    /// The share of each process, in the order of the observation.
    pub processes: Vec<ProcessShare>,
    /// The share of each control group with an entry, in the order of names.
    pub groups: Vec<GroupShare>,
    /// Reports of the sources, cumulative.
    pub sources: Vec<SourceReport>,
}

impl EpochReport {
    /// Share of the observed accesses that the fast tier served; `None` without accesses.
    #[must_use]
    pub fn hit_rate(&self) -> Option<f64> {
        (self.accesses > 0).then(|| self.accesses_fast as f64 / self.accesses as f64)
    }

    /// Interval that contains the share of all accesses in 95 of 100 epochs, if samples are random:
    /// Wilson's score interval. `None` if accessed bits were counted, which are not a sample of
    /// accesses.
    #[must_use]
    pub fn hit_interval(&self) -> Option<[f64; 2]> {
        const DEVIATIONS: f64 = 1.96;
        let share = self.hit_rate()?;
        if self.seen_by != Some(ProfilingMethod::TraceSamples) {
            return None;
        }
        let samples = self.accesses as f64;
        let square = DEVIATIONS * DEVIATIONS / samples;
        let middle = share + square / 2.0;
        let half = (square * (share * (1.0 - share) + square / 4.0)).sqrt();
        let whole = 1.0 + square;
        Some([(middle - half) / whole, (middle + half) / whole])
    }
}

/// One process in an epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessShare {
    /// The process.
    pub process: Process,
    /// Its program.
    pub name: String,
    /// Its control group.
    pub control_group: String,
    /// Why it cannot be observed well; empty if it can.
    pub warning: String,
    /// Bytes resident.
    pub resident: Bytes,
    /// Resident bytes that are in the fast tier after the epoch's moves.
    pub fast: Bytes,
    /// Bytes of the fast tier that the process keeps as a newcomer, as long as it has that much with heat; 0 for a process that is not new,
    /// obeys an entry, or is alone.
    pub fair_share: Bytes,
    /// Observed accesses, of the kind that the report counts.
    pub accesses: u64,
    /// Observed accesses to memory that was fast at that time.
    pub accesses_fast: u64,
}

/// The processes that obey one control group entry, in an epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupShare {
    /// The group's name in the settings.
    pub name: String,
    /// Its settings.
    pub limit: GroupLimit,
    /// Number of processes that obey it.
    pub processes: usize,
    /// Bytes that they have resident.
    pub resident: Bytes,
    /// Resident bytes that are in the fast tier after the epoch's moves.
    pub fast: Bytes,
    /// Observed accesses, of the kind that the report counts, before the priority.
    pub accesses: u64,
    /// Observed accesses to memory that was fast at that time.
    pub accesses_fast: u64,
}

/// Bytes of moves by outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Moved to the fast tier; in a dry run, bytes that would have been moved.
    pub promoted: Bytes,
    /// Moved out of the fast tier; in a dry run, bytes that would have been moved.
    pub demoted: Bytes,
    /// Already in the target tier.
    pub already_there: Bytes,
    /// Not moved, by the reason.
    pub not_moved: BTreeMap<String, Bytes>,
}

impl Sums {
    pub(crate) fn add(&mut self, outcome: &RangeOutcome, to_fast: bool, modelled: bool) {
        for part in &outcome.parts {
            match &part.fate {
                Fate::Moved | Fate::Requested => self.moved(part.bytes, to_fast),
                Fate::NotAttempted(Reason::DryRun) if modelled => self.moved(part.bytes, to_fast),
                Fate::AlreadyThere => self.already_there += part.bytes,
                Fate::NotAttempted(Reason::NotTouched) => {}
                Fate::Busy(why) | Fate::Denied(why) => self.stayed(why.to_string(), part.bytes),
                Fate::NotAttempted(why) => self.stayed(why.to_string(), part.bytes),
            }
        }
    }

    fn stayed(&mut self, why: String, bytes: Bytes) {
        *self.not_moved.entry(why).or_default() += bytes;
    }

    fn moved(&mut self, bytes: Bytes, to_fast: bool) {
        let sum = if to_fast {
            &mut self.promoted
        } else {
            &mut self.demoted
        };
        *sum += bytes;
    }

    /// Adds another epoch's.
    pub fn merge(&mut self, other: &Self) {
        self.promoted += other.promoted;
        self.demoted += other.demoted;
        self.already_there += other.already_there;
        for (why, bytes) in &other.not_moved {
            *self.not_moved.entry(why.clone()).or_default() += *bytes;
        }
    }
}

/// The report before any move. If `modelled`, no data really moves, so the machine's own placement is not the model's.
pub(super) fn begin(
    seen: &Observation,
    index: &Index,
    ranks: &Ranks,
    totals: [u64; 2],
    modelled: bool,
) -> EpochReport {
    let seen_by = seen_by(totals);
    let mut report = EpochReport {
        epoch: seen.epoch,
        span: seen.span,
        capacity: seen.capacity,
        units: index.living(),
        hits: totals,
        seen_by,
        sources: seen.sources.clone(),
        ..EpochReport::default()
    };
    let asked: u64 = seen.placed.values().map(|placed| placed.samples).sum();
    let by_samples = seen_by == Some(ProfilingMethod::TraceSamples);
    let shares = match by_samples && asked > 0 && !modelled {
        true => seen.placed.clone(),
        false => by_units(index, ranks, seen_by),
    };
    for placed in shares.values() {
        report.accesses = report.accesses.saturating_add(placed.samples);
        report.accesses_fast = report.accesses_fast.saturating_add(placed.fast);
    }
    let process = |watched: &isotherm_model::watch::Watched| {
        let placed = shares.get(&watched.process).copied().unwrap_or_default();
        ProcessShare {
            process: watched.process,
            name: watched.name.clone(),
            control_group: watched.control_group.clone(),
            warning: watched.warning.clone(),
            accesses: placed.samples,
            accesses_fast: placed.fast,
            ..ProcessShare::default()
        }
    };
    report.processes = seen.processes.iter().map(process).collect();
    report
}

/// The kind of hits that count as accesses: a sample is an access, an accessed bit only a page.
const fn seen_by(totals: [u64; 2]) -> Option<ProfilingMethod> {
    match totals {
        [0, 0] => None,
        [_, 0] => Some(ProfilingMethod::AccessedBits),
        _ => Some(ProfilingMethod::TraceSamples),
    }
}

/// Hits of one kind by process; the hits of each unit are divided by the part of it that was fast in the epoch.
fn by_units(
    index: &Index,
    ranks: &Ranks,
    kind: Option<ProfilingMethod>,
) -> BTreeMap<Process, Placed> {
    let mut shares: BTreeMap<Process, Placed> = BTreeMap::new();
    let Some(kind) = kind else { return shares };
    for (known, hits) in index.known().iter().zip(ranks.hits()) {
        let (Some(unit), hits) = (known.unit, hits[kind as usize]) else {
            continue;
        };
        let resident = u128::from(known.resident.max(1));
        // To the nearest; the product fits 128 bits.
        let fast = (u128::from(hits) * u128::from(known.fast) + resident / 2) / resident;
        let share = shares.entry(unit.process).or_default();
        share.samples = share.samples.saturating_add(hits);
        share.fast = share
            .fast
            .saturating_add(u64::try_from(fast).unwrap_or(hits).min(hits));
    }
    shares
}

/// Completes the report after all moves.
pub(super) fn end(report: &mut EpochReport, index: &Index, limits: &BTreeMap<String, GroupLimit>) {
    let mut held: BTreeMap<Process, (u64, u64)> = BTreeMap::new();
    for known in index.known() {
        let Some(unit) = known.unit else { continue };
        let sums = held.entry(unit.process).or_default();
        *sums = (
            sums.0.saturating_add(known.resident),
            sums.1.saturating_add(known.fast),
        );
        report.resident += Bytes(known.resident);
        report.fast += Bytes(known.fast);
    }
    for process in &mut report.processes {
        let (resident, fast) = held.get(&process.process).copied().unwrap_or_default();
        (process.resident, process.fast) = (Bytes(resident), Bytes(fast));
    }
    report.groups = by_group(&report.processes, limits);
}

/// The sums of each group's processes.
fn by_group(processes: &[ProcessShare], limits: &BTreeMap<String, GroupLimit>) -> Vec<GroupShare> {
    let group = |(name, limit): (&String, &GroupLimit)| GroupShare {
        name: name.clone(),
        limit: *limit,
        ..GroupShare::default()
    };
    let mut groups: Vec<GroupShare> = limits.iter().map(group).collect();
    for process in processes {
        let Some((number, _)) = entry_of(limits, &process.control_group) else {
            continue;
        };
        let group = &mut groups[number];
        group.processes += 1;
        group.resident += process.resident;
        group.fast += process.fast;
        group.accesses = group.accesses.saturating_add(process.accesses);
        group.accesses_fast = group.accesses_fast.saturating_add(process.accesses_fast);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::Sums;
    use isotherm_model::batch::Process;
    use isotherm_model::movement::{AddressRange, NodeId, RangeAction, RangeOutcome};
    use isotherm_model::outcome::{Fate, Reason};
    use isotherm_model::units::Bytes;

    #[test]
    fn only_a_dry_run_moves_without_moving_and_only_where_moves_are_modelled() {
        let sums = |modelled| {
            let range = AddressRange {
                start: 0,
                bytes: Bytes(14),
            };
            let mut outcome = RangeOutcome::begin(RangeAction {
                process: Process::default(),
                range,
                node: NodeId(0),
            });
            let in_words = Reason::from(Reason::DryRun.to_string());
            outcome.push(Bytes(2), Fate::NotAttempted(Reason::DryRun));
            outcome.push(Bytes(4), Fate::NotAttempted(Reason::NotTouched));
            outcome.push(Bytes(8), Fate::NotAttempted(in_words));
            let mut sums = Sums::default();
            sums.add(&outcome, true, modelled);
            let not_moved: Bytes = sums.not_moved.values().copied().sum();
            (sums.promoted, not_moved)
        };
        assert_eq!(sums(true), (Bytes(2), Bytes(8)));
        assert_eq!(sums(false), (Bytes(0), Bytes(10)));
    }
}
