//! [`HeatHints`] holds the hints of programs on the heat of their memory. An optimization obeys them, and chooses other data by samples.
//!
//! | hint | |
//! |---|---|
//! | hot | enters fast memory before everything else, as far as the capacity goes, in the order of addresses |
//! | cold | leaves fast memory |
//! | streaming | is not chosen: it leaves its room to what is |

use isotherm_model::batch::Process;
use isotherm_model::movement::AddressRange;
use isotherm_model::units::Bytes;
use isotherm_policy::PAGE;

use super::addresses::{Addresses, first_bytes, pages};

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

/// The hints of programs: each page has at most one.
#[derive(Clone, Debug, Default)]
pub struct HeatHints {
    pub(super) hot: Addresses,
    pub(super) cold: Addresses,
    streaming: Addresses,
}

impl HeatHints {
    /// Adds a hint in place of earlier hints of the same pages. A page of which a part is hot is hot; a page of which only a part is cold
    /// or streamed has no hint.
    pub fn add(&mut self, process: Process, range: AddressRange, hint: HeatHint) {
        let inner = range.start.next_multiple_of(PAGE)..range.end() / PAGE * PAGE;
        let pages = match hint {
            HeatHint::Hot => pages(&range.span()),
            HeatHint::Cold | HeatHint::Streaming => inner,
        };
        for set in [&mut self.hot, &mut self.cold, &mut self.streaming] {
            set.remove(process, &pages);
        }
        let set = match hint {
            HeatHint::Hot => &mut self.hot,
            HeatHint::Cold => &mut self.cold,
            HeatHint::Streaming => &mut self.streaming,
        };
        set.add(process, pages);
    }

    /// The pages that have a hint.
    pub(super) fn all(&self) -> Addresses {
        self.hot.union(&self.cold).union(&self.streaming)
    }

    /// The hot pages that are resident, as many as the capacity takes, and the bytes of the capacity that they leave.
    pub(super) fn hot_within(&self, resident: &Addresses, capacity: Bytes) -> (Addresses, Bytes) {
        let mut left = capacity.0 / PAGE * PAGE;
        let hot = first_bytes(self.hot.intersection(resident).ranges(), &mut left);
        (hot, Bytes(left))
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
        let pages = |from: u64, to: u64| from * PAGE..to * PAGE;
        assert_eq!(
            hints.hot.of(PROCESS),
            [pages(0, 2), pages(3, 10), pages(20, 21)]
        );
        assert_eq!(hints.cold.of(PROCESS), [pages(2, 3)]);
        assert_eq!(hints.all().of(PROCESS), [pages(0, 10), pages(20, 21)]);
    }
}
