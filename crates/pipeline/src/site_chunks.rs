//! [`SiteChunks`] cuts the sites of a program into chunks, so that a policy that shares fast memory by whole objects (CoMerge, section 4)
//! can place a part of a site, and joins the chunks that got fast memory into the parts of a plan.
//!
//! ```text
//! blocks of even heat   |   a   |  b  |    c    |
//! chunks                | 1 | 2 |  3  | 4  | 5  |      at most `chunk` bytes of each data object
//! granted               | # | # |  #  | #  |    |
//! parts of the plan     |     fast         |slow|
//! ```
//!
//! The chunks of a block have the same worth for each byte, so policies take them from the first on. A site whose places are not known is
//! one chunk.

use std::ops::Range;

use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_model::units::{Accesses, Bytes};
use isotherm_policy::PAGE;

use crate::chunk_parts::ChunkParts;
use crate::division::Division;
use crate::parts::{SitePart, SiteParts, site_parts};

/// Most whole chunks of a program, beside the last one of each block: policies sort the chunks of all programs.
const CHUNKS_AT_MOST: u64 = 4096;
/// The largest chunk: a whole number of pages.
const LARGEST: u64 = u64::MAX / PAGE * PAGE;

/// The chunks of each site whose places are known.
#[derive(Clone, Debug, Default)]
pub struct SiteChunks {
    blocks: SiteParts,
    chunk: Bytes,
}

impl SiteChunks {
    /// Chunks of this many bytes, the last of each block smaller. Where a program would have more than 4,096 whole ones, they are larger.
    #[must_use]
    pub fn of(profile: &Profile, chunk: Bytes) -> Self {
        let blocks = site_parts(profile);
        let length = |block: &SitePart| block.end.saturating_sub(block.start).0;
        let bytes = blocks.values().flatten().map(length);
        let least = bytes.fold(0, u64::saturating_add) / CHUNKS_AT_MOST;
        let chunk = chunk.0.max(least).clamp(1, LARGEST).next_multiple_of(PAGE);
        Self {
            blocks,
            chunk: Bytes(chunk),
        }
    }

    /// Each site is one chunk.
    #[must_use]
    pub fn whole_sites() -> Self {
        Self::default()
    }

    /// The blocks of even heat.
    pub(crate) const fn blocks(&self) -> &SiteParts {
        &self.blocks
    }

    /// The chunks of a block, as ranges in the data objects.
    pub(crate) fn cut(&self, block: &Range<Bytes>) -> impl Iterator<Item = Range<Bytes>> {
        let (chunk, end) = (self.chunk.0.max(1), block.end);
        let starts = (block.start.0..end.0).step_by(usize::try_from(chunk).unwrap_or(usize::MAX));
        starts.map(move |start| Bytes(start)..Bytes(start.saturating_add(chunk)).min(end))
    }

    /// The parts of these sites that a policy has granted. `share` gives the fast share, 0 to 1, of the object of a name: of a chunk its
    /// first bytes. A whole site is fast if any of it is.
    #[must_use]
    pub fn granted(
        &self,
        sites: impl Iterator<Item = SiteId>,
        share: impl Fn(&str) -> f64,
    ) -> ChunkParts {
        let mut granted = ChunkParts::default();
        for site in sites {
            let Some(blocks) = self.blocks.get(&site) else {
                if share(&object_name(site, None)) > 0.0 {
                    granted.selected.insert((site, Bytes::ZERO));
                }
                continue;
            };
            let mut parts = Vec::<(SitePart, bool)>::new();
            for block in blocks {
                let stretches =
                    self.stretches(block, |start| share(&object_name(site, Some(start))));
                for (part, is_fast) in divided(block, &stretches) {
                    match parts.last_mut() {
                        Some((last, was_fast)) if *was_fast == is_fast => join(last, &part),
                        _ => parts.push((part, is_fast)),
                    }
                }
            }
            let fast = parts.iter().filter(|(_, is_fast)| *is_fast);
            granted
                .selected
                .extend(fast.map(|(part, _)| (site, part.start)));
            let parts = parts.into_iter().map(|(part, _)| part);
            granted.parts.insert(site, parts.collect());
        }
        granted
    }

    /// The stretches of a block, fast and not, in order: the end of each and whether it is fast.
    fn stretches(&self, block: &SitePart, share: impl Fn(Bytes) -> f64) -> Vec<(Bytes, bool)> {
        let mut ends = Vec::new();
        for chunk in self.cut(&(block.start..block.end)) {
            let length = chunk.end.saturating_sub(chunk.start).0;
            let fast = (length as f64 * share(chunk.start).clamp(0.0, 1.0)) as u64;
            // A rounded share of a whole chunk is the chunk; of others, pages.
            let fast = if fast + 1 >= length {
                length
            } else {
                fast / PAGE * PAGE
            };
            if fast > 0 {
                ends.push((chunk.start.saturating_add(Bytes(fast)), true));
            }
            if fast < length {
                ends.push((chunk.end, false));
            }
        }
        ends
    }
}

/// The name of an object that a policy shares: a site, or the chunk of it that starts here.
pub(crate) fn object_name(site: SiteId, start: Option<Bytes>) -> String {
    match start {
        // Digits of one length, so that chunks of the same worth are taken in the order of their places.
        Some(start) => format!("{site}+{:012x}", start.0),
        None => site.to_string(),
    }
}

