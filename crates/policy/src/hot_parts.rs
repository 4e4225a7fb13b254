//! [`PartHits`] counts the hits on each of the 64 equal parts of a unit of memory, such as a huge page (these are not the parts of a plan),
//! and finds the few hot ones ([`Parts`]) of a unit of which little is hot, so that the daemon and a run by pages can move these alone; or
//! that a unit is hot in too many parts for that.
//!
//! A huge page of which a sixteenth is hot takes sixteen times the fast memory that its hot data needs. Samples have exact addresses, so a
//! unit is divided into [`PARTS`] equal parts, and its hits are counted by part:
//!
//! ```text
//! part      0  1  2  3 ... 17 18 ... 63
//! hits     11  9  .  1     .  12     1      32 of 34 in three parts: little is hot
//! hits      1  .  2  1     1  1      2      spread over most of it: placed as a whole
//! ```
//!
//! A part is hot if it has more than one hit and a quarter of the hits of the hottest parts. Few hits that are spread evenly leave few such
//! parts, too, but these have few of all hits; so the fewer hits there are, the more of them must be in the hot parts.

/// Parts of a unit: 32 KiB each in a huge page of 2 MiB.
pub const PARTS: usize = 64;

/// Fewest hits that prove anything.
const ENOUGH: u64 = 8;

/// Fewest hits of a hot part, on average.
const ENOUGH_OF_PART: u64 = 4;

/// From this many hits on, [`MOST_OF_MANY`] of eight in the hot parts prove that little is hot. With fewer hits it takes [`MOST_OF_FEW`].
const MANY_HITS: u64 = 64;
const MOST_OF_MANY: u64 = 5;
const MOST_OF_FEW: u64 = 6;

/// With fewer than this many of eight hits in the hot parts, a unit is hot as a whole. Between this and the others it stays as it is
/// placed.
const LEAST: u64 = 3;

/// Most parts of a unit of which little is hot: an eighth.
const FEW: u32 = PARTS as u32 / 8;

/// Most hot parts of a unit that is placed part by part: beyond a quarter, it is placed as a whole again.
const MANY: u32 = PARTS as u32 / 4;

/// The hits of a unit by part. The hits of all units are halved at the same times, so earlier hits count less, and units can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartHits([u16; PARTS]);

impl Default for PartHits {
    fn default() -> Self {
        Self([0; PARTS])
    }
}

impl PartHits {
    /// Counts a hit of a part; a number beyond the last part does not count.
    pub fn add(&mut self, part: usize) {
        if let Some(hits) = self.0.get_mut(part) {
            *hits = hits.saturating_add(1);
        }
    }

    /// Halves the hits of each part. Returns true if any are left.
    pub fn halve(&mut self) -> bool {
        self.0.iter_mut().for_each(|hits| *hits /= 2);
        self.sum() > 0
    }

    /// Hits of all parts.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.hits_of(Parts(u64::MAX))
    }

    /// Hits of the parts that are not among `parts`.
    #[must_use]
    pub fn rest(&self, parts: Parts) -> u64 {
        self.sum() - self.hits_of(parts)
    }

    /// The hot parts if they are few and have most hits; `None` if they are not, or the hits are too few to prove it.
    #[must_use]
    pub fn few(&self) -> Option<Parts> {
        let (sum, hot) = (self.sum(), self.hot());
        let most = if sum < MANY_HITS {
            MOST_OF_FEW
        } else {
            MOST_OF_MANY
        };
        let is_proved = sum >= ENOUGH.max(u64::from(hot.count()) * ENOUGH_OF_PART)
            && self.hits_of(hot) * 8 >= sum * most;
        (is_proved && hot.count() <= FEW).then_some(hot)
    }

    /// True where the hits prove that the hot parts are too many for a placement part by part.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        let (sum, hot) = (self.sum(), self.hot());
        sum >= MANY_HITS / 2 && (hot.count() > MANY || self.hits_of(hot) * 8 < sum * LEAST)
    }

    /// The parts with a quarter of the mean hits of the hottest parts, which are the fewest parts with half of all hits.
    fn hot(&self) -> Parts {
        let mut hits = self.0;
        hits.sort_unstable_by(|a, b| b.cmp(a));
        let (half, mut hottest, mut sum) = (self.sum().div_ceil(2), 0, 0);
        while sum < half {
            sum += u64::from(hits[hottest]);
            hottest += 1;
        }
        let least = sum.div_ceil(4 * (hottest as u64).max(1)).max(2);
        let mut hot = Parts::default();
        for (part, hits) in self.0.iter().enumerate() {
            if u64::from(*hits) >= least {
                hot.add(part);
            }
        }
        hot
    }

    fn hits_of(&self, parts: Parts) -> u64 {
        let hits = self.0.iter().enumerate();
        let inside = hits.filter(|(part, _)| parts.has(*part));
        inside.map(|(_, hits)| u64::from(*hits)).sum()
    }
}

/// Some parts of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts(u64);

impl Parts {
    /// Adds a part; a number beyond the last part is ignored.
    pub const fn add(&mut self, part: usize) {
        if part < PARTS {
            self.0 |= 1 << part;
        }
    }

    const fn has(self, part: usize) -> bool {
        part < PARTS && self.0 & (1 << part) != 0
    }

