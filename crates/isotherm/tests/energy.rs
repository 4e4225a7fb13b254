//! Tests data that a cold set colours: it is planned, explained, followed by a run, and simulated beside interleaved pages.
//!
//! `libisotherm.so` must lie beside the program (`cargo build --workspace` puts it there), and a C compiler on the `PATH`.

mod support;

use std::process::Command;

use isotherm_model::colour::Colour;
use isotherm_model::plan::{Assignment, Plan};
use isotherm_model::tier::TierIndex;
use isotherm_model::units::Bytes;
use tempfile::TempDir;

use support::{guided, isotherm, stderr, succeeds};

const MIB: u64 = 1 << 20;

/// 48 MiB that are touched once, and 8 MiB that are written at random.
const SOURCE: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { MIB = 1 << 20, HOT = 8 * MIB / 8 };
__attribute__((noinline)) static char *make_cold(void) { return memset(malloc(48 * MIB), 1, 48 * MIB); }
__attribute__((noinline)) static unsigned long *make_hot(void) { return calloc(HOT, 8); }
int main(void) {
    char *cold = make_cold();
    unsigned long *hot = make_hot(), sum = 0;
    unsigned random = 1;
    for (int i = 0; i < 240000000; i++) {
        random = random * 1664525u + 1013904223u;
        hot[(random >> 8) % HOT] += i;
    }
    for (int i = 0; i < HOT; i++) sum += hot[i];
    printf("%lu %d\n", sum, cold[MIB]);
    return 0;
}
"#;

/// Runs of a load that one device slows from 2 GB/s on, two from 3 GB/s on.
const RUNS: &str = "\
devices 1 delay 0 bandwidth 2000000000 work 20
devices 2 delay 0 bandwidth 3000000000 work 30
devices 3 delay 0 bandwidth 4000000000 work 40
devices 1 delay 50 bandwidth 2000000000 work 20
devices 2 delay 50 bandwidth 2500000000 work 25
devices 3 delay 50 bandwidth 2500000000 work 25
devices 1 delay 100 bandwidth 1000000000 work 10
devices 2 delay 100 bandwidth 1000000000 work 10
devices 3 delay 100 bandwidth 1000000000 work 10
";

/// A directory with the program and its profile.
fn recorded() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("app.c"), SOURCE).expect("writes");
    let built = Command::new("cc")
        .current_dir(directory.path())
        .args(["-O1", "-g", "-Wl,--build-id", "-o", "app", "app.c"])
        .status();
    assert!(built.expect("a C compiler").success());
    succeeds(
        &directory,
        &["record", "--cache", "0B", "-o", "app.iso", "--", "./app"],
    );
    directory
}

/// The messages of `isotherm plan` by the cold set, and the plan.
fn planned(directory: &TempDir, flags: &[&str]) -> (String, Plan) {
    planned_by(directory, "cold-set=5%", flags)
}

/// The messages and the plan by this policy, such as a cold set of another share.
fn planned_by(directory: &TempDir, policy: &str, flags: &[&str]) -> (String, Plan) {
    let tiers = ["--policy", policy, "--tiers", "emulated:cxl"];
    let plan = [&["plan", "app.iso"][..], &tiers].concat();
    let output = succeeds(directory, &[&plan[..], &["-o", "app.plan"], flags].concat());
    let text = std::fs::read_to_string(directory.path().join("app.plan")).expect("was written");
    (
        stderr(&output),
        isotherm_plan_text::read(&text).expect("a plan"),
    )
}

/// Devices of the hot and of the cold colour.
fn devices(plan: &Plan) -> [u32; 2] {
    [Colour::Hot, Colour::Cold].map(|colour| {
        let mut found = plan.colours.iter().filter(|it| it.colour == colour);
        found.next().expect("a colour").devices
    })
}

/// The colour of a site.
fn colour_of_site(plan: &Plan, site: &Assignment) -> Option<Colour> {
    let mut colours = plan.colours.iter();
    colours.find(|it| it.tier == site.tier).map(|it| it.colour)
}

/// The colour of the only site that allocated this many MiB.
fn colour_of(plan: &Plan, mib: u64) -> Option<Colour> {
    let size = Bytes(mib * MIB)..Bytes((mib + 1) * MIB);
    let mut sites = plan
        .assignments
        .iter()
        .filter(|site| size.contains(&site.weight));
    colour_of_site(plan, sites.next().expect("a site"))
}

