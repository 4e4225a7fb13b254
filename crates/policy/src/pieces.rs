//! `Pieces` are the items among which a policy chooses for a plan: whole sites, and parts of sites that may be split (ranges of objects,
//! memory allocated first). They cut a piece that fits in part, and join the tiers of a site's pieces into one decision.
//!
//! ```text
//! sites      A        B               C
//! parts               B1  B2  B3
//! items      A        B1  B2  B3      C         the policy chooses for each
//! tiers      fast     slow fast slow  slow
//! plan       A fast   B slow, but B2 fast   C slow
//! ```
//!
//! A site of many small objects has no places that hold for another run, but its allocations have an order: if it may be divided by that
//! order, the memory allocated first can be a piece, and the rest another.

use std::collections::{BTreeMap, BTreeSet};

use isotherm_model::plan::{Item, LeadingBytes, PartItem, PlacedPart};
use isotherm_model::site::SiteId;
use isotherm_model::sums::sums;
use isotherm_model::tier::TierIndex;
use isotherm_model::units::{Bytes, portion};

use crate::knapsack::PAGE;

/// A part is called hotter than its site from this factor on.
const CLEARLY: f64 = 1.05;

/// Memory is given to the objects of a site in chunks of this size, so the memory allocated first is a multiple of it.
const CHUNK: u64 = 2 << 20;

/// The sites that may be divided, and the way to divide them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Divisions<'a> {
    /// The parts of sites whose objects may be divided by place.
    pub(crate) parts: Option<&'a BTreeMap<SiteId, Vec<PartItem>>>,
    /// The sites that may be divided by the order of allocation.
    pub(crate) leading: Option<&'a BTreeSet<SiteId>>,
}

/// The part of its site that a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// A range of each of its objects, from the object's start.
    Range(Bytes, Bytes),
    /// The memory that is allocated first.
    Leading,
    /// The memory that is allocated after [`Self::Leading`].
    Later,
    /// The whole site.
    Whole,
    /// The whole site, which may be divided by the order of allocation.
    Ordered,
}

/// A site or a part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// Index of its site.
    site: usize,
    place: Place,
}

impl Piece {
    const fn range(self) -> Option<(Bytes, Bytes)> {
        match self.place {
            Place::Range(start, end) => Some((start, end)),
            Place::Leading | Place::Later | Place::Whole | Place::Ordered => None,
        }
    }
}

/// The pieces of all sites.
pub(crate) struct Pieces {
    /// One item for each piece; the pieces of a site are in the order of their places, as long as none is cut.
    pub(crate) items: Vec<Item>,
    pieces: Vec<Piece>,
}

/// The tier of a piece, and the reason.
pub(crate) type Placed = (TierIndex, String);

/// The decision for one site, from the decisions for its pieces.
pub(crate) struct Gathered {
    pub(crate) tier: TierIndex,
    pub(crate) parts: Vec<PlacedPart>,
    pub(crate) leading: Option<LeadingBytes>,
    pub(crate) reason: String,
}

impl Pieces {
    /// The pieces of these sites. A site with one part is a piece that can be cut.
    pub(crate) fn of(sites: &[Item], divisions: Divisions<'_>) -> Self {
        let mut all = Self {
            items: Vec::with_capacity(sites.len()),
            pieces: Vec::with_capacity(sites.len()),
        };
        for (site, item) in sites.iter().enumerate() {
            let known = divisions.parts.and_then(|parts| parts.get(&item.site));
            let may_lead = divisions
                .leading
                .is_some_and(|sites| sites.contains(&item.site));
            let whole = if may_lead {
                Place::Ordered
            } else {
                Place::Whole
            };
            match known.map_or(&[][..], Vec::as_slice) {
                [] => all.add(*item, Piece { site, place: whole }),
                parts => parts.iter().for_each(|part| {
                    let piece = Piece {
                        site,
                        place: Place::Range(part.start, part.end),
                    };
                    let (value, weight) = (part.value, part.weight);
                    all.add(
                        Item {
                            value,
                            weight,
                            ..*item
                        },
                        piece,
                    );
                }),
            }
        }
        all
    }

