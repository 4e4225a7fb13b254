//! [`Run`] replays one policy at one capacity, epoch by epoch, and adds up its hits, modelled time and energy, and moves.

use std::ops::Range;

use isotherm_model::page::{EpochView, PageIndex};
use isotherm_model::tier::TierIndex;
use isotherm_model::units::{Bytes, Nanos, portion};

use crate::energy::{DataLayout, Picojoules, TierActivity, TierEnergy};
use crate::machine::{CacheTraffic, Traffic};
use crate::report::PolicyResult;
use crate::request::SimulationRequest;
use crate::residency::{Moves, Residency};
use crate::rule::Rule;

/// The data of one epoch for all runs. Lists are by page; counts alternate reads and writes.
pub(crate) struct EpochTurn<'a> {
    pub(crate) counts: &'a [u64],
    pub(crate) all: Traffic,
    pub(crate) new: Range<u32>,
    pub(crate) exact: Ranks<'a>,
    pub(crate) seen: Ranks<'a>,
}

/// Ranks of two epochs.
#[derive(Clone, Copy)]
pub(crate) struct Ranks<'a> {
    pub(crate) previous: &'a [u64],
    pub(crate) next: &'a [u64],
    /// Rank that one hit adds.
    pub(crate) hit: u64,
}

/// A policy, its state and its results so far.
pub(crate) struct Run {
    name: String,
    rule: Rule,
    /// True for ranks by exact counts, regardless of the source.
    exact: bool,
    residency: Residency,
    wanted: Vec<PageIndex>,
    hits: u64,
    time: Nanos,
    energy: Picojoules,
    moved_pages: u64,
}

impl Run {
    pub(crate) fn new(name: &str, rule: Rule, exact: bool, pages: usize, capacity: u32) -> Self {
        Self {
            name: name.to_owned(),
            rule,
            exact,
            residency: Residency::new(pages, capacity),
            wanted: Vec::new(),
            hits: 0,
            time: Nanos::ZERO,
            energy: Picojoules::default(),
            moved_pages: 0,
        }
    }

    /// Decides, moves, admits new pages, and accounts for the accesses of the epoch.
    pub(crate) fn step(&mut self, turn: &EpochTurn<'_>, request: &SimulationRequest<'_>) {
        if let Rule::Cached(cache) = &mut self.rule {
            let served = cache.serve(turn.counts, &turn.new);
            return self.account_cache(served, request);
        }
        let moves = self.place(turn);
        self.moved_pages += moves.promoted + moves.demoted;
        let fast = self.fast_traffic(turn);
        self.hits = self
            .hits
            .saturating_add(fast.reads)
            .saturating_add(fast.writes);
        let slow = Traffic {
            reads: turn.all.reads.saturating_sub(fast.reads),
            writes: turn.all.writes.saturating_sub(fast.writes),
        };
        self.account(fast, slow, moves, request);
    }

    /// The accesses of the epoch that the fast tier serves.
    fn fast_traffic(&self, turn: &EpochTurn<'_>) -> Traffic {
        if let Rule::Interleaved(devices, all) = self.rule {
            let share = |count: u64| portion(count, devices, all);
            return Traffic {
                reads: share(turn.all.reads),
                writes: share(turn.all.writes),
            };
        }
        let mut fast = Traffic::default();
        for page in self.residency.pages() {
            let at = page.at() * 2;
            fast.reads = fast.reads.saturating_add(turn.counts[at]);
            fast.writes = fast.writes.saturating_add(turn.counts[at + 1]);
        }
        fast
    }

    /// Bytes of the fast tier that hold data.
    fn fast_bytes(&self, request: &SimulationRequest<'_>, pages: usize) -> Bytes {
        match self.rule {
            Rule::Interleaved(devices, all) => {
                Bytes(portion(request.workload.bytes().0, devices, all))
            }
            Rule::Epoch(_) | Rule::Planned(_) | Rule::Cached(_) => {
                Bytes((pages as u64).saturating_mul(request.workload.page().0))
            }
        }
    }

