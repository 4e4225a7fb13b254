//! [`NodeLayout`] reads the memory of a process, for the daemon, its sources, and an *optimization* in a live run: which ranges may be
//! moved, how much of each unit is resident, and how much of that, and of the samples, is on the fast tier's nodes. [`capacity`] computes
//! how much of these nodes watched processes may use, and [`promotion_lacks_room`] whether the kernel's own promotion lacks free memory on
//! them.
//!
//! Only private anonymous memory is movable: heaps, stacks and other data of one process. Files and shared memory are left out: the kernel
//! refuses to move a page that two processes map, and such a page has no single owner. The nodes of a few pages of each unit are queried,
//! spread over it: querying all would cost a program of 4 GiB a third of a second an epoch.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use isotherm_model::batch::Process;
use isotherm_model::movement::{AddressRange, NodeId};
use isotherm_model::spans;
use isotherm_model::units::Bytes;
use isotherm_model::watch::{Placed, Unit, UnitResidency};
use isotherm_sys::memory_map::{MappedRange, mapped_ranges};
use isotherm_sys::pages;

use super::watermarks::high_pages;
use crate::resident::{PageTables, Span};

/// Bytes of a huge page of a program's data, on processors with small pages of 4 KiB.
const HUGE_PAGE: u64 = 2 << 20;

/// Pages of a unit whose nodes are queried.
const ASKED: u64 = 4;

/// Pages queried in one call; the kernel splits them anyway.
const CALL: usize = 4096;

/// Unit and page size, and the nodes of the fast tier.
#[derive(Clone, Debug)]
pub struct NodeLayout {
    /// The directory `proc`.
    pub proc_root: PathBuf,
    /// Bytes of a unit, a multiple of the page size.
    pub unit: u64,
    /// Bytes of a page.
    pub page: u64,
    /// Nodes of the fast tier.
    pub fast: BTreeSet<NodeId>,
}

/// The resident pieces of a process, unit by unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    units: Vec<Pieces>,
    /// Resident bytes of the whole process at that time, by the kernel's own count.
    of_process: u64,
}

/// Resident pieces of one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pieces {
    start: u64,
    spans: Vec<Span>,
    /// It is a part of a huge page.
    huge: bool,
}

impl NodeLayout {
    /// The resident pieces of a process's movable memory, by address. Empty where it has ended. The
    /// kernel counts `of_process` resident bytes, files and shared memory included.
    ///
    /// # Errors
    /// Its mappings or its page tables may not be read.
    pub fn resident(&self, process: Process, of_process: u64) -> io::Result<ProcessMemory> {
        let read = || {
            let maps = self.proc_root.join(process.pid.to_string()).join("maps");
            let ranges = movable(&std::fs::read_to_string(maps)?);
            let tables = PageTables::open(&self.proc_root, process.pid)?;
            let mut units = cut(&tables.spans(&ranges)?, self.unit.max(1));
            if self.unit < HUGE_PAGE {
                mark_huge(&mut units, &tables.huge_spans(&ranges)?);
            }
            Ok(ProcessMemory { units, of_process })
        };
        read().or_else(|error| if_gone(error, ProcessMemory::default()))
    }

    /// The memory of a process, one entry for each unit, from its resident pieces. Empty where it has
    /// ended.
    ///
    /// # Errors
    /// Its nodes may not be queried.
    pub fn held(
        &self,
        process: Process,
        resident: &ProcessMemory,
    ) -> io::Result<Vec<UnitResidency>> {
        let pieces = &resident.units;
        let fast = match self.fast_shares(process.pid, pieces) {
            Err(error) => return if_gone(error, Vec::new()),
            Ok(fast) => fast,
        };
        let held = pieces.iter().zip(fast).map(|(pieces, (on_fast, known))| {
            let resident = pieces.bytes().min(self.unit);
            // The product of two sizes fits 128 bits; the share is at most one.
            let fast = u128::from(resident) * u128::from(on_fast) / u128::from(known.max(1));
            UnitResidency {
                unit: Unit {
                    process,
                    start: pieces.start,
                },
                resident: Bytes(resident),
                fast: Bytes(u64::try_from(fast).unwrap_or(u64::MAX)),
                grain: Bytes(if pieces.huge { HUGE_PAGE } else { self.unit }),
            }
        });
        Ok(held.collect())
    }

