//! Renders the report as one HTML page: static tables that need no script, and data for the charts.
//!
//! The size of the page is bounded for any profile: the numbers of sites, callers and counters and
//! the lengths of names are limited here, the grid and the series where they are made. All text
//! is escaped by `maud` (in markup) or by [`document`] (in the script element).

use std::collections::BTreeSet;
use std::fmt::Display;

use isotherm_model::units::{Bytes, Nanos};
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::energy;
use crate::page::{chart, document, name};
use crate::plan::PlanSummary;
use crate::sites::SiteRow;
use crate::summary::{HeatCell, HeatRow, SiteSeries, Summary};
use crate::text::EMULATED;
use crate::words::{clip, counted, grouped, percent};

use flame::FlameGraphs;

mod code;
mod flame;
mod tables;

/// Sites with a row and a point of their own.
const SITES: usize = 200;
/// Notes that are shown at most.
const NOTES: usize = 50;

/// The page.
pub(crate) fn render(summary: &Summary) -> String {
    let flame = FlameGraphs::new(summary, &sites_shown(summary));
    let body = html! {
        a.skip href="#sites" { "Skip to the sites" }
        (header(summary))
        main {
            (curve(summary))
            @if let Some(plan) = &summary.plan { (standing(plan)) }
            (flame.section())
            @if !summary.split_sites.is_empty() { (tables::split_sites(summary)) }
            (tables::sites(summary, SITES))
            @if !summary.functions.is_empty() { (code::section(summary)) }
            @if !summary.energy.is_empty() { (energy::section(&summary.energy)) }
            @if let Some(java) = &summary.java { (java.section()) }
            (charts_last(summary))
            (tables::sources(summary))
            (next(summary))
            (tables::counters(summary))
            (tables::run(summary))
            (flame.selected())
        }
    };
    let title = format!("Isotherm: {}", name(&summary.run.program));
    let mut charts = charts(summary);
    if let Some(flame) = flame.figures() {
        charts["flame"] = flame;
    }
    document(&title, &body, &charts)
}

/// The sites that are a row of the site table, a point of the curve or a row of the heat map: those that a selection can link.
fn sites_shown(summary: &Summary) -> BTreeSet<&str> {
    let rows = tables::rows(summary, SITES).into_iter();
    let points = summary.sites.iter().take(SITES);
    let heat = summary.heat.rows.iter().map(|row| row.site.as_str());
    let sites = rows.chain(points).map(|site| site.site.as_str());
    sites.chain(heat).filter(|site| !site.is_empty()).collect()
}

/// The figures that the charts draw.
fn charts(summary: &Summary) -> Value {
    let mut charts = json!({
        "curve": curve_figures(summary),
        "heat": heat_figures(summary),
        "resident": resident_figures(summary),
    });
    if let Some(plan) = &summary.plan {
        charts["standing"] = json!({ "kind": "standing", "plan": plan });
    }
    charts
}

/// The sites on the curve; the rest is one step to its end.
fn curve_figures(summary: &Summary) -> Value {
    let fastest = summary.plan.as_ref().and_then(|plan| plan.tiers.first());
    let point = |site: &SiteRow| {
        json!({
            "site": site.site,
            "location": name(&site.location),
            "tier": site.tier,
            "fast": fastest.is_some_and(|fastest| Some(&fastest.name) == site.tier.as_ref()),
            "accesses_share": site.accesses_share,
            "peak_rss_bytes": site.peak_rss_bytes,
            "capacity": site.cumulative_capacity_share,
            "accesses": site.cumulative_accesses_share,
        })
    };
    let mut points: Vec<Value> = summary.sites.iter().take(SITES).map(point).collect();
    if let ([.., drawn], [.., last]) = summary.sites.split_at(summary.sites.len().min(SITES)) {
        let mut rest = point(last);
        rest["site"] = Value::Null;
        rest["location"] = counted(summary.sites.len() - SITES, "other site").into();
        rest["tier"] = Value::Null;
        let share = last.cumulative_accesses_share - drawn.cumulative_accesses_share;
        rest["accesses_share"] = share.into();
        rest["peak_rss_bytes"] = (last.cumulative_bytes - drawn.cumulative_bytes).into();
        points.push(rest);
    }
    let totals = &summary.totals;
    json!({
        "kind": "curve",
        "counted": totals.counted.noun(),
        "hot_capacity_share": totals.hot_capacity_share,
        "hot_accesses_share": totals.hot_accesses_share,
        "sites": points,
        "plan": summary.plan,
    })
}

/// Each part of a site is a row; the first one has the site's name beside it.
fn heat_figures(summary: &Summary) -> Value {
    let row = |row: &HeatRow| {
        let location = name(&row.location);
        let (label, title) = match (row.parts, row.part) {
            (1, _) => (location.clone(), location),
            (parts, 1) => (location.clone(), format!("{location} part 1 of {parts}")),
            (parts, part) => (String::new(), format!("{location} part {part} of {parts}")),
        };
        json!({ "label": label, "title": title, "site": row.site })
    };
    let cell = |cell: &HeatCell| {
        let rate = cell.accesses_per_mib_second;
        json!([cell.column, cell.row, cell.accesses, rate])
    };
    let heat = &summary.heat;
    json!({
        "kind": "heat",
        "counted": summary.totals.counted.noun(),
        "valued": "for each MiB and second",
        "columns": heat.columns,
        "rows": heat.rows.iter().map(row).collect::<Vec<_>>(),
        "cells": heat.cells.iter().map(cell).collect::<Vec<_>>(),
    })
}