    /// The union of these parts and others.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// True where all of these parts are among the others.
    #[must_use]
    pub const fn are_in(self, others: Self) -> bool {
        self.0 & !others.0 == 0
    }

    /// Number of these parts.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// All parts of a unit as runs of neighbours: first part, number of parts, and whether they are among these.
    pub fn runs(self) -> impl Iterator<Item = (usize, usize, bool)> {
        let has = move |part: usize| self.has(part);
        let mut first = 0;
        std::iter::from_fn(move || {
            let begin = first;
            while first < PARTS && has(first) == has(begin) {
                first += 1;
            }
            (begin < first).then(|| (begin, first - begin, has(begin)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{PARTS, PartHits, Parts};
    use proptest::prelude::*;

    fn hits(parts: impl IntoIterator<Item = (usize, u32)>) -> PartHits {
        let mut found = PartHits::default();
        for (part, times) in parts {
            (0..times).for_each(|_| found.add(part));
        }
        found
    }

    fn parts(numbers: &[usize]) -> Parts {
        let mut parts = Parts::default();
        numbers.iter().for_each(|part| parts.add(*part));
        parts
    }

    #[test]
    fn most_hits_in_few_parts_are_little_that_is_hot() {
        assert_eq!(hits([(3, 7)]).few(), None, "too few hits");
        assert_eq!(hits([(3, 8)]).few(), Some(parts(&[3])));
        // An access elsewhere now and then changes nothing.
        let mostly = hits([(3, 12), (4, 10), (17, 11), (40, 1), (60, 1)]);
        assert_eq!(mostly.few(), Some(parts(&[3, 4, 17])));
        assert!(!mostly.is_dense());
    }

    #[test]
    fn many_hits_prove_it_although_some_are_elsewhere() {
        let elsewhere = || (8..34).map(|part| (part, 1));
        let two = [(3, 22), (4, 22)].into_iter().chain(elsewhere());
        assert_eq!(hits(two).few(), Some(parts(&[3, 4])));
        // A third of as many.
        let two = [(3, 7), (4, 7)]
            .into_iter()
            .chain((8..16).map(|part| (part, 1)));
        assert_eq!(hits(two).few(), None);
    }

    #[test]
    fn hits_everywhere_are_a_unit_that_is_hot_as_a_whole() {
        let everywhere = hits((0..PARTS).map(|part| (part, 1)));
        assert_eq!(everywhere.few(), None);
        assert!(everywhere.is_dense());
        let half = hits((0..PARTS).step_by(2).map(|part| (part, 2)));
        assert_eq!((half.few(), half.is_dense()), (None, true));
        // Between both, it stays as it is placed.
        let between = hits((0..12).map(|part| (part, 3)));
        assert_eq!((between.few(), between.is_dense()), (None, false));
        assert!(!hits([]).is_dense());
    }

    /// Draws that anyone can repeat (xorshift).
    fn drawn(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    #[test]
    fn a_unit_that_is_hot_in_half_or_more_is_not_split_by_chance() {
        let mut state = 88_172_645_463_325_252;
        for hot in [32, 64] {
            for _ in 0..1_000 {
                let mut found = PartHits::default();
                for _ in 0..200 {
                    found.add((drawn(&mut state) % hot) as usize);
                    assert_eq!(found.few(), None, "{found:?}");
                }
            }
        }
    }

    #[test]
    fn hot_parts_that_moved_elsewhere_are_forgotten() {
        let mut found = hits([(1, 40)]);
        for _ in 0..4 {
            assert!(found.halve());
            (0..20).for_each(|_| found.add(2));
        }
        assert_eq!(found.few(), Some(parts(&[2])));
        assert_eq!((found.sum(), found.rest(parts(&[2]))), (39, 2));
        assert_eq!((0..9).take_while(|_| found.halve()).count(), 5);
    }

    #[test]
    fn runs_are_all_parts_in_order() {
        let runs: Vec<_> = parts(&[0, 1, 63]).runs().collect();
        assert_eq!(runs, [(0, 2, true), (2, 61, false), (63, 1, true)]);
        assert_eq!(
            Parts::default().runs().collect::<Vec<_>>(),
            [(0, 64, false)]
        );
        assert_eq!(parts(&(0..64).collect::<Vec<_>>()).runs().count(), 1);
    }

    proptest! {
        #[test]
        fn few_hot_parts_have_most_hits_and_runs_cover_every_part_once(
            at in prop::collection::vec(0_usize..70, 0..300)
        ) {
            let mut found = PartHits::default();
            at.iter().for_each(|part| found.add(*part));
            let few = found.few();
            let hot = few.unwrap_or_default();
            let mut next = 0;
            let (mut inside, mut all) = (0, 0);
            for (first, count, is_hot) in hot.runs() {
                prop_assert_eq!(first, next);
                next += count;
                let hits: u32 = found.0[first..next].iter().map(|hits| u32::from(*hits)).sum();
                all += hits;
                inside += if is_hot { hits } else { 0 };
            }
            prop_assert_eq!(next, PARTS);
            prop_assert_eq!(u64::from(all), found.sum());
            prop_assert_eq!(u64::from(all - inside), found.rest(hot));
            prop_assert!(few.is_none() || (inside * 8 >= all * 5 && hot.count() <= 8));
            prop_assert!(few.is_none() || !found.is_dense());
        }
    }
}
