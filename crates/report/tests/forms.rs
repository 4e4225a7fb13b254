//! Tests the three forms of one report: against golden files, at their limits, with hostile names.
//!
//! `ISOTHERM_GOLDEN=write cargo test -p isotherm-report` writes the golden files anew.

#[path = "support/graph.rs"]
mod graph;

use isotherm_model::batch::{Epoch, Process};
use isotherm_model::profile::{EpochSpan, Heat, Meta, Profile, Resident};
use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
use isotherm_model::units::{Accesses, Bytes, Nanos};
use isotherm_report::Report;
use isotherm_report::energy::{EnergyKind, EnergyRow, ModelledEnergy};
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

fn planned() -> Report {
    let profile = graph::profile();
    let plan = graph::plan(&profile, Bytes(profile.footprint().0.0 / 4));
    Report::new(&profile, Some(&plan)).named("bfs.iso", Some("bfs.plan"))
}

/// The page's tags, ids and classes without its text, styles and scripts.
fn structure(page: &str) -> String {
    let mut lines = Vec::new();
    let mut rest = page;
    while let Some(begin) = rest.find('<') {
        let end = begin + rest[begin..].find('>').unwrap();
        let tag = &rest[begin + 1..end];
        rest = &rest[end + 1..];
        let name = tag.split_whitespace().next().unwrap_or_default();
        if ["script", "style"].contains(&name) {
            rest = &rest[rest.find(&format!("</{name}>")).unwrap()..];
        }
        let kept = tag.split_whitespace().filter(|word| {
            ["id=", "class=", "role="]
                .iter()
                .any(|key| word.starts_with(key))
                || *word == name
        });
        lines.push(kept.collect::<Vec<_>>().join(" "));
    }
    lines.dedup();
    lines.join("\n") + "\n"
}

#[test]
fn the_forms_are_as_they_were() {
    golden("planned-100.txt", &planned().text(100));
    golden("planned-60.txt", &planned().text(60));
    golden("planned.json", &planned().json());
    golden("planned.html.structure", &structure(&planned().html()));
    let plain = Report::new(&graph::profile(), None).named("bfs.iso", None);
    golden("plain-80.txt", &plain.text(80));
}

#[test]
fn a_plan_with_parts_shows_how_much_of_a_site_is_fast() {
    let profile = graph::profile();
    let plan = graph::split(graph::plan(&profile, Bytes(profile.footprint().0.0 / 4)));
    let report = Report::new(&profile, Some(&plan)).named("bfs.iso", Some("bfs.plan"));
    golden("split-80.txt", &report.text(80));
    golden("split.html.structure", &structure(&report.html()));
    let json: Value = serde_json::from_str(&report.json()).unwrap();
    let sites = json["split_sites"].as_array().unwrap();
    assert_eq!(sites.len(), 1);
    let ranges = sites[0]["ranges"].as_array().unwrap();
    let values = ranges.iter().map(|range| range["value"].as_u64().unwrap());
    let site = plan.assignments.iter().find(|site| !site.parts.is_empty());
    assert_eq!(
        values.sum::<u64>(),
        site.unwrap().value,
        "ranges are the whole site"
    );
    let text = report.text(60);
    for line in text.split("\nNext\n").next().unwrap().lines() {
        assert!(line.chars().count() <= 60, "{line}");
    }
}

#[test]
fn the_site_to_ask_about_is_that_of_the_first_row() {
    let mut profile = graph::profile();
    // Hotter than all others by its few bytes, with hardly an access.
    let mut tiny = Site::new(SiteId(99), SiteKind::Heap);
    tiny.peak_rss = Bytes(1);
    profile.sites.push(tiny);
    profile.heat.push(Heat {
        epoch: Epoch(0),
        process: Process::default(),
        site: SiteId(99),
        address: 1 << 40,
        object: None,
        accesses: Accesses(900),
        streamed: Accesses::ZERO,
        served: Accesses::ZERO,
    });
    let report = Report::new(&profile, None);
    assert_eq!(report.summary().sites[0].id, SiteId(99));
    let text = report.text(100);
    let titles = |line: &&str| line.contains("allocated in");
    let mut rows = text.lines().skip_while(|line| !titles(line));
    let row = rows.nth(1).unwrap();
    let command = text.lines().find(|line| line.contains("isotherm explain"));
    let asked = command.unwrap().rsplit(' ').next().unwrap();
    assert!(row.contains(asked), "{asked} is not in\n{row}");
}

