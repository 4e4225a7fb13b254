//! `Shown` has the tiers, nodes, measurements, devices and swap of `isotherm tiers`, and shows them as text, as JSON or as a tiers file.

use isotherm_model::emulation::Emulation;
use isotherm_model::loaded_latency::LoadPoint;
use isotherm_model::shared_bandwidth::{BytesPerSecond, SharedBandwidth};
use isotherm_model::tier::{Tier, Tiers};
use isotherm_model::units::{Bytes, Nanos};
use isotherm_report::table::DataTable;
use isotherm_topology::cpu_list;
use isotherm_topology::measure::{PageOutCosts, Pair, Rates};
use isotherm_topology::nodes::{HugePages, Node};
use isotherm_topology::{Detected, Inventory, PlacedNode, SwapSpace, TiersFile};
use serde_json::{Value, json};

use super::devices::{self, or_dash};
use super::swap;

/// The data to show.
pub(super) struct Shown {
    /// The tiers, fastest first.
    pub tiers: Tiers,
    /// The nodes of the machine, each with its tier.
    pub nodes: Vec<PlacedNode>,
    /// The measurements, new or from the file.
    pub measured: Vec<Pair>,
    /// Notes that limit the meaning of the tiers.
    pub notes: Vec<String>,
    /// Time and memory of a measurement by this command.
    pub cost: Option<(Nanos, Bytes)>,
    /// The memory devices, where they are asked for.
    pub devices: Option<Inventory>,
    /// Swap, and its costs where they were measured.
    pub swap: (SwapSpace, Option<PageOutCosts>),
}

impl Shown {
    /// Prints them as text or as JSON.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub(super) fn print(&self, json: bool) -> anyhow::Result<()> {
        isotherm_console::print(&match json {
            true => self.json(),
            false => self.text(),
        })
    }

    /// Detected tiers without measurements.
    pub(super) fn detected(detected: Detected, swap: (SwapSpace, Option<PageOutCosts>)) -> Self {
        Self {
            tiers: detected.tiers,
            nodes: detected.nodes,
            measured: Vec::new(),
            notes: detected.notes,
            cost: None,
            devices: None,
            swap,
        }
    }

    /// The content of a tiers file.
    pub(super) fn file(&self) -> TiersFile {
        TiersFile {
            tiers: self.tiers.clone(),
            measured: self.measured.clone(),
        }
    }

    /// Tables, and a line for each note.
    pub(super) fn text(&self) -> String {
        let mut text = tiers_table(&self.tiers);
        if let Some(emulation) = self.tiers.emulation() {
            text.push_str(&sentence(&emulation));
        }
        if !self.nodes.is_empty() {
            text.push('\n');
            text.push_str(&self.nodes_table());
        }
        if !self.measured.is_empty() {
            text.push('\n');
            text.push_str(&pairs_table(&self.measured));
            if self.measured.iter().any(|pair| !pair.loaded.is_empty()) {
                text.push('\n');
                text.push_str(&loads_table(&self.measured));
            }
        }
        if let Some((time, memory)) = self.cost {
            text.push_str(&format!(
                "measuring took {time} and {memory} of memory at most\n"
            ));
        }
        if let Some(inventory) = &self.devices {
            text.push('\n');
            text.push_str(&devices::text(inventory));
        }
        text.push_str(&swap::text(&self.swap.0, self.swap.1.as_ref()));
        for note in &self.notes {
            text.push_str(&format!("note: {note}\n"));
        }
        text
    }

    /// One object; `docs/formats.md` names its fields.
    pub(super) fn json(&self) -> String {
        let tiers: Vec<Value> = self.tiers.all().iter().map(tier_json).collect();
        let nodes: Vec<Value> = self.nodes.iter().map(|it| self.node_json(it)).collect();
        let measured: Vec<Value> = self.measured.iter().map(pair_json).collect();
        let cost = self
            .cost
            .map(|(time, memory)| json!({ "elapsed_ns": time.0, "memory_bytes": memory.0 }));
        let mut object = json!({
            "schema_version": 1,
            "emulated": self.tiers.emulates(),
            "tiers": tiers,
            "nodes": nodes,
            "measured": measured,
            "measuring": cost,
            "swap": swap::json(&self.swap.0, self.swap.1.as_ref()),
            "notes": self.notes,
        });
        if let Some(inventory) = &self.devices {
            object["devices"] = devices::json(inventory);
        }
        format!("{object:#}\n")
    }

    fn tier_of(&self, placed: &PlacedNode) -> Option<&str> {
        let tier = self.tiers.get(placed.tier?)?;
        Some(&tier.name)
    }

    fn nodes_table(&self) -> String {
        let huge_pages = |node: &Node| Vec::from_iter(node.huge_pages.iter().map(kept));
        DataTable::of(&self.nodes)
            .right("node", |placed| placed.node.number)
            .left("tier", |placed| {
                self.tier_of(placed).unwrap_or("-").to_owned()
            })
            .right("memory", |placed| placed.node.memory)
            .right("available", |placed| or_dash(placed.node.available))
            .left("processors", |placed| {
                non_empty(cpu_list::print(&placed.node.cpus))
            })
            .left("huge pages", move |placed| {
                non_empty(huge_pages(&placed.node).join(", "))
            })
            .left("why", |placed| placed.reason.clone())
            .render()
    }

    fn node_json(&self, placed: &PlacedNode) -> Value {
        let node = &placed.node;
        let huge_pages = node.huge_pages.iter().map(|pages| {
            json!({
                "page_bytes": pages.size.0, "total": pages.total, "free": pages.free,
            })
        });
        let distances = node.distances.iter();
        let distances = distances.map(|(to, distance)| (to.to_string(), json!(distance)));
        json!({
            "node": node.number,
            "tier": self.tier_of(placed),
            "memory_bytes": node.memory.0,
            "available_bytes": node.available.map(|bytes| bytes.0),
            "processors": cpu_list::print(&node.cpus),
            "huge_pages": huge_pages.collect::<Vec<_>>(),
            "distances": distances.collect::<serde_json::Map<_, _>>(),
            "kernel_tier": node.kernel_tier,
            "made_of": node.make.as_ref().map(ToString::to_string),
            "reason": placed.reason,
        })
    }
}

