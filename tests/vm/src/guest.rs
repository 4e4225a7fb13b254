//! [`Guest`] boots a virtual machine, runs commands in it, and ends it.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use tempfile::TempDir;

use crate::archive::Archive;
use crate::kit::Kit;
use crate::payload::{MODULES, PROGRAMS, TOPOLOGY};
use crate::serial::Serial;
use crate::topology::Topology;

/// Boot timeout. A boot takes three seconds, and longer on a host that does a dozen other things.
const BOOT_AT_MOST: Duration = Duration::from_secs(120);
/// Extra time that the host waits for the answer after the guest's own limit for a command.
const ANSWER_AT_MOST: Duration = Duration::from_secs(120);
/// Last lines of the guest's console in an error.
const CONSOLE_LINES: usize = 40;

const INIT: &[u8] = include_bytes!("../guest/init");
const FILL_NODE: &[u8] = include_bytes!("../guest/fill-node");

/// Processor features. Without fast string instructions the kernel clears and copies pages by wide stores,
/// which the emulator executes ten times faster. QEMU 7.2 has an error in `cmpxchg16b`.
const PROCESSOR: &str = "max,-erms,-fsrm,-cx16";
/// Kernel options that keep a guest fast (no self-tests of ciphers, no early waits for a timer) and its pages
/// in place (no balancing by the kernel, no DAMON of its own). Memory that is plugged in can go offline again.
const KERNEL: &str = "console=ttyS0 panic=-1 quiet nokaslr mitigations=off tsc=reliable no_timer_check \
    cryptomgr.notests numa_balancing=disable damon_stat.enabled=0 memhp_default_state=online_movable \
    initcall_blacklist=load_system_certificate_list,bpf_tcp_ca_kfunc_init,bpf_dummy_struct_ops_init,jent_mod_init,sgx_init";

/// The result of a command in the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Exit status; 128 plus the signal's number after a signal, so 137 where the limit was reached.
    pub status: i32,
    /// Its standard output.
    pub output: Vec<u8>,
    /// Its standard error.
    pub errors: Vec<u8>,
}

impl Ended {
    /// Both outputs as text, standard error last.
    #[must_use]
    pub fn text(&self) -> String {
        let all = [self.output.as_slice(), self.errors.as_slice()].concat();
        String::from_utf8_lossy(&all).trim_end().to_owned()
    }
}

/// A virtual machine that takes commands. It ends when it is dropped, and with the thread that booted it.
#[derive(Debug)]
pub struct Guest {
    emulator: Child,
    serial: Serial,
    /// Initial file system and console log.
    folder: TempDir,
}

impl Guest {
    /// Boots a machine with these files, fills its nodes as its topology says, and waits until it
    /// takes commands.
    ///
    /// # Errors
    /// The emulator does not start, or the guest does not come up: the end of its output.
    pub fn boot(kit: &Kit, topology: &Path, payload: Archive) -> Result<Self> {
        let machine = Topology::read(topology)?;
        let folder = prepared(kit, topology, payload)?;
        let errors = File::create(folder.path().join("emulator.log"))
            .context("cannot write the emulator's log")?;
        let mut emulator = command(kit, &machine, folder.path());
        emulator
            .args(["-display", "none", "-serial"])
            .arg(format!(
                "file:{}",
                folder.path().join("console.log").display()
            ))
            .args(["-chardev", "stdio,id=commands,signal=off"])
            .args(["-serial", "chardev:commands", "-append", KERNEL]);
        let mut emulator = emulator
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .context("cannot start the emulator by setpriv (Debian package util-linux)")?;
        let pipes = emulator.stdin.take().zip(emulator.stdout.take());
        let (input, output) = pipes.context("the emulator has no pipes")?;
        let mut guest = Self {
            emulator,
            serial: Serial::new(input, output),
            folder,
        };
        let first = guest.serial.line(Instant::now() + BOOT_AT_MOST);
        match first {
            Ok(line) if line == "ready" => {}
            Ok(line) => bail!("the guest came up with \"{line}\" instead of \"ready\""),
            Err(error) => return Err(guest.explained(error.context("the guest did not come up"))),
        }
        // The archive is in the guest's memory now. If the tests are interrupted, only logs are left behind.
        let _ = std::fs::remove_file(guest.folder.path().join("initrd"));
        guest.fill(&machine)?;
        Ok(guest)
    }

    fn fill(&mut self, machine: &Topology) -> Result<()> {
        for (number, node) in machine.node.iter().enumerate() {
            let Some(free) = node.left_free else {
                continue;
            };
            let (number, kib) = (number.to_string(), (free.0 >> 10).to_string());
            let ended = self.run(&["fill-node", &number, &kib], BOOT_AT_MOST)?;
            ensure!(
                ended.status == 0,
                "node {number} was not filled: {}",
                ended.text()
            );
        }
        Ok(())
    }

