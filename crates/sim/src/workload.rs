//! [`Workload`] holds the accesses of a program page by page and epoch by epoch, ready for replay: made of a trace, or of a recorded
//! profile, which also has the site of each page.
//!
//! Addresses become dense page numbers once, here, in the order of first touch; a replay then
//! counts into a flat list without hashing. Because numbers follow first touch, the pages that an
//! epoch touches for the first time are those from the number known before it to the one after.
//!
//! ```text
//! addresses   0x7000 0x2000 0x7008 | 0x9000 0x2000
//! pages            0      1      0 |      2      1
//! known                          2 |             3
//! ```

mod of_profile;
mod of_trace;

use std::ops::Range;

use isotherm_model::batch::{Epoch, Process};
use isotherm_model::footprint::Footprint;
use isotherm_model::plan::Item;
use isotherm_model::site::SiteId;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_pipeline::CountedObject;

use crate::machine::Traffic;

/// The most pages of a workload: a page and a bit for writes share 32 bits.
const MOST_PAGES: usize = 1 << 31;

/// The most resident chunks of a profile, 2 TiB of the usual 64 KiB: a few rows of a damaged
/// profile must not take all memory.
const MOST_CHUNKS: u32 = 1 << 25;

/// The most epochs of a trace. More indicate a wrong unit of time, and each costs a pass over all
/// pages.
const MOST_EPOCHS: u64 = 1 << 20;

/// The length of the epochs into which a trace is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochLength {
    /// By time, counted from the first access.
    Time(Nanos),
    /// By accesses.
    Accesses(u64),
}

/// The accesses of a program. See the module's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    page: Bytes,
    touches: Touches,
    epochs: Vec<EpochEnd>,
    /// Address and site of each page; empty for a trace, which has no sites.
    places: Vec<Place>,
    footprint: Footprint,
    /// The input of chunk selection; empty for a trace.
    objects: Vec<CountedObject>,
    accesses: u64,
    left_out: u64,
}

/// A chunk of a profile, and the site of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) site: SiteId,
    /// Its address; `None` if it was resident without an observed access.
    pub(crate) at: Option<(Process, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Touches {
    /// Accesses in order: page times two, plus one for a write.
    Trace(Vec<u32>),
    /// Page and count, by epoch.
    Heat(Vec<(u32, u64)>),
}

/// End of an epoch in the touches, and the number of pages known then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct EpochEnd {
    touches: usize,
    known: u32,
}

/// Why no workload could be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// There are no accesses.
    #[error("there is no access to replay; record with a sampler that records memory accesses")]
    Empty,
    /// The size of a page is not a power of two, or zero.
    #[error("a page of {0} is not possible; its size must be a power of two, such as 4KiB")]
    PageSize(Bytes),
    /// The length of an epoch is zero.
    #[error("an epoch of length 0 is not possible; try 1s")]
    EpochLength,
    /// An access is earlier than the one before it.
    #[error(
        "access {access} is at {time}, before its predecessor at {before}; sort the trace by time"
    )]
    Order {
        /// Number of the access, from 1.
        access: u64,
        /// Its time.
        time: Nanos,
        /// The time of the one before.
        before: Nanos,
    },
    /// The trace is longer than the most epochs of a replay.
    #[error(
        "access {access} comes {after} after the first, more than {MOST_EPOCHS} epochs; choose a longer \
         epoch, or correct the trace's unit of time"
    )]
    TooManyEpochs {
        /// Number of the access beyond them, from 1.
        access: u64,
        /// Time from the first access to this one.
        after: Nanos,
    },
    /// More than 2^31 pages.
    #[error("the accesses reach more than {MOST_PAGES} pages; choose a larger page")]
    TooManyPages,
    /// A profile with more resident memory than the model holds chunk by chunk.
    #[error(
        "the profile has more than {MOST_CHUNKS} resident chunks of {0}; record with a larger --chunk"
    )]
    TooMuchResident(Bytes),
    /// Heat of an epoch that the profile does not list.
    #[error(
        "the profile has heat of epoch {}, which it does not list; it is damaged",
        .0.0
    )]
    UnknownEpoch(Epoch),
}

