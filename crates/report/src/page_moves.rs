//! [`PageMoves`] reports a run by an epoch policy, as JSON and in one sentence: the moves of pages, the accesses that fast memory served,
//! the delay by the emulation, and what an oracle (accesses of a recorded run) or a balancing policy (loads of the tiers) decided by.

use isotherm_model::units::{Bytes, Nanos};
use serde::Serialize;

use crate::words::{counted, grouped, percent, share};

/// The sums of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageMoves {
    /// The policy's name.
    pub policy: String,
    /// True if no page really moved.
    pub dry_run: bool,
    /// Bytes of a unit.
    pub unit_bytes: u64,
    /// Epochs in which the policy decided.
    pub epochs: u64,
    /// Units that were to move to the fast tier.
    pub units_promoted: u64,
    /// Units that were to leave it.
    pub units_demoted: u64,
    /// Units that waited, because requests for others did.
    pub units_waiting: u64,
    /// Pages of 4 KiB that the runtime moved to the fast tier.
    pub pages_promoted: u64,
    /// Pages of 4 KiB that it moved out of it.
    pub pages_demoted: u64,
    /// Most bytes of the program's memory at the end of an epoch.
    pub resident_bytes: u64,
    /// Bytes of that memory in the fast tier, in that epoch.
    pub fast_bytes: u64,
    /// Bytes that the fast tier has room for.
    pub capacity_bytes: u64,
    /// Sampled accesses to memory with a tier.
    pub accesses: u64,
    /// Accesses of these to memory that was fast at the end of its epoch.
    pub accesses_fast: u64,
    /// Time by which the emulation slowed the program's threads, in nanoseconds.
    pub delay_ns: u64,
    /// The future that the oracle decided by; absent for other policies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub future: Option<FutureFound>,
    /// The loads that a balancing policy decided by last; absent for other policies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loads: Option<LastLoads>,
}

/// The loads of both tiers in the last epoch with accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LastLoads {
    /// Latency of fast memory under its load, in nanoseconds.
    pub fast_latency_ns: u64,
    /// Latency of slow memory under its load, in nanoseconds.
    pub slow_latency_ns: u64,
    /// Bytes a second that the program asked of both together.
    pub demand_bytes_per_second: u64,
}

impl LastLoads {
    fn in_words(self) -> String {
        format!(
            "; at the end {} ns under load in fast memory and {} ns in slow memory",
            grouped(self.fast_latency_ns),
            grouped(self.slow_latency_ns)
        )
    }
}

/// The future of a run by the oracle: accesses of a recorded run, in the epochs of this one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FutureFound {
    /// The profile of the recorded run.
    pub profile: String,
    /// Recorded accesses, in 1,024ths.
    pub recorded: u64,
    /// Recorded accesses whose data this run has, at the same place of its site; also in 1,024ths.
    pub found: u64,
}

impl FutureFound {
    fn in_words(&self) -> String {
        match self.recorded {
            0 => format!("; {} has no access for these epochs", self.profile),
            all => format!(
                "; {} of the future accesses that {} has for these epochs are to data of this run",
                percent(share(self.found, all)),
                self.profile
            ),
        }
    }
}

impl PageMoves {
    /// A sentence on the moves, the fast memory and their cost.
    #[must_use]
    pub fn in_words(&self) -> String {
        let unit = Bytes(self.unit_bytes);
        let fast = counted(self.units_promoted, "unit");
        let slow = grouped(self.units_demoted);
        let moved = match self.dry_run {
            true => "would have moved",
            false => "moved",
        };
        let waiting = match self.units_waiting {
            0 => String::new(),
            waiting => format!(" ({waiting} waited)"),
        };
        let served = match self.accesses {
            0 => "no access was sampled".to_owned(),
            all => format!(
                "fast memory served {} of {}",
                percent(share(self.accesses_fast, all)),
                counted(all, "sampled access")
            ),
        };
        let future = self.future.as_ref();
        let future = future.map_or_else(String::new, FutureFound::in_words);
        let loads = self.loads.map_or_else(String::new, LastLoads::in_words);
        format!(
            "{fast} of {unit} {moved} to fast memory and {slow} to slow memory in {}{waiting}; {} of {} fast (at most {}); \
             {served}; slowed by {} in all threads{future}{loads}",
            counted(self.epochs, "epoch"),
            Bytes(self.fast_bytes),
            Bytes(self.resident_bytes),
            Bytes(self.capacity_bytes),
            Nanos(self.delay_ns),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{FutureFound, LastLoads, PageMoves};

    #[test]
    fn the_sentence_says_what_moved_what_is_fast_and_what_it_cost() {
        let moves = PageMoves {
            unit_bytes: 2 << 20,
            epochs: 9,
            units_promoted: 1,
            units_demoted: 3,
            resident_bytes: 64 << 20,
            fast_bytes: 4 << 20,
            capacity_bytes: 8 << 20,
            accesses: 1000,
            accesses_fast: 250,
            delay_ns: 1_500_000_000,
            ..PageMoves::default()
        };
        assert_eq!(
            moves.in_words(),
            "1 unit of 2 MiB moved to fast memory and 3 to slow memory in 9 epochs; 4 MiB of 64 MiB fast (at most 8 MiB); \
             fast memory served 25 % of 1,000 sampled accesses; slowed by 1.50 s in all threads"
        );
        let future = |recorded, found| PageMoves {
            future: Some(FutureFound {
                profile: "app.iso".to_owned(),
                recorded,
                found,
            }),
            ..moves.clone()
        };
        let said = future(2048, 1024).in_words();
        let words = "threads; 50 % of the future accesses that app.iso has for these epochs are to data of this run";
        assert!(said.ends_with(words), "{said}");
        let said = future(0, 0).in_words();
        assert!(
            said.ends_with("app.iso has no access for these epochs"),
            "{said}"
        );
        let balanced = PageMoves {
            loads: Some(LastLoads {
                fast_latency_ns: 1_234,
                slow_latency_ns: 230,
                demand_bytes_per_second: 1 << 30,
            }),
            ..moves.clone()
        };
        let said = balanced.in_words();
        let words =
            "threads; at the end 1,234 ns under load in fast memory and 230 ns in slow memory";
        assert!(said.ends_with(words), "{said}");
        let dry = PageMoves {
            dry_run: true,
            units_waiting: 2,
            ..PageMoves::default()
        };
        let said = dry.in_words();
        assert!(said.contains("would have moved to fast"), "{said}");
        assert!(said.contains("(2 waited)"), "{said}");
        assert!(said.contains("no access was sampled"), "{said}");
    }
}
