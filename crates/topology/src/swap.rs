//! [`swap()`] reads the swap areas of a machine ([`SwapSpace`]), their room, and whether the pages in them stay in memory, compressed
//! (zram, zswap), for page-out, `isotherm tiers` and `isotherm doctor`; [`swap_room`] is what they take even of pages that cannot be
//! compressed.
//!
//! ```text
//! proc/swaps                        areas: name, kind, size, use, priority
//! sys/block/zram0                   memory that is a disk, compressed: its algorithm, its sizes and its limit
//! sys/module/zswap/parameters       the compressed cache before the areas on disks
//! proc/meminfo                      Zswap, Zswapped: what that cache holds
//! ```
//!
//! A zram device that has reached its limit refuses each further page. The kernel keeps such a page in memory, but by the page table it is
//! out: so the limit must be looked up before pages leave.
//!
//! `Documentation/admin-guide/blockdev/zram.rst`, `Documentation/admin-guide/mm/zswap.rst`.

use std::path::{Path, PathBuf};

use isotherm_model::units::Bytes;

use crate::meminfo;
use crate::sysfs::{chosen, text};

/// Room to keep free on a device with a limit, because further sizes of compressed pages take groups of pages of their own; an eighth of a
/// small limit.
const RESERVE: Bytes = Bytes(1 << 20);
const RESERVE_PART: u64 = 8;

/// The places to which the kernel can move pages that are not in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwapSpace {
    /// The areas, as the kernel lists them.
    pub areas: Vec<SwapArea>,
    /// The compressed cache before the areas that are not zram; `None` from a kernel without it, or where it is off.
    pub zswap: Option<Zswap>,
}

/// A swap area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwapArea {
    /// The file or device.
    pub path: PathBuf,
    /// The medium of the area.
    pub medium: SwapMedium,
    /// Bytes of pages that it can hold.
    pub size: Bytes,
    /// Bytes of pages that it holds.
    pub used: Bytes,
    /// The kernel fills areas of a higher priority first.
    pub priority: i32,
}

/// The medium of a swap area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwapMedium {
    /// Compressed memory.
    Zram(Zram),
    /// A partition or another block device.
    Device,
    /// A file.
    File,
}

/// Sizes of a zram device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zram {
    /// The algorithm: `lz4`, `zstd`; empty where it cannot be read.
    pub algorithm: String,
    /// Bytes of pages that it stores.
    pub stored: Bytes,
    /// Bytes of memory that it takes for them.
    pub memory: Bytes,
    /// Bytes of memory that it may take; `None` without a limit.
    pub limit: Option<Bytes>,
}

/// The compressed cache before swap on disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zswap {
    /// The algorithm; empty where it cannot be read.
    pub algorithm: String,
    /// Share of the machine's memory that it may take, in percent.
    pub share: u8,
    /// Bytes of pages that it stores.
    pub stored: Bytes,
    /// Bytes of memory that it takes for them.
    pub memory: Bytes,
}

impl SwapArea {
    /// Bytes of pages that still have room, if a limit of the device allows them.
    fn free(&self) -> Bytes {
        self.size.saturating_sub(self.used)
    }

    /// Bytes of pages that it has room for, even if none of them can be compressed.
    fn room(&self) -> Bytes {
        let SwapMedium::Zram(Zram {
            memory,
            limit: Some(limit),
            ..
        }) = self.medium
        else {
            return self.free();
        };
        let reserve = RESERVE.min(Bytes(limit.0 / RESERVE_PART));
        let below_limit = limit.saturating_sub(memory).saturating_sub(reserve);
        self.free().min(below_limit)
    }
}

