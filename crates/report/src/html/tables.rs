//! The tables of the page.

use isotherm_model::units::{Bytes, Nanos};

use super::{escape, name};
use crate::noise::interval;
use crate::plan::PlanSummary;
use crate::sites::{SiteRow, by_share, folded};
use crate::summary::Summary;
use crate::words::{clip, counted, grouped, percent, share};

/// Callers of a context that are listed.
const CALLERS: usize = 16;
/// Counters.
const COUNTERS: usize = 300;
/// Facts of the machine.
const FACTS: usize = 40;

/// The site table: sortable and filterable with a script, complete without.
pub(super) fn sites(summary: &Summary, limit: usize) -> String {
    let unit = summary.totals.counted;
    let mut html = format!(
        "<section aria-labelledby=\"sites-title\" id=\"sites\">\n<h2 id=\"sites-title\">Allocation sites</h2>\n\
         <p>By share of the {}, with the interval that the samples leave (Wilson, 95 %). Hotness is {} for each MiB of peak RSS. Open a site for its calling context.</p>\n\
         <p class=\"filter\" hidden><label>Filter <input type=\"search\" id=\"filter\" placeholder=\"function, file or site\"></label> <output id=\"matches\" for=\"filter\"></output></p>\n\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Allocation sites\"><table id=\"site-table\">\n<thead><tr>",
        unit.noun(),
        unit.units()
    );
    let planned = summary.plan.is_some();
    let mut titles = vec![
        ("text", "Site"),
        ("number", unit.title()),
        ("number", "Samples"),
        ("number", "Peak RSS"),
        ("number", "Hotness"),
        ("number", "Allocations"),
    ];
    if planned {
        titles.insert(1, ("text", "Tier"));
    }
    for (kind, title) in titles {
        html += &format!("<th scope=\"col\" data-kind=\"{kind}\">{title}</th>");
    }
    html += "</tr></thead>\n<tbody>\n";
    // A site that shared an arena has neither accesses nor RSS of its own; rows of zeroes tell
    // nothing.
    let telling = |site: &&SiteRow| site.accesses > 0 || site.peak_rss_bytes > 0;
    let telling = |site: &&SiteRow| telling(site) && !site.below_noise;
    let sorted = by_share(&summary.sites).into_iter();
    let drawn: Vec<&SiteRow> = sorted.filter(telling).take(limit).collect();
    for site in &drawn {
        html += &site_row(site, summary.plan.as_ref());
    }
    html += "</tbody>\n";
    let others = summary.sites.len() - drawn.len();
    let whole = |of: fn(&SiteRow) -> u64| summary.sites.iter().map(of).fold(0, u64::saturating_add);
    let left = |of: fn(&SiteRow) -> u64| {
        let drawn = drawn.iter().map(|site| of(site));
        whole(of) - drawn.fold(0, u64::saturating_add)
    };
    if others > 0 {
        html += &format!(
            "<tfoot><tr><th scope=\"row\">{}</th>{}<td class=\"n\">{}</td><td></td><td class=\"n\">{}</td><td></td><td></td></tr></tfoot>\n",
            counted(others, "other site"),
            if planned { "<td></td>" } else { "" },
            escape(&percent(share(
                left(|site| site.accesses),
                whole(|site| site.accesses)
            ))),
            Bytes(left(|site| site.peak_rss_bytes)),
        );
    }
    html += "</table></div>\n";
    if let Some(folded) = folded(&summary.sites, summary.totals.counted) {
        html += &format!("<p class=\"small\">{}.</p>\n", escape(&folded));
    }
    if summary.totals.unattributed_accesses > 0 {
        html += &format!(
            "<p class=\"small\">{} of the {} seen fell on stacks, program data and libraries, which have no site and are not in this table.</p>\n",
            escape(&percent(summary.totals.unattributed_share())),
            unit.noun()
        );
    }
    html + "</section>\n"
}

