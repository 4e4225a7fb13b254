//! The report as one page: static tables that need no script, and data for the charts.
//!
//! Whatever the profile's size, the page is bounded: so many sites, callers, counters, so many
//! characters of each name; the grid and the series are bounded where they are made. All text
//! passes [`escape`] (in markup) or [`data`] (in the script element).

use isotherm_model::units::{Bytes, Nanos};
use serde::Serialize;

use crate::summary::Summary;
use crate::text::EMULATED;
use crate::words::{clip, counted, grouped, percent};

mod tables;

pub(crate) const STYLE: &str = include_str!("../assets/report.css");
const SCRIPT: &str = include_str!("../assets/report.js");
const CHARTS: &str = include_str!("../assets/echarts.min.js");

/// Sites with a row and a point of their own.
const SITES: usize = 200;
/// Characters of a name.
const NAME: usize = 200;
/// Notes.
const NOTES: usize = 50;

/// The page.
pub(crate) fn render(summary: &Summary) -> String {
    let title = format!("Isotherm: {}", clip(&summary.run.program, NAME));
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#sites\">Skip to the sites</a>\n",
        escape(&title)
    );
    page += &header(summary);
    page += "<main>\n";
    page += &charts_first(summary);
    page += &tables::sites(summary, SITES);
    page += &charts_last(summary);
    page += &tables::sources(summary);
    page += &next(summary);
    page += &tables::counters(summary);
    page += &tables::run(summary);
    page += "</main>\n";
    page += &format!(
        "<script type=\"application/json\" id=\"data\">{}</script>\n<script>{CHARTS}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        data(summary)
    );
    page
}

/// Text as markup shows it.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(c),
        }
    }
    escaped
}

/// A name of bounded length as markup shows it.
pub(crate) fn name(text: &str) -> String {
    escape(&clip(text, NAME))
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
        location: clip(&site.location, NAME),
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
        row.location = clip(&row.location, NAME);
    }
    let mut resident = summary.resident.clone();
    for series in &mut resident.series {
        series.location = clip(&series.location, NAME);
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

fn header(summary: &Summary) -> String {
    let mut html = format!(
        "<header>\n<p class=\"brand\">Isotherm report</p>\n<h1>{}</h1>\n<p class=\"headline\">{}</p>\n",
        name(&summary.run.program),
        escape(&summary.headline)
    );
    if summary.run.emulated {
        html += &format!(
            "<p class=\"emulated\"><strong>{}</strong></p>\n",
            escape(EMULATED)
        );
    }
    if !summary.notes.is_empty() {
        html += "<ul class=\"notes\" role=\"alert\">\n";
        for note in summary.notes.iter().take(NOTES) {
            html += &format!("<li>{}</li>\n", escape(&clip(note, 1000)));
        }
        html += "</ul>\n";
    }
    html += "<dl class=\"figures\">\n";
    for (what, value, note) in figures(summary) {
        html += &format!(
            "<div><dt>{}</dt><dd><b>{}</b><span>{}</span></dd></div>\n",
            escape(&what),
            escape(&value),
            escape(&note)
        );
    }
    html + "</dl>\n</header>\n"
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

/// A chart: its place, its words, and what stands there without a script.
struct Chart<'a> {
    id: &'a str,
    title: &'a str,
    words: &'a str,
    /// What it shows, for those who do not see it.
    label: &'a str,
    /// Markup that follows it.
    after: &'a str,
}

impl Chart<'_> {
    fn render(&self) -> String {
        format!(
            "<section aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{}</h2>\n<p>{}</p>\n\
             <div class=\"chart\" id=\"{id}\" role=\"img\" aria-label=\"{}\"></div>\n\
             <noscript><p>The chart needs JavaScript; the tables of this page do not.</p></noscript>\n\
             {}</section>\n",
            escape(self.title),
            escape(self.words),
            escape(self.label),
            self.after,
            id = self.id,
        )
    }
}

fn charts_first(summary: &Summary) -> String {
    let totals = &summary.totals;
    let counted = totals.counted.noun();
    let mut words = format!(
        "Sites from hottest to coldest: how much capacity they fill, and how much of the {counted} they take. \
         The further the curve bends from the diagonal, the more a small fast tier can do."
    );
    if totals.peak_rss_sum_bytes > totals.footprint_bytes {
        words += " It ends beyond 100 % of the footprint because sites peak at different times.";
    }
    let curve = Chart {
        id: "curve",
        title: &format!("Capacity against {counted}"),
        words: &words,
        label: &summary.headline,
        after: "",
    };
    curve.render() + &summary.plan.as_ref().map(standing).unwrap_or_default()
}

fn standing(plan: &crate::plan::PlanSummary) -> String {
    let policy = clip(&plan.policy, 40);
    let chart = Chart {
        id: "standing",
        title: &format!("The plan beside first touch and the bound: {policy}"),
        words: &format!(
            "Share of the {} that {} of fast memory ({} of the footprint) serves. The bound is what no plan can exceed.",
            plan.valued,
            Bytes(plan.fast_capacity_bytes),
            percent(plan.fast_capacity_share)
        ),
        label: &format!(
            "First touch {}, this plan {}, bound {}",
            percent(plan.first_touch_share),
            percent(plan.planned_share),
            percent(plan.bound_share)
        ),
        after: &tables::plan(plan),
    };
    chart.render()
}

fn charts_last(summary: &Summary) -> String {
    let (rows, columns) = (summary.heat.rows.len(), summary.heat.columns.len());
    let heat = Chart {
        id: "heat",
        title: "Heat over time",
        words: &format!(
            "Each row is a part of a site's data by address, hottest site first; each column is time ({} over {}). Colour: {} for each MiB and second.",
            Nanos(summary.run.span_ns),
            counted(summary.run.epochs, "epoch"),
            summary.totals.counted.units()
        ),
        label: &format!(
            "Heat map of {} and {}",
            counted(rows, "row"),
            counted(columns, "column")
        ),
        after: "",
    };
    let words = format!(
        "What each site had in memory at the end of each epoch. The footprint is {}.",
        Bytes(summary.totals.footprint_bytes)
    );
    let resident = Chart {
        id: "resident",
        title: "Resident memory over time",
        words: &words,
        label: &words,
        after: "",
    };
    heat.render() + &resident.render()
}

fn next(summary: &Summary) -> String {
    if summary.next.is_empty() {
        return String::new();
    }
    let mut html = "<section aria-labelledby=\"next-title\">\n<h2 id=\"next-title\">What to run next</h2>\n<ol class=\"next\">\n".to_owned();
    for next in &summary.next {
        html += &format!(
            "<li><p>{}</p><div class=\"command\"><pre><code>{}</code></pre><button type=\"button\" class=\"copy\" hidden>Copy</button></div></li>\n",
            escape(&next.what),
            escape(&clip(&next.command, 4000))
        );
    }
    html + "</ol>\n</section>\n"
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
