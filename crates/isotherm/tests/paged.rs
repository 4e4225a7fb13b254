//! Tests runs whose cold memory is paged out to compressed memory: it takes less, and stays whole, whatever happens meanwhile.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{isotherm, stderr, succeeds};

/// 96 MiB of checked words, or as many as its argument says, of which 16 MiB are written for some seconds, or until there is a file `end`:
/// each word is read and checked before it is written. A child that is forked meanwhile checks its copy, and at the end all words are
/// checked. Makes the file `started` first, and `begun` when the work begins.
const PROGRAM: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
enum { HOT = (16 << 20) / 8 };
static uint64_t all = (96 << 20) / 8;
static uint64_t *words;
static uint64_t rounds[HOT];
static uint64_t wanted(uint64_t at, uint64_t round) {
    uint64_t x = (at + 1) * 0x9e3779b97f4a7c15u ^ round;
    /* Half of each page is compressible. */
    return at % 512 < 256 ? round : x ^ x >> 29;
}
static double worked(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
static int is_whole(void) {
    for (uint64_t at = 0; at < all; at++)
        if (words[at] != wanted(at, at < HOT ? rounds[at] : 0)) return 0;
    return 1;
}
int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 3;
    fclose(fopen("started", "w"));
    all = argc > 2 ? strtoull(argv[2], NULL, 10) * (1 << 20) / 8 : all;
    words = malloc(sizeof(uint64_t) * all);
    for (uint64_t at = 0; at < all; at++) words[at] = wanted(at, 0);
    fclose(fopen("begun", "w"));
    uint64_t x = 1;
    int torn = 0, forked = 0, ends = 0;
    pid_t child = 0;
    double begin = worked();
    while (!ends && worked() < begin + seconds) {
        ends = access("end", F_OK) == 0;
        for (int i = 0; i < 100000; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            uint64_t at = (x >> 33) % HOT;
            torn |= words[at] != wanted(at, rounds[at]);
            words[at] = wanted(at, ++rounds[at]);
        }
        if (!forked && (ends || worked() > begin + seconds / 2)) {
            forked = 1;
            child = fork();
            if (child == 0) _exit(is_whole() ? 0 : 1);
        }
    }
    int status = 1;
    waitpid(child, &status, 0);
    puts(!torn && status == 0 && is_whole() ? "whole" : "torn");
    return 0;
}
"#;