impl SwapSpace {
    /// True where swapped pages stay in memory, compressed: on zram, or by zswap before any area.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        let is_zram = |area: &SwapArea| matches!(area.medium, SwapMedium::Zram(_));
        self.areas.iter().any(is_zram) || (self.zswap.is_some() && !self.areas.is_empty())
    }

    /// Bytes of pages that still have room.
    #[must_use]
    pub fn free(&self) -> Bytes {
        self.areas.iter().map(SwapArea::free).sum()
    }

    /// For a warning where pages found no room: why nothing more is paged out.
    #[must_use]
    pub const fn lack_of_room(&self) -> &'static str {
        match self.areas.is_empty() {
            true => "the machine has no swap any more: nothing more is paged out",
            false => "swap is full: nothing more is paged out until it has room",
        }
    }

    /// Bytes of memory that `out` bytes of swapped pages take: their share of all compressed memory, as if all pages were equally
    /// compressible. 0 where nothing is stored compressed.
    #[must_use]
    pub fn taken_by(&self, out: Bytes) -> Bytes {
        let (stored, memory) = self.compressed();
        if stored == Bytes::ZERO {
            return Bytes::ZERO;
        }
        let taken = u128::from(out.0) * u128::from(memory.0) / u128::from(stored.0);
        Bytes(u64::try_from(taken).unwrap_or(u64::MAX))
    }

    /// Bytes of pages that are stored compressed, and bytes of memory that they take.
    #[must_use]
    pub fn compressed(&self) -> (Bytes, Bytes) {
        let of_area = |area: &SwapArea| match &area.medium {
            SwapMedium::Zram(zram) => Some((zram.stored, zram.memory)),
            SwapMedium::Device | SwapMedium::File => None,
        };
        let zswap = self.zswap.iter().map(|it| (it.stored, it.memory));
        let all = self.areas.iter().filter_map(of_area).chain(zswap);
        all.fold(Default::default(), |(stored, memory), it| {
            let sum = |a: Bytes, b: Bytes| Bytes(a.0.saturating_add(b.0));
            (sum(stored, it.0), sum(memory, it.1))
        })
    }
}

/// The swap areas and zswap of the machine whose file system is mounted at `root`.
#[must_use]
pub fn swap(root: &Path) -> SwapSpace {
    SwapSpace {
        areas: areas(root),
        zswap: zswap(root),
    }
}

/// Bytes of pages that all areas of this machine have room for, even if none of them can be compressed; 0 without an area.
#[must_use]
pub fn swap_room(root: &Path) -> Bytes {
    areas(root).iter().map(SwapArea::room).sum()
}

fn areas(root: &Path) -> Vec<SwapArea> {
    let listed = std::fs::read_to_string(root.join("proc/swaps")).unwrap_or_default();
    // The first line names the columns.
    let areas = listed.lines().skip(1).filter_map(|line| area(root, line));
    areas.collect()
}

/// `/dev/zram0 partition 262140 1024 100`, sizes in KiB.
fn area(root: &Path, line: &str) -> Option<SwapArea> {
    let mut columns = line.split_ascii_whitespace();
    let path = PathBuf::from(unescaped(columns.next()?));
    let kind = columns.next()?;
    let mut size = || columns.next()?.parse::<u64>().ok()?.checked_mul(1024);
    let (size, used) = (size()?, size()?);
    let name = path.file_name().and_then(|name| name.to_str());
    let zram = name.and_then(|name| zram(root, name));
    let medium = match (zram, kind) {
        (Some(zram), _) => SwapMedium::Zram(zram),
        (None, "file") => SwapMedium::File,
        (None, _) => SwapMedium::Device,
    };
    Some(SwapArea {
        path,
        medium,
        size: Bytes(size),
        used: Bytes(used),
        priority: columns.next()?.parse().ok()?,
    })
}

/// The kernel writes blanks, tabs, line ends and backslashes in names as three octal digits.
fn unescaped(name: &str) -> String {
    let escapes = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    let replace = |name: String, (code, plain): (&str, &str)| name.replace(code, plain);
    escapes.into_iter().fold(name.to_owned(), replace)
}

fn zram(root: &Path, name: &str) -> Option<Zram> {
    name.strip_prefix("zram")?.parse::<u32>().ok()?;
    let device = root.join("sys/block").join(name);
    let sizes = text(&device.join("mm_stat"))?;
    let mut sizes = sizes.split_ascii_whitespace();
    // Bytes of pages, bytes when compressed, bytes of memory with the allocator's loss, their limit or 0.
    let mut size = |skipped| sizes.nth(skipped)?.parse().ok();
    Some(Zram {
        algorithm: chosen(&device.join("comp_algorithm")).unwrap_or_default(),
        stored: Bytes(size(0)?),
        memory: Bytes(size(1)?),
        limit: size(0).filter(|limit| *limit > 0).map(Bytes),
    })
}

