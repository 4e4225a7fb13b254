//! The Prometheus endpoint: serves the status as metrics, in the OpenMetrics text format.
//! `docs/daemon.md` lists names and meanings.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use isotherm_report::watch_status::{
    AccessesSeen, GroupStatus, NodeStatus, ProcessStatus, SourceStatus, Status,
};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use crate::clients::{Asking, Timed, accept};
use crate::socket::StatusPublisher;

/// The time limit of a client for request and answer together: half of the timeout of a Prometheus that scrapes
/// every ten seconds.
const DEADLINE: Duration = Duration::from_secs(5);

/// Longest request that is read; its first line has the path.
const REQUEST_AT_MOST: usize = 8 << 10;

const FORM: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The units that the name of a metric may end in.
const UNITS: [&str; 3] = ["_bytes", "_seconds", "_ratio"];

/// Serves the published status in a thread of its own. Returns the address, with the port that the
/// kernel chose for port 0.
///
/// # Errors
/// The address is in use or not local.
pub(crate) fn serve(address: SocketAddr, publisher: Arc<StatusPublisher>) -> Result<SocketAddr> {
    let listener = TcpListener::bind(address).with_context(|| {
        format!("serve.metrics = \"{address}\": cannot be listened on; name another port, or \"\" for none")
    })?;
    let address = listener
        .local_addr()
        .context("the metrics have no address")?;
    let serve = move |asking: Asking| answer(&asking.client, &publisher);
    std::thread::Builder::new()
        .name("metrics".to_owned())
        .spawn(move || accept(listener.incoming(), serve))
        .context("the thread of the metrics cannot be started")?;
    Ok(address)
}

fn answer(client: &OwnedFd, publisher: &StatusPublisher) -> io::Result<()> {
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
        Some([b' ' | b'?', ..]) => ("200 OK", FORM, text(&publisher.get())),
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

/// The status as text.
fn text(status: &Status) -> String {
    let mut registry = Registry::with_prefix("isotherm");
    registry.register_collector(Box::new(Scrape(metrics(status))));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut text, &registry);
    text
}

