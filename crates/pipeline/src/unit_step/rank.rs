//! `Ranks` computes the rank of each unit, its heat in an epoch, by which policies order units: the sum of the hits of accessed bits and of
//! samples, converted to the accesses that they represent or, as TMP does, as they are.
//!
//! TMP (section IV) adds the hits of accessed bits and of trace samples, because on its machines
//! both numbers had the same order of magnitude (figure 2). Without a PMU they do not: a scan of 1
//! GiB yields a quarter of a million accessed bits, a second of timer samples a thousand. So each
//! source's hits are first converted to the accesses that they represent:
//!
//! - a sample represents the accesses between two samples;
//! - accessed bits show *where*, not how often. Beside samples they represent in total the same
//!   number of accesses as these; alone, a hit represents one read of every line of a page.
//!
//! [`Combine::Sum`] leaves the hits as they are, as TMP does.
//!
//! Some accessed bits are of slow memory only (`SourceKind::sees_slow_only`): NUMA hint faults. Together they represent as many accesses
//! as the samples of slow memory; for fast memory, which they do not observe, they are assumed to agree with the samples. Without samples
//! they are ignored, because they do not show whether fast data is colder. A unit that the kernel promoted at its faults has no more faults
//! and few samples yet: its rank is at least that of the faults, halved in each further epoch.
//!
//! ```text
//! samples x worth      slow unit 300        fast unit 300
//! hint faults             2 of 4                -          4 faults stand for all 600 samples of slow memory
//! rank                 300 + 300            300 + 300
//! ```

use isotherm_model::batch::ObservedAccess;
use isotherm_model::units::portion;

use super::index::Index;
use crate::division::Division;

/// Bytes of a cache line, and so of one access to memory.
const LINE_BYTES: u64 = 64;

/// A least rank ends below 1/`PARTS_OF_SAMPLE` of a sample: five epochs after faults that represented one or two samples.
const PARTS_OF_SAMPLE: u64 = 16;

/// The combination of the hits of both kinds into one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Combine {
    /// Converted to the accesses that they represent.
    #[default]
    Balanced,
    /// Added unchanged (TMP, section IV).
    Sum,
}

/// Hits of an epoch by unit and kind, and the ranks from them. Keeps its lists between epochs.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranks {
    hits: [Vec<u64>; 2],
    /// The least rank of each unit that was promoted at its faults, by number of the unit.
    promoted: Vec<u64>,
    /// The rank of each unit, by number of the unit.
    pub ranks: Vec<u64>,
    /// Rank of one hit of the source whose hits vary most by chance.
    pub hit: u64,
}

impl Ranks {
    /// Hits of each kind, by number of the unit.
    pub(super) fn hits(&self) -> impl Iterator<Item = [u64; 2]> {
        let [bits, samples] = &self.hits;
        bits.iter()
            .zip(samples)
            .map(|(bit, sample)| [*bit, *sample])
    }

    /// Ranks every unit by the observations of this epoch; a sample represents the given number of
    /// accesses. Returns the hits of each kind that fell on a unit.
    pub(super) fn take(
        &mut self,
        index: &Index,
        accesses: &[ObservedAccess],
        unit_bytes: u64,
        page_bytes: u64,
        (combine, accesses_per_sample): (Combine, u64),
    ) -> [u64; 2] {
        for hits in &mut self.hits {
            hits.clear();
            hits.resize(index.known().len(), 0);
        }
        let sample = match combine {
            Combine::Balanced => accesses_per_sample.max(1),
            Combine::Sum => 1,
        };
        self.halve_promoted(index, sample / PARTS_OF_SAMPLE);
        for access in accesses {
            let hits = &mut self.hits[access.source.method() as usize];
            spread(index, access, unit_bytes, hits);
        }
        let total = |hits: &Vec<u64>| hits.iter().fold(0_u64, |sum, one| sum.saturating_add(*one));
        let totals = [total(&self.hits[0]), total(&self.hits[1])];
        let worth = accesses_per_sample.max(1);
        if accesses.iter().any(|one| one.source.sees_slow_only()) {
            return self.take_of_slow(index, totals, (combine, worth));
        }
        let (bits, samples) = match (combine, totals) {
            (Combine::Sum, _) => ((1, 1), 1),
            (Combine::Balanced, [_, 0]) => ((page_bytes / LINE_BYTES, 1), page_bytes / LINE_BYTES),
            (Combine::Balanced, [bits, samples]) => {
                ((samples.saturating_mul(worth), bits.max(1)), worth)
            }
        };
        self.hit = samples.max(1);
        let both = self.hits[0].iter().zip(&self.hits[1]);
        let rank = |(bit, sample): (&u64, &u64)| {
            scaled(*bit, bits).saturating_add(scaled(*sample, (samples, 1)))
        };
        self.ranks.clear();
        self.ranks.extend(both.map(rank));
        self.keep_promoted();
        totals
    }

