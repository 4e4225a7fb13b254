//! [`Machine`] models how long the accesses and the moved pages of an epoch take, on a fast and a slow tier; fast memory may be a cache of
//! the slow one. A machine is a preset, such as [`Machine::CXL`], or made from the known properties of real or emulated tiers
//! ([`Machine::of_tiers`]).
//!
//! The time of an epoch is the longest of three: its accesses one after the other at their latency, divided by the number in flight at
//! once; and for either tier its traffic at its bandwidth. Moved pages are added, because the program waits for them.

use isotherm_model::tier::{ORDINARY_LATENCY, Tier, TierIndex, TierKind, Tiers, TiersError};
use isotherm_model::units::{Bytes, Nanos};
use isotherm_policy::epoch::MoveCosts;

/// Bytes that one access transfers from memory: a cache line.
pub const LINE: Bytes = Bytes(64);

/// Size of the page whose time is [`Machine::move_page`].
const PAGE: Bytes = Bytes(4096);

/// One kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelledTier {
    /// Latency of a load that reaches it.
    pub read: Nanos,
    /// Latency of a store that reaches it.
    pub write: Nanos,
    /// Bytes a second that can be read; 0 for no limit.
    pub read_bandwidth: u64,
    /// Bytes a second that can be written; 0 for no limit.
    pub write_bandwidth: u64,
}

/// A fast and a slow tier, and the costs between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The fast tier; a simulation varies its capacity.
    pub fast: ModelledTier,
    /// The slow tier, large enough for all data.
    pub slow: ModelledTier,
    /// Time to move one page of 4 KiB, in either direction; larger pages take proportionally
    /// longer.
    pub move_page: Nanos,
    /// Accesses in flight at once, at least 1: the overlap by the processors.
    pub overlap: u64,
}

/// Accesses of one epoch to one tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
}

impl Traffic {
    pub(crate) const fn all(self) -> u64 {
        self.reads.saturating_add(self.writes)
    }

    /// The traffic multiplied by `scale`.
    pub(crate) const fn scaled(self, scale: u64) -> Self {
        Self {
            reads: self.reads.saturating_mul(scale),
            writes: self.writes.saturating_mul(scale),
        }
    }
}

/// Accesses of one epoch to fast memory that is a cache of slow memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheTraffic {
    /// Accesses that fast memory served.
    pub(crate) hits: Traffic,
    /// Accesses that slow memory served.
    pub(crate) misses: u64,
    /// Lines written to fast memory by misses, after a look there.
    pub(crate) filled: u64,
    /// Lines written back to slow memory.
    pub(crate) written_back: u64,
}

impl CacheTraffic {
    pub(crate) fn add(&mut self, other: Self) {
        for (sum, more) in [
            (&mut self.hits.reads, other.hits.reads),
            (&mut self.hits.writes, other.hits.writes),
            (&mut self.misses, other.misses),
            (&mut self.filled, other.filled),
            (&mut self.written_back, other.written_back),
        ] {
            *sum = sum.saturating_add(more);
        }
    }

    pub(crate) const fn scaled(self, scale: u64) -> Self {
        Self {
            hits: self.hits.scaled(scale),
            misses: self.misses.saturating_mul(scale),
            filled: self.filled.saturating_mul(scale),
            written_back: self.written_back.saturating_mul(scale),
        }
    }

    /// All lines that fast and slow memory transfer.
    pub(crate) const fn lines(self) -> (Traffic, Traffic) {
        let fast = Traffic {
            reads: self.hits.reads.saturating_add(self.filled),
            writes: self.hits.writes.saturating_add(self.filled),
        };
        let slow = Traffic {
            reads: self.misses,
            writes: self.written_back,
        };
        (fast, slow)
    }
}

impl Machine {
    /// DRAM beside CXL memory: round numbers of the published range. A page is 4 KiB, copied at 2
    /// GB/s.
    pub const CXL: Self = Self {
        fast: ModelledTier::symmetric(ORDINARY_LATENCY, 100_000_000_000),
        slow: ModelledTier::symmetric(Nanos(250), 25_000_000_000),
        move_page: Nanos(2_000),
        overlap: 1,
    };

