//! The room that swap has for further pages.
//!
//! ```text
//! /proc/swaps                   /dev/zram0 partition 262140 1024 100     KiB: the size of the area, and what it holds
//! /sys/block/zram0/mm_stat      4096 1900 2048 8192 ...                  bytes: third, the memory that it takes; fourth, its limit, or 0
//! ```
//!
//! A zram device that has reached its limit refuses each further page. The kernel keeps such a page in memory, but by the page table it is
//! out: so the limit must be looked up before pages leave.
//!
//! `Documentation/admin-guide/blockdev/zram.rst`.

use std::path::Path;

/// What a device with a limit keeps free, at most: further sizes of compressed pages take groups of pages of their own. Of a small limit an
/// eighth.
const RESERVE: u64 = 1 << 20;
const RESERVE_PART: u64 = 8;

/// Bytes of pages that all areas of the machine under `root` (`/`) have room for, even if none of them can be compressed; 0 without an area.
#[must_use]
pub fn swap_room(root: &Path) -> u64 {
    let areas = std::fs::read_to_string(root.join("proc/swaps")).unwrap_or_default();
    // The first line names the columns.
    let rooms = areas.lines().skip(1).filter_map(|line| area(root, line));
    rooms.fold(0, u64::saturating_add)
}

/// The room of one line of `/proc/swaps`; `None` where it is none.
fn area(root: &Path, line: &str) -> Option<u64> {
    let columns: Vec<&str> = line.split_ascii_whitespace().collect();
    let [path, _kind, size, used, ..] = columns[..] else {
        return None;
    };
    let kibibytes = |word: &str| word.parse::<u64>().ok();
    let free = kibibytes(size)?
        .saturating_sub(kibibytes(used)?)
        .saturating_mul(1024);
    let zram = path
        .strip_prefix("/dev/")
        .filter(|name| name.starts_with("zram"));
    let most = zram.and_then(|name| below_limit(&root.join("sys/block").join(name)));
    Some(most.map_or(free, |most| free.min(most)))
}

/// Bytes that a zram device may yet take; `None` without a limit.
fn below_limit(device: &Path) -> Option<u64> {
    let sizes = std::fs::read_to_string(device.join("mm_stat")).ok()?;
    let mut sizes = sizes.split_ascii_whitespace().skip(2);
    let mut size = || sizes.next()?.parse::<u64>().ok();
    let (taken, limit) = (size()?, size()?);
    let reserve = RESERVE.min(limit / RESERVE_PART);
    (limit > 0).then(|| limit.saturating_sub(taken).saturating_sub(reserve))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::swap_room;

    const MIB: u64 = 1 << 20;

    fn room(swaps: &str, mm_stat: &str) -> u64 {
        let root = tempfile::tempdir().expect("a directory");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        let heading = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
        write("proc/swaps", &format!("{heading}{swaps}"));
        write("sys/block/zram1/mm_stat", mm_stat);
        swap_room(root.path())
    }

    #[test]
    fn all_areas_together_have_what_they_do_not_hold() {
        let swaps =
            "/dev/zram1 partition 65536 1024 100\n/swap\\040file file 2048 0 -2\nnonsense\n";
        assert_eq!(room(swaps, "0 0 0 0 0 0 0 0 0\n"), 63 * MIB + 2 * MIB);
        assert_eq!(swap_room(Path::new("/nowhere")), 0);
    }

    #[test]
    fn a_device_with_a_limit_has_no_more_than_that() {
        let zram = "/dev/zram1 partition 65536 1024 100\n";
        let sizes = |taken: u64, limit: u64| format!("9 9 {taken} {limit} 0 0 0 0 0\n");
        assert_eq!(room(zram, &sizes(5 * MIB, 20 * MIB)), 14 * MIB);
        assert_eq!(room(zram, &sizes(5 * MIB, 200 * MIB)), 63 * MIB);
        assert_eq!(room(zram, &sizes(MIB, 4 * MIB)), 5 * MIB / 2);
        assert_eq!(room(zram, &sizes(20 * MIB, 20 * MIB)), 0);
    }
}
