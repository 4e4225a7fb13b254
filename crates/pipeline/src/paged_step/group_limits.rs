//! Finds the control groups that are near the kernel's memory limit that their owner set, and how much of each is to be paged out so that
//! there is room before the kernel reclaims (`over_full`, `most_of_all`). Also finds the processes to which nothing is brought back because
//! their group is near its limit (`near_limit`), and the groups of which not enough could be paged out ([`GroupShortage`]).
//!
//! The kernel reclaims the least recently used pages, whatever that costs the program. Here the coldest units leave, as soon as a group has
//! more than fifteen sixteenths of its limit, whatever the budget of lost time says: a page must leave in any case. The limit itself is not
//! changed.
//!
//! ```text
//! 0 ------- memory without cached files -- 14/16 --------- 15/16 ---------- limit
//!                    units come back        | none comes     | the coldest     the kernel reclaims
//!                                           | back           | leave
//! ```

use std::collections::BTreeSet;
use std::path::PathBuf;

use isotherm_model::batch::Process;
use isotherm_model::movement::RangeOutcome;
use isotherm_model::outcome::{Fate, NO_RIGHT};
use isotherm_model::paged::{LimitedGroup, PAGED_OUT, PagedObservation};
use isotherm_model::units::Bytes;

/// 1/`FREE` of a limit is kept free; with less than twice that free, nothing is brought back.
const FREE: u64 = 16;

/// A group from which too little was paged out, because memory of its processes cannot be seen or paged out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupShortage {
    /// Its path in the hierarchy.
    pub name: String,
    /// The directory of its files.
    pub directory: PathBuf,
    /// Bytes that have yet to leave.
    pub bytes: Bytes,
}

/// The most that all watched processes together may have in memory by the groups that hold all of them: the limit of a group, less what is
/// kept free and what other processes in it have.
pub(super) fn most_of_all(seen: &PagedObservation) -> Bytes {
    let present: Bytes = seen.units.iter().map(|held| held.present).sum();
    let groups = seen.groups.iter().filter(|group| holds_all(group, seen));
    let most = groups.map(|group| {
        let others = group.without_files.saturating_sub(present);
        less_part(group.limit, 1).saturating_sub(others)
    });
    most.min().unwrap_or(Bytes(u64::MAX))
}

/// The groups for which memory must leave, and how much. Groups that hold all processes are left out where these are kept to `most_of_all`.
pub(super) fn over_full(
    seen: &PagedObservation,
    most_of_all: Bytes,
) -> Vec<(&LimitedGroup, Bytes)> {
    let is_kept = most_of_all < Bytes(u64::MAX);
    let groups = seen.groups.iter();
    let groups = groups.filter(|group| !(is_kept && holds_all(group, seen)));
    let over = groups.map(|group| (group, excess(group)));
    over.filter(|(_, excess)| *excess > Bytes::ZERO).collect()
}

/// The processes for which nothing is brought back, because one of their groups has little room.
pub(super) fn near_limit(seen: &PagedObservation) -> BTreeSet<Process> {
    let near = seen.groups.iter();
    let near = near.filter(|group| group.without_files > less_part(group.limit, 2));
    near.flat_map(|group| &group.processes).copied().collect()
}

/// The groups from which too little was paged out by these outcomes, if memory of a process in them cannot be seen or paged out.
pub(super) fn shortages(seen: &PagedObservation, outcomes: &[RangeOutcome]) -> Vec<GroupShortage> {
    let mut reached: BTreeSet<Process> = seen.units.iter().map(|held| held.unit.process).collect();
    let out = outcomes.iter();
    let out = out.filter(|outcome| outcome.action.node == PAGED_OUT);
    for outcome in out.clone() {
        if outcome.bytes_of(is_refused) > Bytes::ZERO {
            reached.remove(&outcome.action.process);
        }
    }
    let shortage = |group: &LimitedGroup| {
        let of_group = out
            .clone()
            .filter(|outcome| group.processes.contains(&outcome.action.process));
        let left = of_group.map(|outcome| outcome.bytes_of(|fate| *fate == Fate::Moved));
        let bytes = excess(group).saturating_sub(left.sum());
        let is_short = bytes > Bytes::ZERO && !group.processes.is_subset(&reached);
        is_short.then(|| GroupShortage {
            name: group.name.clone(),
            directory: group.directory.clone(),
            bytes,
        })
    };
    seen.groups.iter().filter_map(shortage).collect()
}

fn is_refused(fate: &Fate) -> bool {
    matches!(fate, Fate::Denied(why) if why == NO_RIGHT)
}

