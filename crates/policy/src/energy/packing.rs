//! [`DeviceSet`] computes how many of its equal memory devices hold the hot data of a plan by `cold-set`, and why: the fewest that have
//! room for its bytes and, where that is known, its bandwidth (Cross-Layer, 7.2 and 8.2.2), or all if these are too few. The others hold
//! cold data and may sleep. During a run, [`Remapper`](super::Remapper) chooses the number instead.
//!
//! ```text
//!     devices   [ hot ]  [ hot ]  [ cold, asleep ]  [ cold, asleep ]
//!               by bytes: hot data / capacity       by bandwidth: table 2
//! ```
//!
//! With a large capacity one device holds all hot data, and only its bandwidth needs more: the paper's unconstrained environment. In the
//! constrained one a device holds a quarter of the footprint, and a device is added whenever hot data exceeds those it has.

use isotherm_model::units::Bytes;

/// Equal memory devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceSet {
    /// Number of devices, at least 1.
    pub devices: u32,
    /// Most bytes of data that one of them holds.
    pub capacity: Bytes,
}

/// The cause of the number of hot devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackingLimit {
    /// One device is enough.
    OneIsEnough,
    /// The bytes of hot data.
    Capacity,
    /// The bandwidth of hot data, by the model.
    Bandwidth,
    /// The number of devices: hot data needs more than there are.
    Devices,
}

/// The devices of each colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Devices that hold hot data.
    pub hot: u32,
    /// The other devices, which hold cold data and may sleep.
    pub cold: u32,
    /// The cause of this number.
    pub limit: PackingLimit,
}

impl DeviceSet {
    /// The fewest devices of this capacity that hold these bytes; at least 1.
    #[must_use]
    pub fn holding(bytes: Bytes, capacity: Bytes) -> Self {
        let devices = bytes.0.div_ceil(capacity.0.max(1)).max(1);
        Self {
            devices: u32::try_from(devices).unwrap_or(u32::MAX),
            capacity,
        }
    }

    /// The fewest devices for these bytes of hot data, and at least as many as its bandwidth needs, where that is known.
    #[must_use]
    pub fn pack(&self, hot: Bytes, by_bandwidth: Option<u32>) -> Packing {
        let by_bytes = Self::holding(hot, self.capacity).devices;
        let by_bandwidth = by_bandwidth.unwrap_or(1);
        let needed = by_bytes.max(by_bandwidth);
        let limit = match needed {
            _ if needed > self.devices => PackingLimit::Devices,
            1 => PackingLimit::OneIsEnough,
            _ if by_bandwidth > by_bytes => PackingLimit::Bandwidth,
            _ => PackingLimit::Capacity,
        };
        let hot = needed.min(self.devices);
        Packing {
            hot,
            cold: self.devices.saturating_sub(hot),
            limit,
        }
    }

    /// Bytes that this number of devices holds.
    #[must_use]
    pub fn capacity_of(&self, devices: u32) -> Bytes {
        Bytes(self.capacity.0.saturating_mul(u64::from(devices)))
    }
}

#[cfg(test)]
mod tests {
    use super::{DeviceSet, PackingLimit};
    use isotherm_model::units::Bytes;

    #[test]
    fn hot_data_takes_as_few_devices_as_its_bytes_and_its_bandwidth_allow() {
        let four = DeviceSet {
            devices: 4,
            capacity: Bytes(100),
        };
        let pack = |hot, by_bandwidth| {
            let packing = four.pack(Bytes(hot), by_bandwidth);
            (packing.hot, packing.cold, packing.limit)
        };
        assert_eq!(pack(0, None), (1, 3, PackingLimit::OneIsEnough));
        assert_eq!(pack(100, Some(1)), (1, 3, PackingLimit::OneIsEnough));
        assert_eq!(pack(101, None), (2, 2, PackingLimit::Capacity));
        assert_eq!(pack(10, Some(3)), (3, 1, PackingLimit::Bandwidth));
        assert_eq!(pack(250, Some(3)), (3, 1, PackingLimit::Capacity));
        assert_eq!(pack(401, None), (4, 0, PackingLimit::Devices));
        assert_eq!(pack(10, Some(5)), (4, 0, PackingLimit::Devices));
    }

    #[test]
    fn a_quarter_of_the_footprint_each_makes_four_devices() {
        assert_eq!(DeviceSet::holding(Bytes(401), Bytes(100)).devices, 5);
        assert_eq!(DeviceSet::holding(Bytes(400), Bytes(100)).devices, 4);
        let none = DeviceSet::holding(Bytes(0), Bytes(0));
        assert_eq!((none.devices, none.capacity_of(3)), (1, Bytes(0)));
        let huge = DeviceSet::holding(Bytes(u64::MAX), Bytes(1));
        assert_eq!(
            (huge.devices, huge.pack(Bytes(u64::MAX), None).cold),
            (u32::MAX, 0)
        );
    }
}
