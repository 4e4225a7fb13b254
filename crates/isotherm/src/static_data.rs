//! Lists the static data of a program and its libraries for the runtime: all of it in a recording, in a guided run the variables that the
//! plan names, in the order in which they are placed. `StaticPlacement`, the value of `--static`, says into which tier static data goes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use isotherm_abi::config::StaticRecord;
use isotherm_abi::hash::{SiteHashKind, SiteHasher};
use isotherm_act::callers::site_name;
use isotherm_act::configuration::Configuration;
use isotherm_model::plan::{Assignment, Plan};
use isotherm_model::site::{SiteId, SiteKind};
use isotherm_model::tier::TierIndex;
use isotherm_model::units::Bytes;
use isotherm_symbols::resolver::build_id;
use isotherm_symbols::static_data;

/// Where static data goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum StaticPlacement {
    /// Where the plan sends each variable; what it does not name stays where the kernel puts it.
    #[default]
    Plan,
    /// All of it into the fastest tier.
    Fast,
    /// All of it into the slowest tier.
    Slow,
}

impl StaticPlacement {
    /// The configuration of a run by a plan, of the program at `path`, with its static data placed. `cache` is the size of the caches on
    /// machines emulated by time, where it is given.
    pub(crate) fn guided(self, plan: &Plan, path: &Path, cache: Option<Bytes>) -> Configuration {
        let tier = match self {
            Self::Plan => None,
            Self::Fast => Some(TierIndex::FASTEST),
            Self::Slow => Some(plan.tiers.slowest()),
        };
        Configuration {
            // Variables are listed even where one tier has them all: the run reports which of the plan's sites it made.
            statics: planned(plan, path),
            static_tier: tier,
            cache,
            ..Configuration::guided(plan)
        }
    }
}

/// Whether a plan places static data.
pub(crate) fn is_planned(plan: &Plan) -> bool {
    plan.frames
        .iter()
        .any(|(site, frames)| site_name(SiteKind::Static, frames) == Some(*site))
}

/// The static data of a program that the plan names; the runtime finds the tiers by the same names.
fn planned(plan: &Plan, path: &Path) -> Vec<StaticRecord> {
    match is_planned(plan) {
        true => by_value(plan, of_program(path)),
        false => Vec::new(),
    }
}

/// The records that the plan names, as they are placed: what has least value for its size comes last, when the tier may be full.
fn by_value(plan: &Plan, records: Vec<StaticRecord>) -> Vec<StaticRecord> {
    let assigned = plan.assignments.iter().map(|of| (of.site, of));
    let assigned: BTreeMap<SiteId, &Assignment> = assigned.collect();
    let named = records.into_iter().filter_map(|record| {
        let module = &record.module[..record.module_bytes as usize];
        let hasher = SiteHasher::new(SiteHashKind::Static).frame(module, record.name);
        let assignment = *assigned.get(&SiteId(hasher.finish()))?;
        Some((assignment, record))
    });
    let mut named: Vec<(&Assignment, StaticRecord)> = named.collect();
    let times = |one: &Assignment, other: &Assignment| {
        u128::from(one.value) * u128::from(other.weight.0.max(1))
    };
    named.sort_by(|(a, _), (b, _)| times(b, a).cmp(&times(a, b)));
    named.into_iter().map(|(_, record)| record).collect()
}

/// The static data of the program at `path` and of the libraries that its loader maps with it.
pub(crate) fn of_program(path: &Path) -> Vec<StaticRecord> {
    let program = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut records = Vec::new();
    for module in libraries(&program).into_iter().chain([program]) {
        let objects = static_data::read(&module);
        if objects.is_empty() {
            continue;
        }
        let (name, module_bytes) = module_name(&module);
        records.extend(objects.into_iter().map(|object| StaticRecord {
            module: name,
            module_bytes,
            reserved: 0,
            name: object.name,
            offset: object.range.start,
            bytes: object.range.end - object.range.start,
        }));
    }
    records
}

/// The libraries of a program, as its loader prints them. The program itself does not run: the loader ends it before that.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let listed = Command::new(program)
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let printed = listed.map(|output| output.stdout).unwrap_or_default();
    let path = |line: &[u8]| {
        // `libm.so.6 => /lib/libm.so.6 (0x7f...)`, or a path as it was linked: `./libown.so (0x7f...)`
        let line = line.trim_ascii();
        let arrow = line.windows(4).position(|words| words == b" => ");
        let rest = arrow.map_or(line, |at| &line[at + 4..]);
        let end = rest.windows(3).rposition(|words| words == b" (0")?;
        let path = &rest[..end];
        path.contains(&b'/')
            .then(|| PathBuf::from(OsStr::from_bytes(path)))
    };
    printed
        .split(|byte| *byte == b'\n')
        .filter_map(path)
        .collect()
}

/// The name of a module in the runtime: its build-id, else the name of its file, at most 32 bytes of it.
fn module_name(module: &Path) -> ([u8; 32], u32) {
    let from_digits = |digits: String| -> Option<Vec<u8>> {
        let pairs = digits.as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        pairs.map(byte).collect()
    };
    let file = || module.file_name().unwrap_or_default().to_owned().into_vec();
    let name = build_id(module).and_then(from_digits).unwrap_or_else(file);
    let mut bytes = [0; 32];
    let used = name.len().min(bytes.len());
    bytes[..used].copy_from_slice(&name[..used]);
    (bytes, used as u32)
}

#[cfg(test)]
mod tests {
    use isotherm_abi::config::StaticRecord;
    use isotherm_abi::hash::{SiteHashKind, SiteHasher};

    use super::by_value;

    fn record(name: u64) -> StaticRecord {
        StaticRecord {
            module: [0; 32],
            module_bytes: 4,
            reserved: 0,
            name,
            offset: name,
            bytes: 4096,
        }
    }

    /// A line of a plan for the data of this name.
    fn line(name: u64, value: u64, weight: &str) -> String {
        let hasher = SiteHasher::new(SiteHashKind::Static).frame(&[0; 4], name);
        format!(
            "site {:016x} fast value {value} weight {weight}\n",
            hasher.finish()
        )
    }

    #[test]
    fn what_is_hot_for_its_size_is_placed_first_and_what_no_plan_names_is_left_out() {
        let sites = [
            line(1, 0, "4KiB"),
            line(2, 50, "8KiB"),
            line(3, 40, "4KiB"),
            line(4, 0, "8KiB"),
        ];
        let plan = format!(
            "isotherm-plan 1\npolicy thermos\nvalue accesses\nweight peak-rss\ndepth 4\ncommand \"./app\"\n\
             tier fast emulated-fast capacity 8KiB placement preferred\n\
             tier slow emulated-slow capacity 8GiB placement preferred period 1s access 10us hot 13us migrate 50us\n\
             default slow\nstanding planned 90 first-touch 50 bound 90 total 90\n{}",
            sites.concat()
        );
        let plan = isotherm_plan_text::read(&plan).unwrap();
        let placed = by_value(&plan, [5, 1, 4, 2, 3].map(record).to_vec());
        let names: Vec<u64> = placed.iter().map(|record| record.name).collect();
        assert_eq!(names, [3, 2, 1, 4]);
    }
}