fn holds_all(group: &LimitedGroup, seen: &PagedObservation) -> bool {
    let mut processes = seen.seen.processes.iter();
    processes.all(|watched| group.processes.contains(&watched.process))
}

/// Bytes by which a group exceeds fifteen sixteenths of its limit.
fn excess(group: &LimitedGroup) -> Bytes {
    group
        .without_files
        .saturating_sub(less_part(group.limit, 1))
}

/// A limit less this number of sixteenths, which are kept free.
const fn less_part(limit: Bytes, parts: u64) -> Bytes {
    Bytes(limit.0 - limit.0 / FREE * parts)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use isotherm_model::batch::Process;
    use isotherm_model::movement::{AddressRange, RangeAction, RangeOutcome};
    use isotherm_model::outcome::{Fate, NO_RIGHT};
    use isotherm_model::paged::{LimitedGroup, PAGED_OUT, PagedObservation, PagedUnit};
    use isotherm_model::units::Bytes;
    use isotherm_model::watch::{Observation, Unit, Watched};

    use super::{most_of_all, near_limit, over_full, shortages};

    const fn process(pid: u32) -> Process {
        Process { pid, image: 0 }
    }

    fn group(name: &str, limit: u64, without_files: u64, pids: &[u32]) -> LimitedGroup {
        LimitedGroup {
            name: name.to_owned(),
            directory: Path::new("/sys/fs/cgroup").join(&name[1..]),
            limit: Bytes(limit),
            without_files: Bytes(without_files),
            processes: pids.iter().copied().map(process).collect(),
        }
    }

    /// Two processes, each with a unit of 500 bytes in memory.
    fn observation(groups: Vec<LimitedGroup>) -> PagedObservation {
        let watched = |pid| Watched {
            process: process(pid),
            name: String::new(),
            control_group: String::new(),
            warning: String::new(),
        };
        let unit = |pid| PagedUnit {
            unit: Unit {
                process: process(pid),
                start: 0,
            },
            present: Bytes(500),
            out: Bytes::ZERO,
            returned: Bytes::ZERO,
            grain: Bytes(500),
            has_huge: false,
        };
        PagedObservation {
            seen: Observation {
                processes: vec![watched(7), watched(8)],
                ..Observation::default()
            },
            units: vec![unit(7), unit(8)],
            stalled: None,
            groups,
        }
    }

    #[test]
    fn a_group_with_all_processes_limits_them_together_and_another_its_own() {
        let all = group("/all", 1600, 1520, &[7, 8]);
        let one = group("/all/one", 800, 790, &[7]);
        let roomy = group("/roomy", 800, 500, &[8]);
        let seen = observation(vec![all, one, roomy]);
        assert_eq!(most_of_all(&seen), Bytes(1500 - 520));
        let over = |most| -> Vec<(&str, Bytes)> {
            let over = over_full(&seen, most).into_iter();
            over.map(|(group, excess)| (group.name.as_str(), excess))
                .collect()
        };
        let both = [("/all", Bytes(20)), ("/all/one", Bytes(40))];
        assert_eq!(over(Bytes(u64::MAX)), both);
        assert_eq!(over(Bytes(1300)), both[1..]);
        assert_eq!(near_limit(&seen), [process(7), process(8)].into());
        assert_eq!(most_of_all(&observation(Vec::new())), Bytes(u64::MAX));
    }

    #[test]
    fn only_what_is_out_of_reach_is_short() {
        let mut seen = observation(vec![
            group("/a", 800, 790, &[7]),
            group("/b", 800, 790, &[8]),
        ]);
        assert_eq!(shortages(&seen, &[]), [], "both can be paged out");
        let outcome = |pid, fate| {
            let range = AddressRange {
                start: 0,
                bytes: Bytes(500),
            };
            let action = RangeAction {
                process: process(pid),
                range,
                node: PAGED_OUT,
            };
            RangeOutcome::whole(action, fate)
        };
        let refused = Fate::Denied(NO_RIGHT.into());
        let outcomes = [
            outcome(7, refused),
            outcome(8, Fate::Denied("locked".into())),
        ];
        let short = shortages(&seen, &outcomes);
        assert_eq!((short.len(), short[0].bytes), (1, Bytes(40)));
        assert_eq!(short[0].directory, Path::new("/sys/fs/cgroup/a"));
        seen.units.pop();
        let short = shortages(&seen, &[outcome(7, Fate::Moved)]);
        assert_eq!((short.len(), short[0].name.as_str()), (1, "/b"));
    }
}
