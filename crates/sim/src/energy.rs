//! Models the energy of memory: an [`EnergyModel`] computes it from the activity of a tier in an epoch, and [`ENERGY_MODELS`] lists those
//! that have a name. The simplest, by capacity, time and lines alone, are in this file ([`FlatPower`], [`PlainPower`]).
//!
//! [`FlatPower`] charges every tier its background power by capacity and time, and every line a
//! fixed energy. Its round numbers serve to compare placements; they are not of a real machine.
//! [`DramPower`] models the power states of DRAM ranks, [`LinkedPower`] ranks behind a link, and [`PairPower`] has a
//! model for the fast tier and one for all others.

mod dram;
mod linked;
mod pair;
mod port;

use isotherm_model::tier::TierIndex;

pub use dram::DramPower;
pub use linked::LinkedPower;
pub use pair::PairPower;
pub use port::{DataLayout, EnergyModel, Picojoules, TierActivity, TierEnergy};

/// The models by name.
pub const ENERGY_MODELS: [(&str, &dyn EnergyModel); 6] = [
    ("flat", &FlatPower::ROUND),
    ("ddr4", &DramPower::DDR4),
    ("ddr5", &DramPower::DDR5),
    ("lpddr4", &DramPower::LPDDR4),
    ("hbm2", &DramPower::HBM2),
    ("cxl", &LinkedPower::CXL),
];

/// Power of one tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatTier {
    /// Background power in milliwatts for each GiB of capacity.
    pub background_mw_per_gib: u64,
    /// Energy in picojoules to read a line of 64 bytes.
    pub read_pj: u64,
    /// Energy in picojoules to write a line of 64 bytes.
    pub write_pj: u64,
}

/// Background power of both tiers, and a fixed energy for each line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatPower {
    /// The fast tier.
    pub fast: FlatTier,
    /// The slow tier.
    pub slow: FlatTier,
}

impl FlatPower {
    /// DRAM at 20 pJ a bit and 100 mW a GiB, beside memory behind a link at 30 pJ a bit and 50 mW a
    /// GiB: round numbers.
    pub const ROUND: Self = Self {
        fast: FlatTier {
            background_mw_per_gib: 100,
            read_pj: 10_240,
            write_pj: 10_240,
        },
        slow: FlatTier {
            background_mw_per_gib: 50,
            read_pj: 15_360,
            write_pj: 15_360,
        },
    };
}

impl EnergyModel for FlatPower {
    fn words(&self) -> String {
        "round numbers for each GiB and line".to_owned()
    }

    fn energy(&self, activity: &TierActivity) -> TierEnergy {
        match activity.tier == TierIndex::FASTEST {
            true => self.fast.energy(activity),
            false => self.slow.energy(activity),
        }
    }
}

/// Memory of which only the background power by capacity and the energy of a line are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainPower {
    /// The kind of memory, and the origin of its figures.
    pub words: String,
    /// Its background power, and the energy of a line.
    pub tier: FlatTier,
}

impl EnergyModel for PlainPower {
    fn words(&self) -> String {
        self.words.clone()
    }

    fn energy(&self, activity: &TierActivity) -> TierEnergy {
        self.tier.energy(activity)
    }
}

impl FlatTier {
    /// A milliwatt is a picojoule a nanosecond. The background is rounded down to a picojoule.
    fn energy(&self, activity: &TierActivity) -> TierEnergy {
        let tier = self;
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        // The product of capacity, power and time exceeds 128 bits only beyond any possible
        // machine.
        let background = product(activity.capacity.0, activity.span.0)
            .saturating_mul(u128::from(tier.background_mw_per_gib))
            >> 30;
        let line = crate::machine::LINE.0;
        let operations = [
            product(activity.reads, tier.read_pj),
            product(activity.writes, tier.write_pj),
            product(activity.moved_out.0 / line, tier.read_pj),
            product(activity.moved_in.0 / line, tier.write_pj),
        ];
        let operations = operations.into_iter().fold(0_u128, u128::saturating_add);
        TierEnergy {
            energy: Picojoules(background.saturating_add(operations)),
            ..TierEnergy::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DataLayout, EnergyModel, FlatPower, Picojoules, TierActivity};
    use isotherm_model::tier::TierIndex;
    use isotherm_model::units::{Bytes, Nanos};

    const IDLE: TierActivity = TierActivity {
        tier: TierIndex(0),
        capacity: Bytes(1 << 30),
        used: Bytes(0),
        span: Nanos(1_000),
        reads: 0,
        writes: 0,
        moved_out: Bytes(0),
        moved_in: Bytes(0),
        layout: DataLayout::PACKED,
    };

    #[test]
    fn an_idle_tier_takes_its_background_power() {
        assert_eq!(FlatPower::ROUND.energy(&IDLE).energy, Picojoules(100_000));
        let slow = TierActivity {
            tier: TierIndex(1),
            ..IDLE
        };
        assert_eq!(FlatPower::ROUND.energy(&slow).energy, Picojoules(50_000));
    }

    #[test]
    fn a_moved_page_costs_its_lines() {
        let moved = TierActivity {
            moved_in: Bytes(4096),
            reads: 1,
            ..IDLE
        };
        let lines = Picojoules(100_000 + 65 * 10_240);
        assert_eq!(FlatPower::ROUND.energy(&moved).energy, lines);
    }

    #[test]
    fn huge_numbers_saturate() {
        let all = TierActivity {
            capacity: Bytes(u64::MAX),
            span: Nanos(u64::MAX),
            reads: u64::MAX,
            writes: u64::MAX,
            ..IDLE
        };
        assert!(FlatPower::ROUND.energy(&all).energy.joules().is_finite());
    }
}
