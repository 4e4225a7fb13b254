//! [`Topology`] reads the description of a machine from a small file, and makes the emulator's arguments for it.
//!
//! ```toml
//! [[node]]                    # nodes are numbered from 0 in their order
//! memory = "320MiB"
//! cpus = 2                    # default: none
//! left-free = "24MiB"         # optional: all but this much is filled before the tests begin
//! plugged-in = true           # optional: a module in a slot, whose memory the kernel adds online_movable, so that it can go offline
//! reach = [{ to = 1, latency = "300ns", bandwidth = "25GiB/s" }]   # reported by the firmware (HMAT)
//!
//! [[distance]]                # of two nodes, both ways; default: 20
//! between = [0, 1]
//! is = 24
//!
//! [expected]                  # expected by the tests, fastest first
//! tiers = [[0], [1]]          # by `isotherm tiers`
//! kernel-tiers = [[0, 1]]     # by the kernel, Linux 6.8 and newer
//! ```

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use isotherm_model::units::{Bytes, Nanos};
use serde::Deserialize;

/// Distance of two nodes without an entry in the file: ACPI's for a remote socket.
const REMOTE: u8 = 20;
/// Distance of a node to itself (ACPI, System Locality Information Table).
const LOCAL: u8 = 10;

/// A machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// The memory nodes, by number.
    pub node: Vec<Node>,
    #[serde(default)]
    distance: Vec<Distance>,
    /// The expected view of the machine from inside.
    pub expected: Expected,
}

/// One memory node.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Node {
    /// Bytes of memory.
    #[serde(deserialize_with = "quantity")]
    pub memory: Bytes,
    /// Number of processors.
    #[serde(default)]
    pub cpus: u32,
    /// Bytes that the stand leaves free before the first test; all, by default.
    #[serde(default, deserialize_with = "some_quantity")]
    pub left_free: Option<Bytes>,
    /// Whether its memory is a module in a slot, which the kernel can take offline, and no memory of the boot.
    #[serde(default)]
    pub plugged_in: bool,
    /// The firmware's figures for accesses from this node's processors to memory.
    #[serde(default)]
    pub reach: Vec<Reach>,
}

/// Speed of accesses from the processors of one node to the memory of another.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reach {
    /// The node whose memory is reached.
    pub to: u32,
    /// Latency of an access, in nanoseconds.
    #[serde(deserialize_with = "quantity")]
    pub latency: Nanos,
    /// Bytes a second.
    #[serde(deserialize_with = "rate")]
    pub bandwidth: Bytes,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Distance {
    between: [u32; 2],
    is: u8,
}

/// The tests' expectation, as lists of nodes, fastest first.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Expected {
    /// By `isotherm tiers`.
    pub tiers: Vec<Vec<u32>>,
    /// By the kernel.
    pub kernel_tiers: Vec<Vec<u32>>,
}

fn quantity<'de, D, Q>(deserializer: D) -> Result<Q, D::Error>
where
    D: serde::Deserializer<'de>,
    Q: FromStr,
    Q::Err: std::fmt::Display,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

fn some_quantity<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Bytes>, D::Error> {
    quantity(deserializer).map(Some)
}

fn rate<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let text = String::deserialize(deserializer)?;
    let size = text.strip_suffix("/s").ok_or_else(|| {
        serde::de::Error::custom(format!("\"{text}\" is not a rate such as 25GiB/s"))
    })?;
    size.parse().map_err(serde::de::Error::custom)
}

