//! The energy models that `--power` names.

use isotherm_sim::{ENERGY_MODELS, EnergyModel, FlatPower, PairPower};

use crate::input::PowerModels;

/// The model of each tier; the command line has checked their names.
pub(crate) fn pair(names: PowerModels) -> PairPower<'static> {
    PairPower {
        fast: model(names.fast),
        slow: model(names.slow),
    }
}

fn model(name: &str) -> &'static dyn EnergyModel {
    let found = ENERGY_MODELS.iter().find(|(known, _)| *known == name);
    found.map_or(&FlatPower::ROUND as &dyn EnergyModel, |(_, model)| *model)
}
