//! `group` joins nodes of similar speed to tiers ([`Group`]), fastest first, for [`super::detect()`]: nodes with figures of speed by these,
//! the others by the kernel's own tier, the kind of memory and the distance. `told` takes the speed of each node from the firmware's
//! figures, in the view of its nearest processors or of one node ([`View`]); measured speeds come from `measure`. No file is read here.
//!
//! A node with figures (measured, or of the firmware) is judged by them, each node in the view of
//! its nearest processors. So the memory of the other socket is no slower tier of its own: a
//! program's threads run on both. A user who places for one socket requests that view.
//!
//! ```text
//! Xeon Max   DDR  nodes 0-7    100 ns,  77 GB/s  score 1.3   second
//!            HBM  nodes 8-15   120 ns, 410 GB/s  score 0.3   first, though its latency is higher
//! CXL        DDR  nodes 0, 1   110 ns, 150 GB/s  score 0.7   first
//!            CXL  node 2       250 ns,  50 GB/s  score 5.0   second
//! kmem       DDR  nodes 0, 1   processors        "home"      first
//!            NVM  nodes 2, 3   kernel tier 22    "slower"    second
//! ```
//!
//! The score is latency divided by bandwidth: memory with twice of both ranks the same. The kernel
//! orders its tiers so (`mt_perf_to_adistance` in `mm/memory-tiers.c`).
//!
//! Nodes without figures ("silent") are in one of three bands around the nodes with processors:
//! faster, home, slower. Within a band the kernel's tier, the kind of memory that a driver names,
//! and distance separate them. A kernel that puts all nodes into one tier gives no information, so
//! it never joins nodes that the other rules separate.

use std::collections::{BTreeMap, BTreeSet};

use isotherm_model::loaded_latency::LoadPoint;

use super::nodes::{Make, Node};

/// The processors from which the machine is viewed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// Each node from its nearest processors.
    #[default]
    Machine,
    /// All nodes from the processors of the node with this number.
    Node(u32),
}

/// The known speed of a node in the current view.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Speed {
    /// Nanoseconds of a load.
    pub latency: Option<f64>,
    /// Bytes a second of reading.
    pub read: Option<f64>,
    /// Bytes a second of writing.
    pub write: Option<f64>,
    /// Nodes form one tier while their scores are within this factor.
    pub tolerance: f64,
    /// Nodes of different kinds never form one tier, whatever their figures.
    pub kind: usize,
    /// Latencies under load, by rising load; empty where none were measured.
    pub loaded: Vec<LoadPoint>,
    /// The source of the figures, and the figures: `HMAT (access1): 100 ns, 102 GB/s`.
    pub words: String,
}

/// The nodes of one tier.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    /// The nodes with the reason for each.
    pub members: Vec<(u32, String)>,
    /// The fastest node; `None` for silent nodes.
    first: Option<Scored>,
    has_cpus: bool,
}

/// A node with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scored {
    number: u32,
    has_cpus: bool,
    /// Small is fast.
    score: f64,
    latency: f64,
    tolerance: f64,
    kind: usize,
}

/// Memory with processors is of one kind where its latencies agree, even if one node has only half
/// the bandwidth: that node has fewer DIMMs, not other ones.
const FEWER_DIMMS: f64 = 2.0;

impl Scored {
    /// Is this node of the kind of `first`, which is as fast or faster?
    fn is_kind_of(&self, first: &Self) -> bool {
        if self.kind != first.kind {
            return false;
        }
        let tolerance = self.tolerance.max(first.tolerance);
        let ratio = self.score / first.score;
        let latencies = (self.latency / first.latency).max(first.latency / self.latency);
        let both_with_cpus = self.has_cpus && first.has_cpus;
        ratio <= tolerance || both_with_cpus && latencies <= tolerance && ratio <= FEWER_DIMMS
    }
}

/// The figures that are compared.
#[derive(Clone, Copy)]
enum Metric {
    Both,
    Latency,
    Bandwidth,
}

