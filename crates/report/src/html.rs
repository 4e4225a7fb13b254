//! The report as one page: static tables that need no script, and data for the charts.
//!
//! Whatever the profile's size, the page is bounded: so many sites, callers, counters, so many
//! characters of each name; the grid and the series are bounded where they are made. All text
//! is escaped by `maud` (in markup) or by [`data`] (in the script element).

use isotherm_model::units::{Bytes, Nanos};
use maud::{Markup, PreEscaped, html};
use serde::Serialize;

use crate::page::{document, name};
use crate::plan::PlanSummary;
use crate::summary::Summary;
use crate::text::EMULATED;
use crate::words::{clip, counted, grouped, percent};

mod tables;

const SCRIPT: &str = include_str!("../assets/report.js");
const CHARTS: &str = include_str!("../assets/echarts.min.js");

/// Sites with a row and a point of their own.
const SITES: usize = 200;
/// Notes.
const NOTES: usize = 50;

/// The page.
pub(crate) fn render(summary: &Summary) -> String {
    let body = html! {
        a.skip href="#sites" { "Skip to the sites" }
        (header(summary))
        main {
            (curve(summary))
            @if let Some(plan) = &summary.plan { (standing(plan)) }
            (tables::sites(summary, SITES))
            (charts_last(summary))
            (tables::sources(summary))
            (next(summary))
            (tables::counters(summary))
            (tables::run(summary))
        }
        script type="application/json" id="data" { (PreEscaped(data(summary))) }
        script { (PreEscaped(CHARTS)) }
        script { (PreEscaped(SCRIPT)) }
    };
    let title = format!("Isotherm: {}", name(&summary.run.program));
    document(&title, &body)
}

/// The figures the charts draw.
#[derive(Serialize)]
struct Data<'a> {
    /// What was counted, in words.
    counted: &'static str,
    epochs: usize,
    footprint_bytes: u64,
    hot_capacity_share: f64,
    hot_accesses_share: f64,
    sites: Vec<Point>,
    heat: &'a crate::heat::HeatGrid,
    resident: &'a crate::resident::ResidentSeries,
    plan: &'a Option<crate::plan::PlanSummary>,
}

/// A site on the curve.
#[derive(Serialize)]
struct Point {
    location: String,
    tier: Option<String>,
    fast: bool,
    accesses_share: f64,
    peak_rss_bytes: u64,
    capacity: f64,
    accesses: f64,
}

/// The figures as JSON that cannot end the script element it stands in: `<`, `>` and `&` occur in
/// JSON only within strings, where `\u003c` means the same.
fn data(summary: &Summary) -> String {
    let fastest = summary.plan.as_ref().and_then(|plan| plan.tiers.first());
    let point = |site: &crate::sites::SiteRow| Point {
        location: name(&site.location),
        tier: site.tier.clone(),
        fast: fastest.is_some_and(|fastest| Some(&fastest.name) == site.tier.as_ref()),
        accesses_share: site.accesses_share,
        peak_rss_bytes: site.peak_rss_bytes,
        capacity: site.cumulative_capacity_share,
        accesses: site.cumulative_accesses_share,
    };
    let mut points: Vec<Point> = summary.sites.iter().take(SITES).map(point).collect();
    // The rest is one step to the end of the curve.
    if let Some(last) = summary.sites.get(SITES..).and_then(<[_]>::last) {
        let drawn = points.last().map_or(0.0, |point| point.accesses);
        let bytes = summary
            .sites
            .get(SITES - 1)
            .map_or(0, |site| site.cumulative_bytes);
        points.push(Point {
            location: counted(summary.sites.len() - SITES, "other site"),
            tier: None,
            accesses_share: last.cumulative_accesses_share - drawn,
            peak_rss_bytes: last.cumulative_bytes - bytes,
            ..point(last)
        });
    }
    let mut heat = summary.heat.clone();
    for row in &mut heat.rows {
        row.location = name(&row.location);
    }
    let mut resident = summary.resident.clone();
    for series in &mut resident.series {
        series.location = name(&series.location);
    }
    let data = Data {
        counted: summary.totals.counted.noun(),
        epochs: summary.run.epochs,
        footprint_bytes: summary.totals.footprint_bytes,
        hot_capacity_share: summary.totals.hot_capacity_share,
        hot_accesses_share: summary.totals.hot_accesses_share,
        sites: points,
        heat: &heat,
        resident: &resident,
        plan: &summary.plan,
    };
    let json = serde_json::to_string(&data).unwrap_or_default();
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

fn header(summary: &Summary) -> Markup {
    html! {
        header {
            p.brand { "Isotherm report" }
            h1 { (name(&summary.run.program)) }
            p.headline { (summary.headline) }
            @if summary.run.emulated {
                p.emulated { strong { (EMULATED) } }
            }
            @if !summary.notes.is_empty() {
                ul.notes role="alert" {
                    @for note in summary.notes.iter().take(NOTES) { li { (clip(note, 1000)) } }
                }
            }
            dl.figures {
                @for (what, value, note) in figures(summary) {
                    div { dt { (what) } dd { b { (value) } span { (note) } } }
                }
            }
        }
    }
}

/// The figures below the headline: what, how much, and of what.
fn figures(summary: &Summary) -> Vec<(String, String, String)> {
    let totals = &summary.totals;
    let mut figures = vec![
        (
            "footprint".to_owned(),
            Bytes(totals.footprint_bytes).to_string(),
            "most bytes of all sites resident at one time".to_owned(),
        ),
        (
            format!("of the {}", totals.counted.noun()),
            percent(totals.hot_accesses_share),
            format!(
                "on the hottest {} of the footprint",
                percent(totals.hot_capacity_share)
            ),
        ),
        (
            "sites".to_owned(),
            grouped(totals.sites as u64),
            "allocation sites that can be placed".to_owned(),
        ),
        (
            totals.counted.units(),
            grouped(totals.accesses),
            format!(
                "on sites; {} more on stacks, data and libraries",
                grouped(totals.unattributed_accesses)
            ),
        ),
    ];
    if let Some(plan) = &summary.plan {
        figures.insert(
            2,
            (
                "of the bound".to_owned(),
                percent(plan.planned_of_bound),
                format!("reached by the {} plan", clip(&plan.policy, 40)),
            ),
        );
    }
    figures
}

/// A section with a chart: its place, its words, what it shows for those who do not see it, and what stands there without
/// a script.
fn chart(id: &str, title: &str, words: &str, label: &str, after: &Markup) -> Markup {
    let title_id = format!("{id}-title");
    html! {
        section aria-labelledby=(title_id) {
            h2 id=(title_id) { (title) }
            p { (words) }
            div.chart id=(id) role="img" aria-label=(label) {}
            noscript { p { "The chart needs JavaScript; the tables of this page do not." } }
            (after)
        }
    }
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
        (chart("heat", "Heat over time", &heat_words, &heat_label, &html! {}))
        (chart("resident", "Resident memory over time", &words, &words, &html! {}))
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

#[cfg(test)]
mod tests {
    #[test]
    fn no_script_of_the_page_ends_its_own_element() {
        for script in [super::CHARTS, super::SCRIPT] {
            assert!(!script.contains("</script") && !script.contains("<!--"));
        }
    }
}
