//! Says, as a warning or for `isotherm doctor`, whether the runtime can read the Python functions of a program from its interpreter. The
//! version is taken from the file name, which is enough for a warning; the runtime itself uses the version in the interpreter's memory.

use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;

use isotherm_observe::doctor::{FeatureState, available, missing};

use crate::program;

/// Second numbers of the versions 3.x of which the runtime knows the layout (`crates/runtime/src/python/layout.rs`).
const READ: RangeInclusive<u32> = 11..=14;

/// A CPython, by the name of its file: `python3.12`, `python3.14t`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PythonVersion {
    major: u32,
    minor: u32,
    /// Built without the global lock: its records in memory have another layout.
    is_free_threaded: bool,
}

impl PythonVersion {
    /// The version in a file's name without its folder; `None` for other programs, `python3` alone and tools such as `python3.11-config`.
    fn of_name(name: &str) -> Option<Self> {
        let numbers = name.strip_prefix("python")?;
        let plain = numbers.strip_suffix('t').unwrap_or(numbers);
        let (major, minor) = plain.split_once('.')?;
        Some(Self {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
            is_free_threaded: plain != numbers,
        })
    }

    fn is_read(&self) -> bool {
        self.major == 3 && READ.contains(&self.minor) && !self.is_free_threaded
    }
}

impl std::fmt::Display for PythonVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let build = if self.is_free_threaded {
            " without a lock"
        } else {
            ""
        };
        write!(f, "Python {}.{}{build}", self.major, self.minor)
    }
}

/// The version of a program, if it is a CPython.
fn version(program: &OsStr) -> Option<PythonVersion> {
    let path = program::check(program).ok()?.canonicalize().ok()?;
    PythonVersion::of_name(path.file_name()?.to_str()?)
}

fn range() -> String {
    format!("CPython 3.{} to 3.{}", READ.start(), READ.end())
}

/// Why the sites of a program will not name its Python functions; `None` where they will, or where it is no Python.
pub(crate) fn unread(words: &[OsString]) -> Option<String> {
    let version = version(words.first()?).filter(|version| !version.is_read())?;
    Some(format!(
        "the sites of {version} are named by native callers and not by Python's functions, which are read of {}",
        range()
    ))
}

/// What `isotherm doctor` says of Python programs.
pub(crate) fn support() -> FeatureState {
    match version(OsStr::new("python3")) {
        Some(version) if version.is_read() => available(format!(
            "sites of {version} name functions, files and lines"
        )),
        Some(version) => missing(
            format!("sites of {version} name native callers only"),
            format!("{} name functions and lines", range()),
        ),
        None => missing(
            "python3 on the PATH is no CPython's own file",
            format!("name the file of one of {} in the command", range()),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{PythonVersion, unread};
    use std::ffi::OsString;

    #[test]
    fn a_version_is_read_from_the_name_of_an_interpreter_alone() {
        let read = |name| PythonVersion::of_name(name).map(|version| version.is_read());
        for name in ["python3.11", "python3.12", "python3.13", "python3.14"] {
            assert_eq!(read(name), Some(true), "{name}");
        }
        for name in ["python2.7", "python3.10", "python3.15", "python3.14t"] {
            assert_eq!(read(name), Some(false), "{name}");
        }
        let others = ["python3", "python", "pypy3.10", "python3.11-config", "app"];
        for name in others {
            assert_eq!(read(name), None, "{name}");
        }
        let shown = PythonVersion::of_name("python3.14t").map(|version| version.to_string());
        assert_eq!(shown.as_deref(), Some("Python 3.14 without a lock"));
    }

    #[test]
    fn only_an_interpreter_that_is_not_read_is_spoken_of() {
        let directory = tempfile::tempdir().expect("a directory");
        let shell = std::fs::canonicalize("/bin/sh").expect("exists");
        let said = |name: &str| {
            let path = directory.path().join(name);
            std::fs::copy(&shell, &path).expect("copies");
            let link = directory.path().join(format!("{name}-link"));
            std::os::unix::fs::symlink(&path, &link).expect("links");
            unread(&[OsString::from(link), OsString::from("script.py")])
        };
        assert_eq!(said("python3.11"), None);
        assert_eq!(said("app"), None);
        let old = said("python3.9").expect("a sentence");
        assert!(old.contains("Python 3.9") && old.contains("3.11 to 3.14"));
        assert_eq!(unread(&[]), None);
    }
}