    /// The start of a piece in its site's objects; 0 for a whole site.
    pub(crate) fn start(&self, number: usize) -> Bytes {
        self.pieces[number]
            .range()
            .map_or(Bytes::ZERO, |(start, _)| start)
    }

    fn add(&mut self, item: Item, piece: Piece) {
        self.items.push(item);
        self.pieces.push(piece);
    }

    /// Cuts a piece, so that at most this many bytes of it remain; the rest becomes a new piece, the last one. False if it cannot be cut
    /// there.
    pub(crate) fn cut(&mut self, number: usize, room: Bytes) -> bool {
        let (item, piece) = (self.items[number], self.pieces[number]);
        if item.weight <= room {
            return false;
        }
        let (kept, all, places) = match piece.place {
            Place::Range(start, end) => {
                let length = end.0 - start.0;
                let kept = portion(length, room.0, item.weight.0) / PAGE * PAGE;
                let middle = Bytes(start.0 + kept);
                (
                    kept,
                    length,
                    [Place::Range(start, middle), Place::Range(middle, end)],
                )
            }
            Place::Ordered => {
                let kept = room.0 / CHUNK * CHUNK;
                (kept, item.weight.0, [Place::Leading, Place::Later])
            }
            Place::Whole | Place::Leading | Place::Later => return false,
        };
        if kept == 0 {
            return false;
        }
        let (value, weight) = (
            portion(item.value, kept, all),
            portion(item.weight.0, kept, all),
        );
        self.items[number] = Item {
            value,
            weight: Bytes(weight),
            ..item
        };
        self.pieces[number].place = places[0];
        let rest = Item {
            value: item.value - value,
            weight: Bytes(item.weight.0 - weight),
            ..item
        };
        self.add(
            rest,
            Piece {
                place: places[1],
                ..piece
            },
        );
        true
    }

    /// Joins the decisions for the pieces of each site.
    pub(crate) fn gather(&self, placed: &[Placed], sites: usize) -> Vec<Gathered> {
        let mut of_sites = vec![Vec::new(); sites];
        for (number, piece) in self.pieces.iter().enumerate() {
            of_sites[piece.site].push(number);
        }
        of_sites
            .into_iter()
            .map(|mut numbers| {
                numbers.sort_by_key(|number| self.pieces[*number].place);
                self.join(&numbers, placed)
            })
            .collect()
    }

    /// The decision for a site from its pieces, in order: its tier is that of most of its bytes, the slower of two tiers with equal bytes.
    fn join(&self, numbers: &[usize], placed: &[Placed]) -> Gathered {
        if let Some(divided) = self.join_by_order(numbers, placed) {
            return divided;
        }
        let numbered = numbers.iter();
        let bytes = sums(numbered.map(|number| (placed[*number].0, self.items[*number].weight)));
        let most = bytes.iter().max_by_key(|(tier, bytes)| (**bytes, **tier));
        let tier = most.map_or(TierIndex::FASTEST, |(tier, _)| *tier);
        let parts = self.parts_beside(tier, numbers, placed);
        let reason = match parts.as_slice() {
            [] => numbers
                .first()
                .map_or_else(String::new, |first| placed[*first].1.clone()),
            parts => self.reason(parts, tier, numbers),
        };
        Gathered {
            tier,
            parts,
            leading: None,
            reason,
        }
    }

    /// The decision for a site whose first memory goes elsewhere than the rest.
    fn join_by_order(&self, numbers: &[usize], placed: &[Placed]) -> Option<Gathered> {
        let of = |place| {
            let mut found = numbers
                .iter()
                .filter(|number| self.pieces[**number].place == place);
            found.next().copied()
        };
        let (first, later) = (of(Place::Leading)?, of(Place::Later)?);
        let Item {
            site,
            value,
            weight,
            ..
        } = self.items[first];
        let (to, tier) = (placed[first].0, placed[later].0);
        (to != tier).then(|| Gathered {
            tier,
            parts: Vec::new(),
            leading: Some(LeadingBytes {
                site,
                tier: to,
                bytes: weight,
                value,
            }),
            reason: format!(
                "split: the first {weight} that it allocates, as much as fits, with a value of {value}"
            ),
        })
    }

