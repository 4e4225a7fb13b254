//! Tests attribution with extents and samples of a few processes, and against a slow search.

use super::Attribution;
use crate::absorb::absorb;
use isotherm_model::batch::{
    AllocatedObject, Batch, Count, Epoch, Extent, OBJECTS_FOLDED, ObservedAccess, Process,
};
use isotherm_model::movement::AddressRange;
use isotherm_model::profile::{Meta, Profile};
use isotherm_model::site::{Site, SiteId, SiteKind};
use isotherm_model::source_kind::SourceKind;
use isotherm_model::units::{Accesses, Bytes, Nanos};
use proptest::prelude::*;

const A: SiteId = SiteId(0x50);
const B: SiteId = SiteId(0x40);

fn process(pid: u32) -> Process {
    Process { pid, image: 0 }
}

fn extent(pid: u32, site: SiteId, address: u64, bytes: u64, resident: u64) -> Extent {
    Extent {
        process: process(pid),
        site,
        address,
        bytes: Bytes(bytes),
        resident: Bytes(resident),
        tier: None,
    }
}

fn sample(pid: u32, address: u64) -> ObservedAccess {
    let source = SourceKind::Timer;
    ObservedAccess::at((process(pid), address), source, (1, source.unit(false)))
}

fn meta(chunk: u64) -> Meta {
    Meta {
        chunk: Bytes(chunk),
        ..Meta::default()
    }
}

fn batch(epoch: u32, extents: Vec<Extent>, samples: Vec<ObservedAccess>) -> Batch {
    Batch {
        epoch: Epoch(epoch),
        span: Nanos(1_000_000_000),
        extents,
        accesses: samples,
        ..Batch::default()
    }
}

#[test]
fn samples_go_to_the_extent_that_holds_them_and_the_rest_is_unattributed() {
    let mut attribution = Attribution::new(&meta(0x100));
    let extents = vec![
        extent(1, B, 0x1000, 0x80, 0x80),
        extent(1, A, 0x1080, 0x100, 1),
    ];
    let samples = [0x1000, 0x107f, 0x1080, 0x117f, 0x1180, 0xfff, u64::MAX]
        .map(|at| sample(1, at))
        .into_iter()
        .chain([sample(2, 0x1000)]);
    let segment = attribution.attribute(&batch(0, extents, samples.collect()));
    let heat: Vec<_> = segment
        .heat
        .iter()
        .map(|h| (h.process.pid, h.address, h.site, h.accesses.0))
        .collect();
    let stray = SiteId::UNATTRIBUTED;
    assert_eq!(
        heat,
        [
            (1, 0xf00, stray, 1),
            (1, 0x1000, B, 2),
            (1, 0x1000, A, 1),
            (1, 0x1100, stray, 1),
            (1, 0x1100, A, 1),
            (1, u64::MAX - 0xff, stray, 1),
            (2, 0x1000, stray, 1),
        ]
    );
}

#[test]
fn accesses_to_a_large_object_are_kept_by_bin_and_those_to_longer_ranges_by_chunk() {
    let mut attribution = Attribution::new(&meta(0x1_0000));
    let range = AddressRange {
        start: 0x10_5000,
        bytes: Bytes(16 << 20),
    };
    let object = AllocatedObject {
        process: process(1),
        site: A,
        range,
    };
    let scan = |bytes| ObservedAccess {
        bytes: Bytes(bytes),
        ..sample(1, range.start + 0x6000)
    };
    let samples = [0x6010, 0x7fff, 0x8000].map(|place| sample(1, range.start + place));
    let batch = Batch {
        objects: vec![object],
        ..batch(
            0,
            vec![extent(1, A, range.start, range.bytes.0, 1)],
            samples
                .into_iter()
                .chain([scan(0x2000), scan(0x8001)])
                .collect(),
        )
    };
    let segment = attribution.attribute(&batch);
    let rows: Vec<_> = segment
        .heat
        .iter()
        .map(|heat| {
            let object = heat.object.expect("is known");
            assert_eq!(object.range, range);
            let bin = object.bin.map(|bin| (bin.start.0, bin.bytes.0));
            (heat.address, bin, heat.accesses.0)
        })
        .collect();
    assert_eq!(
        rows,
        [
            (0x10_0000, Some((0x6000, 0x1000)), 1),
            (0x10_0000, Some((0x6000, 0x2000)), 1),
            (0x10_0000, Some((0x7000, 0x1000)), 1),
            (0x10_0000, Some((0x8000, 0x1000)), 1),
            (0x11_0000, None, 1),
        ]
    );
}

