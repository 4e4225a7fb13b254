//! Tests that every command shows one recording by the same numbers, and that these are what the program is known to do. The library
//! `libisotherm.so` must lie beside the program.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;

use isotherm_model::batch::{Epoch, Process, SourceReport};
use isotherm_model::plan::Plan;
use isotherm_model::port::Recorder;
use isotherm_model::profile::{Ending, Heat, Meta, Resident, Segment};
use isotherm_model::site::{Site, SiteId, SiteKind};
use isotherm_model::tier::TierIndex;
use isotherm_model::units::{Accesses, Bytes, Capacity, Nanos};
use isotherm_model::words::{counted, grouped, percent};
use isotherm_profile::{Existing, Writer};
use serde_json::Value;
use tempfile::TempDir;

use support::isotherm;

const MIB: u64 = 1 << 20;

/// 64 MiB: three quarters are written once, before everything else, and never read. Of the loads three in
/// four go to one array, and one in four to another of the same size and in the same way.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
enum { IDLE = 48 << 20, READ = 8 << 20, WORDS = READ / sizeof(long) };
static unsigned long draw(unsigned long x) { return x * 6364136223846793005ul + 1442695040888963407ul; }
__attribute__((noinline)) unsigned char *make_idle(void) { unsigned char *p = malloc(IDLE); memset(p, 1, IDLE); return p; }
__attribute__((noinline)) unsigned long *make_rare(void) { unsigned long *p = malloc(READ); memset(p, 2, READ); return p; }
__attribute__((noinline)) unsigned long *make_often(void) { unsigned long *p = malloc(READ); memset(p, 3, READ); return p; }
int main(void) {
    /* A buffer would be a site of 4 KiB, and one sample makes it the hottest. */
    setvbuf(stdout, 0, _IONBF, 0);
    unsigned char *idle = make_idle();
    unsigned long *rare = make_rare(), *often = make_often(), x = 1, sum = 0;
    clock_t end = clock() + 2 * CLOCKS_PER_SEC;
    while (clock() < end)
        for (int i = 0; i < 20000; i++) {
            for (int three = 0; three < 3; three++) { x = draw(x); sum += often[(x >> 33) % WORDS]; }
            x = draw(x);
            sum += rare[(x >> 33) % WORDS];
        }
    printf("%d\n", idle[7] + (sum == 0));
    return 0;
}
"#;

/// A directory with the recording, its plan at a quarter of the footprint, and what `record` said.
struct Recorded {
    directory: TempDir,
    said: String,
}

static RECORDED: LazyLock<Recorded> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("known.c"), PROGRAM).unwrap();
    let compiled = Command::new("cc")
        .args(["-O1", "-g", "-o"])
        .args([path("known"), path("known.c")])
        .status()
        .expect("a C compiler");
    assert!(compiled.success());
    let record = [
        "record", "--source", "timer", "--epoch", "250ms", "-o", "k.iso", "--", "./known",
    ];
    let output = isotherm(directory.path(), &record);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let plan = ["plan", "k.iso", "--tiers", "emulated", "--fast", "25%"];
    let planned = isotherm(directory.path(), &plan);
    assert!(planned.status.success());
    Recorded { directory, said }
});

fn printed(arguments: &[&str]) -> String {
    let output = isotherm(RECORDED.directory.path(), arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(arguments)).unwrap()
}

fn report() -> Value {
    json(&["report", "k.iso", "--json"])
}

fn plan() -> Plan {
    let text = std::fs::read_to_string(RECORDED.directory.path().join("k.plan")).unwrap();
    isotherm_plan_text::read(&text).unwrap()
}

/// The figures that the page's curve is drawn from.
fn curve_data(page: &str) -> Value {
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    let charts: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    charts["curve"].clone()
}