impl Metric {
    fn score(self, speed: &Speed) -> Option<(f64, f64)> {
        match self {
            Self::Both => Some((speed.latency? / speed.read?, speed.latency?)),
            Self::Latency => Some((speed.latency?, speed.latency?)),
            Self::Bandwidth => Some((1.0 / speed.read?, 1.0)),
        }
    }
}

/// Groups nodes, fastest group first. `all` includes the nodes without memory, which distances
/// need; `speeds` has the known speed of each node in this view.
pub(crate) fn group(
    nodes: &[Node],
    all: &[Node],
    speeds: &BTreeMap<u32, Speed>,
    view: View,
) -> Vec<Group> {
    let scored = scored(nodes, speeds);
    let silent = nodes
        .iter()
        .filter(|node| scored.iter().all(|scored| scored.number != node.number));
    let silent = by_description(silent, all, view, !scored.is_empty());
    let groups = by_score(scored, speeds);
    joined(groups, silent)
}

/// The nodes that can be compared by one kind of figure: the best kind that a node with processors
/// has, as the reference for faster and slower.
fn scored(nodes: &[Node], speeds: &BTreeMap<u32, Speed>) -> Vec<Scored> {
    let with = |metric: Metric| -> Vec<Scored> {
        let scored = nodes.iter().filter_map(|node| {
            let speed = speeds.get(&node.number)?;
            let (score, latency) = metric.score(speed)?;
            Some(Scored {
                number: node.number,
                has_cpus: !node.cpus.is_empty(),
                score,
                latency,
                tolerance: speed.tolerance,
                kind: speed.kind,
            })
        });
        scored.collect()
    };
    [Metric::Both, Metric::Latency, Metric::Bandwidth]
        .into_iter()
        .map(with)
        .find(|scored| scored.len() == nodes.len() || scored.iter().any(|node| node.has_cpus))
        .unwrap_or_default()
}

fn by_score(mut scored: Vec<Scored>, speeds: &BTreeMap<u32, Speed>) -> Vec<Group> {
    let rest = |node: &Scored| (!node.has_cpus, node.kind, node.number);
    scored.sort_by(|a, b| a.score.total_cmp(&b.score).then(rest(a).cmp(&rest(b))));
    let mut groups: Vec<Group> = Vec::new();
    for node in scored {
        let words = speeds.get(&node.number).map(|speed| speed.words.clone());
        let member = (node.number, words.unwrap_or_default());
        let kin = groups
            .iter_mut()
            .rev()
            .find(|group| group.first.is_some_and(|first| node.is_kind_of(&first)));
        match kin {
            Some(group) => {
                group.members.push(member);
                group.has_cpus |= node.has_cpus;
            }
            None => groups.push(Group {
                members: vec![member],
                first: Some(node),
                has_cpus: node.has_cpus,
            }),
        }
    }
    groups
}

/// The bands of silent nodes, fastest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Band {
    Faster,
    Home,
    Slower,
}

/// The distance at which another socket begins (`REMOTE_DISTANCE` in the kernel's
/// `include/linux/topology.h`); clusters of one socket are nearer.
const REMOTE: u64 = 20;
/// Represents every distance within a socket.
const HERE: u64 = 0;

/// The properties that separate silent nodes, in the order of their precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Description {
    band: Band,
    kernel_tier: u32,
    make: u8,
    distance: u64,
}

