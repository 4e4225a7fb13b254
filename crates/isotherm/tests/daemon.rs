//! Tests the daemon by running it, on a machine with any number of nodes: it runs dry here, and moves memory in `tests/vm`.
//!
//! The watched program has hot and cold memory in one go. Where this machine forbids samples or accessed
//! bits, the tests that need them say so and prove nothing.

#[path = "daemon/emulated.rs"]
mod emulated;
#[path = "daemon/screen.rs"]
mod screen;
#[path = "daemon/short_lived.rs"]
mod short_lived;

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Patience with a busy machine; nothing waits that long on a quiet one.
const PATIENCE: Duration = Duration::from_secs(120);

const MIB: u64 = 1 << 20;
const HOT: u64 = 32 * MIB;

/// 64 MiB of cold memory, 32 MiB of hot in its middle, and 64 MiB of cold again, all in one mapping.
/// Prints where the hot part is, and touches it at random until its standard input is closed.
const PROGRAM: &str = r#"
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
enum { COLD = 64 << 20, HOT = 32 << 20 };
int main(void) {
    char *all = mmap(0, 2l * COLD + HOT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return 1;
    memset(all, 1, 2l * COLD + HOT);
    volatile char *hot = all + COLD;
    printf("%lu\n", (unsigned long)hot);
    fflush(stdout);
    unsigned x = 1;
    struct pollfd end = {0, POLLIN, 0};
    while (poll(&end, 1, 0) == 0)
        for (int i = 0; i < 1000000; i++) { x = x * 1664525u + 1013904223u; hot[x % HOT]++; }
    return 0;
}
"#;

/// A C program, built in the directory unless it is there already.
fn compile(directory: &Path, name: &str, text: &str) -> PathBuf {
    let source = directory.join(format!("{name}.c"));
    let program = directory.canonicalize().unwrap().join(name);
    if !program.exists() {
        std::fs::write(&source, text).unwrap();
        let mut compiler = Command::new("cc");
        let compiler = compiler.args(["-O1", "-o"]).arg(&program).arg(&source);
        assert!(compiler.status().expect("a C compiler").success());
    }
    program
}

/// The program at work; it ends with the test.
struct Watched {
    child: Child,
    hot: u64,
}

impl Watched {
    fn start(directory: &Path) -> Self {
        let program = compile(directory, "watched", PROGRAM);
        Self::with(Command::new(&program))
    }

    /// The program, started by this command.
    fn with(mut command: Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().expect("the program starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("a pipe");
        BufReader::new(output)
            .read_line(&mut line)
            .expect("its line");
        let hot = line.trim().parse().expect("an address");
        Self { child, hot }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A daemon in a directory of its own.
struct Daemon {
    child: Child,
    directory: PathBuf,
}

impl Daemon {
    fn start(directory: &Path, config: &str) -> Self {
        Self::with(directory, &whole_config(directory, config))
    }

    /// A daemon with this configuration and no more.
    fn with(directory: &Path, config: &str) -> Self {
        Self::with_flags(directory, config, &["--dry-run", "--verbose"])
    }

    fn with_flags(directory: &Path, config: &str, flags: &[&str]) -> Self {
        let file = directory.join("daemon.toml");
        std::fs::write(&file, config).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_isotherm"))
            .arg("daemon")
            .args(flags)
            .arg("--config")
            .arg(&file)
            .stdout(std::fs::File::create(directory.join("out")).unwrap())
            .stderr(std::fs::File::create(directory.join("err")).unwrap())
            .env("NOTIFY_SOCKET", directory.join("notify"))
            .spawn()
            .expect("isotherm starts");
        Self {
            child,
            directory: directory.to_owned(),
        }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.directory.join("err")).unwrap_or_default()
    }

    fn status(&self) -> Option<Value> {
        let output = isotherm_status(&self.directory, &["--json"]);
        serde_json::from_slice(&output.stdout).ok()
    }

    /// Waits for a status that fits.
    fn wait(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let status = self.status();
            if let Some(status) = status.clone().filter(|status| fits(status)) {
                return status;
            }
            let ended = self.child.try_wait().expect("a child");
            assert!(
                ended.is_none(),
                "the daemon ended: {ended:?}\n{}",
                self.said()
            );
            assert!(
                begun.elapsed() < PATIENCE,
                "no {what}: {status:?}\n{}",
                self.said()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args([name, &pid])
                .status()
                .expect("kill")
                .success()
        );
    }

    /// Ends it as systemd does.
    fn stop(&mut self) {
        self.signal("-TERM");
        let status = self.child.wait().expect("a child");
        assert!(status.success(), "{status}\n{}", self.said());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn isotherm_status(directory: &Path, flags: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_isotherm"))
        .args(["status", "--socket"])
        .arg(directory.join("socket"))
        .args(flags)
        .output()
        .expect("isotherm starts")
}

/// A configuration whose files lie in the directory, epochs short and every process worth it.
fn whole_config(directory: &Path, more: &str) -> String {
    let path = |name: &str| directory.join(name).display().to_string();
    format!(
        "epoch = \"500ms\"\n{more}\n[serve]\nsocket = \"{}\"\nstate = \"{}\"\nmetrics = \"127.0.0.1:0\"\n",
        path("socket"),
        path("state")
    )
}

fn watching(pids: &[u32], fast: &str) -> String {
    format!("[processes]\npids = {pids:?}\nfilter = \"off\"\n[memory]\nfast = \"{fast}\"\n")
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// The memory that would be fast in the end by the lines that a dry run prints, in units of 2 MiB.
fn wanted(output: &str, pid: u32) -> std::collections::BTreeSet<u64> {
    let mut fast = std::collections::BTreeSet::new();
    for line in output.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [
            "would:",
            "move",
            size,
            "at",
            start,
            "of",
            "process",
            of,
            "to",
            tier,
            "memory",
        ] = words[..]
        else {
            panic!("no line of a dry run: {line}");
        };
        assert_eq!(of, pid.to_string(), "{line}");
        let start = u64::from_str_radix(&start[2..], 16).expect("an address");
        let bytes = size
            .parse::<isotherm_model::units::Bytes>()
            .expect("a size")
            .0;
        for unit in (start..start + bytes).step_by(2 << 20) {
            match tier {
                "fast" => fast.insert(unit),
                _ => fast.remove(&unit),
            };
        }
    }
    fast
}

/// Usable hits of the sources of this kind.
fn usable(status: &Value, names: &[&str]) -> u64 {
    let sources = status["sources"].as_array().expect("a list").iter();
    let of = sources.filter(|source| names.contains(&source["name"].as_str().unwrap_or("")));
    of.map(|source| source["usable"].as_u64().unwrap_or(0))
        .sum()
}

/// A machine with several nodes prints calls to the kernel; `tests/vm` sees the moves themselves.
fn has_one_node() -> bool {
    let nodes = std::fs::read_to_string("/sys/devices/system/node/has_memory");
    nodes.is_ok_and(|nodes| nodes.trim() == "0")
}

#[test]
fn the_wanted_set_is_the_hot_part_of_a_program_that_knows_nothing_of_it() {
    if !has_one_node() {
        return isotherm_skip::skip!("this machine has several nodes");
    }
    let directory = directory();
    let watched = Watched::start(directory.path());
    let config = format!(
        "policy = \"history\"\n{}",
        watching(&[watched.pid()], "36MiB")
    );
    let config = format!("{config}[sources]\ntrace_samples = \"timer\"\n");
    let mut daemon = Daemon::start(directory.path(), &config);
    // A loaded machine delivers them late, and one without samples none.
    let status = daemon.wait("samples of six epochs", |status| {
        let epochs = status["epochs"].as_u64();
        match usable(status, &["timer"]) {
            0 => epochs >= Some(60),
            samples => samples >= 500 && epochs >= Some(6),
        }
    });
    if usable(&status, &["timer"]) == 0 {
        return isotherm_skip::skip!("no samples here: {}", status["sources"]);
    }
    assert!(
        status["fast_bytes"].as_u64() <= status["capacity_bytes"].as_u64(),
        "{status}"
    );
    daemon.stop();
    let output = std::fs::read_to_string(directory.path().join("out")).expect("its output");
    let wanted = wanted(&output, watched.pid());
    let hot = watched.hot..watched.hot + HOT;
    let found = wanted
        .iter()
        .filter(|unit| hot.contains(*unit) || hot.contains(&(**unit + (2 << 20) - 1)));
    let found = found.count() as u64;
    let units = HOT / (2 * MIB);
    assert!(
        found >= units - units / 10,
        "{found} of {units} hot units are wanted: {wanted:x?}"
    );
    assert!(
        wanted.len() as u64 <= 18,
        "no more than fits: {}",
        wanted.len()
    );
}

#[test]
fn whole_mappings_are_not_looked_at_where_samples_tell_something() {
    let directory = directory();
    let watched = Watched::start(directory.path());
    let config = watching(&[watched.pid()], "36MiB");
    let config = format!("{config}[sources]\ntrace_samples = \"timer\"\nbudget = \"100%\"\n");
    let mut daemon = Daemon::start(directory.path(), &config);
    let status = daemon.wait("samples", |status| {
        usable(status, &["timer"]) > 0 || status["epochs"].as_u64() >= Some(60)
    });
    if usable(&status, &["timer"]) == 0 {
        return isotherm_skip::skip!("no samples here: {}", status["sources"]);
    }
    // Where samples were late, the epoch at hand may have begun without.
    let mut then = |status: &Value, epochs: u64| {
        let epoch = status["epochs"].as_u64().unwrap_or(0) + epochs;
        daemon.wait("epochs", |status| status["epochs"].as_u64() >= Some(epoch))
    };
    let before = then(&status, 2);
    let after = then(&before, 4);
    let seen = |status| usable(status, &["accessed-bits"]);
    assert_eq!(seen(&after), seen(&before));
    daemon.stop();
}

/// A control group of version 2 for a test; removed with it, when no process is left in it.
struct Group {
    directory: PathBuf,
    name: String,
}

impl Group {
    /// The group; `None` where this machine refuses to make one.
    fn new(word: &str) -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
        let mut mounts = mounts
            .lines()
            .map(|line| line.split(' ').collect::<Vec<_>>());
        let root = mounts.find(|words| words.get(2) == Some(&"cgroup2"))?;
        let name = format!("/isotherm-test-{}-{word}", std::process::id());
        let directory = PathBuf::from(format!("{}{name}", root.get(1)?));
        std::fs::create_dir(&directory).ok()?;
        Some(Self { directory, name })
    }

    fn take(&self, pid: u32) -> bool {
        std::fs::write(self.directory.join("cgroup.procs"), pid.to_string()).is_ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.directory);
    }
}

#[test]
fn a_floor_keeps_memory_fast_beside_a_group_that_counts_a_hundred_times() {
    let (Some(loud), Some(quiet)) = (Group::new("loud"), Group::new("quiet")) else {
        return isotherm_skip::skip!("no control group of version 2 can be made here");
    };
    let directory = directory();
    let programs = [&loud, &quiet].map(|group| {
        let program = Watched::start(directory.path());
        group.take(program.pid()).then_some(program)
    });
    let [Some(one), Some(other)] = &programs else {
        return isotherm_skip::skip!("no process can be put into a control group here");
    };
    let config = format!(
        "policy = \"history\"\n{}[groups.\"{}\"]\npriority = 100\n[groups.\"{}\"]\nfloor = \"16MiB\"\n",
        watching(&[one.pid(), other.pid()], "36MiB"),
        loud.name,
        quiet.name
    );
    let mut daemon = Daemon::start(directory.path(), &config);
    let fast = |status: &Value, group: &Group| {
        let groups = status["groups"].as_array().cloned().unwrap_or_default();
        let of = groups
            .iter()
            .find(|one| one["control_group"] == group.name.as_str());
        of.and_then(|of| of["fast_bytes"].as_u64()).unwrap_or(0)
    };
    let status = daemon.wait("floor", |status| {
        let seen = fast(status, &quiet) >= 16 * MIB && fast(status, &loud) > 0;
        seen || status["epochs"].as_u64() >= Some(100)
    });
    if usable(&status, &["timer", "accessed-bits", "damon"]) == 0 {
        return isotherm_skip::skip!("nothing is seen here: {}", status["sources"]);
    }
    let begun = status["epochs"].as_u64().unwrap_or(0);
    for epoch in begun..begun + 5 {
        let status = daemon.wait("epoch", |status| status["epochs"].as_u64() >= Some(epoch));
        assert!(fast(&status, &quiet) >= 16 * MIB, "{status}");
        assert!(
            fast(&status, &loud) + fast(&status, &quiet) <= 36 * MIB,
            "{status}"
        );
    }
    daemon.stop();
    drop(programs);
}

#[test]
fn a_daemon_answers_obeys_signals_and_leaves_nothing_behind() {
    let directory = directory();
    let notify = UnixDatagram::bind(directory.path().join("notify")).expect("binds");
    notify.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let watched = Watched::start(directory.path());
    let mut daemon = Daemon::start(directory.path(), &watching(&[watched.pid()], "16MiB"));
    let mut bytes = [0; 1024];
    let length = notify.recv(&mut bytes).expect("a message");
    assert_eq!(&bytes[..length], b"READY=1");
    let status = daemon.wait("process", |status| !status["processes"][0].is_null());
    assert_eq!(status["processes"][0]["pid"], Value::from(watched.pid()));
    assert_eq!(status["dry_run"], Value::Bool(true));
    let resident = status["processes"][0]["resident_bytes"]
        .as_u64()
        .expect("a number");
    assert!(resident >= 160 * MIB, "{status}");
    let text = isotherm_status(directory.path(), &[]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.contains("dry run by payback") && text.contains("watched"),
        "{text}"
    );
    assert!(metrics(&daemon).contains(&format!("pid=\"{}\",name=\"watched\"", watched.pid())));
    let heat = isotherm_status(directory.path(), &["--heat", "--json"]);
    let heat: Value = serde_json::from_slice(&heat.stdout).expect("JSON");
    let rows = heat["rows"].as_array().expect("a list");
    let of = rows.iter().filter(|row| row["pid"] == watched.pid());
    let bytes: u64 = of.filter_map(|row| row["resident_bytes"].as_u64()).sum();
    assert_eq!(
        Some(bytes),
        status["processes"][0]["resident_bytes"].as_u64()
    );
    whole_memory_has_a_range(directory.path(), watched.pid(), bytes);
    let page = directory.path().join("heat.html");
    let said = isotherm_status(directory.path(), &["--page", &page.to_string_lossy()]);
    assert!(said.status.success());
    let page = std::fs::read_to_string(page).expect("the page");
    assert!(page.contains("<td>watched</td>"), "{page}");
    // A configuration that is not valid changes nothing; a valid one is obeyed.
    let file = directory.path().join("daemon.toml");
    std::fs::write(&file, "nonsense = 1\n").unwrap();
    daemon.signal("-HUP");
    wait_for("the refusal", || daemon.said().contains("line 1"));
    let other = whole_config(directory.path(), &watching(&[std::process::id()], "16MiB"));
    std::fs::write(&file, other).unwrap();
    daemon.signal("-HUP");
    let own = Value::from(std::process::id());
    daemon.wait("another process", |status| {
        status["processes"][0]["pid"] == own
    });
    daemon.stop();
    assert!(!directory.path().join("socket").exists());
    let late = isotherm_status(directory.path(), &[]);
    let said = String::from_utf8_lossy(&late.stderr).into_owned();
    assert!(
        !late.status.success() && said.contains("no daemon answers"),
        "{said}"
    );
}

/// The ranges of a process cover its memory once, in the order of addresses, as text and as JSON.
fn whole_memory_has_a_range(directory: &Path, pid: u32, bytes: u64) {
    let number = pid.to_string();
    let maps = isotherm_status(directory, &["--maps", "--pid", &number, "--json"]);
    let maps: Value = serde_json::from_slice(&maps.stdout).expect("JSON");
    let ranges = maps["processes"][0]["ranges"].as_array().expect("a list");
    let number_in = |range: &Value, name: &str| range[name].as_u64().expect("a number");
    let resident = ranges
        .iter()
        .map(|range| number_in(range, "resident_bytes"));
    assert_eq!(resident.sum::<u64>(), bytes);
    let follows = |pair: &[Value]| number_in(&pair[0], "end") <= number_in(&pair[1], "start");
    assert!(ranges.windows(2).all(follows), "{maps}");
    let text = isotherm_status(directory, &["--maps"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.starts_with(&format!("process {pid} watched\n")),
        "{text}"
    );
    assert!(text.contains(" slow="), "{text}");
    let nobody = isotherm_status(directory, &["--maps", "--pid", "1"]);
    let said = String::from_utf8_lossy(&nobody.stderr).into_owned();
    assert!(
        !nobody.status.success() && said.contains("is not watched"),
        "{said}"
    );
}

fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_there() {
        assert!(begun.elapsed() < PATIENCE, "no {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The metrics at the address that the daemon printed.
fn metrics(daemon: &Daemon) -> String {
    let said = daemon.said();
    let address = said
        .split("http://")
        .nth(1)
        .and_then(|rest| rest.split('/').next());
    let mut client = TcpStream::connect(address.expect("an address")).expect("connects");
    std::io::Write::write_all(&mut client, b"GET /metrics HTTP/1.1\r\n\r\n").expect("writes");
    let mut text = String::new();
    client.read_to_string(&mut text).expect("reads");
    text
}

/// Kills programs and the daemon at random times; what is left goes on. The long form of it, with
/// moves on real nodes, is in `tests/vm`.
#[test]
fn metrics_for_other_machines_are_served_with_a_warning() {
    for (address, warns) in [("127.0.0.1:0", false), ("0.0.0.0:0", true)] {
        let directory = directory();
        let config = whole_config(directory.path(), &watching(&[std::process::id()], "1MiB"));
        let mut daemon = Daemon::with(directory.path(), &config.replace("127.0.0.1:0", address));
        wait_for("metrics", || daemon.said().contains("metrics on http://"));
        let warned = daemon.said().contains("there is no authentication");
        assert_eq!(warned, warns, "{}", daemon.said());
        daemon.stop();
    }
}

#[test]
fn killing_programs_or_the_daemon_leaves_the_other_well() {
    let directory = directory();
    let seed = fastrand_seed();
    println!("seed {seed}");
    let mut random = seed;
    let mut next = |most: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % most
    };
    let mut watched = vec![
        Watched::start(directory.path()),
        Watched::start(directory.path()),
    ];
    // The whole path, because other tests run programs of the same name.
    let program = directory.path().canonicalize().unwrap().join("watched");
    let config = format!(
        "[processes]\nprograms = [\"{}\"]\nfilter = \"off\"\n[memory]\nfast = \"64MiB\"\n",
        program.display()
    );
    let mut daemon = Daemon::start(directory.path(), &config);
    for round in 0..12 {
        std::thread::sleep(Duration::from_millis(next(300)));
        if next(3) == 0 {
            daemon.child.kill().expect("kills");
            daemon.child.wait().expect("ends");
            for program in &mut watched {
                assert!(
                    program.child.try_wait().expect("a child").is_none(),
                    "round {round}"
                );
            }
            daemon = Daemon::start(directory.path(), &config);
        } else {
            let victim = next(2) as usize;
            watched[victim] = Watched::start(directory.path());
        }
    }
    let pids: Vec<Value> = watched
        .iter()
        .map(|program| Value::from(program.pid()))
        .collect();
    daemon.wait("both programs", |status| {
        let processes = status["processes"].as_array().cloned().unwrap_or_default();
        let seen: Vec<&Value> = processes.iter().map(|process| &process["pid"]).collect();
        pids.iter().all(|pid| seen.contains(&pid))
    });
    drop(watched);
    daemon.wait("end of both", |status| {
        status["processes"].as_array().is_some_and(Vec::is_empty)
    });
    daemon.stop();
}

/// A seed from the clock: it is printed, and any seed must do.
fn fastrand_seed() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(1, |since| since.as_nanos() as u64)
}

#[test]
fn a_bad_configuration_is_refused_with_its_line_and_the_printed_one_is_good() {
    let directory = directory();
    let file = directory.path().join("daemon.toml");
    std::fs::write(&file, "epoch = \"1s\"\nspeed = 3\n").unwrap();
    let run = |flags: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_isotherm"));
        command
            .arg("daemon")
            .args(flags)
            .output()
            .expect("isotherm starts")
    };
    let path = file.display().to_string();
    let refused = run(&["--config", &path, "--dry-run"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success());
    assert!(
        said.contains("line 2") && said.contains("`speed`"),
        "{said}"
    );
    std::fs::write(&file, "[memory]\ntiers = \"emulated:cxl\"\n").unwrap();
    let refused = run(&["--config", &path, "--dry-run", "--once"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success());
    assert!(
        said.contains("memory.tiers = \"emulated:cxl\"") && said.contains("isotherm tiers -o"),
        "{said}"
    );
    let printed = run(&["--print-config"]);
    // A test does not watch the programs of the machine's user.
    let own = format!("pids = [{}]", std::process::id());
    let good = String::from_utf8_lossy(&printed.stdout).replace("pids = []", &own);
    std::fs::write(&file, good).unwrap();
    let once = run(&["--config", &path, "--dry-run", "--once"]);
    let said = String::from_utf8_lossy(&once.stderr).into_owned();
    assert!(once.status.success(), "{said}");
    let text = String::from_utf8_lossy(&once.stdout).into_owned();
    assert!(
        text.contains("since start") && text.contains("1 epoch"),
        "{text}"
    );
}

#[test]
fn what_no_daemon_left_needs_no_restoring_and_a_damaged_record_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let shown = directory.path().display();
    let config = directory.path().join("daemon.toml");
    let text = format!("[serve]\nsocket = \"{shown}/socket\"\nstate = \"{shown}\"\n");
    std::fs::write(&config, text).unwrap();
    let restore = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_isotherm"));
        let output = command
            .args(["daemon", "--restore", "--config"])
            .arg(&config)
            .output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), said)
    };
    let (succeeded, said) = restore();
    assert!(succeeded && said.contains("no daemon left"), "{said}");
    let record = directory.path().join("kernel-promotion");
    std::fs::write(
        &record,
        "isotherm kernel promotion 1\nnuma_balancing was 1\n",
    )
    .unwrap();
    let (succeeded, said) = restore();
    assert!(!succeeded && said.contains("line 2"), "{said}");
    assert!(record.exists(), "the operator needs the record");
}