impl Topology {
    /// Reads a topology file.
    ///
    /// # Errors
    /// The file cannot be read, or describes no machine that can be built.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the topology {}", path.display()))?;
        let parsed = Self::parse(&text);
        parsed.with_context(|| format!("{} describes no machine", path.display()))
    }

    /// Parses the text of a topology file.
    ///
    /// # Errors
    /// The error, with its line where the text is not TOML of this form.
    pub fn parse(text: &str) -> Result<Self> {
        let topology: Self = toml::from_str(text)?;
        topology.check()?;
        Ok(topology)
    }

    fn check(&self) -> Result<()> {
        let count = self.node.len();
        let known = |node: u32| {
            let is_there = usize::try_from(node).is_ok_and(|node| node < count);
            ensure!(
                is_there,
                "node {node} is named, and there are {count} nodes"
            );
            Ok(())
        };
        if self.processors() == 0 {
            bail!("no node has processors; give one `cpus`");
        }
        for node in &self.node {
            ensure!(
                node.reach.is_empty() || node.cpus > 0,
                "a node without processors reaches nothing; move `reach` to a node that has `cpus`"
            );
            node.reach.iter().try_for_each(|reach| known(reach.to))?;
        }
        for distance in &self.distance {
            distance.between.into_iter().try_for_each(known)?;
            ensure!(
                distance.is > LOCAL,
                "a distance of {} is none: the own node has 10",
                distance.is
            );
        }
        Ok(())
    }

    fn processors(&self) -> u32 {
        self.node.iter().map(|node| node.cpus).sum()
    }

    /// Whether the firmware reports speeds.
    #[must_use]
    pub fn has_hmat(&self) -> bool {
        self.node.iter().any(|node| !node.reach.is_empty())
    }

    /// Distance between two nodes, as ACPI counts: 10 to itself.
    #[must_use]
    pub fn distance(&self, from: u32, to: u32) -> u8 {
        let is_it =
            |distance: &&Distance| distance.between == [from, to] || distance.between == [to, from];
        match self.distance.iter().find(is_it) {
            _ if from == to => LOCAL,
            Some(distance) => distance.is,
            None => REMOTE,
        }
    }

    /// The fastest path to a node's memory that the firmware reports.
    #[must_use]
    pub fn fastest_reach(&self, to: u32) -> Option<Reach> {
        let all = self.node.iter().flat_map(|node| &node.reach);
        all.filter(|reach| reach.to == to)
            .min_by_key(|reach| reach.latency)
            .copied()
    }

    /// The arguments that make QEMU this machine. With `one_processor`, each node that has
    /// processors gets one.
    #[must_use]
    pub fn arguments(&self, one_processor: bool) -> Vec<String> {
        let cpus_of = |node: &Node| {
            if one_processor {
                node.cpus.min(1)
            } else {
                node.cpus
            }
        };
        let hmat = self.has_hmat();
        let at_boot = self.node.iter().filter(|node| !node.plugged_in);
        let at_boot: Bytes = at_boot.map(|node| node.memory).sum();
        let total: Bytes = self.node.iter().map(|node| node.memory).sum();
        let slots = match total == at_boot {
            true => String::new(),
            false => format!(",slots=4,maxmem={}B", total.0),
        };
        let processors: u32 = self.node.iter().map(cpus_of).sum();
        let machine = if hmat { "q35,hmat=on" } else { "q35" };
        let mut arguments = words(&format!(
            "-machine {machine},sata=off,smbus=off,usb=off -smp {processors} -m {}B{slots}",
            at_boot.0
        ));
        let mut first_cpu = 0;
        for (number, node) in (0_u32..).zip(&self.node) {
            let cpus = cpus_of(node);
            let mut described = format!("node,nodeid={number}");
            if !node.plugged_in {
                described += &format!(",memdev=m{number}");
            }
            if cpus > 0 {
                described += &format!(",cpus={first_cpu}-{}", first_cpu + cpus - 1);
            }
            if hmat {
                described += &format!(",initiator={}", self.initiator(number));
            }
            first_cpu += cpus;
            arguments.extend(words(&format!(
                "-object memory-backend-ram,id=m{number},size={}B -numa {described}",
                node.memory.0
            )));
            if node.plugged_in {
                let module = format!("-device pc-dimm,id=d{number},memdev=m{number},node={number}");
                arguments.extend(words(&module));
            }
        }
        for from in 0..self.node.len() as u32 {
            for to in 0..self.node.len() as u32 {
                let distance = self.distance(from, to);
                arguments.extend(words(&format!(
                    "-numa dist,src={from},dst={to},val={distance}"
                )));
            }
        }
        arguments.extend(self.speeds());
        arguments
    }

    /// The node with the processors nearest to a node's memory.
    fn initiator(&self, number: u32) -> u32 {
        let with_cpus = (0_u32..).zip(&self.node).filter(|(_, node)| node.cpus > 0);
        with_cpus
            .min_by_key(|(from, _)| (self.distance(*from, number), *from))
            .map_or(0, |(from, _)| from)
    }

    fn speeds(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        for (from, node) in (0_u32..).zip(&self.node) {
            for reach in &node.reach {
                let entry = format!(
                    "hmat-lb,initiator={from},target={},hierarchy=memory",
                    reach.to
                );
                let (latency, bandwidth) = (reach.latency.0, reach.bandwidth.0);
                arguments.extend(words(&format!(
                    "-numa {entry},data-type=access-latency,latency={latency} \
                     -numa {entry},data-type=access-bandwidth,bandwidth={bandwidth}"
                )));
            }
        }
        arguments
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The folder of the topologies that the tests use.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("topologies")
}