fn page() -> String {
    printed(&["report", "k.iso", "-o", "-"])
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn footprint() -> Bytes {
    Bytes(number(&report()["totals"]["footprint_bytes"]))
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn the_recording_tells_what_the_program_is_known_to_do() {
    let report = report();
    let footprint = footprint();
    assert!((64 * MIB..66 * MIB).contains(&footprint.0), "{footprint}");
    let share = |function: &str| {
        let sites = report["sites"].as_array().unwrap().iter();
        let mut found = sites.filter(|s| s["location"].as_str().unwrap().contains(function));
        found.next().unwrap()["accesses_share"].as_f64().unwrap()
    };
    let (often, rare, idle) = (share("make_often"), share("make_rare"), share("make_idle"));
    // Time is not loads: how much of it each of the two takes is the processor's affair.
    assert!(often > 0.1 && rare > 0.1, "{often} and {rare}");
    assert!(often + rare > 0.9 && idle < 0.1, "{idle}");
}

#[test]
fn sites_are_counted_alike_everywhere() {
    let sites = number(&report()["totals"]["sites"]) as usize;
    assert_eq!(report()["sites"].as_array().unwrap().len(), sites);
    let said = &RECORDED.said;
    let words = counted(sites, "site");
    assert!(said.contains(&format!("recorded {words} with")), "{said}");
    let page = page();
    assert_eq!(curve_data(&page)["sites"].as_array().unwrap().len(), sites);
    assert!(page.contains(&format!("<dt>sites</dt><dd><b>{sites}</b>")));
    let text = printed(&["report", "k.iso", "--text"]);
    let table = text.split_once("allocated in\n").unwrap().1;
    let folded = table.lines().find(|line| line.contains(" below the noise"));
    let folded = folded.map_or(0, |line| line.split_once(' ').unwrap().0.parse().unwrap());
    let rows = table.lines().take_while(|line| line.contains(" known.c:"));
    assert_eq!(rows.count() + folded, sites, "{text}");
    let planned = isotherm(
        RECORDED.directory.path(),
        &[
            "plan",
            "k.iso",
            "--tiers",
            "emulated",
            "--fast",
            "25%",
            "-o",
            "again.plan",
        ],
    );
    let said = String::from_utf8(planned.stderr).unwrap();
    let named = plan().assignments.len();
    let idle = format!(
        " also gets {}, with the arena that small sites share",
        counted(sites - named, "small site")
    );
    assert_eq!(said.contains(&idle), sites > named, "{said}");
}

#[test]
fn the_footprint_and_a_quarter_of_it_are_the_same_everywhere() {
    let footprint = footprint();
    let quarter = Capacity::Share(0.25).of(footprint);
    let sentence = format!("with a footprint of {footprint}");
    assert!(RECORDED.said.contains(&sentence), "{}", RECORDED.said);
    let text = printed(&["report", "k.iso", "--text"]);
    assert!(text.contains(&sentence), "{text}");
    let figure = format!("<dt>footprint</dt><dd><b>{footprint}</b>");
    assert!(page().contains(&figure), "{figure}");
    let report = report();
    assert_eq!(number(&report["totals"]["hot_capacity_bytes"]), quarter.0);
    assert_eq!(
        plan().tiers.get(TierIndex::FASTEST).unwrap().capacity,
        quarter
    );
    let simulated = json(&["simulate", "k.iso", "--fast", "25%", "--json"]);
    assert_eq!(number(&simulated["footprint_bytes"]), footprint.0);
    let at = &simulated["capacities"][0];
    assert_eq!(number(&at["fast_bytes"]), quarter.0);
    assert!((at["share_of_footprint"].as_f64().unwrap() - 0.25).abs() < 1e-6);
    let curve = json(&["curve", "k.iso", "--json"]);
    assert_eq!(number(&curve["footprint_bytes"]), footprint.0);
    for curve in curve["curves"].as_array().unwrap() {
        assert_eq!(number(&curve["points"][5]["capacity_bytes"]), quarter.0);
    }
    for output in [
        printed(&["curve", "k.iso"]),
        printed(&["simulate", "k.iso"]),
    ] {
        assert!(
            output.contains(&format!("a footprint of {footprint}")),
            "{output}"
        );
    }
}

#[test]
fn epochs_are_counted_alike_everywhere() {
    let report = report();
    let epochs = number(&report["run"]["epochs"]);
    let words = counted(epochs, "epoch");
    assert!(
        RECORDED.said.contains(&format!("in {words}, to")),
        "{}",
        RECORDED.said
    );
    assert!(page().contains(&format!(" over {words})")), "{words}");
    let simulated = json(&["simulate", "k.iso", "--json"]);
    assert_eq!(number(&simulated["epochs"]), epochs);
    let text = printed(&["simulate", "k.iso"]);
    assert!(text.contains(&format!(", {words}, ")), "{text}");
}

#[test]
fn what_was_counted_and_how_much_is_the_same_everywhere() {
    const COUNTED: &str = "time waiting for memory";
    let report = report();
    let totals = &report["totals"];
    let (on_sites, elsewhere) = (
        number(&totals["accesses"]),
        number(&totals["unattributed_accesses"]),
    );
    let words = counted(on_sites, "sample") + " of " + COUNTED;
    let said = format!("{words} on them and {} elsewhere", grouped(elsewhere));
    assert!(RECORDED.said.contains(&said), "{}", RECORDED.said);
    let simulated = json(&["simulate", "k.iso", "--json"]);
    let curve = json(&["curve", "k.iso", "--json"]);
    for output in [totals, &simulated, &curve, &curve_data(&page())] {
        assert_eq!(output["counted"], COUNTED);
    }
    assert_eq!(number(&simulated["accesses"]), on_sites);
    assert_eq!(number(&simulated["left_out"]), elsewhere);
    for curve in curve["curves"].as_array().unwrap() {
        assert_eq!(number(&curve["accesses"]), on_sites);
    }
    let plan = plan();
    assert_eq!(
        (plan.valued().as_str(), plan.standing.total),
        (COUNTED, on_sites)
    );
    let texts: [&[&str]; 4] = [
        &["report", "k.iso", "--text"],
        &["explain", "k.plan", "make_often"],
        &["curve", "k.iso"],
        &["simulate", "k.iso"],
    ];
    for arguments in texts {
        let text = printed(arguments);
        let whole = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(whole.contains(COUNTED), "{arguments:?}: {text}");
        // The recorded accesses of a simulation are named to say that they are samples.
        let said = whole.replace("--accesses-per-sample", "");
        let said = said.replace("a recorded access is a sample", "");
        assert!(!said.contains("of the accesses"), "{arguments:?}: {text}");
    }
}

#[test]
fn the_share_of_the_top_site_is_the_same_everywhere() {
    let report = report();
    let top = &report["sites"][0];
    let share = top["accesses_share"].as_f64().unwrap();
    let shown = percent(share);
    let id = top["site"].as_str().unwrap();
    let text = printed(&["report", "k.iso", "--text"]);
    let row = text
        .lines()
        .find(|line| line.contains(&format!(" {id} ")))
        .unwrap();
    assert!(row.trim_start().starts_with(&shown), "{row}");
    let point = &curve_data(&page())["sites"][0];
    assert!(near(point["accesses_share"].as_f64().unwrap(), share));
    let plan = plan();
    let first = &plan.assignments[0];
    assert_eq!(first.site.to_string(), id);
    assert!(near(first.value as f64 / plan.standing.total as f64, share));
    let explained = printed(&["explain", "k.plan", id]);
    assert!(
        explained.contains(&format!(", {shown} of all")),
        "{explained}"
    );
    assert!(explained.contains(&format!("rank 1 of {}", plan.assignments.len())));
    let quarter = report["totals"]["hot_accesses_share"].as_f64().unwrap();
    let curve = json(&["curve", "k.iso", "--json"]);
    let sites = &curve["curves"][1];
    assert_eq!(sites["pieces"], "sites");
    let at_quarter = sites["points"][5]["share_of_accesses"].as_f64().unwrap();
    assert!(near(at_quarter, quarter), "{at_quarter} and {quarter}");
    let rows = report["sites"].as_array().unwrap();
    for need in sites["needs"].as_array().unwrap() {
        let enough = |row: &&Value| {
            row["cumulative_accesses_share"].as_f64() >= need["share_of_accesses"].as_f64()
        };
        let row = rows.iter().find(enough).unwrap();
        assert_eq!(need["capacity_bytes"], row["cumulative_bytes"], "{need}");
    }
}

/// A profile of a program that counted 3,000 loads of one site and 1,000 of another.
fn counting(directory: &Path, cache_filter: Option<Bytes>) {
    let meta = Meta {
        chunk: Bytes(65_536),
        cache_filter,
        ..Meta::default()
    };
    let mut writer = Writer::create(&directory.join("c.iso"), &meta, Existing::Refuse).unwrap();
    let site = |id| Site {
        peak_rss: Bytes(MIB),
        ..Site::new(SiteId(id), SiteKind::Heap)
    };
    let sites = [site(0xa), site(0xb)];
    let heat = [(0xa, 0, 3000), (0xb, MIB, 1000)].map(|(site, address, loads)| Heat {
        epoch: Epoch(0),
        process: Process::default(),
        site: SiteId(site),
        address,
        object: None,
        accesses: Accesses(loads),
        streamed: Accesses::ZERO,
        served: Accesses::ZERO,
    });
    let resident = [0xa, 0xb].map(|site| Resident {
        epoch: Epoch(0),
        site: SiteId(site),
        bytes: Bytes(MIB),
    });
    let source = SourceReport {
        name: "instrumented".to_owned(),
        taken: 4000,
        usable: 4000,
        lost: 0,
        cost: Nanos(0),
        cost_note: String::new(),
        warning: String::new(),
    };
    let segment = Segment {
        sites: sites.to_vec(),
        heat: heat.into(),
        resident: resident.into(),
        sources: vec![source],
        ..Segment::default()
    };
    writer.record(&segment).unwrap();
    writer.finish(Ending::Exited(0), &sites).unwrap();
}

#[test]
fn loads_that_were_counted_keep_their_known_shares_and_their_name() {
    for (filter, noun) in [(None, "accesses"), (Some(Bytes(32 << 10)), "misses")] {
        let directory = tempfile::tempdir().unwrap();
        counting(directory.path(), filter);
        let text = |arguments: &[&str]| {
            let output = isotherm(directory.path(), arguments);
            assert!(output.status.success(), "{arguments:?}");
            let text = String::from_utf8(output.stdout).unwrap();
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        text(&["plan", "c.iso", "--tiers", "emulated", "--fast", "50%"]);
        let plan = std::fs::read_to_string(directory.path().join("c.plan")).unwrap();
        assert!(plan.contains(&format!("value accesses # {noun}").replace(" #", "  #")));
        let expected: [(&[&str], String); 5] = [
            (
                &["explain", "c.plan", "a"],
                format!("3,000 {noun}, 75 % of all 4,000"),
            ),
            (
                &["report", "c.iso", "--text"],
                format!("takes 38 % of the {noun}"),
            ),
            (
                &["report", "c.iso", "-o", "-"],
                format!("takes 38 % of the {noun}"),
            ),
            (
                &["curve", "c.iso"],
                format!("4,000 {noun}, a footprint of 2 MiB"),
            ),
            (
                &["simulate", "c.iso"],
                format!("4,000 {noun}, a footprint of 2 MiB"),
            ),
        ];
        for (arguments, expected) in expected {
            let text = text(arguments);
            assert!(text.contains(&expected), "{expected} is not in {text}");
        }
    }
}

#[test]
fn first_touch_serves_little_of_what_was_allocated_last_by_plan_and_by_simulation() {
    let standing = plan().standing;
    let planned = standing.first_touch as f64 / standing.total as f64;
    let simulated = json(&["simulate", "k.iso", "--fast", "25%", "--json"]);
    let first = &simulated["capacities"][0]["policies"][0];
    assert_eq!(first["policy"], "first touch");
    let simulated = first["hit_rate"].as_f64().unwrap();
    assert!(
        planned < 0.1 && simulated < 0.1,
        "{planned} and {simulated}"
    );
}

#[test]
fn latency_is_refused_where_the_processor_measured_none() {
    let arguments = [
        "plan", "k.iso", "--value", "latency", "--fast", "25%", "-o", "-",
    ];
    let output = isotherm(RECORDED.directory.path(), &arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in ["pebs, ibs and spe", "isotherm doctor", "--value accesses"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_tier_that_gets_more_than_it_holds_says_why() {
    // Less than the hottest site, so that hotset crosses with its first.
    let overfull = ["--fast", "6MiB", "--tiers", "emulated", "-o", "over.plan"];
    for (policy, said_why) in [("hotset", true), ("knapsack", false)] {
        let arguments = [&["plan", "k.iso", "--policy", policy][..], &overfull].concat();
        let output = isotherm(RECORDED.directory.path(), &arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        let line = said
            .lines()
            .find(|line| line.contains("fast gets"))
            .unwrap();
        let why = line.contains("hotset takes the site that crosses the capacity, so ")
            && line.contains(" will spill");
        assert_eq!(why, said_why, "{said}");
        let text = std::fs::read_to_string(RECORDED.directory.path().join("over.plan")).unwrap();
        let plan = isotherm_plan_text::read(&text).unwrap();
        let held = plan.bytes_in(TierIndex::FASTEST);
        assert_eq!(held > Bytes(6 * MIB), said_why, "{held}");
    }
}

#[test]
fn the_least_fast_memory_is_that_of_the_plan_for_its_size() {
    let search = ["plan", "k.iso", "--tiers", "emulated", "--slowdown", "5%"];
    let least = [&search[..], &["-o", "least.plan", "--json"]].concat();
    let need = json(&least);
    let (fast, whole) = (&need["fast_bytes"], &need["footprint_bytes"]);
    assert_eq!(number(whole), footprint().0);
    // The one of the two arrays that is read more, and most of the other.
    assert!((8 * MIB..17 * MIB).contains(&number(fast)), "{need:#}");
    assert!(need["expected_slowdown"].as_f64().unwrap() <= 0.05);
    let size = format!("{fast}B");
    let sized = ["plan", "k.iso", "--tiers", "emulated", "--fast", &size];
    printed(&[&sized[..], &["-o", "sized.plan"]].concat());
    let text = |name: &str| std::fs::read_to_string(RECORDED.directory.path().join(name)).unwrap();
    assert_eq!(text("least.plan"), text("sized.plan"));
    let sentence = printed(&[&search[..], &["-o", "said.plan"]].concat());
    let share = percent(number(fast) as f64 / number(whole) as f64);
    let begin = format!("k needs {share} of its memory in the fast tier (");
    assert!(sentence.starts_with(&begin), "{sentence}");
    let end = "emulated) to be at most 5 % slower than with all of it fast\n";
    assert!(sentence.ends_with(end), "{sentence}");
    let both = [&search[..], &["-o", "-", "--json"]].concat();
    let refused = isotherm(RECORDED.directory.path(), &both);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && said.contains("both are for standard output"));
}

/// Copies a program in a process of its own: a copy that this one had open for writing could be held open by what
/// another test starts at that moment, and the kernel runs no file that is.
fn copy(file: &Path, directory: &Path) {
    let copied = Command::new("cp").arg(file).arg(directory).status();
    assert!(copied.unwrap().success(), "{}", file.display());
}

/// Runs the tool as a user who may not trap the kernel's own accesses to pages, with a copy of the tool that
/// this user may read; none where every user may.
fn without_userfaultfd(directory: &Path, arguments: &[&str]) -> Option<Output> {
    const NOBODY: u32 = 65_534;
    let built = Path::new(env!("CARGO_BIN_EXE_isotherm")).parent().unwrap();
    for name in ["isotherm", "libisotherm.so"] {
        copy(&built.join(name), directory);
    }
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(directory, open).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(directory.join("isotherm"));
        command.current_dir(directory).args(arguments);
        if rustix::process::getuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.output().unwrap()
    };
    let doctor: Value = serde_json::from_slice(&run(&["doctor", "--json"]).stdout).unwrap();
    let is_pair = |finding: &&Value| finding["feature"].as_str().unwrap().contains("userfaultfd");
    let pair = doctor["findings"].as_array().unwrap().iter().find(is_pair);
    if pair.unwrap()["state"] == "available" {
        return None;
    }
    Some(run(arguments))
}

#[test]
fn a_plan_says_that_the_emulated_pair_cannot_work_and_a_run_claims_nothing() {
    let directory = tempfile::tempdir().unwrap();
    counting(directory.path(), None);
    for file in ["k.plan", "known"] {
        copy(&RECORDED.directory.path().join(file), directory.path());
    }
    let planned = directory.path().join("k.plan");
    let text = std::fs::read_to_string(&planned).unwrap();
    let by_time = "latency-factor 2.3 bandwidth-factor 2 migrate 5us";
    let by_trap = "period 100ms access 10us hot 13us migrate 50us";
    assert!(text.contains(by_time), "{text}");
    std::fs::write(&planned, text.replace(by_time, by_trap)).unwrap();
    let plan = ["plan", "c.iso", "--tiers", "emulated:tmp", "--fast", "50%"];
    let Some(planned) = without_userfaultfd(directory.path(), &plan) else {
        isotherm_skip::skip!("every user may trap pages on this machine");
        return;
    };
    let said = String::from_utf8(planned.stderr).unwrap();
    assert!(
        said.contains("the emulated pair cannot work here: "),
        "{said}"
    );
    assert!(
        said.contains("next: isotherm doctor") && !said.contains("isotherm run"),
        "{said}"
    );
    let run = [
        "run",
        "--plan",
        "k.plan",
        "--summary",
        "s.json",
        "--",
        "./known",
    ];
    let ran = without_userfaultfd(directory.path(), &run).unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(
        said.contains("the program ran without Isotherm and took "),
        "{said}"
    );
    assert!(
        !said.contains("emulated tiers") && !said.contains("guided run"),
        "{said}"
    );
    let summary = std::fs::read_to_string(directory.path().join("s.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["placed"], false);
    assert_eq!(summary["emulated"], false);
}
