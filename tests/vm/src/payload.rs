//! Adds programs to the archive of a guest, with the shared libraries that they need, at the places where their loader searches for them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::archive::Archive;

/// Directory of the kernel's modules in the guest.
pub const MODULES: &str = "/isotherm/modules";
/// Folder of the programs in a guest; it is first on the guests' search path.
pub const PROGRAMS: &str = "/isotherm/bin";
/// File with the topology inside the guest.
pub const TOPOLOGY: &str = "/isotherm/topology.toml";

impl Archive {
    /// Adds a program or library of this machine under [`PROGRAMS`], without its debug information
    /// and with every shared library that the loader finds for it.
    ///
    /// # Errors
    /// It cannot be read, or one of its libraries is missing on this machine.
    pub fn program(&mut self, path: &Path, name: &str) -> Result<()> {
        self.file(&format!("{PROGRAMS}/{name}"), &stripped(path)?);
        for library in libraries(path)? {
            let content = std::fs::read(&library)
                .with_context(|| format!("cannot read {library}, which {name} needs"))?;
            self.file(&library, &content);
        }
        Ok(())
    }
}

/// Removes debug information, which is most of a program, because a guest's memory is small. Without `strip`
/// the program is used unchanged.
fn stripped(path: &Path) -> Result<Vec<u8>> {
    let output = tempfile::NamedTempFile::new().context("cannot make a temporary file")?;
    let strip = Command::new("strip")
        .args(["--strip-debug", "-o"])
        .arg(output.path())
        .arg(path)
        .output();
    let source = match strip {
        Ok(strip) if strip.status.success() => output.path(),
        _ => path,
    };
    std::fs::read(source).with_context(|| format!("cannot read {}", path.display()))
}

/// The shared libraries of a program and its loader, as reported by `ldd`; none for a static one.
fn libraries(path: &Path) -> Result<Vec<String>> {
    let output = Command::new("ldd")
        .arg(path)
        .env("LC_ALL", "C")
        .output()
        .context("cannot run ldd, which finds a program's libraries (Debian package libc-bin)")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let missing = text.lines().find(|line| line.ends_with("not found"));
    ensure!(
        missing.is_none(),
        "{} needs a library that is not here:{}",
        path.display(),
        missing.unwrap_or_default()
    );
    Ok(text
        .lines()
        .filter_map(library)
        .map(str::to_owned)
        .collect())
}

/// The path in a line of `ldd`: `libc.so.6 => /lib/libc.so.6 (0x7f..)` or
/// `/lib64/ld-linux-x86-64.so.2 (0x7f..)`.
fn library(line: &str) -> Option<&str> {
    let place = line.split_once(" => ").map_or(line, |(_, place)| place);
    let path = place.split_whitespace().next()?;
    path.starts_with('/').then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_brings_its_loader_and_libraries_to_their_places() {
        let mut archive = Archive::default();
        archive.program(Path::new("/bin/ls"), "ls").unwrap();
        let archive = archive.finished();
        for name in ["isotherm/bin/ls\0", "libc.so.6\0", "ld-linux-x86-64.so.2\0"] {
            let is_there = archive
                .windows(name.len())
                .any(|bytes| bytes == name.as_bytes());
            // The loader has another name on other processors.
            assert!(
                is_there || !cfg!(target_arch = "x86_64"),
                "{name:?} is missing"
            );
        }
    }

    #[test]
    fn lines_of_ldd_are_read() {
        let lines = [
            (
                "\tlibc.so.6 => /lib/libc.so.6 (0x00007f)",
                Some("/lib/libc.so.6"),
            ),
            (
                "\t/lib64/ld-linux-x86-64.so.2 (0x00007f)",
                Some("/lib64/ld-linux-x86-64.so.2"),
            ),
            ("\tlinux-vdso.so.1 (0x00007f)", None),
            ("\tstatically linked", None),
        ];
        for (line, path) in lines {
            assert_eq!(library(line), path, "{line:?}");
        }
    }
}
