//! Tests the code that accesses the data, in all forms of the report.
//!
//! `ISOTHERM_GOLDEN=write cargo test -p isotherm-report` writes the golden files anew.

#[path = "support/graph.rs"]
#[allow(dead_code, reason = "plans are for the report's other forms")]
mod graph;

#[path = "support/accessing.rs"]
mod accessing;

use isotherm_model::code_access::CodeAccess;
use isotherm_model::profile::Profile;
use isotherm_model::site::Frame;
use isotherm_report::Report;
use isotherm_report::stacks::{StackKind, StackWeight, folded, speedscope, stacks};
use serde_json::Value;

fn golden(name: &str, text: &str) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var("ISOTHERM_GOLDEN").is_ok_and(|word| word == "write") {
        std::fs::write(&path, text).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, wanted, "{name}");
}

/// The graph program with its accessing code.
fn profile() -> Profile {
    let mut profile = graph::profile();
    accessing::add(&mut profile);
    profile
}

#[test]
fn the_code_is_a_table_by_line_and_one_by_function_in_every_form() {
    let report = Report::new(&profile(), None).named("bfs.iso", None);
    golden("code-100.txt", &report.text(100));
    golden("code-60.txt", &report.text(60));
    for columns in [60, 80, 100, 160] {
        let text = report.text(columns);
        for line in text.split("\nNext\n").next().unwrap().lines() {
            assert!(line.chars().count() <= columns, "{columns}: {line}");
        }
    }
    let json: Value = serde_json::from_str(&report.json()).unwrap();
    let line = &json["sites"][0]["code"][0];
    assert_eq!(line["text"], "graph.cc:311 visit(Graph const&, unsigned)");
    assert_eq!(
        (&line["pattern"], &line["threads"]),
        (&"random".into(), &4.into())
    );
    assert!(line["loads"].as_u64() > line["stores"].as_u64());
    let functions = json["functions"].as_array().unwrap();
    let names: Vec<_> = functions
        .iter()
        .map(|it| it["function"].as_str().unwrap())
        .collect();
    let wanted = [
        "visit(Graph const&, unsigned)",
        "pagerank(Graph const&, int)",
        "libc.so.6 (no symbols)",
    ];
    assert_eq!(names, wanted);
    let shares = functions
        .iter()
        .map(|it| it["accesses_share"].as_f64().unwrap());
    assert!((shares.sum::<f64>() - 1.0).abs() < 1e-9);
    let page = report.html();
    for part in [
        "Code that accesses the data",
        "stride of 4 KiB",
        "graph.cc:311 visit",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_profile_without_code_has_none_of_it() {
    let report = Report::new(&graph::profile(), None);
    assert!(!report.text(100).contains("Code that") && !report.html().contains("Code that"));
    assert!(!report.json().contains("\"functions\"") && !report.json().contains("\"code\""));
}

#[test]
fn a_page_of_many_lines_stays_bounded() {
    let mut profile = profile();
    let row = profile.code[0].clone();
    for line in 0..60_000 {
        let frame = Frame {
            line: Some(line),
            offset: u64::from(line),
            ..(*row.code).clone()
        };
        profile.code.push(CodeAccess {
            code: frame.into(),
            ..row.clone()
        });
    }
    let report = Report::new(&profile, None);
    assert!(report.html().len() < 5_000_000);
    assert!(report.text(80).len() < 20_000);
}

#[test]
fn stacks_are_exported_with_the_heat_and_the_bytes_of_the_sites() {
    let report = Report::new(&profile(), None);
    let summary = report.summary();
    let allocation = stacks(&summary.sites, StackKind::Allocation);
    let sum = |text: &str| -> u64 {
        let lines = text.lines().map(|line| line.rsplit(' ').next().unwrap());
        lines.map(|number| number.parse::<u64>().unwrap()).sum()
    };
    let heat = folded(&allocation, StackWeight::Heat);
    assert_eq!(sum(&heat), summary.totals.accesses);
    let edges = "main (main.cc:26);Graph::Graph(EdgeList const&) (graph.cc:92);";
    assert!(heat.lines().any(|line| line.starts_with(edges)), "{heat}");
    let bytes = folded(&allocation, StackWeight::Bytes);
    assert_eq!(sum(&bytes), summary.totals.peak_rss_sum_bytes);
    let code = stacks(&summary.sites, StackKind::Code);
    let by_code = folded(&code, StackWeight::Heat);
    let visit = "visit(Graph const&, unsigned) (graph.cc:311);data of graph.cc:92 ";
    assert!(
        by_code.lines().any(|line| line.starts_with(visit)),
        "{by_code}"
    );

    let groups = [
        (
            "heat".to_owned(),
            "none",
            StackWeight::Heat,
            allocation.as_slice(),
        ),
        (
            "code".to_owned(),
            "none",
            StackWeight::Heat,
            code.as_slice(),
        ),
    ];
    let file: Value = serde_json::from_str(&speedscope("bfs", &groups)).unwrap();
    let frames = file["shared"]["frames"].as_array().unwrap().len() as u64;
    for profile in file["profiles"].as_array().unwrap() {
        let weights = profile["weights"].as_array().unwrap();
        let samples = profile["samples"].as_array().unwrap();
        assert_eq!(weights.len(), samples.len());
        let sum: u64 = weights.iter().map(|weight| weight.as_u64().unwrap()).sum();
        assert_eq!(profile["endValue"], sum);
        let mut numbers = samples.iter().flat_map(|sample| sample.as_array().unwrap());
        assert!(numbers.all(|number| number.as_u64() < Some(frames)));
    }
}

#[test]
fn hostile_names_cannot_add_lines_or_calls_to_folded_stacks() {
    let mut profile = graph::profile();
    graph::make_hostile(&mut profile);
    for site in &mut profile.sites {
        for frame in std::sync::Arc::make_mut(&mut site.frames) {
            frame.function = Some("a;b\nc 99".into());
        }
    }
    let report = Report::new(&profile, None);
    let allocation = stacks(&report.summary().sites, StackKind::Allocation);
    let text = folded(&allocation, StackWeight::Heat);
    assert_eq!(
        text.lines().count(),
        allocation.iter().filter(|it| it.heat > 0).count()
    );
    assert!(
        text.lines().all(|line| line.matches(';').count() <= 2),
        "{text}"
    );
}

#[test]
fn the_flame_graphs_of_the_page_hold_the_heat_the_bytes_and_the_sites_of_the_report() {
    let report = Report::new(&profile(), None);
    let summary = report.summary();
    let page = report.html();
    let data = page.split("id=\"data\">").nth(1).unwrap();
    let data = data.split("</script>").next().unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    let graph = |name: &str| data["flame"]["graphs"][name].as_array().unwrap().clone();
    let numbers = |frame: &Value| {
        let of = |key: &str| frame[key].as_u64().unwrap();
        (of("heat"), of("bytes"))
    };
    let (allocation, code) = (graph("allocation"), graph("code"));
    let totals = &summary.totals;
    assert_eq!(
        numbers(&allocation[0]),
        (totals.accesses, totals.peak_rss_sum_bytes)
    );
    let lines = summary.sites.iter().flat_map(|site| &site.code);
    let of_code: u64 = lines.map(|line| line.accesses).sum();
    assert_eq!(numbers(&code[0]), (of_code, 0));
    for graph in [&allocation, &code] {
        for (at, frame) in graph.iter().enumerate().skip(1) {
            let parent = frame["parent"].as_u64().unwrap() as usize;
            assert!(parent < at, "a frame is behind the one that it is in");
            assert!(numbers(frame).0 <= numbers(&graph[parent]).0);
        }
    }
    let sites = data["flame"]["sites"].as_array().unwrap();
    let of_allocation = allocation
        .iter()
        .flat_map(|frame| frame["sites"].as_array().unwrap());
    assert_eq!(
        of_allocation.count(),
        sites.len(),
        "each site is in one frame"
    );
    assert!(page.contains("Call tree by code"));
}
