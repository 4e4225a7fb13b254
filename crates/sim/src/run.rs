//! Replays one policy at one capacity, epoch by epoch.

use std::ops::Range;

use isotherm_model::page::{EpochView, PageIndex};
use isotherm_model::tier::TierIndex;
use isotherm_model::units::{Bytes, Nanos};

use crate::energy::{Picojoules, TierActivity};
use crate::machine::Traffic;
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
        let moves = self.place(turn);
        self.moved_pages += moves.promoted + moves.demoted;
        let mut fast = Traffic::default();
        for page in self.residency.pages() {
            let at = page.at() * 2;
            fast.reads = fast.reads.saturating_add(turn.counts[at]);
            fast.writes = fast.writes.saturating_add(turn.counts[at + 1]);
        }
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
        let scaled = |traffic: Traffic| Traffic {
            reads: traffic.reads.saturating_mul(scale),
            writes: traffic.writes.saturating_mul(scale),
        };
        let (fast, slow) = (scaled(fast), scaled(slow));
        let span = request
            .machine()
            .time(fast, slow, moves.promoted + moves.demoted);
        self.time += span;
        let page = request.workload.page().0;
        let bytes = |pages: u64| Bytes(pages.saturating_mul(page));
        let used = self.residency.pages().len() as u64;
        let all = request.workload.bytes();
        let activity = |tier, traffic: Traffic, capacity, used, moved_in, moved_out| TierActivity {
            tier: TierIndex(tier),
            capacity,
            used,
            span,
            reads: traffic.reads,
            writes: traffic.writes,
            moved_out: bytes(moved_out),
            moved_in: bytes(moved_in),
        };
        let capacity = bytes(u64::from(self.residency.capacity()));
        let (up, down) = (moves.promoted, moves.demoted);
        let fast = activity(0, fast, capacity, bytes(used), up, down);
        let others = all.saturating_sub(bytes(used));
        let slow = activity(1, slow, all, others, down, up);
        self.energy += request.energy.energy(&fast);
        self.energy += request.energy.energy(&slow);
    }

    /// The result of the run.
    pub(crate) fn result(self, request: &SimulationRequest<'_>) -> PolicyResult {
        let page = request.workload.page().0;
        PolicyResult {
            policy: self.name,
            accesses: request.workload.accesses(),
            hits: self.hits,
            time: self.time,
            energy: self.energy,
            moved: Bytes(self.moved_pages.saturating_mul(page)),
            fast_used: Bytes((self.residency.most() as u64).saturating_mul(page)),
        }
    }
}
