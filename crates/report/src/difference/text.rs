//! Formats a [`ProfileDifference`], the output of `isotherm diff`, for a terminal: notes, totals of both runs, how many sites were found
//! again, the sites that changed beyond the noise, and the results of the conditions of `--fail-if`.
//!
//! ```text
//!                before     after  change
//! time           2.31 s    2.90 s   +26 %
//! footprint     512 MiB   600 MiB   +17 %
//!
//! change          waiting before  after   RSS before       after    allocated in
//! hotter, larger  120 ms          340 ms  12 MiB           20 MiB   graph.cc:88 load: edges
//! new                             80 ms                    4 MiB    graph.cc:92 index
//! ```

use isotherm_model::units::{Bytes, Nanos};

use super::heat_in_words;
use super::verdict::growth;
use super::{DifferenceRun, ProfileDifference, SiteChangeKind, SiteDifference, SiteFigures};
use crate::location;
use crate::table::DataTable;
use crate::words::{and_more, clip, counted, grouped, percent, wrapped};

/// Sites in the table at most.
const SITES: usize = 20;
/// Indent of the further lines of a sentence.
const INDENT: &str = "  ";

impl ProfileDifference {
    /// The difference for a terminal of this width; 60 columns at least are used.
    #[must_use]
    pub fn text(&self, columns: usize) -> String {
        let columns = columns.max(60);
        let mut text = String::new();
        for (word, run) in [("before", &self.before), ("after ", &self.after)] {
            let line = format!("{word}  {}: {}", run.profile, run.command);
            text += &(clip(&line, columns) + "\n");
        }
        for note in &self.notes {
            text += &wrapped(&format!("! {note}"), columns, INDENT);
        }
        text += &format!("\n{}\n", self.totals());
        text += &wrapped(&self.found_in_words(), columns, INDENT);
        let changed = self.sites.iter().filter(|site| !site.changes.is_empty());
        let changed: Vec<&SiteDifference> = changed.collect();
        text += &wrapped(&self.changes_in_words(changed.len()), columns, INDENT);
        if !changed.is_empty() {
            text += &format!("\n{}", self.table(&changed, columns));
        }
        if !self.conditions.is_empty() {
            text += "\n";
        }
        for result in &self.conditions {
            let holds = match result.holds {
                Some(true) => "FAILED",
                Some(false) => "passed",
                None => "cannot be told",
            };
            let line = format!("{holds}: fail if {}: {}", result.condition, result.reason);
            text += &wrapped(&line, columns, INDENT);
        }
        text
    }