/// The name and value of each label.
type Labels = Vec<(&'static str, String)>;

/// A metric with a sample for each set of labels, or one sample without labels.
#[derive(Debug)]
struct Metric {
    /// Ends in the unit.
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    samples: Vec<(Labels, f64)>,
}

/// A line for each metric: its kind, name and help, and its samples.
macro_rules! metrics {
    ($($kind:ident $name:ident $help:literal = $samples:expr;)*) => {
        vec![$(Metric {
            name: stringify!($name),
            help: concat!($help, "."),
            kind: MetricType::$kind,
            samples: $samples,
        }),*]
    };
}

/// Every metric; one without samples is left out, because an unknown share or a missing cap is not zero.
fn metrics(status: &Status) -> Vec<Metric> {
    let (processes, groups, sources) = (&status.processes, &status.groups, &status.sources);
    let sums = [status.total.promoted_bytes, status.total.demoted_bytes];
    // Imagined moves of a dry run are no traffic, and must not be added to real ones.
    let ([promoted, demoted], [would_promote, would_demote]) = match status.dry_run {
        true => ([0, 0], sums),
        false => (sums, [0, 0]),
    };
    let paged = status.paged.as_slice();
    metrics! {
        Gauge fast_capacity_bytes "Fast memory that watched processes may use" = one(status.capacity_bytes);
        Gauge fast_used_bytes "Fast memory that watched processes hold, or in a dry run would hold" = one(status.fast_bytes);
        Gauge fast_wanted_bytes "Memory that the policy assigns to the fast tier" = one(status.wanted_bytes);
        Gauge split_units "Units of which little is hot, placed part by part" = one(status.units_split);
        Gauge split_fast_bytes "Memory of the fast tier that their hot parts have" = one(status.split_fast_bytes);
        Gauge watched_resident_bytes "Resident private memory of watched processes" = one(status.resident_bytes);
        Gauge daemon_resident_bytes "Memory of the daemon, its program and libraries included" = one(status.memory_bytes);
        Gauge daemon_private_bytes "Part of it that has no copy in a file" = one(status.memory_private_bytes);
        Gauge daemon_rings_bytes "The kernel's memory for the daemon's samples" = one(status.memory_rings_bytes);
        Gauge hit_ratio "Share of the observed accesses that fast memory served, 0 to 1, in the last epoch with any"
            = each(status.hit_rate.as_slice(), |_| Vec::new(), |rate| *rate);
        Counter accesses_seen "Observed accesses, by source and by the tier of their data at that time" = accesses_seen(status);
        Gauge dry_run "1 if the daemon moves nothing" = one(status.dry_run.into());
        Counter epochs "Epochs since the start" = one(status.epochs);
        Counter processor_seconds "Processor time of the daemon and of kernel threads on its behalf"
            = each(&[status.cpu_ns], |_| Vec::new(), |cost| seconds(*cost));
        Counter promoted_bytes "Moved to fast memory" = one(promoted);
        Counter demoted_bytes "Moved out of fast memory" = one(demoted);
        Counter would_be_promoted_bytes "Bytes that a dry run would have moved to fast memory" = one(would_promote);
        Counter would_be_demoted_bytes "Bytes that a dry run would have moved out of fast memory" = one(would_demote);
        Counter not_moved_bytes "Not moved, by the reason" = not_moved(status);
        Gauge paged_out_bytes "Memory of watched processes that is paged out" = each(paged, |_| Vec::new(), |it| it.out_bytes as f64);
        Gauge paged_out_taken_bytes "Memory that it takes there, compressed" = each(paged, |_| Vec::new(), |it| it.out_taken_bytes as f64);
        Gauge paged_saved_bytes "Memory that is saved by it: what is paged out, less what it takes there" = each(paged, |_| Vec::new(), |it| it.saved_bytes() as f64);
        Counter paged_left_bytes "Memory that was paged out" = each(paged, |_| Vec::new(), |it| it.left_bytes as f64);
        Counter paged_returned_bytes "Memory that came back because a program touched it" = each(paged, |_| Vec::new(), |it| it.returned_bytes as f64);
        Counter paged_mistakes "Units that came back soon after they were paged out" = each(paged, |_| Vec::new(), |it| it.mistakes as f64);
        Counter paged_stall_seconds "Time that programs waited for memory that came back" = each(paged, |_| Vec::new(), |it| seconds(it.stalled_ns));
        Gauge process_resident_bytes "Resident private memory of a watched process" = each(processes, of_process, |it| it.resident_bytes as f64);
        Gauge process_fast_bytes "Fast memory that a watched process holds" = each(processes, of_process, |it| it.fast_bytes as f64);
        Gauge group_fast_bytes "Fast memory that a named control group holds" = each(groups, of_group, |it| it.fast_bytes as f64);
        Gauge group_floor_bytes "Fast memory that it keeps whatever other groups do" = each(groups, of_group, |it| it.floor_bytes as f64);
        Gauge group_cap_bytes "The most fast memory that it may have" = each(groups, of_group, |it| it.cap_bytes.map(|cap| cap as f64));
        Gauge group_priority "Weight of its accesses" = each(groups, of_group, |it| it.priority);
        Counter source_usable "Usable observations of a source" = each(sources, of_source, |it| it.usable as f64);
        Counter source_lost "Lost observations of a source" = each(sources, of_source, |it| it.lost as f64);
        Counter source_processor_seconds "Processor time that a source used" = each(sources, of_source, |it| seconds(it.cost_ns));
        Counter node_samples "Trace samples by the memory node of their data" = each(&status.samples_by_node, of_node, |it| it.samples as f64);
    }
}

fn one(value: u64) -> Vec<(Labels, f64)> {
    vec![(Vec::new(), value as f64)]
}

/// A sample for each of the values that have one.
fn each<T, V: Into<Option<f64>>>(
    of: &[T],
    labels: impl Fn(&T) -> Labels,
    value: impl Fn(&T) -> V,
) -> Vec<(Labels, f64)> {
    let sample = |one| Some((labels(one), value(one).into()?));
    of.iter().filter_map(sample).collect()
}

fn of_process(process: &ProcessStatus) -> Labels {
    vec![
        ("pid", process.pid.to_string()),
        ("name", process.name.clone()),
        ("control_group", process.control_group.clone()),
    ]
}

fn of_group(group: &GroupStatus) -> Labels {
    vec![("control_group", group.control_group.clone())]
}

fn of_source(source: &SourceStatus) -> Labels {
    vec![("source", source.name.clone())]
}

fn of_node(node: &NodeStatus) -> Labels {
    let number = node.node.map(|number| number.to_string());
    vec![("node", number.unwrap_or_else(|| "unknown".to_owned()))]
}

/// The counts behind hit rates, so that a query can compute the rate of any period, with the number of
/// samples in it.
fn accesses_seen(status: &Status) -> Vec<(Labels, f64)> {
    let of_source = |seen: &AccessesSeen| {
        [("fast", seen.fast), ("slow", seen.slow)].map(|(tier, accesses)| {
            let labels = vec![("method", seen.method.clone()), ("tier", tier.to_owned())];
            (labels, accesses as f64)
        })
    };
    status.accesses_seen.iter().flat_map(of_source).collect()
}

fn not_moved(status: &Status) -> Vec<(Labels, f64)> {
    let reasons = status.total.not_moved_bytes.iter();
    let sample =
        |(reason, bytes): (&String, &u64)| (vec![("reason", reason.clone())], *bytes as f64);
    reasons.map(sample).collect()
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// The metrics of one answer.
#[derive(Debug)]
struct Scrape(Vec<Metric>);

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut known = self.0.iter().filter(|metric| !metric.samples.is_empty());
        known.try_for_each(|metric| metric.encode(&mut encoder))
    }
}

