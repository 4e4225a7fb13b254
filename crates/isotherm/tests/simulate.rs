//! Tests `isotherm simulate` and `isotherm curve` by running them on generated traces, files of other tools and profiles.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use isotherm_model::batch::{Epoch, Process, SourceReport};
use isotherm_model::port::Recorder;
use isotherm_model::profile::{Ending, EpochSpan, Heat, Meta, Segment};
use isotherm_model::site::{Site, SiteId, SiteKind};
use isotherm_model::units::{Accesses, Bytes, Nanos};
use isotherm_profile::{Existing, Writer};

fn traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces")
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_isotherm"))
        .current_dir(traces())
        .args(arguments)
        .output()
        .expect("isotherm starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Standard output of a run that must succeed.
fn printed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).expect("is UTF-8")
}

fn refused(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(!output.status.success(), "{arguments:?} was taken");
    assert!(output.stdout.is_empty(), "{arguments:?} printed a result");
    stderr(&output)
}

fn json(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&printed(arguments)).expect("is JSON")
}

const PHASES: [&str; 7] = [
    "simulate",
    "--generate",
    "phases",
    "--accesses",
    "60000",
    "--footprint",
    "1MiB",
];

#[test]
fn every_policy_stands_between_first_touch_and_the_oracle() {
    let report = json(&[&PHASES[..], &["--fast", "25%", "--json"]].concat());
    assert_eq!(
        (&report["schema_version"], &report["seed"]),
        (&1.into(), &1.into())
    );
    let at = &report["capacities"][0];
    assert_eq!(at["fast_bytes"], 256 << 10);
    let policies = at["policies"].as_array().expect("is a list");
    let rate = |policy: &serde_json::Value| policy["hit_rate"].as_f64().expect("is a number");
    let oracle = policies.last().expect("has policies");
    assert_eq!(policies[0]["policy"], "first touch");
    assert_eq!(oracle["policy"], "oracle");
    let names: Vec<_> = policies
        .iter()
        .map(|policy| policy["policy"].as_str())
        .collect();
    assert!(names.contains(&Some("history")), "{names:?}");
    for policy in policies {
        assert!(rate(policy) <= rate(oracle), "{policy}");
        assert!(
            policy["fast_used_bytes"].as_u64() <= at["fast_bytes"].as_u64(),
            "{policy}"
        );
    }
}

#[test]
fn the_same_seed_prints_the_same_bytes_and_another_seed_others() {
    let seeded = |seed: &str, form: &[&str]| {
        printed(&[&PHASES[..], &["--sweep", "--seed", seed], form].concat())
    };
    for form in [&[][..], &["--json"]] {
        assert_eq!(seeded("5", form), seeded("5", form));
        assert_ne!(seeded("5", form), seeded("6", form));
    }
    assert!(seeded("5", &[]).starts_with("phases, seed 5: 60,000 accesses, a footprint of "));
}

