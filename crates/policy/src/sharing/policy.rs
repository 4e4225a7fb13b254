//! [`SharingPolicy`] is the trait of the policies that share a fast tier among programs: from a [`Colocation`] to a [`SharedPlan`].

use isotherm_model::units::Bytes;

use super::colocation::{Colocation, SharedPlan};
use super::floor::FloorError;

/// A rule that shares a fast tier among programs.
///
/// The implementer guarantees that every object is named once in the plan, that no more bytes are
/// granted than the capacity, and that the plan is the same for the same programs and capacity.
pub trait SharingPolicy {
    /// Its name on the command line: `comerge`.
    fn name(&self) -> &'static str;

    /// Shares a fast tier of this capacity.
    ///
    /// # Errors
    /// A floor cannot be kept. The paper's policies have no floors and never fail.
    fn share(&self, colocation: &Colocation, capacity: Bytes) -> Result<SharedPlan, FloorError>;
}
