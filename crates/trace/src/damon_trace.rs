//! Reads the tracepoint `damon:damon_aggregated` as text, from `perf script` or from the kernel's own trace file, into a profile.
//!
//! ```text
//! kdamond.0 4452 [000] 82820.952659: damon:damon_aggregated: target_id=184 nr_regions=8 4096-8192: 3 7
//! ```
//!
//! One line is one region: first and end address, the number of samples that found it accessed, and
//! (newer kernels) its age, which is not used. `nr_regions` lines for one target follow each other;
//! together they are a snapshot.

use std::io::BufRead;

use isotherm_model::profile::Profile;
use isotherm_model::units::Nanos;

use crate::damon::{Gatherer, Region, Snapshot};
use crate::error::{Error, Fault, Place, shown};
use crate::grain::Grain;
use crate::lines::Lines;
use crate::number;

/// The name of the tracepoint, with or without the name of its subsystem.
const EVENT: &str = "damon_aggregated:";
const LINE: &str =
    "`damon_aggregated: target_id=N nr_regions=N START-END: ACCESSES` after a time in seconds";
/// Most regions of one snapshot, far above any sensible setting of DAMON.
pub(crate) const REGIONS: u64 = 1 << 20;

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Event {
    time: Nanos,
    target: u64,
    regions: u64,
    region: Region,
}

/// The event of a line; `None` for a line of another kind.
fn parse(line: &str) -> Option<Result<Event, Fault>> {
    let (before, behind) = line.split_once(EVENT)?;
    (!line.trim_start().starts_with('#')).then(|| event(before, behind))
}

fn event(before: &str, behind: &str) -> Result<Event, Fault> {
    let wrong = |what: &str| Fault::new(format!("the line has {what}"), LINE);
    let stamp = before.split_whitespace().rev().find_map(number::stamp);
    let time = Nanos(stamp.ok_or_else(|| wrong("no time"))??);
    let mut words = behind.split_whitespace();
    let mut keyed = |key: &str| {
        let value = words.next().and_then(|word| word.strip_prefix(key));
        value
            .and_then(number::decimal)
            .ok_or_else(|| wrong(&format!("no number after {}", shown(key))))
    };
    let target = keyed("target_id=")?;
    let regions = keyed("nr_regions=")?;
    if regions == 0 || regions > REGIONS {
        let found = format!("the line reports {regions} regions");
        return Err(Fault::new(found, format!("1 to {REGIONS}")));
    }
    let range = words.next().and_then(|word| word.strip_suffix(':'));
    let range = range.and_then(|word| word.split_once('-'));
    let range =
        range.and_then(|(start, end)| Some((number::decimal(start)?, number::decimal(end)?)));
    let (start, end) = range.ok_or_else(|| wrong("no range of addresses"))?;
    let accesses = words.next().and_then(number::decimal);
    let accesses = accesses.ok_or_else(|| wrong("no number of accesses"))?;
    Ok(Event {
        time,
        target,
        regions,
        region: Region::new(start, end, accesses)?,
    })
}

/// True where the line is one of this format.
pub(crate) fn is_event(line: &str) -> bool {
    matches!(parse(line), Some(Ok(_)))
}

/// A snapshot that still lacks regions.
#[derive(Debug)]
struct Open {
    snapshot: Snapshot,
    regions: u64,
    /// Line of its first region.
    line: u64,
}

impl Open {
    fn new(event: &Event, line: u64, last: Option<Nanos>) -> Self {
        Self {
            snapshot: Snapshot {
                target: event.target,
                // The event marks the end of the interval, which begins where the last one ended.
                start: last.unwrap_or(event.time),
                end: event.time,
                regions: Vec::new(),
            },
            regions: event.regions,
            line,
        }
    }

    fn is_whole(&self) -> bool {
        self.snapshot.regions.len() as u64 == self.regions
    }