    /// The current placement of samples of a process, as (address, number of samples). Unknown where it has ended, or
    /// its nodes may not be queried. At most `CALL` addresses are looked up, which represent all.
    pub(super) fn placed(&self, pid: u32, samples: &[(u64, u64)]) -> Placed {
        let mut placed = Placed::default();
        if self.fast.is_empty() {
            return placed;
        }
        let every = samples.len().div_ceil(CALL).max(1);
        let samples: Vec<(u64, u64)> = samples.iter().copied().step_by(every).collect();
        let page = |(address, _): &(u64, u64)| (address / self.page.max(1) * self.page) as usize;
        let addresses: Vec<usize> = samples.iter().map(page).collect();
        let mut nodes = vec![-1; addresses.len()];
        if pages::nodes_of(pid, &addresses, &mut nodes).is_err() {
            return placed;
        }
        for ((_, hits), node) in samples.iter().zip(nodes) {
            if let Ok(node) = u32::try_from(node) {
                let is_fast = self.fast.contains(&NodeId(node));
                placed.samples = placed.samples.saturating_add(*hits);
                placed.fast = placed.fast.saturating_add(if is_fast { *hits } else { 0 });
            }
        }
        placed
    }

    /// For each unit, the number of queried pages on fast nodes, and on any node.
    fn fast_shares(&self, pid: u32, pieces: &[Pieces]) -> io::Result<Vec<(u64, u64)>> {
        let mut shares = vec![(0, 0); pieces.len()];
        // A machine with one tier has no node that is faster than another.
        if self.fast.is_empty() {
            return Ok(shares);
        }
        let asked = |(at, pieces): (usize, &Pieces)| {
            let pages: Vec<_> = pieces.pages(self.page).collect();
            pages.into_iter().map(move |page| (at, page as usize))
        };
        let asked: Vec<(usize, usize)> = pieces.iter().enumerate().flat_map(asked).collect();
        for call in asked.chunks(CALL) {
            let addresses: Vec<usize> = call.iter().map(|(_, page)| *page).collect();
            let mut nodes = vec![-1; call.len()];
            pages::nodes_of(pid, &addresses, &mut nodes)?;
            for ((at, _), node) in call.iter().zip(nodes) {
                if let Ok(node) = u32::try_from(node) {
                    shares[*at].0 += u64::from(self.fast.contains(&NodeId(node)));
                    shares[*at].1 += 1;
                }
            }
        }
        Ok(shares)
    }
}

impl ProcessMemory {
    /// True where the process, which now has this many bytes, has grown or shrunk by more than an
    /// eighth.
    pub(super) const fn is_old(&self, of_process: u64) -> bool {
        self.of_process.abs_diff(of_process) > self.of_process / 8
    }

    /// For each unit its range, its resident bytes, and at most `count` of its resident pages,
    /// spread over them: one in each of `count` equal parts, another one in every `turn`.
    pub(crate) fn samples(
        &self,
        page: u64,
        count: u64,
        turn: u64,
    ) -> impl Iterator<Item = (AddressRange, Bytes, Vec<u64>)> {
        self.units.iter().map(move |pieces| {
            let (page, bytes) = (page.max(1), pieces.bytes());
            let end = pieces.spans.last().map_or(pieces.start, |span| span.end);
            let range = AddressRange::between(pieces.start, end);
            let pages = bytes / page;
            let count = count.clamp(1, pages.max(1));
            let at = |part: u64| {
                // At most the pages of a unit times the count.
                let (begin, end) = (part * pages / count, (part + 1) * pages / count);
                pieces.address((begin + turn % (end - begin).max(1)) * page)
            };
            let addresses = (0..count).filter_map(at);
            (range, Bytes(bytes), addresses.collect())
        })
    }