    /// DRAM beside non-volatile memory: round numbers of the published range, stores slower than
    /// loads.
    pub const NVM: Self = Self {
        slow: ModelledTier {
            read: Nanos(350),
            write: Nanos(500),
            read_bandwidth: 30_000_000_000,
            write_bandwidth: 10_000_000_000,
        },
        ..Self::CXL
    };

    /// HBM beside DRAM: the same latency, four times the bandwidth. 512 lines in flight at 100 ns are 328 GB/s, beyond what DRAM transfers.
    pub const HBM: Self = Self {
        fast: ModelledTier::symmetric(ORDINARY_LATENCY, 400_000_000_000),
        slow: ModelledTier::symmetric(ORDINARY_LATENCY, 100_000_000_000),
        move_page: Nanos(2_000),
        overlap: 512,
    };

    /// One DIMM for hot data beside three for cold data, each on a channel of its own: bandwidths of Cross-Layer's table 1, and
    /// its 12 threads with one access in flight each, which one DIMM sustains.
    pub const DIMMS: Self = Self {
        fast: ModelledTier::symmetric(ORDINARY_LATENCY, 11_700_000_000),
        slow: ModelledTier::symmetric(ORDINARY_LATENCY, 32_100_000_000),
        move_page: Nanos(4_000),
        overlap: 12,
    };

    /// The presets by name.
    pub const PRESETS: [(&'static str, Self); 4] = [
        ("cxl", Self::CXL),
        ("nvm", Self::NVM),
        ("hbm", Self::HBM),
        ("dimms", Self::DIMMS),
    ];

    /// The preset with this name.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        Self::PRESETS
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, machine)| *machine)
    }

    /// The fastest and the slowest tier of a real or emulated machine, from their known properties.
    /// If none are reported, the fastest is ordinary DRAM, the slowest has the latency of CXL
    /// memory, and bandwidth is unlimited.
    #[must_use]
    pub fn of_tiers(tiers: &Tiers) -> Self {
        let (fast, slow) = (&tiers.all()[0], &tiers.all()[tiers.all().len() - 1]);
        let emulation = slow.emulation();
        let mut machine = Self {
            fast: known(fast, Self::CXL.fast.read),
            slow: known(slow, Self::CXL.slow.read),
            move_page: emulation.map_or(Self::CXL.move_page, |it| it.migrate()),
            overlap: 1,
        };
        if tiers.emulates() {
            machine.fast.limit(tiers.bandwidth(TierIndex::FASTEST));
            machine.slow.limit(tiers.bandwidth(tiers.slowest()));
        }
        machine
    }

    /// Its tiers as a policy sees them: the fast one with `fast` bytes, the slow one with `all`.
    pub(crate) fn tiers(&self, fast: Bytes, all: Bytes) -> Result<Tiers, TiersError> {
        let tier = |number: u32, name: &str, modelled: ModelledTier, capacity| Tier {
            latency: Some(modelled.read),
            read_bandwidth: Some(modelled.read_bandwidth),
            write_bandwidth: Some(modelled.write_bandwidth),
            ..Tier::unmeasured(name, TierKind::Nodes(vec![number]), capacity, "")
        };
        let fast = tier(0, "fast", self.fast, fast);
        Tiers::new(vec![fast, tier(1, "slow", self.slow, all)])
    }

    /// Time of these accesses in fast memory if its bandwidth had no limit: the time in which a program asks for them.
    pub(crate) fn time_without_limit(&self, fast: Traffic) -> Nanos {
        let overlap = u128::from(self.overlap.max(1));
        Nanos(u64::try_from(self.fast.waiting(fast) / overlap).unwrap_or(u64::MAX))
    }

    /// The same machine with pages of this size, such as the chunks of a profile.
    pub(crate) fn with_pages_of(self, page: Bytes) -> Self {
        let factor = page.0.div_ceil(PAGE.0).max(1);
        Self {
            move_page: Nanos(self.move_page.0.saturating_mul(factor)),
            ..self
        }
    }

    /// The input of a policy that weighs moves, if a counted access represents `accesses`.
    #[must_use]
    pub fn move_costs(&self, accesses: u64) -> MoveCosts {
        let saved = self.slow.read.saturating_sub(self.fast.read).0 / self.overlap.max(1);
        MoveCosts {
            saved: Nanos(saved.saturating_mul(accesses)),
            moved_page: self.move_page,
        }
    }

    /// Time of an epoch, moved pages included. In 128 bits: a count times a latency fits.
    pub(crate) fn time(&self, fast: Traffic, slow: Traffic, moved_pages: u64) -> Nanos {
        let waiting =
            (self.fast.waiting(fast) + self.slow.waiting(slow)) / u128::from(self.overlap.max(1));
        let busiest = self.fast.transfer(fast).max(self.slow.transfer(slow));
        let moves = u128::from(moved_pages) * u128::from(self.move_page.0);
        let total = waiting.max(busiest).saturating_add(moves);
        Nanos(u64::try_from(total).unwrap_or(u64::MAX))
    }

    /// Time of an epoch with fast memory as a cache. A miss waits for a look into fast memory and then for slow memory; lines are written
    /// to either memory without a wait.
    pub(crate) fn time_with_cache(&self, cache: CacheTraffic) -> Nanos {
        let (fast, slow) = cache.lines();
        let waited_fast = Traffic {
            writes: cache.hits.writes,
            ..fast
        };
        let waited_slow = Traffic { writes: 0, ..slow };
        let waiting = (self.fast.waiting(waited_fast) + self.slow.waiting(waited_slow))
            / u128::from(self.overlap.max(1));
        let busiest = self.fast.transfer(fast).max(self.slow.transfer(slow));
        Nanos(u64::try_from(waiting.max(busiest)).unwrap_or(u64::MAX))
    }
}

