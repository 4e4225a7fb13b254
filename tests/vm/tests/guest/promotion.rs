//! The kernel's own promotion at the daemon's pace: by hint faults, with everything put back at the end.

use std::path::Path;
use std::process::Command;

use crate::daemon::{ALL_MOVES, Daemon, HOT_PAGES, config, loopback, pages, program};
use crate::floors::Group;
use crate::kernel::version;
use crate::{GuestTest, on, skip};

const TWO: &[&str] = &["two-nodes"];

pub(crate) const TESTS: &[GuestTest] = &[
    on!(
        TWO,
        the_kernel_promotes_at_hint_faults_that_the_daemon_observes
    ),
    on!(
        TWO,
        without_a_key_the_kernel_promotes_unless_somebody_uses_its_balancing
    ),
    on!(
        TWO,
        settings_of_a_killed_daemon_are_put_back_by_command_and_by_the_next_one
    ),
    on!(
        TWO,
        settings_that_somebody_else_changes_are_theirs_and_the_others_are_put_back
    ),
    on!(
        TWO,
        a_floor_is_kept_while_the_kernel_promotes_a_greedy_neighbour
    ),
];

/// The files that the daemon sets.
const FILES: [&str; 8] = [
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps",
    "/sys/kernel/mm/numa/demotion_enabled",
    "/sys/kernel/debug/sched/numa_balancing/hot_threshold_ms",
    "/sys/kernel/debug/sched/numa_balancing/scan_delay_ms",
    "/sys/kernel/debug/sched/numa_balancing/scan_period_min_ms",
    "/sys/kernel/debug/sched/numa_balancing/scan_period_max_ms",
    "/sys/kernel/debug/sched/numa_balancing/scan_size_mb",
];

fn settings() -> Vec<String> {
    let text = |file: &&str| std::fs::read_to_string(file).unwrap_or_default();
    FILES.iter().map(text).collect()
}

/// Skips the test where the slow node is no lower tier to the kernel.
fn needs_tiers() {
    if version() < (6, 8) {
        skip(
            "kernels before 6.8 make no memory tiers from firmware speeds, so nothing is promoted",
        );
    }
}

/// A daemon whose kernel promotes, with this policy of its own.
fn with_kernel(policy: &str) -> String {
    let sources = "trace_samples = \"timer\"\n";
    let config = config(sources, ALL_MOVES);
    config
        .replace("policy = \"history\"", &format!("policy = \"{policy}\""))
        .replace("mover = \"pages\"", "mover = \"kernel\"")
}

/// Pages of a program's hot array on a node, as it reported last.
fn hot_on(node: u32) -> usize {
    let text = std::fs::read_to_string("/tmp/where").unwrap_or_default();
    match text.contains("hot ") {
        true => pages(&text, "hot", node),
        false => 0,
    }
}

fn balances() -> bool {
    std::fs::read_to_string(FILES[0]).is_ok_and(|mode| mode.trim() == "2")
}

/// Whether a daemon has the capability to set all this.
fn administers(status: &serde_json::Value) -> bool {
    let mut rights = status["rights"].as_array().into_iter().flatten();
    rights.any(|right| right["capability"] == "CAP_SYS_ADMIN" && right["held"] == true)
}

fn the_kernel_promotes_at_hint_faults_that_the_daemon_observes() {
    needs_tiers();
    loopback();
    let _ = std::fs::remove_file("/tmp/where");
    let before = settings();
    let _program = program("wps");
    // It moves nothing by itself.
    let mut daemon = Daemon::with(&with_kernel("first-come-first-allocated"));
    daemon.wait("hot array on node 0", |status| {
        let sources = status["sources"].as_array().into_iter().flatten();
        let faults = |source: &&serde_json::Value| source["name"] == "hint-faults";
        let seen = sources.into_iter().find(faults);
        let is_seen = seen.is_some_and(|source| source["usable"].as_u64() > Some(0));
        let promoted = status["kernel_promotion"]["promoted_bytes"].as_u64();
        is_seen
            && promoted >= Some(HOT_PAGES as u64 * 9 / 10 * 4096)
            && status["total"]["promoted_bytes"] == 0
            && hot_on(0) >= HOT_PAGES * 9 / 10
    });
    assert!(balances());
    daemon.stop();
    assert_eq!(settings(), before);
    assert!(!Path::new("/run/isotherm/kernel-promotion").exists());
}

