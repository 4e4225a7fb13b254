//! [`read`] reads each [`Node`] of a machine, also one of processors only, from sysfs: sizes, processors, distances, figures of speed, the
//! kernel's own tiers, kinds of memory and hugetlb pages, for the detection and measurement of tiers and the list of devices. The contents
//! are not trusted: impossible figures are ignored with the reason, and a malformed list is left out.
//!
//! ```text
//! sys/devices/system/node/node2
//!  |- meminfo, cpulist, distance       size, available memory, processors, distances to online nodes
//!  |- hugepages/hugepages-2048kB/...   pages that only hugetlb can use
//!  |- access1/initiators/...           figures seen from the nearest processors
//!  `- access0/initiators/...           figures seen from the nearest initiator of any kind
//! sys/devices/virtual/memory_tiering   the kernel's own tiers
//! sys/bus/dax/devices/dax0.0           memory that a driver made into a node
//! proc/cpuinfo                         processors with memory in the package
//! ```
//!
//! `Documentation/admin-guide/mm/numaperf.rst`, `Documentation/ABI/stable/sysfs-devices-node`,
//! `Documentation/ABI/testing/sysfs-kernel-mm-memory-tiers`, `Documentation/ABI/testing/sysfs-bus-dax`.
//!
//! hwloc reads the same files, but is a C library. It uses two more facts, read here too: the
//! driver that made a node (its `DAXType`), and that nodes without processors on Xeon Phi and Xeon
//! Max are memory in the package.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use isotherm_model::units::{Bytes, Nanos};

use crate::sysfs::{entries, number, numbered, text};
use crate::{cpu_list, meminfo};

/// A node of memory, of processors, or of both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its number; numbers may have gaps.
    pub number: u32,
    /// All its memory; zero for a node with processors only, or one whose memory is not online.
    pub memory: Bytes,
    /// Memory that is free or can be reclaimed at once, where the kernel reports it.
    pub available: Option<Bytes>,
    /// Its processors; none for HBM, CXL and persistent memory as a rule.
    pub cpus: Vec<u32>,
    /// Distances from here to every online node, 10 for itself.
    pub distances: BTreeMap<u32, u64>,
    /// Figures of the firmware's HMAT table, or of a device that reports its own to the kernel.
    pub figures: Option<Figures>,
    /// Why existing figures are ignored.
    pub disbelieved: Vec<String>,
    /// The kernel's memory tier; a lower number is faster.
    pub kernel_tier: Option<u32>,
    /// The kind of memory, where a driver or the processor's name shows it.
    pub make: Option<Make>,
    /// Pages reserved for hugetlb, by their size.
    pub huge_pages: Vec<HugePages>,
}

/// The kind of memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Make {
    /// In the package of a processor of this name.
    InPackage(String),
    /// Behind CXL; holds the name of the device.
    Cxl(String),
    /// Reserved by the firmware for a special purpose: HBM or CXL, the table does not distinguish
    /// them.
    SpecialPurpose(String),
    /// Persistent memory; holds the name of the device.
    Persistent(String),
}

impl fmt::Display for Make {
    /// `persistent memory (dax0.0)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InPackage(processor) => write!(f, "memory in the package of {processor}"),
            Self::Cxl(device) => write!(f, "CXL memory ({device})"),
            Self::SpecialPurpose(device) => write!(f, "memory for a special purpose ({device})"),
            Self::Persistent(device) => write!(f, "persistent memory ({device})"),
        }
    }
}

/// Figures of a node in the view of the given initiators. A missing or zero figure is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// `access1` or `access0`.
    pub access: &'static str,
    /// The nodes of the initiators; empty where the kernel names none.
    pub initiators: Vec<u32>,
    /// Latency of a load.
    pub latency: Option<Nanos>,
    /// Read bandwidth in bytes a second.
    pub read: Option<u64>,
    /// Write bandwidth in bytes a second.
    pub write: Option<u64>,
}

