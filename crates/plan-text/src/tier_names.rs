//! The tier that a line names.

use isotherm_model::tier::{TierIndex, Tiers};

use super::line::{Line, PlanTextError};

pub(super) fn tier_named(
    line: &Line,
    tiers: &Tiers,
    name: &str,
) -> Result<TierIndex, PlanTextError> {
    let names = || {
        let names: Vec<&str> = tiers.all().iter().map(|tier| tier.name.as_str()).collect();
        names.join(", ")
    };
    match tiers.find(name) {
        Some(index) => Ok(index),
        None => line.wrong(format!(
            "unknown tier \"{name}\"; the tiers are {}",
            names()
        )),
    }
}
