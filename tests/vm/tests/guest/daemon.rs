//! The daemon on real nodes: it moves hot pages of programs that do not cooperate.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::top::Top;
use crate::{GuestTest, on, skip};

const TWO: &[&str] = &["two-nodes"];

pub(crate) const TESTS: &[GuestTest] = &[
    on!(TWO, the_daemon_moves_hot_pages_by_samples_alone),
    on!(TWO, the_daemon_moves_hot_pages_by_damon_alone),
    on!(TWO, the_daemon_moves_hot_pages_by_damon_by_frame_alone),
    on!(TWO, the_daemon_moves_hot_pages_by_mappings_alone),
    on!(TWO, each_processor_has_a_kicker_of_its_own),
    on!(TWO, killing_daemon_and_programs_leaves_the_other_well),
    on!(long TWO, a_thousand_kills_of_daemon_and_programs_leave_the_other_well),
];

/// Pages of the arrays of `hot-and-cold`.
pub(crate) const HOT_PAGES: usize = (4 << 20) / 4096;
const COLD_PAGES: usize = (24 << 20) / 4096;
/// The daemon's share of the fast node: the hot array and as much again.
const FAST_PAGES: usize = (8 << 20) / 4096;

/// Most queries of the daemon, at five a second. Queries are counted, and not time: the guest's clocks run on
/// while a busy host keeps its processors waiting.
const QUESTIONS: u32 = 1_200;

/// The daemon's socket where its configuration names none.
const SOCKET: &str = "/run/isotherm/isotherm.sock";

const METRICS: &str = "127.0.0.1:9464";

/// A budget of moves per second that no unit fits in, and one that fits everything in one epoch.
const NO_MOVES: &str = "1KiB";
pub(crate) const ALL_MOVES: &str = "256MiB";

/// A process that ends with the test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The daemon, queried over its socket.
pub(crate) struct Daemon(Running);

impl Daemon {
    /// One that watches `hot-and-cold` with these sources.
    fn start(sources: &str) -> Self {
        Self::with(&config(sources, ALL_MOVES))
    }

    /// One with this configuration, and with `METRICS`.
    pub(crate) fn with(config: &str) -> Self {
        write(config);
        let said = std::fs::File::create("/tmp/daemon.err").expect("a file");
        let child = Command::new("isotherm")
            .args(["daemon", "--config", "/tmp/daemon.toml"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said)
            .spawn();
        Self(Running(child.expect("isotherm starts")))
    }

    /// Makes it read another configuration.
    pub(crate) fn reload(&mut self, config: &str) {
        let times = || said().matches("configuration read again").count();
        let before = times();
        write(config);
        self.signal("-HUP");
        self.wait("other configuration", |_| times() > before);
    }

    fn signal(&self, signal: &str) {
        let pid = self.0.0.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.expect("kill").success());
    }

    fn status(&self) -> Option<Value> {
        let output = Command::new("isotherm")
            .args(["status", "--json"])
            .output()
            .expect("isotherm starts");
        serde_json::from_slice(&output.stdout).ok()
    }

    /// Waits for a status that matches.
    pub(crate) fn wait(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let mut last = None;
        for _ in 0..QUESTIONS {
            let status = self.status();
            if let Some(status) = status.clone().filter(|status| fits(status)) {
                return status;
            }
            let ended = self.0.0.try_wait().expect("a child");
            assert!(ended.is_none(), "no {what}: {ended:?}\n{}", said());
            last = status.or(last);
            std::thread::sleep(Duration::from_millis(200));
        }
        panic!("no {what}: {last:?}\n{}", said());
    }

    /// The status after each of this many epochs, none left out.
    pub(crate) fn follow(&self, epochs: usize) -> Vec<Value> {
        let mut stream = UnixStream::connect(SOCKET).expect("the socket");
        stream.write_all(b"follow\n").expect("writes");
        let lines = BufReader::new(stream).lines().take(epochs);
        let status = |line: std::io::Result<String>| -> Value {
            serde_json::from_str(&line.expect("a line")).expect("is JSON")
        };
        let statuses: Vec<Value> = lines.map(status).collect();
        let numbers = statuses.iter().map(|status| status["epochs"].as_u64());
        let first = statuses[0]["epochs"].as_u64().expect("a number");
        let all = (first..).map(Some).take(epochs);
        assert!(numbers.eq(all), "an epoch is left out: {statuses:?}");
        statuses
    }

