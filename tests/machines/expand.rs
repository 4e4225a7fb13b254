//! Recorded machines: makes a directory from a text that lists a machine's files under `/proc` and `/sys`.
//!
//! ```text
//! # a remark
//! sys/devices/system/node/node0/
//!   cpulist: 0-15
//!   meminfo:
//!     Node 0 MemTotal:       67108864 kB
//!     Node 0 MemFree:        33554432 kB
//!   access1/initiators/node0 -> sys/devices/system/node/node0
//! ```
//!
//! A line without indentation is the directory of the following lines; with two blanks a file and its one line,
//! or a link and its target from the machine's root; with four, a line of the file above.

use std::io;
use std::path::{Component, Path, PathBuf};

/// Makes the files of a machine under `root`.
///
/// # Errors
/// A line that is none of the above, a path outside the machine, or an error of the file system.
pub(crate) fn expand(text: &str, root: &Path) -> io::Result<()> {
    let mut directory = PathBuf::new();
    let mut file: Option<(PathBuf, String)> = None;
    for line in text.lines() {
        if let Some(more) = line.strip_prefix("    ") {
            let (_, content) = file.as_mut().ok_or_else(|| wrong(line))?;
            content.push_str(more);
            content.push('\n');
            continue;
        }
        write(root, file.take())?;
        let entry = line.strip_prefix("  ");
        if let Some((name, target)) = entry.and_then(|entry| entry.split_once(" -> ")) {
            link(root, &directory.join(inner(name)?), &inner(target)?)?;
        } else if let Some(entry) = entry {
            let (name, value) = entry.split_once(':').ok_or_else(|| wrong(line))?;
            let content = match (value.trim(), value.is_empty()) {
                ("", true) => String::new(),
                (value, _) => format!("{value}\n"),
            };
            file = Some((directory.join(inner(name)?), content));
        } else if let Some(path) = line.strip_suffix('/') {
            directory = inner(path)?;
        } else if !line.is_empty() && !line.starts_with('#') {
            return Err(wrong(line));
        }
    }
    write(root, file)
}

fn wrong(line: &str) -> io::Error {
    io::Error::other(format!("a machine has no such line: {line}"))
}

/// A path that stays inside the machine.
fn inner(path: &str) -> io::Result<PathBuf> {
    let stays = Path::new(path)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    match stays && !path.is_empty() {
        true => Ok(PathBuf::from(path)),
        false => Err(wrong(path)),
    }
}

fn write(root: &Path, file: Option<(PathBuf, String)>) -> io::Result<()> {
    let Some((path, content)) = file else {
        return Ok(());
    };
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap_or(root))?;
    std::fs::write(path, content)
}

/// A relative link, as those of sysfs are.
fn link(root: &Path, path: &Path, target: &Path) -> io::Result<()> {
    let up = path.components().skip(1).map(|_| "..");
    let target: PathBuf = up.collect::<PathBuf>().join(target);
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap_or(root))?;
    std::os::unix::fs::symlink(target, path)
}