/// Compressed memory of the whole machine, which one test at a time sets up.
struct Compressed {
    _alone: MutexGuard<'static, ()>,
    /// The swap areas without it.
    before: String,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Compressed {
    /// Sets it up; None with a record of the skip where it cannot be had.
    fn set_up(directory: &Path) -> Option<Self> {
        Self::of(directory, "512MiB")
    }

    /// Compressed memory of this size, before compression.
    fn of(directory: &Path, size: &str) -> Option<Self> {
        let alone = ALONE
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let before = std::fs::read_to_string("/proc/swaps").expect("listed");
        let made = isotherm(directory, &["tiers", "--make-compressed", size]);
        if !made.status.success() {
            let why = stderr(&made);
            let why = why.lines().next().unwrap_or("").to_owned();
            isotherm_skip::skip!("no compressed memory here: {why}");
            return None;
        }
        Some(Self {
            _alone: alone,
            before,
        })
    }
}

impl Drop for Compressed {
    fn drop(&mut self) {
        let _ = isotherm(Path::new("/"), &["tiers", "--remove-compressed"]);
    }
}

fn build(directory: &Path) {
    build_named(directory, "app", PROGRAM);
}

fn build_named(directory: &Path, name: &str, program: &str) {
    let source = format!("{name}.c");
    std::fs::write(directory.join(&source), program).expect("written");
    let mut compiler = Command::new("cc");
    let compiler = compiler.args(["-O1", "-o", name, &source]);
    let built = compiler.current_dir(directory).status();
    assert!(built.expect("a C compiler").success());
}

fn summary(directory: &Path) -> Value {
    let text = std::fs::read(directory.join("run.json")).expect("was written");
    serde_json::from_slice(&text).expect("is JSON")
}

fn number(of: &Value, name: &str) -> u64 {
    of[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name} in {of}"))
}

const RUN: [&str; 5] = ["run", "--tiers", "compressed", "--summary", "run.json"];

#[test]
fn cold_memory_leaves_comes_back_and_stays_whole() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(_compressed) = Compressed::set_up(directory.path()) else {
        return;
    };
    build(directory.path());
    for flags in [&["--fast", "40%", "--slowdown", "100%"][..], &[]] {
        let profile = ["-o", "app.iso", "--force", "--", "./app"];
        let output = succeeds(directory.path(), &[&RUN, flags, &profile].concat());
        assert_eq!(String::from_utf8_lossy(&output.stdout), "whole\n");
        let summary = summary(directory.path());
        let paged = &summary["paged"];
        assert_eq!(summary["mode"], "paged");
        let said = stderr(&output);
        assert!(said.contains("app ran in "), "{said}");
        assert!(number(paged, "epochs") > 0, "{summary}");
        // The 80 MiB are cold until the fork; a machine that gives no time to page much out pages less out.
        let most = number(paged, "most_out_bytes");
        assert!(most > 0 && most < 96 << 20, "{summary}");
        assert!(number(paged, "most_out_taken_bytes") > 0, "{summary}");
        assert!(number(paged, "returned_bytes") > 0, "{summary}");
        let memory = summary["memory_share"].as_f64().expect("a share");
        assert!(memory > 0.1 && memory < 1.0, "{summary}");
        let [all, taken] = ["mean_bytes", "mean_taken_bytes"].map(|name| number(paged, name));
        assert_eq!(number(&summary, "saved_bytes"), all - taken, "{summary}");
        assert!(
            said.contains(" less; ") && said.contains(" of waiting"),
            "{said}"
        );
        let report = succeeds(directory.path(), &["report", "--json", "app.iso"]);
        let report = String::from_utf8_lossy(&report.stdout);
        assert!(report.contains("page-out saved "), "{report}");
    }
}

/// The groups of runs below the one of this process, in the hierarchy of version 1; None where there is no such hierarchy, or not the right.
fn groups_of_runs() -> Option<Vec<PathBuf>> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.split_once(":memory:"))?.1;
    let own = Path::new("/sys/fs/cgroup/memory").join(own.trim_start_matches('/'));
    // A group can be made there.
    let probe = own.join("isotherm-test");
    std::fs::create_dir(&probe).ok()?;
    std::fs::remove_dir(&probe).ok()?;
    let groups = std::fs::read_dir(own)
        .ok()?
        .flatten()
        .map(|group| group.path());
    let is_of_run = |group: &PathBuf| group.to_string_lossy().contains("/isotherm-run-");
    Some(groups.filter(is_of_run).collect())
}

#[test]
fn under_a_limit_alone_the_kernel_chooses_what_leaves_from_a_group_that_ends_with_the_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(_compressed) = Compressed::set_up(directory.path()) else {
        return;
    };
    if groups_of_runs().is_none() {
        isotherm_skip::skip!("no control group of version 1 can be made here");
        return;
    }
    build(directory.path());
    let run = |program: &[&str]| {
        let flags = ["--fast", "40%", "--slowdown", "100%", "--"];
        succeeds(directory.path(), &[&RUN, &flags, program].concat())
    };
    let output = run(&["./app"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "whole\n");
    let kernel = |summary: &Value| number(&summary["paged"], "kernel_reclaimed_bytes");
    assert!(kernel(&summary(directory.path())) > 16 << 20);
    assert_eq!(groups_of_runs(), Some(Vec::new()));
    // A program that leaves the group is paged out by its units, and one that leaves a process behind does not keep the group.
    let enters = "sleep 5 >&- 2>&- & echo $$ > /sys/fs/cgroup/memory/cgroup.procs; exec ./app";
    let output = run(&["sh", "-c", enters]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "whole\n");
    let summary = summary(directory.path());
    let left = number(&summary["paged"], "left_bytes");
    assert!(left > 16 << 20 && kernel(&summary) < left / 2, "{summary}");
    assert_eq!(groups_of_runs(), Some(Vec::new()));
}