fn non_empty(text: String) -> String {
    or_dash(Some(text).filter(|text| !text.is_empty()))
}

/// `512 x 2 MiB, 500 free`.
fn kept(pages: &HugePages) -> String {
    format!("{} x {}, {} free", pages.total, pages.size, pages.free)
}

/// What an access to slow memory costs, in a line.
fn sentence(emulation: &Emulation) -> String {
    match emulation {
        Emulation::Time(costs) => format!(
            "emulated: an access to slow memory takes {} times as long, {} times in a stream; a moved page {}\n{}",
            costs.latency,
            costs.bandwidth,
            costs.migrate,
            costs.shared.as_ref().map_or_else(String::new, limit)
        ),
        Emulation::PageTrap(costs) => format!(
            "emulated: every {} the first access to a slow page takes {}, {} more if it is hot; a moved page {}\n",
            costs.period, costs.access, costs.hot, costs.migrate
        ),
    }
}

fn limit(shared: &SharedBandwidth) -> String {
    let programs = shared.machine().map_or_else(
        || "the processes of a run".to_owned(),
        |machine| format!("all runs on the machine \"{machine}\""),
    );
    format!("emulated: {programs} share {shared}\n")
}

fn made_of(tier: &Tier) -> String {
    match tier.is_emulated() {
        true => "emulated".to_owned(),
        false => format!("nodes {}", cpu_list::print(tier.nodes())),
    }
}

fn bandwidth(bytes_per_second: u64) -> String {
    format!("{:.1} GB/s", bytes_per_second as f64 / 1e9)
}

fn tiers_table(tiers: &Tiers) -> String {
    DataTable::of(tiers.all())
        .left("tier", |tier| tier.name.clone())
        .left("made of", made_of)
        .right("capacity", |tier| tier.capacity)
        .right("latency", |tier| or_dash(tier.latency))
        .right("read", |tier| or_dash(tier.read_bandwidth.map(bandwidth)))
        .right("write", |tier| or_dash(tier.write_bandwidth.map(bandwidth)))
        .left("why here", |tier| tier.reason.clone())
        .render()
}