/// Names of the topologies in a folder, sorted.
///
/// # Errors
/// The folder cannot be read.
pub fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("cannot list the topologies in {}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            name.strip_suffix(".toml").map(str::to_owned)
        })
        .collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"
        [[node]]
        memory = "256MiB"
        cpus = 2
        reach = [{ to = 0, latency = "100ns", bandwidth = "100GiB/s" }, { to = 1, latency = "300ns", bandwidth = "25GiB/s" }]
        [[node]]
        memory = "512MiB"
        [[distance]]
        between = [1, 0]
        is = 24
        [expected]
        tiers = [[0], [1]]
        kernel-tiers = [[0], [1]]
    "#;

    #[test]
    fn a_module_in_a_slot_is_no_memory_of_the_boot() {
        let module = TWO.replace(
            "memory = \"512MiB\"",
            "memory = \"512MiB\"\nplugged-in = true",
        );
        let arguments = Topology::parse(&module).unwrap().arguments(false).join(" ");
        let expected = "-m 268435456B,slots=4,maxmem=805306368B \
            -object memory-backend-ram,id=m0,size=268435456B -numa node,nodeid=0,memdev=m0,cpus=0-1,initiator=0 \
            -object memory-backend-ram,id=m1,size=536870912B -numa node,nodeid=1,initiator=0 \
            -device pc-dimm,id=d1,memdev=m1,node=1";
        assert!(arguments.contains(expected), "{arguments}");
    }

    #[test]
    fn a_topology_becomes_the_arguments_that_make_it() {
        let arguments = Topology::parse(TWO).unwrap().arguments(false).join(" ");
        let expected = "-machine q35,hmat=on,sata=off,smbus=off,usb=off -smp 2 -m 805306368B \
            -object memory-backend-ram,id=m0,size=268435456B -numa node,nodeid=0,memdev=m0,cpus=0-1,initiator=0 \
            -object memory-backend-ram,id=m1,size=536870912B -numa node,nodeid=1,memdev=m1,initiator=0 \
            -numa dist,src=0,dst=0,val=10 -numa dist,src=0,dst=1,val=24 \
            -numa dist,src=1,dst=0,val=24 -numa dist,src=1,dst=1,val=10 \
            -numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-latency,latency=100 \
            -numa hmat-lb,initiator=0,target=0,hierarchy=memory,data-type=access-bandwidth,bandwidth=107374182400 \
            -numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-latency,latency=300 \
            -numa hmat-lb,initiator=0,target=1,hierarchy=memory,data-type=access-bandwidth,bandwidth=26843545600";
        assert_eq!(arguments, expected);
    }

    #[test]
    fn without_speeds_there_is_no_hmat_and_no_initiator() {
        let text = TWO
            .lines()
            .filter(|line| !line.contains("reach"))
            .collect::<Vec<_>>();
        let topology = Topology::parse(&text.join("\n")).unwrap();
        let arguments = topology.arguments(true).join(" ");
        assert!(
            arguments.starts_with("-machine q35,sata=off"),
            "{arguments}"
        );
        assert!(arguments.contains("-smp 1 "), "{arguments}");
        assert!(!arguments.contains("initiator"), "{arguments}");
        assert_eq!(topology.fastest_reach(1).map(|reach| reach.latency), None);
    }

    #[test]
    fn what_cannot_be_built_is_refused_with_the_reason() {
        let refusals = [
            (TWO.replace("cpus = 2", ""), "no node has processors"),
            (
                TWO.replace(
                    "\"512MiB\"",
                    "\"512MiB\"\nreach = [{ to = 0, latency = \"9ns\", bandwidth = \"1GiB/s\" }]",
                ),
                "reaches nothing",
            ),
            (
                TWO.replace("to = 1", "to = 7"),
                "node 7 is named, and there are 2 nodes",
            ),
            (TWO.replace("25GiB/s", "25GiB"), "\"25GiB\" is not a rate"),
            (TWO.replace("\"512MiB\"", "\"512\""), "a unit is required"),
            (TWO.replace("is = 24", "is = 10"), "the own node has 10"),
            (TWO.replace("between", "among"), "unknown field"),
        ];
        for (text, reason) in refusals {
            let error = format!("{:#}", Topology::parse(&text).unwrap_err());
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn every_topology_of_the_folder_is_a_machine() {
        let names = names(&folder()).unwrap();
        assert!(names.len() >= 4, "{names:?}");
        for name in names {
            let path = folder().join(format!("{name}.toml"));
            Topology::read(&path).unwrap_or_else(|error| panic!("{error:#}"));
        }
    }
}
