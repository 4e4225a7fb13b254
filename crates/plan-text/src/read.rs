//! [`read()`] reads a plan from its text, checks it, and reports the first error that it finds, with its line. This file reads the headers,
//! the tiers and the `site` lines; other modules read the lines of parts, leading memory, small sites, colours and frames.

use std::collections::{BTreeMap, BTreeSet};

use isotherm_model::count_unit::CountUnit;
use isotherm_model::emulation::{Emulation, PageTrapCosts, TimeCosts};
use isotherm_model::loaded_latency::LoadPoint;
use isotherm_model::plan::{Assignment, Caller, ExpectedTimes, Plan, PlanBounds, Value, Weight};
use isotherm_model::shared_bandwidth::{MachineName, SharedBandwidth};
use isotherm_model::site::{CallerId, SiteId};
use isotherm_model::tier::{Placement, Tier, TierKind, Tiers};
use isotherm_model::units::{Bytes, Nanos};

use super::limits::{VALUE_AT_MOST, WEIGHT_AT_MOST};
use super::line::{Line, Pairs, PlanTextError};
use super::words::unescaped;
use super::write::{FORMAT, VERSION};

/// Most callers in a calling context: the limit of the runtime.
const DEPTH_AT_MOST: u32 = 8;
/// Highest number of a node: the kernel has at most 1,024 (`CONFIG_NODES_SHIFT` is at most 10).
const NODE_AT_MOST: u32 = 1023;
/// Longest latency of a load, far above any memory.
const LATENCY_AT_MOST: Nanos = Nanos(1_000_000_000);
/// Most points of a curve of latency by load.
const LOADS_AT_MOST: usize = 64;
/// Highest bandwidth in bytes a second: a petabyte, a thousand times that of the fastest memory.
const BANDWIDTH_AT_MOST: u64 = 1_000_000_000_000_000;
/// Shortest expected time over that of all fast: tiers together have more bandwidth than the fastest.
const TIME_AT_LEAST: f64 = 1e-3;
/// Longest expected time over that of all fast.
const TIME_AT_MOST: f64 = 1e6;
/// The lines of a plan read so far.
#[derive(Default)]
struct Draft {
    headers: BTreeMap<&'static str, Line>,
    lists: BTreeMap<&'static str, Vec<Line>>,
}

/// First words of the lines that stand once.
const HEADERS: [&str; 9] = [
    "policy", "value", "counted", "weight", "depth", "command", "default", "standing", "expected",
];

/// First words of the lines of which there may be several.
const LISTS: [&str; 8] = [
    "tier", "site", "part", "leading", "small", "colour", "code", "frame",
];

/// Reads a plan.
///
/// # Errors
/// The first error, with its line: a missing or repeated header, another version, an unknown word,
/// tier or field, a malformed number or size or one out of range, a fast tier of zero bytes, a slow
/// tier that is never slowed, a site twice, an end in the middle of a line.
pub fn read(text: &str) -> Result<Plan, PlanTextError> {
    let mut lines = text.lines().zip(1..).map(|(text, n)| Line::split(n, text));
    match lines.next() {
        Some(first) => check_version(&first?)?,
        None => {
            let what = format!("the file is empty; a plan starts with `{FORMAT} {VERSION}`");
            return Err(PlanTextError { line: 1, what });
        }
    }
    check_end(text)?;
    let mut draft = Draft::default();
    let mut last = 1;
    for line in lines {
        let line = line?;
        last = line.number;
        draft.add(line)?;
    }
    draft.finish(last)
}

fn check_version(line: &Line) -> Result<(), PlanTextError> {
    match line.words.as_slice() {
        [format, version] if format == FORMAT => {
            if line.number::<u32>("version", version)? == VERSION {
                Ok(())
            } else {
                line.wrong(format!(
                    "the plan is of format version {version}; this Isotherm reads version {VERSION}: \
                     make the plan again from its profile"
                ))
            }
        }
        _ => line.wrong(format!(
            "this is no plan; a plan starts with `{FORMAT} {VERSION}`"
        )),
    }
}

/// Rejects a file that was cut off: its last line may parse and mean something else.
fn check_end(text: &str) -> Result<(), PlanTextError> {
    if text.ends_with('\n') {
        return Ok(());
    }
    let what = "the file was cut short: its last line does not end with a line feed; make the plan again \
                from its profile, or end the line if you wrote it";
    Err(PlanTextError {
        line: text.lines().count(),
        what: what.to_owned(),
    })
}