    /// Ends it as systemd does.
    pub(crate) fn stop(mut self) {
        self.signal("-TERM");
        let ended = self.0.0.wait().expect("a child");
        assert!(ended.success(), "{ended}\n{}", said());
    }
}

/// Watches `hot-and-cold` with these sources and moves at most this much in a second.
pub(crate) fn config(sources: &str, rate: &str) -> String {
    format!(
        "epoch = \"500ms\"\npolicy = \"history\"\n[memory]\nfast = \"8MiB\"\nunit = \"256KiB\"\n\
         [processes]\nprograms = [\"hot-and-cold\"]\nfilter = \"off\"\n[moves]\nmover = \"pages\"\nrate = \"{rate}\"\n\
         [sources]\nbudget = \"50%\"\ncache = \"0B\"\n{sources}[serve]\nmetrics = \"{METRICS}\"\n"
    )
}

fn write(config: &str) {
    std::fs::write("/tmp/daemon.toml", config).expect("writes");
}

fn said() -> String {
    std::fs::read_to_string("/tmp/daemon.err").unwrap_or_default()
}

/// The program: its hot array begins on the slow node, its cold one on the fast node. It works until the test
/// ends it, because a fast host would finish any number of accesses before the daemon has completed four
/// epochs.
pub(crate) fn program(habits: &str) -> Running {
    let mut command = Command::new("hot-and-cold");
    let command = command
        .args(["0", "0", "1", &format!("i{habits}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    Running(command.spawn().expect("the program starts"))
}

pub(crate) fn ended(mut program: Running) -> Output {
    drop(program.0.stdin.take());
    let mut stdout = Vec::new();
    let output = program.0.stdout.as_mut().expect("a pipe");
    output.read_to_end(&mut stdout).expect("reads");
    let status = program.0.wait().expect("a child");
    Output {
        status,
        stdout,
        stderr: Vec::new(),
    }
}

/// Pages on a node in a line such as `hot N0=1024 N1=3`.
pub(crate) fn pages(output: &str, array: &str, node: u32) -> usize {
    let line = output
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{array} ")));
    let words = line
        .unwrap_or_else(|| panic!("no {array}:\n{output}"))
        .split(' ');
    let found = words.filter_map(|word| {
        word.strip_prefix(&format!("N{node}="))?
            .parse::<usize>()
            .ok()
    });
    found.sum()
}

/// Pages of the hot array on a node, as reported by the kernel. Its mapping is the one with a policy: `7f00
/// prefer:1 anon=1025 dirty=1025 N0=1025 kernelpagesize_kB=4`.
pub(crate) fn hot_in_numa_maps(pid: u32, node: u32) -> usize {
    let text = std::fs::read_to_string(format!("/proc/{pid}/numa_maps")).unwrap_or_default();
    // The guest's files are in memory, and keep the policy that an earlier run set for the program's static data.
    let is_array = |line: &&str| line.contains(" prefer") && !line.contains(" file=");
    let lines = text.lines().filter(is_array);
    let word = format!("N{node}=");
    let words = lines.flat_map(str::split_ascii_whitespace);
    words
        .filter_map(|other| other.strip_prefix(&word)?.parse::<usize>().ok())
        .sum()
}

/// A process on each processor that runs for a moment every few milliseconds, so that the emulator's own
/// address cache is emptied there and accessed bits are set again. Each is pinned to its processor: unpinned,
/// they gather on the idle one, and the other's cache is never emptied.
pub(crate) fn kickers() -> Vec<Running> {
    let one = |processor: usize| {
        let cpu = processor.to_string();
        let words = ["-c", &cpu, "sh", "-c", "while :; do usleep 5000; done"];
        Running(
            Command::new("taskset")
                .args(words)
                .spawn()
                .expect("taskset"),
        )
    };
    let processors = std::thread::available_parallelism().expect("processors");
    (0..processors.get()).map(one).collect()
}

fn each_processor_has_a_kicker_of_its_own() {
    let kickers = kickers();
    for (processor, kicker) in kickers.iter().enumerate() {
        let path = format!("/proc/{}/status", kicker.0.id());
        let wanted = format!("Cpus_allowed_list:\t{processor}\n");
        let is_kept = |_| {
            std::thread::sleep(Duration::from_millis(50));
            std::fs::read_to_string(&path).is_ok_and(|status| status.contains(&wanted))
        };
        assert!(
            (0..QUESTIONS).any(is_kept),
            "no kicker keeps to {processor}"
        );
    }
    assert_eq!(kickers.len(), 2, "as many as the guest has processors");
}

/// Makes the daemon move the program's arrays by these sources and checks the result: by the kernel's report,
/// in the metrics, and on the screen of `isotherm top`.
fn moves_by(sources: &str, name: &str) {
    let mut program = program("");
    let pid = program.0.id();
    let mut daemon = Daemon::with(&config(sources, NO_MOVES));
    let status = daemon.wait("observation of the program", |status| {
        status["processes"][0]["pid"] == pid && status["epochs"].as_u64() >= Some(4)
    });
    let source = status["sources"].as_array().expect("a list").iter();
    let source = source.into_iter().find(|source| source["name"] == name);
    if source.is_none() {
        skip(&format!("no {name}: {}", warnings(&status)));
    }
    let top = Top::start();
    daemon.wait("low hit rate in `isotherm top`", |status| {
        top.hit_rate().is_some_and(|rate| rate < 0.5) && top.shows(status)
    });
    assert_eq!(hot_in_numa_maps(pid, 0), 0, "nothing may be moved yet");
    daemon.reload(&config(sources, ALL_MOVES));
    // By the kernel's report, while the program runs. The bytes that the daemon reports as promoted depend on
    // the kernel: one that does not report huge pages moves their other units along without a report.
    daemon.wait("promotion of the hot array in `isotherm top`", |status| {
        hot_in_numa_maps(pid, 0) >= HOT_PAGES * 9 / 10
            && status["total"]["promoted_bytes"].as_u64() > Some(0)
            && top.hit_rate() >= Some(0.9)
            && top.shows(status)
    });
    top.quit();
    let metrics = metrics();
    assert!(
        metrics.contains("isotherm_promoted_bytes_total"),
        "{metrics}"
    );
    assert!(metrics.contains(&format!("pid=\"{pid}\"")), "{metrics}");
    drop(program.0.stdin.take());
    daemon.wait("an end of the program", |status| {
        status["processes"].as_array().is_some_and(Vec::is_empty)
    });
    let output = String::from_utf8_lossy(&ended(program).stdout).into_owned();
    // The array's first page, which it covers in part, is where the allocator's neighbour is; and a unit at
    // either end may belong to another mapping.
    let most = HOT_PAGES * 9 / 10;
    assert!(pages(&output, "hot-at-first", 1) >= most, "{output}");
    assert!(pages(&output, "hot", 0) >= most, "{output}\n{}", said());
    let cold = pages(&output, "cold", 0);
    assert!(
        cold <= FAST_PAGES - HOT_PAGES,
        "{cold} cold pages are fast:\n{output}"
    );
    assert!(pages(&output, "cold", 1) >= COLD_PAGES / 2, "{output}");
    assert!(output.contains("contents whole"), "{output}");
    daemon.stop();
}

/// The reasons why sources are off, from their own status.
fn warnings(status: &Value) -> String {
    let sources = status["sources"].as_array().into_iter().flatten();
    let said: Vec<&str> = sources
        .filter_map(|source| source["warning"].as_str())
        .filter(|warning| !warning.is_empty())
        .collect();
    said.join("; ")
}

fn metrics() -> String {
    let mut client = TcpStream::connect(METRICS).expect("the metrics");
    client
        .write_all(b"GET /metrics HTTP/1.1\r\n\r\n")
        .expect("writes");
    let mut text = String::new();
    client.read_to_string(&mut text).expect("reads");
    text
}

/// Guests have no network, not even to themselves.
pub(crate) fn loopback() {
    let up = Command::new("ifconfig")
        .args(["lo", "127.0.0.1", "up"])
        .status();
    assert!(up.expect("ifconfig").success());
}

fn the_daemon_moves_hot_pages_by_samples_alone() {
    loopback();
    moves_by(
        "accessed_bits = \"off\"\ntrace_samples = \"timer\"\n",
        "timer",
    );
}

fn the_daemon_moves_hot_pages_by_damon_alone() {
    loopback();
    let _kickers = kickers();
    moves_by(
        "accessed_bits = \"damon\"\ntrace_samples = \"off\"\n",
        "damon",
    );
}

/// Regions of frames are mixed, so that a cold unit sometimes takes the place of a hot one: the test requires
/// that nearly all of the hot array is fast once.
fn the_daemon_moves_hot_pages_by_damon_by_frame_alone() {
    loopback();
    let _kickers = kickers();
    let program = program("");
    let pid = program.0.id();
    let mut daemon = Daemon::start("accessed_bits = \"damon-paddr\"\ntrace_samples = \"off\"\n");
    let status = daemon.wait("observation of the program", |status| {
        status["processes"][0]["pid"] == pid && status["epochs"].as_u64() >= Some(4)
    });
    let sources = status["sources"].as_array().expect("a list").iter();
    let names: Vec<&str> = sources.filter_map(|one| one["name"].as_str()).collect();
    if !names.contains(&"damon-paddr") {
        skip(&format!("no damon-paddr: {}", warnings(&status)));
    }
    assert!(
        !names.contains(&"accessed-bits"),
        "it is to see alone: {names:?}"
    );
    daemon.wait("hot array on node 0", |_| {
        hot_in_numa_maps(pid, 0) >= HOT_PAGES * 9 / 10
    });
    let output = String::from_utf8_lossy(&ended(program).stdout).into_owned();
    let at_first = pages(&output, "hot-at-first", 1);
    assert!(at_first >= HOT_PAGES * 9 / 10, "{output}");
    assert!(output.contains("contents whole"), "{output}");
    daemon.stop();
}

/// The hot array has a mapping of its own, because it has another node.
fn the_daemon_moves_hot_pages_by_mappings_alone() {
    loopback();
    let _kickers = kickers();
    moves_by(
        "accessed_bits = \"mappings\"\ntrace_samples = \"off\"\n",
        "accessed-bits",
    );
}

fn killing_daemon_and_programs_leaves_the_other_well() {
    kill_in_a_loop(30);
}

fn a_thousand_kills_of_daemon_and_programs_leave_the_other_well() {
    kill_in_a_loop(1000);
}

/// Kills the daemon or a program at random moments. A surviving program keeps its data, and a surviving daemon
/// continues to watch the running programs.
fn kill_in_a_loop(times: u32) {
    loopback();
    let mut random = u64::from(std::process::id()) << 32 | u64::from(times);
    println!("seed {random}");
    let mut next = |most: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % most
    };
    let sources = "accessed_bits = \"auto\"\ntrace_samples = \"timer\"\n";
    let mut programs = vec![program(""), program("")];
    let mut daemon = Daemon::start(sources);
    for time in 0..times {
        std::thread::sleep(Duration::from_millis(next(400)));
        if next(2) == 0 {
            daemon.0.0.kill().expect("kills");
            daemon.0.0.wait().expect("ends");
            daemon = Daemon::start(sources);
        } else {
            programs[next(2) as usize] = program("");
        }
        let dead = programs
            .iter_mut()
            .any(|program| program.0.try_wait().expect("a child").is_some());
        assert!(!dead, "a program ended after kill {time}\n{}", said());
        let ended = daemon.0.0.try_wait().expect("a child");
        assert!(
            ended.is_none(),
            "the daemon ended after kill {time}: {ended:?}\n{}",
            said()
        );
    }
    let pids: Vec<Value> = programs
        .iter()
        .map(|program| Value::from(program.0.id()))
        .collect();
    daemon.wait("both programs", |status| {
        let processes = status["processes"].as_array().cloned().unwrap_or_default();
        let seen: Vec<&Value> = processes.iter().map(|process| &process["pid"]).collect();
        pids.iter().all(|pid| seen.contains(&pid))
    });
    drop(programs);
    let last = program("");
    let output = String::from_utf8_lossy(&ended(last).stdout).into_owned();
    assert!(output.contains("contents whole"), "{output}");
    daemon.stop();
}
