//! Turns the tier of each page, which the runtime in a program publishes on an emulated machine, into units with their resident and fast
//! bytes, runs of resident pages of one tier, and counts of samples by tier, for live runs and the daemon. On real nodes, `runs_of_units`
//! makes such runs from units and resident spans.
//!
//! The runtime knows which pages hold data, so no page table is read for these. Memory outside its pool (stacks, files) belongs to no unit,
//! but for static data where memory is emulated by time.

use std::collections::BTreeMap;

use isotherm_abi::page_tiers::{PAGE_BYTES, PAGE_FAST, PAGE_SLOW};
use isotherm_model::batch::{ObservedAccess, Process};
use isotherm_model::movement::AddressRange;
use isotherm_model::source_kind::ProfilingMethod;
use isotherm_model::spans;
use isotherm_model::units::Bytes;
use isotherm_model::watch::{Placed, ResidentRun, Unit, UnitResidency};
use isotherm_session::{PageTiers, StaticTiers};

use crate::resident::Span;

/// Unit in which the nodes of a process's memory are queried: four pages of each.
pub(crate) const NODE_UNIT: Bytes = Bytes(64 << 10);

/// The resident memory of a process in units of this size, a multiple of 4 KiB, by address: that of its pool and static data with tiers.
#[must_use]
pub(crate) fn units(
    process: Process,
    pages: &PageTiers,
    statics: &[StaticTiers],
    unit: Bytes,
) -> Vec<UnitResidency> {
    let unit = unit.0.max(PAGE_BYTES);
    let mut found = BTreeMap::<u64, UnitResidency>::new();
    for (start, tiers) in ranges(pages, statics) {
        for held in units_of_range(process, (start, tiers), unit) {
            // Two ranges may be in one unit, such as `.data` and `.bss` of a module.
            let sum = found.entry(held.unit.start).or_insert(UnitResidency {
                resident: Bytes::ZERO,
                fast: Bytes::ZERO,
                ..held
            });
            sum.resident += held.resident;
            sum.fast += held.fast;
        }
    }
    found.into_values().collect()
}

/// The ranges with tiers: first address and tiers of the pages.
fn ranges<'a>(
    pages: &'a PageTiers,
    statics: &'a [StaticTiers],
) -> impl Iterator<Item = (u64, &'a [u8])> {
    let statics = statics.iter().map(|part| (part.start, &part.tiers[..]));
    std::iter::once((pages.start, &pages.tiers[..])).chain(statics)
}

/// Bytes of the fast tier that static data has; the pool can have the rest.
#[must_use]
pub(crate) fn fast_statics(statics: &[StaticTiers]) -> Bytes {
    let pages = statics.iter().flat_map(|part| &part.tiers);
    Bytes(pages.filter(|tier| **tier == PAGE_FAST).count() as u64 * PAGE_BYTES)
}

fn units_of_range(
    process: Process,
    (start, tiers): (u64, &[u8]),
    unit: u64,
) -> impl Iterator<Item = UnitResidency> {
    // The range may begin within a unit.
    let before = (start % unit / PAGE_BYTES) as usize;
    let in_unit = (unit / PAGE_BYTES) as usize;
    let first = start / unit;
    let (head, rest) = tiers.split_at(((in_unit - before) % in_unit).min(tiers.len()));
    let head = (!head.is_empty()).then_some(head);
    // The head is a whole unit's rest, and the number of the unit that follows is one more.
    let numbers = first..;
    let found = numbers.zip(head.into_iter().chain(rest.chunks(in_unit)));
    let bytes = |of: &[u8], is: fn(&u8) -> bool| {
        Bytes(of.iter().filter(|tier| is(tier)).count() as u64 * PAGE_BYTES)
    };
    found.filter_map(move |(number, of)| {
        let fast = bytes(of, |tier| *tier == PAGE_FAST);
        let resident = bytes(of, |tier| matches!(*tier, PAGE_FAST | PAGE_SLOW));
        let start = number * unit;
        (resident > Bytes::ZERO).then_some(UnitResidency {
            unit: Unit { process, start },
            resident,
            fast,
            // Tiers are of single pages, whatever the kernel maps at once.
            grain: Bytes(unit),
        })
    })
}

/// The pages with data from an address on, as runs of one tier.
#[must_use]
pub(crate) fn runs(start: u64, tiers: &[u8]) -> Vec<ResidentRun> {
    let mut runs = Vec::new();
    let mut start = start;
    for same in tiers.chunk_by(|a, b| a == b) {
        let bytes = Bytes(same.len() as u64 * PAGE_BYTES);
        if matches!(same[0], PAGE_FAST | PAGE_SLOW) {
            runs.push(ResidentRun {
                range: AddressRange { start, bytes },
                is_fast: same[0] == PAGE_FAST,
                // Tiers are of single pages, whatever the kernel maps at once.
                is_huge: false,
            });
        }
        start = start.saturating_add(bytes.0);
    }
    runs
}

