//! Reads sizes of memory from `/proc/meminfo`, from a node's `meminfo`, which has the same lines after `Node n`, and from other files
//! of `/proc` with such lines. The procfs crate is stricter: it refuses a file without each of the lines that it knows, and has no
//! reader for nodes.

use std::path::Path;

/// Bytes after `MemTotal:`, if the file exists and has them.
#[must_use]
pub fn total_bytes(path: &Path) -> Option<u64> {
    bytes(path, "MemTotal:")
}

/// Bytes that are free or reclaimable (copies of files and kernel caches), if the file exists and
/// reports them. A node's `meminfo` has no `MemAvailable`; this is close to it.
#[must_use]
pub fn available_bytes(path: &Path) -> Option<u64> {
    let names = ["Active(file):", "Inactive(file):", "SReclaimable:"];
    let reclaimable = names.iter().filter_map(|name| bytes(path, name));
    Some(reclaimable.fold(bytes(path, "MemFree:")?, u64::saturating_add))
}

/// Bytes that are free and hold nothing, if the file exists and reports them.
#[must_use]
pub fn free_bytes(path: &Path) -> Option<u64> {
    bytes(path, "MemFree:")
}

/// Bytes of the line that begins with a name, as in `MemFree:`, if the file exists and has it.
#[must_use]
pub fn bytes(path: &Path, name: &str) -> Option<u64> {
    bytes_in(&std::fs::read_to_string(path).ok()?, name)
}

/// As [`bytes`], in the text of such a file.
#[must_use]
pub fn bytes_in(text: &str, name: &str) -> Option<u64> {
    // The name is a whole word: "Active(file):" is also the end of "Inactive(file):".
    let value = |line: &str| {
        let mut words = line
            .split_ascii_whitespace()
            .skip_while(|word| *word != name);
        words.nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
    };
    text.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::{available_bytes, free_bytes, total_bytes};

    #[test]
    fn what_can_be_reclaimed_is_available_and_each_line_counts_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("meminfo");
        let text = "Node 0 MemTotal: 100 kB\nNode 0 MemFree: 10 kB\nNode 0 Active(file): 5 kB\n\
                    Node 0 Inactive(file): 20 kB\nNode 0 SReclaimable: 1 kB\n";
        std::fs::write(&path, text).unwrap();
        assert_eq!(total_bytes(&path), Some(100 << 10));
        assert_eq!(available_bytes(&path), Some(36 << 10));
        assert_eq!(free_bytes(&path), Some(10 << 10));
        std::fs::write(&path, "MemTotal: 18446744073709551615 kB\nMemFree:\n").unwrap();
        assert_eq!((total_bytes(&path), available_bytes(&path)), (None, None));
    }
}