    fn place(&mut self, turn: &EpochTurn<'_>) -> Moves {
        let ranks = if self.exact { turn.exact } else { turn.seen };
        let mut moves = Moves::default();
        if let Rule::Epoch(policy) = &mut self.rule {
            let view = EpochView {
                previous_ranks: ranks.previous,
                next_ranks: Some(ranks.next),
                fast: self.residency.marks(),
                capacity: self.residency.capacity(),
                hit: ranks.hit,
                loads: None,
            };
            policy.decide(&view, &mut self.wanted);
            moves = self.residency.adopt(&self.wanted, turn.new.start);
        }
        let may_enter = |page| self.rule.admits(page);
        self.residency.allocate(turn.new.clone(), may_enter);
        moves
    }

    fn account(
        &mut self,
        fast: Traffic,
        slow: Traffic,
        moves: Moves,
        request: &SimulationRequest<'_>,
    ) {
        let scale = request.accesses_per_count.max(1);
        let (fast, slow) = (fast.scaled(scale), slow.scaled(scale));
        let moved = moves.promoted + moves.demoted;
        let span = request.machine().time(fast, slow, moved);
        self.charge(span, (fast, slow), moves, request);
    }

    /// Accounts for an epoch in which fast memory is a cache.
    fn account_cache(&mut self, served: CacheTraffic, request: &SimulationRequest<'_>) {
        self.hits = self.hits.saturating_add(served.hits.all());
        let served = served.scaled(request.accesses_per_count.max(1));
        let span = request.machine().time_with_cache(served);
        self.charge(span, served.lines(), Moves::default(), request);
    }

    /// Pages of fast memory that hold data.
    fn fast_pages(&self) -> usize {
        match &self.rule {
            Rule::Cached(cache) => cache.used(),
            _ => self.residency.pages().len(),
        }
    }

    /// Adds the time of an epoch and the energy of its accesses, which are not scaled any more.
    fn charge(
        &mut self,
        span: Nanos,
        (fast, slow): (Traffic, Traffic),
        moves: Moves,
        request: &SimulationRequest<'_>,
    ) {
        let page = request.workload.page().0;
        let bytes = |pages: u64| Bytes(pages.saturating_mul(page));
        let used = self.fast_bytes(request, self.fast_pages());
        let layout = DataLayout {
            device: request.device(),
            is_interleaved: matches!(self.rule, Rule::Interleaved(..)),
        };
        let activity = |tier, traffic: Traffic, capacity, used, moved_in, moved_out| TierActivity {
            tier: TierIndex(tier),
            capacity,
            used,
            span,
            reads: traffic.reads,
            writes: traffic.writes,
            moved_out: bytes(moved_out),
            moved_in: bytes(moved_in),
            layout,
        };
        let (capacity, others) = request.tiers_of(self.residency.capacity());
        let (up, down) = (moves.promoted, moves.demoted);
        let fast = activity(0, fast, capacity, used, up, down);
        let rest = request.workload.bytes().saturating_sub(used);
        let slow = activity(1, slow, others, rest, down, up);
        let mut waited = Nanos::ZERO;
        for tier in [fast, slow] {
            let TierEnergy {
                energy,
                waited: here,
            } = request.energy.energy(&tier);
            self.energy += energy;
            waited += here;
        }
        self.time += span;
        // Wake-ups of accesses in flight at once overlap as the accesses do.
        self.time += Nanos(waited.0 / request.machine.overlap.max(1));
    }

    /// The result of the run.
    pub(crate) fn result(self, request: &SimulationRequest<'_>) -> PolicyResult {
        let page = request.workload.page().0;
        let most = self.residency.most().max(self.fast_pages());
        let fast_used = self.fast_bytes(request, most);
        PolicyResult {
            policy: self.name,
            accesses: request.workload.accesses(),
            hits: self.hits,
            time: self.time,
            energy: self.energy,
            moved: Bytes(self.moved_pages.saturating_mul(page)),
            fast_used,
        }
    }
}
