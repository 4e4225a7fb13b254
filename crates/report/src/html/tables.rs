//! Renders the tables of the report's page: sites, tiers of the plan, sites in parts, sources, counters and facts of the run.

use isotherm_model::units::{Bytes, Nanos};
use maud::{Markup, html};

use crate::noise::interval as interval_words;
use crate::page::{more, name, scrolled, table};
use crate::parts::{self, SplitSite};
use crate::plan::{PlanSummary, TierUse};
use crate::sites::{SiteCaller, SiteRow, by_share, folded};
use crate::summary::{CounterSummary, Summary};
use crate::table::DataTable;
use crate::words::{clip, counted, grouped, percent, share};

/// Callers of a context that are listed at most.
const CALLERS: usize = 16;
/// Counters that are listed at most.
const COUNTERS: usize = 300;
/// Sites with parts that are listed at most.
const SPLIT_SITES: usize = 50;
/// Facts of the machine that are listed at most.
const FACTS: usize = 40;

/// The head of a table: titles of text, then titles of numbers, then titles of text again.
fn head(text: &[&str], numbers: &[&str], more: &[&str]) -> Markup {
    html! {
        thead {
            tr {
                @for title in text { th scope="col" { (title) } }
                @for title in numbers { th.n scope="col" { (title) } }
                @for title in more { th scope="col" { (title) } }
            }
        }
    }
}

/// The sites that are rows of the site table.
pub(super) fn rows(summary: &Summary, limit: usize) -> Vec<&SiteRow> {
    // A site that shared an arena has neither accesses nor RSS of its own; rows of zeroes tell
    // nothing.
    let telling = |site: &&SiteRow| site.accesses > 0 || site.peak_rss_bytes > 0;
    let telling = |site: &&SiteRow| telling(site) && !site.below_noise;
    let sorted = by_share(&summary.sites).into_iter();
    sorted.filter(telling).take(limit).collect()
}

/// The site table: sortable and filterable with a script, complete without.
pub(super) fn sites(summary: &Summary, limit: usize) -> Markup {
    let unit = summary.totals.counted;
    let drawn = rows(summary, limit);
    let table = html! {
        table id="site-table" {
            thead { tr { (site_titles(summary)) } }
            tbody { @for site in &drawn { (site_row(site, summary)) } }
            (other_sites(summary, &drawn))
        }
    };
    html! {
        section aria-labelledby="sites-title" id="sites" {
            h2 id="sites-title" { "Allocation sites" }
            p {
                "By share of the " (unit.noun()) ", with the interval that the samples leave (Wilson, 95 %). Hotness is "
                (unit.units()) " for each MiB of peak RSS. Open a site for its calling context."
            }
            p.filter hidden {
                label { "Filter " input type="search" id="filter" placeholder="function, file or site"; }
                " " output id="matches" for="filter" {}
            }
            (scrolled("Allocation sites", &table))
            @if let Some(folded) = folded(&summary.sites, unit) { p.small { (folded) "." } }
            @if summary.totals.unattributed_accesses > 0 {
                p.small {
                    (percent(summary.totals.unattributed_share())) " of the " (unit.noun())
                    " seen fell on stacks, program data and libraries, which have no site and are not in this table."
                }
            }
        }
    }
}

/// The titles of the site table, which say how a script sorts their columns.
fn site_titles(summary: &Summary) -> Markup {
    let number = |title: &str| html! { th scope="col" data-kind="number" { (title) } };
    html! {
        th scope="col" data-kind="text" { "Site" }
        @if summary.plan.is_some() { th scope="col" data-kind="text" { "Tier" } }
        (number(summary.totals.counted.title()))
        @for title in ["Samples", "Peak RSS", "Hotness", "Allocations"] { (number(title)) }
        @if summary.totals.assumed_cache_bytes.is_some() { (number("Served by caches")) }
        @if summary.has_bandwidths() { (number("Bandwidth")) }
        @if summary.has_energies() { (number("Energy, modelled")) }
    }
}

/// One row for all sites that are not drawn.
fn other_sites(summary: &Summary, drawn: &[&SiteRow]) -> Markup {
    let others = summary.sites.len() - drawn.len();
    let whole = |of: fn(&SiteRow) -> u64| summary.sites.iter().map(of).fold(0, u64::saturating_add);
    let left = |of: fn(&SiteRow) -> u64| {
        let drawn = drawn.iter().map(|site| of(site));
        whole(of) - drawn.fold(0, u64::saturating_add)
    };
    let accesses = |site: &SiteRow| site.accesses;
    html! {
        @if others > 0 {
            tfoot {
                tr {
                    th scope="row" { (counted(others, "other site")) }
                    @if summary.plan.is_some() { td {} }
                    td.n { (percent(share(left(accesses), whole(accesses)))) }
                    td {}
                    td.n { (Bytes(left(|site| site.peak_rss_bytes))) }
                    td {}
                    td {}
                    @if summary.totals.assumed_cache_bytes.is_some() { td {} }
                    @if summary.has_bandwidths() { td {} }
                    @if summary.has_energies() { td {} }
                }
            }
        }
    }
}

