//! [`Tiers`] lists the memory of a machine, fastest first: each [`Tier`] is one or more nodes of the same speed, or one half of the
//! emulated pair, with its capacity, speed and kernel policy. The list gives bandwidths, latencies under load, and how much slower the
//! slowest tier is.
//!
//! *Node* is the kernel's word for a NUMA node, *tier* is our word. Index 0 is always the fastest tier.

use crate::emulation::Emulation;
use crate::loaded_latency::{LoadPoint, LoadedLatency};
use crate::shared_bandwidth::{BytesPerSecond, SharedBandwidth};
use crate::units::{Bytes, Nanos};

/// Index into a list of tiers; 0 is the fastest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TierIndex(pub u32);

impl TierIndex {
    /// The fastest tier.
    pub const FASTEST: Self = Self(0);
}

crate::variant_words! {
    /// Memory policy of the kernel for a tier's memory.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Placement {
        /// `MPOL_PREFERRED` (or `MPOL_PREFERRED_MANY` for several nodes): spills when full.
        #[default]
        Preferred = "preferred",
        /// `MPOL_BIND`: fails when full.
        Bind = "bind",
    }
}

/// The memory of a tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TierKind {
    /// NUMA nodes, by number.
    Nodes(Vec<u32>),
    /// The fast half of the emulated pair.
    EmulatedFast,
    /// The slow half of the emulated pair, with its costs.
    EmulatedSlow(Emulation),
}

/// One kind of memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Tier {
    /// Short name: `fast`, `slow`, `cxl`, ...
    pub name: String,
    /// Its memory.
    pub kind: TierKind,
    /// Bytes that may be used.
    pub capacity: Bytes,
    /// Memory policy for it.
    pub placement: Placement,
    /// Load latency, where the firmware or a measurement reports it.
    pub latency: Option<Nanos>,
    /// Read bandwidth in bytes a second, where the firmware or a measurement reports it.
    pub read_bandwidth: Option<u64>,
    /// Write bandwidth in bytes a second, where the firmware or a measurement reports it.
    pub write_bandwidth: Option<u64>,
    /// Latencies under load, where they were measured; else empty.
    pub loaded: Vec<LoadPoint>,
    /// The reason for its position in the order.
    pub reason: String,
}

impl Tier {
    /// A tier whose size is known but not its speed.
    #[must_use]
    pub fn unmeasured(name: &str, kind: TierKind, capacity: Bytes, reason: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            capacity,
            placement: Placement::Preferred,
            latency: None,
            read_bandwidth: None,
            write_bandwidth: None,
            loaded: Vec::new(),
            reason: reason.to_owned(),
        }
    }

    /// The emulation of the slow half of the emulated pair; `None` for any other tier.
    #[must_use]
    pub const fn emulation(&self) -> Option<Emulation> {
        match self.kind {
            TierKind::EmulatedSlow(emulation) => Some(emulation),
            TierKind::EmulatedFast | TierKind::Nodes(_) => None,
        }
    }

    /// Latency of a load while the memory is idle: of the emulated pair by its costs, of others as reported.
    #[must_use]
    pub const fn idle_latency(&self) -> Option<Nanos> {
        match self.kind {
            TierKind::Nodes(_) => self.latency,
            TierKind::EmulatedFast => Some(ORDINARY_LATENCY),
            TierKind::EmulatedSlow(emulation) => Some(emulation.access(ORDINARY_LATENCY)),
        }
    }

    /// The memory nodes of the tier; none for the emulated pair.
    #[must_use]
    pub fn nodes(&self) -> &[u32] {
        match &self.kind {
            TierKind::Nodes(nodes) => nodes,
            TierKind::EmulatedFast | TierKind::EmulatedSlow(_) => &[],
        }
    }

    /// True for both halves of the emulated pair.
    #[must_use]
    pub const fn is_emulated(&self) -> bool {
        matches!(
            self.kind,
            TierKind::EmulatedFast | TierKind::EmulatedSlow(_)
        )
    }
}

/// Latency of ordinary memory, which the fast half of the emulated pair is.
pub const ORDINARY_LATENCY: Nanos = Nanos(100);

/// All tiers of a machine, fastest first, at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Tiers(Vec<Tier>);

/// Why a list of tiers was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TiersError {
    /// The list is empty.
    #[error("there is no tier; name at least one")]
    Empty,
    /// Two tiers have this name.
    #[error("two tiers are named \"{0}\"; names must differ")]
    SameName(String),
    /// Two tiers hold this node.
    #[error("node {0} is in two tiers; a node has one tier")]
    SameNode(u32),
    /// Emulated tiers must be one fast and one slow tier, and no other.
    #[error("the emulated pair is one fast and one slow tier with no others beside them")]
    BrokenPair,
}

/// How much longer accesses take in the slowest tier than in the fastest: 1 and more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowFactors {
    /// Factor for an access that waits for the latency.
    pub latency: f64,
    /// Factor for an access in a stream.
    pub bandwidth: f64,
}

