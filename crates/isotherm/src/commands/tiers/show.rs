//! Tiers, nodes and measurements as text and as JSON.

use isotherm_model::tier::{Emulation, Tier, TierKind, Tiers};
use isotherm_model::units::{Bytes, Nanos};
use isotherm_report::table::{left, render, right};
use isotherm_topology::cpu_list;
use isotherm_topology::measure::{Pair, Rates};
use isotherm_topology::nodes::{HugePages, Node};
use isotherm_topology::{Detected, PlacedNode, TiersFile};
use serde_json::{Value, json};

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
    pub(super) fn detected(detected: Detected) -> Self {
        Self {
            tiers: detected.tiers,
            nodes: detected.nodes,
            measured: Vec::new(),
            notes: detected.notes,
            cost: None,
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
        if let Some(costs) = self.tiers.all().iter().find_map(emulation) {
            text.push_str(&format!(
                "emulated: every {} the first access to a slow page takes {}, {} more if it is \
                 hot; a moved page {}\n",
                costs.period, costs.access, costs.hot, costs.migrate
            ));
        }
        if !self.nodes.is_empty() {
            text.push('\n');
            text.push_str(&self.nodes_table());
        }
        if !self.measured.is_empty() {
            text.push('\n');
            text.push_str(&pairs_table(&self.measured));
        }
        if let Some((time, memory)) = self.cost {
            text.push_str(&format!(
                "measuring took {time} and {memory} of memory at most\n"
            ));
        }
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
        let object = json!({
            "schema_version": 1,
            "emulated": self.tiers.emulates(),
            "tiers": tiers,
            "nodes": nodes,
            "measured": measured,
            "measuring": cost,
            "notes": self.notes,
        });
        format!("{object:#}\n")
    }

    fn tier_of(&self, placed: &PlacedNode) -> Option<&str> {
        let tier = self.tiers.get(placed.tier?)?;
        Some(&tier.name)
    }

    fn nodes_table(&self) -> String {
        let columns = [
            right("node"),
            left("tier"),
            right("memory"),
            right("available"),
            left("processors"),
            left("huge pages"),
            left("why"),
        ];
        let row = |placed: &PlacedNode| {
            let Node {
                number,
                memory,
                available,
                cpus,
                huge_pages,
                ..
            } = &placed.node;
            vec![
                number.to_string(),
                self.tier_of(placed).unwrap_or("-").to_owned(),
                memory.to_string(),
                available.map_or("-".to_owned(), |bytes| bytes.to_string()),
                or_dash(cpu_list::print(cpus)),
                or_dash(huge_pages.iter().map(kept).collect::<Vec<_>>().join(", ")),
                placed.reason.clone(),
            ]
        };
        let rows: Vec<_> = self.nodes.iter().map(row).collect();
        render(&columns, &rows)
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

fn or_dash(text: String) -> String {
    match text.is_empty() {
        true => "-".to_owned(),
        false => text,
    }
}

/// `512 x 2 MiB, 500 free`.
fn kept(pages: &HugePages) -> String {
    format!("{} x {}, {} free", pages.total, pages.size, pages.free)
}

const fn emulation(tier: &Tier) -> Option<Emulation> {
    match tier.kind {
        TierKind::EmulatedSlow(costs) => Some(costs),
        TierKind::EmulatedFast | TierKind::Nodes(_) => None,
    }
}

fn made_of(tier: &Tier) -> String {
    match &tier.kind {
        TierKind::EmulatedFast | TierKind::EmulatedSlow(_) => "emulated".to_owned(),
        TierKind::Nodes(nodes) => format!("nodes {}", cpu_list::print(nodes)),
    }
}

fn bandwidth(bytes_per_second: u64) -> String {
    format!("{:.1} GB/s", bytes_per_second as f64 / 1e9)
}

fn tiers_table(tiers: &Tiers) -> String {
    let columns = [
        left("tier"),
        left("made of"),
        right("capacity"),
        right("latency"),
        right("read"),
        right("write"),
        left("why here"),
    ];
    let rate = |rate: Option<u64>| rate.map_or("-".to_owned(), bandwidth);
    let row = |tier: &Tier| {
        vec![
            tier.name.clone(),
            made_of(tier),
            tier.capacity.to_string(),
            tier.latency
                .map_or("-".to_owned(), |latency| latency.to_string()),
            rate(tier.read_bandwidth),
            rate(tier.write_bandwidth),
            tier.reason.clone(),
        ]
    };
    let rows: Vec<_> = tiers.all().iter().map(row).collect();
    render(&columns, &rows)
}

fn pairs_table(pairs: &[Pair]) -> String {
    let columns = [
        right("processors of"),
        right("memory of"),
        right("latency"),
        right("threads"),
        right("read"),
        right("write"),
        right("triad"),
    ];
    let row = |(index, (pair, rates)): (usize, (&Pair, &Rates))| {
        let latency = pair.latency.to_string();
        vec![
            format!("node {}", pair.cpu_node),
            format!("node {}", pair.memory_node),
            // The latency of one load, for any number of threads.
            if index == 0 { latency } else { String::new() },
            rates.threads.to_string(),
            bandwidth(rates.read),
            bandwidth(rates.write),
            bandwidth(rates.triad),
        ]
    };
    let of_pair = |pair| pair_rates(pair).enumerate().map(row).collect::<Vec<_>>();
    let rows: Vec<_> = pairs.iter().flat_map(of_pair).collect();
    render(&columns, &rows)
}

fn pair_rates(pair: &Pair) -> impl Iterator<Item = (&Pair, &Rates)> {
    pair.rates.iter().map(move |rates| (pair, rates))
}

fn tier_json(tier: &Tier) -> Value {
    let nodes = match &tier.kind {
        TierKind::Nodes(nodes) => Some(nodes.clone()),
        TierKind::EmulatedFast | TierKind::EmulatedSlow(_) => None,
    };
    let costs = emulation(tier).map(|costs| {
        json!({
            "period_ns": costs.period.0,
            "access_ns": costs.access.0,
            "hot_ns": costs.hot.0,
            "migrate_ns": costs.migrate.0,
        })
    });
    json!({
        "name": tier.name,
        "nodes": nodes,
        "emulation": costs,
        "capacity_bytes": tier.capacity.0,
        "latency_ns": tier.latency.map(|latency| latency.0),
        "read_bytes_per_second": tier.read_bandwidth,
        "write_bytes_per_second": tier.write_bandwidth,
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
    })
}
