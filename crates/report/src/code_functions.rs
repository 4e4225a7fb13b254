//! Lists the sampled functions of a profile, each with the sites whose data it accesses ([`CodeFunction`]), and the lines of code, each
//! with its site ([`CodePair`]); formats both as tables of `isotherm report` in a terminal. The HTML page has its own tables.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use isotherm_model::count_unit::CountUnit;
use isotherm_model::profile::Profile;
use isotherm_model::site::{Site, SiteId, SiteKind};
use serde::Serialize;

use crate::code_lines::{CodeLine, lines_by_site};
use crate::sites::SiteRow;
use crate::table::DataTable;
use crate::words::{and_more, clip, counted, percent, share};

/// Rows of a table in a terminal at most.
const ROWS: usize = 12;
/// Sites that are named beside a function.
const SITES: usize = 3;

/// A function, and the data that it accesses.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CodeFunction {
    /// The function; the module where it has no symbols.
    pub function: String,
    /// Accesses, in the unit of `totals.counted`, those to data of no site included.
    pub accesses: u64,
    /// Share of the accesses of all code.
    pub accesses_share: f64,
    /// Accesses beside these that the caches served.
    pub served_by_caches: u64,
    /// The sites that it accesses, most first.
    pub sites: Vec<FunctionSite>,
}

/// A site that a function accesses.
#[derive(Clone, Debug, Serialize)]
pub struct FunctionSite {
    /// Its id.
    pub site: String,
    /// Its location.
    pub location: String,
    /// Accesses of the function to it.
    pub accesses: u64,
    /// Share of the accesses of the function.
    pub accesses_share: f64,
}

/// A line of code and the site that it accesses.
pub(crate) struct CodePair<'a> {
    pub(crate) line: &'a CodeLine,
    pub(crate) location: &'a str,
    /// Share of the accesses to all sites.
    pub(crate) share: f64,
}

/// Every function that was sampled, the one with most accesses first.
pub(crate) fn functions(profile: &Profile, sites: &[SiteRow]) -> Vec<CodeFunction> {
    let locations = sites.iter().map(|site| (site.id, site.location.as_str()));
    let locations: BTreeMap<SiteId, &str> = locations.collect();
    let elsewhere = Site::new(SiteId::UNATTRIBUTED, SiteKind::Unattributed).label();
    let mut functions = BTreeMap::<String, CodeFunction>::new();
    for (site, lines) in lines_by_site(profile, |_| 0) {
        let id = site.to_string();
        let location = locations.get(&site).copied().unwrap_or(&elsewhere);
        for line in lines {
            let name = function_name(&line);
            let function = functions
                .entry(name)
                .or_insert_with_key(|name| CodeFunction {
                    function: name.clone(),
                    ..CodeFunction::default()
                });
            function.accesses = function.accesses.saturating_add(line.accesses);
            let served = function.served_by_caches;
            function.served_by_caches = served.saturating_add(line.served_by_caches);
            match function.sites.last_mut().filter(|last| last.site == id) {
                Some(last) => last.accesses = last.accesses.saturating_add(line.accesses),
                None => function.sites.push(FunctionSite {
                    site: id.clone(),
                    location: location.to_owned(),
                    accesses: line.accesses,
                    accesses_share: 0.0,
                }),
            }
        }
    }
    let all = functions.values().map(|function| function.accesses);
    let all = all.fold(0, u64::saturating_add);
    let mut functions: Vec<CodeFunction> = functions.into_values().collect();
    for function in &mut functions {
        function.accesses_share = share(function.accesses, all);
        for site in &mut function.sites {
            site.accesses_share = share(site.accesses, function.accesses);
        }
        function.sites.sort_by_key(|site| Reverse(site.accesses));
    }
    // Equals stay in the order of their names.
    functions.sort_by_key(|it| Reverse((it.accesses, it.served_by_caches)));
    functions
}

