//! The counter that lets a kind of source rest, read once an epoch.

use std::path::Path;

use isotherm_model::watch::Evidence;
use isotherm_sys::perf::Counter;

use crate::counters::{Choice, Counted, choose};
use crate::gate::Gate;

/// What a kind of source rests by.
#[derive(Debug)]
pub(super) struct Rest {
    evidence: Evidence,
    choice: Choice<Counter>,
    gate: Gate,
    rests: bool,
}

/// What a kind of source rests by, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resting {
    /// Which kind.
    pub evidence: Evidence,
    /// What is counted; None where nothing can be, and the source never rests.
    pub counter: Option<&'static str>,
    /// Why nothing better is counted, and what would bring it; empty where this is the best.
    pub why: String,
    /// The source rests now.
    pub rests: bool,
}

impl Rest {
    /// By the best counter of the machine below this root.
    pub(super) fn open(evidence: Evidence, root: &Path) -> Self {
        Self {
            evidence,
            choice: choose(evidence, root, &Counted::open),
            gate: Gate::default(),
            rests: false,
        }
    }

    /// True where nothing can be counted.
    pub(super) const fn never_rests(&self) -> bool {
        self.choice.counting.is_none()
    }

    /// Ends an epoch: the source rests in what follows where little was counted. A counter that
    /// cannot be read any more lets nothing rest.
    pub(super) fn count(&mut self) {
        let counting = self.choice.counting.as_mut();
        let count = counting.and_then(|(_, counting)| counting.value().ok());
        self.rests = count.is_some_and(|count| !self.gate.is_open(count));
    }

    /// As it is now.
    pub(super) fn resting(&self) -> Resting {
        let counter = self.choice.counting.as_ref();
        Resting {
            evidence: self.evidence,
            counter: counter.map(|(kind, _)| kind.name()),
            why: self.choice.why.clone(),
            rests: self.rests,
        }
    }
}
