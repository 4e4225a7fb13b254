//! The daemon empties a node, takes its memory offline and brings it back, while a program uses it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use isotherm_sys::policy::MempolicyMode;

use crate::daemon::Daemon;
use crate::kernel::{Memory, node_bytes};
use crate::{GuestTest, on};

const MODULE: &[&str] = &["memory-module"];

pub(crate) const TESTS: &[GuestTest] = &[
    on!(
        MODULE,
        a_node_goes_offline_and_comes_back_while_a_program_writes_to_it
    ),
    on!(
        MODULE,
        what_a_killed_daemon_left_offline_comes_back_with_the_next_one
    ),
];

/// Bytes of the program's data.
const DATA: usize = 48 << 20;

/// Watches nothing, and may empty these nodes.
fn config(offline: &str) -> String {
    format!(
        "epoch = \"200ms\"\npolicy = \"first-come-first-allocated\"\n[processes]\nprograms = [\"none\"]\n\
         [energy]\noffline = {offline}\nreserve = \"10%\"\n"
    )
}

/// The states of the blocks of node 1.
fn states() -> Vec<String> {
    let directory = Path::new("/sys/devices/system/node/node1");
    let entries = std::fs::read_dir(directory).expect("node 1");
    let blocks = entries.filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        name.strip_prefix("memory")?.parse::<u64>().ok()?;
        let state = std::fs::read_to_string(directory.join(name).join("state")).ok()?;
        Some(state.trim().to_owned())
    });
    blocks.collect()
}

fn all_are(state: &str) -> bool {
    let states = states();
    !states.is_empty() && states.iter().all(|it| it == state)
}

/// A thread that adds one to each of its words in turn, over and over, and counts those that hold anything else than it wrote last.
struct Writer {
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicUsize>,
    thread: JoinHandle<usize>,
}

impl Writer {
    /// Begins with all data on node 1.
    fn start() -> Self {
        let (stop, rounds) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (stopped, done) = (Arc::clone(&stop), Arc::clone(&rounds));
        let thread = std::thread::spawn(move || {
            let mut memory = Memory::of(DATA);
            memory
                .place(MempolicyMode::Preferred, &[1])
                .expect("a policy");
            memory.words_mut().fill(0);
            memory.assert_all_on(1);
            let (mut wrong, mut round) = (0, 0);
            while !stopped.load(Ordering::Relaxed) {
                let torn = memory.words_mut().iter_mut().map(|word| {
                    let is_torn = *word != round;
                    *word = round + 1;
                    usize::from(is_torn)
                });
                wrong += torn.sum::<usize>();
                round += 1;
                done.fetch_add(1, Ordering::Relaxed);
            }
            wrong
        });
        let writer = Self {
            stop,
            rounds,
            thread,
        };
        writer.goes_on();
        writer
    }

    /// Waits until it has written all of its data twice more.
    fn goes_on(&self) {
        let begun = self.rounds.load(Ordering::Relaxed);
        while self.rounds.load(Ordering::Relaxed) < begun + 2 {
            assert!(!self.thread.is_finished(), "the writer ended");
            std::thread::yield_now();
        }
    }

    /// Words that were lost or torn.
    fn end(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic")
    }
}

fn offline_nodes(daemon: &mut Daemon) {
    let is_offline = |status: &serde_json::Value| status["offline_nodes"][0] == 1;
    daemon.wait("node offline", |status| {
        is_offline(status) && all_are("offline")
    });
}

fn a_node_goes_offline_and_comes_back_while_a_program_writes_to_it() {
    assert!(all_are("online"), "{:?}", states());
    let writer = Writer::start();
    let mut daemon = Daemon::with(&config("[1]"));
    offline_nodes(&mut daemon);
    assert_eq!(node_bytes(1, "MemTotal:"), 0);
    writer.goes_on();
    daemon.stop();
    assert!(all_are("online"), "{:?}", states());
    assert!(node_bytes(1, "MemTotal:") > 0);
    writer.goes_on();
    assert_eq!(writer.end(), 0, "words were lost");
    // The node takes data again.
    let mut memory = Memory::of(4 << 20);
    memory.place(MempolicyMode::Bind, &[1]).expect("a policy");
    memory.write();
    memory.assert_all_on(1);
}

fn what_a_killed_daemon_left_offline_comes_back_with_the_next_one() {
    let writer = Writer::start();
    let mut daemon = Daemon::with(&config("[1]"));
    offline_nodes(&mut daemon);
    // SIGKILL.
    drop(daemon);
    assert!(all_are("offline"), "{:?}", states());
    let mut next = Daemon::with(&config("[]"));
    next.wait("status", |_| true);
    assert!(all_are("online"), "{:?}", states());
    next.stop();
    assert_eq!(writer.end(), 0, "words were lost");
}
