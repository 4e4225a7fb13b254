//! `memory_room` computes how many paged-out bytes of a process may be brought back before it touches them: the least of what each of its
//! control groups has free below its limit, and the machine has available, each less a reserve. A page that comes back is charged to these
//! groups, and the kernel kills a program of a group that exceeds its limit; on a machine short of memory the page displaces one in use.

use std::path::Path;

use isotherm_model::units::Bytes;
use isotherm_sys::control_group::{limited, lines_of};
use isotherm_topology::meminfo;

/// Memory that stays free below a limit, for allocations of the program while a batch comes back: `RESERVE` bytes, or `1 / RESERVE_PART` of
/// the limit if that is more.
const RESERVE: u64 = 8 << 20;
const RESERVE_PART: u64 = 16;

/// `1 / AVAILABLE_PART` of the machine's memory stays available.
const AVAILABLE_PART: u64 = 32;

/// Bytes that may be brought back to a process of the machine under `root` (`/`) before one of its groups comes near a limit, or the
/// machine runs short of memory.
pub(super) fn memory_room(root: &Path, process: u32) -> Bytes {
    group_room(root, process).min(machine_room(root))
}

/// The room by `/proc/meminfo`; no limit where that does not have the numbers.
fn machine_room(root: &Path) -> Bytes {
    let bytes = |name: &str| meminfo::bytes(&root.join("proc/meminfo"), name);
    match (bytes("MemTotal:"), bytes("MemAvailable:")) {
        (Some(total), Some(available)) => Bytes(available.saturating_sub(total / AVAILABLE_PART)),
        _ => Bytes(u64::MAX),
    }
}

fn group_room(root: &Path, process: u32) -> Bytes {
    let groups = limited(root, &lines_of(root, process)).into_iter();
    let room = groups.map(|group| {
        let reserve = RESERVE.max(group.limit / RESERVE_PART);
        group
            .limit
            .saturating_sub(group.usage)
            .saturating_sub(reserve)
    });
    Bytes(room.min().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use isotherm_model::units::Bytes;

    use super::memory_room;

    const MIB: u64 = 1 << 20;

    /// A process in a group of version 2 with these limits and this use, in MiB.
    fn write(root: &Path, high: Option<u64>, max: u64, current: u64) {
        let group = root.join("sys/fs/cgroup/a");
        std::fs::create_dir_all(root.join("proc/7")).expect("made");
        std::fs::create_dir_all(&group).expect("made");
        std::fs::write(root.join("proc/7/cgroup"), "0::/a\n").expect("written");
        let text = |mebibytes: u64| format!("{}\n", mebibytes * MIB);
        let high = high.map_or("max\n".to_owned(), text);
        let files = [
            ("high", high),
            ("max", text(max)),
            ("current", text(current)),
        ];
        for (name, text) in files {
            std::fs::write(group.join(format!("memory.{name}")), text).expect("written");
        }
    }

    #[test]
    fn a_part_of_the_limit_and_at_least_some_megabytes_stay_free() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        assert_eq!(memory_room(root, 7), Bytes(u64::MAX));
        write(root, None, 1600, 1000);
        assert_eq!(memory_room(root, 7), Bytes(500 * MIB), "100 are reserved");
        write(root, Some(64), 1600, 50);
        assert_eq!(memory_room(root, 7), Bytes(6 * MIB), "8 are reserved");
        write(root, Some(64), 1600, 60);
        assert_eq!(memory_room(root, 7), Bytes::ZERO);
    }

    #[test]
    fn a_part_of_the_machines_memory_stays_available() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        std::fs::create_dir_all(root.join("proc")).expect("made");
        for (available, room) in [(3_000, Bytes(2_000 << 10)), (900, Bytes::ZERO)] {
            let text =
                format!("MemTotal:  32000 kB\nMemFree: 100 kB\nMemAvailable: {available} kB\n");
            std::fs::write(root.join("proc/meminfo"), text).expect("written");
            assert_eq!(memory_room(root, 7), room);
        }
    }
}