impl Draft {
    fn add(&mut self, line: Line) -> Result<(), PlanTextError> {
        let Some(word) = line.words.first().map(String::as_str) else {
            return Ok(());
        };
        if let Some(name) = LISTS.into_iter().find(|name| *name == word) {
            self.lists.entry(name).or_default().push(line);
            return Ok(());
        }
        let Some(name) = HEADERS.into_iter().find(|name| *name == word) else {
            return line.wrong(format!(
                "unknown word `{word}`; a line starts with {}, {}",
                LISTS.join(", "),
                HEADERS.join(", ")
            ));
        };
        if let Some(known) = self.headers.get(name) {
            let first = known.number;
            return line.wrong(format!("`{name}` is already in line {first}"));
        }
        self.headers.insert(name, line);
        Ok(())
    }

    fn finish(self, last: usize) -> Result<Plan, PlanTextError> {
        let list = |name: &str| self.lists.get(name).map_or(&[][..], Vec::as_slice);
        let Some(first) = list("tier").first() else {
            let what = "there is no `tier` line; a plan needs at least one".to_owned();
            return Err(PlanTextError { line: last, what });
        };
        let tiers = list("tier").iter().map(tier).collect::<Result<_, _>>()?;
        let tiers = Tiers::new(tiers).or_else(|error| first.wrong(error.to_string()))?;
        let header = |name: &str| {
            self.headers.get(name).ok_or_else(|| PlanTextError {
                line: last,
                what: format!("the file ends without a `{name}` line"),
            })
        };
        let (value, weight) = (header("value")?, header("weight")?);
        let depth = header("depth")?;
        let default = header("default")?;
        let mut assignments = sites(list("site"), &tiers)?;
        super::parts::add(list("part"), &tiers, &mut assignments)?;
        super::leading::add(list("leading"), &tiers, &mut assignments)?;
        let planned: BTreeSet<SiteId> = assignments.iter().map(|a| a.site).collect();
        Ok(Plan {
            policy: header("policy")?.only()?.to_owned(),
            value: word(value, Value::from_word, &Value::ALL.map(Value::word))?,
            counted: match self.headers.get("counted") {
                Some(line) => word(
                    line,
                    CountUnit::from_word,
                    &CountUnit::ALL.map(CountUnit::word),
                )?,
                // Older plans have no `counted` line.
                None => CountUnit::Unknown,
            },
            weight: word(weight, Weight::from_word, &Weight::ALL.map(Weight::word))?,
            command: header("command")?.words[1..].to_vec(),
            depth: depth.bounded("depth", depth.only()?, DEPTH_AT_MOST)?,
            default_tier: default.tier(&tiers, default.only()?)?,
            standing: standing(header("standing")?)?,
            colours: super::colours::colours(list("colour"), &tiers)?,
            expected: self.headers.get("expected").map(expected).transpose()?,
            small: super::small::sites(list("small"), |site| planned.contains(&site))?,
            assignments,
            frames: super::frames::frames(list("frame"), &super::frames::modules(list("code"))?)?,
            tiers,
        })
    }
}

fn word<T>(line: &Line, read: fn(&str) -> Option<T>, known: &[&str]) -> Result<T, PlanTextError> {
    let text = line.only()?;
    match read(text) {
        Some(value) => Ok(value),
        None => {
            let (name, known) = (&line.words[0], known.join(", "));
            line.wrong(format!("unknown {name} \"{text}\"; known are {known}"))
        }
    }
}

fn standing(line: &Line) -> Result<PlanBounds, PlanTextError> {
    let mut pairs = line.pairs(1)?;
    let mut number = |name: &str| pairs.bounded(name, VALUE_AT_MOST);
    let standing = PlanBounds {
        planned: number("planned")?,
        first_touch: number("first-touch")?,
        bound: number("bound")?,
        total: number("total")?,
    };
    pairs.done()?;
    Ok(standing)
}