#[test]
fn a_dry_run_prints_calls_and_pages_nothing_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(_compressed) = Compressed::set_up(directory.path()) else {
        return;
    };
    build(directory.path());
    let flags = [
        "--dry-run",
        "--fast",
        "40%",
        "--slowdown",
        "100%",
        "--",
        "./app",
        "1",
    ];
    let output = succeeds(directory.path(), &[&RUN[..], &flags].concat());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "whole\n");
    let said = stderr(&output);
    assert!(said.contains("would call process_madvise("), "{said}");
    let summary = summary(directory.path());
    assert_eq!(number(&summary["paged"], "most_out_bytes"), 0, "{summary}");
}

#[test]
fn swap_that_is_removed_in_the_middle_and_a_killed_run_leave_the_program_right() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(compressed) = Compressed::set_up(directory.path()) else {
        return;
    };
    build(directory.path());
    let spawn = |seconds| {
        let _ = std::fs::remove_file(directory.path().join("begun"));
        let create = |name: &str| std::fs::File::create(directory.path().join(name));
        let file = create("out").expect("created");
        let said = create("said").expect("created");
        let mut command = Command::new(env!("CARGO_BIN_EXE_isotherm"));
        let command = command
            .args(RUN)
            .args(["--fast", "40%", "--slowdown", "100%"]);
        let command = command.args(["--", "./app", seconds]);
        let command = command.stdout(file).stderr(said);
        command
            .current_dir(directory.path())
            .spawn()
            .expect("started")
    };
    let printed = || std::fs::read_to_string(directory.path().join("out")).expect("read");
    let mut killed = spawn("3");
    wait_for_swap(directory.path());
    killed.kill().expect("killed");
    killed.wait().expect("ended");
    // The program runs on, and ends by itself.
    let begin = Instant::now();
    while printed().is_empty() && begin.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(printed(), "whole\n");
    let mut running = spawn("120");
    wait_for_swap(directory.path());
    succeeds(directory.path(), &["tiers", "--remove-compressed"]);
    let said = || std::fs::read_to_string(directory.path().join("said")).expect("read");
    wait_until(&mut running, || said().contains(REMOVED));
    std::fs::write(directory.path().join("end"), "").expect("written");
    assert!(running.wait().expect("ended").success());
    assert_eq!(printed(), "whole\n");
    assert_eq!(said().matches(REMOVED).count(), 1, "{}", said());
    let swaps = std::fs::read_to_string("/proc/swaps").expect("listed");
    assert_eq!(swaps, compressed.before, "nothing is left");
}

/// The words of the warning that a run writes where nothing more can leave.
const FULL: &str = "swap is full";
const REMOVED: &str = "no swap any more";

#[test]
fn an_area_with_too_few_pages_is_full_once_and_leaves_the_program_right() {
    // The costs are measured with a quarter of it.
    runs_until_full("136MiB", 136 << 20, || {});
}

#[test]
fn a_device_at_its_limit_is_full_once_and_leaves_the_program_right() {
    // Half of each page can be compressed.
    runs_until_full("512MiB", 64 << 20, || {
        let device = zram_device();
        let taken = number_of(&device.join("mm_stat"), 2);
        let limit = taken + (16 << 20);
        std::fs::write(device.join("mem_limit"), limit.to_string()).expect("root may");
    });
}

