//! `Index` assigns dense numbers to units, in the order of first observation, and holds the bytes by tier and the recent use of each.
//!
//! Policies store the state of a page under its number, so a number is never reused: the numbers of
//! removed units stay empty until they outnumber the living units. Then all units are renumbered,
//! and the policy starts again without state.

use std::collections::BTreeMap;

use isotherm_model::batch::Process;
use isotherm_model::page::PageIndex;
use isotherm_model::watch::{Unit, UnitResidency};

/// Up to this many empty numbers the policy's state is kept: 4,096 units of 2 MiB are 8 GiB of programs that ended, and about 0.3 MiB of
/// lists.
pub(super) const EMPTY_AT_LEAST: usize = 4096;

/// Epochs for which a unit counts as warm after its last observed access: the horizon of Payback.
/// Samples are sparse; a unit in constant use is not sampled in every epoch.
const WARM_EPOCHS: u8 = 8;

/// The state of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UnitState {
    /// `None` if the unit no longer exists.
    pub unit: Option<Unit>,
    /// Bytes resident.
    pub resident: u64,
    /// Resident bytes that are in the fast tier.
    pub fast: u64,
    /// Bytes that the kernel moves as a whole with it.
    pub grain: u64,
    /// Epochs for which it still counts as warm.
    warm: u8,
    /// True if it is in this epoch's observation.
    seen: bool,
}

/// The units by number, and the numbers by unit.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// The numbers by process and address, to find the units of a range without walking the range.
    numbers: BTreeMap<Unit, u32>,
    known: Vec<UnitState>,
    /// The numbers of the units that the last update removed, ascending.
    removed: Vec<PageIndex>,
}

impl Index {
    /// The units by number.
    pub(super) fn known(&self) -> &[UnitState] {
        &self.known
    }

    /// Whether each number's unit is fast.
    pub(super) fn fast(&self) -> Vec<bool> {
        self.known.iter().map(UnitState::is_fast).collect()
    }

    /// The unit with this number, mutable.
    pub(super) fn known_mut(&mut self, page: PageIndex) -> Option<&mut UnitState> {
        self.known.get_mut(page.at())
    }

    /// The number of a unit.
    #[cfg(test)]
    pub(super) fn number(&self, unit: Unit) -> Option<PageIndex> {
        self.numbers.get(&unit).copied().map(PageIndex)
    }

    /// A sum over some units, such as their bytes in the fast tier.
    pub(super) fn sum(&self, pages: &[PageIndex], of: impl Fn(&UnitState) -> u64) -> u64 {
        let values = pages.iter().map(|page| of(&self.known[page.at()]));
        values.fold(0, u64::saturating_add)
    }

    /// Bytes resident in some units.
    pub(super) fn resident_of(&self, pages: &[PageIndex]) -> u64 {
        self.sum(pages, |known| known.resident)
    }

    /// The units that the last update removed, ascending. Their numbers are invalid where it renumbered the others.
    pub(super) fn removed(&self) -> &[PageIndex] {
        &self.removed
    }

    /// Number of existing units.
    pub(super) fn living(&self) -> usize {
        self.numbers.len()
    }

    /// Updates the index to the present residency. Returns true if the former numbers are invalid.
    pub(super) fn update(
        &mut self,
        held: &[UnitResidency],
        unit_bytes: u64,
        modelled: bool,
    ) -> bool {
        for known in &mut self.known {
            known.seen = false;
        }
        for one in held {
            let known = self.entry(one.unit);
            let resident = one.resident.0.min(unit_bytes);
            let fast = if modelled && known.seen_before() {
                known.fast.min(resident)
            } else {
                one.fast.0.min(resident)
            };
            *known = UnitState {
                unit: Some(one.unit),
                resident,
                fast,
                grain: one.grain.0,
                warm: known.warm,
                seen: true,
            };
        }
        self.removed.clear();
        for (known, number) in self.known.iter_mut().zip(0..) {
            if let Some(unit) = known.unit
                && !known.seen
            {
                self.numbers.remove(&unit);
                self.removed.push(PageIndex(number));
                *known = UnitState::default();
            }
        }
        self.renumber()
    }