    /// The parts in other tiers than the site's; neighbours in one tier are joined.
    fn parts_beside(
        &self,
        tier: TierIndex,
        numbers: &[usize],
        placed: &[Placed],
    ) -> Vec<PlacedPart> {
        let mut beside: Vec<PlacedPart> = Vec::new();
        for number in numbers {
            let (item, of_part) = (self.items[*number], placed[*number].0);
            let Some((start, end)) = self.pieces[*number].range().filter(|_| of_part != tier)
            else {
                continue;
            };
            match beside.last_mut() {
                Some(last) if last.tier == of_part && last.end == start => {
                    last.end = end;
                    last.value = last.value.saturating_add(item.value);
                    last.weight += item.weight;
                }
                _ => beside.push(PlacedPart {
                    start,
                    end,
                    tier: of_part,
                    value: item.value,
                    weight: item.weight,
                }),
            }
        }
        beside
    }

    /// The reason why the site of these pieces is split, in words.
    fn reason(&self, parts: &[PlacedPart], tier: TierIndex, numbers: &[usize]) -> String {
        let bytes: Bytes = parts.iter().map(|part| part.weight).sum();
        let value = parts
            .iter()
            .fold(0_u64, |sum, part| sum.saturating_add(part.value));
        let place = match parts.len() {
            1 => "a part".to_owned(),
            several => format!("{several} parts"),
        };
        let pieces = numbers.iter().map(|number| &self.items[*number]);
        let (all_value, all_bytes) = pieces.fold((0.0, 0.0), |(value, bytes), piece| {
            (value + piece.value as f64, bytes + piece.weight.0 as f64)
        });
        let is_faster = parts.iter().all(|part| part.tier < tier);
        let is_hotter = value as f64 * all_bytes > all_value * bytes.0 as f64 * CLEARLY;
        let why = match (is_faster, is_hotter) {
            (true, true) => "hotter than the rest",
            (true, false) => "as much as fits of data that is as hot throughout",
            (false, _) => "of another heat than the rest",
        };
        format!("split: {place} of {bytes}, with a value of {value}, {why}")
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, Divisions, Pieces};
    use crate::properties::node_tiers;
    use crate::{Knapsack, PlanRequest, by_name, plan};
    use isotherm_model::plan::{Item, PartItem};
    use isotherm_model::site::SiteId;
    use isotherm_model::tier::TierIndex;
    use isotherm_model::units::Bytes;

    const PAGE: u64 = 4096;

    fn item(site: u64, value: u64, pages: u64) -> Item {
        Item {
            site: SiteId(site),
            value,
            weight: Bytes(pages * PAGE),
            order: site as u32,
        }
    }

    /// Parts of a page each with these values.
    fn parts(values: &[u64]) -> Vec<PartItem> {
        let part = |(page, value): (u64, &u64)| PartItem {
            start: Bytes(page * PAGE),
            end: Bytes((page + 1) * PAGE),
            value: *value,
            weight: Bytes(PAGE),
        };
        (0..).zip(values).map(part).collect()
    }

