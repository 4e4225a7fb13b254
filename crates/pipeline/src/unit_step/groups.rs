//! `Groups` finds the operator's settings ([`GroupLimit`]) that the control group of each process obeys, a cap and a floor of the fast tier
//! and the priority of its heat, lists the units under each, and weighs their heat. A newcomer with heat that obeys no settings gets an
//! entry of its own, with its fair share as the floor.
//!
//! A process obeys one entry: the longest name that is its control group or a group above it. So no process counts in two entries, and
//! floors can be added.
//!
//! ```text
//! entries           /system.slice        /system.slice/redis.service
//! process in        /system.slice/a.service   -> the first
//!                   /system.slice/redis.service/worker -> the second, and only it
//! ```

use std::collections::BTreeMap;

use isotherm_model::batch::Process;
use isotherm_model::page::PageIndex;
use isotherm_model::units::{Bytes, portion};
use isotherm_model::watch::Observation;

use super::index::Index;
use super::newcomers::fair_share;

/// Weight of heat, in thousandths: 1,000 leaves it unchanged, 4,000 multiplies it by four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Priority(pub u32);

impl Priority {
    /// Heat unchanged.
    pub const NORMAL: Self = Self(1_000);

    /// The weighted rank; a rank above 0 stays above 0.
    fn weigh(self, rank: u64) -> u64 {
        let weighed = portion(rank, self.0.into(), Self::NORMAL.0.into());
        weighed.max(u64::from(rank > 0))
    }
}

/// The settings of one entry, for all processes that obey it together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupLimit {
    /// Most bytes of the fast tier for them; `None` for no limit. It has precedence over the floor.
    pub cap: Option<Bytes>,
    /// Bytes of the fast tier that they keep regardless of others, as long as they have that much with any heat.
    pub floor: Bytes,
    /// Weight of their heat compared with others.
    pub priority: Priority,
}

impl Default for GroupLimit {
    fn default() -> Self {
        Self {
            cap: None,
            floor: Bytes::ZERO,
            priority: Priority::NORMAL,
        }
    }
}

/// The number and name of the entry that a control group obeys.
pub(crate) fn entry_of<'a>(
    limits: &'a BTreeMap<String, GroupLimit>,
    control_group: &str,
) -> Option<(usize, &'a str)> {
    let fits = |name: &str| {
        control_group
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || name.ends_with('/'))
    };
    let names = limits.keys().map(String::as_str).enumerate();
    let fitting = names.filter(|(_, name)| fits(name));
    fitting.max_by_key(|(_, name)| name.len())
}

/// An entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Most units that may be fast, rounded down, so that the cap holds.
    pub cap: usize,
    /// Bytes that are kept.
    pub floor: u64,
    /// Weight of heat.
    pub priority: Priority,
    /// True if the entry is that of a newcomer. Its floor is kept after those of the settings, and
    /// rounded down to whole huge pages.
    pub is_newcomer: bool,
}

impl Bounds {
    /// The entry of a newcomer with this fair share.
    const fn of_newcomer(share: u64) -> Self {
        Self {
            cap: usize::MAX,
            floor: share,
            priority: Priority::NORMAL,
            is_newcomer: true,
        }
    }
}

/// The entries, first those of the settings and then those of newcomers, and the entry of each unit.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    bounds: Vec<Bounds>,
    /// The entry of each unit, by the unit's number; `None` if no entry applies.
    of: Vec<Option<u32>>,
    /// The processes that have an entry as newcomers.
    newcomers: BTreeMap<Process, usize>,
}

impl Groups {
    /// Entries, and the entry of each unit by its number.
    #[cfg(test)]
    pub(super) const fn new(bounds: Vec<Bounds>, of: Vec<Option<u32>>) -> Self {
        Self {
            bounds,
            of,
            newcomers: BTreeMap::new(),
        }
    }

