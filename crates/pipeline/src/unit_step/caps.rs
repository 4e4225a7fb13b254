//! Limits on the share of a control group, applied to what the policy sees and to what it wants.
//!
//! A *cap* bounds the units of a group that may be fast: beyond its hottest ones the policy is
//! shown none of its heat, and none of them is wanted. The room goes to others.

use std::collections::BTreeMap;

use isotherm_model::page::PageIndex;

/// Groups by unit and their caps.
#[derive(Clone, Debug, Default)]
pub(super) struct Caps {
    /// Units that each group with a cap may have fast.
    caps: Vec<usize>,
    /// The group of each unit; None where it has no cap.
    group: Vec<Option<u32>>,
}

impl Caps {
    /// Caps in units, and the capped group of each unit by its number.
    pub(super) const fn new(caps: Vec<usize>, group: Vec<Option<u32>>) -> Self {
        Self { caps, group }
    }

    /// Takes the ranks away from the units beyond each group's cap: of equal rank those that are
    /// fast already keep theirs, then the older ones.
    pub(super) fn hide(&self, ranks: &mut [u64], fast: &[bool]) {
        for page in self.beyond(ranks, fast, 0..ranks.len() as u32) {
            ranks[page.at()] = 0;
        }
    }

    /// Takes the units beyond each group's cap from what is wanted.
    pub(super) fn cut(&self, ranks: &[u64], fast: &[bool], wanted: &mut Vec<PageIndex>) {
        let pages: Vec<u32> = wanted.iter().map(|page| page.0).collect();
        let beyond = self.beyond(ranks, fast, pages.into_iter());
        let beyond: std::collections::BTreeSet<_> = beyond.into_iter().collect();
        wanted.retain(|page| !beyond.contains(page));
    }

    fn beyond(
        &self,
        ranks: &[u64],
        fast: &[bool],
        pages: impl Iterator<Item = u32>,
    ) -> Vec<PageIndex> {
        let mut members: BTreeMap<u32, Vec<PageIndex>> = BTreeMap::new();
        for page in pages.map(PageIndex) {
            if let Some(group) = self.group.get(page.at()).copied().flatten() {
                members.entry(group).or_default().push(page);
            }
        }
        let mut beyond = Vec::new();
        for (group, mut pages) in members {
            let cap = self.caps.get(group as usize).copied().unwrap_or(usize::MAX);
            pages.sort_unstable_by_key(|page| {
                (
                    std::cmp::Reverse((ranks[page.at()], fast[page.at()])),
                    *page,
                )
            });
            beyond.extend(pages.into_iter().skip(cap));
        }
        beyond
    }
}

#[cfg(test)]
mod tests {
    use super::Caps;
    use isotherm_model::page::PageIndex;

    #[test]
    fn a_group_keeps_its_hottest_units_and_others_are_left_alone() {
        let caps = Caps::new(vec![1], vec![Some(0), Some(0), None, Some(0)]);
        let mut ranks = vec![5, 9, 7, 9];
        caps.hide(&mut ranks, &[false, false, false, true]);
        assert_eq!(ranks, [0, 0, 7, 9], "of two alike the fast one stays");
        let mut wanted: Vec<PageIndex> = (0..4).map(PageIndex).collect();
        caps.cut(&ranks, &[false; 4], &mut wanted);
        assert_eq!(wanted, [PageIndex(2), PageIndex(3)]);
    }
}