    /// Halves the least ranks of the promoted units. A rank that falls below `end` becomes 0, as does the rank of a unit that is slow.
    fn halve_promoted(&mut self, index: &Index, end: u64) {
        self.promoted.resize(index.known().len(), 0);
        for (least, unit) in self.promoted.iter_mut().zip(index.known()) {
            let half = *least / 2;
            *least = if unit.is_fast() && half >= end {
                half
            } else {
                0
            };
        }
    }

    /// Raises the promoted units to their least ranks.
    fn keep_promoted(&mut self) {
        for (rank, least) in self.ranks.iter_mut().zip(&self.promoted) {
            *rank = (*rank).max(*least);
        }
    }

    /// Ranks every unit if the accessed bits are of slow memory only.
    fn take_of_slow(
        &mut self,
        index: &Index,
        totals: [u64; 2],
        (combine, worth): (Combine, u64),
    ) -> [u64; 2] {
        let [bits, samples] = totals;
        self.hit = worth;
        self.ranks.clear();
        if samples == 0 {
            self.hits[0].fill(0);
            self.ranks.resize(index.known().len(), 0);
            return [0, 0];
        }
        let units = || index.known().iter().zip(&self.hits[1]);
        let of_slow = units().filter(|(unit, _)| !unit.is_fast());
        let of_slow = of_slow.fold(0_u64, |sum, (_, samples)| sum.saturating_add(*samples));
        let (bit, sample) = match combine {
            Combine::Sum => ((1, 1), (1, 1)),
            Combine::Balanced => ((of_slow.saturating_mul(worth), bits.max(1)), (worth, 1)),
        };
        let rank = |((unit, samples), bits): ((_, &u64), &u64)| {
            let sampled = scaled(*samples, sample);
            let unit: &super::index::UnitState = unit;
            // A page that was promoted at its fault is fast by now.
            let beside = match unit.is_fast() {
                true => scaled(*bits, bit).max(sampled),
                false => scaled(*bits, bit),
            };
            sampled.saturating_add(beside)
        };
        self.ranks.extend(units().zip(&self.hits[0]).map(rank));
        let faults = index.known().iter().zip(&self.hits[0]);
        for (least, (unit, bits)) in self.promoted.iter_mut().zip(faults) {
            if unit.is_fast() {
                *least = (*least).max(scaled(*bits, bit));
            }
        }
        self.keep_promoted();
        totals
    }
}

/// `hits` times a fraction, rounded down; a hit never becomes zero.
fn scaled(hits: u64, (times, over): (u64, u64)) -> u64 {
    portion(hits, times, over).max(u64::from(hits > 0))
}

