//! [`PairPower`] has one energy model for the fast tier and another for all other tiers, such as DDR5 beside CXL or HBM beside DDR5.

use isotherm_model::tier::TierIndex;

use super::port::{EnergyModel, TierActivity, TierEnergy};

/// An energy model for the fast tier and one for the slow tiers. It has no devices: interleaved pages need devices of one kind.
#[derive(Clone, Copy)]
pub struct PairPower<'a> {
    /// Model of the fast tier.
    pub fast: &'a dyn EnergyModel,
    /// Model of all other tiers.
    pub slow: &'a dyn EnergyModel,
}

impl EnergyModel for PairPower<'_> {
    fn words(&self) -> String {
        format!("{} beside {}", self.fast.words(), self.slow.words())
    }

    fn energy(&self, activity: &TierActivity) -> TierEnergy {
        match activity.tier == TierIndex::FASTEST {
            true => self.fast.energy(activity),
            false => self.slow.energy(activity),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{EnergyModel, PairPower, TierActivity, TierIndex};
    use crate::energy::{DataLayout, DramPower, LinkedPower};
    use isotherm_model::units::{Bytes, Nanos};

    #[test]
    fn each_tier_has_the_energy_of_its_own_model() {
        let pair = PairPower {
            fast: &DramPower::DDR5,
            slow: &LinkedPower::CXL,
        };
        let activity = |tier| TierActivity {
            tier: TierIndex(tier),
            capacity: Bytes(8 << 30),
            used: Bytes(1 << 30),
            span: Nanos(1_000_000),
            reads: 9_000,
            writes: 0,
            moved_out: Bytes(0),
            moved_in: Bytes(0),
            layout: DataLayout::PACKED,
        };
        let (fast, slow) = (activity(0), activity(1));
        assert_eq!(pair.energy(&fast), DramPower::DDR5.energy(&fast));
        assert_eq!(pair.energy(&slow), LinkedPower::CXL.energy(&slow));
        assert_eq!(pair.devices(Bytes(1), None), None);
        assert!(
            pair.words().contains(" beside ranks of "),
            "{}",
            pair.words()
        );
    }
}
