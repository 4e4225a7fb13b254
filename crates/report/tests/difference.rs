//! Tests the difference of two profiles: its forms against golden files, what is noise, and the conditions under which it fails.
//!
//! `ISOTHERM_GOLDEN=write cargo test -p isotherm-report` writes the golden files anew.

#[path = "support/graph.rs"]
#[allow(
    dead_code,
    reason = "plans and hostile names are for the report's forms"
)]
mod graph;

use isotherm_model::calls::MatchedBy;
use isotherm_model::profile::{Ending, Profile};
use isotherm_model::site::{Site, SiteId, SiteKind};
use isotherm_model::site_pair::SitePair;
use isotherm_model::units::{Accesses, Bytes, Nanos};
use isotherm_report::difference::{ProfileDifference, SiteChangeKind};
use serde_json::Value;

fn golden(name: &str, text: &str) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var("ISOTHERM_GOLDEN").is_ok_and(|word| word == "write") {
        std::fs::write(&path, text).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap();
    for (number, (got, wanted)) in text.lines().zip(wanted.lines()).enumerate() {
        assert_eq!(got, wanted, "{name}, line {}", number + 1);
    }
    assert_eq!(text.len(), wanted.len(), "{name} has another length");
}

/// The id of the site with this line in a caller.
fn of_line(profile: &Profile, line: u32) -> SiteId {
    let has = |site: &&Site| site.frames.iter().any(|frame| frame.line == Some(line));
    profile.sites.iter().find(has).expect("a site").id
}

/// Half as much again of the heat of one site, twice the bytes of another; one that is gone, and its successor.
fn later() -> Profile {
    let mut profile = graph::profile();
    let (hotter, larger, gone) = (
        of_line(&profile, 92),
        of_line(&profile, 131),
        of_line(&profile, 260),
    );
    let new = SiteId(0xabc);
    for heat in &mut profile.heat {
        if heat.site == hotter {
            heat.accesses = Accesses(heat.accesses.0 * 3 / 2);
        }
        if heat.site == gone {
            heat.site = new;
        }
    }
    for resident in &mut profile.resident {
        if resident.site == larger {
            resident.bytes = Bytes(resident.bytes.0 * 2);
        }
        if resident.site == gone {
            resident.site = new;
        }
    }
    for site in &mut profile.sites {
        if site.id == larger {
            site.peak_rss = Bytes(site.peak_rss.0 * 2);
        }
        if site.id == gone {
            site.id = new;
        }
    }
    profile.sites.sort_by_key(|site| site.id);
    profile
        .epochs
        .iter_mut()
        .for_each(|epoch| epoch.span = Nanos(epoch.span.0 * 11 / 10));
    profile
}

/// Sites of one id, as in two runs of one build.
fn pairs(before: &Profile, after: &Profile) -> Vec<SitePair> {
    let has = |profile: &Profile, id| profile.sites.iter().any(|site| site.id == id);
    let former = before.sites.iter().map(|site| {
        let is_found = has(after, site.id);
        SitePair {
            before: vec![site.id],
            after: is_found.then_some(site.id).into_iter().collect(),
            by: is_found.then_some(MatchedBy::Name),
        }
    });
    let new = after.sites.iter().filter(|site| !has(before, site.id));
    let new = new.map(|site| SitePair {
        before: Vec::new(),
        after: vec![site.id],
        by: None,
    });
    former.chain(new).collect()
}

fn difference(before: &Profile, after: &Profile) -> ProfileDifference {
    ProfileDifference::new((before, after), &pairs(before, after), ("a.iso", "b.iso"))
}

/// The result of a condition: whether it holds, and why.
fn judged(difference: &ProfileDifference, condition: &str) -> (Option<bool>, String) {
    let conditions = [condition.parse().expect(condition)];
    let judged = difference.clone().judged(&conditions);
    (
        judged.conditions[0].holds,
        judged.conditions[0].reason.clone(),
    )
}

#[test]
fn the_forms_are_as_they_were() {
    let (before, after) = (graph::profile(), later());
    let conditions = ["footprint > +5%", "heat of any > +20%", "time > +20%"];
    let conditions = conditions.map(|text| text.parse().expect(text));
    let difference = difference(&before, &after).judged(&conditions);
    golden("difference-100.txt", &difference.text(100));
    golden("difference-60.txt", &difference.text(60));
    golden("difference.json", &isotherm_report::json(&difference));
    for columns in 60..=140 {
        let text = difference.text(columns);
        let fits = |line: &str| line.chars().count() <= columns;
        assert!(text.lines().all(fits), "{columns}: {text}");
    }
    let json: Value = serde_json::from_str(&isotherm_report::json(&difference)).unwrap();
    assert_eq!(json["schema_version"], 1);
    assert_eq!(json["heat_unit"], "ns");
}

