//! Makes a tree of [`TreeFrame`]s, of bounded size, from the callers of sites or the code that accesses them, for the flame graphs of the
//! HTML page. Frames that are too small or too deep to be drawn are in the *rest* of their parent.
//!
//! ```text
//! by allocation   all > main > load_graph > operator new > graph.cc:88 load_graph: edges
//! by code         all > visit > graph.cc:311             > graph.cc:88 load_graph: edges
//!                       function or line                   data of a site, innermost
//! ```
//!
//! Calls of one function from one caller are one frame, whatever their lines, as in any flame graph; the data at the end names the line.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use isotherm_model::variant_words;

use super::StackKind;
use crate::code_functions::function_name;
use crate::code_lines::CodeLine;
use crate::sites::SiteRow;
use crate::words::counted;

/// Frames of a tree at most, beside a rest in each: a screen cannot show more than one in a thousand of the width.
const FRAMES: usize = 800;
/// Frames of a stack at most; deeper ones are in the rest. The tree is nested markup, too, of which a browser reads 512 levels.
const DEPTH: usize = 64;
/// Pairs of a frame and a site at most.
const LINKS: usize = 10_000;

variant_words! {
    /// What a frame is.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub(crate) enum FrameKind {
        /// The sum of all stacks.
        All = "all",
        /// A function.
        Function = "function",
        /// A line of the function above.
        Line = "line",
        /// The data of a site.
        Data = "data",
        /// Frames that are too small to be drawn.
        #[default]
        Rest = "rest",
    }
}

/// A frame of a tree, with all that is below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TreeFrame<'a> {
    /// The index of the frame that it is in; 0, its own, for the first, which is in none.
    pub(crate) parent: usize,
    /// How many frames it is in.
    pub(crate) depth: usize,
    /// What it is.
    pub(crate) kind: FrameKind,
    /// Function, line or site.
    pub(crate) name: Cow<'a, str>,
    /// Source file of a function.
    pub(crate) file: Option<&'a str>,
    /// Accesses, in the profile's unit.
    pub(crate) heat: u64,
    /// Peak resident bytes; 0 of code.
    pub(crate) bytes: u64,
    /// The sites whose data it is, of those that the page shows elsewhere; those of a function are in the frames below.
    pub(crate) sites: Vec<&'a str>,
}

/// The tree of the stacks of these sites: each frame before those within it, which are sorted by width, the widest first. Only
/// the sites of `shown` are named in frames. Empty where there is nothing to draw.
pub(crate) fn tree<'a>(
    sites: &'a [SiteRow],
    kind: StackKind,
    shown: &BTreeSet<&str>,
) -> Vec<TreeFrame<'a>> {
    let mut growing = GrowingTree::new(match kind {
        StackKind::Allocation => "all sites",
        StackKind::Code => "all code",
    });
    for site in sites {
        let named = Some(site.site.as_str()).filter(|site| shown.contains(site));
        let paths = paths(site, kind).into_iter();
        for path in paths.filter(|path| path.heat > 0 || path.bytes > 0) {
            growing.add(path, named);
        }
    }
    if growing.frames.len() == 1 {
        return Vec::new();
    }
    growing.bounded()
}

/// A frame of one stack: its kind, its name, and the file, which distinguishes functions of one name.
type PathFrame<'a> = (FrameKind, Cow<'a, str>, Option<&'a str>);

/// A stack, outermost frame first.
struct Path<'a> {
    frames: Vec<PathFrame<'a>>,
    heat: u64,
    bytes: u64,
}

fn paths(site: &SiteRow, kind: StackKind) -> Vec<Path<'_>> {
    match kind {
        StackKind::Allocation => vec![by_allocation(site)],
        StackKind::Code => site.code.iter().map(|line| by_code(site, line)).collect(),
    }
}

fn by_allocation(site: &SiteRow) -> Path<'_> {
    let callers = site.callers.iter().rev().map(|caller| {
        let name = caller.function.as_ref().unwrap_or(&caller.text);
        (FrameKind::Function, name.into(), caller.file.as_deref())
    });
    Path {
        frames: callers.chain([data(site)]).collect(),
        heat: site.accesses,
        bytes: site.peak_rss_bytes,
    }
}

/// The function and the line; of code without symbols the module and the address.
fn by_code<'a>(site: &'a SiteRow, code: &'a CodeLine) -> Path<'a> {
    let file = code.file.as_deref();
    let mut frames = vec![(FrameKind::Function, function_name(code).into(), file)];
    match (file, code.line) {
        _ if code.function.is_none() => {
            frames.push((FrameKind::Line, code.text.as_str().into(), None));
        }
        (Some(file), Some(line)) => {
            let file = file.rsplit('/').next().unwrap_or(file);
            frames.push((FrameKind::Line, format!("{file}:{line}").into(), None));
        }
        _ => {}
    }
    frames.push(data(site));
    Path {
        frames,
        heat: code.accesses,
        bytes: 0,
    }
}