/// Groups by description; `others_have_figures` only changes the text.
fn by_description<'a>(
    silent: impl Iterator<Item = &'a Node>,
    all: &[Node],
    view: View,
    others_have_figures: bool,
) -> BTreeMap<Description, Group> {
    let tiers: BTreeSet<u32> = all.iter().filter_map(|node| node.kernel_tier).collect();
    let kernel_tells = tiers.len() > 1;
    let home = all.iter().filter(|node| !node.cpus.is_empty());
    let home_tier = home.filter_map(|node| node.kernel_tier).min();
    let mut groups = BTreeMap::<Description, Group>::new();
    for node in silent {
        let has_cpus = !node.cpus.is_empty();
        let tier = node.kernel_tier.filter(|_| kernel_tells);
        let is_faster = matches!(node.make, Some(Make::InPackage(_)))
            || matches!((tier, home_tier), (Some(tier), Some(home)) if tier < home);
        let distance = distance(node, all, view);
        let description = Description {
            band: match (has_cpus, is_faster) {
                (true, _) => Band::Home,
                (false, true) => Band::Faster,
                (false, false) => Band::Slower,
            },
            kernel_tier: tier.unwrap_or(0),
            make: rank(node.make.as_ref()),
            distance: match (has_cpus, view, distance) {
                (true, View::Machine, _) => HERE,
                (true, View::Node(_), Some(distance)) if distance < REMOTE => HERE,
                (_, _, distance) => distance.unwrap_or(u64::MAX),
            },
        };
        let mut parts = described(node, tier, distance, view);
        if others_have_figures {
            parts.push("without figures to compare".to_owned());
        }
        let group = groups.entry(description).or_insert(Group {
            members: Vec::new(),
            first: None,
            has_cpus,
        });
        group.members.push((node.number, parts.join("; ")));
    }
    groups
}

/// Unknown memory ranks between DRAM-like and slower memory.
fn rank(make: Option<&Make>) -> u8 {
    match make {
        Some(Make::InPackage(_)) => 0,
        Some(Make::Cxl(_)) => 1,
        Some(Make::SpecialPurpose(_)) => 2,
        None => 3,
        Some(Make::Persistent(_)) => 4,
    }
}

/// The distance from the view's node, or from the nearest processors.
fn distance(node: &Node, nodes: &[Node], view: View) -> Option<u64> {
    let from = |from: &Node| from.distances.get(&node.number).copied();
    match view {
        View::Node(number) => nodes.iter().find(|it| it.number == number).and_then(from),
        View::Machine => {
            let near = nodes.iter().filter(|it| !it.cpus.is_empty());
            near.filter_map(from).min()
        }
    }
}

/// Why a silent node has its position, in words.
fn described(node: &Node, tier: Option<u32>, distance: Option<u64>, view: View) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(tier.map(|tier| format!("the kernel's memory tier {tier}")));
    parts.extend(node.make.as_ref().map(Make::to_string));
    let from = match view {
        View::Machine => String::new(),
        View::Node(from) => format!(" from node {from}"),
    };
    let place = distance.map(|distance| format!("distance {distance}{from}"));
    let is_unknown = parts.is_empty();
    parts.push(match (node.cpus.is_empty(), place) {
        (true, Some(place)) => format!("{place}, no processors"),
        (true, None) => "no processors and no distance".to_owned(),
        (false, Some(place)) if view != View::Machine => format!("{place}, has processors"),
        (false, _) => "has processors".to_owned(),
    });
    if is_unknown && node.cpus.is_empty() {
        parts.push("treated as slow, because its kind of memory is unknown".to_owned());
    }
    parts
}

/// Inserts silent groups among those with figures: the ones faster than the nodes with processors
/// before them, silent nodes with processors among them, the rest at the end.
fn joined(mut groups: Vec<Group>, silent: BTreeMap<Description, Group>) -> Vec<Group> {
    let mut home = groups.iter().position(|group| group.has_cpus);
    for (description, group) in silent {
        match (description.band, home) {
            (Band::Faster, Some(at)) => {
                groups.insert(at, group);
                home = Some(at + 1);
            }
            // In the view of one node, those of other sockets come after it.
            (Band::Home, Some(at)) if description.distance == HERE => {
                groups[at].members.extend(group.members);
            }
            (Band::Home, Some(at)) => {
                let last = groups.iter().rposition(|group| group.has_cpus);
                groups.insert(last.unwrap_or(at) + 1, group);
            }
            _ => groups.push(group),
        }
    }
    groups
}