/// A tier from the properties reported by its firmware, a measurement or its emulation.
fn known(tier: &Tier, latency: Nanos) -> ModelledTier {
    let latency = tier.idle_latency().unwrap_or(latency);
    ModelledTier {
        read: latency,
        write: latency,
        read_bandwidth: tier.read_bandwidth.unwrap_or(0),
        write_bandwidth: tier.write_bandwidth.unwrap_or(0),
    }
}

impl ModelledTier {
    /// Memory that reads and writes at one latency and bandwidth.
    const fn symmetric(latency: Nanos, bandwidth: u64) -> Self {
        Self {
            read: latency,
            write: latency,
            read_bandwidth: bandwidth,
            write_bandwidth: bandwidth,
        }
    }

    /// Limits the bandwidth in both directions, where there is a limit.
    fn limit(&mut self, bandwidth: Option<u64>) {
        let bandwidth = bandwidth.unwrap_or(0);
        (self.read_bandwidth, self.write_bandwidth) = (bandwidth, bandwidth);
    }

    /// Nanoseconds of all accesses one after the other.
    fn waiting(&self, traffic: Traffic) -> u128 {
        u128::from(traffic.reads) * u128::from(self.read.0)
            + u128::from(traffic.writes) * u128::from(self.write.0)
    }

    /// Nanoseconds to transfer their lines at full bandwidth.
    fn transfer(&self, traffic: Traffic) -> u128 {
        let time = |accesses: u64, bandwidth: u64| {
            let bytes = u128::from(accesses) * u128::from(LINE.0);
            (bytes * 1_000_000_000)
                .checked_div(u128::from(bandwidth))
                .unwrap_or(0)
        };
        time(traffic.reads, self.read_bandwidth) + time(traffic.writes, self.write_bandwidth)
    }
}

#[cfg(test)]
mod tests {
    use super::{CacheTraffic, Machine, Traffic};
    use isotherm_model::emulation::{Emulation, TimeCosts};
    use isotherm_model::shared_bandwidth::{BytesPerSecond, SharedBandwidth};
    use isotherm_model::tier::Tiers;
    use isotherm_model::units::{Bytes, Nanos};

