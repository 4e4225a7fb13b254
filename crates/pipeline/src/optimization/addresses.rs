//! `Addresses` holds sets of addresses of several processes, with their union, intersection and difference, for the choice and the moves of
//! an optimization; `ResidentByTier` holds the resident pages of each tier as such sets.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

use isotherm_model::batch::Process;
use isotherm_model::movement::AddressRange;
use isotherm_model::spans;
use isotherm_model::watch::ResidentRun;
use isotherm_policy::PAGE;

/// A range of a process.
pub type ProcessRange = (Process, AddressRange);

/// A set of addresses for each process: sorted ranges with a gap between any two.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses(BTreeMap<Process, Vec<Range<u64>>>);

impl Addresses {
    /// The addresses of a process.
    pub(super) fn of(&self, process: Process) -> &[Range<u64>] {
        self.0.get(&process).map_or(&[], Vec::as_slice)
    }

    /// All ranges, by process and address.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (Process, Range<u64>)> {
        let sets = self.0.iter();
        sets.flat_map(|(process, set)| set.iter().map(|range| (*process, range.clone())))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of all ranges.
    pub(super) fn total(&self) -> u64 {
        self.0.values().map(|set| spans::total(set)).sum()
    }

    /// The addresses in one of the sets.
    pub(super) fn union(&self, other: &Self) -> Self {
        self.ranges().chain(other.ranges()).collect()
    }

    /// The addresses in both sets.
    pub(super) fn intersection(&self, other: &Self) -> Self {
        self.with(other, spans::intersection)
    }

    /// The addresses in this set and not in the other.
    pub(super) fn difference(&self, other: &Self) -> Self {
        self.with(other, spans::difference)
    }

    fn with(
        &self,
        other: &Self,
        operation: impl Fn(&[Range<u64>], &[Range<u64>]) -> Vec<Range<u64>>,
    ) -> Self {
        let of_process = |(process, set): (&Process, &Vec<Range<u64>>)| {
            let set = operation(set, other.of(*process));
            (!set.is_empty()).then_some((*process, set))
        };
        Self(self.0.iter().filter_map(of_process).collect())
    }

    /// Adds a range of a process.
    pub(super) fn add(&mut self, process: Process, range: Range<u64>) {
        if !range.is_empty() {
            let set = self.0.entry(process).or_default();
            set.push(range);
            *set = spans::joined(std::mem::take(set));
        }
    }

    /// Removes a range of a process.
    pub(super) fn remove(&mut self, process: Process, range: &Range<u64>) {
        if let Entry::Occupied(mut set) = self.0.entry(process) {
            let left = spans::difference(set.get(), std::slice::from_ref(range));
            match left.is_empty() {
                true => drop(set.remove()),
                false => *set.get_mut() = left,
            }
        }
    }

    /// All ranges, in the form of [`ProcessRange`].
    pub(super) fn process_ranges(&self) -> Vec<ProcessRange> {
        let range = |range: Range<u64>| AddressRange::between(range.start, range.end);
        let ranges = self.ranges();
        ranges.map(|(process, it)| (process, range(it))).collect()
    }
}

/// The ranges may come in any order and overlap.
impl FromIterator<(Process, Range<u64>)> for Addresses {
    fn from_iter<I: IntoIterator<Item = (Process, Range<u64>)>>(ranges: I) -> Self {
        let mut by_process = BTreeMap::<Process, Vec<Range<u64>>>::new();
        for (process, range) in ranges {
            if !range.is_empty() {
                by_process.entry(process).or_default().push(range);
            }
        }
        for set in by_process.values_mut() {
            *set = spans::joined(std::mem::take(set));
        }
        Self(by_process)
    }
}

impl<'a> FromIterator<&'a ProcessRange> for Addresses {
    fn from_iter<I: IntoIterator<Item = &'a ProcessRange>>(ranges: I) -> Self {
        let range = |(process, range): &ProcessRange| (*process, range.span());
        ranges.into_iter().map(range).collect()
    }
}

/// The pages that hold a part of a range.
pub(super) fn pages(range: &Range<u64>) -> Range<u64> {
    range.start / PAGE * PAGE..range.end.saturating_add(PAGE - 1) / PAGE * PAGE
}

/// The first of these ranges, up to `room` bytes; reduces `room` by the bytes taken.
pub(super) fn first_bytes(
    ranges: impl Iterator<Item = (Process, Range<u64>)>,
    room: &mut u64,
) -> Addresses {
    let cut = |(process, range): (Process, Range<u64>)| {
        let taken = (*room).min(range.end - range.start);
        *room -= taken;
        (process, range.start..range.start + taken)
    };
    ranges.map(cut).collect()
}

/// The resident pages of processes, by tier.
pub(super) struct ResidentByTier {
    pub(super) slow: Addresses,
    pub(super) fast: Addresses,
}

impl ResidentByTier {
    pub(super) fn of(resident: &BTreeMap<Process, Vec<ResidentRun>>) -> Self {
        let runs = resident
            .iter()
            .flat_map(|(process, runs)| runs.iter().map(|run| (*process, run)));
        let of_tier = |is_fast: bool| {
            let runs = runs.clone().filter(|(_, run)| run.is_fast == is_fast);
            runs.map(|(process, run)| (process, run.range.span()))
                .collect()
        };
        Self {
            slow: of_tier(false),
            fast: of_tier(true),
        }
    }
}
