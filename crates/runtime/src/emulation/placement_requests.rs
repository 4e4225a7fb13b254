//! Finds the next [`PlacementRequest`] of the observer, the Isotherm process outside, in the session file, and marks it as obeyed: an arena
//! or large mapping that should move to another tier (`wanted_tier`), or pages that should (the ring of page requests). Both emulations
//! obey them.
//!
//! Any value may change at any time, so each is read once and checked.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};

use isotherm_abi::session::NO_TIER;

use super::table::PAGE_BYTES;
use crate::tables::SessionTables;

/// The subject of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The arena with this number.
    Arena(u32),
    /// The mapping in this slot.
    Mapping(u32),
    /// This many pages from this address on.
    Pages(usize, usize),
}

/// A request: this subject should be in that tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlacementRequest {
    pub(crate) subject: Subject,
    /// An index into the tier table.
    pub(crate) tier: u32,
}

impl SessionTables {
    /// The first open request among `tiers` tiers: the slowest tier's first, because demotions make
    /// room for promotions. Pages come last, in the order of their requests.
    pub(crate) fn first_request(&self, tiers: u32) -> Option<PlacementRequest> {
        let mut best: Option<PlacementRequest> = None;
        let mut consider = |subject, wanted: &AtomicU32| {
            // A request for the tier that the subject has is open too: its pages may have spilled.
            let wanted = wanted.load(Ordering::Relaxed);
            if wanted < tiers && best.is_none_or(|best| wanted > best.tier) {
                best = Some(PlacementRequest {
                    subject,
                    tier: wanted,
                });
            }
        };
        let arenas = self.header.arena_count.load(Ordering::Acquire) as usize;
        for (index, arena) in self.arenas.iter().take(arenas).enumerate() {
            consider(Subject::Arena(index as u32), &arena.wanted_tier);
        }
        let mappings = self.header.mapping_count.load(Ordering::Acquire) as usize;
        for (index, mapping) in self.mappings.iter().take(mappings).enumerate() {
            if mapping.bytes.load(Ordering::Relaxed) > 0 {
                consider(Subject::Mapping(index as u32), &mapping.wanted_tier);
            }
        }
        best.or_else(|| self.first_page_request(tiers))
    }

    /// Whether requests to move pages wait.
    pub(crate) fn has_page_requests(&self) -> bool {
        let table = &self.header.pages;
        table.requested.load(Ordering::Relaxed) != table.obeyed.load(Ordering::Relaxed)
    }

    /// The oldest open request to move pages. Requests that make no sense are passed over.
    fn first_page_request(&self, tiers: u32) -> Option<PlacementRequest> {
        let slots = self.page_requests.len() as u64;
        let table = &self.header.pages;
        let mut obeyed = table.obeyed.load(Ordering::Relaxed);
        let requested = table.requested.load(Ordering::Acquire);
        if obeyed > requested || requested - obeyed > slots {
            table.obeyed.store(requested, Ordering::Release);
            return None;
        }
        while obeyed < requested {
            let record = &self.page_requests[(obeyed % slots) as usize];
            let tier = record.tier.load(Ordering::Relaxed);
            let start = record.start.load(Ordering::Relaxed) as usize;
            let pages = record.pages.load(Ordering::Relaxed) as usize;
            if tier < tiers && start.is_multiple_of(PAGE_BYTES) && pages > 0 {
                let subject = Subject::Pages(start, pages);
                return Some(PlacementRequest { subject, tier });
            }
            obeyed += 1;
            table.obeyed.store(obeyed, Ordering::Release);
        }
        None
    }

    /// Publishes that the request is obeyed: new memory of the subject belongs to its tier from now on. The
    /// request is cleared, unless the observer has written another one since.
    pub(crate) fn accept(&self, request: &PlacementRequest) {
        let (tier, wanted) = match request.subject {
            Subject::Arena(index) => {
                let arena = &self.arenas[index as usize];
                (&arena.tier, &arena.wanted_tier)
            }
            Subject::Mapping(index) => {
                let mapping = &self.mappings[index as usize];
                (&mapping.tier, &mapping.wanted_tier)
            }
            Subject::Pages(..) => {
                self.header.pages.obeyed.fetch_add(1, Ordering::Release);
                return;
            }
        };
        tier.store(request.tier, Ordering::Release);
        let _ =
            wanted.compare_exchange(request.tier, NO_TIER, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The addresses of a mapping; `None` where its slot is empty or being written.
    pub(crate) fn mapping_range(&self, index: u32) -> Option<Range<usize>> {
        let record = &self.mappings[index as usize];
        let before = record.sequence.load(Ordering::Acquire);
        let start = record.address.load(Ordering::Acquire) as usize;
        let bytes = record.bytes.load(Ordering::Acquire) as usize;
        let stable = before.is_multiple_of(2) && record.sequence.load(Ordering::Acquire) == before;
        (stable && bytes > 0).then(|| start..start.saturating_add(bytes))
    }

    /// Whether the chunk belongs to the arena.
    pub(crate) fn owns(&self, arena: u32, chunk: usize) -> bool {
        self.owners
            .get(chunk)
            .is_some_and(|owner| owner.load(Ordering::Relaxed) == arena + 1)
    }
}