    const NONE: Traffic = Traffic {
        reads: 0,
        writes: 0,
    };

    fn traffic(reads: u64, writes: u64) -> Traffic {
        Traffic { reads, writes }
    }

    #[test]
    fn an_epoch_takes_its_latencies_and_its_moves() {
        let machine = Machine::NVM;
        assert_eq!(machine.time(traffic(3, 1), NONE, 0), Nanos(400));
        assert_eq!(machine.time(NONE, traffic(3, 1), 2), Nanos(1_550 + 4_000));
    }

    #[test]
    fn where_bandwidth_runs_out_it_and_not_latency_is_the_time() {
        let machine = Machine {
            overlap: 1_000_000,
            ..Machine::CXL
        };
        // 25 million lines of 64 bytes at 25 GB/s take 64 ms, regardless of the number in flight.
        assert_eq!(
            machine.time(NONE, traffic(25_000_000, 0), 0),
            Nanos(64_000_000)
        );
        assert_eq!(
            machine.time(traffic(25_000_000, 0), NONE, 0),
            Nanos(16_000_000)
        );
    }

    #[test]
    fn a_miss_of_the_cache_waits_for_both_memories_and_loads_them() {
        let cache = CacheTraffic {
            hits: traffic(3, 1),
            misses: 2,
            filled: 2,
            written_back: 1,
        };
        // CXL: 4 hits and 2 looks of 100 ns, 2 misses of 250 ns.
        assert_eq!(Machine::CXL.time_with_cache(cache), Nanos(600 + 500));
        assert_eq!(cache.lines(), (traffic(5, 3), traffic(2, 1)));
        let wide = Machine {
            overlap: 1_000_000,
            ..Machine::CXL
        };
        // 25 million misses and as many lines written back, at 25 GB/s.
        let busy = CacheTraffic {
            hits: NONE,
            ..cache.scaled(25_000_000)
        };
        assert_eq!(wide.time_with_cache(busy), Nanos(3 * 64_000_000));
    }

    #[test]
    fn a_larger_page_takes_as_much_longer_to_move() {
        let chunks = Machine::CXL.with_pages_of(Bytes(64 << 10));
        assert_eq!(chunks.time(NONE, NONE, 3), Nanos(3 * 16 * 2_000));
        assert_eq!(chunks.move_costs(1).moved_page, Nanos(32_000));
        assert_eq!(Machine::CXL.with_pages_of(Bytes(4096)), Machine::CXL);
    }

    #[test]
    fn huge_counts_saturate() {
        let all = traffic(u64::MAX, u64::MAX);
        assert_eq!(Machine::CXL.time(all, all, u64::MAX), Nanos(u64::MAX));
    }

    #[test]
    fn the_emulated_pair_has_the_bandwidths_of_its_limits() {
        let limit = |gib: u64| BytesPerSecond::new(gib << 30);
        let costs = TimeCosts {
            shared: SharedBandwidth::new(limit(10), limit(5), None),
            ..TimeCosts::CXL
        };
        let tiers = Tiers::emulated(Bytes(1), Bytes(2), Emulation::Time(costs));
        let machine = Machine::of_tiers(&tiers);
        let bandwidths = [machine.fast.read_bandwidth, machine.slow.write_bandwidth];
        assert_eq!(bandwidths, [10 << 30, 5 << 30]);
    }

    #[test]
    fn the_emulated_pair_has_the_costs_of_its_emulation() {
        let tiers = Tiers::emulated(Bytes(1), Bytes(2), Emulation::TMP);
        let machine = Machine::of_tiers(&tiers);
        assert_eq!(
            (machine.fast.read, machine.slow.read),
            (Nanos(100), Nanos(10_100))
        );
        assert_eq!(machine.move_page, Nanos(50_000));
        assert_eq!(machine.move_costs(3).saved, Nanos(30_000));
    }
}