/// The function of a line; the module where it is not known.
pub(crate) fn function_name(line: &CodeLine) -> String {
    let module = line.module.rsplit('/').next().unwrap_or_default();
    match &line.function {
        Some(function) => function.clone(),
        None if module.is_empty() => line.text.clone(),
        None => format!("{module} (no symbols)"),
    }
}

/// The lines of code with the site that each accesses, the most accesses first.
pub(crate) fn pairs(sites: &[SiteRow]) -> Vec<CodePair<'_>> {
    let mut pairs = Vec::new();
    for site in sites {
        let lines = site.code.iter().filter(|line| line.accesses > 0);
        pairs.extend(lines.map(|line| CodePair {
            line,
            location: &site.location,
            share: line.accesses_share * site.accesses_share,
        }));
    }
    pairs.sort_by(|a, b| {
        let most = b.line.accesses.cmp(&a.line.accesses);
        most.then_with(|| (&a.line.text, a.location).cmp(&(&b.line.text, b.location)))
    });
    pairs
}

impl CodeFunction {
    /// The sites that it accesses most, with their shares.
    pub(crate) fn sites_in_words(&self) -> String {
        let with_accesses = self.sites.iter().filter(|site| site.accesses > 0);
        let named =
            |site: &FunctionSite| format!("{} {}", site.location, percent(site.accesses_share));
        let named: Vec<String> = with_accesses.clone().take(SITES).map(named).collect();
        let more = with_accesses.count() - named.len();
        match more {
            0 => named.join(", "),
            more => format!("{}, {}", named.join(", "), counted(more, "other")),
        }
    }
}

/// Both tables for a terminal; empty where no instruction is known.
pub(crate) fn render(
    (functions, sites): (&[CodeFunction], &[SiteRow]),
    unit: CountUnit,
    columns: usize,
) -> String {
    let pairs = pairs(sites);
    if pairs.is_empty() {
        return String::new();
    }
    let noun = unit.noun();
    let mut text = format!("Code that accesses the sites, by {noun}\n");
    text += &lines(&pairs[..pairs.len().min(ROWS)], columns);
    text += &and_more(pairs.len(), ROWS, "line");
    let telling: Vec<&CodeFunction> = functions.iter().filter(|it| it.accesses > 0).collect();
    let shown = &telling[..telling.len().min(ROWS)];
    text += &format!("\nFunctions that access the sites, by {noun}\n");
    let room = columns.saturating_sub(SHARE);
    let (of_function, of_sites) = (room * 2 / 5, room - room * 2 / 5 - GAP);
    text += &DataTable::of(shown)
        .right("share", |function| percent(function.accesses_share))
        .left("function", move |function| {
            clip(&function.function, of_function)
        })
        .left("sites", move |function| {
            clip(&function.sites_in_words(), of_sites)
        })
        .render();
    text + &and_more(telling.len(), shown.len(), "function")
}

/// Characters of a column of shares, with the gap behind it.
const SHARE: usize = 8;
/// Characters between two columns.
const GAP: usize = 2;

fn lines(pairs: &[CodePair<'_>], columns: usize) -> String {
    let mut table = DataTable::of(pairs).right("share", |pair| percent(pair.share));
    let mut room = columns.saturating_sub(SHARE);
    // The names need room most.
    if columns >= 80 {
        let width = |words: &dyn Fn(&CodePair<'_>) -> usize, title: usize| {
            pairs.iter().map(words).max().unwrap_or(0).max(title) + GAP
        };
        let does = width(&|pair| pair.line.does().len(), 4);
        let pattern = width(&|pair| pair.line.pattern_in_words().len(), 7);
        room = room.saturating_sub(does + pattern);
        table = table
            .left("does", |pair| pair.line.does())
            .left("pattern", |pair| pair.line.pattern_in_words());
    }
    if columns >= 100 {
        room -= "threads".len() + GAP;
        table = table.right("threads", |pair| pair.line.threads);
    }
    let of_code = room / 2;
    table
        .left("code", move |pair| clip(&pair.line.text, of_code))
        .left("data allocated in", move |pair| {
            clip(pair.location, room - of_code - GAP)
        })
        .render()
}
