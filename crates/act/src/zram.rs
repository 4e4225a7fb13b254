//! [`set_up`] lists the steps that make compressed memory (zram) a swap area, and [`removal`] those that remove such areas (`isotherm tiers
//! --make-compressed`, `--remove-compressed`). [`carry_out`] carries out a set-up, and undoes it if a step fails; [`perform`] carries out
//! one step, such as of a removal.
//!
//! Each step is a command that an administrator would type, and a dry run prints it. No record is kept: the label of the swap area shows
//! that it was made here, and a restart of the machine removes both.
//!
//! `Documentation/admin-guide/blockdev/zram.rst`; `union swap_header` of the kernel's `include/linux/swap.h`.

use std::ffi::{CStr, CString, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use isotherm_model::units::Bytes;
use isotherm_sys::swap;
use isotherm_sys::system_call::Errno;
use isotherm_topology::sysfs::numbered;

use crate::sysfs::{Sysfs, SysfsFiles};

/// Label of an area on a device that was there before, and label of an area on a device that was added for it.
const LABELS: [&str; 2] = ["isotherm", "isotherm-new"];
/// Priority above that of swap on disks, whose priorities are negative by default.
const PRIORITY: u8 = 100;
/// Further calls of `swapoff` after one that found no room in memory, and the time before each.
const SWAP_OFF_AGAIN: u32 = 5;
const SWAP_OFF_AFTER: Duration = Duration::from_millis(100);

/// A step of the set-up, as an administrator would type it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupStep {
    /// Writes a word to a file of the kernel.
    Write {
        /// The file, from the root.
        file: PathBuf,
        /// The word.
        word: String,
    },
    /// Adds a zram device, which must get this number.
    Add(u32),
    /// Runs a program of util-linux.
    Run(Vec<String>),
    /// Uses an area as swap, by `swapon(2)`.
    SwapOn(String),
    /// Ends the use of an area, by `swapoff(2)`.
    SwapOff(String),
}

impl fmt::Display for SetupStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write { file, word } => write!(f, "echo {word} > /{}", file.display()),
            Self::Add(number) => write!(f, "cat /{HOT_ADD}    # adds /dev/zram{number}"),
            Self::Run(words) => f.write_str(&words.join(" ")),
            Self::SwapOn(device) => write!(f, "swapon -p {PRIORITY} {device}"),
            Self::SwapOff(device) => write!(f, "swapoff {device}"),
        }
    }
}

/// The reason why compressed memory could not be set up or removed.
#[derive(Debug, thiserror::Error)]
pub enum ZramError {
    /// The kernel has no zram.
    #[error("this kernel has no zram; `modprobe zram` loads it where it is a module (CONFIG_ZRAM)")]
    Absent,
    /// The kernel does not offer this algorithm.
    #[error("the kernel's zram has no algorithm \"{0}\"; it has {1}")]
    Algorithm(String, String),
    /// There is no area of ours.
    #[error(
        "there is no compressed memory that `isotherm tiers --make-compressed` set up, or only root may see it"
    )]
    NotOurs,
    /// A step failed.
    #[error("`{step}` failed: {why}{}", needs(.step, .why))]
    Step {
        /// The step.
        step: SetupStep,
        /// The reason.
        why: io::Error,
    },
    /// A step failed, and an earlier step could not be undone.
    #[error("{failed}; then `{undo}` failed, too: {why}")]
    NotUndone {
        /// The first failure.
        failed: Box<ZramError>,
        /// The step that would have undone one before it.
        undo: SetupStep,
        /// The reason.
        why: io::Error,
    },
}

fn needs(step: &SetupStep, why: &io::Error) -> &'static str {
    match (why.kind(), step) {
        (io::ErrorKind::PermissionDenied, _) => "; only root may set up swap (CAP_SYS_ADMIN)",
        (io::ErrorKind::NotFound, SetupStep::Run(_)) => "; is the package util-linux installed?",
        _ => "",
    }
}

const CLASS: &str = "sys/class/zram-control";
const HOT_ADD: &str = "sys/class/zram-control/hot_add";

