//! What the operator says of control groups: the most and the least of the fast tier that they have,
//! and what their heat weighs.
//!
//! A process obeys one entry: the longest name that is its control group's or that of a group above
//! it. So no process counts in two entries, and floors can be added up.
//!
//! ```text
//! entries           /system.slice        /system.slice/redis.service
//! process in        /system.slice/a.service   -> the first
//!                   /system.slice/redis.service/worker -> the second, and only it
//! ```

use std::collections::BTreeMap;

use isotherm_model::page::PageIndex;
use isotherm_model::units::Bytes;
use isotherm_model::watch::Observation;

use super::index::Index;

/// What heat weighs, in thousandths: 1,000 as it is, 4,000 four times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Priority(pub u32);

impl Priority {
    /// Heat as it is.
    pub const NORMAL: Self = Self(1_000);

    /// A rank that weighs so much; what has any heat keeps some.
    fn weigh(self, rank: u64) -> u64 {
        // A 64-bit number times a 32-bit one fits 128 bits.
        let weighed = u128::from(rank) * u128::from(self.0) / u128::from(Self::NORMAL.0);
        let weighed = u64::try_from(weighed).unwrap_or(u64::MAX);
        weighed.max(u64::from(rank > 0))
    }
}

/// What one entry says of the processes that obey it, all of them together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupLimit {
    /// The most of the fast tier that they may have; None for as much as there is. It wins over the floor.
    pub cap: Option<Bytes>,
    /// What they keep of it whatever others do, as long as they have so much with any heat.
    pub floor: Bytes,
    /// What their heat weighs beside that of others.
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
pub(super) fn entry_of<'a>(
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

/// An entry in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Units that may be fast: whole ones, so that the cap holds.
    pub cap: usize,
    /// Units that are kept: one begun counts, so that the floor holds.
    pub floor: usize,
    /// What heat weighs.
    pub priority: Priority,
}

/// The entries, and which of them each unit obeys.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    bounds: Vec<Bounds>,
    /// By number of the unit; None where no entry fits.
    of: Vec<Option<u32>>,
}

impl Groups {
    /// Entries, and the entry of each unit by its number.
    pub(super) const fn new(bounds: Vec<Bounds>, of: Vec<Option<u32>>) -> Self {
        Self { bounds, of }
    }

    /// Who obeys which entry in this epoch.
    pub(super) fn find(
        limits: &BTreeMap<String, GroupLimit>,
        seen: &Observation,
        index: &Index,
        unit: Bytes,
    ) -> Self {
        let unit = unit.0.max(1);
        let units = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let bounds = limits.values().map(|limit| Bounds {
            cap: limit.cap.map_or(usize::MAX, |cap| units(cap.0 / unit)),
            floor: units(limit.floor.0.div_ceil(unit)),
            priority: limit.priority,
        });
        let entries = seen.processes.iter().filter_map(|watched| {
            let (number, _) = entry_of(limits, &watched.control_group)?;
            Some((watched.process, u32::try_from(number).ok()?))
        });
        let entries: BTreeMap<_, _> = entries.collect();
        let of = |known: &super::index::UnitState| entries.get(&known.unit?.process).copied();
        Self::new(bounds.collect(), index.known().iter().map(of).collect())
    }

    /// The entry of a unit.
    pub(super) fn of(&self, page: PageIndex) -> Option<usize> {
        let entry = self.of.get(page.at()).copied().flatten()?;
        let entry = usize::try_from(entry).ok()?;
        (entry < self.bounds.len()).then_some(entry)
    }

    /// The entries in units.
    pub(super) fn bounds(&self) -> &[Bounds] {
        &self.bounds
    }

    /// Those of some units that obey an entry, by entry.
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
