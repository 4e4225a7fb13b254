//! Huge pages of which little is hot: only the hot parts come to the fast node.

use std::process::{Command, Stdio};

use crate::daemon::{Daemon, Running, ended, loopback, pages};
use crate::{GuestTest, on};

const TWO: &[&str] = &["two-nodes"];

pub(crate) const TESTS: &[GuestTest] = &[
    on!(TWO, only_the_hot_parts_of_huge_pages_come_to_the_fast_node),
    on!(TWO, without_splits_huge_pages_come_whole),
];

/// Pages of `few-hot-pages` of 4 KiB: 64 KiB of each of 16 huge pages, and all others.
const HOT_PAGES: usize = 16 * 16;
const COLD_PAGES: usize = 16 * 512 - HOT_PAGES;
/// Pages that the daemon may use of the fast node: a quarter of the huge pages.
const FAST_PAGES: usize = 4 * 512;

/// Watches the program, with this key of the moves.
fn config(key: &str) -> String {
    format!(
        "epoch = \"500ms\"\n[memory]\nfast = \"8MiB\"\n[processes]\nprograms = [\"few-hot-pages\"]\nfilter = \"off\"\n\
         [moves]\nmover = \"pages\"\n{key}[sources]\nbudget = \"50%\"\ncache = \"0B\"\ntrace_samples = \"timer\"\n"
    )
}

fn program() -> Running {
    let _ = std::fs::remove_file("/tmp/where");
    let mut command = Command::new("few-hot-pages");
    let command = command.arg("1").stdin(Stdio::piped());
    let child = command.stdout(Stdio::piped()).spawn();
    Running(child.expect("the program starts"))
}

/// Pages of the program on the fast node: the hot ones, and the others.
fn on_fast() -> [usize; 2] {
    let text = std::fs::read_to_string("/tmp/where").unwrap_or_default();
    ["hot", "cold"].map(|name| match text.contains(name) {
        true => pages(&text, name, 0),
        false => 0,
    })
}

/// Ends the program, whose contents must be as it wrote them.
fn end(program: Running) {
    let output = ended(program);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "contents whole\n");
}

fn only_the_hot_parts_of_huge_pages_come_to_the_fast_node() {
    loopback();
    let program = program();
    let mut daemon = Daemon::with(&config(""));
    daemon.wait("hot pages on node 0 alone", |status| {
        let [hot, cold] = on_fast();
        // A part of 32 KiB is the least that moves alone.
        let is_split = status["units_split"].as_u64() >= Some(14);
        is_split && hot >= HOT_PAGES * 9 / 10 && cold <= COLD_PAGES / 8
    });
    daemon.stop();
    end(program);
}

fn without_splits_huge_pages_come_whole() {
    loopback();
    let program = program();
    let mut daemon = Daemon::with(&config("split = false\n"));
    let status = daemon.wait("whole huge pages on node 0", |status| {
        let [hot, cold] = on_fast();
        status["total"]["promoted_bytes"].as_u64() > Some(0) && hot > 0 && cold > 30 * hot
    });
    assert_eq!(status["units_split"], 0, "{status}");
    let [hot, cold] = on_fast();
    // One may be on its way while the nodes are asked for.
    assert!(hot + cold <= FAST_PAGES + 512, "{hot} and {cold} pages");
    daemon.stop();
    end(program);
}