impl Tiers {
    /// Checks and wraps a list, fastest first.
    ///
    /// # Errors
    /// An empty list, a name or a node given twice, half of an emulated pair.
    pub fn new(tiers: Vec<Tier>) -> Result<Self, TiersError> {
        if tiers.is_empty() {
            return Err(TiersError::Empty);
        }
        let mut names = std::collections::BTreeSet::new();
        let mut nodes = std::collections::BTreeSet::new();
        for tier in &tiers {
            if !names.insert(tier.name.as_str()) {
                return Err(TiersError::SameName(tier.name.clone()));
            }
            if let TierKind::Nodes(list) = &tier.kind
                && let Some(node) = list.iter().find(|node| !nodes.insert(**node))
            {
                return Err(TiersError::SameNode(*node));
            }
        }
        let kinds: Vec<&TierKind> = tiers.iter().map(|tier| &tier.kind).collect();
        let is_pair = matches!(
            kinds.as_slice(),
            [TierKind::EmulatedFast, TierKind::EmulatedSlow(_)]
        );
        if !is_pair && tiers.iter().any(Tier::is_emulated) {
            return Err(TiersError::BrokenPair);
        }
        Ok(Self(tiers))
    }

    /// The built-in emulated pair: `fast` bytes of fast memory, the rest slow.
    #[must_use]
    pub fn emulated(fast: Bytes, slow: Bytes, emulation: Emulation) -> Self {
        Self(vec![
            Tier::unmeasured(
                "fast",
                TierKind::EmulatedFast,
                fast,
                "emulated: ordinary memory, bounded",
            ),
            Tier::unmeasured(
                "slow",
                TierKind::EmulatedSlow(emulation),
                slow,
                "emulated: ordinary memory, slowed",
            ),
        ])
    }

    /// The tiers, fastest first.
    #[must_use]
    pub fn all(&self) -> &[Tier] {
        &self.0
    }

    /// The same tiers with another capacity of the fastest.
    #[must_use]
    pub fn with_fast_capacity(&self, capacity: Bytes) -> Self {
        let mut tiers = self.0.clone();
        if let Some(fastest) = tiers.first_mut() {
            fastest.capacity = capacity;
        }
        Self(tiers)
    }

    /// The tier with this index.
    #[must_use]
    pub fn get(&self, index: TierIndex) -> Option<&Tier> {
        self.0.get(index.0 as usize)
    }

    /// The tier with this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<TierIndex> {
        self.0
            .iter()
            .position(|tier| tier.name == name)
            .map(|i| TierIndex(i as u32))
    }

    /// The slowest tier, which takes all data that no plan names.
    #[must_use]
    pub fn slowest(&self) -> TierIndex {
        TierIndex((self.0.len() - 1) as u32)
    }

    /// How many times as long an access takes in the slowest tier as in the fastest: where it waits for the latency, and in a stream. If no
    /// bandwidth is known, a stream has the factor of the latency. `None` where no latency is known, and for TMP's page trap, whose cost
    /// does not depend on the number of accesses.
    #[must_use]
    pub fn slow_factors(&self) -> Option<SlowFactors> {
        let (fast, slow) = (self.0.first()?, self.0.last()?);
        let ratio = |more: u64, less: u64| (less > 0).then(|| (more as f64 / less as f64).max(1.0));
        match &slow.kind {
            TierKind::EmulatedSlow(Emulation::Time(costs)) => Some(SlowFactors {
                latency: costs.latency.get(),
                bandwidth: costs.bandwidth.get(),
            }),
            TierKind::Nodes(_) => {
                let latency = ratio(slow.latency?.0, fast.latency?.0)?;
                let bandwidths = fast.read_bandwidth.zip(slow.read_bandwidth);
                Some(SlowFactors {
                    latency,
                    bandwidth: bandwidths
                        .and_then(|(fast, slow)| ratio(fast, slow))
                        .unwrap_or(latency),
                })
            }
            _ => None,
        }
    }

    /// Most bytes a second that a tier serves: for nodes by a measurement or the firmware, for the emulated pair by its limits. `None`
    /// where it is not known or not limited.
    #[must_use]
    pub fn bandwidth(&self, index: TierIndex) -> Option<u64> {
        let tier = self.get(index)?;
        let limit = |of: fn(&SharedBandwidth) -> Option<BytesPerSecond>| {
            self.shared().and_then(of).map(BytesPerSecond::get)
        };
        match tier.kind {
            TierKind::Nodes(_) => tier.read_bandwidth.filter(|bandwidth| *bandwidth > 0),
            TierKind::EmulatedFast => limit(SharedBandwidth::fast),
            TierKind::EmulatedSlow(_) => limit(SharedBandwidth::slow),
        }
    }

    /// Measured latency of a tier by its load; without a measurement, the latency of idle memory up to the known bandwidth. `None` where
    /// latency or bandwidth is not known.
    #[must_use]
    pub fn loaded_latency(&self, index: TierIndex) -> Option<LoadedLatency> {
        let tier = self.get(index)?;
        if !tier.loaded.is_empty() {
            return LoadedLatency::through(tier.loaded.clone());
        }
        LoadedLatency::through(vec![LoadPoint {
            bandwidth: self.bandwidth(index)?,
            latency: tier.idle_latency()?,
        }])
    }

    /// Latency by load of the fastest and the slowest tier, where the bandwidth of both is known or limited.
    #[must_use]
    pub fn loaded_latencies(&self) -> Option<[LoadedLatency; 2]> {
        let of = |tier| {
            self.bandwidth(tier)?;
            self.loaded_latency(tier)
        };
        Some([of(TierIndex::FASTEST)?, of(self.slowest())?])
    }

    /// The emulation of the slow tier; `None` on real nodes.
    #[must_use]
    pub fn emulation(&self) -> Option<Emulation> {
        self.0.iter().find_map(Tier::emulation)
    }

    /// The limits of the emulated pair, where it is emulated by time.
    fn shared(&self) -> Option<&SharedBandwidth> {
        self.0.iter().find_map(|tier| match &tier.kind {
            TierKind::EmulatedSlow(Emulation::Time(costs)) => costs.shared.as_ref(),
            _ => None,
        })
    }

    /// True where any tier is emulated; every output then reports it.
    #[must_use]
    pub fn emulates(&self) -> bool {
        self.0.iter().any(Tier::is_emulated)
    }
}