/// The site of the object that has this name in a policy ([`SiteChunks`]); `None` for a name that no object has.
#[must_use]
pub fn site_of_object(name: &str) -> Option<SiteId> {
    name.split('+').next()?.parse().ok()
}

/// A block divided at these ends, its counts in proportion to the lengths.
fn divided(block: &SitePart, ends: &[(Bytes, bool)]) -> Vec<(SitePart, bool)> {
    let length = block.end.saturating_sub(block.start).0;
    let division = |count| Division::new(count, length);
    let (mut accesses, mut streamed) = (division(block.accesses.0), division(block.streamed.0));
    let mut bytes = division(block.bytes);
    let mut start = block.start;
    let part = |(end, is_fast): &(Bytes, bool)| {
        let length = end.saturating_sub(start).0;
        let part = SitePart {
            start,
            end: *end,
            accesses: Accesses(accesses.next(length)),
            streamed: Accesses(streamed.next(length)),
            bytes: bytes.next(length),
        };
        start = *end;
        (part, *is_fast)
    };
    ends.iter().map(part).collect()
}

/// Adds the part that follows.
fn join(last: &mut SitePart, next: &SitePart) {
    last.end = next.end;
    last.accesses += next.accesses;
    last.streamed += next.streamed;
    last.bytes = last.bytes.saturating_add(next.bytes);
}

#[cfg(test)]
mod tests {
    use super::{SiteChunks, object_name, site_of_object};
    use crate::parts::{SitePart, SiteParts};
    use isotherm_model::site::SiteId;
    use isotherm_model::units::{Accesses, Bytes};

    const KIB: u64 = 1 << 10;
    const SITE: SiteId = SiteId(5);
    const OTHER: SiteId = SiteId(6);

    /// Chunks of 8 KiB, of a site with blocks that end at 20 and 32 KiB.
    fn chunks() -> SiteChunks {
        let block = |start: u64, end: u64, accesses| SitePart {
            start: Bytes(start * KIB),
            end: Bytes(end * KIB),
            accesses: Accesses(accesses),
            streamed: Accesses(accesses / 2),
            bytes: 2 * (end - start) * KIB,
        };
        SiteChunks {
            blocks: SiteParts::from([(SITE, vec![block(0, 20, 100), block(20, 32, 12)])]),
            chunk: Bytes(8 * KIB),
        }
    }

    /// Start, end and accesses of the parts of the site, each fast or not, where these chunks have these shares.
    fn granted(shares: &[(u64, f64)]) -> Vec<(u64, u64, u64, bool)> {
        let share = |name: &str| {
            let of = |(start, _): &&(u64, f64)| object_name(SITE, Some(Bytes(start * KIB))) == name;
            shares.iter().find(of).map_or(0.0, |(_, share)| *share)
        };
        let chosen = chunks().granted([SITE, OTHER].into_iter(), share);
        assert!(!chosen.is_selected(OTHER, Bytes::ZERO));
        let parts = chosen.parts[&SITE].iter();
        let facts = |part: &SitePart| {
            assert_eq!(part.bytes, 2 * (part.end.0 - part.start.0));
            let is_fast = chosen.is_selected(SITE, part.start);
            (
                part.start.0 / KIB,
                part.end.0 / KIB,
                part.accesses.0,
                is_fast,
            )
        };
        parts.map(facts).collect()
    }

    #[test]
    fn a_block_ends_a_chunk() {
        let chunks = chunks();
        let starts = |block: usize| {
            let block = &chunks.blocks[&SITE][block];
            let block = block.start..block.end;
            let ranges = chunks.cut(&block);
            ranges
                .map(|range| (range.start.0 / KIB, range.end.0 / KIB))
                .collect::<Vec<_>>()
        };
        assert_eq!(starts(0), [(0, 8), (8, 16), (16, 20)]);
        assert_eq!(starts(1), [(20, 28), (28, 32)]);
    }

    #[test]
    fn neighbours_that_are_granted_become_one_part_with_the_counts_of_both() {
        assert_eq!(granted(&[]), [(0, 32, 112, false)]);
        assert_eq!(
            granted(&[(8, 1.0), (16, 1.0), (20, 1.0)]),
            [(0, 8, 40, false), (8, 28, 68, true), (28, 32, 4, false)]
        );
    }

    #[test]
    fn of_a_chunk_that_is_granted_in_part_the_first_pages_are_fast() {
        assert_eq!(
            granted(&[(0, 1.0), (8, 0.7)]),
            [(0, 12, 60, true), (12, 32, 52, false)]
        );
    }

    #[test]
    fn a_site_without_places_is_fast_if_any_of_it_is() {
        let chosen = chunks().granted([OTHER].into_iter(), |_| 0.2);
        assert!(chosen.is_selected(OTHER, Bytes::ZERO));
        assert!(chosen.parts.is_empty());
    }

    #[test]
    fn names_keep_the_order_of_places() {
        let name = |start| object_name(SITE, Some(Bytes(start)));
        assert_eq!(site_of_object(&name(0x9000)), Some(SITE));
        assert_eq!(site_of_object(&object_name(SITE, None)), Some(SITE));
        assert!(name(0x9000) < name(0x10_0000) && name(0x10_0000) < name(0xffff_f000));
    }
}