/// Runs the program with 224 MiB, of which a tenth stays, on compressed memory of this size until that is full, when no more than `most`
/// bytes are out; `limit` is called when the program starts.
fn runs_until_full(size: &str, most: u64, limit: impl FnOnce()) {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(_compressed) = Compressed::of(directory.path(), size) else {
        return;
    };
    build(directory.path());
    let file = |name: &str| std::fs::File::create(directory.path().join(name)).expect("created");
    let said = || std::fs::read_to_string(directory.path().join("said")).expect("read");
    let mut run = Command::new(env!("CARGO_BIN_EXE_isotherm"));
    let run = run
        .args(RUN)
        .args(["--fast", "10%", "--slowdown", "100%"])
        .args(["--", "./app", "120", "224"]);
    let run = run.stdout(file("out")).stderr(file("said"));
    let mut run = run.current_dir(directory.path()).spawn().expect("started");
    wait_until(&mut run, || directory.path().join("started").exists());
    limit();
    wait_until(&mut run, || said().contains(FULL));
    // What is tried once more finds it full as well.
    std::thread::sleep(Duration::from_millis(300));
    drop(file("end"));
    assert!(run.wait().expect("ended").success(), "{}", said());
    let printed = std::fs::read_to_string(directory.path().join("out")).expect("read");
    assert_eq!(printed, "whole\n");
    assert_eq!(said().matches(FULL).count(), 1, "{}", said());
    let summary = summary(directory.path());
    let out = number(&summary["paged"], "most_out_bytes");
    assert!((8 << 20..=most).contains(&out), "{summary}");
    // A page that a device refuses stays in memory and counts as out.
    let refused = number_of(&zram_device().join("io_stat"), 1);
    assert!(refused < 64, "{refused} pages were refused");
}

/// The device of the first swap area, in sysfs.
fn zram_device() -> PathBuf {
    let swaps = std::fs::read_to_string("/proc/swaps").expect("listed");
    let area = swaps.lines().nth(1).expect("an area");
    let path = Path::new(area.split_ascii_whitespace().next().expect("a path"));
    Path::new("/sys/block").join(path.file_name().expect("a name"))
}

/// A number of a file, counted from 0.
fn number_of(file: &Path, at: usize) -> u64 {
    let text = std::fs::read_to_string(file).expect("the kernel shows it");
    let word = text.split_ascii_whitespace().nth(at);
    word.expect("a number").parse().expect("a number")
}

/// Waits for something that happens while the run goes on.
fn wait_until(run: &mut Child, has_happened: impl Fn() -> bool) {
    while !has_happened() {
        assert!(run.try_wait().expect("a child").is_none(), "it ended early");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_daemon_that_is_killed_leaves_the_program_right_and_one_that_ends_brings_all_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(compressed) = Compressed::set_up(directory.path()) else {
        return;
    };
    build(directory.path());
    for signal in ["-KILL", "-TERM"] {
        let _ = std::fs::remove_file(directory.path().join("begun"));
        let mut program = Command::new("./app");
        let program = program.arg("8").current_dir(directory.path());
        let program = program.stdout(Stdio::piped()).spawn().expect("started");
        let mut daemon = daemon(directory.path(), program.id(), "");
        wait_for_swap(directory.path());
        let pid = daemon.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.expect("kill").success());
        let ended = daemon.wait().expect("ended");
        assert_eq!(ended.success(), signal == "-TERM", "{ended}");
        if signal == "-TERM" {
            let said = std::fs::read_to_string(directory.path().join("said")).expect("read");
            assert!(said.contains("came back to memory"), "{said}");
        }
        let output = program.wait_with_output().expect("ended");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "whole\n");
    }
    succeeds(directory.path(), &["tiers", "--remove-compressed"]);
    let swaps = std::fs::read_to_string("/proc/swaps").expect("listed");
    assert_eq!(swaps, compressed.before, "nothing is left");
}