/// The speeds from the firmware, in this view.
pub(crate) fn told(nodes: &[Node], view: View) -> BTreeMap<u32, Speed> {
    let told = nodes.iter().filter_map(|node| {
        let speed = match view {
            View::Machine => own(node)?,
            View::Node(from) => from_node(node, from, nodes)?,
        };
        let words = match &node.make {
            Some(make) => format!("{}; {make}", speed.words),
            None => speed.words,
        };
        Some((node.number, Speed { words, ..speed }))
    });
    told.collect()
}

/// In the view of one node, keeps the groups of the whole machine apart: behind a link all memory
/// may look alike.
pub(crate) fn refine(speeds: &mut BTreeMap<u32, Speed>, machine: &[Group]) {
    for (kind, group) in machine.iter().enumerate() {
        for (number, _) in &group.members {
            if let Some(speed) = speeds.get_mut(number) {
                speed.kind = kind;
            }
        }
    }
}

/// About the tolerance of the kernel's own tiers: 128 of 576 units of abstract distance.
const TOLD_TOLERANCE: f64 = 1.22;

/// The speed of a node in the view of its nearest processors.
fn own(node: &Node) -> Option<Speed> {
    let figures = node.figures.as_ref()?;
    let mut speed = Speed {
        latency: figures.latency.map(|latency| latency.0 as f64),
        read: figures.read.map(|read| read as f64),
        write: figures.write.map(|write| write as f64),
        tolerance: TOLD_TOLERANCE,
        // Persistent memory with the figures of DRAM: the firmware copied them.
        kind: usize::from(rank(node.make.as_ref())),
        ..Speed::default()
    };
    speed.words = format!("HMAT ({}): {}", figures.access, figures_in_words(&speed));
    Some(speed)
}

/// The speed of a node in the view of `from`'s processors. The kernel has figures only for the
/// nearest processors, so those of farther ones are estimated: latency grows as the distance does
/// (which is the definition of distances), and a link to another socket is assumed to carry no more
/// than `from`'s own memory does.
fn from_node(node: &Node, from: u32, nodes: &[Node]) -> Option<Speed> {
    let speed = own(node)?;
    let figures = node.figures.as_ref()?;
    if node.number == from || figures.initiators.contains(&from) {
        return Some(speed);
    }
    let viewer = nodes.iter().find(|it| it.number == from)?;
    let distance = *viewer.distances.get(&node.number)?;
    let is_initiator = |it: &&Node| match figures.initiators.as_slice() {
        [] => !it.cpus.is_empty(),
        initiators => initiators.contains(&it.number),
    };
    let near = nodes.iter().filter(is_initiator);
    let near = near.filter_map(|it| it.distances.get(&node.number)).min()?;
    let factor = (distance.max(1) as f64 / (*near).max(1) as f64).max(1.0);
    let link = viewer.figures.as_ref().filter(|_| distance >= REMOTE);
    let capped = |own: Option<f64>, link: Option<u64>| {
        own.map(|own| link.map_or(own, |link| own.min(link as f64)))
    };
    let mut seen = Speed {
        latency: speed.latency.map(|latency| latency * factor),
        read: capped(speed.read, link.and_then(|link| link.read)),
        write: capped(speed.write, link.and_then(|link| link.write)),
        ..speed
    };
    seen.words = format!(
        "{} from its nearest processors; at distance {distance} from node {from} estimated as {}",
        seen.words,
        figures_in_words(&seen)
    );
    Some(seen)
}

/// `100 ns, 102 GB/s`.
pub(crate) fn figures_in_words(speed: &Speed) -> String {
    let latency = speed.latency.map(|nanos| format!("{nanos:.0} ns"));
    let read = speed.read.map(|rate| format!("{} GB/s", gigabytes(rate)));
    let parts: Vec<String> = latency.into_iter().chain(read).collect();
    parts.join(", ")
}

