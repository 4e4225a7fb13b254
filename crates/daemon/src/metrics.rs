//! The Prometheus endpoint: serves the status as metrics, in the OpenMetrics text format.
//! `docs/daemon.md` lists names and meanings.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::{Context, Result};
use isotherm_report::watch_status::{GroupStatus, NodeStatus, ProcessStatus, SourceStatus, Status};
use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::clients::{Asking, Timed, accept};
use crate::socket::StatusPublisher;

/// The time limit of a client for request and answer together: half of the timeout of a Prometheus that scrapes
/// every ten seconds.
const DEADLINE: Duration = Duration::from_secs(5);

/// Longest request that is read; its first line has the path.
const REQUEST_AT_MOST: usize = 8 << 10;

const FORM: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Labels of a process.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfProcess {
    pid: u32,
    name: String,
    control_group: String,
}

/// Label of a control group.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfGroup {
    control_group: String,
}

/// Labels of accesses.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfAccesses {
    evidence: String,
    tier: String,
}

/// Label of a source.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfSource {
    source: String,
}

/// Label of a memory node.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfNode {
    node: String,
}

/// Label of a reason.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Reason {
    reason: String,
}

/// Serves the board's status in a thread of its own. Returns the address, with the port that the
/// kernel chose for port 0.
///
/// # Errors
/// The address is in use or not local.
pub(crate) fn serve(address: SocketAddr, board: Arc<StatusPublisher>) -> Result<SocketAddr> {
    let listener = TcpListener::bind(address).with_context(|| {
        format!("serve.metrics = \"{address}\": cannot be listened on; name another port, or \"\" for none")
    })?;
    let address = listener
        .local_addr()
        .context("the metrics have no address")?;
    let serve = move |asking: Asking<TcpStream>| answer(&asking.client, &board);
    std::thread::Builder::new()
        .name("metrics".to_owned())
        .spawn(move || accept(listener.incoming(), serve))
        .context("the thread of the metrics cannot be started")?;
    Ok(address)
}

