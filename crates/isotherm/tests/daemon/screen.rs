//! Tests that `isotherm top` leaves the terminal in order, whatever ends it, on the terminal that `script` makes.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{Daemon, directory, wait_for};

/// The control sequences that open a screen of its own, and that restore the former one.
const OPENED: &str = "\x1b[?1049h";
const CLOSED: &str = "\x1b[?1049l";

/// All that `isotherm top` writes until a signal of this name ends it.
fn drawn_until(signal: &str, directory: &Path) -> String {
    let [pid, typescript] = ["pid", "typescript"].map(|name| directory.join(name));
    let _ = std::fs::remove_file(&typescript);
    let (isotherm, socket) = (env!("CARGO_BIN_EXE_isotherm"), directory.join("socket"));
    // The tests may run with these signals ignored, as under `nohup`, and `top` would leave them so.
    let words = format!(
        "echo $$ > {pid:?}; exec env --default-signal={signal} {isotherm} top --socket {socket:?}"
    );
    let mut script = Command::new("script")
        .args(["--quiet", "--flush", "--return", "--command", &words])
        .arg(&typescript)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("script");
    let drawn = || {
        let bytes = std::fs::read(&typescript).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    wait_for("a screen", || drawn().contains(OPENED));
    let pid = std::fs::read_to_string(pid).expect("a number");
    let mut kill = Command::new("kill");
    let killed = kill.args(["-s", signal, pid.trim()]).status();
    assert!(killed.expect("kill").success());
    assert!(!script.wait().expect("script ends").success(), "{signal}");
    drawn()
}

#[test]
fn a_signal_that_ends_top_leaves_the_terminal_in_order() {
    if Command::new("script").arg("--version").output().is_err() {
        return isotherm_skip::skip!("there is no script(1) to make a terminal");
    }
    let directory = directory();
    let mut daemon = Daemon::start(directory.path(), "");
    daemon.wait("epoch", |status| status["epochs"].as_u64() > Some(0));
    for signal in ["TERM", "HUP", "INT"] {
        let drawn = drawn_until(signal, directory.path());
        let closed = drawn.rfind(CLOSED);
        assert!(closed > drawn.rfind(OPENED), "{signal}: {drawn:?}");
    }
}
