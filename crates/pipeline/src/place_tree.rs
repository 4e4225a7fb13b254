//! [`places`] divides a region, or the length of a site's longest data object, by halving: into short places where it is hot, long ones
//! where it is cold, each with its accesses. Blocks of even heat are formed of these places.
//!
//! ```text
//! accesses        1    1  1 |7|8|9|    1        1       1
//! places        |     |   | | | | |  |      |           |
//! ```
//!
//! The place with most accesses is halved next, until each has too few samples to be two, or there are [`PLACES_AT_MOST`]. So 3 MiB of a
//! gibibyte that have all heat are known by the page, at a cost that grows with the samples and not with the object. Where heat is even,
//! all places have about the same length.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use isotherm_model::profile::HeatBin;
use isotherm_model::units::portion;

/// Most places of a site: the time to divide them into blocks grows with the square of this number at worst.
const PLACES_AT_MOST: usize = 2048;
/// Most of a place's accesses, as a share, that may be known only by ranges longer than its halves: each half gets its share of these.
const LONGER_AT_MOST: f64 = 0.1;

/// Accesses to a range of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RangeCount {
    /// First byte from the object's start.
    pub(crate) start: u64,
    /// First byte past it.
    pub(crate) end: u64,
    /// Accesses, and how many of them follow a stream.
    pub(crate) counts: [u64; 2],
}

impl RangeCount {
    pub(crate) const fn bytes(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    pub(crate) const fn middle(&self) -> u64 {
        self.start.midpoint(self.end)
    }
}

/// How an object is halved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Halving {
    /// Length of the object.
    pub(crate) object: u64,
    /// Accesses from which a place is halved.
    pub(crate) accesses: u64,
    /// Least length of a place.
    pub(crate) least: u64,
}

/// The places of an object, side by side from its start to its end, each with its accesses.
pub(crate) fn places(ranges: Vec<RangeCount>, halving: Halving) -> Vec<RangeCount> {
    let bytes = halving.object.max(HeatBin::LEAST.0);
    let root = Node {
        start: 0,
        bytes: bytes.checked_next_power_of_two().unwrap_or(1 << 63),
        ranges,
        spread: [0; 2],
    };
    let mut done = Vec::new();
    let mut open = BinaryHeap::from([root.ranked()]);
    while let Some((accesses, Reverse(_), node)) = open.pop() {
        let places = open.len() + done.len() + 1;
        let may_halve = accesses >= halving.accesses && places < PLACES_AT_MOST;
        match may_halve.then(|| node.halved(&halving)).flatten() {
            Some(halves) => open.extend(halves.into_iter().flatten().map(Node::ranked)),
            None => done.push(node.place()),
        }
    }
    done.sort_by_key(|place| place.start);
    if let Some(last) = done.last_mut() {
        last.end = halving.object;
    }
    done
}

/// A place that may be halved.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    start: u64,
    /// A power of two.
    bytes: u64,
    /// The accesses in it.
    ranges: Vec<RangeCount>,
    /// The share of this place in the accesses to longer ranges.
    spread: [u64; 2],
}

impl Node {
    fn counts(&self) -> [u64; 2] {
        let sum = |number: usize| {
            let own = self.ranges.iter().map(|range| range.counts[number]);
            own.fold(self.spread[number], u64::saturating_add)
        };
        [sum(0), sum(1)]
    }

    /// The node with its key in the order of halving.
    fn ranked(self) -> (u64, Reverse<u64>, Self) {
        (self.counts()[0], Reverse(self.start), self)
    }

    fn place(&self) -> RangeCount {
        RangeCount {
            start: self.start,
            end: self.start.saturating_add(self.bytes),
            counts: self.counts(),
        }
    }

    /// The halves of the node, the second only where the object reaches into it; `None` where they are too short, or too many of the
    /// accesses are in neither half.
    fn halved(&self, halving: &Halving) -> Option<[Option<Self>; 2]> {
        let half = self.bytes / 2;
        if half < halving.least {
            return None;
        }
        let (longer, ranges): (Vec<RangeCount>, Vec<RangeCount>) =
            self.ranges.iter().partition(|range| range.bytes() > half);
        let mut spread = self.spread;
        for range in longer {
            for (sum, count) in spread.iter_mut().zip(range.counts) {
                *sum = sum.saturating_add(count);
            }
        }
        if spread[0] as f64 > self.counts()[0] as f64 * LONGER_AT_MOST {
            return None;
        }
        let middle = self.start.saturating_add(half);
        // Bytes of the object in the second half, by which it gets its share.
        let second = halving.object.saturating_sub(middle).min(half);
        // Neither half is more than half of the address space.
        let of_second = spread.map(|count| portion(count, second, half + second));
        let of_first = [0, 1].map(|number| spread[number] - of_second[number]);
        let node = |start, ranges, spread| Self {
            start,
            bytes: half,
            ranges,
            spread,
        };
        if second == 0 {
            return Some([Some(node(self.start, ranges, spread)), None]);
        }
        let (left, right) = ranges
            .into_iter()
            .partition(|range| range.middle() < middle);
        let first = node(self.start, left, of_first);
        Some([Some(first), Some(node(middle, right, of_second))])
    }
}