fn without_a_key_the_kernel_promotes_unless_somebody_uses_its_balancing() {
    loopback();
    let before = settings();
    let auto = config("trace_samples = \"timer\"\n", ALL_MOVES).replace("mover = \"pages\"\n", "");
    let mut daemon = Daemon::with(&auto);
    let status = daemon.wait("kernel's promotion", |status| {
        status["kernel_promotion"]["active"] == true
    });
    assert!(administers(&status), "{status}");
    daemon.stop();
    assert_eq!(settings(), before);
    std::fs::write(FILES[0], "2").expect("written");
    let taken = settings();
    let mut daemon = Daemon::with(&auto);
    let status = daemon.wait("status", |_| true);
    assert!(status["kernel_promotion"].is_null(), "{status}");
    assert!(!administers(&status), "{status}");
    assert_eq!(settings(), taken);
    daemon.stop();
    std::fs::write(FILES[0], before[0].trim()).expect("written");
    assert_eq!(settings(), before);
}

fn settings_of_a_killed_daemon_are_put_back_by_command_and_by_the_next_one() {
    loopback();
    let before = settings();
    let kernel = with_kernel("history");
    let killed = || {
        let mut daemon = Daemon::with(&kernel);
        daemon.wait("setting of the kernel", |_| balances());
        // SIGKILL.
        drop(daemon);
        assert_ne!(settings(), before);
    };
    killed();
    let restored = Command::new("isotherm")
        .args(["daemon", "--config", "/tmp/daemon.toml", "--restore"])
        .output()
        .expect("isotherm starts");
    let said = String::from_utf8_lossy(&restored.stderr).into_owned();
    assert!(restored.status.success(), "{said}");
    assert!(said.contains("as before"), "{said}");
    assert_eq!(settings(), before);
    killed();
    let mut next = Daemon::with(&config("trace_samples = \"timer\"\n", ALL_MOVES));
    next.wait("status", |_| true);
    assert_eq!(settings(), before);
    next.stop();
    assert_eq!(settings(), before);
}

fn settings_that_somebody_else_changes_are_theirs_and_the_others_are_put_back() {
    loopback();
    let before = settings();
    let mut daemon = Daemon::with(&with_kernel("history"));
    daemon.wait("kernel's promotion", |status| {
        status["kernel_promotion"]["active"] == true
    });
    std::fs::write(FILES[3], "777").expect("written");
    let status = daemon.wait("end of the kernel's promotion", |status| {
        status["kernel_promotion"]["active"] == false
    });
    let why = status["kernel_promotion"]["why"].as_str();
    assert!(
        why.is_some_and(|why| why.contains("hot_threshold_ms")),
        "{status}"
    );
    let mut wanted = before.clone();
    wanted[3] = "777\n".to_owned();
    assert_eq!(settings(), wanted);
    daemon.stop();
    assert_eq!(settings(), wanted);
    std::fs::write(FILES[3], before[3].trim()).expect("written");
}

fn a_floor_is_kept_while_the_kernel_promotes_a_greedy_neighbour() {
    needs_tiers();
    loopback();
    // The arrays of the neighbours have no policy of their own, so that the kernel promotes them.
    let quiet = Group::of("quiet", vec![program("r")]);
    let _loud = Group::of("loud", (0..3).map(|_| program("p")).collect());
    let floor = with_kernel("history") + "[groups.\"/quiet\"]\nfloor = \"4MiB\"\n";
    let mut daemon = Daemon::with(&floor);
    let kept = HOT_PAGES * 9 / 10;
    daemon.wait(
        "hot memory of the quiet group, beside promotion",
        |status| {
            let promoted = status["kernel_promotion"]["promoted_bytes"].as_u64();
            promoted > Some(0) && quiet.fast() >= kept
        },
    );
    for _ in 0..4 {
        for status in daemon.follow(5) {
            let groups = status["groups"].as_array().expect("groups");
            let group = groups.iter().find(|it| it["control_group"] == "/quiet");
            let fast = group.and_then(|group| group["fast_bytes"].as_u64());
            assert!(fast >= Some(kept as u64 * 4096), "{status}");
        }
        let pages = quiet.fast();
        assert!(pages >= kept, "{pages} of {HOT_PAGES} pages");
    }
    daemon.stop();
}