fn site_row(site: &SiteRow, summary: &Summary) -> Markup {
    let plan = summary.plan.as_ref();
    let interval = site.accesses_share_low.zip(site.accesses_share_high);
    let interval = interval.map(|(low, high)| interval_words(low, high));
    let hotness = site.accesses_per_mib;
    html! {
        tr data-site=(site.site) {
            th scope="row" data-v=(name(&site.location)) {
                details { summary { (name(&site.location)) } (context(site)) }
            }
            @if let Some(plan) = plan {
                td { (badge(site.tier.as_deref().unwrap_or(""), plan)) }
            }
            td.n data-v=(site.accesses) {
                span.share { i style=(format!("width:{:.1}%", site.accesses_share * 100.0)) {} }
                span.figure {
                    (percent(site.accesses_share))
                    @if let Some(interval) = interval { " " small { (interval) } }
                }
            }
            td.n data-v=(site.samples.unwrap_or(0)) {
                (site.samples.map_or_else(|| "unknown".to_owned(), grouped))
            }
            td.n data-v=(site.peak_rss_bytes) { (Bytes(site.peak_rss_bytes)) }
            td.n data-v=(format!("{:.6}", hotness.unwrap_or(f64::from(f32::MAX)))) {
                (hotness.map_or_else(|| "no RSS seen".to_owned(), rate))
            }
            td.n data-v=(site.allocations) { (grouped(site.allocations)) }
            @if summary.totals.assumed_cache_bytes.is_some() {
                td.n data-v=(site.served_by_caches) { (percent(site.share_in_caches())) }
            }
            @if summary.has_bandwidths() {
                td.n data-v=(site.bandwidth_bytes_per_second.unwrap_or(0)) { (site.bandwidth()) }
            }
            @if summary.has_energies() {
                td.n data-v=(site.modelled_energy_joules.unwrap_or(0.0)) { (site.modelled_energy()) }
            }
        }
    }
}

/// The calling context of a site.
fn context(site: &SiteRow) -> Markup {
    let place = |caller: &SiteCaller| match (&caller.file, caller.line) {
        (Some(file), Some(line)) => Some(format!("{}:{line}", name(file))),
        _ if caller.function.is_some() && caller.module.is_empty() => None,
        _ => Some(format!("{} {}", name(&caller.module), caller.offset)),
    };
    let reason = site.reason.as_ref().filter(|reason| !reason.is_empty());
    html! {
        div.context {
            p { "site " code { (site.site) } ", " (site.kind) }
            @if let Some(reason) = reason { p { (clip(reason, 400)) } }
            ol {
                @for caller in site.callers.iter().take(CALLERS) {
                    li {
                        (name(&caller.text))
                        @if let Some(place) = place(caller) { " " small { (place) } }
                    }
                }
            }
        }
    }
}

/// Accesses for each MiB, three figures where small.
fn rate(rate: f64) -> String {
    match rate {
        0.0 => "0".to_owned(),
        rate if rate < 1.0 => format!("{rate:.2}"),
        rate if rate < 100.0 => format!("{rate:.1}"),
        rate => grouped(rate.round() as u64),
    }
}

/// The name of a tier, coloured where it is the fastest or the slowest.
fn badge(tier: &str, plan: &PlanSummary) -> Markup {
    let is = |other: Option<&TierUse>| other.is_some_and(|other| other.name == tier);
    let fast = is(plan.tiers.first());
    let slow = !fast && is(plan.tiers.last());
    html! { span.tier.fast[fast].slow[slow] { (name(tier)) } }
}

/// The tiers of a plan: their capacities, planned bytes and sites.
pub(super) fn plan(plan: &PlanSummary) -> Markup {
    let table = html! {
        table {
            (head(&["Tier"], &["Capacity", "Planned", "Sites"], &[]))
            tbody {
                @for tier in &plan.tiers {
                    tr {
                        th scope="row" {
                            (badge(&tier.name, plan))
                            @if tier.emulated { " emulated" }
                        }
                        td.n { (Bytes(tier.capacity_bytes)) }
                        td.n { (Bytes(tier.planned_bytes)) }
                        td.n { (grouped(tier.sites as u64)) }
                    }
                }
            }
        }
    };
    html! {
        (scrolled("Tiers of the plan", &table))
        @for words in plan.spills() { p.small { (words) } }
        @if plan.small_sites > 0 {
            p.small {
                (counted(plan.small_sites, "small site")) " of this run have no memory of their own; their data goes to "
                (name(&plan.small_tier)) ", with the arena that small sites share."
            }
        }
        @if plan.unnamed_sites > 0 {
            p.small {
                (counted(plan.unnamed_sites, "site")) " of this run are not named in the plan; their data goes to "
                (name(&plan.default_tier)) "."
            }
        }
    }
}