#[cfg(test)]
mod tests {
    use super::{Halving, PLACES_AT_MOST, RangeCount, places};

    const PAGE: u64 = 4096;
    const MIB: u64 = 1 << 20;

    fn page(number: u64, accesses: u64) -> RangeCount {
        RangeCount {
            start: number * PAGE,
            end: (number + 1) * PAGE,
            counts: [accesses, accesses / 2],
        }
    }

    fn found(ranges: &[RangeCount], object: u64) -> Vec<RangeCount> {
        let halving = Halving {
            object,
            accesses: 8,
            least: PAGE,
        };
        let found = places(ranges.to_vec(), halving);
        let sum = |all: &[RangeCount]| all.iter().map(|range| range.counts[0]).sum::<u64>();
        assert_eq!(sum(&found), sum(ranges), "no access is lost");
        assert_eq!((found[0].start, found[found.len() - 1].end), (0, object));
        assert!(found.windows(2).all(|pair| pair[0].end == pair[1].start));
        found
    }

    #[test]
    fn three_hot_mebibytes_of_a_gibibyte_are_known_by_the_page() {
        let first = 123_457;
        let hot: Vec<RangeCount> = (first..first + 768).map(|at| page(at, 9)).collect();
        let places = found(&hot, 1 << 30);
        let warm: Vec<_> = places.iter().filter(|place| place.counts[0] > 0).collect();
        assert_eq!(warm.len(), 768);
        assert!(warm.iter().all(|place| place.bytes() == PAGE));
        assert_eq!(warm[0].start, first * PAGE);
        assert!(places.len() < 768 + 40, "{}", places.len());
    }

    #[test]
    fn there_are_no_more_places_than_a_division_can_take_and_the_hottest_are_the_shortest() {
        let all: Vec<RangeCount> = (0..65_536)
            .map(|at| page(at, if at / 256 == 77 { 100 } else { 10 }))
            .collect();
        let places = found(&all, 256 * MIB);
        assert_eq!(places.len(), PLACES_AT_MOST);
        let hot = |place: &&RangeCount| place.start / MIB == 77;
        let longest = |places: &mut dyn Iterator<Item = &RangeCount>| {
            places.map(RangeCount::bytes).max().expect("some")
        };
        let of_hot = longest(&mut places.iter().filter(hot));
        let of_others = longest(&mut places.iter().filter(|place| !hot(place)));
        assert!(of_hot * 4 <= of_others, "{of_hot} {of_others}");
    }

    #[test]
    fn a_place_is_not_halved_where_its_accesses_are_known_by_longer_ranges() {
        let chunk = |number: u64, accesses| RangeCount {
            start: number * 16 * PAGE,
            end: (number + 1) * 16 * PAGE,
            counts: [accesses, 0],
        };
        let places = found(&[chunk(0, 100), chunk(3, 100)], 64 * PAGE);
        let lengths: Vec<_> = places.iter().map(|place| place.bytes() / PAGE).collect();
        assert_eq!(lengths, [16, 16, 16, 16]);
        // A few of them are spread over the halves.
        let places = found(&[chunk(0, 10), page(5, 100)], 16 * PAGE);
        let of_page = places.iter().find(|place| place.start == 5 * PAGE);
        let of_page = of_page.expect("a place of its own");
        assert_eq!((of_page.bytes(), of_page.counts[0]), (PAGE, 100));
    }

    #[test]
    fn an_object_ends_within_its_last_place_and_one_without_accesses_is_one() {
        let odd = 5 * PAGE + 100;
        let places = found(&[page(5, 50), page(0, 50)], odd);
        assert_eq!(places.last().map(|last| last.start), Some(5 * PAGE));
        assert_eq!(found(&[], odd).len(), 1);
        assert_eq!(found(&[page(0, u64::MAX / 2)], u64::MAX)[0].bytes(), PAGE);
    }
}
