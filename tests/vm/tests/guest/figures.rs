//! The daemon's figures compared with the truth, on a program whose two hot sets take turns: the length of
//! epochs, bytes promoted, and the hit rate beside the share of accesses that the fast node served, as reported
//! by the kernel.
//!
//!     isotherm-vm run --with target/release/isotherm --with two-hot-sets two-nodes GUEST-TESTS --in-guest TEST
//!
//! prints the figures; as tests, they have limits.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::daemon::{Daemon, Running, kickers};
use crate::{GuestTest, on};

const TWO: &[&str] = &["two-nodes"];

pub(crate) const TESTS: &[GuestTest] = &[
    on!(long TWO, what_the_daemon_reports_of_two_hot_sets_is_true_by_both_sources),
    on!(long TWO, what_the_daemon_reports_of_two_hot_sets_is_true_by_samples_alone),
];

/// Epochs for which a set is hot, and the number of turns.
const EPOCHS: usize = 8;
const TURNS: usize = 3;

/// Pages of a set.
const PAGES: usize = (24 << 20) / 4096;

/// The two sets, and which of them is hot.
struct Program {
    running: Running,
    sets: [String; 2],
    hot: usize,
}

impl Program {
    fn start() -> Self {
        let mut command = Command::new("two-hot-sets");
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("a line");
        let mut words = line.split_whitespace().map(str::to_owned);
        let mut next = || words.next().expect("an address");
        Self {
            sets: [next(), next()],
            running: Running(child),
            hot: 0,
        }
    }

    fn child(&mut self) -> &mut Child {
        &mut self.running.0
    }

    fn heat(&mut self, set: usize) {
        self.hot = set;
        let input = self.child().stdin.as_mut().expect("a pipe");
        input.write_all([b"a", b"b"][set]).expect("it runs");
    }

    /// Pages of each set on the fast node, as reported by the kernel.
    fn fast(&mut self) -> [usize; 2] {
        let path = format!("/proc/{}/numa_maps", self.child().id());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let of = |set: &String| {
            let line = text.lines().find(|line| line.starts_with(set.as_str()));
            let words = line.unwrap_or_default().split_ascii_whitespace();
            let mut found = words.filter_map(|word| word.strip_prefix("N0=")?.parse().ok());
            found.next().unwrap_or(0)
        };
        [of(&self.sets[0]), of(&self.sets[1])]
    }
}

/// An epoch as reported, and the truth.
struct Epoch {
    millis: f64,
    reported: Option<f64>,
    interval: Option<[f64; 2]>,
    samples: u64,
    /// Share of accesses that the fast node served: the mean of some moments in the epoch, the least and the
    /// most.
    truth: [f64; 3],
    fast: [usize; 2],
    status: Value,
}

impl Epoch {
    fn new(status: Value, truths: &[f64], fast: [usize; 2]) -> Self {
        let number = |value: &Value| value.as_f64();
        let interval = |at: usize| number(&status["hit_rate_interval"][at]);
        let sum: f64 = truths.iter().sum();
        Self {
            millis: number(&status["epoch_ns"]).unwrap_or(0.0) / 1e6,
            reported: number(&status["hit_rate"]),
            interval: interval(0).zip(interval(1)).map(|(low, high)| [low, high]),
            samples: status["hit_rate_samples"].as_u64().unwrap_or(0),
            truth: [
                sum / truths.len().max(1) as f64,
                truths.iter().copied().fold(1.0, f64::min),
                truths.iter().copied().fold(0.0, f64::max),
            ],
            fast,
            status,
        }
    }
}

/// Watches the program through its turns.
fn watch(sources: &str) -> Vec<Epoch> {
    let mut program = Program::start();
    let mut daemon = Daemon::with(&format!(
        "policy = \"payback\"\n[memory]\nfast = \"57MiB\"\nunit = \"256KiB\"\n\
         [processes]\nprograms = [\"two-hot-sets\"]\nfilter = \"off\"\n[serve]\nmetrics = \"\"\n\
         [sources]\ncache = \"0B\"\n{sources}"
    ));
    daemon.wait("answer", |_| true);
    let socket = UnixStream::connect("/run/isotherm/isotherm.sock").expect("it answers");
    (&socket).write_all(b"follow\n").expect("may ask");
    // Between two epochs the test reads where the pages are. It starts no program for it: that takes the guest
    // longer than the daemon takes for an epoch.
    let between = Some(Duration::from_millis(300));
    socket.set_read_timeout(between).expect("may wait");
    let (mut lines, mut line) = (BufReader::new(socket), Vec::new());
    let (mut epochs, mut truths) = (Vec::new(), Vec::new());
    while epochs.len() < EPOCHS * TURNS {
        truths.push(program.fast()[program.hot] as f64 / PAGES as f64);
        match lines.read_until(b'\n', &mut line) {
            Ok(0) => panic!("the daemon has ended"),
            Ok(_) => {
                let status = serde_json::from_slice(&line).expect("JSON");
                line.clear();
                epochs.push(Epoch::new(status, &truths, program.fast()));
                truths.clear();
                let set = epochs.len() / EPOCHS % 2;
                if set != program.hot {
                    program.heat(set);
                }
            }
            // A partial line stays in it.
            Err(_) => {}
        }
    }
    daemon.stop();
    epochs
}