/// Pages reserved for hugetlb on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HugePages {
    /// Size of one page.
    pub size: Bytes,
    /// Number of pages.
    pub total: u64,
    /// Number of unused pages.
    pub free: u64,
}

impl HugePages {
    /// Bytes that only hugetlb can use.
    #[must_use]
    pub fn bytes(self) -> Bytes {
        Bytes(self.size.0.saturating_mul(self.total))
    }
}

/// Plausible latencies of memory. Below are caches, above are disks (and firmware that counts in
/// picoseconds).
const LATENCY_NS: std::ops::RangeInclusive<u64> = 10..=20_000;
/// Plausible bandwidths of a node's memory, in MiB/s: from a tenth of the slowest flash DIMM to a
/// hundred times the fastest HBM.
const BANDWIDTH_MIB: std::ops::RangeInclusive<u64> = 100..=100 << 20;

/// The nodes of the machine whose file system is mounted at `root`, in order; empty where the
/// kernel lists none.
#[must_use]
pub fn read(root: &Path) -> Vec<Node> {
    let directory = root.join("sys/devices/system/node");
    let numbers = numbered(&directory, "node");
    let path = |number: u32| directory.join(format!("node{number}"));
    let with_cpus: BTreeMap<u32, Vec<u32>> = numbers
        .iter()
        .map(|number| {
            (
                *number,
                cpu_list::read(&path(*number).join("cpulist")).unwrap_or_default(),
            )
        })
        .collect();
    let kernel_tiers = kernel_tiers(root);
    let makes = makes(root);
    let in_package = in_package(root);
    let node = |&number: &u32| {
        let path = path(number);
        let cpus = with_cpus.get(&number).cloned().unwrap_or_default();
        let (figures, disbelieved) = figures(&path, &with_cpus);
        // The firmware reserves HBM for a special purpose too; the processor's name distinguishes
        // it.
        let make = match (makes.get(&number), &in_package) {
            (None | Some(Make::SpecialPurpose(_)), Some(name)) if cpus.is_empty() => {
                Some(Make::InPackage(name.clone()))
            }
            (make, _) => make.cloned(),
        };
        Node {
            number,
            memory: Bytes(meminfo::total_bytes(&path.join("meminfo")).unwrap_or(0)),
            available: meminfo::available_bytes(&path.join("meminfo")).map(Bytes),
            cpus,
            distances: distances(&path, &numbers),
            figures,
            disbelieved,
            kernel_tier: kernel_tiers.get(&number).copied(),
            make,
            huge_pages: huge_pages(&path),
        }
    };
    numbers.iter().map(node).collect()
}

/// The columns are the online nodes in order. A different number of columns means that a node was
/// added or removed during the read, so no column can be attributed.
fn distances(path: &Path, online: &[u32]) -> BTreeMap<u32, u64> {
    let text = text(&path.join("distance")).unwrap_or_default();
    let columns: Vec<u64> = text
        .split_ascii_whitespace()
        .filter_map(|distance| distance.parse().ok())
        .collect();
    match columns.len() == online.len() {
        true => online.iter().copied().zip(columns).collect(),
        false => BTreeMap::new(),
    }
}

/// `access1` is the view of the nearest processors. `access0` may be the view of a GPU or a network
/// card, and counts only where its initiators have processors, or where an old kernel does not name
/// them.
fn figures(path: &Path, cpus: &BTreeMap<u32, Vec<u32>>) -> (Option<Figures>, Vec<String>) {
    let mut disbelieved = Vec::new();
    for access in ["access1", "access0"] {
        let initiators = path.join(access).join("initiators");
        let nodes = numbered(&initiators, "node");
        let has_cpus = |node: &u32| cpus.get(node).is_some_and(|cpus| !cpus.is_empty());
        let (figures, wrong) = read_figures(access, &initiators, nodes);
        disbelieved.extend(wrong);
        let Some(figures) = figures else {
            continue;
        };
        if figures.initiators.is_empty() || figures.initiators.iter().any(has_cpus) {
            return (Some(figures), disbelieved);
        }
        disbelieved.push(format!(
            "{access} is the view of nodes {}, which have no processors",
            words(&figures.initiators)
        ));
    }
    (None, disbelieved)
}