    fn cut_short(&self) -> Fault {
        let found = format!(
            "the snapshot that begins here has {} of its {} regions",
            self.snapshot.regions.len(),
            self.regions
        );
        Fault::new(found, "all of them (events were lost, or the file was cut)")
    }
}

/// The profile of a trace.
pub(crate) fn read(source: impl BufRead, file: &str, grain: Grain) -> Result<Profile, Error> {
    let mut lines = Lines::new(source, file);
    let mut gatherer = Gatherer::new(grain);
    let mut open: Option<Open> = None;
    let mut ends = std::collections::BTreeMap::<u64, Nanos>::new();
    while let Some(line) = lines.next_line()? {
        let Some(event) = parse(&line) else {
            continue;
        };
        let event = lines.checked(event)?;
        let mut begun = open
            .take()
            .unwrap_or_else(|| Open::new(&event, lines.number(), ends.get(&event.target).copied()));
        if (begun.snapshot.target, begun.regions) != (event.target, event.regions) {
            return Err(lines.error_at(begun.cut_short(), begun.line));
        }
        let before = begun.snapshot.regions.last();
        lines.checked(event.region.behind(before))?;
        begun.snapshot.regions.push(event.region);
        if begun.is_whole() {
            ends.insert(begun.snapshot.target, begun.snapshot.end);
            lines.checked(gatherer.add(&begun.snapshot))?;
        } else {
            open = Some(begun);
        }
    }
    if let Some(begun) = open {
        return Err(lines.error_at(begun.cut_short(), begun.line));
    }
    let profile = gatherer.finish();
    profile.map_err(|fault| fault.at(file, Place::Whole))
}

#[cfg(test)]
mod tests {
    use super::{is_event, read};
    use crate::grain::Grain;

    const HEAD: &str = "k 1 [000] 1.5: damon:damon_aggregated:";

    #[test]
    fn lines_of_perf_and_of_the_kernel_are_events_and_others_are_not() {
        for line in [
            "kdamond.0 4452 [000] 82820.952659: damon:damon_aggregated: target_id=1 nr_regions=1 0-4096: 0",
            "kdamond.0-4452 [000] ..... 82820.952659: damon_aggregated: target_id=1 nr_regions=1 0-4096: 3 7",
        ] {
            assert!(is_event(line), "{line}");
        }
        for line in ["", "# damon_aggregated: x", "app 7 1.5: page-faults: 10"] {
            assert!(!is_event(line), "{line}");
        }
    }

    #[test]
    fn each_way_to_be_wrong_names_its_line() {
        for (text, what) in [
            ("nothing".to_owned(), "x: it holds no snapshot"),
            (
                format!("{HEAD} target_id=1 nr_regions=2 0-4096: 0"),
                "x:1: the snapshot that begins here has 1 of its 2",
            ),
            (
                format!(
                    "{HEAD} target_id=1 nr_regions=2 0-4096: 0\n{HEAD} target_id=1 nr_regions=2 0-8192: 0"
                ),
                "x:2: the region 0-8192 overlaps",
            ),
            (
                format!(
                    "{HEAD} target_id=1 nr_regions=2 0-4096: 0\n{HEAD} target_id=2 nr_regions=2 0-8192: 0"
                ),
                "x:1: the snapshot",
            ),
            (
                format!("{HEAD} target_id=1 nr_regions=1 8192-4096: 0"),
                "x:1: the region 8192-4096 ends",
            ),
            (
                format!("{HEAD} target_id=1 nr_regions=1 0-4096: -1"),
                "no number of accesses",
            ),
            (
                format!("{HEAD} target_id=1 nr_regions=1 -5-4096: 1"),
                "no range",
            ),
            (
                format!("{HEAD} target_id=x"),
                "no number after \"target_id=\"",
            ),
            (
                format!("{HEAD} target_id=1 nr_regions=99999999 0-4096: 1"),
                "99999999 regions",
            ),
            ("damon_aggregated: target_id=1".to_owned(), "no time"),
        ] {
            let error = read(text.as_bytes(), "x", Grain::default())
                .unwrap_err()
                .to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