#[test]
fn text_keeps_to_its_width_but_for_commands() {
    for columns in [60, 80, 120, 200] {
        let text = planned().text(columns);
        let body = text.split("\nNext\n").next().unwrap();
        for line in body.lines() {
            assert!(line.chars().count() <= columns, "{columns}: {line}");
        }
    }
}

#[test]
fn energy_is_a_table_and_a_column_of_the_sites_in_every_form() {
    let without = planned();
    assert!(!without.html().contains("Energy") && !without.json().contains("energy"));
    let site = without.summary().sites[0].clone();
    let energy = ModelledEnergy {
        tiers: vec![EnergyRow {
            of: "fast".to_owned(),
            kind: EnergyKind::Modelled,
            source: "ranks of 8 DDR4-2400 8 Gbit x8 (Micron MT40A1G8)".to_owned(),
            joules: 0.5,
            idle_joules: Some(0.25),
            free_joules: Some(0.125),
        }],
        sites: [(site.id, 0.2)].into(),
    };
    let with = planned().with_energy(energy);
    for columns in [60, 80, 100, 120, 200] {
        let text = with.text(columns);
        let body = text.split("\nNext\n").next().unwrap();
        for line in body.lines() {
            assert!(line.chars().count() <= columns, "{columns}: {line}");
        }
        assert!(text.contains("500 mJ  modelled"), "{text}");
    }
    assert!(with.text(100).contains("200 mJ"), "{}", with.text(100));
    assert!(with.html().contains(">Energy, modelled</th>"));
    assert!(with.html().contains("is no meter"));
    let json: Value = serde_json::from_str(&with.json()).unwrap();
    assert_eq!(json["energy"][0]["kind"], "modelled");
    assert_eq!(json["energy"][0]["idle_joules"], 0.25);
}

#[test]
fn a_measured_bandwidth_is_a_column_of_the_sites_and_no_measured_one_is_none() {
    let without = planned();
    let site = without.summary().sites[0].clone();
    let with = planned().with_bandwidths(&[(site.id, 3 << 30)].into());
    assert!(with.text(100).contains("bandwidth"), "{}", with.text(100));
    assert!(with.text(100).contains("3 GiB/s"), "{}", with.text(100));
    assert!(with.html().contains(">Bandwidth</th>"));
    assert!(with.html().contains(">3 GiB/s</td>"));
    let json: Value = serde_json::from_str(&with.json()).unwrap();
    let sites = json["sites"].as_array().unwrap().iter();
    let known: Vec<_> = sites
        .filter_map(|row| {
            Some((
                row["site"].as_str()?,
                row["bandwidth_bytes_per_second"].as_u64()?,
            ))
        })
        .collect();
    assert_eq!(known, [(site.site.as_str(), 3 << 30)]);
    assert!(!without.text(100).contains("bandwidth") && !without.html().contains("Bandwidth"));
}

#[test]
fn json_keeps_its_keys_and_its_sums() {
    let json: Value = serde_json::from_str(&planned().json()).unwrap();
    assert_eq!(json["schema_version"], 1);
    let sites = json["sites"].as_array().unwrap();
    let sum: u64 = sites
        .iter()
        .map(|site| site["accesses"].as_u64().unwrap())
        .sum();
    assert_eq!(json["totals"]["accesses"], sum);
    assert_eq!(json["plan"]["total_value"], sum);
    let heat = json["heat"]["cells"].as_array().unwrap();
    let sum_of_cells: u64 = heat
        .iter()
        .map(|cell| cell["accesses"].as_u64().unwrap())
        .sum();
    assert_eq!(sum_of_cells, sum, "the heat map holds what the table holds");
    let series = json["resident"]["series"].as_array().unwrap();
    let points = series[0]["bytes"].as_array().unwrap().len();
    let highest = (0..points)
        .map(|at| {
            series
                .iter()
                .map(|site| site["bytes"][at].as_u64().unwrap())
                .sum::<u64>()
        })
        .max();
    assert_eq!(json["totals"]["footprint_bytes"].as_u64(), highest);
}

