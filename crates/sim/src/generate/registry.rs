//! The generators by name, for the command line and its help.

use super::graph_walk::GraphWalk;
use super::pcg::Pcg32;
use super::phases::Phases;
use super::scan_and_hot_set::ScanAndHotSet;
use super::sliding_window::SlidingWindow;
use super::stencil_sweep::StencilSweep;
use super::uniform::Uniform;
use super::zipf::Zipf;
use super::{Generated, GeneratorSettings, Pattern};

/// A generator and its line of help.
#[derive(Clone, Copy, Debug)]
pub struct GeneratorEntry {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line of help.
    pub summary: &'static str,
    make: fn(&GeneratorSettings, &mut Pcg32) -> Box<dyn Pattern>,
}

/// Every generator.
pub static GENERATORS: [GeneratorEntry; 7] = [
    GeneratorEntry {
        name: "uniform",
        summary: "every line as likely as any other: nothing to learn",
        make: |settings, _| Box::new(Uniform::new(settings)),
    },
    GeneratorEntry {
        name: "zipf",
        summary: "the page of rank r is accessed in proportion to 1/r",
        make: |settings, random| Box::new(Zipf::new(settings, random)),
    },
    GeneratorEntry {
        name: "sliding-window",
        summary: "a window of a sixteenth of the pages moves over all of them once",
        make: |settings, _| Box::new(SlidingWindow::new(settings)),
    },
    GeneratorEntry {
        name: "phases",
        summary: "two kinds of phases take turns, each with a hot sixteenth of the pages of its own",
        make: |settings, random| Box::new(Phases::new(settings, random)),
    },
    GeneratorEntry {
        name: "scan-and-hot-set",
        summary: "half of the accesses to a hot sixteenth, half scan the rest line by line",
        make: |settings, _| Box::new(ScanAndHotSet::new(settings)),
    },
    GeneratorEntry {
        name: "stencil-sweep",
        summary: "five-point stencil over two grids, sweep after sweep",
        make: |settings, _| Box::new(StencilSweep::new(settings)),
    },
    GeneratorEntry {
        name: "graph-walk",
        summary: "breadth-first searches over an R-MAT graph",
        make: |settings, random| Box::new(GraphWalk::new(settings, random)),
    },
];

/// The trace of the generator with this name.
#[must_use]
pub fn by_name(name: &str, settings: GeneratorSettings) -> Option<Generated> {
    let entry = GENERATORS.iter().find(|entry| entry.name == name)?;
    let mut random = Pcg32::new(settings.seed);
    Some(Generated {
        pattern: (entry.make)(&settings, &mut random),
        random,
        settings,
        at: 0,
    })
}

/// All names, in the order of [`GENERATORS`].
pub fn names() -> impl Iterator<Item = &'static str> {
    GENERATORS.iter().map(|entry| entry.name)
}