fn expected(line: &Line) -> Result<ExpectedTimes, PlanTextError> {
    let mut pairs = line.pairs(1)?;
    let mut time = |name: &str| {
        let text = pairs.text(name)?;
        match text.parse::<f64>() {
            Ok(time) if (TIME_AT_LEAST..=TIME_AT_MOST).contains(&time) => Ok(time),
            _ => line.wrong(format!(
                "{name} \"{text}\" must be a number of {TIME_AT_LEAST} to {TIME_AT_MOST}, the time over that of all fast"
            )),
        }
    };
    let expected = ExpectedTimes {
        all_slow: time("all-slow")?,
        first_touch: time("first-touch")?,
        planned: time("planned")?,
        bound: time("bound")?,
    };
    pairs.done()?;
    Ok(expected)
}

fn tier(line: &Line) -> Result<Tier, PlanTextError> {
    let [_, name, kind, ..] = line.words.as_slice() else {
        return line.wrong("a tier line is `tier NAME KIND capacity SIZE placement WORD`");
    };
    let mut pairs = line.pairs(if kind == "nodes" { 2 } else { 3 })?;
    let kind = match kind.as_str() {
        "nodes" => {
            let list = pairs.text("nodes")?;
            let numbers = list.split(',').filter(|word| !word.is_empty());
            let nodes: Result<_, _> = numbers
                .map(|word| line.bounded("node", word, NODE_AT_MOST))
                .collect();
            TierKind::Nodes(nodes?)
        }
        "emulated-fast" => TierKind::EmulatedFast,
        "emulated-slow" => TierKind::EmulatedSlow(emulation(line, &mut pairs)?),
        other => {
            return line.wrong(format!(
                "unknown kind of tier \"{other}\"; known are nodes, emulated-fast, emulated-slow"
            ));
        }
    };
    let capacity: Bytes = pairs.quantity("capacity")?;
    let word = pairs.text("placement")?;
    let Some(placement) = Placement::from_word(word) else {
        return line.wrong(format!(
            "unknown placement \"{word}\"; known are preferred, bind"
        ));
    };
    let latency = pairs.optional("latency")?;
    if let Some(latency) = latency {
        line.at_most("latency", latency, &LATENCY_AT_MOST)?;
    }
    let mut bandwidth = |name: &str| {
        let text = pairs.given(name);
        text.map(|text| line.bounded(name, text, BANDWIDTH_AT_MOST))
            .transpose()
    };
    let (read_bandwidth, write_bandwidth) =
        (bandwidth("read-bandwidth")?, bandwidth("write-bandwidth")?);
    let loaded = pairs.given("loaded");
    let loaded = loaded.map(|text| loaded_points(line, text)).transpose()?;
    pairs.done()?;
    Ok(Tier {
        name: name.clone(),
        kind,
        capacity,
        placement,
        latency,
        read_bandwidth,
        write_bandwidth,
        loaded: loaded.unwrap_or_default(),
        reason: unescaped(&line.comment),
    })
}

/// `1000000000:95ns,9000000000:130ns`: bytes a second, and the latency under this load.
fn loaded_points(line: &Line, text: &str) -> Result<Vec<LoadPoint>, PlanTextError> {
    let points: Vec<&str> = text.split(',').collect();
    if points.len() > LOADS_AT_MOST {
        let count = points.len();
        return line.wrong(format!(
            "loaded: {count} points, and {LOADS_AT_MOST} are enough"
        ));
    }
    let point = |text: &&str| {
        let Some((bandwidth, latency)) = text.split_once(':') else {
            return line.wrong(format!(
                "loaded: \"{text}\" is no point such as 1000000000:95ns"
            ));
        };
        let latency = line.quantity("loaded", latency)?;
        line.at_most("loaded", latency, &LATENCY_AT_MOST)?;
        Ok(LoadPoint {
            bandwidth: line.bounded("loaded", bandwidth, BANDWIDTH_AT_MOST)?,
            latency,
        })
    };
    points.iter().map(point).collect()
}

fn emulation(line: &Line, pairs: &mut Pairs<'_>) -> Result<Emulation, PlanTextError> {
    let emulation = match pairs.has("latency-factor") {
        true => Emulation::Time(time_costs(line, pairs)?),
        false => Emulation::PageTrap(page_trap_costs(line, pairs)?),
    };
    if let Some((name, number, most)) = emulation.out_of_range() {
        line.at_most(name, number, &most)?;
    }
    Ok(emulation)
}

/// `latency-factor 2.5 bandwidth-factor 2 migrate 5us`: the factors of an emulation by time. A limit of the bandwidth may
/// follow.
fn time_costs(line: &Line, pairs: &mut Pairs<'_>) -> Result<TimeCosts, PlanTextError> {
    Ok(TimeCosts {
        latency: pairs.quantity("latency-factor")?,
        bandwidth: pairs.quantity("bandwidth-factor")?,
        migrate: pairs.quantity("migrate")?,
        shared: shared_bandwidth(line, pairs)?,
    })
}

