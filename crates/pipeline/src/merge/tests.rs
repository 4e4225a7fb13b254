//! Tests the merge with ranks as profiles of a few rows.

use isotherm_model::batch::{Count, Epoch, Extent, Process, SourceReport};
use isotherm_model::plan::{Value, Weight};
use isotherm_model::profile::{Ending, EpochSpan, Heat, Meta, Profile, Resident};
use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
use isotherm_model::units::{Accesses, Bytes, Nanos};

use super::{MergeError, merge};
use crate::items;

/// A rank: the hits and the resident bytes of each epoch and site.
fn rank(pid: u32, rows: &[(u32, u64, u64, u64)]) -> Profile {
    let process = Process { pid, image: 0 };
    let mut profile = Profile::new(Meta {
        chunk: Bytes(4096),
        ..Meta::default()
    });
    profile.ending = Ending::Exited(0);
    for &(epoch, site, hits, bytes) in rows {
        let (epoch, site) = (Epoch(epoch), SiteId(site));
        profile.heat.push(Heat {
            epoch,
            process,
            site,
            address: 0x7000,
            object: None,
            accesses: Accesses(hits),
            streamed: Accesses::ZERO,
            served: Accesses::ZERO,
        });
        let bytes = Bytes(bytes);
        profile.resident.push(Resident { epoch, site, bytes });
        if !profile.epochs.iter().any(|span| span.epoch == epoch) {
            let span = Nanos(u64::from(pid));
            profile.epochs.push(EpochSpan { epoch, span });
        }
        match profile.sites.iter_mut().find(|known| known.id == site) {
            Some(known) => known.peak_rss = known.peak_rss.max(bytes),
            None => profile.sites.push(Site {
                peak_rss: bytes,
                peak_requested: bytes,
                allocations: 1,
                ..Site::new(site, SiteKind::Heap)
            }),
        }
    }
    profile.extents.push(Extent {
        process,
        site: SiteId(5),
        address: 0x7000,
        bytes: Bytes(4096),
        resident: Bytes(4096),
        tier: None,
    });
    let count = |process, value| Count {
        process,
        name: "context_misses".into(),
        value,
    };
    profile.counts = vec![count(None, 3), count(Some(process), 4)];
    profile.sources = vec![SourceReport {
        name: "timer".into(),
        taken: 10,
        usable: 9,
        lost: 1,
        cost: Nanos(5),
        cost_note: String::new(),
        warning: String::new(),
    }];
    profile
}

#[test]
fn what_ranks_saw_of_a_site_is_added_up_and_peaks_count_where_they_meet() {
    let ranks = [
        rank(7, &[(0, 5, 9, 100), (1, 5, 1, 10), (1, 6, 2, 50)]),
        rank(8, &[(0, 5, 5, 20), (1, 5, 0, 80)]),
    ];
    let merged = merge(&ranks).expect("alike");
    let items = items(&merged, Value::Accesses, Weight::PeakRss);
    let facts: Vec<_> = items
        .iter()
        .map(|item| (item.site.0, item.value, item.weight.0))
        .collect();
    // Site 5 held 100 + 20 in the first epoch and 10 + 80 in the second.
    assert_eq!(facts, [(5, 15, 120), (6, 2, 50)]);
    assert_eq!(merged.sites[0].peak_requested, Bytes(120));
    assert_eq!(merged.footprint().0, Bytes(140));
    assert_eq!(merged.epochs[0].span, Nanos(8), "as long as the longest");
    assert_eq!(
        merged
            .counts
            .iter()
            .find(|count| count.process.is_none())
            .map(|count| count.value),
        Some(6)
    );
    assert_eq!((merged.sources[0].taken, merged.sources[0].lost), (20, 2));
}

#[test]
fn processes_of_the_same_number_on_two_machines_stay_two() {
    let ranks = [
        rank(7, &[(0, 5, 9, 1)]),
        rank(7, &[(0, 5, 5, 1)]),
        rank(8, &[(0, 5, 3, 1)]),
    ];
    let merged = merge(&ranks).expect("alike");
    let heat: Vec<_> = merged
        .heat
        .iter()
        .map(|heat| (heat.process.pid, heat.accesses.0))
        .collect();
    assert_eq!(heat, [(7, 9), (8, 5), (9, 3)]);
    let extents: Vec<u32> = merged
        .extents
        .iter()
        .map(|extent| extent.process.pid)
        .collect();
    assert_eq!(extents, [7, 8, 9]);
}