#[test]
fn a_sweep_halves_the_fast_memory_seven_times_and_can_be_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let plot = directory.path().join("sweep.html");
    let plot_name = plot.to_string_lossy();
    let report = json(&[&PHASES[..], &["--sweep", "--json", "--plot", &plot_name]].concat());
    let capacities = report["capacities"].as_array().expect("is a list");
    let bytes: Vec<u64> = capacities
        .iter()
        .filter_map(|at| at["fast_bytes"].as_u64())
        .collect();
    assert_eq!(bytes.len(), 7);
    assert!(
        bytes.windows(2).all(|pair| pair[1] <= pair[0] / 2),
        "{bytes:?}"
    );
    let drawn = std::fs::read_to_string(plot).unwrap();
    assert!(
        drawn.starts_with("<!DOCTYPE html>") && drawn.contains("oracle"),
        "{drawn}"
    );
    let picture = directory.path().join("sweep.svg");
    let picture_name = picture.to_string_lossy();
    let refused = run(&[&PHASES[..], &["--sweep", "--plot", &picture_name]].concat());
    assert!(!refused.status.success() && !picture.exists());
    assert!(
        stderr(&refused).contains("sweep.html"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn files_of_every_format_are_replayed_and_curved() {
    for (file, accesses, counted) in [
        ("accesses.csv", 5, "accesses"),
        ("page-faults.perf-script.txt", 30, "samples"),
        ("page-faults.perf.data", 30, "samples"),
        ("damon.trace.txt", 3_968, "page touches"),
        ("damo.data", 3_648, "page touches"),
        ("memprof.yaml", 90_010, "accesses"),
        ("memprof.profraw", 26_477_569, "accesses"),
    ] {
        let report = json(&["simulate", file, "--fast", "50%", "--json"]);
        assert_eq!(report["accesses"], accesses, "{file}");
        assert_eq!(report["seed"], serde_json::Value::Null);
        let curve = json(&["curve", file, "--json"]);
        let curves = &curve["curves"];
        assert_eq!(curves[0]["accesses"], accesses, "{file}");
        let points = curves[0]["points"].as_array().expect("is a list");
        let all = points.last().expect("has points");
        assert_eq!(all["share_of_accesses"], 1.0, "{file}");
        let text = printed(&["curve", file]);
        assert!(text.contains(&format!("of the {counted}")), "{text}");
        assert_eq!(curve["counted"], counted, "{file}");
    }
}

/// The report of a timer that delivered.
fn timer() -> SourceReport {
    SourceReport {
        name: "timer".to_owned(),
        taken: 3_048,
        usable: 3_048,
        lost: 0,
        cost: Nanos::ZERO,
        cost_note: String::new(),
        warning: String::new(),
    }
}

/// A profile of Isotherm: a small hot and a large cold site, over three epochs of a second.
/// With a time, a timer sampled them at this interval; without one, the interval is unknown.
fn recorded(path: &Path, sample_interval: Option<Nanos>) {
    let site = |id: u64, bytes: u64, first_seen: u32| Site {
        peak_rss: Bytes(bytes),
        first_seen,
        ..Site::new(SiteId(id), SiteKind::Heap)
    };
    let meta = Meta {
        chunk: Bytes(65_536),
        sample_interval,
        epoch_length: Nanos(1_000_000_000),
        ..Meta::default()
    };
    let mut writer = Writer::create(path, &meta, Existing::Refuse).unwrap();
    for epoch in (0..3).map(Epoch) {
        let heat = |(site, address, accesses): (u64, u64, u64)| Heat {
            epoch,
            process: Process { pid: 7, image: 0 },
            site: SiteId(site),
            address,
            object: None,
            accesses: Accesses(accesses),
            streamed: Accesses::ZERO,
            served: Accesses::ZERO,
        };
        let cold = (0..16).map(|chunk| (10, chunk << 16, 1));
        let hot = (64..66).map(|chunk| (11, chunk << 16, 500));
        let segment = Segment {
            epoch: EpochSpan {
                epoch,
                span: Nanos(1_000_000_000),
            },
            sites: vec![site(10, 1 << 20, 0), site(11, 128 << 10, 1)],
            heat: cold.chain(hot).map(heat).collect(),
            sources: sample_interval.map(|_| timer()).into_iter().collect(),
            ..Segment::default()
        };
        writer.record(&segment).unwrap();
    }
    writer.finish(Ending::Exited(0), &[]).unwrap();
}

#[test]
fn a_recorded_profile_is_replayed_under_site_policies_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("app.iso");
    recorded(&path, None);
    let path = path.to_string_lossy();
    let report = json(&["simulate", &path, "--fast", "256KiB", "--json"]);
    assert_eq!(
        (&report["accesses"], &report["epochs"]),
        (&3048.into(), &3.into())
    );
    let policies = report["capacities"][0]["policies"]
        .as_array()
        .expect("is a list");
    let hits = |name: &str| {
        let policy = policies.iter().find(|policy| policy["policy"] == name);
        policy
            .and_then(|policy| policy["hits"].as_u64())
            .expect("is there")
    };
    // The hot site fits; memory that fills as it is touched holds cold chunks only.
    assert_eq!(hits("thermos"), 3_000);
    // Its ranges need not be whole sites: two cold chunks fill what is left.
    assert_eq!(hits("atmem"), 3_006);
    assert_eq!(hits("first touch"), 12);
    let notes = report["notes"].to_string();
    assert!(notes.contains("give --accesses-per-sample"), "{notes}");
    let text = printed(&["curve", &path]);
    let row = text
        .lines()
        .find(|line| line.starts_with("1/8 "))
        .expect("has rows");
    assert!(row.ends_with("98 %"), "{text}");
    let error = refused(&["simulate", &path, "--epoch", "1s"]);
    assert!(error.contains("leave out --page and --epoch"), "{error}");
}

#[test]
fn a_profile_that_lost_the_size_of_its_chunks_is_refused_and_one_sentence_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("app.iso");
    recorded(&path, None);
    let meta = path.join("meta.parquet");
    let path = path.to_string_lossy();
    let told = |why: &str| {
        for command in ["curve", "simulate"] {
            let error = refused(&[command, &path]);
            assert_eq!(error.lines().count(), 1, "{command}: {error}");
            assert!(
                error.contains(&format!("meta.parquet: it {why}")),
                "{command}: {error}"
            );
            assert!(error.contains("record again"), "{command}: {error}");
        }
    };
    std::fs::remove_file(&meta).unwrap();
    told("is missing, and without it");
    std::fs::write(&meta, "x").unwrap();
    told("was left out: ");
    std::fs::remove_file(&meta).unwrap();
    // A directory cannot be read as a file, by no user.
    std::fs::create_dir(&meta).unwrap();
    told("could not be read");
}

