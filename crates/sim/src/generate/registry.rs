//! Lists the generators of traces by their names on the command line, and makes the one with a given name.

use super::graph_walk::graph_walk;
use super::pcg::Pcg32;
use super::phases::phases;
use super::scan_and_hot_set::scan_and_hot_set;
use super::sliding_window::sliding_window;
use super::stencil_sweep::stencil_sweep;
use super::uniform::uniform;
use super::zipf::zipf;
use super::{Generated, GeneratorSettings, Pattern};

type Make = fn(&GeneratorSettings, &mut Pcg32) -> Pattern;

/// Every generator by its name on the command line.
static GENERATORS: [(&str, Make); 7] = [
    ("uniform", uniform),
    ("zipf", zipf),
    ("sliding-window", sliding_window),
    ("phases", phases),
    ("scan-and-hot-set", scan_and_hot_set),
    ("stencil-sweep", stencil_sweep),
    ("graph-walk", graph_walk),
];

/// The trace of the generator with this name.
#[must_use]
pub fn by_name(name: &str, settings: GeneratorSettings) -> Option<Generated> {
    let (_, make) = GENERATORS.iter().find(|(known, _)| *known == name)?;
    let mut random = Pcg32::new(settings.seed);
    Some(Generated {
        pattern: make(&settings, &mut random),
        random,
        settings,
        at: 0,
    })
}

/// All names, in the order of the help.
pub fn names() -> impl Iterator<Item = &'static str> {
    GENERATORS.iter().map(|(name, _)| *name)
}