/// Spreads an access over the units in its range, in proportion to their resident bytes: only resident memory was accessed. No hit is lost
/// in rounding.
fn spread(index: &Index, access: &ObservedAccess, unit_bytes: u64, hits: &mut [u64]) {
    if access.bytes.0 == 0 || unit_bytes == 0 {
        return;
    }
    let parts = || {
        let first = access.address / unit_bytes * unit_bytes;
        let units = index.within(access.process, first, access.end());
        units.map(|(unit, page)| {
            let end = unit.start.saturating_add(unit_bytes).min(access.end());
            let inside = end.saturating_sub(unit.start.max(access.address));
            (page, inside.min(index.known()[page.at()].resident).max(1))
        })
    };
    let total: u64 = parts().fold(0, |sum, (_, bytes)| sum.saturating_add(bytes));
    let mut division = Division::new(access.count, total);
    for (page, bytes) in parts() {
        hits[page.at()] = hits[page.at()].saturating_add(division.next(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::{Combine, Ranks};
    use crate::unit_step::index::Index;
    use isotherm_model::batch::ObservedAccess;
    use isotherm_model::batch::Process;
    use isotherm_model::source_kind::SourceKind;
    use isotherm_model::units::Bytes;
    use isotherm_model::watch::{Unit, UnitResidency};

    const UNIT: u64 = 1 << 20;

    /// Three units, the last one half resident.
    fn index() -> Index {
        let held = |number: u64, resident: u64| UnitResidency {
            unit: Unit {
                process: Process::default(),
                start: number * UNIT,
            },
            resident: Bytes(resident),
            fast: Bytes(0),
            grain: Bytes(UNIT),
        };
        let mut index = Index::default();
        index.update(
            &[held(0, UNIT), held(1, UNIT), held(2, UNIT / 2)],
            UNIT,
            false,
        );
        index
    }

    fn seen(start: u64, bytes: u64, hits: u64, source: SourceKind) -> ObservedAccess {
        ObservedAccess {
            bytes: Bytes(bytes),
            ..ObservedAccess::at(
                (Process::default(), start),
                source,
                (hits, source.unit(false)),
            )
        }
    }

    fn ranks(accesses: &[ObservedAccess], combine: Combine) -> (Vec<u64>, [u64; 2]) {
        let mut ranks = Ranks::default();
        let totals = ranks.take(&index(), accesses, UNIT, 4096, (combine, 1000));
        (ranks.ranks, totals)
    }

    #[test]
    fn hits_are_spread_over_what_is_resident_and_none_is_lost() {
        let all = seen(0, 8 * UNIT, 101, SourceKind::AccessedBits);
        let (ranks, totals) = ranks(&[all], Combine::Sum);
        assert_eq!((ranks, totals), (vec![40, 40, 21], [101, 0]));
    }

    #[test]
    fn where_both_kinds_see_they_weigh_alike_and_a_sum_leaves_them_as_they_are() {
        let bits = seen(0, 2 * UNIT, 500_000, SourceKind::AccessedBits);
        let sample = seen(UNIT + 7, 1, 10, SourceKind::Timer);
        let (balanced, _) = ranks(&[bits, sample], Combine::Balanced);
        assert_eq!(balanced, [5_000, 15_000, 0]);
        let (sum, _) = ranks(&[bits, sample], Combine::Sum);
        assert_eq!(sum, [250_000, 250_010, 0]);
    }

    #[test]
    fn touches_of_slow_memory_do_not_make_fast_memory_look_colder() {
        let mut index = index();
        // The second unit is fast.
        let second = isotherm_model::page::PageIndex(1);
        index.known_mut(second).expect("a unit").fast = UNIT;
        let accesses = [
            seen(0, 1, 2, SourceKind::HintFaults),
            seen(2 * UNIT, 1, 2, SourceKind::HintFaults),
            seen(0, 1, 3, SourceKind::Timer),
            seen(UNIT, 1, 3, SourceKind::Timer),
            seen(2 * UNIT, 1, 3, SourceKind::Timer),
        ];
        let mut ranks = Ranks::default();
        let combine = (Combine::Balanced, 100);
        let totals = ranks.take(&index, &accesses, UNIT, 4096, combine);
        assert_eq!(
            (ranks.ranks.as_slice(), totals),
            (&[600, 600, 600][..], [4, 9])
        );
        // Without samples nothing is known of the fast unit, so nothing is known at all.
        let totals = ranks.take(&index, &accesses[..2], UNIT, 4096, combine);
        assert_eq!((ranks.ranks.as_slice(), totals), (&[0, 0, 0][..], [0, 0]));
    }

    #[test]
    fn what_the_kernel_promoted_is_not_cold_before_there_are_samples_of_it() {
        let mut index = index();
        let fast = |index: &mut Index, bytes| {
            let page = isotherm_model::page::PageIndex(1);
            index.known_mut(page).expect("a unit").fast = bytes;
        };
        let mut ranks = Ranks::default();
        let mut after = |index: &Index, accesses: &[ObservedAccess]| {
            ranks.take(index, accesses, UNIT, 4096, (Combine::Balanced, 100));
            ranks.ranks[1]
        };
        // The kernel promoted the second unit at four faults; a sample found another one, which is slow.
        fast(&mut index, UNIT);
        let faults = seen(UNIT, 1, 4, SourceKind::HintFaults);
        let sample = |count| seen(0, 1, count, SourceKind::Timer);
        assert_eq!(after(&index, &[faults, sample(4)]), 400);
        assert_eq!(after(&index, &[sample(4)]), 200);
        assert_eq!(after(&index, &[sample(4)]), 100);
        // The least rank ends, so that a unit without an access is cold in time.
        let rests: Vec<u64> = (0..6).map(|_| after(&index, &[sample(4)])).collect();
        assert_eq!(rests, [50, 25, 12, 6, 0, 0]);
        assert_eq!(after(&index, &[faults, sample(4)]), 400);
        // Slow again, it is known by what is seen of it.
        fast(&mut index, 0);
        assert_eq!(after(&index, &[sample(4)]), 0);
        fast(&mut index, UNIT);
        assert_eq!(after(&index, &[sample(4)]), 0);
    }

    #[test]
    fn accessed_bits_alone_stand_for_the_lines_of_their_pages() {
        let bits = seen(0, UNIT, 3, SourceKind::AccessedBits);
        assert_eq!(ranks(&[bits], Combine::Balanced).0, [192, 0, 0]);
    }

    #[test]
    fn what_lies_in_no_unit_and_the_end_of_the_address_space_count_nothing() {
        let beyond = seen(9 * UNIT, UNIT, 5, SourceKind::Timer);
        let end = seen(u64::MAX - 1, 9, 5, SourceKind::Timer);
        let nothing = seen(0, 0, 5, SourceKind::Timer);
        assert_eq!(ranks(&[beyond, end, nothing], Combine::Sum).1, [0, 0]);
    }
}
