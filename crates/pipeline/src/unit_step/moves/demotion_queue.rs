//! `DemotionQueue` gives out the units that should leave the fast tier, coldest first. It holds back units whose demotion would bring their
//! group below its floor.
//!
//! A group at its floor may still exchange its own units for hotter ones: a unit of the group that enters lets it lose as many bytes.

use std::collections::VecDeque;

use isotherm_model::page::PageIndex;

use crate::unit_step::placement_requests::PlacementRequests;

/// The units that should leave and were not given out yet.
pub(super) struct DemotionQueue<'a> {
    requests: PlacementRequests<'a>,
    coldest: VecDeque<PageIndex>,
    /// Units that were held back because their group had no bytes to lose, by group.
    held_back: Vec<VecDeque<PageIndex>>,
    /// Bytes that each group may lose.
    spare: Vec<i64>,
}

impl<'a> DemotionQueue<'a> {
    /// Units that should leave, coldest first.
    pub(super) fn new(
        requests: PlacementRequests<'a>,
        coldest: Vec<PageIndex>,
        spare: Vec<i64>,
    ) -> Self {
        Self {
            requests,
            coldest: coldest.into(),
            held_back: vec![VecDeque::new(); spare.len()],
            spare,
        }
    }

    /// Units whose demotion makes this much room for a unit that enters. If there are not enough, returns `None` and changes nothing.
    pub(super) fn beside(&mut self, newcomer: PageIndex, bytes: u64) -> Option<Vec<PageIndex>> {
        self.gain(newcomer, self.enters(newcomer));
        let group = self.requests.groups.of(newcomer);
        let (mut gained, mut takes) = (0_u64, Vec::new());
        while gained < bytes {
            let Some(leaver) = self.next(group) else {
                self.give_back(newcomer, takes);
                return None;
            };
            gained = gained.saturating_add(self.requests.fast(leaver));
            takes.push(leaver);
        }
        Some(takes)
    }

    /// Puts back the units that were given out for a unit that does not enter.
    pub(super) fn give_back(&mut self, newcomer: PageIndex, takes: Vec<PageIndex>) {
        self.gain(newcomer, -self.enters(newcomer));
        for page in takes.into_iter().rev() {
            self.gain(page, self.leaves(page));
            self.coldest.push_front(page);
        }
    }

    /// The coldest unit that may leave.
    pub(super) fn coldest(&mut self) -> Option<PageIndex> {
        self.next(None)
    }

    /// All other units that may leave, but for those of which a smaller part is fast: these leave only if their room is needed.
    pub(super) fn rest(mut self) -> impl Iterator<Item = PageIndex> {
        for list in &mut self.held_back {
            self.coldest.append(list);
        }
        self.coldest.retain(|page| self.requests.is_fast(*page));
        std::iter::from_fn(move || self.next(None))
    }

    /// The coldest unit that may leave. If a unit of `group` enters, the held-back units of this
    /// group come first, which are colder than all that follow.
    fn next(&mut self, group: Option<usize>) -> Option<PageIndex> {
        if let Some(group) = group
            && let Some(page) = self.held_back[group].front().copied()
            && self.spare[group] >= self.leaves(page)
        {
            self.held_back[group].pop_front();
            self.spare[group] -= self.leaves(page);
            return Some(page);
        }
        while let Some(page) = self.coldest.pop_front() {
            let bytes = self.leaves(page);
            match self.requests.groups.of(page) {
                Some(group) if self.spare[group] < bytes => {
                    self.held_back[group].push_back(page);
                }
                Some(group) => {
                    self.spare[group] -= bytes;
                    return Some(page);
                }
                None => return Some(page),
            }
        }
        None
    }

    /// Bytes that enter the fast tier with a unit that is promoted; no machine has 2^63.
    fn enters(&self, page: PageIndex) -> i64 {
        let bytes = self.requests.resident(page) - self.requests.fast(page);
        bytes as i64
    }

    /// Bytes that leave the fast tier with a unit that is demoted.
    fn leaves(&self, page: PageIndex) -> i64 {
        self.requests.fast(page) as i64
    }

    fn gain(&mut self, page: PageIndex, bytes: i64) {
        if let Some(group) = self.requests.groups.of(page) {
            self.spare[group] += bytes;
        }
    }
}