impl Metric {
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let unit = UNITS.into_iter().find(|unit| self.name.ends_with(unit));
        let name = self.name.strip_suffix(unit.unwrap_or_default());
        let unit = unit.map(|unit| Unit::Other(unit[1..].to_owned()));
        let mut metric = encoder.encode_descriptor(
            name.unwrap_or(self.name),
            self.help,
            unit.as_ref(),
            self.kind,
        )?;
        for (labels, value) in &self.samples {
            if labels.is_empty() {
                return self.encode_value(*value, metric);
            }
            let labels = labels.iter().map(|(name, value)| (*name, escaped(value)));
            self.encode_value(*value, metric.encode_family(&labels.collect::<Labels>())?)?;
        }
        Ok(())
    }

    fn encode_value(&self, value: f64, encoder: MetricEncoder<'_>) -> fmt::Result {
        match self.kind {
            MetricType::Counter => ConstCounter::new(value).encode(encoder),
            _ => ConstGauge::new(value).encode(encoder),
        }
    }
}

/// Escapes a label's value for the text format. The library writes values unescaped, and the name of
/// a program may hold any text.
fn escaped(value: &str) -> String {
    let backslashes = value.replace('\\', "\\\\");
    backslashes.replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::{DEADLINE, serve, text};
    use crate::clients::CLIENTS_AT_MOST;
    use crate::socket::StatusPublisher;
    use isotherm_report::paged_status::PagedStatus;
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
                method: "trace-samples".into(),
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
            "isotherm_accesses_seen_total{method=\"trace-samples\",tier=\"slow\"} 3.0",
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
        status.paged = Some(PagedStatus::default());
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
        let publisher = Arc::new(StatusPublisher::default());
        publisher.put(status());
        let address = serve("127.0.0.1:0".parse().expect("an address"), publisher).expect("serves");
        let answer = get(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.ends_with("# EOF\n"), "{answer}");
        assert!(get(address, "GET /metricsandmore HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(get(address, "POST / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    }

    #[test]
    fn a_client_that_sends_a_byte_now_and_then_keeps_no_other_out() {
        let publisher = Arc::new(StatusPublisher::default());
        publisher.put(status());
        let address = serve("127.0.0.1:0".parse().expect("an address"), publisher).expect("serves");
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