#[test]
fn hostile_names_are_text_everywhere() {
    let mut profile = graph::profile();
    graph::make_hostile(&mut profile);
    let mut plan = graph::split(graph::plan(&profile, Bytes(1 << 28)));
    plan.policy = "</script><img src=x>".into();
    for assignment in &mut plan.assignments {
        assignment.reason = "</script><img src=x>".into();
    }
    let notes = ["</script><img src=x>".to_owned()];
    let report = Report::new(&profile, Some(&plan))
        .named("</script><img src=x>.iso", Some("$(reboot).plan"))
        .with_notes(notes);
    let page = report.html();
    assert!(!page.contains("<img"), "a name became markup");
    // One for the data, two for the charts, one for the script of the page.
    assert_eq!(page.matches("</script>").count(), 4);
    assert!(
        page.contains("&lt;/script&gt;&lt;img"),
        "the names are shown"
    );
    let text = report.text(100);
    assert!(!text.contains('\x1b'), "a name steers the terminal");
    assert!(
        text.contains("'$(reboot).plan'"),
        "a path is quoted for the shell"
    );
    assert!(serde_json::from_str::<Value>(&report.json()).is_ok());
}

#[test]
fn an_empty_profile_says_that_nothing_was_seen() {
    let report = Report::new(&Profile::new(Meta::default()), None);
    for form in [report.text(80), report.html(), report.json()] {
        assert!(form.contains("No accesses were seen"), "{form}");
    }
    assert!(report.text(80).contains("isotherm doctor"));
}

#[test]
fn accesses_to_data_of_no_site_are_not_said_to_be_unseen() {
    let mut profile = Profile::new(Meta::default());
    profile.heat.push(Heat {
        epoch: Epoch(0),
        process: Process::default(),
        site: SiteId::UNATTRIBUTED,
        address: 0,
        object: None,
        accesses: Accesses(5),
        streamed: Accesses::ZERO,
        served: Accesses::ZERO,
    });
    let text = Report::new(&profile, None).text(80);
    assert!(text.contains("No access fell on data that it"), "{text}");
    assert!(!text.contains("No accesses were seen"), "{text}");
    assert!(!text.contains("isotherm doctor"), "{text}");
}

#[test]
fn a_source_that_delivers_nothing_is_loud() {
    let report = planned();
    assert!(report.text(100).contains("! Source pebs delivered nothing"));
    assert!(report.text(100).contains("DELIVERED NOTHING"));
    assert!(
        report
            .html()
            .contains("<div role=\"alert\"><ul class=\"notes\">")
    );
    assert!(report.html().contains("class=\"silent\""));
}

#[test]
fn data_objects_without_places_are_counted_in_a_note() {
    let mut profile = graph::profile();
    for (name, value) in [("data_objects_folded", 37_856), ("data_objects_lost", 4)] {
        profile
            .counts
            .push(isotherm_model::batch::Count::of_run(name, value));
    }
    let notes = Report::new(&profile, None).summary().notes.join("\n");
    assert!(notes.contains("37,860 smaller ones"), "{notes}");
    let none = Report::new(&graph::profile(), None)
        .summary()
        .notes
        .join("\n");
    assert!(!none.contains("data objects"), "{none}");
}

#[test]
fn a_plan_of_another_recording_is_doubted() {
    let profile = graph::profile();
    let mut plan = graph::plan(&profile, Bytes(1 << 28));
    plan.standing.total += 1;
    plan.assignments[0].site = SiteId(99);
    let report = Report::new(&profile, Some(&plan));
    let notes = report.summary().notes.join("\n");
    assert!(notes.contains("another recording"), "{notes}");
    assert!(notes.contains("1 site of the plan"), "{notes}");
    assert!(report.summary().run.emulated);
}

#[test]
fn numbers_at_their_limits_do_not_panic() {
    let mut profile = graph::profile();
    for site in &mut profile.sites {
        site.peak_rss = Bytes(u64::MAX);
        site.allocations = u64::MAX;
    }
    for heat in &mut profile.heat {
        heat.accesses = Accesses(u64::MAX);
    }
    for resident in &mut profile.resident {
        resident.bytes = Bytes(u64::MAX);
    }
    for epoch in &mut profile.epochs {
        epoch.span = Nanos(u64::MAX);
    }
    profile.meta.chunk = Bytes(0);
    profile.heat.push(Heat {
        epoch: Epoch(u32::MAX),
        process: Process::default(),
        site: SiteId(77),
        address: u64::MAX,
        object: None,
        accesses: Accesses(1),
        streamed: Accesses::ZERO,
        served: Accesses::ZERO,
    });
    let report = Report::new(&profile, None);
    assert!(serde_json::from_str::<Value>(&report.json()).is_ok());
    assert!(report.html().len() < 5_000_000);
    assert!(!report.text(10).is_empty());
}