    /// Runs a command to its end. After `limit`, measured by the guest's clock, it is killed.
    ///
    /// # Errors
    /// The guest died of it or does not answer: the end of its output. The guest cannot be used any more.
    pub fn run(&mut self, words: &[&str], limit: Duration) -> Result<Ended> {
        let line = shell_line(words)?;
        let seconds = limit.as_secs().max(1);
        let deadline = Instant::now() + limit + ANSWER_AT_MOST;
        let answer = self
            .serial
            .send(&format!("{seconds} {line}"))
            .and_then(|()| self.answer(deadline));
        answer.map_err(|error| self.explained(error))
    }

    fn answer(&mut self, deadline: Instant) -> Result<Ended> {
        let line = self.serial.line(deadline)?;
        let numbers: Vec<usize> = line
            .strip_prefix("ended ")
            .and_then(|numbers| {
                numbers
                    .split(' ')
                    .map(|number| number.parse().ok())
                    .collect()
            })
            .unwrap_or_default();
        let [status, output, errors] = numbers[..] else {
            bail!("the guest answered \"{line}\" instead of how the command ended");
        };
        Ok(Ended {
            status: i32::try_from(status).unwrap_or(i32::MAX),
            output: self.serial.bytes(output, deadline)?,
            errors: self.serial.bytes(errors, deadline)?,
        })
    }

    /// The error, with the end of the output of the guest and of the emulator.
    fn explained(&mut self, error: anyhow::Error) -> anyhow::Error {
        let mut last_words = String::new();
        for name in ["console.log", "emulator.log"] {
            let log = std::fs::read(self.folder.path().join(name)).unwrap_or_default();
            let text = String::from_utf8_lossy(&log);
            let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
            let end = &lines[lines.len().saturating_sub(CONSOLE_LINES)..];
            last_words += &end
                .iter()
                .map(|line| format!("\n  | {line}"))
                .collect::<String>();
        }
        if last_words.is_empty() {
            return error;
        }
        anyhow!("{error:#}; the end of its output:{last_words}")
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // Its disk is memory: there is nothing to save. An error means that it ended already.
        let _ = self.emulator.kill();
        let _ = self.emulator.wait();
    }
}

/// Runs a shell on the guest's console, on this terminal, until it ends.
///
/// # Errors
/// The emulator does not start or fails.
pub fn shell(kit: &Kit, topology: &Path, payload: Archive) -> Result<()> {
    let machine = Topology::read(topology)?;
    let folder = prepared(kit, topology, payload)?;
    let status = command(kit, &machine, folder.path())
        .args(["-display", "none", "-serial", "mon:stdio", "-append"])
        .arg(format!("{KERNEL} isotherm.shell"))
        .status()
        .context("cannot start the emulator by setpriv (Debian package util-linux)")?;
    ensure!(status.success(), "the emulator failed: {status}");
    Ok(())
}

/// A temporary folder with the guest's initial file system in it.
fn prepared(kit: &Kit, topology: &Path, mut payload: Archive) -> Result<TempDir> {
    let description = std::fs::read(topology)
        .with_context(|| format!("cannot read the topology {}", topology.display()))?;
    payload.file(TOPOLOGY, &description);
    payload.file("/bin/busybox", &kit.busybox()?);
    for (name, module) in kit.modules()? {
        payload.file(&format!("{MODULES}/{name}"), &module);
    }
    payload.file("/init", INIT);
    payload.file(&format!("{PROGRAMS}/fill-node"), FILL_NODE);
    payload.link("/bin/sh", "busybox");
    let folder = tempfile::Builder::new()
        .prefix("isotherm-vm-")
        .tempdir()
        .context("cannot make a folder for the guest's files")?;
    std::fs::write(folder.path().join("initrd"), payload.finished())
        .context("cannot write the guest's initial file system")?;
    Ok(folder)
}

/// The emulator with everything except its consoles. `setpriv` makes the kernel end it with the thread that
/// starts it, however that one ends, so that no guest is left behind.
fn command(kit: &Kit, machine: &Topology, folder: &Path) -> Command {
    let (places, libraries) = kit.places();
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL", "--", "env"])
        .arg(format!("LD_LIBRARY_PATH={libraries}"))
        .arg(kit.emulator())
        .args(places)
        .args(["-accel", "tcg,thread=multi", "-cpu", PROCESSOR])
        .args(machine.arguments(!kit.has_several_processors()))
        .args(["-nodefaults", "-no-user-config", "-no-reboot", "-kernel"])
        .arg(kit.kernel())
        .arg("-initrd")
        .arg(folder.join("initrd"));
    command
}

/// The words as a line that the guest's shell reads back as the same words.
fn shell_line(words: &[&str]) -> Result<String> {
    let has_line_end = words.iter().any(|word| word.contains(['\n', '\0']));
    ensure!(
        !has_line_end,
        "a command for a guest is one line: {words:?}"
    );
    let quoted = words
        .iter()
        .map(|word| format!("'{}'", word.replace('\'', r"'\''")));
    Ok(quoted.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_the_guest_as_they_are() {
        let words = ["printf", "%s|", "a b", "it's", "$HOME", "", "\\"];
        let line = shell_line(&words).unwrap();
        let output = Command::new("sh").args(["-c", &line]).output().unwrap();
        assert_eq!(output.stdout, b"a b|it's|$HOME||\\|");
        assert!(shell_line(&["two\nlines"]).is_err());
    }
}
