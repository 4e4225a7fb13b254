//! [`instrumentation`] reads from a program's file whether the program counts its own accesses, because `isotherm-cc --profile` compiled it
//! ([`isotherm_abi::accesses`]), and for which version of the runtime. `isotherm record` and `isotherm run` use counts of the current
//! version if no source is named.

use std::path::Path;

use isotherm_abi::accesses::{SECTION, VERSION};
use object::{Object, ObjectSection};

use crate::program_file::in_program;

/// Whether a program counts its accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instrumentation {
    /// It does not count, or is not an ELF file.
    None,
    /// It counts, with functions of the current runtime.
    Current,
    /// It was built for this version of the functions, which the runtime does not provide.
    Other(u32),
}

/// Whether a program or library counts its accesses, and for which version of the runtime.
#[must_use]
pub fn instrumentation(path: &Path) -> Instrumentation {
    // The first word of the section; all others are equal, because different versions do not link.
    let version = in_program(path, |file| {
        let section = file.section_by_name(SECTION)?;
        let word = section.data().ok()?.first_chunk::<4>()?;
        Some(u32::from_le_bytes(*word))
    });
    match version {
        None => Instrumentation::None,
        Some(VERSION) => Instrumentation::Current,
        Some(other) => Instrumentation::Other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::{Instrumentation, instrumentation};
    use std::path::Path;
    use std::process::Command;

    #[test]
    fn only_a_program_with_the_section_counts() {
        let own = std::env::current_exe().expect("a path");
        for path in [
            &own,
            Path::new("/nonexistent"),
            Path::new("/proc/self/environ"),
        ] {
            assert_eq!(instrumentation(path), Instrumentation::None, "{path:?}");
        }
    }

    /// An object file with the section.
    fn built_for(word: u32) -> Instrumentation {
        let directory = tempfile::tempdir().expect("a directory");
        let [source, path] = ["counts.c", "counts.o"].map(|name| directory.path().join(name));
        let section = isotherm_abi::accesses::SECTION;
        let text =
            format!("const unsigned word __attribute__((section(\"{section}\"))) = {word};\n");
        std::fs::write(&source, text).expect("writes");
        let mut compiler = Command::new("cc");
        let status = compiler.arg("-c").arg(source).arg("-o").arg(&path).status();
        assert!(status.expect("a compiler").success());
        instrumentation(&path)
    }

    #[test]
    fn a_program_that_was_built_for_another_version_is_told_apart() {
        let current = isotherm_abi::accesses::VERSION;
        assert_eq!(built_for(current), Instrumentation::Current);
        assert_eq!(built_for(current - 1), Instrumentation::Other(current - 1));
    }
}