/// A daemon that pages out memory of this process alone, with these further keys.
fn daemon(directory: &Path, pid: u32, keys: &str) -> Child {
    let path = |name: &str| directory.join(name).display().to_string();
    let config = format!(
        "epoch = \"200ms\"\n[memory]\ntiers = \"compressed\"\n[processes]\npids = [{pid}]\nfilter = \"off\"\n\
         {keys}[serve]\nsocket = \"{}\"\nstate = \"{}\"\nmetrics = \"\"\n",
        path("socket"),
        path("state")
    );
    std::fs::write(directory.join("daemon.toml"), config).expect("written");
    let said = std::fs::File::create(directory.join("said")).expect("created");
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_isotherm"));
    let daemon = daemon.args(["daemon", "--config", "daemon.toml"]);
    let daemon = daemon.current_dir(directory).stderr(said);
    daemon.spawn().expect("started")
}

/// Takes memory that cannot be compressed until the kernel ends it, which it does before it ends others of the group.
const HOG: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    FILE *score = fopen("/proc/self/oom_score_adj", "w");
    if (score) {
        fputs("1000", score);
        fclose(score);
    }
    uint64_t x = 1;
    for (;;) {
        uint64_t *words = malloc(1 << 20);
        if (!words) return 1;
        for (int at = 0; at < (1 << 20) / 8; at++) words[at] = x = x * 6364136223846793005u + 1442695040888963407u;
    }
}
"#;

/// A control group with a hard limit of memory; removed at the end.
struct HardLimit {
    directory: PathBuf,
    /// Whether its hierarchy is of version 1; else it is of version 2.
    is_first: bool,
}

impl HardLimit {
    /// The group; `None` with a record of the skip where it cannot be made.
    fn of(bytes: u64) -> Option<Self> {
        let groups = std::fs::read_to_string("/proc/self/cgroup").expect("listed");
        let first = groups.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            let has_memory = controllers.split(',').any(|name| name == "memory");
            has_memory.then(|| path.trim_start_matches('/').to_owned())
        });
        let name = format!("isotherm-test-{}", std::process::id());
        let root = Path::new("/sys/fs/cgroup");
        let is_first = first.is_some();
        let directory = match first {
            Some(own) => root.join("memory").join(own).join(name),
            None => {
                let _ = std::fs::write(root.join("cgroup.subtree_control"), "+memory");
                root.join(name)
            }
        };
        let group = Self {
            directory,
            is_first,
        };
        let made = std::fs::create_dir(&group.directory).and_then(|()| group.set(bytes));
        match made {
            Ok(()) => Some(group),
            Err(error) => {
                isotherm_skip::skip!("no control group with a limit of memory here: {error}");
                None
            }
        }
    }

    fn set(&self, bytes: u64) -> std::io::Result<()> {
        let file = match self.is_first {
            true => "memory.limit_in_bytes",
            false => "memory.max",
        };
        std::fs::write(self.directory.join(file), bytes.to_string())
    }

    /// Bytes that it has.
    fn used(&self) -> u64 {
        let file = match self.is_first {
            true => "memory.usage_in_bytes",
            false => "memory.current",
        };
        number_of(&self.directory.join(file), 0)
    }

    /// A command that runs a program in it.
    fn enter(&self, program: &str) -> String {
        format!(
            "echo $$ > {}/cgroup.procs && exec {program}",
            self.directory.display()
        )
    }
}

impl Drop for HardLimit {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.directory);
    }
}

