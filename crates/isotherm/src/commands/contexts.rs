//! `isotherm sites --contexts` lists the calling contexts that a program built by `isotherm-cc --isotherm-context` can tell apart; or, of a
//! profile, the contexts of each site of `isotherm-cc` that has several, with the accesses that telling each apart moves, a list that
//! `isotherm-cc --isotherm-profile` reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
use isotherm_model::units::Accesses;
use isotherm_symbols::cloned_contexts::{self, Contexts};
use isotherm_symbols::compiled_sites::{self, CompiledSite};
use serde_json::{Value, json};

use isotherm_console::{Console, print};

/// Version of the JSON, of sites and of contexts. Fields may be added within it.
pub(super) const SCHEMA_VERSION: u32 = 1;

/// Prints one context a line, or all of them as JSON.
///
/// # Errors
/// The file is neither a linked program nor a profile that can be read.
pub(crate) fn run(file: &Path, json: bool, console: Console) -> Result<()> {
    // A profile is a folder, a program is none.
    if file.is_dir() {
        of_profile(file, json, console)
    } else {
        of_program(file, json, console)
    }
}

fn of_profile(file: &Path, json: bool, console: Console) -> Result<()> {
    let (profile, _) = super::read_profile(file, console)?;
    let accesses = profile.accesses_by_site();
    let rows = worth(&profile.sites, &accesses);
    if json {
        return print_json(rows.iter().map(worth_json).collect());
    }
    if rows.is_empty() {
        console.info(&format!(
            "{} has no site with several contexts; record a program that was linked with isotherm-cc \
             --isotherm-context",
            file.display()
        ));
        return Ok(());
    }
    print(&worth_list(&rows))?;
    console.next("isotherm-cc --isotherm-context=clone --isotherm-profile=LIST");
    Ok(())
}

fn of_program(file: &Path, json: bool, console: Console) -> Result<()> {
    let sites = compiled_sites::read(file)?;
    let contexts = cloned_contexts::read(file);
    let all = contexts.all(&sites);
    if json {
        let list = all.map(|context| context_json(&context, &contexts, &sites));
        return print_json(list.collect());
    }
    let lines: String = all
        .map(|context| line(&context, &contexts, &sites))
        .collect();
    if lines.is_empty() {
        console.info(&format!(
            "{} distinguishes no contexts; compile and link it with isotherm-cc --isotherm-context",
            file.display()
        ));
    }
    print(&lines)
}

fn print_json(contexts: Vec<Value>) -> Result<()> {
    let document = json!({ "schema_version": SCHEMA_VERSION, "contexts": contexts });
    print(&format!("{document:#}\n"))
}

/// The value of distinguishing one context, with its name and its calls.
type Worth<'a> = (f64, SiteId, &'a [Frame]);

/// The name of a context, then its calls from the inside out.
fn line(
    context: &cloned_contexts::Context,
    contexts: &Contexts,
    sites: &BTreeMap<u64, CompiledSite>,
) -> String {
    let place = |function: &str, path: &str, line: Option<u32>| match line {
        Some(line) => format!("{function} ({path}:{line})"),
        None => format!("{function} ({path})"),
    };
    let site = sites
        .get(&context.site)
        .map(|site| place(&site.function, &site.path, site.line));
    let calls = context.calls.iter().filter_map(|call| contexts.call(*call));
    let calls = calls.map(|call| place(&call.function, &call.path, call.line));
    let places: Vec<String> = site.into_iter().chain(calls).collect();
    format!("{} {}\n", context.id, places.join(" < "))
}

/// A context of a program: the call that allocates, then those around it.
fn context_json(
    context: &cloned_contexts::Context,
    contexts: &Contexts,
    sites: &BTreeMap<u64, CompiledSite>,
) -> Value {
    let place = |function: &str, path: &str, line: Option<u32>| json!({ "function": function, "file": path, "line": line });
    let site = sites.get(&context.site);
    let first = site.map(|site| place(&site.function, &site.path, site.line));
    let calls = context.calls.iter().filter_map(|call| contexts.call(*call));
    let calls = calls.map(|call| place(&call.function, &call.path, call.line));
    json!({
        "context": context.id.to_string(),
        "site": site.map(|site| site.id.to_string()),
        "calls": first.into_iter().chain(calls).collect::<Vec<_>>(),
    })
}