fn answer(client: &TcpStream, board: &StatusPublisher) -> io::Result<()> {
    let mut client = Timed::new(client, DEADLINE);
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    // To its end: closing a connection with unread data would lose the answer.
    while !request.ends_with(b"\r\n\r\n") && request.len() < REQUEST_AT_MOST {
        match client.read(&mut piece)? {
            0 => return Ok(()),
            length => request.extend_from_slice(&piece[..length]),
        }
    }
    let (status, form, body) = match request.strip_prefix(b"GET /metrics") {
        Some([b' ' | b'?', ..]) => ("200 OK", FORM, text(&board.get())),
        _ => (
            "404 Not Found",
            "text/plain",
            "ask for /metrics\n".to_owned(),
        ),
    };
    write!(
        client,
        "HTTP/1.1 {status}\r\nContent-Type: {form}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

type Value = Gauge<f64, AtomicU64>;
type Sum = Counter<f64, AtomicU64>;

/// The status as text.
fn text(status: &Status) -> String {
    let mut registry = Registry::with_prefix("isotherm");
    register_whole(&mut registry, status);
    register_moves(&mut registry, status);
    register_processes(&mut registry, &status.processes);
    register_groups(&mut registry, &status.groups);
    register_sources(&mut registry, &status.sources);
    register_nodes(&mut registry, &status.samples_by_node);
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut text, &registry);
    text
}

fn gauge(registry: &mut Registry, name: &str, help: &str, unit: Unit, value: f64) {
    let metric = Value::default();
    metric.set(value);
    registry.register_with_unit(name, help, unit, metric);
}

fn sum(registry: &mut Registry, name: &str, help: &str, unit: Unit, value: f64) {
    let metric = Sum::default();
    metric.inc_by(value);
    registry.register_with_unit(name, help, unit, metric);
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// Escapes a label's value for the text format. The library writes values unescaped, and the name of
/// a program may hold any text.
fn escaped(value: &str) -> String {
    let backslashes = value.replace('\\', "\\\\");
    backslashes.replace('"', "\\\"").replace('\n', "\\n")
}

fn register_whole(registry: &mut Registry, status: &Status) {
    let bytes = |value: u64| value as f64;
    let gauges = [
        (
            "fast_capacity",
            "Fast memory that watched processes may use",
            status.capacity_bytes,
        ),
        (
            "fast_used",
            "Fast memory that watched processes hold, or in a dry run would hold",
            status.fast_bytes,
        ),
        (
            "fast_wanted",
            "Memory that the policy assigns to the fast tier",
            status.wanted_bytes,
        ),
        (
            "watched_resident",
            "Resident private memory of watched processes",
            status.resident_bytes,
        ),
        (
            "daemon_resident",
            "Memory of the daemon, its program and libraries included",
            status.memory_bytes,
        ),
        (
            "daemon_private",
            "Part of it that has no copy in a file",
            status.memory_private_bytes,
        ),
        (
            "daemon_rings",
            "The kernel's memory for the daemon's samples",
            status.memory_rings_bytes,
        ),
    ];
    for (name, help, value) in gauges {
        gauge(registry, name, help, Unit::Bytes, bytes(value));
    }
    // An unknown share is not zero: it is left out.
    if let Some(rate) = status.hit_rate {
        let help = "Share of the observed accesses that fast memory served, 0 to 1, in the last epoch with any";
        // A unit of our own: the library's is a plural, and Prometheus's names end in `_ratio`.
        gauge(registry, "hit", help, Unit::Other("ratio".to_owned()), rate);
    }
    register_accesses(registry, status);
    let mode = Value::default();
    mode.set(f64::from(u8::from(status.dry_run)));
    registry.register("dry_run", "1 if the daemon moves nothing", mode);
    let epochs = Sum::default();
    epochs.inc_by(status.epochs as f64);
    registry.register("epochs", "Epochs since the start", epochs);
    let cost = "Processor time of the daemon and of kernel threads on its behalf";
    sum(
        registry,
        "processor",
        cost,
        Unit::Seconds,
        seconds(status.cpu_ns),
    );
}

/// The counts behind hit rates, so that a query can compute the rate of any period, with the number of
/// samples in it.
fn register_accesses(registry: &mut Registry, status: &Status) {
    let family = Family::<OfAccesses, Sum>::default();
    for seen in &status.accesses_seen {
        for (tier, accesses) in [("fast", seen.fast), ("slow", seen.slow)] {
            let label = OfAccesses {
                evidence: seen.evidence.clone(),
                tier: tier.to_owned(),
            };
            family.get_or_create(&label).inc_by(accesses as f64);
        }
    }
    let help = "Observed accesses, by source and by the tier of their data at that time";
    registry.register("accesses_seen", help, family);
}

fn register_moves(registry: &mut Registry, status: &Status) {
    let moves = &status.total;
    let (up, down) = (moves.promoted_bytes as f64, moves.demoted_bytes as f64);
    // Imagined moves of a dry run are no traffic, and must not be added to real ones.
    let (moved, imagined) = match status.dry_run {
        true => ((0.0, 0.0), (up, down)),
        false => ((up, down), (0.0, 0.0)),
    };
    for (name, help, bytes) in [
        ("promoted", "Moved to fast memory", moved.0),
        ("demoted", "Moved out of fast memory", moved.1),
        (
            "would_be_promoted",
            "Bytes that a dry run would have moved to fast memory",
            imagined.0,
        ),
        (
            "would_be_demoted",
            "Bytes that a dry run would have moved out of fast memory",
            imagined.1,
        ),
    ] {
        sum(registry, name, help, Unit::Bytes, bytes);
    }
    let family = Family::<Reason, Sum>::default();
    for (reason, bytes) in &moves.not_moved_bytes {
        let label = Reason {
            reason: escaped(reason),
        };
        family.get_or_create(&label).inc_by(*bytes as f64);
    }
    registry.register_with_unit("not_moved", "Not moved, by the reason", Unit::Bytes, family);
}

fn register_processes(registry: &mut Registry, processes: &[ProcessStatus]) {
    let (resident, fast) = (
        Family::<OfProcess, Value>::default(),
        Family::<OfProcess, Value>::default(),
    );
    for process in processes {
        let label = OfProcess {
            pid: process.pid,
            name: escaped(&process.name),
            control_group: escaped(&process.control_group),
        };
        resident
            .get_or_create(&label)
            .set(process.resident_bytes as f64);
        fast.get_or_create(&label).set(process.fast_bytes as f64);
    }
    let help = "Resident private memory of a watched process";
    registry.register_with_unit("process_resident", help, Unit::Bytes, resident);
    let help = "Fast memory that a watched process holds";
    registry.register_with_unit("process_fast", help, Unit::Bytes, fast);
}

fn register_groups(registry: &mut Registry, groups: &[GroupStatus]) {
    let family = || Family::<OfGroup, Value>::default();
    let (fast, floor, cap, priority) = (family(), family(), family(), family());
    for group in groups {
        let label = OfGroup {
            control_group: escaped(&group.control_group),
        };
        fast.get_or_create(&label).set(group.fast_bytes as f64);
        floor.get_or_create(&label).set(group.floor_bytes as f64);
        // A group without a cap has no sample: no cap is not 0.
        if let Some(bytes) = group.cap_bytes {
            cap.get_or_create(&label).set(bytes as f64);
        }
        priority.get_or_create(&label).set(group.priority);
    }
    for (name, help, family) in [
        (
            "group_fast",
            "Fast memory that a named control group holds",
            fast,
        ),
        (
            "group_floor",
            "Fast memory that it keeps whatever other groups do",
            floor,
        ),
        ("group_cap", "The most fast memory that it may have", cap),
    ] {
        registry.register_with_unit(name, help, Unit::Bytes, family);
    }
    let help = "Weight of its accesses";
    registry.register("group_priority", help, priority);
}

fn register_sources(registry: &mut Registry, sources: &[SourceStatus]) {
    let (usable, lost, cost) = (
        Family::<OfSource, Sum>::default(),
        Family::<OfSource, Sum>::default(),
        Family::<OfSource, Sum>::default(),
    );
    for source in sources {
        let label = OfSource {
            source: escaped(&source.name),
        };
        usable.get_or_create(&label).inc_by(source.usable as f64);
        lost.get_or_create(&label).inc_by(source.lost as f64);
        cost.get_or_create(&label).inc_by(seconds(source.cost_ns));
    }
    registry.register("source_usable", "Usable observations of a source", usable);
    registry.register("source_lost", "Lost observations of a source", lost);
    let help = "Processor time that a source used";
    registry.register_with_unit("source_processor", help, Unit::Seconds, cost);
}

fn register_nodes(registry: &mut Registry, nodes: &[NodeStatus]) {
    let family = Family::<OfNode, Sum>::default();
    for node in nodes {
        let number = node.node.map(|number| number.to_string());
        let label = OfNode {
            node: number.unwrap_or_else(|| "unknown".to_owned()),
        };
        family.get_or_create(&label).inc_by(node.samples as f64);
    }
    let help = "Trace samples by the memory node of their data";
    registry.register("node_samples", help, family);
}

#[cfg(test)]
mod tests {
    use super::{DEADLINE, serve, text};
    use crate::clients::CLIENTS_AT_MOST;
    use crate::socket::StatusPublisher;
    use isotherm_report::watch_status::{
        AccessesSeen, GroupStatus, MoveStatus, NodeStatus, ProcessStatus, SourceStatus, Status,
    };
    use std::collections::BTreeSet;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::sync::Arc;

    fn status() -> Status {
        Status {
            epochs: 7,
            fast_bytes: 4096,
            hit_rate: Some(0.25),
            accesses_seen: vec![AccessesSeen {
                evidence: "trace-samples".into(),
                fast: 1,
                slow: 3,
            }],
            total: MoveStatus {
                promoted_bytes: 8192,
                not_moved_bytes: [("in \"use\"".to_owned(), 5)].into(),
                ..MoveStatus::default()
            },
            processes: vec![ProcessStatus {
                pid: 4711,
                name: "a\nb".into(),
                fast_bytes: 12,
                ..ProcessStatus::default()
            }],
            groups: vec![GroupStatus {
                control_group: "/a".into(),
                floor_bytes: 64,
                priority: 0.5,
                ..GroupStatus::default()
            }],
            sources: vec![SourceStatus {
                name: "timer".into(),
                cost_ns: 1_500_000_000,
                ..SourceStatus::default()
            }],
            samples_by_node: [(None, 3), (Some(2), 9)]
                .map(|(node, samples)| NodeStatus { node, samples })
                .to_vec(),
            ..Status::default()
        }
    }

    #[test]
    fn metrics_have_names_with_units_and_labels_are_escaped() {
        let text = text(&status());
        for line in [
            "isotherm_fast_used_bytes 4096.0",
            "isotherm_hit_ratio 0.25",
            "# UNIT isotherm_hit_ratio ratio",
            "isotherm_accesses_seen_total{evidence=\"trace-samples\",tier=\"slow\"} 3.0",
            "isotherm_epochs_total 7.0",
            "isotherm_promoted_bytes_total 8192.0",
            "isotherm_not_moved_bytes_total{reason=\"in \\\"use\\\"\"} 5.0",
            "isotherm_process_fast_bytes{pid=\"4711\",name=\"a\\nb\",control_group=\"\"} 12.0",
            "isotherm_source_processor_seconds_total{source=\"timer\"} 1.5",
            "isotherm_node_samples_total{node=\"2\"} 9.0",
            "isotherm_node_samples_total{node=\"unknown\"} 3.0",
            "isotherm_group_floor_bytes{control_group=\"/a\"} 64.0",
            "isotherm_group_priority{control_group=\"/a\"} 0.5",
            "# EOF",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
        assert!(
            !super::text(&Status::default()).contains("isotherm_hit_ratio"),
            "unknown is not zero"
        );
        assert!(
            !text.contains("isotherm_group_cap_bytes{"),
            "no cap is not a cap of zero"
        );
    }

    #[test]
    fn what_a_dry_run_imagines_is_not_counted_as_moved() {
        let dry = Status {
            dry_run: true,
            ..status()
        };
        for (status, moved, imagined) in [(status(), 8192, 0), (dry, 0, 8192)] {
            let text = text(&status);
            for (name, bytes) in [("promoted", moved), ("would_be_promoted", imagined)] {
                let line = format!("isotherm_{name}_bytes_total {bytes}.0");
                assert!(text.lines().any(|other| other == line), "{line}\n{text}");
            }
        }
    }

    /// Metrics are in base units with the unit at the end, one thing and no plural: <https://prometheus.io/docs/practices/naming>.
    #[test]
    fn names_follow_the_conventions_of_prometheus() {
        let text = text(&status());
        let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        let names: Vec<&str> = names.filter_map(|line| line.split(' ').next()).collect();
        assert!(names.len() > 20, "{names:?}");
        for name in names {
            for wrong in [
                "_ratios",
                "_total",
                "_percent",
                "_milliseconds",
                "_kilobytes",
            ] {
                assert!(!name.ends_with(wrong), "{name}");
            }
        }
        for line in text.lines().filter_map(|line| line.strip_prefix("# UNIT ")) {
            let (name, unit) = line.split_once(' ').expect("a name and a unit");
            assert!(name.ends_with(&format!("_{unit}")), "{line}");
            assert!(["bytes", "seconds", "ratio"].contains(&unit), "{line}");
        }
    }

    /// Names of metrics in all texts of a JSON value.
    fn names(value: &serde_json::Value, found: &mut BTreeSet<String>) {
        match value {
            serde_json::Value::String(text) => {
                let words = text.split(|c: char| !c.is_ascii_lowercase() && c != '_');
                let names = words.filter(|word| word.starts_with("isotherm_"));
                found.extend(names.map(str::to_owned));
            }
            serde_json::Value::Array(list) => list.iter().for_each(|value| names(value, found)),
            serde_json::Value::Object(map) => map.values().for_each(|value| names(value, found)),
            _ => {}
        }
    }

    #[test]
    fn the_dashboard_asks_for_every_metric_and_for_no_other() {
        let dashboard = include_str!("../../../docs/deploy/grafana-dashboard.json");
        let dashboard = serde_json::from_str(dashboard).expect("JSON");
        let mut asked = BTreeSet::new();
        names(&dashboard, &mut asked);
        let mut status = status();
        status.groups[0].cap_bytes = Some(9);
        let text = text(&status);
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let told = lines.filter_map(|line| line.split(['{', ' ']).next());
        let told: BTreeSet<String> = told.map(str::to_owned).collect();
        assert_eq!(asked, told);
    }

    fn get(address: SocketAddr, request: &str) -> String {
        let mut client = TcpStream::connect(address).expect("connects");
        client.write_all(request.as_bytes()).expect("writes");
        let patience = Some(12 * DEADLINE);
        client.set_read_timeout(patience).expect("may wait");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("reads");
        answer
    }

    #[test]
    fn metrics_are_served_and_other_paths_are_not() {
        let board = Arc::new(StatusPublisher::default());
        board.put(status());
        let address = serve("127.0.0.1:0".parse().expect("an address"), board).expect("serves");
        let answer = get(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.ends_with("# EOF\n"), "{answer}");
        assert!(get(address, "GET /metricsandmore HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(get(address, "POST / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    }

    #[test]
    fn a_client_that_sends_a_byte_now_and_then_keeps_no_other_out() {
        let board = Arc::new(StatusPublisher::default());
        board.put(status());
        let address = serve("127.0.0.1:0".parse().expect("an address"), board).expect("serves");
        // Twice the limit of clients, all of them in the middle of an endless request.
        let slow = (0..2 * CLIENTS_AT_MOST).map(|_| {
            let mut client = TcpStream::connect(address).expect("connects");
            client.write_all(b"GET /metr").expect("writes");
            client
        });
        let mut slow: Vec<TcpStream> = slow.collect();
        // A client that sends a byte at a time is closed too: the deadline is for the whole
        // request.
        let feed = std::thread::spawn(move || {
            while !slow.is_empty() {
                std::thread::sleep(DEADLINE / 10);
                slow.retain_mut(|client| client.write_all(b"x").is_ok());
            }
        });
        let answer = get(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(answer.ends_with("# EOF\n"), "{answer}");
        feed.join().expect("all are let go");
    }
}