#[test]
fn objects_beyond_the_limit_are_counted_and_their_accesses_count_for_the_site() {
    let mut attribution = Attribution::new(&meta(0x1_0000));
    let (bytes, most) = (0x1_0000, 1 << 18);
    let objects = (0..most + 9).map(|number| AllocatedObject {
        process: process(1),
        site: A,
        range: AddressRange {
            start: number * bytes,
            bytes: Bytes(bytes),
        },
    });
    let batch = Batch {
        objects: objects.collect(),
        counts: vec![Count::of_run("cpu_ns", 1)],
        ..batch(
            0,
            vec![extent(1, A, 0, (most + 9) * bytes, 1)],
            vec![sample(1, 8 * bytes), sample(1, 9 * bytes)],
        )
    };
    let segment = attribution.attribute(&batch);
    let folded = segment
        .counts
        .iter()
        .find(|count| count.name == OBJECTS_FOLDED);
    assert_eq!(folded.map(|count| count.value), Some(9));
    let known: Vec<_> = segment
        .heat
        .iter()
        .map(|heat| heat.object.is_some())
        .collect();
    assert_eq!(known, [false, true]);
    assert!(segment.heat.iter().all(|heat| heat.site == A));
    assert_eq!(attribution.objects().count() as u64, most);
}

#[test]
fn a_site_keeps_its_order_of_creation_and_the_peak_of_its_residents_over_processes() {
    let mut attribution = Attribution::new(&meta(4096));
    let mut profile = Profile::new(meta(4096));
    let sites = vec![Site::new(A, SiteKind::Heap), Site::new(B, SiteKind::Heap)];
    let two = vec![extent(1, A, 0, 9000, 300), extent(2, A, 0, 9000, 400)];
    let first = Batch {
        sites,
        ..batch(0, two, vec![])
    };
    let one = vec![extent(1, A, 0, 9000, 500), extent(1, B, 9000, 5, 5)];
    absorb(&mut profile, attribution.attribute(&first));
    let second = Batch {
        freed: vec![(process(2), 0)],
        ..batch(1, one, vec![])
    };
    absorb(&mut profile, attribution.attribute(&second));
    let facts: Vec<_> = profile
        .sites
        .iter()
        .map(|s| (s.id, s.first_seen, s.peak_rss.0))
        .collect();
    assert_eq!(facts, [(B, 1, 5), (A, 0, 700)]);
    assert_eq!(profile.footprint().0, Bytes(700));
}

#[test]
fn what_did_not_change_is_not_told_again() {
    let mut attribution = Attribution::new(&meta(4096));
    let sites = vec![Site::new(A, SiteKind::Heap)];
    let extents = vec![extent(1, A, 0, 9000, 300)];
    let same = Batch {
        sites,
        ..batch(0, extents, vec![])
    };
    let first = attribution.attribute(&same);
    assert_eq!((first.sites.len(), first.extents.len()), (1, 1));
    let second = attribution.attribute(&batch(1, vec![], vec![]));
    assert_eq!((second.sites.len(), second.extents.len()), (0, 0));
    assert_eq!(second.resident.len(), 1);
    // The extent was freed and came back: it is reported again.
    let gone = attribution.attribute(&Batch {
        freed: vec![(process(1), 0)],
        ..batch(2, vec![], vec![])
    });
    assert!(gone.resident.is_empty());
    assert_eq!(attribution.attribute(&same).extents.len(), 1);
}

#[test]
fn memory_that_was_freed_in_an_epoch_counts_in_it_beside_its_successor() {
    let mut attribution = Attribution::new(&meta(4096));
    let (freed, live) = (extent(1, A, 0, 9000, 300), extent(1, B, 0, 4096, 200));
    let first = Batch {
        departed: vec![freed],
        ..batch(0, vec![live], vec![sample(1, 10), sample(1, 5000)])
    };
    let segment = attribution.attribute(&first);
    let resident: Vec<_> = segment
        .resident
        .iter()
        .map(|it| (it.site, it.bytes.0))
        .collect();
    assert_eq!(resident, [(B, 200), (A, 300)]);
    let heat: Vec<_> = segment
        .heat
        .iter()
        .map(|it| (it.address, it.site))
        .collect();
    assert_eq!(heat, [(0, B), (4096, A)], "the live one first");
    assert_eq!(segment.extents, [live], "one extent for an address");
    let second = attribution.attribute(&batch(1, vec![], vec![sample(1, 5000)]));
    assert_eq!(
        second.heat[0].site,
        SiteId::UNATTRIBUTED,
        "only in its epoch"
    );
    assert_eq!(attribution.extents(), [live]);
}

/// The counts of a range by chunk and site, with chunks of 2 MiB.
fn heat_of(extents: Vec<Extent>, (start, end): (u64, u64), count: u64) -> Vec<(u64, SiteId, u64)> {
    let access = ObservedAccess {
        bytes: Bytes(end - start),
        count,
        ..sample(1, start)
    };
    let mut attribution = Attribution::new(&meta(2 * MIB));
    let heat = attribution.attribute(&batch(0, extents, vec![access])).heat;
    let heat = heat.iter();
    heat.map(|heat| (heat.address, heat.site, heat.accesses.0))
        .collect()
}