    /// True where the page of this address was resident.
    pub(crate) fn has(&self, address: u64) -> bool {
        let after = self.units.partition_point(|unit| unit.start <= address);
        let unit = after.checked_sub(1).and_then(|at| self.units.get(at));
        unit.is_some_and(|unit| unit.spans.iter().any(|span| span.contains(&address)))
    }

    /// Builds the pieces of these spans, for tests.
    #[cfg(test)]
    pub(crate) fn of_spans(spans: &[Span], unit: u64) -> Self {
        Self {
            units: cut(spans, unit),
            of_process: 0,
        }
    }
}

impl Pieces {
    fn bytes(&self) -> u64 {
        self.spans.iter().map(|span| span.end - span.start).sum()
    }

    /// Resident pages at equal distances.
    fn pages(&self, page: u64) -> impl Iterator<Item = u64> {
        let bytes = self.bytes();
        let asked = ASKED.min(bytes.div_ceil(page.max(1)));
        (0..asked).filter_map(move |number| {
            // At most a unit times nine.
            let at = bytes / (2 * asked) * (2 * number + 1);
            Some(self.address(at)? / page.max(1) * page.max(1))
        })
    }

    /// The address of a resident byte, by its number among them.
    fn address(&self, byte: u64) -> Option<u64> {
        let mut at = byte;
        let span = self.spans.iter().find(|span| {
            let length = span.end - span.start;
            let inside = at < length;
            at -= if inside { 0 } else { length };
            inside
        })?;
        Some(span.start + at)
    }
}

/// The value for a process that ended meanwhile; other errors stay.
fn if_gone<T>(error: io::Error, nothing: T) -> io::Result<T> {
    const ESRCH: i32 = 3;
    let gone = error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(ESRCH);
    if gone { Ok(nothing) } else { Err(error) }
}

/// Cuts resident spans, sorted and apart, at multiples of the unit.
fn cut(spans: &[Span], unit: u64) -> Vec<Pieces> {
    let mut all: Vec<Pieces> = Vec::new();
    for (start, part) in spans.iter().flat_map(|span| spans::by_unit(span, unit)) {
        match all.last_mut() {
            Some(pieces) if pieces.start == start => pieces.spans.push(part),
            _ => all.push(Pieces {
                start,
                spans: Vec::from([part]),
                huge: false,
            }),
        }
    }
    all
}

/// Marks the units that begin in a huge page. Both lists are sorted.
fn mark_huge(units: &mut [Pieces], huge: &[Span]) {
    let mut huge = huge.iter().peekable();
    for unit in units {
        while huge.next_if(|span| span.end <= unit.start).is_some() {}
        unit.huge = huge.peek().is_some_and(|span| span.start <= unit.start);
    }
}

/// The mappings of private anonymous memory in the text of `maps`, in the kernel's order. Malformed
/// lines, and ranges that overlap earlier ones, are skipped.
pub(crate) fn movable(maps: &str) -> Vec<Span> {
    let ranges = mapped_ranges(maps.as_bytes()).filter(is_data);
    let mut ranges: Vec<Span> = ranges.map(|mapping| mapping.range).collect();
    spans::keep_apart(&mut ranges, |range| range);
    ranges
}

/// True for private anonymous memory that the kernel did not make for itself.
fn is_data(mapping: &MappedRange<'_>) -> bool {
    mapping.is_readable && !mapping.is_shared && mapping.inode == 0 && !mapping.is_of_kernel()
}