    #[test]
    fn a_policy_takes_the_hot_parts_of_a_site_and_the_bound_is_by_part() {
        let sites = [item(5, 30, 2), item(6, 100, 6), item(7, 12, 1)];
        let tiers = node_tiers(&[3 * PAGE, 99 * PAGE]);
        let of_site = [(SiteId(6), parts(&[0, 40, 45, 0, 15, 0]))].into();
        let whole = plan(&PlanRequest::new(&Knapsack::DEFAULT, &sites, &tiers));
        assert_eq!((whole.standing.planned, whole.standing.bound), (42, 50));
        let split = plan(&PlanRequest {
            parts: Some(&of_site),
            ..PlanRequest::new(&Knapsack::DEFAULT, &sites, &tiers)
        });
        assert_eq!((split.standing.planned, split.standing.bound), (100, 100));
        let site = split.assignments.iter().find(|a| a.site == SiteId(6));
        let site = site.unwrap();
        let facts: Vec<_> = site
            .parts
            .iter()
            .map(|p| (p.start.0 / PAGE, p.end.0 / PAGE, p.value))
            .collect();
        assert_eq!(
            (site.tier, facts),
            (TierIndex(1), vec![(1, 3, 85), (4, 5, 15)])
        );
        assert_eq!(site.bytes_in(TierIndex(0)), Bytes(3 * PAGE));
        assert_eq!(site.bytes_in(TierIndex(1)), Bytes(3 * PAGE));
        assert_eq!(split.bytes_in(TierIndex(0)), Bytes(3 * PAGE));
        assert!(
            site.reason.starts_with("split: 2 parts of 12 KiB"),
            "{}",
            site.reason
        );
    }

    #[test]
    fn a_site_whose_parts_agree_is_placed_as_a_whole() {
        let sites = [item(5, 90, 3), item(6, 1, 3)];
        let of_site = [(SiteId(5), parts(&[30, 20, 40]))].into();
        let tiers = node_tiers(&[3 * PAGE, 99 * PAGE]);
        let plan = plan(&PlanRequest {
            parts: Some(&of_site),
            ..PlanRequest::new(&Knapsack::DEFAULT, &sites, &tiers)
        });
        assert_eq!(plan.tier_of(SiteId(5)), TierIndex(0));
        assert!(plan.assignments.iter().all(|site| site.parts.is_empty()));
    }

    #[test]
    fn what_a_policy_leaves_free_is_filled_with_a_piece_that_is_cut() {
        let sites = [item(5, 30, 2), item(6, 100, 10)];
        let even = PartItem {
            start: Bytes(0),
            end: Bytes(10 * PAGE),
            value: 100,
            weight: Bytes(10 * PAGE),
        };
        let tiers = node_tiers(&[5 * PAGE, 99 * PAGE]);
        let with = |parts| {
            plan(&PlanRequest {
                parts,
                ..PlanRequest::new(&Knapsack::DEFAULT, &sites, &tiers)
            })
        };
        assert_eq!(with(None).standing.planned, 30, "whole sites only");
        let none = [].into();
        let spilling = with(Some(&none));
        assert_eq!(spilling.standing.planned, 60);
        assert_eq!(spilling.bytes_in(TierIndex(0)), Bytes(12 * PAGE));
        let one = [(SiteId(6), vec![even])].into();
        let plan = with(Some(&one));
        assert_eq!((plan.standing.planned, plan.standing.bound), (60, 60));
        let site = plan.assignments.iter().find(|site| site.site == SiteId(6));
        let part = site.unwrap().parts[0];
        assert_eq!(
            (part.start, part.end, part.value),
            (Bytes(0), Bytes(3 * PAGE), 30)
        );
        assert_eq!(plan.bytes_in(TierIndex(0)), Bytes(5 * PAGE));
    }

    #[test]
    fn a_large_site_that_is_allocated_first_is_cut_in_place_of_hotter_data() {
        // Two arrays of a matrix, then two vectors. Thermos takes the first array, of which 32 of 48 pages fit, before the vectors.
        let sites = [
            item(5, 286, 48),
            item(6, 276, 48),
            item(7, 126, 8),
            item(8, 106, 8),
        ];
        let tiers = node_tiers(&[32 * PAGE, 999 * PAGE]);
        let even = |site: &Item| PartItem {
            start: Bytes(0),
            end: site.weight,
            value: site.value,
            weight: site.weight,
        };
        let parts = sites.iter().map(|site| (site.site, vec![even(site)]));
        let parts = parts.collect();
        for name in ["thermos", "hotset", "knapsack"] {
            let policy = by_name(name).expect("a policy");
            let request = PlanRequest::new(policy, &sites, &tiers);
            let whole = plan(&request);
            assert!(whole.standing.planned < 250, "{name}: {whole:?}");
            let cut = plan(&PlanRequest {
                parts: Some(&parts),
                ..request
            });
            assert_eq!(cut.standing.planned, cut.standing.bound, "{name}: {cut:?}");
            let site = cut.assignments.iter().find(|site| site.site == SiteId(5));
            let part = site.unwrap().parts[0];
            assert_eq!(
                (part.start, part.end),
                (Bytes(0), Bytes(16 * PAGE)),
                "{name}"
            );
        }
    }

