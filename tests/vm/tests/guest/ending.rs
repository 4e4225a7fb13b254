//! No guest outlives the program that started it. These tests run on the host.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use libtest_mimic::{Completion, Failed, Trial};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::stand;

/// Time limit for each step; a step takes a second.
const AT_MOST: Duration = Duration::from_secs(120);

type SendSignal = fn(Pid) -> rustix::io::Result<()>;

pub(crate) fn trials() -> Vec<Trial> {
    let ways: [(&str, SendSignal); 2] = [
        ("a_guest_ends_when_its_terminal_is_interrupted", |pid| {
            kill_process_group(pid, Signal::INT)
        }),
        ("a_guest_ends_when_its_driver_is_killed", |pid| {
            kill_process(pid, Signal::KILL)
        }),
    ];
    ways.map(|(name, send)| {
        Trial::ignorable_test(format!("stand::{name}"), move || match stand::kit() {
            Ok(_) => ends_with(send).map(|()| Completion::Completed),
            Err(reason) => Ok(Completion::ignored_with(format!("{reason:#}"))),
        })
    })
    .into()
}

/// Starts a guest, sends its driver the signal, and waits until both have ended.
fn ends_with(send: SendSignal) -> Result<(), Failed> {
    // A shell that starts the tests in the background makes them ignore the interrupt.
    let mut driver = Command::new("env")
        .args(["--default-signal=INT", env!("CARGO_BIN_EXE_isotherm-vm")])
        .args(["run", "two-nodes", "/bin/sleep", "1000"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // As a shell with job control starts it: the interrupt reaches the whole group.
        .process_group(0)
        .spawn()?;
    let group = driver.id();
    let answer = until("the emulator runs", || emulators(group) == 1)
        .and_then(|()| Ok(send(Pid::from_child(&driver))?))
        .and_then(|()| until("the driver ends", || driver_ended(&mut driver)))
        .and_then(|()| until("the emulator ends", || emulators(group) == 0));
    // After a failure, this test leaves no process behind either.
    let _ = kill_process_group(Pid::from_child(&driver), Signal::KILL);
    let _ = driver.wait();
    answer
}

fn driver_ended(driver: &mut Child) -> bool {
    driver.try_wait().is_ok_and(|status| status.is_some())
}

fn until(what: &str, mut holds: impl FnMut() -> bool) -> Result<(), Failed> {
    let deadline = Instant::now() + AT_MOST;
    while !holds() {
        if Instant::now() > deadline {
            return Err(format!("waited {} s until {what}", AT_MOST.as_secs()).into());
        }
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Emulators in a process group, by `/proc/PID/stat`: `PID (NAME) STATE PARENT GROUP ...`.
fn emulators(group: u32) -> usize {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_one = |stat: &String| {
        let (name, rest) = stat.rsplit_once(')').unwrap_or_default();
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let lives = fields.first().is_some_and(|state| *state != "Z");
        name.contains("(qemu-system") && lives && fields.get(2) == Some(&group.to_string().as_str())
    };
    processes
        .filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok())
        .filter(is_one)
        .count()
}
