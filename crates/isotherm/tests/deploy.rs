//! Tests that the program accepts what docs/deploy ships: configurations, capabilities, the Slurm scripts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde::Deserialize;
use serde_yaml_ng::Value;

const ISOTHERM: &str = env!("CARGO_BIN_EXE_isotherm");

fn deploy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/deploy")
        .join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(deploy(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A configuration that watches, of the programs of this user, only the test itself.
fn base() -> String {
    format!(
        "[processes]\npids = [{}]\n[memory]\nfast = \"1GiB\"\n",
        std::process::id()
    )
}

/// The messages of a daemon with a configuration that runs for one epoch and moves nothing.
fn checked(text: &str) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("daemon.toml");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(ISOTHERM);
    let command = command.args(["daemon", "--dry-run", "--once", "--config"]);
    command.arg(file).output().expect("it starts")
}

/// The lines of a block of YAML below a key, without their indentation.
fn block(text: &str, key: &str) -> String {
    let lines = text.lines().skip_while(|line| line.trim() != key).skip(1);
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let mut lines = lines.peekable();
    let by = lines.peek().map_or(0, |line| indentation(line));
    let inside = lines.take_while(|line| line.is_empty() || indentation(line) >= by);
    inside
        .map(|line| line.get(by..).unwrap_or_default().to_owned() + "\n")
        .collect()
}

#[test]
fn the_configuration_of_kubernetes_is_taken_and_its_capabilities_are_those_of_the_unit() {
    let manifest = read("kubernetes/isotherm.yaml");
    let config = block(&manifest, "daemon.toml: |");
    assert!(config.contains("[serve]"), "{config}");
    let output = checked(&(config + &base()));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let unit = include_str!("../../../setup/isotherm.service");
    let line = |text: &str, begin: &str| {
        let mut lines = text.lines().map(str::trim);
        lines
            .find(|line| line.starts_with(begin))
            .expect(begin)
            .to_owned()
    };
    let names = |text: String| {
        let words = text.split(|c: char| !c.is_ascii_uppercase() && c != '_');
        let mut names: Vec<String> = words
            .filter_map(|word| word.strip_prefix("CAP_").or(Some(word)))
            .filter(|word| word.len() > 3)
            .map(str::to_owned)
            .collect();
        names.sort();
        names
    };
    let in_unit = names(line(unit, "CapabilityBoundingSet="));
    assert_eq!(names(line(&manifest, "add: [")), in_unit);
    assert!(in_unit.len() >= 4, "{in_unit:?}");
}

/// The documents of a YAML file below `kubernetes`, by kind.
fn documents(name: &str) -> BTreeMap<String, Value> {
    let text = read(&format!("kubernetes/{name}"));
    let documents = serde_yaml_ng::Deserializer::from_str(&text);
    let documents = documents.map(|document| Value::deserialize(document).expect("YAML"));
    let kind = |document: Value| (string(&document["kind"]), document);
    documents.map(kind).collect()
}

fn string(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// The names of metrics in a text.
fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_lowercase() && c != '_');
    let names = words.filter(|word| word.starts_with("isotherm_"));
    names.map(str::to_owned).collect()
}

#[test]
fn the_kustomization_names_files_that_exist() {
    let base: Value =
        serde_yaml_ng::from_str(&read("kubernetes/kustomization.yaml")).expect("YAML");
    let resources = base["resources"].as_sequence().expect("a list");
    assert!(!resources.is_empty());
    for name in resources {
        let name = name.as_str().expect("a name");
        assert!(!read(&format!("kubernetes/{name}")).is_empty(), "{name}");
    }
}