/// The figures of one access class, and the reasons for ignored ones. None where no figure is left.
fn read_figures(
    access: &'static str,
    directory: &Path,
    initiators: Vec<u32>,
) -> (Option<Figures>, Vec<String>) {
    let mut wrong = Vec::new();
    let mut figure = |name: &str, unit: &str, range: &std::ops::RangeInclusive<u64>| {
        let value = number(&directory.join(name)).filter(|value| *value > 0)?;
        if !range.contains(&value) {
            wrong.push(format!(
                "{access} reports a {name} of {value} {unit}, which no memory has"
            ));
            return None;
        }
        Some(value)
    };
    // MiB/s by the kernel's documentation; the bound above prevents overflow of the product.
    let latency = figure("read_latency", "ns", &LATENCY_NS).map(Nanos);
    let read = figure("read_bandwidth", "MiB/s", &BANDWIDTH_MIB).map(|mib| mib << 20);
    let write = figure("write_bandwidth", "MiB/s", &BANDWIDTH_MIB).map(|mib| mib << 20);
    let is_sound = wrong.is_empty() && (latency.is_some() || read.is_some());
    let figures = is_sound.then_some(Figures {
        access,
        initiators,
        latency,
        read,
        write,
    });
    (figures, wrong)
}

fn kernel_tiers(root: &Path) -> BTreeMap<u32, u32> {
    let directory = root.join("sys/devices/virtual/memory_tiering");
    let tiers = numbered(&directory, "memory_tier").into_iter();
    tiers
        .flat_map(|tier| {
            let nodes = cpu_list::read(&directory.join(format!("memory_tier{tier}/nodelist")));
            nodes.into_iter().flatten().map(move |node| (node, tier))
        })
        .collect()
}

/// The kind of memory of each node that a driver made, from the device's path in sysfs.
fn makes(root: &Path) -> BTreeMap<u32, Make> {
    let mut makes = BTreeMap::new();
    for device in entries(&root.join("sys/bus/dax/devices")) {
        let node = number(&device.join("target_node")).and_then(|node| node.try_into().ok());
        let (Some(node), Ok(place)) = (node, std::fs::read_link(&device)) else {
            continue;
        };
        let name = device.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        let place = place.to_string_lossy();
        let make = match () {
            () if place.contains("/ndbus") || place.contains("e820_pmem") => Make::Persistent(name),
            () if place.contains("/cxl") || place.contains("/root0/") => Make::Cxl(name),
            () if place.contains("/hmem") => Make::SpecialPurpose(name),
            () => continue,
        };
        makes.insert(node, make);
    }
    makes
}

/// The name of a processor with memory in its package (Xeon Phi: MCDRAM, Xeon Max: HBM).
fn in_package(root: &Path) -> Option<String> {
    let text = text(&root.join("proc/cpuinfo"))?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    let name = line.split_once(':')?.1.trim();
    ["Xeon Phi", "CPU Max"]
        .iter()
        .any(|part| name.contains(part))
        .then(|| name.to_owned())
}

fn huge_pages(path: &Path) -> Vec<HugePages> {
    let mut sizes: Vec<HugePages> = entries(&path.join("hugepages"))
        .iter()
        .filter_map(|pages| {
            let kib = pages
                .file_name()?
                .to_str()?
                .strip_prefix("hugepages-")?
                .strip_suffix("kB")?;
            let size = kib.parse::<u64>().ok()?.checked_mul(1024)?;
            let count = |name| number(&pages.join(name)).unwrap_or(0);
            Some(HugePages {
                size: Bytes(size),
                total: count("nr_hugepages"),
                free: count("free_hugepages"),
            })
        })
        .filter(|pages| pages.total > 0)
        .collect();
    sizes.sort_by_key(|pages| pages.size);
    sizes
}

/// Prints `0, 4`.
pub(crate) fn words(nodes: &[u32]) -> String {
    let words: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    words.join(", ")
}
