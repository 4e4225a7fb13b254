//! The port of the energy models: what a tier did in an epoch, and the energy that it took.

use isotherm_model::tier::TierIndex;
use isotherm_model::units::{Bytes, Nanos};

/// Energy in picojoules. 128 bits hold every product of the model without rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Picojoules(pub u128);

impl Picojoules {
    /// In joules, for people.
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

/// What one tier did in one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierActivity {
    /// Which tier: 0 is the fast one.
    pub tier: TierIndex,
    /// How large it is.
    pub capacity: Bytes,
    /// How much of it holds data.
    pub used: Bytes,
    /// How long the epoch took.
    pub span: Nanos,
    /// Lines read by the program.
    pub reads: u64,
    /// Lines written by the program.
    pub writes: u64,
    /// Bytes read to move pages elsewhere.
    pub moved_out: Bytes,
    /// Bytes written to move pages here.
    pub moved_in: Bytes,
}

/// How much energy memory takes.
pub trait EnergyModel {
    /// What it takes memory for, in words.
    fn words(&self) -> String;

    /// Energy of one tier in one epoch. The implementer guarantees that it depends on nothing else.
    fn energy(&self, activity: &TierActivity) -> Picojoules;
}
