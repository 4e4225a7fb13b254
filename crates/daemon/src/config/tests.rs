//! Tests of accepted and rejected configurations.

use super::{AT_START, COMMENTED, Config, FilterName, Written};
use isotherm_model::units::{Bytes, Capacity, Nanos};
use isotherm_pipeline::{GroupLimit, Priority};

fn error(text: &str) -> String {
    format!("{:#}", Config::parse(text).expect_err(text))
}

#[test]
fn the_commented_file_is_the_default_and_a_file_needs_only_what_differs() {
    let whole = Config::parse(COMMENTED).expect("valid");
    assert_eq!(Config::parse("").expect("valid"), whole);
    assert_eq!(whole.epoch, Written(Nanos(1_000_000_000)));
    let text = "[processes]\nfilter = \"off\"\n[groups.\"/a\"]\ncap = \"1GiB\"\npriority = 2\n";
    let config = Config::parse(text).expect("valid");
    assert_eq!(config.processes.filter, FilterName::Off);
    assert!(config.processes.children);
    let group = config.groups().expect("valid")["/a"];
    let wanted = GroupLimit {
        cap: Some(Bytes(1 << 30)),
        floor: Bytes::ZERO,
        priority: Priority(2_000),
    };
    assert_eq!(group, wanted);
    assert_eq!(config.needs_restart(&whole), [""; 0]);
}

/// A comment above each key, so that no key is added without one.
#[test]
fn every_key_is_documented() {
    let mut documented = false;
    for line in COMMENTED.lines().filter(|line| !line.is_empty()) {
        let is_comment = line.starts_with('#');
        assert!(is_comment || line.starts_with('[') || documented, "{line}");
        // `strict_at_most` is documented with the filter that it belongs to.
        documented = is_comment || line.starts_with("filter");
    }
}

#[test]
fn an_unknown_key_and_a_bad_value_are_refused_with_their_line() {
    let text = "epoch = \"1s\"\n\n[moves]\nrate = \"1GiB\"\nspeed = 3\n";
    let said = error(text);
    assert!(
        said.contains("line 5") && said.contains("`speed`") && said.contains("rate"),
        "{said}"
    );
    let said = error("[memory]\n# a size without a unit\nfast = \"12\"\n");
    assert!(said.contains("line 3") && said.contains("fast"), "{said}");
    let said = error("[sources]\nsample_hz = \"many\"\n");
    assert!(said.contains("line 2"), "{said}");
    assert!(
        error("epoch = [").contains("line 1"),
        "{}",
        error("epoch = [")
    );
}

#[test]
fn values_that_would_do_harm_are_refused_with_what_would_be_right() {
    for (text, part) in [
        ("epoch = \"1ms\"", "100"),
        ("policy = \"clairvoyance\"", "payback"),
        (
            "policy = \"balance\"\n[moves]\nmover = \"kernel\"",
            "leave out moves.mover",
        ),
        ("[memory]\nunit = \"3MiB\"", "power of two"),
        ("[moves]\nrate = \"0B\"", "--dry-run"),
        ("[serve]\nmetrics = \"here\"", "127.0.0.1:9464"),
        ("[sources]\ntrace_samples = \"page-faults\"", "timer"),
        ("[sources]\nbudget = \"1GiB\"", "1%"),
        (
            "[sources]\nbudget = \"500%\"",
            "line 2: `sources.budget`: \"500%\" is out of range: a share",
        ),
        (
            "[sources]\nsample_hz = 0",
            "line 2: sources.sample_hz = 0: a number from 1 to 20000",
        ),
        (
            "[memory]\nfast = \"0B\"",
            "line 2: memory.fast = \"0B\": a fast tier of zero bytes",
        ),
        (
            "[moves]\ntime = \"0s\"",
            "line 2: moves.time = \"0ns\": nothing would ever be moved",
        ),
        (
            "[moves]\n\ntime = \"2s\"",
            "line 3: moves.time = \"2s\": it is the time of every second",
        ),
        (
            "[serve]\nsocket = \"\"",
            "line 2: serve.socket = \"\": names no path",
        ),
        ("[serve]\nstate = \"\"", "serve.state = \"\": names no path"),
        ("[sources]\npmu_rate = 3", "power of two from 1 to 64"),
        ("[sources]\npmu_rate = 128", "power of two from 1 to 64"),
        ("[sources]\ncache = \"some\"", "auto"),
        (
            "[compressed]\nslowdown = \"5MiB\"",
            "is a share of the time",
        ),
        ("[compressed]\nslowdown = \"100%\"", "compressed.keep"),
        ("[groups.\"a.slice\"]\ncap = \"1GiB\"", "begins with /"),
        ("[groups.\"/a\"]\npriority = 0", "from 0.01 to 100"),
        ("[groups.\"/a\"]\npriority = nan", "from 0.01 to 100"),
        ("[processes]\nusers = [\"nobody-of-that-name\"]", "no user"),
    ] {
        assert!(error(text).contains(part), "{text}: {}", error(text));
    }
}