impl Workload {
    /// Size of a page, or of a chunk of the source profile.
    #[must_use]
    pub const fn page(&self) -> Bytes {
        self.page
    }

    /// Pages: for a trace the accessed ones, for a profile also those that were only resident.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.epochs.last().map_or(0, |end| end.known)
    }

    /// The footprint, of which capacities are shares: for a profile its own, for a trace the bytes of all pages.
    #[must_use]
    pub const fn footprint(&self) -> Footprint {
        self.footprint
    }

    /// Bytes of all pages. More than the footprint where memory was freed and other memory followed.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(self.page.0.saturating_mul(u64::from(self.pages())))
    }

    /// Number of epochs.
    #[must_use]
    pub fn epochs(&self) -> usize {
        self.epochs.len()
    }

    /// Accesses, weighted by their source.
    #[must_use]
    pub const fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Accesses of a profile that were left out because no site allocated their memory, so it
    /// cannot be placed.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// True where sites are known, so that site policies can be replayed.
    #[must_use]
    pub fn has_sites(&self) -> bool {
        !self.places.is_empty()
    }

    /// True if the order of accesses is known, so that the observations of a real source can be
    /// computed.
    #[must_use]
    pub const fn is_trace(&self) -> bool {
        matches!(self.touches, Touches::Trace(_))
    }

    /// The sites as input of a site policy: all accesses, the bytes of all pages, in the order of
    /// first touch. Empty for a trace.
    #[must_use]
    pub fn items(&self) -> Vec<Item> {
        let mut items = std::collections::BTreeMap::<SiteId, Item>::new();
        for (place, order) in self.places.iter().zip(0..) {
            let item = items.entry(place.site).or_insert(Item {
                site: place.site,
                value: 0,
                weight: Bytes::ZERO,
                order,
            });
            item.weight += self.page;
        }
        if let Touches::Heat(heat) = &self.touches {
            for &(page, count) in heat {
                if let Some(item) = items.get_mut(&self.places[page as usize].site) {
                    item.value = item.value.saturating_add(count);
                }
            }
        }
        items.into_values().collect()
    }

    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }

    pub(crate) fn objects(&self) -> &[CountedObject] {
        &self.objects
    }

    fn touches_of(&self, epoch: usize) -> Range<usize> {
        let start = epoch.checked_sub(1).map_or(0, |e| self.epochs[e].touches);
        start..self.epochs[epoch].touches
    }

    /// Pages touched for the first time in an epoch.
    pub(crate) fn new_pages(&self, epoch: usize) -> Range<u32> {
        let start = epoch.checked_sub(1).map_or(0, |e| self.epochs[e].known);
        start..self.epochs[epoch].known
    }

    /// Writes how often each page was read (even places) and written (odd places) in an epoch, and
    /// returns the sums.
    pub(crate) fn tally(&self, epoch: usize, counts: &mut [u64]) -> Traffic {
        counts.fill(0);
        let range = self.touches_of(epoch);
        let mut all = Traffic::default();
        match &self.touches {
            Touches::Trace(accesses) => {
                let accesses = &accesses[range];
                for &access in accesses {
                    counts[access as usize] += 1;
                }
                all.writes = counts.iter().skip(1).step_by(2).sum();
                all.reads = accesses.len() as u64 - all.writes;
            }
            Touches::Heat(heat) => {
                for &(page, count) in &heat[range] {
                    let sum = &mut counts[page as usize * 2];
                    *sum = sum.saturating_add(count);
                    all.reads = all.reads.saturating_add(count);
                }
            }
        }
        all
    }

    /// The pages of an epoch in the order of access; empty if the order is not known.
    pub(crate) fn accessed(&self, epoch: usize) -> impl ExactSizeIterator<Item = usize> + '_ {
        let accesses: &[u32] = match &self.touches {
            Touches::Trace(accesses) => &accesses[self.touches_of(epoch)],
            Touches::Heat(_) => &[],
        };
        accesses.iter().map(|access| (access >> 1) as usize)
    }
}
