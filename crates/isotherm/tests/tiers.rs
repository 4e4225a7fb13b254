//! Tests `isotherm tiers` by running it on recorded machines, and by measuring this one.

#[path = "../../../tests/machines/expand.rs"]
mod machine;

mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use support::{isotherm, stderr};

/// Standard output of a run that must succeed.
fn printed(directory: &Path, arguments: &[&str]) -> String {
    let output = isotherm(directory, arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Words with one blank between them, however wide a table's columns are.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn recorded(name: &str) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/machines");
    let text = std::fs::read_to_string(machines.join(format!("{name}.machine"))).unwrap();
    machine::expand(&text, root.path()).unwrap();
    root
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.collect()
}

#[test]
fn a_recorded_machine_is_shown_with_the_reason_for_each_node() {
    let machine = recorded("container");
    let text = words(&printed(machine.path(), &["tiers", "--root", "."]));
    for wanted in [
        "fast nodes 0 32 GiB 114 ns",
        "this process may not use it (cpuset)",
        "16384 x 2 MiB, 16000 free",
        "HMAT (access1): 266 ns, 43 GB/s",
        "note: the control group allows 48 GiB",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
    }
}

#[test]
fn swap_is_shown_with_what_it_is_made_of() {
    let machine = recorded("one-node");
    let write = |path: &str, text: &str| {
        let path = machine.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "proc/swaps",
        "Filename Type Size Used Priority\n/dev/zram0 partition 1048576 4 100\n/dev/\\033[2J\x1b[2J file 4 0 -2\n",
    );
    write("sys/block/zram0/mm_stat", "4096 2000 8192 0 0 0 0 0 0\n");
    write("sys/block/zram0/comp_algorithm", "lzo [zstd]\n");
    let text = printed(machine.path(), &["tiers", "--root", "."]);
    let wanted = "/dev/zram0 compressed memory (zram, zstd) 1 GiB 4 KiB 8 KiB 100";
    assert!(words(&text).contains(wanted), "{text}");
    assert!(
        !text.contains('\x1b'),
        "a name reached the terminal as it is"
    );
    let json = printed(machine.path(), &["tiers", "--root", ".", "--json"]);
    let swap = &serde_json::from_str::<Value>(&json).unwrap()["swap"];
    assert_eq!(swap["compressed"], true);
    assert_eq!(swap["areas"][0]["memory_bytes"], 8192);
    assert_eq!(swap["areas"][1]["medium"], "file");
    assert_eq!(swap["costs"], Value::Null);
}

#[test]
fn a_dry_run_prints_what_an_administrator_would_type() {
    let machine = recorded("one-node");
    let refused = |arguments: &[&str], why: &str| {
        let output = isotherm(machine.path(), &[&["tiers"], arguments].concat());
        assert!(!output.status.success() && output.stdout.is_empty());
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    };
    let make = ["--root", ".", "--make-compressed", "1GiB"];
    refused(&make, "add --dry-run");
    let make = [&make[..], &["--dry-run"]].concat();
    refused(&make, "modprobe zram");
    refused(&["--dry-run"], "--make-compressed");
    refused(&["--make-compressed", "4KiB"], "at least 1 MiB");
    refused(
        &["--make-compressed", "1GiB", "--remove-compressed"],
        "cannot be used with",
    );
    refused(
        &["--make-compressed", "1GiB", "--measure"],
        "cannot be used with",
    );
    let zram = machine.path().join("sys/block/zram0");
    std::fs::create_dir_all(&zram).unwrap();
    std::fs::write(zram.join("disksize"), "0\n").unwrap();
    assert_eq!(
        printed(machine.path(), &[&["tiers"], &make[..]].concat()),
        "echo 1073741824 > /sys/block/zram0/disksize\n\
         mkswap -L isotherm /dev/zram0\n\
         swapon -p 100 /dev/zram0\n"
    );
    assert_eq!(
        std::fs::read_to_string(zram.join("disksize")).unwrap(),
        "0\n"
    );
    let remove = ["--root", ".", "--remove-compressed", "--dry-run"];
    refused(&remove, "there is no compressed memory");
}

/// Needs root and zram; the machine is then as it was.
#[test]
fn compressed_memory_is_set_up_measured_and_removed() {
    // Without what other programs change: the bytes in use.
    let areas = || {
        let text = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
        let area = |line: &str| {
            let fields = line.split_whitespace().enumerate();
            let fields = fields.filter(|(number, _)| *number != 3);
            fields.map(|(_, field)| field.to_owned()).collect()
        };
        text.lines().map(area).collect::<Vec<Vec<String>>>()
    };
    let before = areas();
    let directory = tempfile::tempdir().unwrap();
    let made = isotherm(directory.path(), &["tiers", "--make-compressed", "256MiB"]);
    if !made.status.success() {
        assert_eq!(areas(), before, "a failed set-up leaves nothing");
        let why = stderr(&made);
        return isotherm_skip::skip!(
            "no compressed memory here: {}",
            why.lines().next().unwrap_or("")
        );
    }
    let shown = printed(directory.path(), &["tiers", "--json"]);
    let swap = &serde_json::from_str::<Value>(&shown).unwrap()["swap"];
    let doctor = printed(directory.path(), &["doctor"]);
    printed(directory.path(), &["tiers", "--remove-compressed"]);
    assert_eq!(areas(), before);
    assert_eq!(swap["compressed"], true, "{swap}");
    assert!(
        words(&doctor).contains("compressed memory available"),
        "{doctor}"
    );
    let again = isotherm(directory.path(), &["tiers", "--remove-compressed"]);
    assert!(stderr(&again).contains("there is no compressed memory"));
}

#[test]
fn memory_devices_are_those_of_the_machine_or_of_a_file_that_does_not_contradict_it() {
    let machine = recorded("one-node");
    let dimm = machine.path().join("sys/devices/system/edac/mc/mc0/dimm0");
    std::fs::create_dir_all(&dimm).unwrap();
    for (name, text) in [
        ("size", "32768\n"),
        ("dimm_label", "A1\n"),
        ("dimm_mem_type", "DDR5\n"),
    ] {
        std::fs::write(dimm.join(name), text).unwrap();
    }
    let show = ["tiers", "--root", ".", "--devices"];
    let text = words(&printed(machine.path(), &show));
    assert!(text.contains("A1 DDR5 32 GiB - 0 EDAC"), "{text}");
    let report: Value =
        serde_json::from_str(&printed(machine.path(), &[&show[..], &["--json"]].concat())).unwrap();
    assert_eq!(report["devices"]["list"][0]["capacity_bytes"], 32_u64 << 30);
    assert_eq!(report["devices"]["list"][0]["known_from"], "EDAC");
    let plain: Value = serde_json::from_str(&printed(
        machine.path(),
        &["tiers", "--root", ".", "--json"],
    ))
    .unwrap();
    assert!(plain.get("devices").is_none());
    let file = machine.path().join("devices.toml");
    let device = "[[device]]\nname = \"A1\"\nnode = 0\ncapacity = \"32GiB\"\nranks = 2\n";
    std::fs::write(&file, device).unwrap();
    let from_file = [&show[..], &["devices.toml"]].concat();
    let text = words(&printed(machine.path(), &from_file));
    assert!(text.contains("A1 - 32 GiB 2 0 devices file"), "{text}");
    std::fs::write(&file, device.replace("32GiB", "64GiB")).unwrap();
    let refused = isotherm(machine.path(), &from_file);
    let said = stderr(&refused);
    assert!(!refused.status.success());
    assert!(
        said.contains(
            "devices.toml:4: device \"A1\" holds 64 GiB, and 32 GiB of this machine by EDAC"
        ),
        "{said}"
    );
}

#[test]
fn json_has_tiers_nodes_and_notes() {
    let machine = recorded("cxl-expander");
    let arguments = ["tiers", "--root", ".", "--json", "--from-node", "0"];
    let json: Value = serde_json::from_str(&printed(machine.path(), &arguments)).unwrap();
    assert_eq!(json["schema_version"], 1);
    assert_eq!(json["tiers"].as_array().unwrap().len(), 3, "{json:#}");
    assert_eq!(json["tiers"][1]["nodes"], serde_json::json!([1]));
    assert_eq!(json["nodes"][2]["tier"], "slow");
    assert_eq!(json["nodes"][2]["made_of"], "CXL memory (dax0.0)");
    assert_eq!(json["nodes"][0]["processors"], "0-11,24-35");
    assert_eq!(json["nodes"][0]["distances"]["2"], 14);
    assert_eq!(json["measuring"], Value::Null);
}

#[test]
fn detected_tiers_are_written_as_a_file_that_reads_back() {
    let machine = recorded("three-tiers");
    printed(machine.path(), &["tiers", "--root", ".", "-o", "m.toml"]);
    let text = words(&printed(machine.path(), &["tiers", "--tiers", "m.toml"]));
    assert!(text.contains("middle nodes 0-1 192 GiB"), "{text}");
    let json = printed(machine.path(), &["tiers", "--tiers", "m.toml", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let nodes = json["nodes"].as_array().unwrap();
    let is_here = nodes
        .iter()
        .any(|node| node["node"] == 4 && node["memory_bytes"] != 0);
    let notes = json["notes"].to_string();
    assert!(
        is_here || nodes.is_empty() || notes.contains("no memory at node 4"),
        "a file of another machine is called one: {notes}"
    );
}

#[test]
fn a_size_of_fast_memory_limits_the_tiers_of_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let text = "[[tier]]\nname = \"near\"\nnodes = [0]\ncapacity = \"4GiB\"\n[[tier]]\nname = \"far\"\nnodes = [1]\n";
    std::fs::write(directory.join("two.toml"), text).unwrap();
    let show = ["tiers", "--tiers", "two.toml", "--json", "--fast"];
    let json = printed(directory, &[&show[..], &["1GiB"]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["tiers"][0]["capacity_bytes"], 1 << 30);
    let refused = isotherm(directory, &[&show[..], &["5GiB"]].concat());
    let said = stderr(&refused);
    assert!(!refused.status.success(), "{said}");
    assert!(
        said.contains("the fast tier \"near\" of two.toml holds 4 GiB"),
        "{said}"
    );
}

#[test]
fn a_dash_for_a_file_is_standard_output() {
    let machine = recorded("three-tiers");
    let printed = printed(machine.path(), &["tiers", "--root", ".", "-o", "-"]);
    assert!(printed.starts_with("[[tier]]"), "{printed}");
    assert!(!machine.path().join("-").exists());
    let both = isotherm(machine.path(), &["tiers", "--json", "-o", "-"]);
    assert!(!both.status.success() && both.stdout.is_empty());
    assert!(stderr(&both).contains("leave out one"), "{}", stderr(&both));
}

#[test]
fn json_is_printed_beside_the_file_that_is_written() {
    let machine = recorded("three-tiers");
    let arguments = ["tiers", "--root", ".", "--json", "-o", "m.toml"];
    let json: Value = serde_json::from_str(&printed(machine.path(), &arguments)).unwrap();
    assert_eq!(json["tiers"].as_array().unwrap().len(), 3, "{json:#}");
    let file = std::fs::read_to_string(machine.path().join("m.toml")).unwrap();
    assert!(file.starts_with("[[tier]]"), "{file}");
}

#[test]
fn a_measurement_makes_a_file_that_overrides_detection() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let text = printed(directory, &["tiers", "--measure"]);
    for wanted in ["measured from node", "triad", "measuring took"] {
        assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
    }
    assert_eq!(names(directory), ["tiers.toml"]);
    let json = printed(directory, &["tiers", "--tiers", "tiers.toml", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(
        json["measured"][0]["latency_ns"].as_u64().unwrap() > 0,
        "{json:#}"
    );
    assert!(
        json["tiers"][0]["latency_ns"].as_u64().unwrap() > 0,
        "{json:#}"
    );

    let again = isotherm(directory, &["tiers", "--measure"]);
    assert!(!again.status.success(), "the default file is not replaced");
    assert!(
        stderr(&again).contains("already there"),
        "{}",
        stderr(&again)
    );
}

#[test]
fn an_interrupt_ends_a_measurement_and_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    // A shell that starts the tests in the background has them ignore the interrupt.
    let mut child = Command::new("env")
        .args(["--default-signal=INT", env!("CARGO_BIN_EXE_isotherm")])
        .args(["tiers", "--measure", "-o", "m.toml"])
        .current_dir(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until_caught(&mut child);
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(2), "{}", output.status);
    assert!(
        stderr(&output).contains("nothing was written"),
        "{}",
        stderr(&output)
    );
    assert!(output.stdout.is_empty(), "no tiers are shown");
    assert!(
        names(directory.path()).is_empty(),
        "{:?}",
        names(directory.path())
    );
}

/// Waits until the program has a handler for the interrupt.
fn wait_until_caught(child: &mut Child) {
    let status = format!("/proc/{}/status", child.id());
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.map(|mask| u64::from_str_radix(mask.trim(), 16).unwrap());
        if caught.is_some_and(|mask| mask & 1 << (2 - 1) != 0) {
            return;
        }
        assert_eq!(
            child.try_wait().unwrap(),
            None,
            "it ended before it was interrupted"
        );
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let machine = recorded("optane-kmem");
    let cases: [(&[&str], &str); 5] = [
        (
            &["tiers", "--root", ".", "--from-node", "2"],
            "nodes with processors are 0, 1",
        ),
        (
            &["tiers", "--root", "/nonexistent"],
            "no memory was found under /nonexistent",
        ),
        (
            &["tiers", "--measure", "--tiers", "emulated"],
            "cannot be used with",
        ),
        (
            &["tiers", "--measure", "-o", "/nonexistent/m.toml"],
            "cannot be written",
        ),
        (
            &["tiers", "--measure", "--from-node", "4000"],
            "node 4000 has no processors",
        ),
    ];
    for (arguments, wanted) in cases {
        let output = isotherm(machine.path(), arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(
            stderr(&output).contains(wanted),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn completions_and_man_page_know_every_flag() {
    let directory = tempfile::tempdir().unwrap();
    let script = printed(directory.path(), &["completions", "bash"]);
    printed(directory.path(), &["man", "pages"]);
    let page = directory.path().join("pages/isotherm-tiers.1");
    let page = std::fs::read_to_string(page).unwrap().replace('\\', "");
    for flag in ["--measure", "--from-node", "--root"] {
        assert!(script.contains(flag) && page.contains(flag), "{flag}");
    }
}