/// 50,000 sites with long names and deep contexts over 2,000 epochs.
fn huge() -> Profile {
    let mut profile = Profile::new(Meta {
        command: vec!["x".repeat(100_000)],
        chunk: Bytes(4096),
        ..Meta::default()
    });
    let frame = Frame {
        module: "m".repeat(5_000).into(),
        function: Some("std::vector<T>::".repeat(300)),
        file: Some("/src".repeat(1_000)),
        line: Some(1),
        ..Frame::default()
    };
    for id in 10..50_010 {
        let mut site = Site::new(SiteId(id), SiteKind::Heap);
        // Long contexts only where the page shows them: all of them would be 10 GB.
        let deep = if id < 400 { 64 } else { 0 };
        site.frames = vec![frame.clone(); deep].into();
        site.peak_rss = Bytes(4096 * (id % 97 + 1));
        profile.sites.push(site);
    }
    for epoch in 0..2_000 {
        profile.epochs.push(EpochSpan {
            epoch: Epoch(epoch),
            span: Nanos(1_000_000_000),
        });
        for step in 0..400_u64 {
            let id = 10 + (u64::from(epoch) * 131 + step * step * 7) % 50_000;
            let site = SiteId(if step % 2 == 0 { 10 + step } else { id });
            profile.heat.push(Heat {
                epoch: Epoch(epoch),
                process: Process { pid: 1, image: 0 },
                site,
                address: (id * 1000 + step) * 4096,
                object: None,
                accesses: Accesses(step + 1),
                streamed: Accesses::ZERO,
                served: Accesses::ZERO,
            });
            profile.resident.push(Resident {
                epoch: Epoch(epoch),
                site,
                bytes: Bytes(4096 * (step + 1)),
            });
        }
    }
    profile
}

#[test]
fn the_page_stays_small_whatever_the_profile() {
    let mut profile = huge();
    for _ in 0..20_000 {
        profile.counts.push(isotherm_model::batch::Count::of_run(
            "n".repeat(1_000),
            u64::MAX,
        ));
    }
    let plan = graph::plan(&profile, Bytes(1 << 24));
    let page = Report::new(&profile, Some(&plan)).html();
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
    assert!(page.contains("49,800 other sites"));
}

#[test]
fn what_the_caches_served_is_shown_beside_what_counts_and_is_in_no_share() {
    let mut profile = graph::profile();
    let before = Report::new(&profile, None);
    let hottest = before.summary().sites[0].id;
    profile.meta.cache = Some(Bytes(8 << 20));
    for heat in profile.heat.iter_mut().filter(|heat| heat.site == hottest) {
        heat.served = Accesses(3 * heat.accesses.0);
    }
    let report = Report::new(&profile, None);
    let sites = |report: &Report| -> Vec<(String, f64)> {
        let sites = report.summary().sites.iter();
        sites
            .map(|site| (site.site.clone(), site.accesses_share))
            .collect()
    };
    assert_eq!(sites(&before), sites(&report));
    let json: Value = serde_json::from_str(&report.json()).unwrap();
    let site = json["sites"].as_array().unwrap().iter();
    let mut site = site.filter(|site| site["site"] == hottest.to_string());
    let site = site.next().unwrap();
    assert_eq!(site["heat_beyond_caches"], site["accesses"]);
    let served = site["served_by_caches"].as_u64().unwrap();
    assert_eq!(served, 3 * site["accesses"].as_u64().unwrap());
    assert_eq!(json["totals"]["served_by_caches"], served);
    assert_eq!(json["totals"]["assumed_cache_bytes"], 8 << 20);
    let text = report.text(100);
    let text: Vec<&str> = text.split_whitespace().collect();
    let text = text.join(" ");
    for words in ["The caches served", "8 MiB of cache", "in caches", "75 %"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(report.html().contains("Served by caches"));
    assert!(!before.text(100).contains("caches"));
}