fn gigabytes(rate: f64) -> String {
    match rate / 1e9 {
        small if small < 10.0 => format!("{small:.1}"),
        large => format!("{large:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use isotherm_model::units::{Bytes, Nanos};
    use proptest::prelude::*;

    use super::{View, group, refine, told};
    use crate::nodes::{Figures, Make, Node};

    fn make() -> impl Strategy<Value = Option<Make>> {
        prop_oneof![
            Just(None),
            Just(Some(Make::Cxl("dax0.0".to_owned()))),
            Just(Some(Make::Persistent("dax1.0".to_owned()))),
            Just(Some(Make::InPackage("Xeon Max".to_owned()))),
        ]
    }

    fn node(number: u32) -> impl Strategy<Value = Node> {
        let figures = (
            proptest::option::of(10_u64..2_000),
            proptest::option::of(1_u64 << 30..1 << 40),
        );
        let distances = proptest::collection::vec(10_u64..40, 8);
        let tier = proptest::option::of(0_u32..6);
        (any::<bool>(), figures, distances, tier, make()).prop_map(
            move |(has_cpus, (latency, read), distances, kernel_tier, make)| Node {
                number,
                memory: Bytes(1 << 30),
                available: None,
                cpus: if has_cpus { vec![number] } else { vec![] },
                distances: (0..8).zip(distances).collect(),
                figures: (latency.is_some() || read.is_some()).then(|| Figures {
                    access: "access1",
                    initiators: vec![number],
                    latency: latency.map(Nanos),
                    read,
                    write: None,
                }),
                disbelieved: vec![],
                kernel_tier,
                make,
                huge_pages: vec![],
            },
        )
    }

    fn nodes() -> impl Strategy<Value = Vec<Node>> {
        (1_u32..8).prop_flat_map(|count| (0..count).map(node).collect::<Vec<_>>())
    }

    /// The groups as sets of numbers.
    fn grouped(nodes: &[Node], view: View) -> Vec<Vec<u32>> {
        let mut speeds = told(nodes, View::Machine);
        let mut groups = group(nodes, nodes, &speeds, View::Machine);
        if view != View::Machine {
            speeds = told(nodes, view);
            refine(&mut speeds, &groups);
            groups = group(nodes, nodes, &speeds, view);
        }
        let numbers = |group: &super::Group| {
            let mut numbers: Vec<u32> = group.members.iter().map(|(number, _)| *number).collect();
            numbers.sort_unstable();
            numbers
        };
        groups.iter().map(numbers).collect()
    }

    proptest! {
        #[test]
        fn each_node_is_in_one_group_whatever_the_order_and_the_view(
            nodes in nodes(),
            from in 0_u32..8,
        ) {
            for view in [View::Machine, View::Node(from)] {
                let groups = grouped(&nodes, view);
                let mut all: Vec<u32> = groups.iter().flatten().copied().collect();
                all.sort_unstable();
                prop_assert_eq!(all, (0..nodes.len() as u32).collect::<Vec<_>>());
                let backwards: Vec<Node> = nodes.iter().rev().cloned().collect();
                prop_assert_eq!(grouped(&backwards, view), groups);
            }
        }

        #[test]
        fn two_makes_are_never_one_tier_by_figures(mut nodes in nodes()) {
            // With figures for all nodes; silent nodes have other rules.
            for node in &mut nodes {
                node.figures = Some(Figures {
                    access: "access1",
                    initiators: vec![],
                    latency: Some(Nanos(100)),
                    read: Some(1 << 34),
                    write: None,
                });
            }
            let makes: BTreeMap<u32, Option<Make>> =
                nodes.iter().map(|node| (node.number, node.make.clone())).collect();
            let speeds = told(&nodes, View::Machine);
            for group in group(&nodes, &nodes, &speeds, View::Machine) {
                let makes = group.members.iter().map(|(number, _)| &makes[number]);
                prop_assert_eq!(makes.collect::<BTreeSet<_>>().len(), 1);
            }
        }
    }
}
