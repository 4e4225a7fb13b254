//! [`simulate()`] replays a workload's epochs at every requested capacity under all requested policies, the bounds (first come first
//! allocated and the oracle) and, with memory devices, the interleaved baseline; [`replay`] does so for one policy and capacity alone.

use isotherm_model::units::{Capacity, Nanos};

use crate::machine::Traffic;
use crate::monitor::{MonitorSource, Watch};
use crate::report::{AtCapacity, PolicyResult, SimulationReport};
use crate::request::{SimulateError, SimulationRequest};
use crate::rule::Rule;
use crate::run::{EpochTurn, Ranks, Run};
use crate::workload::Workload;

/// Name of the baseline whose pages are interleaved over all devices.
const INTERLEAVED: &str = "interleaved";

/// Replays the workload under every requested policy and both bounds, at every capacity. The same
/// request gives the same report, byte for byte.
///
/// # Errors
/// No capacity; an unknown policy or a wrong parameter, or a site policy for a workload without sites; a source that
/// needs a trace.
pub fn simulate(request: &SimulationRequest<'_>) -> Result<SimulationReport, SimulateError> {
    if request.capacities.is_empty() {
        return Err(SimulateError::NoCapacity);
    }
    if request.monitor.source != MonitorSource::Exact && !request.workload.is_trace() {
        return Err(SimulateError::NeedsTrace(request.monitor.source));
    }
    let capacities = request
        .capacities
        .iter()
        .map(|capacity| at_capacity(request, *capacity))
        .collect::<Result<Vec<_>, _>>()?;
    let workload = request.workload;
    let (all_fast, all_slow) = bounds_of_time(request);
    Ok(SimulationReport {
        page: workload.page(),
        footprint: workload.footprint(),
        epochs: workload.epochs(),
        accesses: workload.accesses(),
        left_out: workload.left_out(),
        source: request.monitor.source,
        all_fast,
        all_slow,
        capacities,
    })
}

/// Replays the workload under one policy at one capacity, without the bounds.
///
/// # Errors
/// As [`simulate`].
pub fn replay(
    request: &SimulationRequest<'_>,
    policy: &str,
    capacity: Capacity,
) -> Result<PolicyResult, SimulateError> {
    let mut run = fresh(request, policy, capacity, false)?;
    run_all(request, &mut [&mut run]);
    Ok(run.result(request))
}

fn at_capacity(
    request: &SimulationRequest<'_>,
    capacity: Capacity,
) -> Result<AtCapacity, SimulateError> {
    let mut first_touch = fresh(request, "first-come-first-allocated", capacity, true)?;
    let mut oracle = fresh(request, "oracle", capacity, true)?;
    let mut policies = request
        .policies
        .iter()
        .map(|name| fresh(request, name, capacity, false))
        .collect::<Result<Vec<_>, _>>()?;
    let mut interleaved = interleaved(request, capacity);
    let mut runs = vec![&mut first_touch, &mut oracle];
    runs.extend(&mut policies);
    runs.extend(&mut interleaved);
    run_all(request, &mut runs);
    Ok(AtCapacity {
        fast: capacity.of(request.workload.footprint().0),
        pages: pages_of(request.workload, capacity),
        first_touch: first_touch.result(request),
        oracle: oracle.result(request),
        interleaved: interleaved.map(|run| run.result(request)),
        policies: policies
            .into_iter()
            .map(|run| run.result(request))
            .collect(),
    })
}

/// A run before its first epoch; `exact` if it gets exact counts regardless of the source.
fn fresh(
    request: &SimulationRequest<'_>,
    name: &str,
    capacity: Capacity,
    exact: bool,
) -> Result<Run, SimulateError> {
    let pages = pages_of(request.workload, capacity);
    let rule = Rule::new(request, name, pages)?;
    let size = request.workload.pages() as usize;
    let policy = isotherm_policy::policy_from_text(name).ok();
    let adds_devices = policy.is_some_and(|policy| policy.adds_devices());
    let capacity = rule.capacity(pages, adds_devices);
    Ok(Run::new(name, rule, exact, size, capacity))
}

/// The baseline of a power model with devices: every page in turn on the next device of either tier. `None` for a model without
/// devices, and where their number is not given: then the tiers' sizes say nothing about those of the devices.
fn interleaved(request: &SimulationRequest<'_>, capacity: Capacity) -> Option<Run> {
    let pages = pages_of(request.workload, capacity);
    let (fast, slow) = request.tiers_of(pages);
    let device = Some(request.device()?);
    let fast = request.energy.devices(fast, device)?;
    let all = fast.saturating_add(request.energy.devices(slow, device)?);
    let rule = Rule::Interleaved(fast, all.max(1));
    let size = request.workload.pages() as usize;
    Some(Run::new(INTERLEAVED, rule, true, size, pages))
}

/// Whole pages of a capacity.
fn pages_of(workload: &Workload, capacity: Capacity) -> u32 {
    let pages = capacity.of(workload.footprint().0).0 / workload.page().0;
    u32::try_from(pages).unwrap_or(u32::MAX)
}

/// Runs every policy through every epoch, on the same counts.
fn run_all(request: &SimulationRequest<'_>, runs: &mut [&mut Run]) {
    let workload = request.workload;
    let size = workload.pages() as usize;
    let mut counts = vec![0; size * 2];
    let mut exact = Pair::new(size);
    let mut seen = Pair::new(size);
    let mut watch =
        (request.monitor.source != MonitorSource::Exact).then(|| Watch::new(request.monitor, size));
    for epoch in 0..workload.epochs() {
        let all = workload.tally(epoch, &mut counts);
        for (rank, count) in exact.turn().iter_mut().zip(counts.chunks_exact(2)) {
            *rank = count[0].saturating_add(count[1]);
        }
        if let Some(watch) = &mut watch {
            watch.rank(workload.accessed(epoch), seen.turn());
        }
        let exact = exact.ranks(1);
        let turn = EpochTurn {
            counts: &counts,
            all,
            new: workload.new_pages(epoch),
            exact,
            seen: match watch {
                Some(_) => seen.ranks(request.monitor.hit()),
                None => exact,
            },
        };
        for run in runs.iter_mut() {
            run.step(&turn, request);
        }
    }
}

/// Ranks of the epoch that ended and of the one that begins.
struct Pair {
    previous: Vec<u64>,
    next: Vec<u64>,
}

impl Pair {
    fn new(pages: usize) -> Self {
        Self {
            previous: vec![0; pages],
            next: vec![0; pages],
        }
    }

    /// The next epoch becomes the previous one; returns the list for the next one, to be written.
    fn turn(&mut self) -> &mut [u64] {
        std::mem::swap(&mut self.previous, &mut self.next);
        &mut self.next
    }

    fn ranks(&self, hit: u64) -> Ranks<'_> {
        Ranks {
            previous: &self.previous,
            next: &self.next,
            hit,
        }
    }
}

/// Modelled time with all data in the fast tier, and with all data in the slow one.
fn bounds_of_time(request: &SimulationRequest<'_>) -> (Nanos, Nanos) {
    let none = Traffic::default();
    let scale = request.accesses_per_count.max(1);
    let mut counts = vec![0; request.workload.pages() as usize * 2];
    let (mut all_fast, mut all_slow) = (Nanos::ZERO, Nanos::ZERO);
    for epoch in 0..request.workload.epochs() {
        let all = request.workload.tally(epoch, &mut counts);
        let all = all.scaled(scale);
        all_fast += request.machine.time(all, none, 0);
        all_slow += request.machine.time(none, all, 0);
    }
    (all_fast, all_slow)
}
