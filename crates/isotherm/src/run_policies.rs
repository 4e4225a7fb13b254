//! The policies of `isotherm run`: epoch policies, and the one that leaves the moves to the daemon.

use isotherm_policy::epoch::{self, FIRST_COME};

/// The policy that moves nothing and observes nothing.
pub(crate) const NONE: &str = "none";

/// The policy that needs the future, which no run has.
pub(crate) const ORACLE: &str = "oracle";

/// Their names.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    epoch::names().chain([FIRST_COME, NONE])
}

/// Parses a name.
///
/// # Errors
/// There is no such policy.
pub(crate) fn read(name: &str) -> Result<String, String> {
    match names().any(|known| known == name) {
        true => Ok(name.to_owned()),
        false => Err(format!(
            "there is no policy \"{name}\"; there are {}",
            names().collect::<Vec<_>>().join(", ")
        )),
    }
}
