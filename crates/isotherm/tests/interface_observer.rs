//! Tests a program whose observer is killed: its requests are answered with `ISOTHERM_NO_OBSERVER`, and it runs on.
//!
//! `libisotherm.so` must lie beside the program (`cargo build --workspace` puts it there), and a C compiler on the `PATH`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use isotherm_abi::interface::InterfaceStatus;

/// Says when it is served, asks until its observer is gone, and prints the status of this request and of the next.
const SOURCE: &str = r#"#include <isotherm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int (*asked)(void);
static int optimize(void) { return isotherm_optimize(NULL, NULL); }
int main(int count, char **words) {
    int status;
    char *data = isotherm_alloc("data", 1 << 20);
    setvbuf(stdout, NULL, _IOLBF, 0);
    memset(data, 1, 1 << 20);
    asked = !strcmp(words[count - 1], "optimize") ? optimize : isotherm_profile_start;
    /* On a loaded machine the observer may find the program late. */
    for (int i = 0; (status = isotherm_profile_start()) == ISOTHERM_NO_OBSERVER && i < 60000; i++)
        usleep(1000);
    printf("%d\n", status);
    do {
        usleep(1000);
        status = asked();
    } while (status == ISOTHERM_OK || status == ISOTHERM_NO_SAMPLES);
    printf("%d\n", status);
    status = asked();
    printf("%d\n", status);
    for (int i = 0; i < 1 << 20; i++)
        status += data[i] - 1;
    isotherm_free(data);
    printf("%d\n", status);
    return 0;
}
"#;

/// The longest time that a loaded machine may take for an answer; one that never comes is what the tests are about.
const PATIENCE: Duration = Duration::from_secs(120);

/// The program's lines as they come; the channel ends with its output.
fn lines(child: &mut Child) -> Receiver<i64> {
    let output = child.stdout.take().expect("is piped");
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            let line = line.expect("is text");
            let number = line.parse().unwrap_or_else(|_| panic!("{line}"));
            if send.send(number).is_err() {
                return;
            }
        }
    });
    receive
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").args([name, &pid]).status();
    assert!(sent.expect("kill starts").success());
}

/// Kills the observer while the program waits for it: it is stopped first, so that it cannot answer.
fn is_killed(request: &str, is_reaped: bool) {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("app.c"), SOURCE).expect("writes");
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../include");
    let built = Command::new("cc")
        .current_dir(directory.path())
        .args(["-O1", include, "-o", "app", "app.c"])
        .status();
    assert!(built.expect("a C compiler").success());
    let mut observer = Command::new(env!("CARGO_BIN_EXE_isotherm"))
        .current_dir(directory.path())
        .args(["run", "--tiers", "emulated:cxl", "--fast", "8MiB"])
        .args(["--", "./app", request])
        .stdout(Stdio::piped())
        .spawn()
        .expect("isotherm starts");
    let lines = lines(&mut observer);
    let next = || {
        let line = lines.recv_timeout(PATIENCE);
        line.unwrap_or_else(|error| panic!("the program hangs: {error}"))
    };
    let served = next();
    if served == InterfaceStatus::Absent as i64 {
        observer.wait().expect("ends");
        return isotherm_skip::skip!("nothing can be emulated here");
    }
    assert_eq!(served, InterfaceStatus::Ok as i64);
    signal(&observer, "-STOP");
    std::thread::sleep(Duration::from_millis(300));
    signal(&observer, "-KILL");
    if is_reaped {
        observer.wait().expect("ends");
    }
    // The request that waited, and one afterwards.
    for _ in 0..2 {
        assert_eq!(next(), InterfaceStatus::NoObserver as i64);
    }
    assert_eq!(next(), InterfaceStatus::NoObserver as i64, "data was lost");
    if !is_reaped {
        observer.wait().expect("ends");
    }
}

#[test]
fn an_optimization_whose_observer_is_killed_is_answered() {
    is_killed("optimize", true);
}

#[test]
fn a_profile_whose_observer_is_killed_is_answered() {
    is_killed("profile", true);
}

/// A killed process is there until its parent has waited for it.
#[test]
fn an_observer_that_no_parent_has_waited_for_counts_as_gone() {
    is_killed("optimize", false);
}