#[test]
fn a_sample_of_the_timer_is_taken_for_what_the_slow_tier_serves_until_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("app.iso");
    recorded(&path, Some(Nanos(2_000_000)));
    let path = path.to_string_lossy();
    let report = |arguments: &[&str]| {
        let common = ["simulate", &path, "--fast", "256KiB", "--policy", "payback"];
        json(&[&common[..], &["--json"], arguments].concat())
    };
    // 2 ms between samples, 250 ns an access of CXL memory.
    let default = report(&[]);
    assert_eq!(default["accesses_per_count"], 8_000);
    let notes = default["notes"].to_string();
    assert!(
        notes.contains("one each 2.0 ms, and stands for 8000"),
        "{notes}"
    );
    let told = report(&["--accesses-per-sample", "5"]);
    assert_eq!(told["accesses_per_count"], 5);
    assert!(!told["notes"].to_string().contains("recorded access"));
    let moved = |report: &serde_json::Value| {
        let policy = &report["capacities"][0]["policies"][1];
        policy["moved_bytes"].as_u64().expect("is a number")
    };
    assert!(moved(&default) > 0, "{default}");
}

#[test]
fn memory_of_ddr4_and_of_ddr5_takes_other_energy_than_round_numbers() {
    let energy = |power: &[&str]| {
        let report = json(&[&PHASES[..], &["--fast", "25%", "--json"], power].concat());
        let policy = &report["capacities"][0]["policies"][1];
        policy["energy_pj"].as_u64().expect("is a number")
    };
    let flat = energy(&[]);
    assert_eq!(flat, energy(&["--power", "flat"]));
    let (ddr4, ddr5) = (energy(&["--power", "ddr4"]), energy(&["--power", "ddr5"]));
    assert!(flat != ddr4 && ddr4 != ddr5, "{flat} {ddr4} {ddr5}");
    let text = printed(&[&PHASES[..], &["--power", "ddr5"]].concat());
    assert!(text.contains("power: ranks of 4 DDR5-4800"), "{text}");
}

#[test]
fn each_tier_may_have_a_power_model_of_its_own() {
    let energy = |power: &str| {
        let report = json(&[&PHASES[..], &["--fast", "25%", "--json", "--power", power]].concat());
        let policy = &report["capacities"][0]["policies"][0];
        policy["energy_pj"].as_u64().expect("is a number")
    };
    // The background of ranks dominates: HBM beside DDR5 lies between both.
    let (hbm, pair, ddr5) = (energy("hbm2"), energy("hbm2,ddr5"), energy("ddr5"));
    assert!(hbm < pair && pair < ddr5, "{hbm} {pair} {ddr5}");
    assert!(energy("ddr5,cxl") > ddr5);
    let output = printed(&[&PHASES[..], &["--fast", "25%", "--power", "ddr5,cxl"]].concat());
    assert!(output.contains("beside ranks of 4 DDR5-4800"), "{output}");
    assert!(
        output.contains("behind a link of 3.86 pJ a bit"),
        "{output}"
    );
    let same = run(&[&PHASES[..], &["--power", "ddr5,cxl"]].concat());
    assert!(
        stderr(&same).contains("--power ddr5,cxl"),
        "{}",
        stderr(&same)
    );
    let wrong = refused(&[&PHASES[..], &["--power", "ddr5,steam"]].concat());
    assert!(wrong.contains("no power model \"steam\""), "{wrong}");
}

