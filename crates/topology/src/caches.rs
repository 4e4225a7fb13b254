//! Reads the cache sizes of processors from sysfs. [`expected`] computes the size that one program can expect of them, for estimates of the
//! accesses that caches serve; `all` adds up the largest caches, beyond which memory is measured.

use std::collections::BTreeSet;
use std::path::Path;

use isotherm_model::units::Bytes;

use crate::cpu_list;
use crate::sysfs::{entries, number, text};

/// Of a shared cache of a virtual machine, this much is expected for each of its processors. The guest sees the whole
/// cache of the host, of whose cores it has a few: a Xeon that listed 260 MiB served 1 to 4 MiB to two processors. Server
/// processors have 1.4 to 4 MiB for each core.
const SHARE_OF_GUEST: u64 = 2 << 20;

/// Level of the caches that processors share.
const SHARED_LEVEL: u64 = 3;

/// Bytes of cache that a program on these processors can expect for itself: the last level below the third of one
/// processor, and of the third level the share of these processors among all that share it, in a virtual
/// machine at most `SHARE_OF_GUEST` for each of them. `None` where the kernel does not report caches, and zero where the
/// processor is emulated: what sysfs lists then serves nothing.
#[must_use]
pub fn expected(root: &Path, cpus: &[u32]) -> Option<Bytes> {
    let info = std::fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default();
    if is_emulated(&info) {
        return Some(Bytes::ZERO);
    }
    let is_guest = is_virtual(&info);
    let of_cpu = |cpu: &u32| {
        let caches = data_caches(root, *cpu);
        let shares = |cache: &&Cache| cache.level >= SHARED_LEVEL;
        let own = caches.iter().filter(|cache| !shares(cache)).max();
        let shared = caches.iter().filter(shares).max();
        let share = shared.map(|cache| {
            let sharers = cache.sharers(*cpu);
            let ours = sharers.iter().filter(|sharer| cpus.contains(sharer));
            let ours = ours.count() as u64;
            let share = cache.bytes / sharers.len() as u64 * ours;
            match is_guest {
                true => share.min(ours * SHARE_OF_GUEST),
                false => share,
            }
        });
        let found = own.or(shared).is_some();
        found.then(|| {
            own.map_or(0, |cache| cache.bytes)
                .saturating_add(share.unwrap_or(0))
        })
    };
    cpus.iter().filter_map(of_cpu).max().map(Bytes)
}

/// Bytes of all largest caches of these processors together, each counted once; zero where the
/// kernel does not report them.
pub(crate) fn all(root: &Path, cpus: &[u32]) -> u64 {
    let largest = |cpu: &u32| data_caches(root, *cpu).into_iter().max();
    let instances: BTreeSet<Cache> = cpus.iter().filter_map(largest).collect();
    instances
        .iter()
        .fold(0, |sum, cache| sum.saturating_add(cache.bytes))
}