#[test]
fn sizes_that_no_machine_has_and_keys_that_select_no_process_are_refused_with_their_line() {
    for (text, part) in [
        (
            "[memory]\nunit = \"8192PiB\"",
            "line 2: memory.unit = \"8192PiB\": a unit is a power of two from 4KiB to 1GiB",
        ),
        (
            "[memory]\n\nfast = \"999PiB\"",
            "line 3: memory.fast = \"999PiB\": a program has at most 128TiB of addresses",
        ),
        (
            "[processes]\ncontrol_groups = [\"/a\", \"nope\"]",
            "line 2: processes.control_groups: \"nope\": the name of a control group begins with /",
        ),
        (
            "[processes]\n\nprograms = [\"\"]",
            "line 3: processes.programs: \"\": names no program",
        ),
        (
            "[processes]\npids = [1, 0]",
            "line 2: processes.pids: 0: no process has this number",
        ),
    ] {
        assert!(error(text).contains(part), "{text}: {}", error(text));
    }
}

#[test]
fn users_are_found_by_name_and_shares_are_of_a_processor() {
    let text = "[processes]\nusers = [\"root\", 7]\n[sources]\nbudget = \"2.5%\"\n";
    let config = Config::parse(text).expect("valid");
    assert_eq!(config.selection().expect("users").users, [0, 7]);
    assert_eq!(config.budget_ppm(), 25_000);
    assert_eq!(config.sources.budget, Written(Capacity::Share(0.025)));
}

#[test]
fn keys_that_need_a_restart_are_named() {
    let one = Config::parse("").expect("valid");
    let other = Config::parse("policy = \"history\"\n[memory]\nunit = \"64KiB\"\nfast = \"1GiB\"")
        .expect("valid");
    assert_eq!(one.needs_restart(&other), ["policy", "memory.unit"]);
}

/// The keys whose comment in the file says that they are read at the start only, with their tables.
fn marked_keys() -> Vec<String> {
    let (mut table, mut is_marked, mut found) = (String::new(), false, Vec::new());
    for line in COMMENTED.lines() {
        if let Some(comment) = line.strip_prefix('#') {
            is_marked |= comment.trim_end().ends_with("[start]");
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            table = format!("{}.", name.trim_end_matches(']'));
        } else if is_marked && let Some((key, _)) = line.split_once(" = ") {
            found.push(format!("{table}{key}"));
        }
        is_marked = false;
    }
    found
}

#[test]
fn the_keys_that_need_a_restart_are_those_that_the_file_marks() {
    let marked = marked_keys();
    assert!(marked.len() >= 12, "{marked:?}");
    let is_named = |key: &String| {
        let table = key.split('.').next();
        AT_START
            .iter()
            .any(|(name, _)| name == key || table == Some(*name))
    };
    let unnamed: Vec<&String> = marked.iter().filter(|key| !is_named(key)).collect();
    assert_eq!(unnamed, [""; 0], "they would be taken without an effect");
    let is_marked = |name: &str| {
        let in_table = format!("{name}.");
        marked
            .iter()
            .any(|key| key == name || key.starts_with(&in_table))
    };
    let unmarked: Vec<&str> = AT_START
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !is_marked(name))
        .collect();
    assert_eq!(unmarked, [""; 0]);
}

#[test]
fn what_needs_a_restart_stays_as_it_was_and_the_rest_is_taken() {
    let started = Config::parse("").expect("valid");
    let text = "policy = \"history\"\n\
                [memory]\nunit = \"64KiB\"\nfast = \"1GiB\"\ntiers = \"/some/file\"\n\
                [sources]\naccessed_bits = \"off\"\ntrace_samples = \"off\"\nsample_hz = 7\npmu_rate = 4\ncache = \"1MiB\"\n\
                combine = \"sum\"\n\
                [serve]\nmetrics = \"\"\n";
    let mut read = Config::parse(text).expect("valid");
    assert_eq!(started.needs_restart(&read).len(), 10, "all there are");
    read.keep_started(&started);
    assert_eq!(started.needs_restart(&read), [""; 0]);
    assert_eq!(read.memory.fast, Written(Capacity::Bytes(Bytes(1 << 30))));
}

#[test]
fn an_error_in_a_group_is_told_with_its_line() {
    let said = error("epoch = \"1s\"\n[groups.\"/a\"]\ncap = \"1GiB\"\nfloors = \"1GiB\"\n");
    assert!(
        said.contains("line 4") && said.contains("floors`") && said.contains("floor"),
        "{said}"
    );
    let said = error("[groups.\"/a\"]\ncap = \"1GiB\"\n\n[groups.\"/b\"]\nfloor = \"much\"\n");
    assert!(said.contains("line 5") && said.contains("/b"), "{said}");
    let said = error("[groups.'/a']\npriority = \"2\"\n");
    assert!(
        said.contains("line 2") && said.contains("priority"),
        "{said}"
    );
}

#[test]
fn floors_that_do_not_fit_together_are_refused_with_both_sums() {
    let text = "[groups.\"/a\"]\nfloor = \"3GiB\"\n[groups.\"/b\"]\nfloor = \"2GiB\"\n";
    let config = Config::parse(text).expect("valid");
    config.check_floors(Bytes(5 << 30)).expect("they fit");
    let said = config
        .check_floors(Bytes(4 << 30))
        .expect_err("they do not fit");
    let said = said.to_string();
    assert!(
        said.contains("5GiB together") && said.contains("memory.fast is 4GiB"),
        "{said}"
    );
}

#[test]
fn the_metrics_may_be_served_to_other_machines() {
    for text in ["127.0.0.1:9464", "0.0.0.0:9464", "[::]:9464"] {
        let config = Config::parse(&format!("[serve]\nmetrics = \"{text}\"\n")).expect("valid");
        let address = config.metrics().expect("an address").expect("one");
        assert_eq!(address.to_string(), text);
    }
}
