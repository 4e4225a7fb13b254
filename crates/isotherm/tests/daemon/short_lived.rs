//! Tests that a daemon keeps no more memory, files and threads after a thousand programs have come and gone.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::{Daemon, MIB, compile, directory, wait_for};

/// Programs at a time, and how often others take their place.
const AT_A_TIME: usize = 50;
const TIMES: usize = 20;

/// Times after which the daemon's memory is taken to have its size, but for the history of heat: that of
/// fifty programs takes 2.4 MiB when it is full, after 120 epochs, however many programs follow.
const GROWN: usize = 4;

/// The most by which it may have grown since: 5 KiB for each program that has ended, history included.
const GROWS_AT_MOST: u64 = 4 * MIB;

/// Has 2 MiB of its own and touches them ten times a second until its standard input is closed.
const PROGRAM: &str = r#"
#include <poll.h>
#include <stdlib.h>
#include <string.h>
enum { BYTES = 2 << 20 };
int main(void) {
    char *memory = malloc(BYTES);
    struct pollfd end = {0, POLLIN, 0};
    for (int i = 0; memory && poll(&end, 1, 100) == 0; i++)
        memset(memory, i, BYTES);
    return 0;
}
"#;

/// Programs that end with their standard input.
struct Programs(Vec<Child>);

impl Programs {
    fn start(program: &Path) -> Self {
        let one = |_| {
            let mut command = Command::new(program);
            command.stdin(Stdio::piped()).spawn().expect("it starts")
        };
        Self((0..AT_A_TIME).map(one).collect())
    }

    /// True where a status has these processes and no others.
    fn are_all_of(&self, status: &Value) -> bool {
        let pid = |process: &Value| process["pid"].as_u64().unwrap_or(0);
        let mut seen: Vec<u64> = status["processes"]
            .as_array()
            .expect("a list")
            .iter()
            .map(pid)
            .collect();
        let mut own: Vec<u64> = self.0.iter().map(|child| child.id().into()).collect();
        seen.sort_unstable();
        own.sort_unstable();
        seen == own
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        for mut child in self.0.drain(..) {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

/// Files that the daemon has open, and its threads.
fn descriptors_and_threads(daemon: &Daemon) -> [usize; 2] {
    ["fd", "task"].map(|name| {
        let path = format!("/proc/{}/{name}", daemon.child.id());
        std::fs::read_dir(path).expect("the daemon runs").count()
    })
}

/// Bytes of its own memory that are resident.
fn own_bytes(daemon: &Daemon) -> u64 {
    let path = format!("/proc/{}/status", daemon.child.id());
    let status = std::fs::read_to_string(path).expect("the daemon runs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.expect("RssAnon") << 10
}

#[test]
fn a_thousand_short_lived_programs_leave_nothing_in_the_daemon() {
    let directory = directory();
    let program = compile(directory.path(), "short-lived", PROGRAM);
    let config = format!(
        "[processes]\nprograms = [\"{}\"]\nfilter = \"off\"\n[memory]\nfast = \"16MiB\"\n",
        program.display()
    );
    let mut daemon = Daemon::start(directory.path(), &config);
    let is_idle = |status: &Value| status["processes"].as_array().is_some_and(Vec::is_empty);
    daemon.wait("first epochs", |status| {
        status["epochs"].as_u64() >= Some(3) && is_idle(status)
    });
    // The least of half a second: the thread that answered the last question may be about to end.
    let settled = (0..10).map(|_| {
        std::thread::sleep(Duration::from_millis(50));
        descriptors_and_threads(&daemon)
    });
    let before = settled.min().expect("ten counts");
    let mut grown = 0;
    for time in 0..TIMES {
        if time == GROWN {
            grown = own_bytes(&daemon);
        }
        let programs = Programs::start(&program);
        daemon.wait("programs", |status| programs.are_all_of(status));
    }
    daemon.wait("end of all", is_idle);
    // The thread that answered the last question may be about to end.
    wait_for("no more descriptors and threads than before", || {
        let now = descriptors_and_threads(&daemon);
        std::iter::zip(now, before).all(|(now, before)| now <= before)
    });
    let more = own_bytes(&daemon).saturating_sub(grown);
    println!("the daemon has {} KiB more", more >> 10);
    assert!(
        more <= GROWS_AT_MOST,
        "{more} bytes more than after {} programs",
        GROWN * AT_A_TIME
    );
    daemon.stop();
}