/// A context of a profile. Its site has no name there.
fn worth_json((worth, id, frames): &Worth<'_>) -> Value {
    let call = |frame: &Frame| json!({ "function": frame.function, "file": frame.file, "line": frame.line });
    json!({
        "context": id.to_string(),
        "accesses_moved": worth.round() as u64,
        "calls": frames.iter().map(call).collect::<Vec<_>>(),
    })
}

/// The contexts of each site, ordered by the value of distinguishing them: the difference between the accesses of a
/// context and those of its bytes if all contexts of the site were alike.
fn worth<'a>(sites: &'a [Site], accesses: &BTreeMap<SiteId, Accesses>) -> Vec<Worth<'a>> {
    let mut by_place: BTreeMap<(&str, u64), Vec<&Site>> = BTreeMap::new();
    let described = |site: &&Site| site.kind == SiteKind::Described;
    for site in sites.iter().filter(described) {
        if let Some(frame) = site.frames.first() {
            let place = (&*frame.module, frame.offset);
            by_place.entry(place).or_default().push(site);
        }
    }
    let value = |site: &Site| accesses.get(&site.id).map_or(0.0, |found| found.0 as f64);
    let weight = |site: &Site| site.peak_rss.0.max(site.requested.0.min(1)) as f64;
    let mut rows = Vec::new();
    for contexts in by_place.values().filter(|contexts| contexts.len() > 1) {
        let values: f64 = contexts.iter().map(|site| value(site)).sum();
        let weights: f64 = contexts.iter().map(|site| weight(site)).sum();
        for site in contexts {
            let alike = if weights > 0.0 {
                values * weight(site) / weights
            } else {
                0.0
            };
            rows.push(((value(site) - alike).abs(), site.id, &*site.frames));
        }
    }
    rows.sort_by(|a: &Worth<'_>, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    rows
}

/// One context a line, as `isotherm-cc` reads it when it links: name, value, and the calls as text.
fn worth_list(rows: &[Worth<'_>]) -> String {
    let mut text = String::from("# context, accesses that telling it apart moves, calls\n");
    for (worth, id, frames) in rows {
        let calls: Vec<String> = frames.iter().map(ToString::to_string).collect();
        // A text can always be written to.
        let _ = writeln!(text, "{id} {worth:.0} {}", calls.join(" < "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{worth, worth_json, worth_list};
    use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
    use isotherm_model::units::{Accesses, Bytes};
    use std::collections::BTreeMap;

    fn context(id: u64, site: u64, rss: u64, caller: &str) -> Site {
        let frame = |offset, function: &str| Frame {
            module: "app".into(),
            offset,
            function: Some(function.to_owned()),
            ..Frame::default()
        };
        Site {
            frames: vec![frame(site, "make"), frame(id, caller)].into(),
            peak_rss: Bytes(rss),
            ..Site::new(SiteId(id), SiteKind::Described)
        }
    }

    #[test]
    fn the_context_that_differs_from_its_site_is_worth_most() {
        // Site 7 has a hot context of 1 MiB and cold ones of 3; all of site 8 is alike; site 9 has one context.
        let sites = [
            context(71, 7, 1 << 20, "hot"),
            context(72, 7, 3 << 20, "cold"),
            context(81, 8, 1 << 20, "left"),
            context(82, 8, 1 << 20, "right"),
            context(91, 9, 1 << 20, "only"),
            Site::new(SiteId(5), SiteKind::Heap),
        ];
        let accesses = [(71, 900), (72, 100), (81, 50), (82, 50), (91, 1000)];
        let accesses: BTreeMap<_, _> = accesses
            .map(|(id, count)| (SiteId(id), Accesses(count)))
            .into();
        let rows = worth(&sites, &accesses);
        let wanted = serde_json::json!({
            "context": "0000000000000047",
            "accesses_moved": 650,
            "calls": [
                { "function": "make", "file": null, "line": null },
                { "function": "hot", "file": null, "line": null },
            ],
        });
        assert_eq!(worth_json(&rows[0]), wanted);
        let list = worth_list(&rows);
        let lines: Vec<&str> = list.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "0000000000000047 650 make (app) < hot (app)",
                "0000000000000048 650 make (app) < cold (app)",
                "0000000000000051 0 make (app) < left (app)",
                "0000000000000052 0 make (app) < right (app)",
            ]
        );
    }
}
