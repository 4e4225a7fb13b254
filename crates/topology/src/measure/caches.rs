//! Cache sizes of processors, which give the size of the measured memory.

use std::collections::BTreeSet;
use std::path::Path;

/// Bytes of all largest caches of these processors together, each counted once; zero where the
/// kernel does not report them.
pub(super) fn all(root: &Path, cpus: &[u32]) -> u64 {
    let instances: BTreeSet<Cache> = cpus.iter().filter_map(|cpu| largest(root, *cpu)).collect();
    instances
        .iter()
        .fold(0, |sum, cache| sum.saturating_add(cache.bytes))
}

/// A cache; two processors that share one have equal values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cache {
    level: u64,
    bytes: u64,
    shared_by: String,
}

/// The cache of the highest level of a processor.
fn largest(root: &Path, cpu: u32) -> Option<Cache> {
    let directory = root.join(format!("sys/devices/system/cpu/cpu{cpu}/cache"));
    let entries = std::fs::read_dir(directory).ok()?.flatten();
    let caches = entries.filter_map(|entry| {
        let text = |name| std::fs::read_to_string(entry.path().join(name)).ok();
        Some(Cache {
            level: text("level")?.trim().parse().ok()?,
            bytes: size(text("size")?.trim())?,
            shared_by: text("shared_cpu_list").unwrap_or_else(|| cpu.to_string()),
        })
    });
    caches.max()
}

/// Parses `32768K` or `32M`.
fn size(text: &str) -> Option<u64> {
    let (number, factor) = match text.strip_suffix('K') {
        Some(number) => (number, 1 << 10),
        None => (text.strip_suffix('M')?, 1 << 20),
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::{all, size};

    #[test]
    fn sizes_have_a_unit() {
        assert_eq!(size("32768K"), Some(32 << 20));
        assert_eq!(size("105M"), Some(105 << 20));
        assert_eq!(size("32"), None);
        assert_eq!(size("99999999999999999999M"), None);
    }

    #[test]
    fn a_shared_cache_counts_once() {
        let root = tempfile::tempdir().unwrap();
        for (cpu, shared) in [(0, "0-1"), (1, "0-1"), (2, "2")] {
            for (index, level, size) in [(0, 1, "32K"), (3, 3, "16M")] {
                let cache = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
                let cache = root.path().join(cache);
                std::fs::create_dir_all(&cache).unwrap();
                std::fs::write(cache.join("level"), format!("{level}\n")).unwrap();
                std::fs::write(cache.join("size"), format!("{size}\n")).unwrap();
                std::fs::write(cache.join("shared_cpu_list"), format!("{shared}\n")).unwrap();
            }
        }
        assert_eq!(all(root.path(), &[0, 1, 2]), 32 << 20);
        assert_eq!(all(root.path(), &[1]), 16 << 20);
        assert_eq!(all(root.path(), &[7]), 0);
    }
}