#[test]
fn cold_units_of_a_group_leave_before_it_reaches_its_limit() {
    /// Cached files count as used, and need no room.
    const FILES: u64 = 1 << 20;
    let directory = tempfile::tempdir().expect("a directory");
    let Some(_compressed) = Compressed::set_up(directory.path()) else {
        return;
    };
    let Some(group) = HardLimit::of(1 << 30) else {
        return;
    };
    build(directory.path());
    let app = group.enter("./app 240");
    let program = Command::new("/bin/sh")
        .args(["-c", &app])
        .current_dir(directory.path())
        .stdout(Stdio::piped())
        .spawn();
    let mut program = program.expect("started");
    wait_until(&mut program, || directory.path().join("begun").exists());
    // Without the limit all of the program's memory stays.
    let mut daemon = daemon(
        directory.path(),
        program.id(),
        "[compressed]\nkeep = \"100%\"\n",
    );
    // Beside its words, the program has a count of the rounds of the hot ones.
    wait_until(&mut program, || group.used() >= (96 + 16) << 20);
    let limit = group.used() + (2 << 20);
    group.set(limit).expect("root may");
    // The kernel reclaims at the limit alone, and not a sixteenth of it.
    wait_until(&mut program, || group.used() <= limit / 16 * 15 + FILES);
    // It reads all of its memory at its end.
    group.set(1 << 30).expect("root may");
    std::fs::write(directory.path().join("end"), "").expect("written");
    let output = program.wait_with_output().expect("ended");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "whole\n");
    daemon.kill().expect("killed");
    daemon.wait().expect("ended");
}

#[test]
fn a_neighbour_that_takes_all_memory_of_the_group_harms_no_content() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(_compressed) = Compressed::of(directory.path(), "192MiB") else {
        return;
    };
    let Some(group) = HardLimit::of(160 << 20) else {
        return;
    };
    build(directory.path());
    build_named(directory.path(), "hog", HOG);
    let app = group.enter("./app 6");
    let mut run = Command::new(env!("CARGO_BIN_EXE_isotherm"));
    let run = run.args(RUN).args(["--", "/bin/sh", "-c", &app]);
    let run = run.current_dir(directory.path()).stdout(Stdio::piped());
    let run = run.spawn().expect("started");
    wait_for_swap(directory.path());
    let mut hog = Command::new("/bin/sh");
    let hog = hog.args(["-c", &group.enter("./hog")]);
    let mut hog = hog.current_dir(directory.path()).spawn().expect("started");
    let output = run.wait_with_output().expect("ended");
    assert!(output.status.success(), "{}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "whole\n");
    // The kernel has mostly ended it by now.
    let _ = hog.kill();
    hog.wait().expect("ended");
}

/// Waits until some memory of the program is out, or a while: what is out before it begins is a measurement.
fn wait_for_swap(directory: &Path) {
    let begin = Instant::now();
    let used = || {
        let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
        let kib = swaps.lines().nth(1)?.split_ascii_whitespace().nth(3)?;
        kib.parse::<u64>().ok()
    };
    let begun = || directory.join("begun").exists();
    while !(begun() && used().unwrap_or(0) >= 4096) && begin.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn flags_of_other_runs_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let refused = |arguments: &[&str], why: &str| {
        let output = isotherm(directory.path(), arguments);
        assert!(!output.status.success());
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    };
    let run = |flags: &[&'static str]| [&RUN[..3], flags, &["--", "true"]].concat();
    refused(&run(&["--undo"]), "leave out --mover and --undo");
    refused(&run(&["--policy", "oracle"]), "--policy oracle");
    refused(&run(&["--slowdown", "100%"]), "add --fast");
    let pressure = ["--policy", "tmo", "--fast", "50%", "--slowdown", "100%"];
    refused(&run(&pressure), "--policy tmo: needs a budget");
    refused(
        &["run", "--policy", "tmo", "--", "true"],
        "a rule of --tiers compressed",
    );
    refused(&run(&["--slowdown", "2"]), "no share such as 2%");
    refused(
        &["run", "--slowdown", "2%", "--", "true"],
        "--tiers compressed",
    );
    refused(&["run", "--unit", "1MiB", "--", "true"], "--unit");
    refused(
        &["tiers", "--tiers", "compressed"],
        "by `isotherm run` without a plan",
    );
}
