//! [`LoadBalance`] is the epoch policy that balances the load of two tiers: step by step, it moves hot pages until fast memory serves the
//! share of heat at which the loaded latencies of both tiers are equal.
//!
//! BATMAN (Chou, Jaleel, Qureshi, MEMSYS 2017) divides the accesses as the bandwidths of the tiers; Colloid (Vuppalapati, Agarwal, SOSP
//! 2024) moves hot pages until the loaded latencies are equal. Pages are ranked as History ranks them; a controller ([`share_control`])
//! decides how much of their heat is to be fast, from the latencies under the load of the epoch that ended.
//!
//! - Fast memory is the faster one: the hottest slow pages enter, into free room or in place of colder pages.
//! - Fast memory is the slower one: the hottest pages leave, because these are the fewest that reduce the load. Their room stays free.
//! - The latencies are equal, or not known: no page moves.
//!
//! In an epoch in which pages move the load belongs to neither placement, so no decision follows it. Epochs of few hits are added up
//! ([`evidence`]).
//!
//! ```text
//! rank              a 40   b 30 | c 20   d 10     fast memory: a and b, 70 %
//! it is the slower, by more than twice            at most 25 % of the heat may leave
//! after             a 40        | b 30 ...        no page has so little: the coldest leaves, down to 40 %
//! ```
//!
//! The offline form, for whole sites, is [`Balance`](crate::Balance).

mod evidence;
mod share_control;

use std::cmp::Reverse;

use isotherm_model::page::{EpochView, PageIndex};
use isotherm_model::port::EpochPolicy;
use isotherm_model::tier_loads::TierLoads;

use evidence::{EpochSum, Evidence};
use share_control::{ShareControl, Shift};

/// Moves hot pages until both tiers have the same latency under their loads.
#[derive(Clone, Debug, Default)]
pub struct LoadBalance {
    control: ShareControl,
    /// The epochs since the last decision.
    evidence: Evidence,
    /// True where the last decision moved pages, so that the load of the next epoch belongs to neither placement.
    is_settling: bool,
    tiers: RankedPages,
}

impl LoadBalance {
    /// Its name on the command line: the site policy of the same rule has it, too.
    pub const NAME: &str = "balance";
}

impl EpochPolicy for LoadBalance {
    fn decide(&mut self, view: &EpochView<'_>, wanted: &mut Vec<PageIndex>) {
        self.evidence.add(view);
        let seen = self.evidence.sum(view.fast.len());
        let share = self.tiers.rank(view, seen);
        let was_settling = std::mem::take(&mut self.is_settling);
        let loads = seen.loads.filter(|_| seen.is_enough() && !was_settling);
        let shift = loads.map_or(Shift::Stay, |loads| self.control.next(share, loads));
        let moved = match shift {
            Shift::Stay => Moved::default(),
            Shift::More { by, below } => self.tiers.entering(by, below - share),
            Shift::Less { by, above } => self.tiers.leaving(by, share - above),
        };
        if was_settling || loads.is_some() {
            self.evidence.clear();
        }
        self.is_settling = moved != Moved::default();
        self.tiers.write(&moved, wanted);
    }

    fn skip_epoch(&mut self, loads: Option<TierLoads>) {
        if !std::mem::take(&mut self.is_settling) {
            self.evidence.add_without_hits(loads);
        }
    }

    fn forget(&mut self, pages: &[PageIndex]) {
        self.evidence.forget(pages);
    }
}

/// A page with its rank.
type RankedPage = (u64, PageIndex);

/// The pages that change their tier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Moved {
    entering: Vec<PageIndex>,
    leaving: Vec<PageIndex>,
}

/// The pages of both tiers by rank, kept between epochs to avoid allocation.
#[derive(Clone, Debug, Default)]
struct RankedPages {
    /// The fast pages that fit, coldest first; at the same rank the younger page first.
    fast: Vec<RankedPage>,
    /// The slow pages with a rank, hottest first; at the same rank the older page first.
    slow: Vec<RankedPage>,
    /// Number of further pages for which fast memory has room.
    room: usize,
    /// The sum of all ranks.
    heat: f64,
    /// The rank that one hit adds, at least 1.
    hit: f64,
}

