//! [`LinkedPower`] models memory behind a link (CXL): the energy of its devices, and that of each byte on the link.
//!
//! The transmitter of a PCIe 4.0 link takes 1.93 pJ a bit at 16 GT/s, measured on a chip of 28 nm (Bae et al., Electronics 10(1), 2021). A
//! line passes one transmitter and one receiver, which are assumed to be equal. The power of a link without traffic and that of the
//! controller on the device are left out: no public figure was found.

use isotherm_model::units::Bytes;

use super::dram::DramPower;
use super::port::{EnergyModel, Picojoules, TierActivity, TierEnergy};
use crate::machine::LINE;

/// Devices, and the link in front of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkedPower {
    /// The devices.
    pub devices: DramPower,
    /// Energy of a bit on the link, in femtojoules.
    pub femtojoules_per_bit: u64,
}

impl LinkedPower {
    /// DDR5 behind a PCIe link.
    pub const CXL: Self = Self {
        devices: DramPower::DDR5,
        femtojoules_per_bit: 2 * 1_930,
    };
}

impl EnergyModel for LinkedPower {
    fn words(&self) -> String {
        let picojoules = self.femtojoules_per_bit as f64 / 1e3;
        format!(
            "{} behind a link of {picojoules:.2} pJ a bit",
            self.devices.words()
        )
    }

    fn devices(&self, capacity: Bytes, device: Option<Bytes>) -> Option<u64> {
        self.devices.devices(capacity, device)
    }

    fn energy(&self, activity: &TierActivity) -> TierEnergy {
        let devices = self.devices.energy(activity);
        let lines = u128::from(activity.reads) + u128::from(activity.writes);
        let moved = u128::from(activity.moved_in.0) + u128::from(activity.moved_out.0);
        let bytes = lines * u128::from(LINE.0) + moved;
        let femtojoules = bytes.saturating_mul(8 * u128::from(self.femtojoules_per_bit));
        TierEnergy {
            energy: Picojoules(devices.energy.0.saturating_add(femtojoules / 1_000)),
            ..devices
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DramPower, EnergyModel, LinkedPower, TierActivity};
    use crate::energy::DataLayout;
    use isotherm_model::tier::TierIndex;
    use isotherm_model::units::{Bytes, Nanos};

    #[test]
    fn a_link_adds_the_energy_of_its_bits() {
        let activity = TierActivity {
            tier: TierIndex(1),
            capacity: Bytes(8 << 30),
            used: Bytes(1 << 30),
            span: Nanos(1_000_000_000),
            reads: 900_000,
            writes: 100_000,
            moved_out: Bytes(0),
            moved_in: Bytes(6_400_000),
            layout: DataLayout::PACKED,
        };
        let linked = LinkedPower::CXL.energy(&activity);
        let plain = DramPower::DDR5.energy(&activity);
        // 70.4 MB of 8 bits at 3.86 pJ.
        assert_eq!(linked.energy.0 - plain.energy.0, 70_400_000 * 8 * 386 / 100);
        assert_eq!(linked.waited, plain.waited);
        let idle = TierActivity {
            reads: 0,
            writes: 0,
            moved_in: Bytes(0),
            ..activity
        };
        assert_eq!(
            LinkedPower::CXL.energy(&idle),
            DramPower::DDR5.energy(&idle)
        );
    }
}