fn zswap(root: &Path) -> Option<Zswap> {
    let parameter = |name: &str| text(&root.join("sys/module/zswap/parameters").join(name));
    if parameter("enabled")? != "Y" {
        return None;
    }
    let meminfo = root.join("proc/meminfo");
    let bytes = |name| Bytes(meminfo::bytes(&meminfo, name).unwrap_or(0));
    Some(Zswap {
        algorithm: parameter("compressor").unwrap_or_default(),
        share: parameter("max_pool_percent")?.parse().ok()?,
        stored: bytes("Zswapped:"),
        memory: bytes("Zswap:"),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use isotherm_model::units::Bytes;
    use tempfile::TempDir;

    use super::{SwapMedium, SwapSpace, Zram, swap, swap_room};

    fn machine(files: &[(&str, &str)]) -> TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    const HEADING: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
    const ZRAM: &str = "/dev/zram1                              partition\t262140\t\t4096\t\t100\n";

    #[test]
    fn an_area_on_zram_has_the_sizes_of_the_device() {
        let swaps = format!("{HEADING}{ZRAM}");
        let root = machine(&[
            ("proc/swaps", &swaps),
            (
                "sys/block/zram1/mm_stat",
                " 4194304  1900000  2097152 0 2097152 3 0 0 0\n",
            ),
            ("sys/block/zram1/comp_algorithm", "lzo-rle [lz4] zstd\n"),
        ]);
        let found = swap(root.path());
        let area = &found.areas[0];
        let zram = Zram {
            algorithm: "lz4".into(),
            stored: Bytes(4 << 20),
            memory: Bytes(2 << 20),
            limit: None,
        };
        assert_eq!(area.path, Path::new("/dev/zram1"));
        assert_eq!(area.medium, SwapMedium::Zram(zram));
        assert_eq!(
            (area.size, area.used),
            (Bytes(262_140 << 10), Bytes(4 << 20))
        );
        assert_eq!(area.priority, 100);
        assert!(found.is_compressed());
        assert_eq!(found.free(), Bytes(258_044 << 10));
        assert_eq!(found.compressed(), (Bytes(4 << 20), Bytes(2 << 20)));
    }

    #[test]
    fn zswap_compresses_only_before_an_area() {
        let zswap = [
            ("sys/module/zswap/parameters/enabled", "Y\n"),
            ("sys/module/zswap/parameters/compressor", "zstd\n"),
            ("sys/module/zswap/parameters/max_pool_percent", "20\n"),
            ("proc/meminfo", "Zswap:  100 kB\nZswapped:  300 kB\n"),
        ];
        let alone = swap(machine(&zswap).path());
        assert!(alone.zswap.is_some() && !alone.is_compressed());
        let swaps = format!("{HEADING}/swap\\040file file 1024 0 -2\n");
        let root = machine(&[&zswap[..], &[("proc/swaps", &swaps)]].concat());
        let found = swap(root.path());
        assert_eq!(found.areas[0].path, Path::new("/swap file"));
        assert_eq!(found.areas[0].medium, SwapMedium::File);
        assert!(found.is_compressed());
        assert_eq!(found.compressed(), (Bytes(300 << 10), Bytes(100 << 10)));
        std::fs::write(root.path().join(zswap[0].0), "N\n").unwrap();
        assert!(!swap(root.path()).is_compressed());
    }

    #[test]
    fn a_machine_without_swap_has_none_and_bad_lines_are_left_out() {
        assert_eq!(swap(Path::new("/nowhere")), SwapSpace::default());
        let swaps = format!("{HEADING}/dev/sda2 partition\n/dev/sda3 partition x 0 1\n{ZRAM}");
        let found = swap(machine(&[("proc/swaps", &swaps)]).path());
        assert_eq!(found.areas.len(), 1);
        assert_eq!(
            found.areas[0].medium,
            SwapMedium::Device,
            "no sizes of zram"
        );
    }

    const MIB: u64 = 1 << 20;

    fn room(swaps: &str, mm_stat: &str) -> u64 {
        let swaps = format!("{HEADING}{swaps}");
        let root = machine(&[("proc/swaps", &swaps), ("sys/block/zram1/mm_stat", mm_stat)]);
        swap_room(root.path()).0
    }

    #[test]
    fn all_areas_together_have_what_they_do_not_hold() {
        let swaps =
            "/dev/zram1 partition 65536 1024 100\n/swap\\040file file 2048 0 -2\nnonsense\n";
        assert_eq!(room(swaps, "0 0 0 0 0 0 0 0 0\n"), 63 * MIB + 2 * MIB);
        assert_eq!(swap_room(Path::new("/nowhere")), Bytes::ZERO);
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
