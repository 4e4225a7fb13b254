//! [`FlameGraphs`] makes the flame graphs of the report's page, by the calls that allocate and by the code that accesses: the figures that
//! a script draws, their controls, the same frames as call trees, and the bar that names the selection.

use std::collections::BTreeSet;

use isotherm_model::count_unit::CountUnit;
use isotherm_model::units::Bytes;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::page::name;
use crate::sites::SiteRow;
use crate::stacks::{StackKind, TreeFrame, tree};
use crate::summary::Summary;
use crate::words::{clip, percent, share};

/// Characters of the name of a frame, and of a file.
const NAME: usize = 120;
/// Levels of the call tree that are open.
const OPEN: usize = 3;

/// Both graphs, and the sites that they share with the rest of the page.
pub(super) struct FlameGraphs<'a> {
    unit: CountUnit,
    sites: Vec<&'a SiteRow>,
    allocation: Vec<TreeFrame<'a>>,
    code: Vec<TreeFrame<'a>>,
}

impl<'a> FlameGraphs<'a> {
    /// The graphs of a summary. Their frames name the sites of `shown`.
    pub(super) fn new(summary: &'a Summary, shown: &BTreeSet<&str>) -> Self {
        let sites = summary.sites.iter();
        let sites = sites.filter(|site| shown.contains(site.site.as_str()));
        Self {
            unit: summary.totals.counted,
            sites: sites.collect(),
            allocation: tree(&summary.sites, StackKind::Allocation, shown),
            code: tree(&summary.sites, StackKind::Code, shown),
        }
    }

    /// The figures that the script draws; none without frames.
    pub(super) fn figures(&self) -> Option<Value> {
        if self.allocation.is_empty() {
            return None;
        }
        let site = |site: &&SiteRow| {
            json!({
                "site": site.site,
                "location": name(&site.location),
                "accesses_share": site.accesses_share,
                "peak_rss_bytes": site.peak_rss_bytes,
            })
        };
        let numbers: Vec<&str> = self.sites.iter().map(|site| site.site.as_str()).collect();
        let mut graphs = json!({ "allocation": frames(&self.allocation, &numbers) });
        if !self.code.is_empty() {
            graphs["code"] = frames(&self.code, &numbers);
        }
        Some(json!({
            "kind": "flame",
            "counted": self.unit.noun(),
            "units": self.unit.units(),
            "sites": self.sites.iter().map(site).collect::<Vec<_>>(),
            "graphs": graphs,
        }))
    }

    /// The section of the graphs.
    pub(super) fn section(&self) -> Markup {
        let noun = self.unit.noun();
        let label = format!(
            "Flame graph of the {noun}. Arrow keys move, Enter fills the width with a frame and selects its sites, Escape shows all."
        );
        html! {
            @if !self.allocation.is_empty() {
                section aria-labelledby="flame-title" id="stacks" {
                    h2 id="flame-title" { "Flame graph" }
                    p {
                        "The outermost call is on top, and the width of a frame is its share. By allocation: the callers, down to the data. "
                        @if !self.code.is_empty() { "By code: the functions and lines that access the data. " }
                        "Click a frame to fill the width with it and to select its sites in the whole page."
                    }
                    (self.controls())
                    div.flame id="flame" aria-label=(label) {}
                    p.small id="flame-empty" hidden { "Nothing was seen to draw." }
                    p.small id="flame-details" {}
                    ul.legend id="flame-legend" {}
                    noscript { p { "The chart needs JavaScript; the call tree below does not." } }
                    (self.call_tree())
                }
            }
        }
    }