/// `fast-bandwidth-limit 10GiB/s bandwidth-limit 5GiB/s machine lab machine-fast 16GiB`: all may be absent, a machine has a limit, and only a
/// machine has fast memory of which the fast tier is a part.
fn shared_bandwidth(
    line: &Line,
    pairs: &mut Pairs<'_>,
) -> Result<Option<SharedBandwidth>, PlanTextError> {
    let fast = pairs.optional("fast-bandwidth-limit")?;
    let slow = pairs.optional("bandwidth-limit")?;
    let machine: Option<MachineName> = pairs.optional("machine")?;
    let capacity = match machine {
        Some(_) => pairs.optional("machine-fast")?,
        None => None,
    };
    let shared = SharedBandwidth::new(fast, slow, machine);
    let shared = match (shared, capacity) {
        (Some(shared), Some(capacity)) => Some(shared.with_capacity(capacity)),
        (shared, _) => shared,
    };
    match (shared, machine) {
        (None, Some(_)) => {
            line.wrong("machine: its programs share nothing without a bandwidth-limit")
        }
        (shared, _) => Ok(shared),
    }
}

/// `period 100ms access 10us hot 13us migrate 50us`: the costs of an emulation by page trap.
fn page_trap_costs(line: &Line, pairs: &mut Pairs<'_>) -> Result<PageTrapCosts, PlanTextError> {
    let mut span = |name: &str| pairs.quantity(name);
    let costs = PageTrapCosts {
        period: span("period")?,
        access: span("access")?,
        hot: span("hot")?,
        migrate: span("migrate")?,
    };
    if costs.is_never_paid() {
        return line
            .wrong("period of zero: the slow tier would never be slowed; give a time above zero");
    }
    Ok(costs)
}

fn sites(lines: &[Line], tiers: &Tiers) -> Result<Vec<Assignment>, PlanTextError> {
    let mut seen = BTreeMap::<SiteId, usize>::new();
    let mut assignments = Vec::with_capacity(lines.len());
    for line in lines {
        let assignment = site(line, tiers)?;
        if let Some(first) = seen.insert(assignment.site, line.number) {
            return line.wrong(format!(
                "site {} is already in line {first}; a site has one tier",
                assignment.site
            ));
        }
        assignments.push(assignment);
    }
    assignments.sort_by(Assignment::hotter_first);
    Ok(assignments)
}

/// `1234abcd`, `1234abcd+` or `none`.
fn caller(line: &Line, text: &str) -> Result<Caller, PlanTextError> {
    if text == "none" {
        return Ok(Caller::None);
    }
    let (name, has_others) = match text.strip_suffix('+') {
        Some(name) => (name, true),
        None => (text, false),
    };
    let id: SiteId = line.quantity("caller", name)?;
    Ok(Caller::Direct {
        id: CallerId(id.0),
        has_others,
    })
}

fn site(line: &Line, tiers: &Tiers) -> Result<Assignment, PlanTextError> {
    let [_, id, tier, ..] = line.words.as_slice() else {
        return line.wrong("a site line is `site ID TIER value NUMBER weight SIZE`");
    };
    let site: SiteId = line.quantity("site", id)?;
    if site == SiteId::UNATTRIBUTED {
        return line.wrong("memory that no site made cannot be placed; remove the line");
    }
    let tier = line.tier(tiers, tier)?;
    let mut pairs = line.pairs(3)?;
    let value = pairs.bounded("value", VALUE_AT_MOST)?;
    let weight = pairs.quantity_to("weight", &WEIGHT_AT_MOST)?;
    let caller = match pairs.given("caller") {
        Some(text) => caller(line, text)?,
        None => Caller::Unknown,
    };
    pairs.done()?;
    let comment = line.comment.as_str();
    let (label, reason) = match comment.strip_prefix("-- ") {
        Some(reason) => ("", reason),
        None => comment.split_once(" -- ").unwrap_or((comment, "")),
    };
    Ok(Assignment {
        site,
        tier,
        value,
        weight,
        parts: Vec::new(),
        leading: None,
        caller,
        reason: unescaped(reason),
        label: unescaped(label),
    })
}