/// True where these are the processors of a virtual machine.
fn is_virtual(info: &str) -> bool {
    let mut flags = info.lines().filter(|line| line.starts_with("flags"));
    flags.any(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// True where QEMU translates each instruction instead of having a processor execute it (TCG), by the name of its own models. Where a guest
/// has the name of another processor, there is no sign of it.
fn is_emulated(info: &str) -> bool {
    let mut names = info.lines().filter(|line| line.starts_with("model name"));
    names.any(|line| line.contains("QEMU TCG CPU"))
}

/// A cache; two processors that share one have equal values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cache {
    level: u64,
    bytes: u64,
    shared_by: String,
}

impl Cache {
    /// The processors that share it, of which this is one.
    fn sharers(&self, cpu: u32) -> Vec<u32> {
        let listed = cpu_list::parse(&self.shared_by).unwrap_or_default();
        match listed.contains(&cpu) {
            true => listed,
            false => vec![cpu],
        }
    }
}

/// The caches of a processor that hold data.
fn data_caches(root: &Path, cpu: u32) -> Vec<Cache> {
    let caches = entries(&root.join(format!("sys/devices/system/cpu/cpu{cpu}/cache")));
    let caches = caches.iter().filter_map(|cache| {
        let text = |name| text(&cache.join(name));
        if text("type").is_some_and(|kind| kind == "Instruction") {
            return None;
        }
        Some(Cache {
            level: number(&cache.join("level"))?,
            bytes: size(&text("size")?)?,
            shared_by: text("shared_cpu_list").unwrap_or_else(|| cpu.to_string()),
        })
    });
    caches.collect()
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
    use super::{all, expected, size};
    use isotherm_model::units::Bytes;
    use std::path::Path;

    #[test]
    fn sizes_have_a_unit() {
        assert_eq!(size("32768K"), Some(32 << 20));
        assert_eq!(size("105M"), Some(105 << 20));
        assert_eq!(size("32"), None);
        assert_eq!(size("99999999999999999999M"), None);
    }

    /// Writes caches of a processor: index, level, type, size, and the processors that share it.
    fn write(root: &Path, cpu: u32, caches: &[(u32, u32, &str, &str, &str)]) {
        for (index, level, kind, size, shared) in caches {
            let cache = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
            let cache = root.join(cache);
            std::fs::create_dir_all(&cache).unwrap();
            std::fs::write(cache.join("level"), format!("{level}\n")).unwrap();
            std::fs::write(cache.join("type"), format!("{kind}\n")).unwrap();
            std::fs::write(cache.join("size"), format!("{size}\n")).unwrap();
            std::fs::write(cache.join("shared_cpu_list"), format!("{shared}\n")).unwrap();
        }
    }

    #[test]
    fn a_shared_cache_counts_once() {
        let root = tempfile::tempdir().unwrap();
        for (cpu, shared) in [(0, "0-1"), (1, "0-1"), (2, "2")] {
            let first = (0, 1, "Data", "32K", shared);
            write(root.path(), cpu, &[first, (3, 3, "Unified", "16M", shared)]);
        }
        assert_eq!(all(root.path(), &[0, 1, 2]), 32 << 20);
        assert_eq!(all(root.path(), &[1]), 16 << 20);
        assert_eq!(all(root.path(), &[7]), 0);
    }

    #[test]
    fn a_program_can_expect_its_processors_share_of_what_they_share() {
        let root = tempfile::tempdir().unwrap();
        for cpu in 0..8 {
            let own = cpu.to_string();
            let caches = [
                (0, 1, "Data", "48K", own.as_str()),
                (1, 1, "Instruction", "64M", own.as_str()),
                (2, 2, "Unified", "1024K", own.as_str()),
                (3, 3, "Unified", "32M", "0-7"),
            ];
            write(root.path(), cpu, &caches);
        }
        let expected = |cpus: &[u32]| expected(root.path(), cpus);
        let all: Vec<u32> = (0..8).collect();
        assert_eq!(expected(&all), Some(Bytes(33 << 20)));
        assert_eq!(expected(&[2, 5]), Some(Bytes(9 << 20)));
        assert_eq!(expected(&[9]), None, "no such processor");
        std::fs::create_dir_all(root.path().join("proc")).unwrap();
        let info = "processor : 0\nflags\t: fpu hypervisor lm\n";
        std::fs::write(root.path().join("proc/cpuinfo"), info).unwrap();
        assert_eq!(expected(&all), Some(Bytes(17 << 20)), "2 MiB a processor");
        let info = "processor : 0\nmodel name\t: QEMU TCG CPU version 2.5+\nflags\t: hypervisor\n";
        std::fs::write(root.path().join("proc/cpuinfo"), info).unwrap();
        assert_eq!(expected(&all), Some(Bytes::ZERO), "emulated");
    }

    #[test]
    fn without_a_third_level_the_second_counts() {
        let root = tempfile::tempdir().unwrap();
        write(
            root.path(),
            0,
            &[(0, 1, "Data", "32K", "0"), (2, 2, "Unified", "2M", "0")],
        );
        assert_eq!(expected(root.path(), &[0]), Some(Bytes(2 << 20)));
    }
}