#[test]
fn hot_data_is_packed_on_the_fewest_devices_and_a_run_by_the_plan_keeps_cold_data_apart() {
    let directory = recorded();
    let (said, plan) = planned(&directory, &[]);
    assert!(
        said.contains("of hot data on 1 of 4 memory devices"),
        "{said}"
    );
    assert!(
        said.contains("cold data on the other 3, which may sleep"),
        "{said}"
    );
    assert_eq!(devices(&plan), [1, 3]);
    assert_eq!(colour_of(&plan, 8), Some(Colour::Hot));
    assert_eq!(colour_of(&plan, 48), Some(Colour::Cold));
    assert_eq!(plan.default_tier, TierIndex::FASTEST, "unknown data is hot");
    let explained = succeeds(&directory, &["explain", "app.plan", "make_cold"]);
    let explained = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert!(
        explained.contains("slow (emulated), colour cold"),
        "{explained}"
    );
    let (_, summary) = guided(&directory, &[]);
    assert_eq!(
        summary["fit"]["found_sites"],
        summary["fit"]["planned_sites"]
    );
    each_share_of_the_paper_is_planned(&directory);
    a_device_is_added_where_hot_data_exceeds_one(&directory);
    the_bandwidth_asks_for_more_devices(&directory);
    packed_data_takes_less_energy_than_interleaved_data(&directory);
    the_report_labels_the_energy_of_each_tier_and_site(&directory);
    what_devices_cannot_be_for_is_refused(&directory);
}

/// Modelled, by the plan of [`planned`]: hot data on the first of four devices.
fn the_report_labels_the_energy_of_each_tier_and_site(directory: &TempDir) {
    planned(directory, &[]);
    let report = |flags: &[&str]| {
        let words = ["report", "app.iso", "--json"];
        let output = succeeds(directory, &[&words[..], flags].concat());
        serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("is JSON")
    };
    let modelled = report(&["--power", "ddr4", "--plan", "app.plan"]);
    let rows = modelled["energy"].as_array().expect("rows");
    let rows: Vec<_> = rows.iter().filter(|it| it["kind"] == "modelled").collect();
    assert_eq!(
        (&rows[0]["of"], &rows[1]["of"]),
        (&"fast".into(), &"slow".into())
    );
    let joules = |row: &serde_json::Value, part: &str| row[part].as_f64().expect("joules");
    let tiers: f64 = rows
        .iter()
        .map(|row| joules(row, "joules") - joules(row, "free_joules"))
        .sum();
    let sites = modelled["sites"].as_array().expect("sites");
    let sites = sites
        .iter()
        .filter_map(|site| site["modelled_energy_joules"].as_f64());
    // The energy of accesses to no site is the rest.
    let sites: f64 = sites.sum();
    assert!(
        sites > 0.0 && sites <= tiers * 1.000_001,
        "{sites} of {tiers}"
    );
    let without = report(&[]);
    let has_modelled = |report: &serde_json::Value| {
        let rows = report["energy"].as_array();
        rows.is_some_and(|rows| rows.iter().any(|it| it["kind"] == "modelled"))
    };
    assert!(has_modelled(&modelled) && !has_modelled(&without));
    let text = succeeds(
        directory,
        &["report", "app.iso", "--text", "--power", "ddr4"],
    );
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.contains("energy of") && text.contains("modelled"),
        "{text}"
    );
}

/// Cold data has at most the share of all accesses, and more bytes where the share is larger. In the constrained environment a device holds a
/// quarter of the footprint, and hot data has as few of them as hold it.
fn each_share_of_the_paper_is_planned(directory: &TempDir) {
    let mut before = 0;
    for percent in [1, 2, 5, 10, 20] {
        let policy = format!("cold-set={percent}%");
        let (said, plan) = planned_by(directory, &policy, &["--fast", "25%"]);
        let sum = |colour, of: fn(&Assignment) -> u64| {
            let sites = plan.assignments.iter();
            let sites = sites.filter(|site| colour_of_site(&plan, site) == Some(colour));
            sites.map(of).sum::<u64>()
        };
        let [hot, cold] = [Colour::Hot, Colour::Cold].map(|colour| sum(colour, |site| site.value));
        assert!(
            cold * 100 <= (hot + cold) * percent,
            "{policy}: {cold} and {hot}"
        );
        let bytes = sum(Colour::Cold, |site| site.weight.0);
        assert!(bytes >= before, "{policy}: {bytes} after {before}");
        before = bytes;
        let mut colours = plan.colours.iter();
        let placed = colours
            .find(|it| it.colour == Colour::Hot)
            .expect("a colour");
        let needed = sum(Colour::Hot, |site| site.weight.0).div_ceil(placed.device.0);
        assert_eq!(u64::from(placed.devices), needed.max(1), "{policy}: {said}");
    }
}

