//! [`FirstComeFirstAllocated`] is the epoch policy that moves no page: pages that entered the fast tier by first touch, while it had room,
//! stay there (TMP, section VI). It is the kernel's behaviour without a policy, with which every other policy is compared.

use isotherm_model::page::{EpochView, PageIndex};
use isotherm_model::port::EpochPolicy;

/// Fast pages stay fast; no page moves.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstComeFirstAllocated;

impl EpochPolicy for FirstComeFirstAllocated {
    fn decide(&mut self, view: &EpochView<'_>, wanted: &mut Vec<PageIndex>) {
        stay(view, wanted);
    }
}

/// The pages that are fast now.
pub(super) fn stay(view: &EpochView<'_>, wanted: &mut Vec<PageIndex>) {
    wanted.clear();
    let pages = view.fast.iter().zip(0_u32..);
    wanted.extend(pages.filter(|(fast, _)| **fast).map(|(_, i)| PageIndex(i)));
}

#[cfg(test)]
mod tests {
    use super::FirstComeFirstAllocated;
    use crate::epoch::registry::decided;

    #[test]
    fn what_came_first_stays_however_cold() {
        let fast = [true, false, true];
        let mut policy = FirstComeFirstAllocated;
        assert_eq!(
            decided(&mut policy, &[0, 9, 0], Some(&[0, 9, 0]), &fast, 2),
            [0, 2]
        );
    }
}