/// The runs of static data with tiers, within the `ranges` that sites own (sorted, without overlap): the data of libraries, for example, is
/// left out.
#[must_use]
pub(crate) fn static_runs(statics: &[StaticTiers], ranges: &[Span]) -> Vec<ResidentRun> {
    let mut found = Vec::new();
    let all = statics.iter();
    for run in all.flat_map(|part| runs(part.start, &part.tiers)) {
        let (mut next, last) = (run.range.start, run.range.end());
        let first = ranges.partition_point(|range| range.end <= next);
        for range in ranges[first..]
            .iter()
            .take_while(|range| range.start < last)
        {
            // A page belongs to the first range that has a part of it.
            let start = next.max(range.start / PAGE_BYTES * PAGE_BYTES);
            let end = range.end.checked_next_multiple_of(PAGE_BYTES);
            let end = end.map_or(last, |end| end.min(last));
            if start < end {
                let bytes = Bytes(end - start);
                let range = AddressRange { start, bytes };
                found.push(ResidentRun { range, ..run });
                next = end;
            }
        }
    }
    found
}

/// Divides the resident spans of a process, in order, into runs of one tier: that of most of each unit. A page of two spans counts once.
#[must_use]
pub(crate) fn runs_of_units(units: &[UnitResidency], spans: &[Span]) -> Vec<ResidentRun> {
    let mut runs: Vec<ResidentRun> = Vec::new();
    let mut next = 0;
    for held in units {
        let start = held.unit.start;
        let end = start.saturating_add(NODE_UNIT.0);
        for span in spans::within(spans, start..end) {
            let (start, end) = (span.start.max(next), span.end);
            if start >= end {
                continue;
            }
            next = end;
            let run = ResidentRun {
                range: AddressRange::between(start, end),
                is_fast: held.fast.0 > held.resident.0 / 2,
                is_huge: held.grain > NODE_UNIT,
            };
            add_run(&mut runs, run);
        }
    }
    runs
}

/// Adds a run, which is a part of the last one if it continues it.
fn add_run(runs: &mut Vec<ResidentRun>, run: ResidentRun) {
    match runs.last_mut() {
        Some(last)
            if last.range.end() == run.range.start
                && (last.is_fast, last.is_huge) == (run.is_fast, run.is_huge) =>
        {
            last.range.bytes += run.range.bytes;
        }
        _ => runs.push(run),
    }
}

