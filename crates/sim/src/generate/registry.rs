//! Lists the generators of traces by their names on the command line, and makes the one with a given name.

use super::graph_walk::GraphWalk;
use super::pcg::Pcg32;
use super::phases::Phases;
use super::scan_and_hot_set::ScanAndHotSet;
use super::sliding_window::SlidingWindow;
use super::stencil_sweep::StencilSweep;
use super::uniform::Uniform;
use super::zipf::Zipf;
use super::{Generated, GeneratorSettings, Pattern};

type Make = fn(&GeneratorSettings, &mut Pcg32) -> Box<dyn Pattern>;

/// Every generator by its name on the command line.
static GENERATORS: [(&str, Make); 7] = [
    ("uniform", |settings, _| Box::new(Uniform::new(settings))),
    ("zipf", |settings, random| {
        Box::new(Zipf::new(settings, random))
    }),
    ("sliding-window", |settings, _| {
        Box::new(SlidingWindow::new(settings))
    }),
    ("phases", |settings, random| {
        Box::new(Phases::new(settings, random))
    }),
    ("scan-and-hot-set", |settings, _| {
        Box::new(ScanAndHotSet::new(settings))
    }),
    ("stencil-sweep", |settings, _| {
        Box::new(StencilSweep::new(settings))
    }),
    ("graph-walk", |settings, random| {
        Box::new(GraphWalk::new(settings, random))
    }),
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