/// The fast tier's bytes that watched processes may use: their bytes there now and the free bytes
/// beyond a reserve, but no more than `limit`. The reserve is at least the kernel's high watermark, because it moves no huge page to a node that has less
/// free; where `promotes`, it comes on top, because the kernel's own promotion needs room above it.
#[must_use]
pub fn capacity(
    root: &Path,
    fast: &BTreeSet<NodeId>,
    (held, limit): (Bytes, Bytes),
    promotes: bool,
) -> Bytes {
    let mut room = 0_u64;
    for node in fast {
        let path = root.join(format!("sys/devices/system/node/node{node}/meminfo"));
        let total = isotherm_topology::meminfo::total_bytes(&path).unwrap_or(0);
        let free = isotherm_topology::meminfo::available_bytes(&path).unwrap_or(0);
        // The kernel and new pages of programs need room too: on a node filled to the last page,
        // the kernel reclaims pages while we move others in.
        let (high, part) = (high_bytes(root, *node), total / RESERVE);
        let reserve = match promotes {
            true => high.saturating_add(part),
            false => high.max(part),
        };
        room = room.saturating_add(free.saturating_sub(reserve));
    }
    limit.min(Bytes(held.0.saturating_add(room)))
}

/// True where the kernel's own promotion has used up half of the room that [`capacity`] leaves it on fast nodes.
#[must_use]
pub fn promotion_lacks_room(root: &Path, fast: &BTreeSet<NodeId>) -> bool {
    let (mut left, mut whole) = (0_u64, 0_u64);
    for node in fast {
        let path = root.join(format!("sys/devices/system/node/node{node}/meminfo"));
        let free = isotherm_topology::meminfo::free_bytes(&path).unwrap_or(0);
        let total = isotherm_topology::meminfo::total_bytes(&path).unwrap_or(0);
        left = left.saturating_add(free.saturating_sub(high_bytes(root, *node)));
        whole = whole.saturating_add(total / RESERVE);
    }
    left < whole / 2
}

fn high_bytes(root: &Path, node: NodeId) -> u64 {
    high_pages(root, node).saturating_mul(rustix::param::page_size() as u64)
}

/// The divisor of the reserve: this fraction of a fast node is left free, above the kernel's high watermark where it promotes.
const RESERVE: u64 = 32;

#[cfg(test)]
mod tests {
    use super::{
        NodeLayout, Pieces, ProcessMemory, Span, capacity, cut, mark_huge, movable,
        promotion_lacks_room,
    };
    use isotherm_model::batch::Process;
    use isotherm_model::movement::NodeId;
    use isotherm_model::units::Bytes;
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    const MIB: u64 = 1 << 20;

    fn layout() -> NodeLayout {
        NodeLayout {
            proc_root: PathBuf::from("/proc"),
            unit: 64 << 10,
            page: rustix::param::page_size() as u64,
            fast: BTreeSet::from([NodeId(0)]),
        }
    }

    #[test]
    fn samples_count_by_the_node_that_has_their_page() {
        let data = vec![1_u8; 8 * 4096];
        let at = data.as_ptr() as u64 + 4096;
        // An absent page has no node.
        let samples = [(at, 3), (at + 4096, 2), (4096, 9)];
        let pid = std::process::id();
        let placed = |fast: &[u32]| {
            let fast = fast.iter().copied().map(NodeId).collect();
            NodeLayout { fast, ..layout() }.placed(pid, &samples)
        };
        if placed(&[0]).samples == 0 {
            return isotherm_skip::skip!("this process may not ask for its nodes");
        }
        let nodes: Vec<u32> = (0..64).collect();
        assert_eq!((placed(&nodes).samples, placed(&nodes).fast), (5, 5));
        assert_eq!((placed(&[63]).samples, placed(&[63]).fast), (5, 0));
        assert_eq!(
            placed(&[]).samples,
            0,
            "where nothing is faster than anything"
        );
    }

