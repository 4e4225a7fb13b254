//! The counter that throttles a kind of source, which the watcher reads once an epoch.

use std::path::Path;

use isotherm_model::watch::SourceKind;
use isotherm_sys::perf::PerfCounter;

use crate::counter_throttle::CounterThrottle;
use crate::counters::{CounterChoice, CounterEvent, choose};

/// A kind of source and its counter.
#[derive(Debug)]
pub(super) struct SourceThrottle {
    evidence: SourceKind,
    choice: CounterChoice<PerfCounter>,
    gate: CounterThrottle,
    rests: bool,
}

/// The state of a throttle, for the daemon's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThrottleStatus {
    /// The kind of source.
    pub evidence: SourceKind,
    /// The counter; None where nothing can be counted, and the source never rests.
    pub counter: Option<&'static str>,
    /// Why no better counter was chosen, and what would enable it; empty where this is the best.
    pub why: String,
    /// The source is off now.
    pub rests: bool,
}

impl SourceThrottle {
    /// Opens the best counter of the machine below this root.
    pub(super) fn open(evidence: SourceKind, root: &Path) -> Self {
        Self {
            evidence,
            choice: choose(evidence, root, &CounterEvent::open),
            gate: CounterThrottle::default(),
            rests: false,
        }
    }

    /// True where nothing can be counted.
    pub(super) const fn never_rests(&self) -> bool {
        self.choice.counting.is_none()
    }

    /// Ends an epoch: true where the count was low, and the source should be off. A counter that can
    /// no longer be read leaves the source on.
    pub(super) fn rests(&mut self) -> bool {
        let counting = self.choice.counting.as_mut();
        let count = counting.and_then(|(_, counting)| counting.value().ok());
        self.rests = count.is_some_and(|count| !self.gate.is_open(count));
        self.rests
    }

    /// The current state.
    pub(super) fn throttle(&self) -> ThrottleStatus {
        let counter = self.choice.counting.as_ref();
        ThrottleStatus {
            evidence: self.evidence,
            counter: counter.map(|(kind, _)| kind.name()),
            why: self.choice.why.clone(),
            rests: self.rests,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SourceThrottle;
    use isotherm_model::watch::SourceKind;

    #[test]
    fn samples_rest_while_memory_moves_at_most_a_fifth_of_the_most_bytes() {
        let root = tempfile::tempdir().unwrap();
        let mounted = root.path().join("sys/fs/resctrl");
        let cache = mounted.join("mon_data/mon_L3_00");
        std::fs::create_dir_all(mounted.join("info")).unwrap();
        std::fs::create_dir_all(&cache).unwrap();
        let write = |bytes: u64| {
            std::fs::write(cache.join("mbm_total_bytes"), format!("{bytes}\n")).unwrap();
        };
        write(5_000);
        let mut rest = SourceThrottle::open(SourceKind::TraceSamples, root.path());
        let by = rest.throttle().counter;
        if by != Some("resctrl bandwidth") {
            return isotherm_skip::skip!("this machine counts {by:?}, and no file stands for that");
        }
        assert!(rest.throttle().why.contains("no cache misses"));
        let mut rests = |bytes: u64| {
            write(bytes);
            rest.rests()
        };
        assert!(!rests(5_000), "the start");
        assert!(!rests(6_000), "1,000 bytes, the most");
        assert!(rests(6_200), "a fifth of it");
        assert!(!rests(6_401), "just above");
        std::fs::remove_dir_all(&mounted).unwrap();
        assert!(!rest.rests(), "what cannot be read lets nothing rest");
        assert!(!rest.throttle().rests && !rest.never_rests());
    }
}