/// The steps that make a swap area of this size on a zram device that is free, or on a new one; each with the step that undoes it. Without
/// an algorithm the kernel's default is used.
///
/// # Errors
/// [`ZramError::Absent`], [`ZramError::Algorithm`].
pub fn set_up(
    root: &Path,
    size: Bytes,
    algorithm: Option<&str>,
) -> Result<Vec<(SetupStep, Option<SetupStep>)>, ZramError> {
    let devices = devices(root);
    let is_free = |number: &u32| sysfs_word(root, *number, "disksize").as_deref() == Some("0");
    let free = devices.iter().copied().find(is_free);
    let has_control = root.join(HOT_ADD).exists();
    let (number, label, mut steps) = match free {
        Some(number) => (number, LABELS[0], Vec::new()),
        None if has_control => {
            let number = (0..).find(|number| !devices.contains(number));
            let number = number.unwrap_or_default();
            let remove = write(format!("{CLASS}/hot_remove"), number.to_string());
            (
                number,
                LABELS[1],
                vec![(SetupStep::Add(number), Some(remove))],
            )
        }
        None => return Err(ZramError::Absent),
    };
    if let Some(algorithm) = algorithm {
        check(root, &devices, algorithm)?;
        steps.push((
            write(setting(number, "comp_algorithm"), algorithm.to_owned()),
            None,
        ));
    }
    let device = format!("/dev/zram{number}");
    steps.extend([
        (
            write(setting(number, "disksize"), size.0.to_string()),
            Some(write(setting(number, "reset"), "1".to_owned())),
        ),
        (run(&["mkswap", "-L", label, &device]), None),
        (
            SetupStep::SwapOn(device.clone()),
            Some(SetupStep::SwapOff(device)),
        ),
    ]);
    Ok(steps)
}

/// All devices offer the same algorithms; if there is no device yet, the kernel checks the word later.
fn check(root: &Path, devices: &[u32], algorithm: &str) -> Result<(), ZramError> {
    let Some(offered) = devices
        .first()
        .and_then(|number| sysfs_word(root, *number, "comp_algorithm"))
    else {
        return Ok(());
    };
    // The algorithm in use is in brackets.
    let offered = offered.replace(['[', ']'], "");
    match offered
        .split_ascii_whitespace()
        .any(|word| word == algorithm)
    {
        true => Ok(()),
        false => Err(ZramError::Algorithm(algorithm.to_owned(), offered)),
    }
}

/// The steps that remove each area that [`set_up`] made. `swapoff` brings its pages back to memory, or refuses.
///
/// # Errors
/// [`ZramError::NotOurs`].
pub fn removal(root: &Path) -> Result<Vec<SetupStep>, ZramError> {
    let swaps = std::fs::read_to_string(root.join("proc/swaps")).unwrap_or_default();
    let mut steps = Vec::new();
    for number in devices(root) {
        let device = format!("/dev/zram{number}");
        let Some(label) = label(&root.join(&device[1..])) else {
            continue;
        };
        let in_use = |line: &str| line.split_ascii_whitespace().next() == Some(&device);
        if swaps.lines().any(in_use) {
            steps.push(SetupStep::SwapOff(device));
        }
        steps.push(write(setting(number, "reset"), "1".to_owned()));
        if label == LABELS[1] {
            steps.push(write(format!("{CLASS}/hot_remove"), number.to_string()));
        }
    }
    match steps.is_empty() {
        true => Err(ZramError::NotOurs),
        false => Ok(steps),
    }
}

/// Carries out a set-up; when a step fails, undoes the steps before it, the last one first.
///
/// # Errors
/// The step that failed.
pub fn carry_out(root: &Path, steps: &[(SetupStep, Option<SetupStep>)]) -> Result<(), ZramError> {
    for (index, (step, _)) in steps.iter().enumerate() {
        let Err(failed) = perform(root, step) else {
            continue;
        };
        for undo in steps[..index]
            .iter()
            .rev()
            .filter_map(|(_, undo)| undo.as_ref())
        {
            if let Err(ZramError::Step { step: undo, why }) = perform(root, undo) {
                let failed = Box::new(failed);
                return Err(ZramError::NotUndone { failed, undo, why });
            }
        }
        return Err(failed);
    }
    Ok(())
}