#[test]
fn two_runs_of_one_program_differ_in_nothing() {
    let profile = graph::profile();
    let difference = difference(&profile, &profile);
    assert!(difference.sites.iter().all(|site| site.changes.is_empty()));
    assert!(difference.text(80).contains("unchanged beyond the noise"));
    for condition in ["heat of any > +0%", "footprint > +0%", "time > +0%"] {
        assert_eq!(judged(&difference, condition).0, Some(false), "{condition}");
    }
}

#[test]
fn few_more_samples_are_noise_and_many_are_heat() {
    let before = graph::profile();
    let hot = of_line(&before, 92);
    let with = |factor: f64| {
        let mut after = graph::profile();
        for heat in after.heat.iter_mut().filter(|heat| heat.site == hot) {
            heat.accesses = Accesses((heat.accesses.0 as f64 * factor) as u64);
        }
        after
    };
    let changes = |after: &Profile| -> Vec<SiteChangeKind> {
        let difference = difference(&before, after);
        let id = hot.to_string();
        let mut sites = difference.sites.into_iter();
        let site = sites.find(|site| site.after.as_ref().is_some_and(|it| it.sites.contains(&id)));
        site.expect("the site").changes
    };
    assert_eq!(changes(&with(1.001)), []);
    let grown = [SiteChangeKind::Hotter, SiteChangeKind::Slower];
    assert_eq!(changes(&with(3.0)), grown);
    let shrunk = [SiteChangeKind::Cooler, SiteChangeKind::Faster];
    assert_eq!(changes(&with(0.2)), shrunk);
}

#[test]
fn conditions_are_of_the_program_of_a_named_site_or_of_any() {
    let (before, after) = (graph::profile(), later());
    let difference = difference(&before, &after);
    for (condition, holds) in [
        ("time > +9%", true),
        ("time > +11%", false),
        ("time > 40s", false),
        ("footprint > +100MiB", true),
        ("footprint of transpose >= +310MiB", true),
        ("footprint of read_edges > +0%", false),
        ("heat of graph.cc:92 > +20%", true),
        ("heat of graph.cc:203 > +5%", false),
        ("heat of any > +10s", true),
        ("heat > +0.1s", true),
        ("allocations > +0", false),
        ("requested of any > +1B", true),
    ] {
        let (held, reason) = judged(&difference, condition);
        assert_eq!(held, Some(holds), "{condition}: {reason}");
    }
    let (held, reason) = judged(&difference, "heat of missing > +5%");
    assert_eq!(held, None);
    assert!(
        reason.contains("no site of the profiles has \"missing\""),
        "{reason}"
    );
    let (held, reason) = judged(&difference, "heat > +5");
    assert!(held.is_none() && reason.contains("give a time"), "{reason}");
}

#[test]
fn profiles_that_count_different_things_are_compared_by_shares() {
    let before = graph::profile();
    let mut after = later();
    after.sources[0].name = "instrumented".into();
    after.ending = Ending::Unknown;
    after.meta.depth = 2;
    let difference = difference(&before, &after);
    assert_eq!(difference.heat_unit, None);
    let notes = difference.notes.join("\n");
    for said in [
        "only shares of the heat are compared",
        "cut short",
        "at the smaller depth",
    ] {
        assert!(notes.contains(said), "{notes}");
    }
    assert!(difference.text(100).contains("share before"));
    let (held, reason) = judged(&difference, "heat of any > +5%");
    assert!(
        held.is_none() && reason.contains("no unit in common"),
        "{reason}"
    );
    let (held, _) = judged(&difference, "footprint > +5%");
    assert_eq!(held, Some(true));
}

#[test]
fn sites_that_were_neither_accessed_nor_resident_are_no_news() {
    let before = graph::profile();
    let mut after = graph::profile();
    after
        .sites
        .push(Site::new(SiteId(u64::MAX), SiteKind::Heap));
    let difference = difference(&before, &after);
    let silent = difference.sites.iter().find(|site| site.before.is_none());
    assert!(silent.expect("is listed").changes.is_empty());
    assert!(
        !difference.text(100).contains("new"),
        "{}",
        difference.text(100)
    );
}

#[test]
fn hostile_names_steer_no_terminal() {
    let mut after = later();
    graph::make_hostile(&mut after);
    let text = difference(&graph::profile(), &after).text(100);
    assert!(!text.contains('\x1b'), "{text}");
}
