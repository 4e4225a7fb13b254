//! Formats a [`Summary`], the figures of `isotherm report`, for a terminal.

use isotherm_model::units::{Bytes, Nanos};

use crate::code_functions;
use crate::energy;
use crate::java::JavaSummary;
use crate::location;
use crate::noise::interval;
use crate::parts;
use crate::plot;
use crate::sites::{SiteRow, by_share, folded};
use crate::summary::{SourceSummary, Summary};
use crate::table::DataTable;
use crate::words::{and_more, clip, grouped, percent, wrapped};

/// Sites in the table at most.
const SITES: usize = 20;
/// The sentence of a report about emulated tiers, as text and as a page.
pub(crate) const EMULATED: &str = "Emulated: the slow tier is this machine's ordinary memory, slowed; \
     times show what placement changes, not what a product would reach.";

/// The whole report, `columns` wide where names can be cut; commands are not cut.
pub(crate) fn render(summary: &Summary, columns: usize) -> String {
    let mut text = wrapped(&summary.headline, columns, "");
    if summary.run.emulated {
        text += &wrapped(EMULATED, columns, "");
    }
    if let Some(served) = summary.totals.served_in_words() {
        text += &wrapped(&served, columns, "");
    }
    for note in &summary.notes {
        text += &wrapped(&format!("! {note}"), columns, "  ");
    }
    if summary.totals.accesses > 0 {
        let counted = summary.totals.counted.noun();
        let title = format!("Share of the {counted} by capacity, hottest sites first");
        text += &format!("\n{}", wrapped(&title, columns, ""));
        text += &curve(summary, columns);
    }
    let code = (&summary.functions[..], &summary.sites[..]);
    let plan = summary.plan.as_ref();
    let split = plan.map(|plan| parts::render(&summary.split_sites, &plan.valued, columns));
    let energy = Some(&summary.energy[..]).filter(|energy| !energy.is_empty());
    let parts = [
        Some(sites(summary, columns)),
        Some(code_functions::render(
            code,
            summary.totals.counted,
            columns,
        )),
        plan.map(|plan| standing(plan, columns)),
        split,
        energy.map(|energy| energy::text(energy, columns)),
        summary.java.as_ref().map(JavaSummary::text),
        Some(sources(summary)),
    ];
    for part in parts.iter().flatten().filter(|part| !part.is_empty()) {
        text += &format!("\n{part}");
    }
    if !summary.next.is_empty() {
        text += "\nNext\n";
    }
    for next in &summary.next {
        text += &format!("  {}:\n    {}\n", next.what, clip(&next.command, 4000));
    }
    text
}

/// A bar of up to `width` characters, in eighths of a character.
fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

fn curve(summary: &Summary, columns: usize) -> String {
    let width = columns.min(100) - plot::MARGIN - 1;
    let end = summary.totals.peak_rss_sum_bytes;
    let mut text = plot::area(width, |way| {
        summary.curve.share_at(Bytes((end as f64 * way) as u64))
    });
    text += &plot::ends(width, "0 B", &Bytes(end).to_string());
    let capacity = match &summary.plan {
        Some(plan) => plan.fast_capacity_bytes,
        None => summary.totals.hot_capacity_bytes,
    };
    if capacity <= end && end > 0 {
        let column = (capacity as f64 / end as f64 * (width - 1) as f64) as usize;
        let share = percent(summary.curve.share_at(Bytes(capacity)));
        let what = format!("{}: {share}", Bytes(capacity));
        let pointer = if column + 2 + what.chars().count() < width {
            format!("{}▲ {what}", " ".repeat(column))
        } else {
            let before = column.saturating_sub(what.chars().count() + 1);
            format!("{}{what} ▲", " ".repeat(before))
        };
        text += &format!("       {pointer}\n");
    }
    text
}