/// The samples of a process whose page has a tier, and those of them whose page is fast.
#[must_use]
pub(crate) fn placed<'a>(
    pages: &PageTiers,
    statics: &[StaticTiers],
    accesses: impl Iterator<Item = &'a ObservedAccess>,
) -> Placed {
    let mut placed = Placed::default();
    for access in accesses.filter(|one| one.source.method() == ProfilingMethod::TraceSamples) {
        let tier_in = |(start, tiers): (u64, &[u8])| {
            let page = access.address.checked_sub(start)? / PAGE_BYTES;
            tiers.get(usize::try_from(page).ok()?).copied()
        };
        let tier = ranges(pages, statics).find_map(tier_in).unwrap_or_default();
        if tier == PAGE_FAST || tier == PAGE_SLOW {
            placed.samples = placed.samples.saturating_add(access.count);
            let fast = if tier == PAGE_FAST { access.count } else { 0 };
            placed.fast = placed.fast.saturating_add(fast);
        }
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::{
        NODE_UNIT, PageTiers, Process, ResidentRun, StaticTiers, Unit, UnitResidency, placed, runs,
        runs_of_units, static_runs, units,
    };
    use isotherm_model::batch::ObservedAccess;
    use isotherm_model::source_kind::SourceKind;
    use isotherm_model::units::Bytes;

    const POOL: u64 = 7 << 21;

    fn tiers(tiers: &[u8]) -> PageTiers {
        PageTiers {
            start: POOL,
            tiers: tiers.to_vec(),
            fast_capacity: Bytes(1 << 20),
        }
    }

    /// (start from the pool's, resident pages, fast pages) of each unit.
    fn seen(pages: &PageTiers, unit: u64) -> Vec<(i64, u64, u64)> {
        let units = units(Process::default(), pages, &[], Bytes(unit));
        let row = |one: &isotherm_model::watch::UnitResidency| {
            let start = one.unit.start as i64 - POOL as i64;
            assert!(one.unit.start.is_multiple_of(unit));
            (start, one.resident.0 / 4096, one.fast.0 / 4096)
        };
        units.iter().map(row).collect()
    }

    #[test]
    fn units_count_pages_with_data_and_those_without_any_are_left_out() {
        let pages = tiers(&[1, 2, 2, 0, 0, 0, 0, 0, 1, 9]);
        assert_eq!(
            seen(&pages, 4096),
            [(0, 1, 1), (4096, 1, 0), (8192, 1, 0), (8 * 4096, 1, 1)]
        );
        assert_eq!(seen(&pages, 4 * 4096), [(0, 3, 1), (8 * 4096, 1, 1)]);
        // 4 MiB is no divisor of the pool's address: the unit begins 2 MiB before it.
        assert_eq!(seen(&pages, 4 << 20), [(-(2 << 20), 4, 2)]);
        assert_eq!(seen(&tiers(&[]), 4096), []);
    }

    #[test]
    fn static_data_is_in_units_and_two_ranges_in_one_unit_are_one() {
        let pages = tiers(&[1, 2]);
        let part = |start: u64, tiers: &[u8]| StaticTiers {
            start,
            tiers: tiers.to_vec(),
        };
        let statics = [part(0x1_4000, &[1, 1, 2]), part(0x1_8000, &[1; 9])];
        let units = units(Process::default(), &pages, &statics, Bytes(64 << 10));
        let row = |one: &UnitResidency| (one.unit.start, one.resident.0 / 4096, one.fast.0 / 4096);
        let rows: Vec<_> = units.iter().map(row).collect();
        assert_eq!(rows, [(0x1_0000, 11, 10), (0x2_0000, 1, 1), (POOL, 2, 1)]);
        assert_eq!(super::fast_statics(&statics), Bytes(11 * 4096));
        let at = |address: u64| {
            let source = SourceKind::Timer;
            ObservedAccess::at(
                (Process::default(), address),
                source,
                (1, source.unit(false)),
            )
        };
        let all = [at(0x1_4fff), at(0x1_6000), at(0x1_7000), at(0x2_0000)];
        let placed = placed(&pages, &statics, all.iter());
        assert_eq!((placed.samples, placed.fast), (3, 2));
    }

    #[test]
    fn runs_are_of_neighbours_in_one_tier() {
        let found = runs(POOL, &[1, 1, 2, 0, 0, 9, 2, 1]);
        let row = |run: &isotherm_model::watch::ResidentRun| {
            let first = (run.range.start - POOL) / 4096;
            (first, run.range.bytes.0 / 4096, run.is_fast)
        };
        let rows: Vec<_> = found.iter().map(row).collect();
        assert_eq!(
            rows,
            [(0, 2, true), (2, 1, false), (6, 1, false), (7, 1, true)]
        );
    }

    #[test]
    fn static_data_counts_as_far_as_the_process_owns_it_and_each_page_once() {
        let part = |start: u64, tiers: &[u8]| StaticTiers {
            start,
            tiers: tiers.to_vec(),
        };
        let statics = [part(0x8000, &[1, 1, 1, 2, 2, 0, 2]), part(0x20_0000, &[1])];
        // Two variables share the page at 0x9000, and no site owns the last part.
        let owned = [0x8800..0x9100, 0x9200..0xb800, 0xc000..0xf000];
        let found = static_runs(&statics, &owned);
        let row = |run: &ResidentRun| (run.range.start, run.range.end(), run.is_fast);
        let rows: Vec<_> = found.iter().map(row).collect();
        assert_eq!(
            rows,
            [
                (0x8000, 0xa000, true),
                (0xa000, 0xb000, true),
                (0xb000, 0xc000, false),
                (0xc000, 0xd000, false),
                (0xe000, 0xf000, false),
            ]
        );
        assert_eq!(static_runs(&statics, &[]), []);
    }

    #[test]
    fn resident_spans_are_runs_in_the_tiers_of_their_units() {
        let unit = |number: u64, kib: u64, fast: u64, grain: u64| UnitResidency {
            unit: Unit {
                process: Process::default(),
                start: number * NODE_UNIT.0,
            },
            resident: Bytes(kib << 10),
            fast: Bytes(fast << 10),
            grain: Bytes(grain),
        };
        let (small, huge) = (NODE_UNIT.0, 2 << 20);
        let units = [
            unit(0, 64, 64, small),
            unit(1, 64, 40, small),
            unit(2, 64, 20, small),
            unit(3, 8, 0, small),
            unit(32, 64, 0, huge),
        ];
        // The unit at 64 KiB has a page without a tier in its middle; two spans share the page at 196 KiB.
        let spans = [
            4096..(80 << 10),
            84 << 10..200 << 10,
            196 << 10..200 << 10,
            31 * NODE_UNIT.0..40 * NODE_UNIT.0,
        ];
        let found = runs_of_units(&units, &spans);
        let row = |run: &ResidentRun| {
            let (start, bytes) = (run.range.start >> 10, run.range.bytes.0 >> 10);
            (start, bytes, run.is_fast, run.is_huge)
        };
        let rows: Vec<_> = found.iter().map(row).collect();
        assert_eq!(
            rows,
            [
                (4, 76, true, false),
                (84, 44, true, false),
                (128, 72, false, false),
                (2048, 64, false, true)
            ]
        );
    }

    #[test]
    fn samples_count_by_the_tier_of_their_page() {
        let pages = tiers(&[1, 2, 0]);
        let at = |offset: u64, count| {
            let source = SourceKind::Timer;
            let address = (Process::default(), POOL.wrapping_add(offset));
            ObservedAccess::at(address, source, (count, source.unit(false)))
        };
        let bits = ObservedAccess {
            source: SourceKind::AccessedBits,
            ..at(0, 100)
        };
        let all = [
            at(5, 3),
            at(4096, 2),
            at(8192, 9),
            at(1 << 30, 9),
            at(u64::MAX, 9),
            bits,
        ];
        let placed = placed(&pages, &[], all.iter());
        assert_eq!((placed.samples, placed.fast), (5, 3));
    }
}
