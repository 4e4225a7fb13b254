//! The size of memory in `/proc/meminfo` and in a node's `meminfo`, which has the same lines with
//! `Node n` before them. The procfs crate is stricter: it refuses a file without each of the lines
//! that it knows, and has no reader for nodes.

use std::path::Path;

/// Bytes after `MemTotal:`, if the file is there and has them.
#[must_use]
pub fn total_bytes(path: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.split_once("MemTotal:"))?
        .1;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}
