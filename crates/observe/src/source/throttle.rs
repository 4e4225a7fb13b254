//! `SourceThrottle` decides in each epoch whether a profiling method (accessed bits or trace samples) is off, by TMP's rule for saving cost
//! (section IV): it is off while its counter, such as cache misses, counts at most a fifth of the most that an epoch has counted. A method
//! without a counter is never off.

use std::path::Path;

use isotherm_model::source_kind::ProfilingMethod;
use isotherm_sys::perf::PerfCounter;

use crate::counters::{CounterChoice, CounterEvent, CounterKind, Counting, choose};

/// A method and its counter.
#[derive(Debug)]
pub(crate) struct SourceThrottle {
    status: ThrottleStatus,
    counting: Option<Counting<PerfCounter>>,
    counter: CounterThrottle,
}

/// The state of a throttle, for the daemon's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThrottleStatus {
    /// The method.
    pub method: ProfilingMethod,
    /// The counter; None where nothing can be counted, and the method never rests.
    pub counter: Option<&'static str>,
    /// Why no better counter was chosen, and what would enable it; empty where this is the best.
    pub why: String,
    /// The method is off now.
    pub rests: bool,
}

impl SourceThrottle {
    /// Opens the best counter of the machine below this root.
    pub(crate) fn open(method: ProfilingMethod, root: &Path) -> Self {
        Self::by(method, choose(method, root, &CounterEvent::open))
    }

    fn by(method: ProfilingMethod, choice: CounterChoice<PerfCounter>) -> Self {
        let (kind, counting) = choice.counting.unzip();
        Self {
            status: ThrottleStatus {
                method,
                counter: kind.map(CounterKind::word),
                why: choice.why,
                rests: false,
            },
            counting,
            counter: CounterThrottle::default(),
        }
    }

    /// Counts for one program and its child processes, where the event of the method can be opened for them; else as [`Self::open`],
    /// whose counter other programs affect, too.
    pub(crate) fn of_program(method: ProfilingMethod, root: &Path, pid: u32) -> Self {
        let [own, ..] = CounterKind::for_method(method);
        let counter = own
            .processor_event()
            .map(|event| PerfCounter::open(event, pid));
        let Some(Ok(counter)) = counter else {
            return Self::open(method, root);
        };
        let choice = CounterChoice {
            counting: Some((own, Counting::Events(vec![(1, counter)]))),
            why: String::new(),
        };
        Self::by(method, choice)
    }

    /// Never rests: an event counts for one thread of a process that runs already, and for the threads that this one starts later.
    pub(crate) fn never(method: ProfilingMethod) -> Self {
        let why = "no counter counts all threads of a process that runs already".to_owned();
        let counting = None;
        Self::by(method, CounterChoice { counting, why })
    }

    /// True where nothing can be counted.
    pub(crate) const fn never_rests(&self) -> bool {
        self.counting.is_none()
    }

    /// Ends an epoch: true where the count was low, and the method should be off. A counter that can
    /// no longer be read leaves it on.
    pub(crate) fn rests(&mut self) -> bool {
        let counting = self.counting.as_mut();
        let count = counting.and_then(|counting| counting.value().ok());
        self.status.rests = count.is_some_and(|count| !self.counter.is_open(count));
        self.status.rests
    }

    /// The current state.
    pub(crate) fn throttle(&self) -> ThrottleStatus {
        self.status.clone()
    }
}

/// Share of the maximum, in percent, at or below which a method rests.
const RESTS_AT_PERCENT: u128 = 20;

/// Decides from a counter whether a method is worth its cost now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CounterThrottle {
    last: u64,
    max: u64,
    started: bool,
}

impl CounterThrottle {
    /// True where the method should be on, given the counter's cumulative value now. The first
    /// value only marks the start.
    fn is_open(&mut self, counter: u64) -> bool {
        let events = counter.saturating_sub(self.last);
        self.last = counter;
        if !std::mem::replace(&mut self.started, true) {
            return true;
        }
        self.max = self.max.max(events);
        // At most a fifth, also when both are zero; but a counter that never moved is no method.
        self.max == 0 || u128::from(events) * 100 > u128::from(self.max) * RESTS_AT_PERCENT
    }
}

#[cfg(test)]
mod tests {
    use super::{CounterThrottle, SourceThrottle};
    use isotherm_model::source_kind::ProfilingMethod;

    #[test]
    fn samples_throttle_while_memory_moves_at_most_a_fifth_of_the_most_bytes() {
        let root = tempfile::tempdir().unwrap();
        let mounted = root.path().join("sys/fs/resctrl");
        let cache = mounted.join("mon_data/mon_L3_00");
        std::fs::create_dir_all(mounted.join("info")).unwrap();
        std::fs::create_dir_all(&cache).unwrap();
        let write = |bytes: u64| {
            std::fs::write(cache.join("mbm_total_bytes"), format!("{bytes}\n")).unwrap();
        };
        write(5_000);
        let mut rest = SourceThrottle::open(ProfilingMethod::TraceSamples, root.path());
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

    #[test]
    fn a_method_rests_while_its_counter_is_at_most_a_fifth_of_the_maximum() {
        let mut counter = CounterThrottle::default();
        assert!(counter.is_open(1_000), "the start");
        assert!(counter.is_open(2_000), "1000 events, the maximum");
        assert!(!counter.is_open(2_200), "200 events, just a fifth");
        assert!(counter.is_open(2_401), "201 events, just above");
        assert!(!counter.is_open(2_401), "none");
        let mut still = CounterThrottle::default();
        assert!(
            still.is_open(0) && still.is_open(0),
            "a counter that never moves decides nothing"
        );
    }
}