const MIB: u64 = 1 << 20;

#[test]
fn a_range_is_spread_over_the_chunks_of_the_extents_and_no_count_is_lost() {
    // Half a chunk, a gap, and an extent that reaches beyond the range.
    let extents = || {
        vec![
            extent(1, SiteId(5), MIB, MIB, MIB),
            extent(1, SiteId(6), 4 * MIB, 8 * MIB, 8 * MIB),
        ]
    };
    let found = heat_of(extents(), (0, 8 * MIB), 7);
    let wanted = [
        (0, SiteId(5), 1),
        (4 * MIB, SiteId(6), 3),
        (6 * MIB, SiteId(6), 3),
    ];
    assert_eq!(found, wanted);
    assert_eq!(
        heat_of(extents(), (2 * MIB, 3 * MIB), 7),
        [(2 * MIB, SiteId::UNATTRIBUTED, 7)]
    );
    assert_eq!(
        heat_of(vec![], (0, 8 * MIB), 7),
        [(0, SiteId::UNATTRIBUTED, 7)]
    );
}

#[test]
fn a_range_in_the_last_chunk_of_the_address_space_is_spread_too() {
    let (start, end) = (u64::MAX - 0xffff, u64::MAX);
    let extents = vec![extent(1, SiteId(5), start, end - start, 0)];
    let chunk = start - start % (2 * MIB);
    assert_eq!(heat_of(extents, (start, end), 3), [(chunk, SiteId(5), 3)]);
}

proptest! {
    #[test]
    fn every_sample_is_counted_once_and_as_the_slow_search_says(
        starts in prop::collection::btree_map((1_u32..3, 0_u64..60), (1_u64..9, 2_u64..5), 0..12),
        addresses in prop::collection::vec((1_u32..4, 0_u64..700), 0..60)
    ) {
        let extents: Vec<Extent> = starts
            .into_iter()
            .map(|((pid, at), (bytes, site))| extent(pid, SiteId(site), at * 10, bytes, bytes))
            .collect();
        let samples: Vec<ObservedAccess> = addresses.iter().map(|&(p, at)| sample(p, at)).collect();
        let slow = |s: &ObservedAccess| {
            extents
                .iter()
                .find(|e| {
                    let inside = e.address..e.address + e.bytes.0;
                    e.process == s.process && inside.contains(&s.address)
                })
                .map_or(SiteId::UNATTRIBUTED, |e| e.site)
        };
        let mut attribution = Attribution::new(&meta(64));
        let segment = attribution.attribute(&batch(0, extents.clone(), samples.clone()));
        let total: Accesses = segment.heat.iter().map(|heat| heat.accesses).sum();
        prop_assert_eq!(total.0, samples.len() as u64);
        for heat in &segment.heat {
            let chunk = |s: &ObservedAccess| s.address / 64 * 64;
            let wanted = samples
                .iter()
                .filter(|s| {
                    (s.process, chunk(s), slow(s)) == (heat.process, heat.address, heat.site)
                })
                .count();
            prop_assert_eq!(heat.accesses.0, wanted as u64);
        }
    }
}

#[test]
fn code_is_counted_for_the_site_that_owned_the_data_when_it_was_accessed() {
    use isotherm_model::code_access::{InstructionId, SampledInstruction};
    use std::num::NonZeroU32;

    let id = InstructionId(NonZeroU32::MIN);
    let by_code = |address| ObservedAccess {
        thread: 1,
        instruction: Some(id),
        ..sample(1, address)
    };
    let mut attribution = Attribution::new(&meta(4096));
    let first = Batch {
        instructions: vec![SampledInstruction {
            id,
            module: "/bin/app".into(),
            build_id: None,
            offset: 64,
            kind: None,
        }],
        departed: vec![extent(1, A, 8192, 4096, 4096)],
        ..batch(
            0,
            vec![extent(1, B, 0, 4096, 4096)],
            vec![by_code(8), by_code(8200), by_code(1 << 30), sample(1, 16)],
        )
    };
    let segment = attribution.attribute(&first);
    let mut rows: Vec<_> = segment
        .code
        .iter()
        .map(|row| (row.site, row.accesses.0))
        .collect();
    rows.sort_unstable();
    let mut wanted = [(A, 1), (B, 1), (SiteId::UNATTRIBUTED, 1)];
    wanted.sort_unstable();
    assert_eq!(rows, wanted);
    let second = attribution.attribute(&batch(1, vec![], vec![by_code(8)]));
    let rows: Vec<_> = second
        .code
        .iter()
        .map(|row| (row.site, row.accesses.0))
        .collect();
    assert_eq!(rows, [(B, 2)], "only what changed, with all of the run");
}