#[test]
fn the_next_command_is_named_and_runs() {
    let output = run(&["simulate", "memprof.yaml"]);
    let next = stderr(&output);
    let next = next
        .lines()
        .find_map(|line| line.strip_prefix("isotherm: next: isotherm "));
    let words: Vec<&str> = next.expect("is named").split(' ').collect();
    assert_eq!(
        words,
        [
            "simulate",
            "memprof.yaml",
            "--sweep",
            "--plot",
            "sweep.html"
        ]
    );
    let text = printed(&words[..3]);
    assert!(text.contains("hit rate"), "{text}");
}

/// What is replayed and on which machine stays the same; a generated trace of other size is another one.
#[test]
fn the_next_command_replays_the_same_trace_on_the_same_machine() {
    let trace = "--generate zipf --seed 7 --footprint 1MiB --accesses 1000 --page 8KiB";
    let machine = "--tiers nvm --source both --power ddr4 --policy history";
    let first = format!("simulate {trace} {machine} --json");
    let output = run(&first.split(' ').collect::<Vec<_>>());
    let said = stderr(&output);
    let wanted = format!("next: isotherm simulate {trace} {machine} --sweep --plot sweep.html\n");
    assert!(said.ends_with(&wanted), "{said}");
}

#[test]
fn what_cannot_be_read_is_refused_with_the_reason() {
    for (arguments, what) in [
        (
            &["simulate", "bad/backwards.csv"][..],
            "bad/backwards.csv:4: the time 4000 ns",
        ),
        (
            &["simulate", "bad/cut-off.perf.data"],
            "at byte 40: the records",
        ),
        (
            &["curve", "bad/negative.memprof.yaml"],
            ":10: TotalAccessCount is \"-90000\"",
        ),
        (&["curve", "bad/nothing.bin"], "matches no known format"),
        (
            &["curve", "nowhere.csv"],
            "nowhere.csv: cannot be read: No such file",
        ),
    ] {
        let error = refused(arguments);
        assert!(error.contains(what), "{arguments:?}: {error}");
    }
}

#[test]
fn a_footprint_that_no_trace_is_generated_of_is_refused_with_the_range() {
    for (pattern, footprint) in [("zipf", "1PiB"), ("uniform", "0B")] {
        let error = refused(&["simulate", "--generate", pattern, "--footprint", footprint]);
        let what = format!(
            "'{footprint}' for '--footprint <SIZE>': a trace is generated of 64KiB to 1TiB"
        );
        assert!(error.contains(&what), "{error}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_the_choice() {
    for (arguments, what) in [
        (
            &["simulate", "accesses.csv", "--format", "memprof"][..],
            "it holds no allocation site",
        ),
        (
            &["simulate", "accesses.csv", "--format", "csv"],
            "there are profile, text, perf-script",
        ),
        (
            &["simulate", "accesses.csv", "--policy", "thermos"],
            "thermos places allocation sites",
        ),
        (
            &["simulate", "accesses.csv", "--policy", "magic"],
            "no policy is named \"magic\"",
        ),
        (
            &["simulate", "memprof.yaml", "--policy", "atmem=m:1"],
            "m is 1, and must be at least 2",
        ),
        (
            &["simulate", "accesses.csv", "--power", "hydro"],
            "there are flat, ddr4, ddr5, lpddr4, hbm2, cxl",
        ),
        (
            &["simulate", "accesses.csv", "--tiers", "mars"],
            "nor a file that exists",
        ),
        (
            &["simulate", "accesses.csv", "--page", "12KiB"],
            "no power of two",
        ),
        (
            &["simulate", "accesses.csv", "--epoch", "0s"],
            "longer than nothing",
        ),
        (
            &["simulate", "accesses.csv", "--fast", "25%", "--sweep"],
            "cannot be used with",
        ),
        (
            &["simulate", "memprof.yaml", "--source", "both"],
            "needs the order of accesses",
        ),
        (
            &["simulate", "--generate", "chaos"],
            "there are uniform, zipf",
        ),
        (
            &["simulate", "--generate", "zipf", "--format", "text"],
            "--format text: a generated trace has no format",
        ),
        (&["simulate"], "<INPUT>"),
        (
            &["simulate", "accesses.csv", "--seed", "3"],
            "cannot be used with",
        ),
    ] {
        let error = refused(arguments);
        assert!(error.contains(what), "{arguments:?}: {error}");
    }
}
