//! Caps limit how much of the fast tier a control group may use: [`hide`] applies them to the input of the policy and [`cut`] to its
//! output.
//!
//! The heat of units beyond the group's hottest ones is hidden from the policy, and none of them is
//! wanted. The room goes to other groups.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use isotherm_model::page::PageIndex;

use super::groups::Groups;

/// Sets the ranks of units beyond each group's cap to zero. Among equal ranks the units that are
/// already fast keep theirs, then the older ones.
pub(super) fn hide(groups: &Groups, ranks: &mut [u64], fast: &[bool]) {
    let all = (0..ranks.len() as u32).map(PageIndex);
    for page in beyond(groups, ranks, fast, all) {
        ranks[page.at()] = 0;
    }
}

/// Removes the units beyond each group's cap from the wanted ones.
pub(super) fn cut(groups: &Groups, ranks: &[u64], fast: &[bool], wanted: &mut Vec<PageIndex>) {
    let beyond = beyond(groups, ranks, fast, wanted.iter().copied());
    let beyond: BTreeSet<PageIndex> = beyond.into_iter().collect();
    wanted.retain(|page| !beyond.contains(page));
}

fn beyond(
    groups: &Groups,
    ranks: &[u64],
    fast: &[bool],
    pages: impl Iterator<Item = PageIndex>,
) -> Vec<PageIndex> {
    let mut beyond = Vec::new();
    for (mut pages, bounds) in groups.members(pages).into_iter().zip(groups.bounds()) {
        pages.sort_unstable_by_key(|page| (Reverse((ranks[page.at()], fast[page.at()])), *page));
        beyond.extend(pages.into_iter().skip(bounds.cap));
    }
    beyond
}

#[cfg(test)]
mod tests {
    use super::{cut, hide};
    use crate::unit_step::groups::{Bounds, Groups, Priority};
    use isotherm_model::page::PageIndex;

    #[test]
    fn a_group_keeps_its_hottest_units_and_others_are_left_alone() {
        let one = Bounds {
            cap: 1,
            floor: 0,
            priority: Priority::NORMAL,
            is_newcomer: false,
        };
        let groups = Groups::new(vec![one], vec![Some(0), Some(0), None, Some(0)]);
        let mut ranks = vec![5, 9, 7, 9];
        hide(&groups, &mut ranks, &[false, false, false, true]);
        assert_eq!(ranks, [0, 0, 7, 9], "of two alike the fast one stays");
        let mut wanted: Vec<PageIndex> = (0..4).map(PageIndex).collect();
        cut(&groups, &ranks, &[false; 4], &mut wanted);
        assert_eq!(wanted, [PageIndex(2), PageIndex(3)]);
    }
}