fn resident_figures(summary: &Summary) -> Value {
    let series = |series: &SiteSeries| json!({ "site": series.site, "location": name(&series.location), "bytes": series.bytes });
    let resident = &summary.resident;
    json!({
        "kind": "resident",
        "times_ns": resident.times_ns,
        "series": resident.series.iter().map(series).collect::<Vec<_>>(),
    })
}

fn header(summary: &Summary) -> Markup {
    html! {
        header {
            p.brand { "Isotherm report" }
            h1 { (name(&summary.run.program)) }
            p.headline { (summary.headline) }
            @if let Some(served) = summary.totals.served_in_words() { p { (served) } }
            @if summary.run.emulated {
                p.emulated { strong { (EMULATED) } }
            }
            @if !summary.notes.is_empty() {
                div role="alert" {
                    ul.notes { @for note in summary.notes.iter().take(NOTES) { li { (clip(note, 1000)) } } }
                }
            }
            dl.figures { (figures(summary)) }
        }
    }
}

/// The figures below the headline.
fn figures(summary: &Summary) -> Markup {
    let totals = &summary.totals;
    let hot_capacity = percent(totals.hot_capacity_share);
    let hot_words = format!("on the hottest {hot_capacity} of the footprint");
    let unattributed = grouped(totals.unattributed_accesses);
    let on_sites = format!("on sites; {unattributed} more on stacks, data and libraries");
    html! {
        (figure("footprint", Bytes(totals.footprint_bytes), "most bytes of all sites resident at one time"))
        (figure(&format!("of the {}", totals.counted.noun()), percent(totals.hot_accesses_share), &hot_words))
        @if let Some(plan) = &summary.plan {
            @let policy = format!("reached by the {} plan", clip(&plan.policy, 40));
            (figure("of the bound", percent(plan.planned_of_bound), &policy))
        }
        (figure("sites", grouped(totals.sites as u64), "allocation sites that can be placed"))
        (figure(&totals.counted.units(), grouped(totals.accesses), &on_sites))
    }
}

/// One figure: what it is of, how much, and a note.
fn figure(what: &str, value: impl Display, note: &str) -> Markup {
    html! { div { dt { (what) } dd { b { (value.to_string()) } span { (note) } } } }
}

fn curve(summary: &Summary) -> Markup {
    let totals = &summary.totals;
    let counted = totals.counted.noun();
    let mut words = format!(
        "Sites from hottest to coldest: how much capacity they fill, and how much of the {counted} they take. \
         The further the curve bends from the diagonal, the more a small fast tier can do."
    );
    if totals.peak_rss_sum_bytes > totals.footprint_bytes {
        words += " It ends beyond 100 % of the footprint because sites peak at different times.";
    }
    let title = format!("Capacity against {counted}");
    chart("curve", &title, &words, &summary.headline, &html! {})
}

fn standing(plan: &PlanSummary) -> Markup {
    let policy = clip(&plan.policy, 40);
    let title = format!("The plan beside first touch and the bound: {policy}");
    let words = format!(
        "Share of the {} that {} of fast memory ({} of the footprint) serves. The bound is what no plan can exceed.",
        plan.valued,
        Bytes(plan.fast_capacity_bytes),
        percent(plan.fast_capacity_share)
    );
    let label = format!(
        "First touch {}, this plan {}, bound {}",
        percent(plan.first_touch_share),
        percent(plan.planned_share),
        percent(plan.bound_share)
    );
    chart("standing", &title, &words, &label, &tables::plan(plan))
}

fn charts_last(summary: &Summary) -> Markup {
    let heat_words = format!(
        "Each row is a part of a site's data by address, hottest site first; each column is time ({} over {}). Colour: {} for each MiB and second.",
        Nanos(summary.run.span_ns),
        counted(summary.run.epochs, "epoch"),
        summary.totals.counted.units()
    );
    let heat_label = format!(
        "Heat map of {} and {}",
        counted(summary.heat.rows.len(), "row"),
        counted(summary.heat.columns.len(), "column")
    );
    let words = format!(
        "What each site had in memory at the end of each epoch. The footprint is {}.",
        Bytes(summary.totals.footprint_bytes)
    );
    html! {
        (chart("heat", "Heat over time", &heat_words, &heat_label, &time_controls()))
        (chart("resident", "Resident memory over time", &words, &words, &html! {}))
    }
}

/// The controls for the part of the run that both charts over time show; a script makes them visible.
fn time_controls() -> Markup {
    let number = |id: &str| html! { input type="number" id=(id) min="0" step="any"; };
    html! {
        div.controls id="time-controls" hidden {
            label { "Shown from " (number("time-from")) }
            label { "to " (number("time-to")) " seconds of the run" }
            button.plain type="button" id="time-whole" hidden { "Whole run" }
        }
    }
}

fn next(summary: &Summary) -> Markup {
    html! {
        @if !summary.next.is_empty() {
            section aria-labelledby="next-title" {
                h2 id="next-title" { "What to run next" }
                ol.next {
                    @for next in &summary.next {
                        li {
                            p { (next.what) }
                            div.command {
                                pre { code { (clip(&next.command, 4000)) } }
                                button.copy type="button" hidden { "Copy" }
                            }
                        }
                    }
                }
            }
        }
    }
}
