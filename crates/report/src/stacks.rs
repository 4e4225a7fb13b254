//! Makes a [`WeightedStack`] of each calling context of a report's sites, or of each line of code that accesses them, for other tools:
//! `folded`, `speedscope` and `pprof` write the files of `isotherm report --export`. `tree` makes the flame graphs of the HTML page from
//! the sites themselves.
//!
//! ```text
//! by allocation    main ; load_graph ; operator new          the callers of a site, outermost first
//! by code          visit (graph.cc:311) ; data of graph.cc:88 load: edges
//! ```

use serde::Serialize;

use crate::sites::SiteRow;

mod folded;
mod pprof;
mod speedscope;
mod tree;

pub use folded::folded;
pub use pprof::pprof;
pub use speedscope::speedscope;
pub(crate) use tree::{TreeFrame, tree};

/// The calls that the stacks consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackKind {
    /// The callers that allocate the data.
    Allocation,
    /// The function and line that accesses it, with the site of the data innermost.
    Code,
}

/// What the width of a stack shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackWeight {
    /// Accesses, in the profile's unit.
    Heat,
    /// Peak resident bytes of the site; of code there is none.
    Bytes,
}

/// One call of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct StackFrame {
    /// Function; module and address where it has no name.
    pub name: String,
    /// Source file.
    pub file: Option<String>,
    /// Line.
    pub line: Option<u32>,
}

/// A stack, outermost call first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightedStack {
    /// Its calls, at least one.
    pub frames: Vec<StackFrame>,
    /// Accesses, in the profile's unit.
    pub heat: u64,
    /// Peak resident bytes; 0 of code.
    pub bytes: u64,
}

impl WeightedStack {
    /// Its width.
    #[must_use]
    pub const fn weight(&self, weight: StackWeight) -> u64 {
        match weight {
            StackWeight::Heat => self.heat,
            StackWeight::Bytes => self.bytes,
        }
    }
}

/// The stacks of these sites, in their order; those of equal frames are one.
#[must_use]
pub fn stacks(sites: &[SiteRow], kind: StackKind) -> Vec<WeightedStack> {
    let all = sites.iter().flat_map(|site| match kind {
        StackKind::Allocation => vec![by_allocation(site)],
        StackKind::Code => by_code(site),
    });
    let mut places = std::collections::BTreeMap::<Vec<StackFrame>, usize>::new();
    let mut stacks: Vec<WeightedStack> = Vec::new();
    for stack in all.filter(|stack| stack.heat > 0 || stack.bytes > 0) {
        match places.get(&stack.frames) {
            Some(at) => {
                let known = &mut stacks[*at];
                known.heat = known.heat.saturating_add(stack.heat);
                known.bytes = known.bytes.saturating_add(stack.bytes);
            }
            None => {
                places.insert(stack.frames.clone(), stacks.len());
                stacks.push(stack);
            }
        }
    }
    stacks
}

/// The callers; the variable that receives the data is beside the innermost that has one.
fn by_allocation(site: &SiteRow) -> WeightedStack {
    let frame = |caller: &crate::sites::SiteCaller| {
        let function = caller.function.clone();
        let name = function.unwrap_or_else(|| caller.text.clone());
        StackFrame {
            name: match &caller.variable {
                Some(variable) => format!("{name}: {variable}"),
                None => name,
            },
            file: caller.file.clone(),
            line: caller.line,
        }
    };
    let mut frames: Vec<StackFrame> = site.callers.iter().rev().map(frame).collect();
    if frames.is_empty() {
        frames.push(StackFrame {
            name: site.location.clone(),
            ..StackFrame::default()
        });
    }
    WeightedStack {
        frames,
        heat: site.accesses,
        bytes: site.peak_rss_bytes,
    }
}

fn by_code(site: &SiteRow) -> Vec<WeightedStack> {
    let data = StackFrame {
        name: format!("data of {}", site.location),
        ..StackFrame::default()
    };
    let stack = |line: &crate::code_lines::CodeLine| {
        let function = line.function.clone();
        let function = StackFrame {
            name: function.unwrap_or_else(|| line.text.clone()),
            file: line.file.clone(),
            line: line.line,
        };
        WeightedStack {
            frames: vec![function, data.clone()],
            heat: line.accesses,
            bytes: 0,
        }
    };
    site.code.iter().map(stack).collect()
}