    fn totals(&self) -> String {
        let unit = self.heat_unit;
        let heat_title = match unit {
            Some("ns") => "waiting for memory",
            Some(unit) => unit,
            None => "",
        };
        let heat = |run: &DifferenceRun| (heat_in_words(run.heat, unit), run.heat.unwrap_or(0));
        let time = |run: &DifferenceRun| (Nanos(run.time_ns).to_string(), run.time_ns);
        let size = |bytes: u64| (Bytes(bytes).to_string(), bytes);
        let footprint = |run: &DifferenceRun| size(run.footprint_bytes);
        let allocations = |run: &DifferenceRun| (grouped(run.allocations), run.allocations);
        let requested = |run: &DifferenceRun| size(run.requested_bytes);
        type Figure<'a> = &'a dyn Fn(&DifferenceRun) -> (String, u64);
        let rows: [(&str, Figure<'_>); 5] = [
            ("time", &time),
            ("footprint", &footprint),
            (heat_title, &heat),
            ("allocations", &allocations),
            ("requested", &requested),
        ];
        let shown = rows.iter().filter(|(title, _)| !title.is_empty());
        let shown: Vec<_> = shown
            .map(|(title, of)| (*title, of(&self.before), of(&self.after)))
            .collect();
        DataTable::of(&shown)
            .left("", |(title, ..)| *title)
            .right("before", |(_, before, _)| before.0.clone())
            .right("after", |(.., after)| after.0.clone())
            .right("change", |(_, before, after)| {
                growth(before.1 as f64, after.1 as f64)
            })
            .render()
    }

    /// `38 of 40 sites (99 % of the heat) were found again: 20 by name, 18 by line.`
    fn found_in_words(&self) -> String {
        let found = &self.found;
        if found.before == 0 {
            return "The earlier profile has no sites.".to_owned();
        }
        let by = found.by.iter();
        let by = by.map(|(by, count)| format!("{count} by {by}"));
        let by = by.collect::<Vec<_>>().join(", ");
        let by = match by.is_empty() {
            true => String::new(),
            false => format!(": {by}"),
        };
        format!(
            "{} of {} ({} of the {} before) were found again{by}.",
            grouped(found.found as u64),
            counted(found.before, "site"),
            percent(found.found_accesses_share),
            self.before.counted.noun()
        )
    }

    /// `3 hotter, 1 cooler, 2 larger; 34 unchanged beyond the noise.`
    fn changes_in_words(&self, changed: usize) -> String {
        let kinds = SiteChangeKind::ALL.into_iter().filter_map(|kind| {
            let sites = self.sites.iter();
            match sites.filter(|site| site.changes.contains(&kind)).count() {
                0 => None,
                count => Some(format!("{} {}", grouped(count as u64), kind.word())),
            }
        });
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        let telling = self.sites.iter().filter(|site| site.is_telling());
        let same = telling.count() - changed;
        match kinds.is_empty() {
            true => format!("{} unchanged beyond the noise.", counted(same, "site")),
            false => format!(
                "Sites: {kinds}; {} unchanged beyond the noise.",
                grouped(same as u64)
            ),
        }
    }

    fn table(&self, changed: &[&SiteDifference], columns: usize) -> String {
        let shown = &changed[..changed.len().min(SITES)];
        let before_and_after = self.figures(shown, columns, true);
        let fixed = match location::fit_beside(&before_and_after, columns) {
            true => before_and_after,
            false => self.figures(shown, columns, false),
        };
        let places = shown.iter().map(|site| &site.place);
        location::beside(&fixed, places, columns)
            + &and_more(changed.len(), shown.len(), "changed site")
    }

    /// The table without locations: figures before and after; in a narrow terminal after alone, or before for a site that is gone.
    fn figures(&self, shown: &[&SiteDifference], columns: usize, both: bool) -> String {
        let unit = self.heat_unit;
        let change = |site: &&SiteDifference| {
            let words = site.changes.iter().map(|kind| kind.word());
            words.collect::<Vec<_>>().join(", ")
        };
        let share = |site: &SiteFigures| percent(site.accesses_share);
        let heat = move |site: &SiteFigures| heat_in_words(site.heat, unit);
        let size = |site: &SiteFigures| Bytes(site.peak_rss_bytes).to_string();
        let mut table = DataTable::of(shown).left("change", change);
        if let Some(unit) = unit {
            let title = if unit == "ns" { "waiting" } else { unit };
            table = compared(table, title, both, heat);
        }
        if unit.is_none() || columns >= 120 {
            table = compared(table, "share", both, share);
        }
        compared(table, "RSS", both, size).render()
    }
}

/// Adds a figure of the sites to the table: before and after, or only the later one.
fn compared<'a>(
    table: DataTable<'a, &'a SiteDifference>,
    title: &str,
    both: bool,
    words: impl Fn(&SiteFigures) -> String + Copy + 'a,
) -> DataTable<'a, &'a SiteDifference> {
    let shown = move |figures: Option<&SiteFigures>| figures.map_or(String::new(), words);
    if !both {
        return table.right(title, move |site| {
            shown(site.after.as_ref().or(site.before.as_ref()))
        });
    }
    table
        .right(&format!("{title} before"), move |site| {
            shown(site.before.as_ref())
        })
        .right("after", move |site| shown(site.after.as_ref()))
}
