//! What a policy chooses among: whole sites, and the parts of the sites that may be split.
//!
//! ```text
//! sites      A        B               C
//! parts               B1  B2  B3
//! items      A        B1  B2  B3      C         the policy chooses for each
//! tiers      fast     slow fast slow  slow
//! plan       A fast   B slow, but B2 fast   C slow
//! ```

use std::collections::BTreeMap;

use isotherm_model::plan::{Item, PartItem, PlacedPart};
use isotherm_model::site::SiteId;
use isotherm_model::tier::TierIndex;
use isotherm_model::units::Bytes;

use crate::knapsack::PAGE;

/// How much hotter than its site a part is to be called hotter.
const CLEARLY: f64 = 1.05;

/// A site or a part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// Index of its site.
    site: usize,
    /// Where it lies in the site's objects; `None` of a site that cannot be split.
    range: Option<(Bytes, Bytes)>,
}

/// The pieces of all sites.
pub(crate) struct Pieces {
    /// One for each piece; those of a site are in the order of their places, as long as none is cut.
    pub(crate) items: Vec<Item>,
    pieces: Vec<Piece>,
}

/// The tier of a piece, and why.
pub(crate) type Placed = (TierIndex, String);

/// The decision for one site, from those for its pieces.
pub(crate) struct Gathered {
    pub(crate) tier: TierIndex,
    pub(crate) parts: Vec<PlacedPart>,
    pub(crate) reason: String,
}

impl Pieces {
    /// The pieces of these sites. A site with one part is a piece that can be cut.
    pub(crate) fn of(sites: &[Item], parts: Option<&BTreeMap<SiteId, Vec<PartItem>>>) -> Self {
        let mut all = Self {
            items: Vec::with_capacity(sites.len()),
            pieces: Vec::with_capacity(sites.len()),
        };
        for (site, item) in sites.iter().enumerate() {
            let known = parts.and_then(|parts| parts.get(&item.site));
            match known.map_or(&[][..], Vec::as_slice) {
                [] => all.add(*item, Piece { site, range: None }),
                parts => parts.iter().for_each(|part| {
                    let piece = Piece {
                        site,
                        range: Some((part.start, part.end)),
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

    /// Where a piece starts in its site's objects; 0 of a whole site.
    pub(crate) fn start(&self, number: usize) -> Bytes {
        self.pieces[number]
            .range
            .map_or(Bytes::ZERO, |(start, _)| start)
    }

    fn add(&mut self, item: Item, piece: Piece) {
        self.items.push(item);
        self.pieces.push(piece);
    }

    /// Cuts a piece, so that at most this many bytes of it remain; the rest becomes a new piece, the last one. False where it cannot
    /// be cut so.
    pub(crate) fn cut(&mut self, number: usize, room: Bytes) -> bool {
        let (item, piece) = (self.items[number], self.pieces[number]);
        let Some((start, end)) = piece.range.filter(|_| item.weight > room) else {
            return false;
        };
        let share = |of: u64, part: u64, all: u64| {
            // Below `of`, since part < all.
            (u128::from(of) * u128::from(part) / u128::from(all.max(1))) as u64
        };
        let length = end.0 - start.0;
        let kept = share(length, room.0, item.weight.0) / PAGE * PAGE;
        if kept == 0 {
            return false;
        }
        let (value, weight) = (
            share(item.value, kept, length),
            share(item.weight.0, kept, length),
        );
        let middle = Bytes(start.0 + kept);
        self.items[number] = Item {
            value,
            weight: Bytes(weight),
            ..item
        };
        self.pieces[number].range = Some((start, middle));
        let rest = Item {
            value: item.value - value,
            weight: Bytes(item.weight.0 - weight),
            ..item
        };
        self.add(
            rest,
            Piece {
                range: Some((middle, end)),
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
                numbers.sort_by_key(|number| self.pieces[*number].range);
                self.join(&numbers, placed)
            })
            .collect()
    }

    /// The decision for a site of these pieces, in order: its tier is that of most of its bytes, the slower one of two with as many.
    fn join(&self, numbers: &[usize], placed: &[Placed]) -> Gathered {
        let mut bytes = BTreeMap::<TierIndex, Bytes>::new();
        for number in numbers {
            *bytes.entry(placed[*number].0).or_default() += self.items[*number].weight;
        }
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
            reason,
        }
    }

    /// The parts in other tiers than the site's; neighbours of one tier are one.
    fn parts_beside(
        &self,
        tier: TierIndex,
        numbers: &[usize],
        placed: &[Placed],
    ) -> Vec<PlacedPart> {
        let mut beside: Vec<PlacedPart> = Vec::new();
        for number in numbers {
            let (item, of_part) = (self.items[*number], placed[*number].0);
            let Some((start, end)) = self.pieces[*number].range.filter(|_| of_part != tier) else {
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

    /// Why the site of these pieces is split, in words.
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
    use super::Pieces;
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
        let mut pieces = Pieces::of(&[item(5, 99, 14)], Some(&[(SiteId(5), vec![part])].into()));
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
        assert!(!Pieces::of(&[item(5, 99, 14)], None).cut(0, Bytes(PAGE)));
    }
}
