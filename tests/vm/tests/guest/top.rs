//! The screen of `isotherm top`, as a person reads it, compared with the daemon's status for programs.

use std::process::Command;

use isotherm_model::units::Bytes;
use serde_json::Value;

use crate::terminal::Terminal;

/// A running `isotherm top`.
pub(crate) struct Top(Terminal);

impl Top {
    /// Attaches to the daemon of this guest.
    pub(crate) fn start() -> Self {
        let mut command = Command::new("isotherm");
        command.arg("top");
        Self(Terminal::start(command))
    }

    /// True where the screen shows this status: tiers, use and hit rate of the fast tier, moves, and the share
    /// of each process. False also while it shows another epoch.
    pub(crate) fn shows(&self, status: &Value) -> bool {
        let screen = self.0.screen();
        let processes = status["processes"].as_array().expect("a list");
        let is_shown = |process| screen.lines().any(|line| is_row(line, process));
        texts(status).iter().all(|text| screen.contains(text))
            && is_near(self.hit_rate(), status["hit_rate"].as_f64())
            && processes.iter().all(is_shown)
    }

    /// The hit rate on the screen, 0 to 1; None while it is unknown.
    pub(crate) fn hit_rate(&self) -> Option<f64> {
        let screen = self.0.screen();
        let line = screen
            .lines()
            .find(|line| line.contains("hit rate ") && !line.contains("process"));
        let (_, rest) = line?.split_once("hit rate ")?;
        shares(rest).first().copied()
    }

    /// Ends it by a key, as a person does.
    pub(crate) fn quit(self) {
        let status = self.0.ends_by(b'q');
        assert!(status.success(), "isotherm top: {status}");
    }
}

/// The part of a status on the screen, without shares.
fn texts(status: &Value) -> Vec<String> {
    let (fast, capacity) = (&status["fast_bytes"], &status["capacity_bytes"]);
    let mut texts = vec![
        format!("epoch {} ", status["epochs"]),
        format!("fast {} of {}", bytes(fast), bytes(capacity)),
    ];
    for tier in status["tiers"].as_array().expect("a list") {
        let (size, free) = (bytes(&tier["bytes"]), bytes(&tier["available_bytes"]));
        let name = tier["name"].as_str().expect("a name");
        texts.push(format!("{name} {size} ({free} available)"));
    }
    for (when, moves) in [("last epoch", "last"), ("since start", "total")] {
        let [up, down] = ["promoted", "demoted"]
            .map(|way| format!("{} {way}", bytes(&status[moves][format!("{way}_bytes")])));
        texts.push(format!("{when}: {up}, {down}"));
    }
    texts
}

/// A row of the table of processes: number, program, resident bytes, fast share, hit rate, group.
fn is_row(line: &str, process: &Value) -> bool {
    let mut words = line.trim_start_matches('│').split_whitespace();
    let [fast, resident] = ["fast_bytes", "resident_bytes"].map(|key| bytes(&process[key]));
    let fast_share = fast.0 as f64 / resident.0.max(1) as f64;
    let shown = shares(line);
    words.next() == Some(&process["pid"].to_string())
        && words.next() == process["name"].as_str()
        && line.contains(&format!(" {resident} "))
        && is_near(shown.first().copied(), Some(fast_share))
        && is_near(shown.get(1).copied(), process["hit_rate"].as_f64())
}

/// The percentages in a line, as shares: `<0.1 %`, `4.2 %`, `83 %`.
fn shares(line: &str) -> Vec<f64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let pairs = words.windows(2).filter(|pair| pair[1].starts_with('%'));
    let number = |pair: &[&str]| pair[0].trim_start_matches('<').parse::<f64>().ok();
    pairs
        .filter_map(number)
        .map(|percent| percent / 100.0)
        .collect()
}

/// Both unknown, or equal up to rounding to whole percents.
fn is_near(shown: Option<f64>, wanted: Option<f64>) -> bool {
    match (shown, wanted) {
        (Some(shown), Some(wanted)) => (shown - wanted).abs() <= 0.005 + 1e-9,
        (shown, wanted) => shown.is_none() && wanted.is_none(),
    }
}

fn bytes(value: &Value) -> Bytes {
    Bytes(value.as_u64().expect("a number of bytes"))
}