fn site_row(site: &SiteRow, plan: Option<&PlanSummary>) -> String {
    let mut html = format!(
        "<tr><th scope=\"row\" data-v=\"{}\"><details><summary>{}</summary>",
        name(&site.location),
        name(&site.location)
    );
    html += &format!(
        "<div class=\"context\"><p>site <code>{}</code>, {}</p>",
        escape(&site.site),
        site.kind
    );
    if let Some(reason) = site.reason.as_ref().filter(|reason| !reason.is_empty()) {
        html += &format!("<p>{}</p>", escape(&clip(reason, 400)));
    }
    html += "<ol>";
    for caller in site.callers.iter().take(CALLERS) {
        html += &format!("<li>{}", name(&caller.text));
        if let (Some(file), Some(line)) = (&caller.file, caller.line) {
            html += &format!(" <small>{}:{line}</small>", name(file));
        } else if caller.function.is_none() || !caller.module.is_empty() {
            html += &format!(
                " <small>{} {}</small>",
                name(&caller.module),
                escape(&caller.offset)
            );
        }
        html += "</li>";
    }
    html += "</ol></div></details></th>";
    if let Some(plan) = plan {
        let tier = site.tier.as_deref().unwrap_or("");
        html += &format!("<td>{}</td>", badge(tier, plan));
    }
    let ends = site.accesses_share_low.zip(site.accesses_share_high);
    html += &format!(
        "<td class=\"n\" data-v=\"{}\"><span class=\"share\"><i style=\"width:{:.1}%\"></i></span><span class=\"figure\">{}{}</span></td>",
        site.accesses,
        site.accesses_share * 100.0,
        escape(&percent(site.accesses_share)),
        ends.map_or(String::new(), |(low, high)| format!(
            " <small>{}</small>",
            escape(&interval(low, high))
        ))
    );
    html += &format!(
        "<td class=\"n\" data-v=\"{}\">{}</td>",
        site.samples.unwrap_or(0),
        site.samples.map_or_else(|| "unknown".to_owned(), grouped)
    );
    html += &format!(
        "<td class=\"n\" data-v=\"{}\">{}</td>",
        site.peak_rss_bytes,
        Bytes(site.peak_rss_bytes)
    );
    let hotness = site.accesses_per_mib;
    html += &format!(
        "<td class=\"n\" data-v=\"{:.6}\">{}</td>",
        hotness.unwrap_or(f64::from(f32::MAX)),
        hotness.map_or_else(|| "no RSS seen".to_owned(), rate)
    );
    html += &format!(
        "<td class=\"n\" data-v=\"{}\">{}</td></tr>\n",
        site.allocations,
        grouped(site.allocations)
    );
    html
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
fn badge(tier: &str, plan: &PlanSummary) -> String {
    let is = |other: Option<&crate::plan::TierUse>| other.is_some_and(|other| other.name == tier);
    let class = match (is(plan.tiers.first()), is(plan.tiers.last())) {
        (true, _) => " fast",
        (false, true) => " slow",
        (false, false) => "",
    };
    format!("<span class=\"tier{class}\">{}</span>", name(tier))
}

/// What the plan puts where.
pub(super) fn plan(plan: &PlanSummary) -> String {
    let mut html = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Tiers of the plan\"><table><thead><tr><th scope=\"col\">Tier</th><th scope=\"col\" class=\"n\">Capacity</th><th scope=\"col\" class=\"n\">Planned</th><th scope=\"col\" class=\"n\">Sites</th></tr></thead><tbody>\n".to_owned();
    for tier in &plan.tiers {
        html += &format!(
            "<tr><th scope=\"row\">{0}{1}</th><td class=\"n\">{2}</td><td class=\"n\">{3}</td><td class=\"n\">{4}</td></tr>\n",
            badge(&tier.name, plan),
            if tier.emulated { " emulated" } else { "" },
            Bytes(tier.capacity_bytes),
            Bytes(tier.planned_bytes),
            grouped(tier.sites as u64)
        );
    }
    html += "</tbody></table></div>\n";
    for words in plan.spills() {
        html += &format!("<p class=\"small\">{}</p>\n", escape(&words));
    }
    if plan.small_sites > 0 {
        html += &format!(
            "<p class=\"small\">{} of this run have no memory of their own; their data goes to {}, with the arena that \
             small sites share.</p>\n",
            counted(plan.small_sites, "small site"),
            name(&plan.small_tier)
        );
    }
    if plan.unnamed_sites > 0 {
        html += &format!(
            "<p class=\"small\">{} of this run are not named in the plan; their data goes to {}.</p>\n",
            counted(plan.unnamed_sites, "site"),
            name(&plan.default_tier)
        );
    }
    html
}

/// What each source delivered; one that delivered nothing stands out.
pub(super) fn sources(summary: &Summary) -> String {
    let mut html = "<section aria-labelledby=\"sources-title\">\n<h2 id=\"sources-title\">How accesses were seen</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Sources\"><table><thead><tr><th scope=\"col\">Source</th><th scope=\"col\" class=\"n\">Samples</th><th scope=\"col\" class=\"n\">Usable</th><th scope=\"col\" class=\"n\">Lost</th><th scope=\"col\" class=\"n\">Own cost</th><th scope=\"col\">Known cost and trouble</th></tr></thead><tbody>\n".to_owned();
    for source in &summary.sources {
        html += &format!(
            "<tr{}><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"words\">",
            if source.silent {
                " class=\"silent\""
            } else {
                ""
            },
            name(&source.name),
            grouped(source.taken_samples),
            grouped(source.usable_samples),
            grouped(source.lost_samples),
            Nanos(source.cost_ns)
        );
        if source.silent {
            html += "<strong>Delivered nothing.</strong> ";
        }
        html += &escape(&clip(&source.trouble, 1000));
        if !source.cost_note.is_empty() {
            html += &format!(
                " <span class=\"small\">{}</span>",
                escape(&clip(&source.cost_note, 1000))
            );
        }
        html += "</td></tr>\n";
    }
    html + "</tbody></table></div>\n</section>\n"
}

/// Counters, folded.
pub(super) fn counters(summary: &Summary) -> String {
    if summary.counters.is_empty() {
        return String::new();
    }
    let mut html = format!(
        "<section>\n<details class=\"fold\"><summary><h2>Counters</h2> <span class=\"small\">{}</span></summary>\n<div class=\"scroll\"><table><thead><tr><th scope=\"col\">Counter</th><th scope=\"col\">Process</th><th scope=\"col\" class=\"n\">Value</th></tr></thead><tbody>\n",
        grouped(summary.counters.len() as u64)
    );
    for counter in summary.counters.iter().take(COUNTERS) {
        let process = match (counter.pid, counter.image) {
            (Some(pid), Some(image)) if image > 0 => format!("{pid}, image {image}"),
            (Some(pid), _) => pid.to_string(),
            _ => "all".to_owned(),
        };
        html += &format!(
            "<tr><th scope=\"row\">{}</th><td>{process}</td><td class=\"n\">{}</td></tr>\n",
            name(&counter.name),
            grouped(counter.value)
        );
    }
    let more = summary.counters.len().saturating_sub(COUNTERS);
    html += "</tbody></table></div>\n";
    if more > 0 {
        html += &format!(
            "<p class=\"small\">{} more are in the JSON report.</p>\n",
            grouped(more as u64)
        );
    }
    html + "</details>\n</section>\n"
}

/// What was run, where and how, folded.
pub(super) fn run(summary: &Summary) -> String {
    let run = &summary.run;
    let mut facts = vec![
        ("Command".to_owned(), run.command_line()),
        ("Ending".to_owned(), run.ending_words()),
        ("Started".to_owned(), run.started.clone()),
        (
            "Epochs".to_owned(),
            format!("{} of {}", run.epochs, Nanos(run.epoch_length_ns)),
        ),
        ("Chunk".to_owned(), Bytes(run.chunk_bytes).to_string()),
        (
            "Calling context".to_owned(),
            format!("up to {}", counted(run.context_depth as usize, "caller")),
        ),
        ("Isotherm".to_owned(), run.isotherm.clone()),
    ];
    facts.extend(run.machine.iter().take(FACTS).cloned());
    let mut html = "<section>\n<details class=\"fold\"><summary><h2>Run and machine</h2></summary>\n<div class=\"scroll\"><table class=\"facts\"><tbody>\n".to_owned();
    for (what, value) in facts {
        html += &format!(
            "<tr><th scope=\"row\">{}</th><td class=\"words\">{}</td></tr>\n",
            name(&what),
            escape(&clip(&value, 2000))
        );
    }
    html + "</tbody></table></div>\n</details>\n</section>\n"
}