fn print(epochs: &[Epoch]) {
    println!(
        "epoch    ms  hit rate  interval     samples  truth (least to most)  fast pages of a and b  hz  promoted  demoted  fast  wanted  not moved"
    );
    for (number, epoch) in epochs.iter().enumerate() {
        let [low, high] = epoch.interval.unwrap_or([f64::NAN; 2]);
        println!(
            "{number:>5} {:>5.0}  {:>8.2}  {low:>4.2} to {high:>4.2}  {:>6}  {:>4.2} ({:.2} to {:.2})  {:>5} {:>5}  {:>4} {:>5} MiB {:>4} MiB {:>4} MiB {:>4} MiB  {}",
            epoch.millis,
            epoch.reported.unwrap_or(f64::NAN),
            epoch.samples,
            epoch.truth[0],
            epoch.truth[1],
            epoch.truth[2],
            epoch.fast[0],
            epoch.fast[1],
            epoch.status["timer"]["hz"].as_u64().unwrap_or(0),
            mebibytes(&epoch.status["total"]["promoted_bytes"]),
            mebibytes(&epoch.status["total"]["demoted_bytes"]),
            mebibytes(&epoch.status["fast_bytes"]),
            mebibytes(&epoch.status["wanted_bytes"]),
            epoch.status["last"]["not_moved_bytes"],
        );
    }
    let longest = epochs.iter().map(|epoch| epoch.millis).fold(0.0, f64::max);
    let mean = epochs.iter().map(|epoch| epoch.millis).sum::<f64>() / epochs.len() as f64;
    println!("epochs of {mean:.0} ms on the mean, the longest {longest:.0} ms");
    println!("hit rate off by {:.3} on the mean", error(epochs));
    println!(
        "promoted {} MiB of two hot sets of 24 MiB",
        promoted(epochs) >> 20
    );
}

fn mebibytes(bytes: &Value) -> u64 {
    bytes.as_u64().unwrap_or(0) >> 20
}

/// How far reported hit rates are outside the true range of the epoch, on the mean over epochs with any.
fn error(epochs: &[Epoch]) -> f64 {
    let off = epochs.iter().filter_map(|epoch| {
        let [_, least, most] = epoch.truth;
        let reported = epoch.reported?;
        Some((least - reported).max(reported - most).max(0.0))
    });
    let off: Vec<f64> = off.collect();
    off.iter().sum::<f64>() / off.len().max(1) as f64
}

fn promoted(epochs: &[Epoch]) -> u64 {
    let last = epochs.last().expect("epochs");
    last.status["total"]["promoted_bytes"].as_u64().unwrap_or(0)
}

/// Prints the figures and returns the number of fast pages of the set that was hot last.
fn check(sources: &str) -> usize {
    let _kickers = kickers();
    let epochs = watch(sources);
    print(&epochs);
    let last = epochs.last().expect("epochs");
    assert!(promoted(&epochs) <= (3 * 48) << 20, "it moves to and fro");
    last.fast[(TURNS - 1) % 2]
}

fn what_the_daemon_reports_of_two_hot_sets_is_true_by_both_sources() {
    let hot = check("accessed_bits = \"damon\"\ntrace_samples = \"timer\"\n");
    assert!(hot >= PAGES * 9 / 10, "{hot} of {PAGES} hot pages are fast");
}

fn what_the_daemon_reports_of_two_hot_sets_is_true_by_samples_alone() {
    let sources = "accessed_bits = \"off\"\ntrace_samples = \"timer\"\nbudget = \"10%\"\n";
    let hot = check(sources);
    assert!(hot >= PAGES * 9 / 10, "{hot} of {PAGES} hot pages are fast");
}