    /// Finds the entry of each process in this epoch. `is_new` is true for processes that have a
    /// fair share where they obey no entry of the settings.
    pub(super) fn find(
        limits: &BTreeMap<String, GroupLimit>,
        seen: &Observation,
        index: &Index,
        unit: Bytes,
        is_new: impl Fn(Process) -> bool,
    ) -> Self {
        let unit = unit.0.max(1);
        let units = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let bounds = limits.values().map(|limit| Bounds {
            cap: limit.cap.map_or(usize::MAX, |cap| units(cap.0 / unit)),
            floor: limit.floor.0,
            priority: limit.priority,
            is_newcomer: false,
        });
        let mut bounds: Vec<Bounds> = bounds.collect();
        let entries = seen.processes.iter().filter_map(|watched| {
            let (number, _) = entry_of(limits, &watched.control_group)?;
            Some((watched.process, number))
        });
        let mut entries: BTreeMap<Process, usize> = entries.collect();
        let floors = bounds
            .iter()
            .map(|bounds| units(bounds.floor.div_ceil(unit)).min(bounds.cap));
        let floors = floors.fold(0, usize::saturating_add);
        let unkept = units(seen.capacity.0 / unit).saturating_sub(floors);
        let (share, with_heat) = fair_share(index, unkept);
        let mut started = BTreeMap::new();
        for watched in seen.processes.iter().filter(|_| share > 0) {
            let process = watched.process;
            if !entries.contains_key(&process) && with_heat.contains(&process) && is_new(process) {
                entries.insert(process, bounds.len());
                started.insert(process, share);
                bounds.push(Bounds::of_newcomer((share as u64).saturating_mul(unit)));
            }
        }
        let of = |known: &super::index::UnitState| {
            let entry = entries.get(&known.unit?.process)?;
            u32::try_from(*entry).ok()
        };
        Self {
            of: index.known().iter().map(of).collect(),
            bounds,
            newcomers: started,
        }
    }

    /// The units that a process keeps as a newcomer; 0 for any other.
    pub(super) fn fair_share(&self, process: Process) -> usize {
        self.newcomers.get(&process).copied().unwrap_or(0)
    }

    /// The entry of a unit.
    pub(super) fn of(&self, page: PageIndex) -> Option<usize> {
        let entry = self.of.get(page.at()).copied().flatten()?;
        let entry = usize::try_from(entry).ok()?;
        (entry < self.bounds.len()).then_some(entry)
    }

    /// The entries.
    pub(super) fn bounds(&self) -> &[Bounds] {
        &self.bounds
    }

    /// The given units that obey an entry, by entry.
    pub(super) fn members(&self, pages: impl Iterator<Item = PageIndex>) -> Vec<Vec<PageIndex>> {
        let mut members = vec![Vec::new(); self.bounds.len()];
        for page in pages {
            if let Some(group) = self.of(page) {
                members[group].push(page);
            }
        }
        members
    }

    /// Weighs the rank of each unit by its priority.
    pub(super) fn weigh(&self, ranks: &mut [u64]) {
        for (rank, number) in ranks.iter_mut().zip(0_u32..) {
            if let Some(group) = self.of(PageIndex(number)) {
                *rank = self.bounds[group].priority.weigh(*rank);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bounds, GroupLimit, Groups, Priority, entry_of};
    use std::collections::BTreeMap;

    #[test]
    fn the_longest_name_that_fits_counts_and_a_part_of_a_name_fits_nothing() {
        let names = ["/", "/a", "/a/b"];
        let limits: BTreeMap<_, _> = names
            .map(|name| (name.to_owned(), GroupLimit::default()))
            .into();
        let name = |group| entry_of(&limits, group).map(|(_, name)| name);
        assert_eq!(name("/a/b/c"), Some("/a/b"));
        assert_eq!(name("/a/bc"), Some("/a"));
        assert_eq!(name("/ab"), Some("/"));
        assert_eq!(name(""), None, "no control group");
    }

    #[test]
    fn priorities_weigh_heat_and_leave_some_of_any() {
        let entry = |priority| Bounds {
            cap: usize::MAX,
            floor: 0,
            priority: Priority(priority),
            is_newcomer: false,
        };
        let of = vec![Some(0), Some(1), None, Some(0), Some(1)];
        let groups = Groups::new(vec![entry(250), entry(4_000)], of);
        let mut ranks = [10, 10, 10, 1, u64::MAX];
        groups.weigh(&mut ranks);
        assert_eq!(ranks, [2, 40, 10, 1, u64::MAX]);
        let mut cold = [0; 5];
        groups.weigh(&mut cold);
        assert_eq!(cold, [0; 5]);
    }
}