    /// Marks the units that were accessed in the epoch, by their ranks.
    pub(super) fn warm_up(&mut self, ranks: &[u64]) {
        for (known, rank) in self.known.iter_mut().zip(ranks) {
            known.warm = match rank {
                0 => known.warm.saturating_sub(1),
                _ => WARM_EPOCHS,
            };
        }
    }

    /// Units that were accessed in one of the last epochs.
    pub(super) fn warm(&self) -> impl Iterator<Item = PageIndex> {
        let known = self.known.iter().zip(0_u32..);
        let warm = known.filter(|(known, _)| known.unit.is_some() && known.warm > 0);
        warm.map(|(_, number)| PageIndex(number))
    }

    fn entry(&mut self, unit: Unit) -> &mut UnitState {
        let next = self.known.len();
        // Above 2^32 units there is no free number; the last one represents all later units.
        let number = u32::try_from(next).unwrap_or(u32::MAX);
        let at = *self.numbers.entry(unit).or_insert(number) as usize;
        if at >= next {
            self.known.push(UnitState::default());
        }
        let last = self.known.len() - 1;
        &mut self.known[at.min(last)]
    }

    fn renumber(&mut self) -> bool {
        let empty = self.known.len() - self.numbers.len().min(self.known.len());
        if empty <= EMPTY_AT_LEAST.max(self.numbers.len()) {
            return false;
        }
        self.known.retain(|known| known.unit.is_some());
        self.numbers.clear();
        for (known, number) in self.known.iter().zip(0_u32..) {
            if let Some(unit) = known.unit {
                self.numbers.insert(unit, number);
            }
        }
        true
    }

    /// All existing units, by process and address.
    pub(super) fn all(&self) -> impl Iterator<Item = (Unit, PageIndex)> {
        let numbers = self.numbers.iter();
        numbers.map(|(unit, number)| (*unit, PageIndex(*number)))
    }

    /// The units of a process from one address up to another, by address.
    pub(super) fn within(
        &self,
        process: Process,
        from: u64,
        end: u64,
    ) -> impl Iterator<Item = (Unit, PageIndex)> {
        let unit = |start| Unit { process, start };
        let units = self.numbers.range(unit(from)..unit(end.max(from)));
        units.map(|(unit, number)| (*unit, PageIndex(*number)))
    }
}

impl UnitState {
    /// True if it existed in an epoch before.
    const fn seen_before(&self) -> bool {
        self.unit.is_some()
    }

    /// True where most of its bytes are in the fast tier.
    pub(super) const fn is_fast(&self) -> bool {
        self.fast > self.resident / 2
    }
}

#[cfg(test)]
mod tests {
    use super::{EMPTY_AT_LEAST, Index};
    use isotherm_model::batch::Process;
    use isotherm_model::page::PageIndex;
    use isotherm_model::units::Bytes;
    use isotherm_model::watch::{Unit, UnitResidency};

    fn held(pid: u32, units: u64) -> Vec<UnitResidency> {
        let process = Process { pid, image: 0 };
        let unit = |number| Unit {
            process,
            start: number * 4096,
        };
        let held = |number| UnitResidency {
            unit: unit(number),
            resident: Bytes(4096),
            fast: Bytes(0),
            grain: Bytes(4096),
        };
        (0..units).map(held).collect()
    }

    #[test]
    fn a_number_is_kept_and_not_given_to_another_unit() {
        let mut index = Index::default();
        assert!(!index.update(&held(1, 3), 4096, false));
        assert!(!index.update(&held(2, 2), 4096, false));
        assert_eq!(index.number(held(1, 1)[0].unit), None);
        assert_eq!(index.removed(), [0, 1, 2].map(PageIndex));
        assert_eq!(index.number(held(2, 2)[1].unit), Some(PageIndex(4)));
        assert_eq!((index.living(), index.known().len()), (2, 5));
    }

    #[test]
    fn programs_that_come_and_go_for_days_leave_nothing_behind() {
        let mut index = Index::default();
        let mut renumbered = 0;
        // A thousand programs started and stopped in each of 24 hours.
        for pid in 0..24_000 {
            renumbered += u32::from(index.update(&held(pid, 50), 4096, false));
            assert!(index.known().len() <= EMPTY_AT_LEAST + 100);
            assert_eq!(index.living(), 50);
        }
        assert!(renumbered > 100, "{renumbered}");
        index.update(&[], 4096, false);
        assert_eq!(index.living(), 0);
    }
}