    fn controls(&self) -> Markup {
        let choice = |group: &str, value: &str, words: &str, is_first: bool| {
            html! {
                label { input type="radio" name=(group) value=(value) checked[is_first]; (words) }
            }
        };
        html! {
            div.controls id="flame-controls" hidden {
                @if !self.code.is_empty() {
                    fieldset {
                        legend { "Stacks" }
                        (choice("flame-kind", "allocation", "by allocation", true))
                        (choice("flame-kind", "code", "by code", false))
                    }
                }
                fieldset {
                    legend { "Width" }
                    (choice("flame-width", "heat", self.unit.noun(), true))
                    (choice("flame-width", "bytes", "peak bytes", false))
                }
                label.find { "Find " input type="search" id="flame-find" placeholder="function, file or site"; }
                output id="flame-found" for="flame-find" {}
                button.plain type="button" id="flame-whole" hidden { "Show all" }
            }
        }
    }

    /// The frames of both graphs as nested lists.
    fn call_tree(&self) -> Markup {
        let noun = self.unit.noun();
        html! {
            details.fold {
                summary { h3 { "Call tree by allocation" } }
                p { "Each line: share of the " (noun) ", peak bytes of the sites, and the call." }
                (list(&self.allocation, 0, self.allocation.len(), true))
            }
            @if !self.code.is_empty() {
                details.fold {
                    summary { h3 { "Call tree by code" } }
                    p { "Each line: share of the " (noun) ", and the function, the line, or the data." }
                    (list(&self.code, 0, self.code.len(), false))
                }
            }
        }
    }

    /// The words that say what is selected, filled in by the script.
    pub(super) fn selected(&self) -> Markup {
        html! {
            @if !self.allocation.is_empty() {
                div.selected id="selected" role="status" hidden {
                    p { "Selected: " b {} " " span {} }
                    button.plain type="button" data-to="stacks" { "Flame graph" }
                    button.plain type="button" data-to="sites" { "Sites" }
                    button.plain.clear type="button" { "Clear" }
                }
            }
        }
    }
}

/// Frames as the script reads them; sites by their index in `numbers`.
fn frames(tree: &[TreeFrame<'_>], numbers: &[&str]) -> Value {
    let index = |site: &&str| numbers.iter().position(|known| known == site);
    let frame = |frame: &TreeFrame<'_>| {
        let sites: Vec<usize> = frame.sites.iter().filter_map(index).collect();
        json!({
            "parent": frame.parent,
            "depth": frame.depth,
            "kind": frame.kind.word(),
            "name": clip(&frame.name, NAME),
            "file": file(frame),
            "heat": frame.heat,
            "bytes": frame.bytes,
            "sites": sites,
        })
    };
    tree.iter().map(frame).collect()
}

/// The name of the file that a function is in.
fn file(frame: &TreeFrame<'_>) -> Option<String> {
    let file = frame.file?;
    Some(clip(file.rsplit('/').next().unwrap_or(file), NAME))
}

/// The frames of `tree` from `at` to `end` as a list, each with those within it.
fn list(tree: &[TreeFrame<'_>], at: usize, end: usize, has_bytes: bool) -> Markup {
    let mut entries = Vec::new();
    let mut next = at;
    while next < end {
        let depth = tree[next].depth;
        let within = tree[next + 1..end].iter();
        let past = next + 1 + within.take_while(|frame| frame.depth > depth).count();
        entries.push((next, past));
        next = past;
    }
    html! {
        ul.tree {
            @for (entry, past) in entries {
                @if past == entry + 1 {
                    li.leaf { (line(&tree[entry], &tree[0], has_bytes)) }
                } @else {
                    li {
                        details open[tree[entry].depth < OPEN] {
                            summary { (line(&tree[entry], &tree[0], has_bytes)) }
                            (list(tree, entry + 1, past, has_bytes))
                        }
                    }
                }
            }
        }
    }
}

/// The figures and the name of a frame.
fn line(frame: &TreeFrame<'_>, whole: &TreeFrame<'_>, has_bytes: bool) -> Markup {
    html! {
        b { (percent(share(frame.heat, whole.heat))) } " "
        @if has_bytes { i { (Bytes(frame.bytes)) } " " }
        (clip(&frame.name, NAME))
        @if let Some(file) = file(frame) { " " small { (file) } }
    }
}