#[test]
fn one_profile_is_what_it_was_and_none_is_refused() {
    let one = rank(7, &[(0, 5, 9, 100)]);
    let merged = merge(std::slice::from_ref(&one)).expect("alike");
    assert_eq!(
        (merged.heat, merged.sites, merged.epochs),
        (one.heat, one.sites, one.epochs)
    );
    assert_eq!(merge(&[]), Err(MergeError::Nothing));
}

#[test]
fn words_of_sites_and_a_bad_end_are_taken_from_whoever_has_them() {
    let mut other = rank(8, &[(0, 5, 1, 1)]);
    other.sites[0].frames = vec![Frame {
        function: Some("load".into()),
        ..Frame::default()
    }]
    .into();
    other.ending = Ending::Signalled(9);
    let merged = merge(&[rank(7, &[(0, 5, 1, 1)]), other]).expect("alike");
    assert_eq!(merged.sites[0].label(), "load");
    assert_eq!(merged.ending, Ending::Signalled(9));
}

#[test]
fn profiles_that_were_recorded_otherwise_are_refused_with_the_flag() {
    let mut other = rank(8, &[]);
    other.meta.chunk = Bytes(8192);
    let error = merge(&[rank(7, &[]), other]).expect_err("chunks differ");
    assert!(
        error.to_string().contains("profile 2") && error.to_string().contains("--chunk"),
        "{error}"
    );
}

proptest::proptest! {
    #[test]
    fn no_hit_is_lost_or_found(
        rows in proptest::collection::vec(
            proptest::collection::vec((0_u32..4, 2_u64..6, 0_u64..100, 1_u64..100), 0..20), 1..5),
        pids in proptest::array::uniform5(1_u32..4)
    ) {
        let ranks: Vec<Profile> = rows.iter().zip(pids).map(|(rows, pid)| rank(pid, rows)).collect();
        let merged = merge(&ranks).expect("alike");
        let hits = |profile: &Profile| profile.heat.iter().map(|heat| heat.accesses.0).sum::<u64>();
        proptest::prop_assert_eq!(hits(&merged), ranks.iter().map(hits).sum::<u64>());
        let processes: std::collections::BTreeSet<u32> =
            merged.extents.iter().map(|extent| extent.process.pid).collect();
        proptest::prop_assert_eq!(processes.len(), ranks.len());
        let numbers = merged.sites.iter().map(|site| site.first_seen);
        let numbers: std::collections::BTreeSet<u32> = numbers.collect();
        proptest::prop_assert_eq!(numbers.len(), merged.sites.len());
    }
}

#[test]
fn what_the_code_of_the_ranks_did_is_added_up() {
    use isotherm_model::code_access::{CodeAccess, SampleWalk};
    let row = |offset, accesses, function: Option<&str>| CodeAccess {
        site: SiteId(5),
        code: Frame {
            module: "/bin/app".into(),
            offset,
            function: function.map(str::to_owned),
            ..Frame::default()
        }
        .into(),
        kind: None,
        accesses: Accesses(accesses),
        streamed: Accesses::ZERO,
        served: Accesses(1),
        threads: 2,
        walk: SampleWalk {
            pairs: 3,
            continued: 1,
            divisor: Bytes(16),
        },
    };
    let mut ranks = [rank(7, &[(0, 5, 9, 100)]), rank(8, &[(0, 5, 5, 20)])];
    ranks[0].code = vec![row(16, 4, None), row(32, 1, None)];
    ranks[1].code = vec![row(16, 5, Some("sweep"))];
    let merged = merge(&ranks).expect("alike").code;
    let facts: Vec<_> = merged
        .iter()
        .map(|row| (row.code.offset, row.accesses.0, row.threads, row.walk.pairs))
        .collect();
    assert_eq!(facts, [(16, 9, 4, 6), (32, 1, 2, 3)]);
    assert_eq!(merged[0].code.function.as_deref(), Some("sweep"));
}
