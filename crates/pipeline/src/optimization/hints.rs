//! [`HeatHints`] holds the hints of programs on the heat of their memory. An optimization obeys them, and chooses other data by samples.
//!
//! | hint | |
//! |---|---|
//! | hot | enters fast memory before everything else, as far as the capacity goes, in the order of addresses |
//! | cold | leaves fast memory |
//! | streaming | is not chosen: it leaves its room to what is |

use std::collections::BTreeMap;
use std::ops::Range;

use isotherm_model::batch::Process;
use isotherm_model::movement::AddressRange;
use isotherm_model::spans;
use isotherm_policy::PAGE;

use super::resident::ResidentByTier;

/// The heat of memory as its program states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeatHint {
    /// To be in fast memory before all other data.
    Hot,
    /// Not to be in fast memory.
    Cold,
    /// Read or written in order.
    Streaming,
}

/// The hints of programs: each page has one at most.
#[derive(Clone, Debug, Default)]
pub struct HeatHints(BTreeMap<Process, Hinted>);

#[derive(Clone, Debug, Default)]
struct Hinted {
    hot: Vec<Range<u64>>,
    cold: Vec<Range<u64>>,
    streaming: Vec<Range<u64>>,
}

impl HeatHints {
    /// Adds a hint in place of earlier hints of the same pages. A page of which a part is hot is hot; a page of which only a part is cold
    /// or streamed has no hint.
    pub fn add(&mut self, process: Process, range: AddressRange, hint: HeatHint) {
        let outer = range.start / PAGE * PAGE..range.end().next_multiple_of(PAGE);
        let inner = range.start.next_multiple_of(PAGE)..range.end() / PAGE * PAGE;
        let pages = match hint {
            HeatHint::Hot => outer,
            HeatHint::Cold | HeatHint::Streaming => inner,
        };
        if pages.is_empty() {
            return;
        }
        let hinted = self.0.entry(process).or_default();
        for set in [&mut hinted.hot, &mut hinted.cold, &mut hinted.streaming] {
            *set = spans::difference(set, std::slice::from_ref(&pages));
        }
        let set = match hint {
            HeatHint::Hot => &mut hinted.hot,
            HeatHint::Cold => &mut hinted.cold,
            HeatHint::Streaming => &mut hinted.streaming,
        };
        set.push(pages);
        *set = spans::joined(std::mem::take(set));
    }

    /// The pages of a process that have a hint.
    pub(super) fn all_of(&self, process: Process) -> Vec<Range<u64>> {
        let hinted = self.0.get(&process);
        let sets = hinted.map(|hinted| [&hinted.hot, &hinted.cold, &hinted.streaming]);
        spans::joined(sets.into_iter().flatten().flatten().cloned().collect())
    }

    /// The hot pages of a process.
    pub(super) fn hot_of(&self, process: Process) -> &[Range<u64>] {
        self.0.get(&process).map_or(&[], |hinted| &hinted.hot)
    }

    /// The cold pages of a process.
    pub(super) fn cold_of(&self, process: Process) -> &[Range<u64>] {
        self.0.get(&process).map_or(&[], |hinted| &hinted.cold)
    }

    /// The hot pages that are resident, as many as the capacity takes, and the bytes that they leave of it.
    pub(super) fn hot(
        &self,
        tiers: &ResidentByTier,
        capacity: u64,
    ) -> (BTreeMap<Process, Vec<Range<u64>>>, u64) {
        let mut left = capacity / PAGE * PAGE;
        let mut taken = BTreeMap::new();
        for (process, hinted) in &self.0 {
            let resident = [tiers.fast_of(*process), tiers.slow_of(*process)];
            let resident = resident
                .iter()
                .flat_map(|set| spans::intersection(&hinted.hot, set));
            let cut = |range: Range<u64>| {
                let bytes = left.min(range.end - range.start);
                left -= bytes;
                range.start..range.start + bytes
            };
            let hot = spans::joined(
                spans::joined(resident.collect())
                    .into_iter()
                    .map(cut)
                    .collect(),
            );
            if !hot.is_empty() {
                taken.insert(*process, hot);
            }
        }
        (taken, left)
    }
}

#[cfg(test)]
mod tests {
    use super::{HeatHint, HeatHints, PAGE};
    use isotherm_model::batch::Process;
    use isotherm_model::movement::AddressRange;
    use isotherm_model::units::Bytes;

    const PROCESS: Process = Process { pid: 7, image: 0 };

    #[test]
    fn of_two_hints_about_a_page_the_later_one_holds() {
        let mut hints = HeatHints::default();
        let mut add = |start: u64, end: u64, hint| {
            let range = AddressRange {
                start,
                bytes: Bytes(end - start),
            };
            hints.add(PROCESS, range, hint);
        };
        add(0, 10 * PAGE, HeatHint::Hot);
        // Page 3 is cold in part.
        add(2 * PAGE, 4 * PAGE - 1, HeatHint::Cold);
        add(8 * PAGE + 5, 8 * PAGE + 9, HeatHint::Streaming);
        add(20 * PAGE + 5, 20 * PAGE + 9, HeatHint::Hot);
        let hinted = &hints.0[&PROCESS];
        let pages = |from: u64, to: u64| from * PAGE..to * PAGE;
        assert_eq!(hinted.hot, [pages(0, 2), pages(3, 10), pages(20, 21)]);
        assert_eq!(hints.cold_of(PROCESS), [pages(2, 3)]);
        assert_eq!(hints.all_of(PROCESS), [pages(0, 10), pages(20, 21)]);
    }
}