/// Carries out one step.
///
/// # Errors
/// The step that failed, with the reason.
pub fn perform(root: &Path, step: &SetupStep) -> Result<(), ZramError> {
    let done = match step {
        SetupStep::Write { file, word } => SysfsFiles::below(root).write(file, word),
        SetupStep::Add(number) => add(root, *number),
        SetupStep::Run(words) => run_program(words),
        SetupStep::SwapOn(device) => c_path(device).and_then(|it| Ok(swap::on(&it, PRIORITY)?)),
        SetupStep::SwapOff(device) => c_path(device).and_then(|it| swap_off(&it)),
    };
    done.map_err(|why| ZramError::Step {
        step: step.clone(),
        why,
    })
}

/// A control group whose limit is low for a moment has no room for the pages; a later call brings them back.
fn swap_off(area: &CStr) -> io::Result<()> {
    for _ in 0..SWAP_OFF_AGAIN {
        match swap::off(area) {
            Err(Errno::NOMEM | Errno::INTR) => std::thread::sleep(SWAP_OFF_AFTER),
            done => return Ok(done?),
        }
    }
    Ok(swap::off(area)?)
}

fn add(root: &Path, wanted: u32) -> io::Result<()> {
    let mut sysfs = SysfsFiles::below(root);
    let number: u32 = sysfs
        .read(Path::new(HOT_ADD))?
        .parse()
        .map_err(io::Error::other)?;
    if number == wanted {
        return Ok(());
    }
    sysfs.write(&Path::new(CLASS).join("hot_remove"), &number.to_string())?;
    Err(io::Error::other(format!(
        "the kernel added zram{number}, as another program took zram{wanted} meanwhile; try again"
    )))
}

fn c_path(device: &str) -> io::Result<CString> {
    CString::new(device).map_err(io::Error::other)
}

fn run_program(words: &[String]) -> io::Result<()> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    // A user's `PATH` may lack the directories of an administrator's programs.
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(OsString::from(":/usr/sbin:/sbin"));
    let output = Command::new(program)
        .args(arguments)
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        )),
    }
}

/// Numbers of the zram devices.
fn devices(root: &Path) -> Vec<u32> {
    numbered(&root.join("sys/block"), "zram")
}

fn setting(number: u32, name: &str) -> String {
    format!("sys/block/zram{number}/{name}")
}

fn sysfs_word(root: &Path, number: u32, name: &str) -> Option<String> {
    let file = setting(number, name);
    SysfsFiles::below(root).read(Path::new(&file)).ok()
}

fn write(file: String, word: String) -> SetupStep {
    SetupStep::Write {
        file: PathBuf::from(file),
        word,
    }
}

fn run(words: &[&str]) -> SetupStep {
    SetupStep::Run(words.iter().map(|word| (*word).to_owned()).collect())
}

