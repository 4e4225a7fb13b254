//! [`EnergyModel`] is the interface of all energy models: it turns the activity of a tier in an epoch ([`TierActivity`]) into the energy of
//! the tier and the time that accesses waited for sleeping devices ([`TierEnergy`]).

use isotherm_model::tier::TierIndex;
use isotherm_model::units::{Bytes, Nanos};

/// Energy in picojoules. 128 bits hold every product of the model without rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Picojoules(pub u128);

impl Picojoules {
    /// The energy in joules, for people.
    #[must_use]
    pub const fn joules(self) -> f64 {
        self.0 as f64 / 1e12
    }
}

impl std::ops::AddAssign for Picojoules {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

/// Activity of one tier in one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierActivity {
    /// The tier: 0 is the fast one.
    pub tier: TierIndex,
    /// Capacity of the tier.
    pub capacity: Bytes,
    /// Bytes that hold data.
    pub used: Bytes,
    /// Length of the epoch.
    pub span: Nanos,
    /// Lines read by the program.
    pub reads: u64,
    /// Lines written by the program.
    pub writes: u64,
    /// Bytes read to move pages elsewhere.
    pub moved_out: Bytes,
    /// Bytes written to move pages here.
    pub moved_in: Bytes,
    /// How the data of the tier is spread over its devices.
    pub layout: DataLayout,
}

/// How the data of a tier is spread over its devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataLayout {
    /// Bytes that one device holds, which sleeps as a whole; `None` for as many as a rank of the model has.
    pub device: Option<Bytes>,
    /// True where pages are interleaved over all devices, false where they fill as few as possible.
    pub is_interleaved: bool,
}

impl DataLayout {
    /// On as few ranks as possible.
    pub const PACKED: Self = Self {
        device: None,
        is_interleaved: false,
    };
}

/// The energy of a tier in an epoch, and the wake-up latency that it costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierEnergy {
    /// The energy.
    pub energy: Picojoules,
    /// Total time that accesses waited for devices to wake up.
    pub waited: Nanos,
}

/// A model of memory energy.
pub trait EnergyModel: Sync {
    /// The modelled memory, in words.
    fn words(&self) -> String;

    /// Devices of a tier with this capacity, each with this many bytes, or as many as a rank has; `None` for a model without
    /// devices.
    fn devices(&self, _capacity: Bytes, _device: Option<Bytes>) -> Option<u64> {
        None
    }

    /// Energy of one tier in one epoch. The implementer guarantees that it depends only on the
    /// activity.
    fn energy(&self, activity: &TierActivity) -> TierEnergy;
}