    #[test]
    fn a_cut_keeps_value_and_weight_and_ends_on_a_page() {
        let part = PartItem {
            start: Bytes(PAGE),
            end: Bytes(8 * PAGE),
            value: 99,
            weight: Bytes(14 * PAGE),
        };
        let parts = [(SiteId(5), vec![part])].into();
        let divisions = Divisions {
            parts: Some(&parts),
            leading: None,
        };
        let mut pieces = Pieces::of(&[item(5, 99, 14)], divisions);
        assert!(!pieces.cut(0, Bytes(14 * PAGE)), "it fits");
        assert!(
            !pieces.cut(0, Bytes(PAGE)),
            "less than a page of each object"
        );
        assert!(pieces.cut(0, Bytes(5 * PAGE)));
        let facts: Vec<_> = pieces
            .items
            .iter()
            .map(|item| (item.value, item.weight.0 / PAGE))
            .collect();
        assert_eq!(facts, [(28, 4), (71, 10)]);
        assert!(!Pieces::of(&[item(5, 99, 14)], Divisions::default()).cut(0, Bytes(PAGE)));
    }

    /// Two small hot sites and a large one of small objects, which is allocated before the second.
    #[test]
    fn what_is_left_goes_to_the_memory_that_a_site_allocates_first() {
        let in_chunks = |site, value, chunks| Item {
            weight: Bytes(chunks * CHUNK),
            ..item(site, value, 0)
        };
        let sites = [
            in_chunks(5, 60, 2),
            in_chunks(6, 80, 40),
            in_chunks(7, 60, 2),
        ];
        let tiers = node_tiers(&[14 * CHUNK + PAGE, 999 * CHUNK]);
        let (none, leading) = ([].into(), [SiteId(6)].into());
        for name in ["thermos", "hotset", "knapsack"] {
            let request = PlanRequest {
                parts: Some(&none),
                leading: Some(&leading),
                ..PlanRequest::new(by_name(name).expect("a policy"), &sites, &tiers)
            };
            let ordered = plan(&request);
            assert_eq!(ordered.standing.planned, 140, "{name}: {ordered:?}");
            let find = |site| {
                ordered
                    .assignments
                    .iter()
                    .find(|it| it.site == SiteId(site))
            };
            let large = find(6).expect("an assignment");
            let first = large.leading.expect("room is left");
            assert_eq!((large.tier, first.tier), (TierIndex(1), TierIndex(0)));
            assert_eq!((first.bytes, first.value), (Bytes(10 * CHUNK), 20));
            assert_eq!(large.bytes_in(TierIndex(0)), Bytes(10 * CHUNK));
            assert_eq!(large.bytes_in(TierIndex(1)), Bytes(30 * CHUNK));
            assert!(
                large.reason.starts_with("split: the first 20 MiB"),
                "{}",
                large.reason
            );
            // Spilling, it would take the room of the second.
            let spilling = plan(&PlanRequest {
                leading: None,
                ..request
            });
            assert_eq!(spilling.standing.planned, 120, "{name}");
        }
    }

    #[test]
    fn less_than_a_chunk_is_left_free() {
        let sites = [item(5, 60, 2), item(6, 80, 4000)];
        let tiers = node_tiers(&[4 * PAGE, 9999 * PAGE]);
        let (none, leading) = ([].into(), [SiteId(6)].into());
        let plan = plan(&PlanRequest {
            parts: Some(&none),
            leading: Some(&leading),
            ..PlanRequest::new(&Knapsack::DEFAULT, &sites, &tiers)
        });
        assert!(plan.assignments.iter().all(|site| site.leading.is_none()));
    }
}