/// The label of a swap area, if it is one of [`LABELS`].
fn label(device: &Path) -> Option<&'static str> {
    /// Place and size of the volume's name, which follows the boot block, three numbers and the identifier.
    const PLACE: (u64, usize) = (1024 + 3 * 4 + 16, 16);
    let mut file = File::open(device).ok()?;
    file.seek(SeekFrom::Start(PLACE.0)).ok()?;
    let mut name = [0; PLACE.1];
    file.read_exact(&mut name).ok()?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(PLACE.1);
    LABELS
        .into_iter()
        .find(|label| label.as_bytes() == &name[..end])
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use isotherm_model::units::Bytes;
    use tempfile::TempDir;

    use super::{SetupStep, ZramError, carry_out, removal, set_up, write};

    const SIZE: Bytes = Bytes(1 << 30);

    /// A machine with these zram devices, each with its size.
    fn machine(devices: &[(u32, &str)], has_control: bool) -> TempDir {
        let root = tempfile::tempdir().unwrap();
        for (number, size) in devices {
            let device = root.path().join(format!("sys/block/zram{number}"));
            fs::create_dir_all(&device).unwrap();
            for (name, text) in [
                ("disksize", *size),
                ("reset", ""),
                ("comp_algorithm", "[lzo] lz4"),
            ] {
                fs::write(device.join(name), text).unwrap();
            }
        }
        if has_control {
            let class = root.path().join("sys/class/zram-control");
            fs::create_dir_all(&class).unwrap();
            fs::write(class.join("hot_add"), "7\n").unwrap();
            fs::write(class.join("hot_remove"), "").unwrap();
        }
        root
    }

    fn words(root: &Path, algorithm: Option<&str>) -> Vec<String> {
        let steps = set_up(root, SIZE, algorithm).unwrap();
        steps.iter().map(|(step, _)| step.to_string()).collect()
    }

    #[test]
    fn a_free_device_is_used_and_else_a_new_one() {
        let free = machine(&[(0, "4096\n"), (1, "0\n")], true);
        assert_eq!(
            words(free.path(), Some("lz4")),
            [
                "echo lz4 > /sys/block/zram1/comp_algorithm",
                "echo 1073741824 > /sys/block/zram1/disksize",
                "mkswap -L isotherm /dev/zram1",
                "swapon -p 100 /dev/zram1",
            ]
        );
        let unknown = set_up(free.path(), SIZE, Some("lz"))
            .unwrap_err()
            .to_string();
        assert!(
            unknown.ends_with("no algorithm \"lz\"; it has lzo lz4"),
            "{unknown}"
        );
        let taken = machine(&[(0, "4096\n")], true);
        let steps = words(taken.path(), None);
        assert!(
            steps[0].contains("hot_add    # adds /dev/zram1"),
            "{steps:?}"
        );
        assert_eq!(steps[2], "mkswap -L isotherm-new /dev/zram1");
        let none = machine(&[(0, "4096\n")], false);
        assert!(matches!(
            set_up(none.path(), SIZE, None),
            Err(ZramError::Absent)
        ));
    }

    #[test]
    fn a_step_that_fails_undoes_those_before_it() {
        let root = machine(&[(0, "0\n")], false);
        let text = |name: &str| fs::read_to_string(root.path().join("sys/block/zram0").join(name));
        let steps = [
            (
                write("sys/block/zram0/disksize".into(), "4096".into()),
                Some(write("sys/block/zram0/reset".into(), "1".into())),
            ),
            (SetupStep::Run(vec!["false".into()]), None),
            (
                write("sys/block/zram0/comp_algorithm".into(), "lz4".into()),
                None,
            ),
        ];
        let error = carry_out(root.path(), &steps).unwrap_err();
        assert!(error.to_string().starts_with("`false` failed"), "{error}");
        assert_eq!(text("reset").unwrap(), "1");
        assert_eq!(
            text("comp_algorithm").unwrap(),
            "[lzo] lz4",
            "never reached"
        );
        let absent = [(write("sys/block/zram9/reset".into(), "1".into()), None)];
        assert!(carry_out(root.path(), &absent).is_err());
        assert!(
            !root.path().join("sys/block/zram9").exists(),
            "no file is made"
        );
    }

    #[test]
    fn a_device_with_another_number_is_removed_again() {
        let root = machine(&[(0, "4096\n")], true);
        let steps = set_up(root.path(), SIZE, None).unwrap();
        let error = carry_out(root.path(), &steps).unwrap_err().to_string();
        assert!(
            error.contains("added zram7") && error.contains("try again"),
            "{error}"
        );
        let removed = root.path().join("sys/class/zram-control/hot_remove");
        assert_eq!(fs::read_to_string(removed).unwrap(), "7");
    }

    #[test]
    fn only_areas_with_our_label_are_removed() {
        let root = machine(&[(0, "4096\n"), (1, "4096\n"), (2, "4096\n")], true);
        assert!(matches!(removal(root.path()), Err(ZramError::NotOurs)));
        fs::create_dir_all(root.path().join("dev")).unwrap();
        fs::create_dir_all(root.path().join("proc")).unwrap();
        for (number, label) in [(0, "isotherm"), (1, "somebody"), (2, "isotherm-new")] {
            let mut header = vec![0; 4096];
            header[1052..1052 + label.len()].copy_from_slice(label.as_bytes());
            fs::write(root.path().join(format!("dev/zram{number}")), header).unwrap();
        }
        fs::write(
            root.path().join("proc/swaps"),
            "Filename\n/dev/zram0 partition 4 0 100\n",
        )
        .unwrap();
        let steps = removal(root.path()).unwrap();
        let steps: Vec<String> = steps.iter().map(ToString::to_string).collect();
        assert_eq!(
            steps,
            [
                "swapoff /dev/zram0",
                "echo 1 > /sys/block/zram0/reset",
                "echo 1 > /sys/block/zram2/reset",
                "echo 2 > /sys/class/zram-control/hot_remove",
            ]
        );
    }
}
