//! Tests which signals `isotherm` passes on to a program that it runs, and which stay ignored. The library `libisotherm.so` must be beside
//! the program (`cargo build --workspace` puts it there).

mod support;

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use support::{built, stderr, succeeds};

/// Says that it runs by a file `ready`, and runs until a file `go` is there. Writes to `caught` how many SIGINT it has received by now, one
/// byte for each. SIGINT stays ignored if it was ignored at the start. It waits without sleep: two signals that arrive while it sleeps
/// would be one.
const PROGRAM: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static volatile sig_atomic_t caught;
static void count(int signal) { caught++; }
int main(void) {
    char *hot = malloc(4 << 20);
    for (int i = 0; i < 200; i++) memset(hot, i, 4 << 20);
    if (signal(SIGINT, count) == SIG_IGN) signal(SIGINT, SIG_IGN);
    FILE *file = fopen("caught", "w");
    fclose(fopen("ready", "w"));
    int written = 0;
    for (time_t end = time(NULL) + 60; time(NULL) < end && access("go", F_OK) != 0;)
        for (; written < caught; written++) {
            fputc('x', file);
            fflush(file);
        }
    fclose(file);
    printf("%d\n", hot[7]);
    return 0;
}
"#;

/// Waits until this is true; the process must run until then.
fn wait_until(what: &str, child: &mut Child, is_true: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_true() {
        let ended = child.try_wait().expect("its status");
        assert_eq!(ended, None, "it ended before {what}");
        assert!(start.elapsed() < Duration::from_secs(50), "no {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// How many SIGINT the program has received by now.
fn caught(directory: &TempDir) -> usize {
    std::fs::read(directory.path().join("caught")).map_or(0, |bytes| bytes.len())
}

/// Sends this command the signals that it ignored at its start while the program runs, which then goes on: its end must be a success.
fn goes_on(directory: &TempDir, arguments: &[&str]) {
    let file = |name: &str| directory.path().join(name);
    for name in ["ready", "go", "caught"] {
        let _ = std::fs::remove_file(file(name));
    }
    let mut command = Command::new("env");
    command
        .args(["--ignore-signal=HUP,INT,QUIT", "--default-signal=TERM"])
        .arg(env!("CARGO_BIN_EXE_isotherm"))
        .args(arguments)
        .current_dir(directory)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("env starts");
    wait_until("the start", &mut child, || file("ready").exists());
    for signal in [Signal::HUP, Signal::INT, Signal::QUIT] {
        kill_process(Pid::from_child(&child), signal).expect("it runs");
    }
    std::fs::write(file("go"), "").expect("is written");
    let output = child.wait_with_output().expect("it ends");
    let status = output.status;
    assert!(status.success(), "{status}: {}", stderr(&output));
    assert_eq!(caught(directory), 0, "the program ignores it, too");
}

#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let directory = built(PROGRAM);
    std::fs::write(directory.path().join("go"), "").unwrap();
    succeeds(&directory, &["record", "--epoch", "50ms", "--", "./app"]);
    let plan = ["plan", "app.iso", "--tiers", "emulated", "--fast", "8MiB"];
    succeeds(&directory, &[&plan[..], &["-o", "app.plan"]].concat());
    let app = ["--", "./app"];
    let compare = ["compare", "--rounds", "1", "app.plan"];
    goes_on(&directory, &[&compare[..], &app].concat());
    let sensitivity = ["sensitivity", "--rounds", "1", "--objects", "1"];
    let sensitivity = [&sensitivity[..], &["--tiers", "emulated:cxl"]].concat();
    goes_on(&directory, &[&sensitivity[..], &app].concat());
    goes_on(&directory, &[&["record", "--force"][..], &app].concat());
}

/// A command on a terminal of its own, that of `script`; its standard input is what is typed there.
struct OnTerminal {
    script: Child,
    /// Process id of `isotherm`.
    pid: Pid,
}

impl OnTerminal {
    /// Starts it, and waits until the program runs.
    fn start(directory: &TempDir, arguments: &str) -> Self {
        let isotherm = env!("CARGO_BIN_EXE_isotherm");
        let words = format!(
            "echo $$ > pid; exec env --default-signal=INT,QUIT {isotherm} {arguments} -- ./app"
        );
        let mut script = Command::new("script")
            .args([
                "--quiet",
                "--flush",
                "--return",
                "--command",
                &words,
                "typescript",
            ])
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("script starts");
        let ready = directory.path().join("ready");
        wait_until("the start", &mut script, || ready.exists());
        let pid = std::fs::read_to_string(directory.path().join("pid")).expect("was written");
        let pid = pid.trim().parse().ok().and_then(Pid::from_raw);
        Self {
            script,
            pid: pid.expect("a process"),
        }
    }

    /// Types Ctrl-C.
    fn interrupt(&self) {
        let mut typed = self.script.stdin.as_ref().expect("is piped");
        typed.write_all(b"\x03").expect("the terminal is open");
    }

    /// Waits until the program has received this number of SIGINT.
    fn wait_for(&mut self, count: usize, directory: &TempDir) {
        let what = format!("interrupt {count}");
        wait_until(&what, &mut self.script, || caught(directory) >= count);
    }

    /// Ends the program: how many SIGINT it has received.
    fn end(mut self, directory: &TempDir) -> usize {
        // A signal that is sent a second time arrives within this time.
        std::thread::sleep(Duration::from_millis(300));
        std::fs::write(directory.path().join("go"), "").expect("is written");
        self.script.wait().expect("it ends");
        caught(directory)
    }
}

/// True where no terminal can be made here.
fn has_no_script() -> bool {
    Command::new("script").arg("--version").output().is_err()
}

const RECORD: &str = "record -o app.iso";

#[test]
fn an_interrupt_of_isotherm_alone_reaches_the_program_at_a_terminal() {
    if has_no_script() {
        return isotherm_skip::skip!("there is no script(1) to make a terminal");
    }
    for arguments in [RECORD, "run --tiers emulated"] {
        let directory = built(PROGRAM);
        let mut terminal = OnTerminal::start(&directory, arguments);
        kill_process(terminal.pid, Signal::INT).expect("it runs");
        terminal.wait_for(1, &directory);
        assert_eq!(terminal.end(&directory), 1, "{arguments}");
    }
}

#[test]
fn a_quit_of_isotherm_alone_ends_the_program_at_a_terminal() {
    if has_no_script() {
        return isotherm_skip::skip!("there is no script(1) to make a terminal");
    }
    let directory = built(PROGRAM);
    let mut terminal = OnTerminal::start(&directory, RECORD);
    kill_process(terminal.pid, Signal::QUIT).expect("it runs");
    let status = terminal.script.wait().expect("it ends");
    let by_quit = 128 + Signal::QUIT.as_raw();
    assert_eq!(status.code(), Some(by_quit), "{:?}", status.signal());
}

/// The terminal sends it to both, so that `isotherm` must not send it again.
#[test]
fn an_interrupt_from_the_terminal_reaches_the_program_once() {
    if has_no_script() {
        return isotherm_skip::skip!("there is no script(1) to make a terminal");
    }
    let directory = built(PROGRAM);
    let mut terminal = OnTerminal::start(&directory, RECORD);
    // Two that arrive at once can be one for the program, so that a single one shows little.
    let times = 20;
    for count in 1..=times {
        terminal.interrupt();
        terminal.wait_for(count, &directory);
    }
    assert_eq!(terminal.end(&directory), times);
}