    #[test]
    fn data_of_one_process_is_movable_and_files_code_and_shared_memory_are_not() {
        let maps = "\
1000-2000 r--p 00000000 08:01 99  /usr/bin/app
2000-3000 rw-p 00001000 08:01 99  /usr/bin/app
3000-5000 rw-p 00000000 00:00 0   [heap]
4000-6000 rw-p 00000000 00:00 0
6000-7000 ---p 00000000 00:00 0
7000-8000 rw-s 00000000 00:01 7   /memfd:x (deleted)
8000-9000 r--p 00000000 00:00 0   [vvar]
9000-b000 r--p 00000000 00:00 0
nonsense
c000-b000 rw-p 00000000 00:00 0
d000-e000 rw-p 00000000 00:00 0   [stack]
";
        assert_eq!(
            movable(maps),
            [0x3000..0x5000, 0x9000..0xb000, 0xd000..0xe000]
        );
    }

    #[test]
    fn spans_are_cut_at_units_and_pages_lie_apart_in_them() {
        let pieces = cut(&[MIB / 2..3 * MIB, 3 * MIB + 8192..3 * MIB + 12_288], MIB);
        let starts: Vec<_> = pieces
            .iter()
            .map(|pieces| (pieces.start, pieces.bytes()))
            .collect();
        assert_eq!(
            starts,
            [(0, MIB / 2), (MIB, MIB), (2 * MIB, MIB), (3 * MIB, 4096)]
        );
        let pages: Vec<_> = pieces[1].pages(4096).collect();
        assert_eq!(pages, [1, 3, 5, 7].map(|eighth| MIB + eighth * MIB / 8));
        assert_eq!(pieces[3].pages(4096).collect::<Vec<_>>(), [3 * MIB + 8192]);
        let apart = Pieces {
            start: 0,
            spans: vec![0..4096, 8192..12_288],
            huge: false,
        };
        assert_eq!(apart.pages(4096).collect::<Vec<_>>(), [0, 8192]);
    }

    #[test]
    fn units_in_a_huge_page_are_marked() {
        let mut units = cut(&[MIB..5 * MIB, 6 * MIB..9 * MIB], MIB / 2);
        mark_huge(&mut units, &[2 * MIB..4 * MIB, 6 * MIB..8 * MIB]);
        let huge: Vec<u64> = units
            .iter()
            .filter(|unit| unit.huge)
            .map(|unit| 2 * unit.start / MIB)
            .collect();
        assert_eq!(huge, [4, 5, 6, 7, 12, 13, 14, 15]);
    }

    #[test]
    fn samples_lie_one_in_each_part_and_over_the_turns_everywhere() {
        let resident = ProcessMemory::of_spans(&[0..4 * 4096, MIB / 2..MIB / 2 + 4 * 4096], MIB);
        let mut seen = BTreeSet::new();
        for turn in 0..4 {
            let (range, bytes, pages) = resident.samples(4096, 2, turn).next().expect("a unit");
            assert_eq!((range.start, bytes), (0, Bytes(8 * 4096)));
            assert_eq!(range.end(), MIB / 2 + 4 * 4096);
            assert!(pages[0] < 4 * 4096 && pages[1] >= MIB / 2, "{pages:?}");
            seen.extend(pages);
        }
        assert_eq!(seen.len(), 8);
        let page = 0..4096;
        let few = ProcessMemory::of_spans(std::slice::from_ref(&page), MIB);
        let pages: Vec<_> = few.samples(4096, 8, 9).map(|(_, _, pages)| pages).collect();
        assert_eq!(pages, [[0]]);
    }

    #[test]
    fn this_process_holds_what_it_wrote_on_a_node() {
        let data = vec![1_u8; 4 << 20];
        let process = Process {
            pid: std::process::id(),
            image: 0,
        };
        let resident = layout().resident(process, 0);
        let held = resident.and_then(|resident| layout().held(process, &resident));
        let held = match held {
            Ok(held) => held,
            Err(error) => return isotherm_skip::skip!("own pages: {error}"),
        };
        let (start, end) = (
            data.as_ptr() as u64,
            data.as_ptr() as u64 + data.len() as u64,
        );
        let inside = held
            .iter()
            .filter(|held| held.unit.start >= start && held.unit.start < end);
        let resident: u64 = inside.map(|held| held.resident.0).sum();
        assert!(
            resident >= (data.len() as u64) - 2 * layout().unit,
            "{resident}"
        );
        assert!(held.windows(2).all(|pair| pair[0].unit < pair[1].unit));
        assert!(held.iter().all(|held| held.fast <= held.resident));
    }