#[test]
fn a_prometheus_in_the_cluster_reaches_the_metrics_of_each_node() {
    let manifest = documents("isotherm.yaml");
    let config: toml::Table = string(&manifest["ConfigMap"]["data"]["daemon.toml"])
        .parse()
        .expect("TOML");
    let address = config["serve"]["metrics"].as_str().expect("an address");
    let address: std::net::SocketAddr = address.parse().expect("an address");
    assert!(!address.ip().is_loopback(), "{address}: of the pod alone");
    let pod = &manifest["DaemonSet"]["spec"]["template"];
    let port = &pod["spec"]["containers"][0]["ports"][0];
    assert_eq!(port["containerPort"], u64::from(address.port()));
    assert_eq!(
        pod["spec"]["tolerations"][0]["operator"], "Exists",
        "a tainted node has a daemon too"
    );
    let labels = &pod["metadata"]["labels"];
    let policy = &manifest["NetworkPolicy"]["spec"];
    assert_eq!(&policy["podSelector"]["matchLabels"], labels);
    assert_eq!(policy["ingress"][0]["ports"][0]["port"], port["name"]);
    let namespaces = &policy["ingress"][0]["from"][0]["namespaceSelector"];
    assert!(namespaces["matchLabels"].is_mapping(), "not everybody");
    let monitor = &documents("monitoring.yaml")["PodMonitor"]["spec"];
    assert_eq!(&monitor["selector"]["matchLabels"], labels);
    let endpoint = &monitor["podMetricsEndpoints"][0];
    assert_eq!(endpoint["port"], port["name"]);
    assert_eq!(endpoint["path"], "/metrics");
}

#[test]
fn alerts_are_about_metrics_that_the_daemon_has() {
    // All metrics are on the dashboard, by a test beside them.
    let there = metrics(&read("grafana-dashboard.json"));
    let rules = &documents("monitoring.yaml")["PrometheusRule"]["spec"]["groups"][0]["rules"];
    let rules = rules.as_sequence().expect("a list");
    let mut asked = BTreeSet::new();
    for rule in rules {
        let name = string(&rule["alert"]);
        asked.extend(metrics(&string(&rule["expr"])));
        assert!(rule["for"].is_string(), "{name}: a moment is no alert");
        assert!(rule["labels"]["severity"].is_string(), "{name}");
        let summary = string(&rule["annotations"]["summary"]);
        assert!(summary.contains("{{ $labels.instance }}"), "{name}: where?");
    }
    assert!(asked.len() >= 4 && rules.len() >= 4, "{asked:?}");
    let unknown: Vec<&String> = asked.difference(&there).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// The scripts of Slurm with a configuration of their own and a reload that is only noted.
struct Node(tempfile::TempDir);

impl Node {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("base.toml"), base()).unwrap();
        Self(directory)
    }

    /// Runs a script as Slurm does; both must end well whatever the job asks for.
    fn run(&self, script: &str, job: u32, comment: &str) {
        let reload = format!("touch {}", self.0.path().join("reloaded").display());
        let output = Command::new(deploy("slurm").join(script))
            .env("ISOTHERM_DIRECTORY", self.0.path())
            .env("ISOTHERM", ISOTHERM)
            .env("ISOTHERM_RELOAD", reload)
            .env("SLURM_JOB_ID", job.to_string())
            .env("SLURM_JOB_COMMENT", comment)
            .output()
            .expect("bash");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    fn config(&self) -> String {
        std::fs::read_to_string(self.0.path().join("daemon.toml")).unwrap_or_default()
    }
}

#[test]
fn a_job_gets_its_share_and_gives_it_back() {
    let node = Node::new();
    node.run("prolog", 7, "isotherm floor=600MiB cap=800MiB priority=2");
    let group = "[groups.\"/system.slice/slurmstepd.scope/job_7\"]\nfloor = \"600MiB\"\ncap = \"800MiB\"\npriority=2\n";
    assert!(
        node.config().starts_with("[processes]") && node.config().contains(group),
        "{}",
        node.config()
    );
    assert!(node.0.path().join("reloaded").exists());
    // What does not fit beside it is refused, and the job starts without.
    node.run("prolog", 8, "isotherm floor=600MiB");
    assert!(!node.config().contains("job_8"), "{}", node.config());
    node.run("epilog", 7, "");
    assert_eq!(node.config().trim(), base().trim());
    node.run("prolog", 8, "isotherm floor=600MiB");
    assert!(node.config().contains("job_8"));
}

#[test]
fn what_a_user_writes_into_a_comment_never_reaches_the_configuration_unchecked() {
    let node = Node::new();
    for comment in [
        "isotherm floor=1GiB\"\n[moves]\nrate=\"1B",
        "isotherm floor=$(id)",
        "isotherm priority=1\ncap=\"0B\"",
        "isotherm speed=3",
        "something else",
        "",
    ] {
        node.run("prolog", 9, comment);
        assert!(
            !node.config().contains("rate") && !node.config().contains("uid"),
            "{}",
            node.config()
        );
        assert!(
            !node.config().contains("\ncap=") && !node.config().contains("speed"),
            "{}",
            node.config()
        );
    }
}