/// The site table without the locations: the titles and a line for each site.
fn figures(summary: &Summary, shown: &[&SiteRow], columns: usize) -> String {
    // The location needs room most; a narrow terminal goes without the bar, the interval and the samples.
    let wide = columns >= 80;
    let bar_cells = if columns >= 120 { 12 } else { 6 };
    let sampled = summary.sites.iter().any(|site| site.samples.is_some());
    let mut table = DataTable::of(shown).right("share", |site| percent(site.accesses_share));
    if wide {
        table = table.left("", move |site| bar(site.accesses_share, bar_cells));
    }
    if columns >= 100 && sampled {
        table = table.right("interval", |site| {
            let ends = site.accesses_share_low.zip(site.accesses_share_high);
            ends.map_or(String::new(), |(low, high)| interval(low, high))
        });
    }
    if wide && sampled {
        table = table.right("samples", |site| {
            site.samples.map_or(String::new(), grouped)
        });
    }
    if wide && summary.totals.assumed_cache_bytes.is_some() {
        table = table.right("in caches", |site| percent(site.share_in_caches()));
    }
    if wide && summary.has_bandwidths() {
        table = table.right("bandwidth", |site| site.bandwidth());
    }
    if wide && summary.has_energies() {
        table = table.right("modelled", |site| site.modelled_energy());
    }
    table = table
        .right("peak RSS", |site| Bytes(site.peak_rss_bytes))
        .left("site", |site| site.site.clone());
    if summary.plan.is_some() {
        table = table.left("tier", |site| site.tier.clone().unwrap_or_default());
    }
    table.render()
}

fn sites(summary: &Summary, columns: usize) -> String {
    let mut telling = by_share(&summary.sites);
    telling.retain(|site| !site.below_noise);
    let shown = &telling[..telling.len().min(SITES)];
    let fixed = figures(summary, shown, columns);
    let mut text = location::beside(&fixed, shown.iter().map(|site| &site.place), columns);
    text += &and_more(telling.len(), shown.len(), "site");
    if let Some(folded) = folded(&summary.sites, summary.totals.counted) {
        text += &wrapped(&folded, columns, "");
    }
    if summary.totals.unattributed_accesses > 0 {
        let unattributed = format!(
            "{} of the {} seen fell on stacks, program data and libraries, which have no site.",
            percent(summary.totals.unattributed_share()),
            summary.totals.counted.noun()
        );
        text += &wrapped(&unattributed, columns, "");
    }
    text
}

fn standing(plan: &crate::plan::PlanSummary, columns: usize) -> String {
    let width = columns.min(100) - 28;
    let line = |name: &str, share: f64| {
        format!("  {name:<12}{:>6}  {}\n", percent(share), bar(share, width))
    };
    let title = format!(
        "Plan by {}: share of the {} that {} of fast memory serves",
        plan.policy,
        plan.valued,
        Bytes(plan.fast_capacity_bytes)
    );
    let mut text = wrapped(&title, columns, "");
    text += &line("first touch", plan.first_touch_share);
    text += &line("this plan", plan.planned_share);
    text += &line("bound", plan.bound_share);
    let of_bound = percent(plan.planned_of_bound);
    text += &format!("  the plan reaches {of_bound} of the bound\n");
    for words in plan.spills() {
        text += &wrapped(&format!("  {words}"), columns, "  ");
    }
    text
}

fn sources(summary: &Summary) -> String {
    // The reason why a source is silent is among the notes.
    let warning = |source: &SourceSummary| match source.silent {
        true => "DELIVERED NOTHING".to_owned(),
        false => source.warning.clone(),
    };
    DataTable::of(&summary.sources)
        .left("source", |source| source.name.clone())
        .right("samples", |source| grouped(source.taken_samples))
        .right("usable", |source| grouped(source.usable_samples))
        .right("lost", |source| grouped(source.lost_samples))
        .right("cost", |source| Nanos(source.cost_ns))
        .left("warning", warning)
        .render()
}