    #[test]
    fn what_was_read_is_old_when_the_process_has_grown_or_shrunk_by_more_than_an_eighth() {
        let read = ProcessMemory {
            of_process: 800,
            ..ProcessMemory::default()
        };
        let old: Vec<u64> = [0, 699, 700, 800, 900, 901]
            .into_iter()
            .filter(|now| read.is_old(*now))
            .collect();
        assert_eq!(old, [0, 699, 901]);
    }

    #[test]
    fn a_process_that_is_gone_holds_nothing() {
        let gone = Process {
            pid: u32::MAX,
            image: 0,
        };
        assert_eq!(
            layout().resident(gone, 0).expect("no error"),
            ProcessMemory::default()
        );
        let resident = ProcessMemory {
            units: cut(
                &Vec::from([Span {
                    start: MIB,
                    end: 2 * MIB,
                }]),
                MIB,
            ),
            of_process: 0,
        };
        assert_eq!(layout().held(gone, &resident).expect("no error"), []);
    }

    #[test]
    fn the_capacity_leaves_a_reserve_and_keeps_to_the_limit() {
        let root = tempfile::tempdir().unwrap();
        let node = root.path().join("sys/devices/system/node/node2");
        std::fs::create_dir_all(&node).unwrap();
        let meminfo = "Node 2 MemTotal: 1048576 kB\nNode 2 MemFree: 524288 kB\n";
        std::fs::write(node.join("meminfo"), meminfo).unwrap();
        let fast = BTreeSet::from([NodeId(2)]);
        let room = |held, limit, promotes| {
            capacity(root.path(), &fast, (Bytes(held), Bytes(limit)), promotes).0 / MIB
        };
        let of = |held, limit| room(held, limit, false);
        assert_eq!(of(100 * MIB, u64::MAX), 100 + 512 - 32);
        assert_eq!(of(100 * MIB, 200 * MIB), 200);
        // The kernel promotes nothing below its high watermark: 16 MiB of pages of 4 KiB here.
        std::fs::create_dir_all(root.path().join("proc")).unwrap();
        let pages = 16 * MIB / rustix::param::page_size() as u64;
        let zones = format!("Node 2, zone Normal\n        high     {pages}\n");
        std::fs::write(root.path().join("proc/zoneinfo"), &zones).unwrap();
        assert_eq!(room(100 * MIB, u64::MAX, true), 100 + 512 - 32 - 16);
        assert_eq!(of(100 * MIB, u64::MAX), 100 + 512 - 32, "16 are in the 32");
        let zones = zones.replace(&pages.to_string(), &(4 * pages).to_string());
        std::fs::write(root.path().join("proc/zoneinfo"), &zones).unwrap();
        assert_eq!(of(100 * MIB, u64::MAX), 100 + 512 - 64);
        let zones = zones.replace(&(4 * pages).to_string(), &pages.to_string());
        std::fs::write(root.path().join("proc/zoneinfo"), zones).unwrap();
        let lacks = |free: u64| {
            let free = free << 10;
            let text = format!("Node 2 MemTotal: 1048576 kB\nNode 2 MemFree: {free} kB\n");
            std::fs::write(node.join("meminfo"), text).unwrap();
            promotion_lacks_room(root.path(), &fast)
        };
        assert!(lacks(16 + 15) && !lacks(16 + 17));
        std::fs::write(node.join("meminfo"), meminfo).unwrap();
        assert_eq!(of(100 * MIB, u64::MAX), 100 + 512 - 32);
        assert_eq!(
            capacity(Path::new("/none"), &fast, (Bytes(5), Bytes(9)), true),
            Bytes(5)
        );
    }
}