fn pairs_table(pairs: &[Pair]) -> String {
    let rows: Vec<(usize, &Pair, &Rates)> = pairs.iter().flat_map(pair_rates).collect();
    // The latency of one load, for any number of threads.
    let latency = |(index, pair, _): &(usize, &Pair, &Rates)| match index {
        0 => pair.latency.to_string(),
        _ => String::new(),
    };
    DataTable::of(&rows)
        .right("processors of", |row| format!("node {}", row.1.cpu_node))
        .right("memory of", |row| format!("node {}", row.1.memory_node))
        .right("latency", latency)
        .right("threads", |row| row.2.threads)
        .right("read", |row| bandwidth(row.2.read))
        .right("write", |row| bandwidth(row.2.write))
        .right("triad", |row| bandwidth(row.2.triad))
        .render()
}

/// The latency of each pair as the load rises.
fn loads_table(pairs: &[Pair]) -> String {
    let rows: Vec<(&Pair, &LoadPoint)> = pairs.iter().flat_map(pair_loads).collect();
    DataTable::of(&rows)
        .right("processors of", |row| format!("node {}", row.0.cpu_node))
        .right("memory of", |row| format!("node {}", row.0.memory_node))
        .right("load", |row| bandwidth(row.1.bandwidth))
        .right("latency under load", |row| row.1.latency)
        .render()
}

fn pair_loads(pair: &Pair) -> impl Iterator<Item = (&Pair, &LoadPoint)> {
    pair.loaded.iter().map(move |point| (pair, point))
}

fn load_json(point: &LoadPoint) -> Value {
    json!({
        "bytes_per_second": point.bandwidth,
        "latency_ns": point.latency.0,
    })
}

fn pair_rates(pair: &Pair) -> impl Iterator<Item = (usize, &Pair, &Rates)> {
    let rates = pair.rates.iter().enumerate();
    rates.map(move |(index, rates)| (index, pair, rates))
}

fn tier_json(tier: &Tier) -> Value {
    let nodes = (!tier.is_emulated()).then(|| tier.nodes());
    let costs = tier.emulation().map(|emulation| match emulation {
        Emulation::Time(costs) => {
            let limit = |of: fn(&SharedBandwidth) -> Option<BytesPerSecond>| {
                costs.shared.as_ref().and_then(of).map(BytesPerSecond::get)
            };
            let machine = costs.shared.as_ref().and_then(SharedBandwidth::machine);
            json!({
                "latency_factor": costs.latency.get(),
                "bandwidth_factor": costs.bandwidth.get(),
                "migrate_ns": costs.migrate.0,
                "limit_bytes_per_second": limit(SharedBandwidth::slow),
                "fast_limit_bytes_per_second": limit(SharedBandwidth::fast),
                "machine": machine.map(|name| name.to_string()),
            })
        }
        Emulation::PageTrap(costs) => json!({
            "period_ns": costs.period.0,
            "access_ns": costs.access.0,
            "hot_ns": costs.hot.0,
            "migrate_ns": costs.migrate.0,
        }),
    });
    json!({
        "name": tier.name,
        "nodes": nodes,
        "emulation": costs,
        "capacity_bytes": tier.capacity.0,
        "latency_ns": tier.latency.map(|latency| latency.0),
        "read_bytes_per_second": tier.read_bandwidth,
        "write_bytes_per_second": tier.write_bandwidth,
        "loaded_latency": tier.loaded.iter().map(load_json).collect::<Vec<_>>(),
        "reason": tier.reason,
    })
}

fn pair_json(pair: &Pair) -> Value {
    let rates = pair.rates.iter().map(|rates| {
        json!({
            "threads": rates.threads,
            "read_bytes_per_second": rates.read,
            "write_bytes_per_second": rates.write,
            "triad_bytes_per_second": rates.triad,
        })
    });
    json!({
        "cpu_node": pair.cpu_node,
        "memory_node": pair.memory_node,
        "latency_ns": pair.latency.0,
        "rates": rates.collect::<Vec<_>>(),
        "loaded_latency": pair.loaded.iter().map(load_json).collect::<Vec<_>>(),
    })
}