fn data(site: &SiteRow) -> PathFrame<'_> {
    (FrameKind::Data, site.location.as_str().into(), None)
}

/// A tree of all frames, each behind the one that it is in.
struct GrowingTree<'a> {
    frames: Vec<TreeFrame<'a>>,
    /// Frames by the one that they are in.
    places: HashMap<(usize, PathFrame<'a>), usize>,
}

impl<'a> GrowingTree<'a> {
    fn new(all: &'a str) -> Self {
        let root = TreeFrame {
            kind: FrameKind::All,
            name: all.into(),
            ..TreeFrame::default()
        };
        Self {
            frames: vec![root],
            places: HashMap::new(),
        }
    }

    fn add(&mut self, path: Path<'a>, site: Option<&'a str>) {
        let mut at = 0;
        self.widen(at, &path);
        let deeper: PathFrame<'a> = (FrameKind::Rest, "deeper calls".into(), None);
        let is_cut = path.frames.len() > DEPTH;
        let drawn = if is_cut { DEPTH - 1 } else { DEPTH };
        let frames = path.frames.iter().take(drawn);
        for frame in frames.chain(is_cut.then_some(&deeper)) {
            at = self.within(at, frame);
            self.widen(at, &path);
        }
        self.frames[at].sites.extend(site);
    }

    fn widen(&mut self, at: usize, by: &Path<'_>) {
        let frame = &mut self.frames[at];
        frame.heat = frame.heat.saturating_add(by.heat);
        frame.bytes = frame.bytes.saturating_add(by.bytes);
    }

    /// The index of this frame within that at `parent`.
    fn within(&mut self, parent: usize, frame: &PathFrame<'a>) -> usize {
        let next = self.frames.len();
        let at = *self.places.entry((parent, frame.clone())).or_insert(next);
        if at == next {
            let (kind, name, file) = frame.clone();
            self.frames.push(TreeFrame {
                parent,
                depth: self.frames[parent].depth + 1,
                kind,
                name,
                file,
                ..TreeFrame::default()
            });
        }
        at
    }

    /// The widest frames, by either width, and the rests that hold the others.
    fn bounded(self) -> Vec<TreeFrame<'a>> {
        let mut frames = self.frames;
        let whole = (frames[0].heat.max(1) as f64, frames[0].bytes.max(1) as f64);
        let width =
            |frame: &TreeFrame<'_>| (frame.heat as f64 / whole.0).max(frame.bytes as f64 / whole.1);
        let mut widest: Vec<usize> = (0..frames.len()).collect();
        // Equals stay in their order, so no frame is kept without the one that it is in, which is as wide at least.
        widest.sort_by(|a, b| width(&frames[*b]).total_cmp(&width(&frames[*a])));
        let mut is_kept = vec![false; frames.len()];
        for at in widest.into_iter().take(FRAMES) {
            is_kept[at] = true;
        }
        gather_rests(&mut frames, &mut is_kept);
        in_order(frames, &is_kept)
    }
}

/// Adds a rest to each kept frame in which others are not.
fn gather_rests(frames: &mut Vec<TreeFrame<'_>>, is_kept: &mut Vec<bool>) {
    let all = frames.len();
    // The rest that a frame which is not kept belongs to, and how many frames each rest is.
    let mut rest_of = vec![0_usize; all];
    let mut rests = HashMap::<usize, (usize, usize)>::new();
    for at in 0..all {
        if is_kept[at] {
            continue;
        }
        let parent = frames[at].parent;
        if is_kept[parent] {
            let (rest, count) = rests.entry(parent).or_insert((frames.len(), 0));
            *count += 1;
            rest_of[at] = *rest;
            if *rest == frames.len() {
                let depth = frames[at].depth;
                frames.push(TreeFrame {
                    parent,
                    depth,
                    ..TreeFrame::default()
                });
                is_kept.push(true);
            }
            let (heat, bytes) = (frames[at].heat, frames[at].bytes);
            let rest = &mut frames[rest_of[at]];
            rest.heat = rest.heat.saturating_add(heat);
            rest.bytes = rest.bytes.saturating_add(bytes);
        } else {
            rest_of[at] = rest_of[parent];
        }
        let sites = std::mem::take(&mut frames[at].sites);
        frames[rest_of[at]].sites.extend(sites);
    }
    for (rest, count) in rests.into_values() {
        frames[rest].name = counted(count, "smaller frame").into();
        frames[rest].sites.sort_unstable();
        frames[rest].sites.dedup();
    }
}