/// The sites that the plan places in parts, folded but for their sums.
pub(super) fn split_sites(summary: &Summary) -> Markup {
    let drawn = summary.split_sites.iter().take(SPLIT_SITES);
    let valued = summary.plan.as_ref().map_or("", |plan| &plan.valued);
    let table = html! {
        table {
            (head(&["Site and ranges of its data objects"], &["Fast bytes", "Of its bytes", "Of its heat"], &[]))
            tbody {
                @for site in drawn {
                    tr {
                        th scope="row" {
                            details { summary { (name(&site.location)) " " code { (site.site) } } (ranges(site)) }
                        }
                        td.n { (Bytes(site.fast_bytes)) }
                        td.n { (percent(site.fast_bytes_share)) }
                        td.n { (percent(site.fast_value_share)) }
                    }
                }
            }
        }
    };
    html! {
        section aria-labelledby="parts-title" id="parts" {
            h2 id="parts-title" { "Sites placed in parts" }
            p {
                "The plan puts ranges of these sites' data objects into different tiers. How much of each site is fast: its bytes, and what \
                 they take of its heat (" (valued) "). Open a site for its ranges, counted from the start of each object."
            }
            (scrolled("Sites placed in parts", &table))
            (more(summary.split_sites.len(), SPLIT_SITES, "site"))
        }
    }
}

/// The ranges of a site with parts.
fn ranges(site: &SplitSite) -> Markup {
    let shown = parts::shown(site);
    let more = site.ranges.len() - shown.len();
    html! {
        ul.context {
            @for range in &shown {
                li {
                    (name(&range.tier)) ": " (range.words()) ", "
                    (percent(range.bytes_share)) " of its bytes, " (percent(range.value_share)) " of its heat"
                }
            }
            @if more > 0 { li { (counted(more, "range")) " more" } }
        }
    }
}

/// The table of what each source delivered; one that delivered nothing stands out.
pub(super) fn sources(summary: &Summary) -> Markup {
    let numbers = ["Samples", "Usable", "Lost", "Own cost"];
    let table = html! {
        table {
            (head(&["Source"], &numbers, &["Known cost and warning"]))
            tbody {
                @for source in &summary.sources {
                    tr class=[source.silent.then_some("silent")] {
                        th scope="row" { (name(&source.name)) }
                        td.n { (grouped(source.taken_samples)) }
                        td.n { (grouped(source.usable_samples)) }
                        td.n { (grouped(source.lost_samples)) }
                        td.n { (Nanos(source.cost_ns)) }
                        td.words {
                            @if source.silent { strong { "Delivered nothing." } " " }
                            (clip(&source.warning, 1000))
                            @if !source.cost_note.is_empty() { " " span.small { (clip(&source.cost_note, 1000)) } }
                        }
                    }
                }
            }
        }
    };
    html! {
        section aria-labelledby="sources-title" {
            h2 id="sources-title" { "How accesses were seen" }
            (scrolled("Sources", &table))
        }
    }
}

/// The table of counters, folded.
pub(super) fn counters(summary: &Summary) -> Markup {
    let process = |counter: &CounterSummary| match (counter.pid, counter.image) {
        (Some(pid), Some(image)) if image > 0 => format!("{pid}, image {image}"),
        (Some(pid), _) => pid.to_string(),
        _ => "all".to_owned(),
    };
    let listed = &summary.counters[..summary.counters.len().min(COUNTERS)];
    let columns = DataTable::of(listed)
        .left("Counter", |counter| counter.name.clone())
        .left("Process", process)
        .right("Value", |counter| grouped(counter.value));
    html! {
        @if !summary.counters.is_empty() {
            section {
                details.fold {
                    summary { h2 { "Counters" } " " span.small { (grouped(summary.counters.len() as u64)) } }
                    (table("Counters", &columns))
                    (more(summary.counters.len(), COUNTERS, "counter"))
                }
            }
        }
    }
}

/// The table of the run and its machine, folded.
pub(super) fn run(summary: &Summary) -> Markup {
    let run = &summary.run;
    let depth = counted(run.context_depth, "caller");
    let epochs = format!("{} of {}", run.epochs, Nanos(run.epoch_length_ns));
    let facts = [
        ("Command", run.command_line()),
        ("Ending", run.ending_words()),
        ("Started", run.started.clone()),
        ("Epochs", epochs),
        ("Chunk", Bytes(run.chunk_bytes).to_string()),
        ("Calling context", format!("up to {depth}")),
        ("Isotherm", run.isotherm.clone()),
    ];
    let machine = run.machine.iter().take(FACTS);
    let machine = machine.map(|(what, value)| (what.as_str(), value.clone()));
    html! {
        section {
            details.fold {
                summary { h2 { "Run and machine" } }
                div.scroll {
                    table.facts {
                        tbody {
                            @for (what, value) in facts.into_iter().chain(machine) {
                                tr { th scope="row" { (name(what)) } td.words { (clip(&value, 2000)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
