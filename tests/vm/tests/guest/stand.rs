//! The host's part: one guest at a time, booted when its first test runs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use isotherm_vm::archive::Archive;
use isotherm_vm::guest::Guest;
use isotherm_vm::kit::Kit;
use isotherm_vm::payload::PROGRAMS;
use isotherm_vm::topology;
use libtest_mimic::{Completion, Failed};

/// The option that makes this program the test.
pub(crate) const IN_GUEST: &str = "--in-guest";
/// Exit status of a test that proves nothing where it ran, as in `tests/hostile`.
pub(crate) const SKIPPED: u8 = 77;

/// Name of this program in the guest.
const TESTS: &str = "guest-tests";
/// Time limit of a test, by the guest's clock. A test takes seconds, and ten times as long on a host that
/// compiles on every processor.
const TEST_AT_MOST: Duration = Duration::from_secs(300);

/// Boots guests and keeps the current one.
pub(crate) struct Stand {
    /// The kit to boot with, or why there is none.
    kit: Result<Kit, String>,
    guest: Option<(&'static str, Guest)>,
    /// The files of every guest, once they were put together.
    payload: Option<Archive>,
}

impl Stand {
    /// The stand of this run of the tests. Prints what it boots, or why it cannot.
    pub(crate) fn shared() -> Arc<Mutex<Self>> {
        let kit = kit();
        match &kit {
            Ok(kit) => eprintln!(
                "virtual machines: {}, emulated in software",
                kit.description()
            ),
            Err(reason) => eprintln!("virtual machines: every test is skipped: {reason:#}"),
        }
        Arc::new(Mutex::new(Self {
            kit: kit.map_err(|error| format!("{error:#}")),
            guest: None,
            payload: None,
        }))
    }

    /// The guest of a topology: the running one, or a new one that replaces it.
    fn guest(&mut self, topology: &'static str, kit: &Kit) -> Result<&mut Guest> {
        if self
            .guest
            .as_ref()
            .is_none_or(|(name, _)| *name != topology)
        {
            // The old one's memory is released before the new one takes its own.
            self.guest = None;
            let file = topology::folder().join(format!("{topology}.toml"));
            let payload = match &self.payload {
                Some(payload) => payload.clone(),
                None => self.payload.insert(payload()?).clone(),
            };
            // An emulated machine stops in its kernel now and then, and its boot is not what is tested.
            let guest = Guest::boot(kit, &file, payload.clone()).or_else(|error| {
                eprintln!("virtual machines: {topology} is booted again: {error:#}");
                Guest::boot(kit, &file, payload)
            })?;
            self.guest = Some((topology, guest));
        }
        let (_, guest) = self.guest.as_mut().context("the guest was just booted")?;
        Ok(guest)
    }
}

/// The emulator and kernel to use.
///
/// # Errors
/// Why none can be used here; the tests are skipped for this reason.
pub(crate) fn kit() -> Result<Kit> {
    let wanted = std::env::var("ISOTHERM_VM_KIT").ok();
    let kit = Kit::find(&isotherm_vm::kits(), wanted.as_deref())?;
    kit.check()?;
    Ok(kit)
}

/// Runs a test on a topology and returns its result.
pub(crate) fn run(
    stand: &Mutex<Stand>,
    topology: &'static str,
    test: &str,
) -> Result<Completion, Failed> {
    let mut stand = stand.lock().unwrap_or_else(PoisonError::into_inner);
    let kit = match &stand.kit {
        Ok(kit) => kit.clone(),
        Err(reason) => return Ok(skipped(test, reason)),
    };
    let words = [&format!("{PROGRAMS}/{TESTS}"), IN_GUEST, test];
    let ended = stand
        .guest(topology, &kit)
        .and_then(|guest| guest.run(&words, TEST_AT_MOST));
    match ended {
        Ok(ended) if ended.status == 0 => Ok(Completion::Completed),
        Ok(ended) if ended.status == i32::from(SKIPPED) => Ok(skipped(test, &ended.text())),
        Ok(ended) => Err(format!("exit status {}\n{}", ended.status, ended.text()).into()),
        Err(error) => {
            // A fault of this guest must not affect the next test.
            stand.guest = None;
            Err(format!("{error:#}").into())
        }
    }
}

/// A skipped test, recorded for the comparison with the allowed list.
fn skipped(test: &str, reason: &str) -> Completion {
    isotherm_skip::record("vm", test, reason);
    Completion::ignored_with(reason)
}

/// This program, Isotherm, the proof of moving memory, and a program to run under Isotherm.
fn payload() -> Result<Archive> {
    let tests = std::env::current_exe().context("a test has a path")?;
    let mut payload = Archive::default();
    payload.program(&tests, TESTS)?;
    for name in ["isotherm", "libisotherm.so", "movement"] {
        let built = built(&tests, name);
        ensure!(
            built.exists(),
            "{} was not built; before these tests: cargo build --workspace (with --release for a release test)",
            built.display()
        );
        payload.program(&built, name)?;
    }
    for name in [
        "hot-and-cold",
        "two-hot-sets",
        "static-arrays",
        "named-objects",
        "few-hot-pages",
    ] {
        payload.program(&compiled(name)?, name)?;
    }
    Ok(payload)
}

/// `cargo build` puts its programs two folders above a test.
fn built(tests: &Path, name: &str) -> PathBuf {
    let folder = tests.parent().and_then(Path::parent);
    folder.unwrap_or(Path::new(".")).join(name)
}

/// Builds a C program that the guests profile and place.
fn compiled(name: &str) -> Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("guest/{name}.c"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let compiler = Command::new("cc")
        .args(["-O1", "-g", "-Wall"])
        .arg("-I")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../include"))
        .arg("-o")
        .arg(&program)
        .arg(&source)
        .output()
        .context("cannot run cc, which builds the program that is placed")?;
    ensure!(
        compiler.status.success(),
        "{} is not built: {}",
        source.display(),
        String::from_utf8_lossy(&compiler.stderr)
    );
    Ok(program)
}
