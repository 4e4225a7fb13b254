//! `isotherm sites --contexts`: the calling contexts of a program, or what those of a profile are worth.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use isotherm_model::profile::Profile;
use isotherm_model::site::{Frame, Site, SiteId};
use isotherm_observe::contexts::{self, Contexts};
use isotherm_observe::described::{self, Described};

use crate::notes::{Notes, print};

/// Prints one context a line.
///
/// # Errors
/// The file is neither a linked program nor a profile that can be read.
pub(crate) fn run(file: &Path, notes: Notes) -> Result<()> {
    if file.extension().is_some_and(|extension| extension == "iso") {
        let (profile, _) = super::read_profile(file, notes)?;
        print(&worth_list(&profile))?;
        notes.next("isotherm-cc --isotherm-context=clone --isotherm-profile=LIST");
        return Ok(());
    }
    let sites = described::read(file)?;
    let contexts = contexts::read(file);
    let lines: String = contexts
        .all(&sites)
        .map(|context| line(&context, &contexts, &sites))
        .collect();
    if lines.is_empty() {
        notes.say(&format!(
            "{} tells no contexts apart; link it with isotherm-cc --isotherm-context=argument",
            file.display()
        ));
    }
    print(&lines)
}

/// The name of a context, then its calls from the inside out.
fn line(
    context: &contexts::Context,
    contexts: &Contexts,
    sites: &BTreeMap<u64, Described>,
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

/// The contexts of each site, by what it is worth to tell them apart: the accesses by which a context differs
/// from what its bytes would have if all contexts of the site were alike.
fn worth_list(profile: &Profile) -> String {
    let accesses = profile.accesses_by_site();
    let mut sites: BTreeMap<(&str, u64), Vec<&Site>> = BTreeMap::new();
    for site in &profile.sites {
        if let Some(frame) = site.frames.first() {
            let place = (frame.module.as_str(), frame.offset);
            sites.entry(place).or_default().push(site);
        }
    }
    let value = |site: &Site| accesses.get(&site.id).map_or(0.0, |found| found.0 as f64);
    let weight = |site: &Site| site.peak_rss.0.max(site.requested.0.min(1)) as f64;
    let mut rows: Vec<(f64, SiteId, &[Frame])> = Vec::new();
    for contexts in sites.values().filter(|contexts| contexts.len() > 1) {
        let values: f64 = contexts.iter().map(|site| value(site)).sum();
        let weights: f64 = contexts.iter().map(|site| weight(site)).sum();
        for site in contexts {
            let alike = if weights > 0.0 {
                values * weight(site) / weights
            } else {
                0.0
            };
            rows.push(((value(site) - alike).abs(), site.id, &site.frames));
        }
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut text = String::from("# context, accesses that telling it apart moves, calls\n");
    for (worth, id, frames) in rows {
        let calls: Vec<String> = frames.iter().map(ToString::to_string).collect();
        // A text can always be written to.
        let _ = writeln!(text, "{id} {worth:.0} {}", calls.join(" < "));
    }
    text
}