/// The kept frames, each before those within it, which are sorted by heat, then bytes, a rest last.
fn in_order<'a>(frames: Vec<TreeFrame<'a>>, is_kept: &[bool]) -> Vec<TreeFrame<'a>> {
    let mut within = vec![Vec::new(); frames.len()];
    for (at, frame) in frames.iter().enumerate().skip(1) {
        if is_kept[at] {
            within[frame.parent].push(at);
        }
    }
    for list in &mut within {
        // The last one is taken first.
        list.sort_by_key(|at| {
            let frame: &TreeFrame<'_> = &frames[*at];
            let is_drawn = frame.kind != FrameKind::Rest;
            (is_drawn, frame.heat, frame.bytes, Reverse(*at))
        });
    }
    let mut frames: Vec<Option<TreeFrame<'a>>> = frames.into_iter().map(Some).collect();
    let (mut ordered, mut links) = (Vec::new(), LINKS);
    let mut open = vec![(0, 0)];
    while let Some((at, parent)) = open.pop() {
        let number = ordered.len();
        open.extend(within[at].iter().map(|child| (*child, number)));
        if let Some(mut frame) = frames[at].take() {
            frame.parent = parent;
            frame.sites.truncate(links);
            links -= frame.sites.len();
            ordered.push(frame);
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{DEPTH, FRAMES, FrameKind, GrowingTree, Path, PathFrame};

    fn stack(names: &[&'static str], heat: u64, bytes: u64) -> Path<'static> {
        let frame = |name: &&'static str| -> PathFrame<'static> {
            (FrameKind::Function, (*name).into(), None)
        };
        Path {
            frames: names.iter().map(frame).collect(),
            heat,
            bytes,
        }
    }

    /// `depth name heat bytes sites` of each frame.
    fn lines(tree: GrowingTree<'_>) -> Vec<String> {
        let line = |frame: super::TreeFrame<'_>| {
            let (heat, bytes) = (frame.heat, frame.bytes);
            let sites = frame.sites.join(",");
            format!("{} {} {heat} {bytes} {sites}", frame.depth, frame.name)
        };
        tree.bounded().into_iter().map(line).collect()
    }

    #[test]
    fn stacks_share_the_frames_that_they_begin_with() {
        let mut tree = GrowingTree::new("all");
        tree.add(stack(&["main", "cold"], 1, 900), Some("s1"));
        tree.add(stack(&["main", "hot", "grow"], 5, 10), Some("s2"));
        tree.add(stack(&["main", "hot"], 4, 0), None);
        let wanted = [
            "0 all 10 910 ",
            "1 main 10 910 ",
            "2 hot 9 10 ",
            "3 grow 5 10 s2",
            "2 cold 1 900 s1",
        ];
        assert_eq!(lines(tree), wanted);
    }

    #[test]
    fn what_is_too_small_is_the_rest_of_its_parent_with_its_sites() {
        let names: Vec<String> = (0..2 * FRAMES).map(|at| format!("f{at}")).collect();
        let mut tree = GrowingTree::new("all");
        for (at, name) in names.iter().enumerate() {
            let function: PathFrame<'_> = (FrameKind::Function, name.as_str().into(), None);
            let data: PathFrame<'_> = (FrameKind::Data, "data".into(), None);
            // The wide ones come last; one small one has most bytes.
            let (heat, bytes) = (1 + at as u64 / FRAMES as u64, u64::from(at == 7) * 4096);
            let frames = vec![function, data];
            let path = Path {
                frames,
                heat,
                bytes,
            };
            tree.add(path, Some(name));
        }
        let frames = tree.bounded();
        assert!(frames.len() <= 2 * FRAMES, "{}", frames.len());
        assert!(frames.iter().any(|frame| frame.name == "f7"));
        let children = |parent| frames.iter().skip(1).filter(move |it| it.parent == parent);
        let heat: u64 = children(0).map(|frame| frame.heat).sum();
        let bytes: u64 = children(0).map(|frame| frame.bytes).sum();
        assert_eq!((heat, bytes), (frames[0].heat, frames[0].bytes));
        let rest = children(0).next_back().expect("a rest");
        assert_eq!(rest.kind, FrameKind::Rest);
        assert!(rest.name.ends_with("smaller frames"), "{}", rest.name);
        let sites: BTreeSet<&str> = frames.iter().flat_map(|it| it.sites.clone()).collect();
        assert_eq!(sites.len(), names.len(), "no site is lost");
    }

    #[test]
    fn a_deep_stack_ends_in_its_deeper_calls() {
        let mut tree = GrowingTree::new("all");
        tree.add(stack(&["recurse"; 4 * DEPTH], 3, 0), Some("s1"));
        let frames = tree.bounded();
        let last = frames.last().expect("frames");
        assert_eq!((last.depth, last.kind), (DEPTH, FrameKind::Rest));
        assert_eq!((&*last.name, last.heat), ("deeper calls", 3));
        assert_eq!(last.sites, ["s1"]);
    }
}