#[cfg(test)]
mod tests {
    use super::{LoadPoint, Tier, TierIndex, TierKind, Tiers, TiersError};
    use crate::emulation::{Emulation, TimeCosts};
    use crate::shared_bandwidth::SharedBandwidth;
    use crate::units::{Bytes, Nanos};

    #[test]
    fn the_latency_of_a_tier_is_that_of_idle_memory_up_to_its_bandwidth() {
        let limit = |text: &str| text.parse().ok();
        let shared = SharedBandwidth::new(limit("10GiB/s"), None, None);
        let costs = TimeCosts {
            shared,
            ..TimeCosts::CXL
        };
        let pair = Tiers::emulated(Bytes(1), Bytes(2), Emulation::Time(costs));
        let fast = pair.loaded_latency(TierIndex::FASTEST).expect("a limit");
        assert_eq!((fast.at(9 << 30), fast.at(20 << 30)), (100.0, 200.0));
        assert_eq!(pair.bandwidth(TierIndex(1)), None, "no limit");
        assert_eq!(pair.loaded_latency(TierIndex(1)), None);

        let node = Tier {
            kind: TierKind::Nodes(vec![0]),
            latency: Some(Nanos(90)),
            read_bandwidth: Some(1_000),
            ..pair.all()[0].clone()
        };
        let nodes = Tiers::new(vec![node.clone()]).expect("a tier");
        let latency = nodes.loaded_latency(TierIndex::FASTEST);
        assert_eq!(latency.map(|it| it.at(500)), Some(90.0));
        let point = |bandwidth, nanos| LoadPoint {
            bandwidth,
            latency: Nanos(nanos),
        };
        let measured = Tier {
            loaded: vec![point(500, 100), point(1_000, 180)],
            ..node.clone()
        };
        let nodes = Tiers::new(vec![measured]).expect("a tier");
        let latency = nodes.loaded_latency(TierIndex::FASTEST);
        assert_eq!(latency.map(|it| it.at(750)), Some(140.0));
        let unknown = Tier {
            latency: None,
            ..node
        };
        let nodes = Tiers::new(vec![unknown]).expect("a tier");
        assert_eq!(nodes.loaded_latency(TierIndex::FASTEST), None);
    }

    #[test]
    fn another_capacity_of_the_fastest_tier_is_the_only_difference() {
        let pair = |fast| Tiers::emulated(Bytes(fast), Bytes(9), Emulation::TMP);
        assert_eq!(pair(4).with_fast_capacity(Bytes(7)), pair(7));
    }

    #[test]
    fn half_a_pair_a_twin_name_and_a_shared_node_are_refused() {
        let pair = Tiers::emulated(Bytes(1), Bytes(2), Emulation::TMP);
        let fast = pair.all()[0].clone();
        let node = |name: &str, node| Tier {
            name: name.into(),
            kind: TierKind::Nodes(vec![node]),
            ..fast.clone()
        };
        assert_eq!(Tiers::new(vec![]), Err(TiersError::Empty));
        assert_eq!(Tiers::new(vec![fast.clone()]), Err(TiersError::BrokenPair));
        assert_eq!(
            Tiers::new(vec![node("a", 0), node("a", 1)]),
            Err(TiersError::SameName("a".into()))
        );
        assert_eq!(
            Tiers::new(vec![node("a", 3), node("b", 3)]),
            Err(TiersError::SameNode(3))
        );
        assert!(Tiers::new(pair.all().to_vec()).is_ok());
    }
}