impl RankedPages {
    /// Ranks the pages of a view by the heat of some epochs. Returns the share of the heat that is fast; 0 without heat.
    fn rank(&mut self, view: &EpochView<'_>, seen: &EpochSum) -> f64 {
        self.fast.clear();
        self.slow.clear();
        let pages = seen.ranks.iter().zip(view.fast).zip(0_u32..);
        for ((rank, is_fast), page) in pages {
            match is_fast {
                true => self.fast.push((*rank, PageIndex(page))),
                false if *rank > 0 => self.slow.push((*rank, PageIndex(page))),
                false => {}
            }
        }
        self.fast
            .sort_unstable_by_key(|(rank, page)| (*rank, Reverse(*page)));
        self.slow
            .sort_unstable_by_key(|(rank, page)| (Reverse(*rank), *page));
        let sum = |pages: &[RankedPage]| pages.iter().map(|(rank, _)| *rank as f64).sum::<f64>();
        let (fast, slow) = (sum(&self.fast), sum(&self.slow));
        self.heat = fast + slow;
        let capacity = view.capacity as usize;
        // Pages that do not fit leave, whatever the load.
        let excess = self.fast.len().saturating_sub(capacity);
        self.fast.drain(..excess);
        self.room = capacity - self.fast.len();
        self.hit = seen.hit;
        match self.heat > 0.0 {
            true => fast / self.heat,
            false => 0.0,
        }
    }

    /// The pages that enter fast memory, hottest first, and the pages that make room for them. They bring at most the share `by` of all
    /// heat; if each page brings more, the one that brings the least enters, provided that it brings less than `most`.
    fn entering(&self, by: f64, most: f64) -> Moved {
        let mut moved = Moved::default();
        let (mut room, mut leavers, mut gained) = (self.room, self.fast.iter().peekable(), 0.0);
        for (rank, page) in &self.slow {
            let leaver = leavers.peek().filter(|_| room == 0).copied();
            let Some(gain) = self.gain(*rank, (room, leaver)) else {
                break;
            };
            if gained + gain > by {
                continue;
            }
            gained += gain;
            moved.entering.push(*page);
            match leaver {
                Some((_, leaver)) => {
                    moved.leaving.push(*leaver);
                    leavers.next();
                }
                None => room -= 1,
            }
        }
        match moved.entering.is_empty() {
            true => self.entering_one(most),
            false => moved,
        }
    }

    /// The page that brings fast memory the least heat, if that is less than `most`.
    fn entering_one(&self, most: f64) -> Moved {
        let leaver = self.fast.first().filter(|_| self.room == 0);
        let gains = self.slow.iter().rev();
        let gains = gains.filter_map(|(rank, page)| {
            let gain = self.gain(*rank, (self.room, leaver))?;
            Some((gain, *page))
        });
        let least = gains.take(1).find(|(gain, _)| *gain < most);
        least.map_or_else(Moved::default, |(_, page)| Moved {
            entering: vec![page],
            leaving: leaver.map(|(_, page)| *page).into_iter().collect(),
        })
    }

    /// The share of all heat that fast memory gains by a page of this rank, into free room or in place of the other page; `None` if it
    /// gains nothing, or no more than two pages of equal heat differ by chance: a standard deviation.
    fn gain(&self, rank: u64, (room, leaver): (usize, Option<&RankedPage>)) -> Option<f64> {
        let rank = rank as f64;
        let (replaced, chance) = match (room, leaver) {
            (0, None) => return None,
            (_, None) => (0.0, 0.0),
            (_, Some((other, _))) => {
                let other = *other as f64;
                (other, ((rank + other) * self.hit).sqrt())
            }
        };
        (rank - replaced > chance).then(|| (rank - replaced) / self.heat)
    }

    /// The pages that leave fast memory, hottest first. They have at most the share `by` of all heat; if each accessed page has more, the
    /// coldest of them leaves, provided that it has less than `most`.
    fn leaving(&self, by: f64, most: f64) -> Moved {
        let share = |rank: u64| rank as f64 / self.heat;
        let accessed = || self.fast.iter().filter(|(rank, _)| *rank > 0);
        let mut lost = 0.0;
        let mut leaving: Vec<PageIndex> = Vec::new();
        for (rank, page) in accessed().rev() {
            if lost + share(*rank) <= by {
                lost += share(*rank);
                leaving.push(*page);
            }
        }
        if leaving.is_empty() {
            let coldest = accessed().next().filter(|(rank, _)| share(*rank) < most);
            leaving.extend(coldest.map(|(_, page)| *page));
        }
        Moved {
            entering: Vec::new(),
            leaving,
        }
    }

    /// Writes the pages that are fast after these moves.
    fn write(&self, moved: &Moved, wanted: &mut Vec<PageIndex>) {
        let mut leaving = moved.leaving.clone();
        leaving.sort_unstable();
        wanted.clear();
        let stay = self.fast.iter().map(|(_, page)| *page);
        wanted.extend(stay.filter(|page| leaving.binary_search(page).is_err()));
        wanted.extend(&moved.entering);
    }
}

#[cfg(test)]
mod tests;