/// The capacity-constrained environment: devices of 3 MiB.
fn a_device_is_added_where_hot_data_exceeds_one(directory: &TempDir) {
    let (said, plan) = planned(directory, &["--fast", "3MiB"]);
    assert_eq!(devices(&plan)[0], 3, "{said}");
    assert!(said.contains("the fewest that hold them"), "{said}");
    assert_eq!(plan.tiers.all()[0].capacity, Bytes(9 * MIB));
    let (said, plan) = planned(directory, &["--devices", "4x16MiB"]);
    assert_eq!(
        (devices(&plan), plan.tiers.all()[0].capacity),
        ([1, 3], Bytes(16 * MIB)),
        "{said}"
    );
}

fn the_bandwidth_asks_for_more_devices(directory: &TempDir) {
    std::fs::write(directory.path().join("load.runs"), RUNS).expect("writes");
    let fit = succeeds(directory, &["fit-bandwidth", "load.runs"]);
    let said = stderr(&fit);
    assert!(said.contains("1 device: below 1.8 GiB/s"), "{said}");
    assert!(said.contains("3 devices: above it"), "{said}");
    for (bandwidth, wanted) in [("1GB/s", 1), ("2.6GB/s", 2), ("4.1GB/s", 3)] {
        let flags = [
            "--devices",
            "4x1GiB",
            "--bandwidth",
            bandwidth,
            "--bandwidth-model",
            "bandwidth.toml",
        ];
        let (said, plan) = planned(directory, &flags);
        assert_eq!(devices(&plan), [wanted, 4 - wanted], "{bandwidth}: {said}");
    }
}

fn packed_data_takes_less_energy_than_interleaved_data(directory: &TempDir) {
    let simulate = [
        "simulate",
        "app.iso",
        "--fast",
        "25%",
        "--policy",
        "cold-set=5%",
        "--json",
    ];
    let replay = |flags: &[&str]| -> serde_json::Value {
        let output = succeeds(directory, &[&simulate[..], flags].concat());
        serde_json::from_slice(&output.stdout).expect("is JSON")
    };
    let four = [
        "--power",
        "ddr4",
        "--devices",
        "4",
        "--tiers",
        "dimms",
        "--accesses-per-sample",
        "1000000",
    ];
    let modelled = replay(&four);
    let rows = modelled["capacities"][0]["policies"]
        .as_array()
        .expect("a list");
    let named = |name: &str| {
        rows.iter()
            .find(|row| row["policy"] == name)
            .expect("a row")
    };
    assert_eq!(named("interleaved")["energy_of_interleaved"], 1.0);
    assert!((named("interleaved")["hit_rate"].as_f64().expect("a share") - 0.25).abs() < 0.01);
    let packed = named("cold-set=5%")["energy_of_interleaved"]
        .as_f64()
        .expect("a share");
    // How much less depends on the number of samples, and with it the modelled rate.
    assert!(packed < 1.0, "{modelled}");
    // Without their number, the sizes of the tiers would decide how many devices there are.
    for flags in [&[][..], &["--power", "ddr4"]] {
        let without = replay(flags);
        assert!(!without.to_string().contains("interleaved"), "{without}");
    }
}

/// Command lines that are refused, and words of the reason.
const REFUSED: [(&str, &str); 8] = [
    (
        "plan app.iso --policy cold-set --tiers one.toml",
        "these tiers are one",
    ),
    (
        "plan app.iso --devices 4x1GiB --tiers emulated:cxl",
        "use --policy cold-set",
    ),
    (
        "plan app.iso --policy cold-set=5 --tiers emulated:cxl",
        "such as 5% or 0.25%",
    ),
    (
        "plan app.iso --policy cold-set --devices 2x16MiB --tiers emulated:cxl",
        "less than the footprint",
    ),
    ("plan app.iso --bandwidth 1GB/s", "--bandwidth-model"),
    ("simulate app.iso --devices 4", "add --power ddr4"),
    (
        "fit-bandwidth app.c -o refused.toml",
        "app.c: no line is a run",
    ),
    (
        "plan app.iso --policy cold-set --tiers emulated:cxl --fast 16B -o refused.plan",
        "name larger ones",
    ),
];

fn what_devices_cannot_be_for_is_refused(directory: &TempDir) {
    let tiers = "[[tier]]\nname = \"only\"\nnodes = [0]\ncapacity = \"1GiB\"\n";
    std::fs::write(directory.path().join("one.toml"), tiers).expect("writes");
    for (line, why) in REFUSED {
        let arguments: Vec<&str> = line.split(' ').collect();
        let output = isotherm(directory, &arguments);
        assert!(!output.status.success(), "{line} was taken");
        let said = stderr(&output);
        assert!(said.contains(why), "{line}: {said}");
    }
    for output in ["refused.toml", "refused.plan"] {
        assert!(!directory.path().join(output).exists(), "{output}");
    }
}
