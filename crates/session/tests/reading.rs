//! Tests of reading session files: valid ones yield their data, and invalid ones do no harm.

mod support;

use std::path::Path;

use isotherm_abi::CHUNK_BYTES;
use isotherm_abi::python_code::{NO_TEXT, PythonCode};
use isotherm_abi::session::SessionCounter;
use isotherm_model::site::SiteId;
use isotherm_session::{LargeAllocation, Owned, Owner, SessionError, SessionFile, TextArea};
use support::session_bytes::{CHUNKS, POOL, SessionBytes};

fn good() -> SessionBytes {
    let mut file = SessionBytes::new(7, 1, 55);
    file.module(0, "/bin/app", &[0xab, 0x01]);
    file.module(1, "/lib/so", &[0xcd]);
    file.site(0, 111, &[(0, 0x10), (1, 0x20)], 3);
    file.site(1, 222, &[(u32::MAX, 0x30)], 4);
    file.arena(0, None, None);
    file.arena(1, Some(0), Some(1));
    file.chunks(0..2, Some(0));
    file.chunks(2..5, Some(1));
    file.chunks(8..9, Some(1));
    file.mapping(0, 1, POOL + 5 * CHUNK_BYTES, CHUNK_BYTES + 4096, 2);
    file.mapping(1, 1, 0x7000_0000, 8192, 4);
    file.counter(SessionCounter::Allocations, 99);
    file
}

fn open(path: &Path, file: &SessionBytes) -> SessionFile {
    file.save(path);
    SessionFile::open(path).expect("opens")
}

#[test]
fn owners_sites_and_modules_are_read_as_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = open(&directory.path().join("7.0"), &good());
    let progress = file.progress().expect("reads");
    assert_eq!((file.header().pid, file.header().start_ns), (7, 55));
    assert_eq!(progress.counters[SessionCounter::Allocations as usize], 99);
    let owned = file.read_owned(&progress).expect("reads");
    let range = |address, bytes, owner, tier| Owned {
        address,
        bytes,
        owner,
        tier,
        // The second site has mappings only.
        is_object: owner == Owner::Site(1),
    };
    let chunk = |number| POOL + number * CHUNK_BYTES;
    assert_eq!(
        owned,
        [
            range(0x7000_0000, 8192, Owner::Site(1), None),
            range(chunk(0), 2 * CHUNK_BYTES, Owner::Shared, None),
            range(chunk(2), 3 * CHUNK_BYTES, Owner::Site(0), Some(1)),
            range(chunk(5), CHUNK_BYTES + 4096, Owner::Site(1), None),
            range(chunk(8), CHUNK_BYTES, Owner::Site(0), Some(1)),
        ]
    );
    let (mut modules, mut rows) = (Vec::new(), Vec::new());
    file.read_modules(&progress, &mut modules).expect("reads");
    file.read_sites(0, &progress, |number, row| rows.push((number, row)))
        .expect("reads");
    assert_eq!(rows[0].1.id, SiteId(111));
    let text = TextArea::default();
    let frames = rows[0].1.frames_in(&modules, &text);
    assert_eq!((&*frames[0].module, frames[0].offset), ("/bin/app", 0x10));
    assert_eq!(frames[0].build_id.as_deref(), Some("ab01"));
    assert_eq!(&*frames[1].module, "/lib/so");
    let outside = rows[1].1.frames_in(&modules, &text);
    assert_eq!((&*outside[0].module, outside[0].offset), ("", 0x30));
}

#[test]
fn python_frames_have_their_functions_and_lines_and_none_where_the_text_is_missing() {
    let directory = tempfile::tempdir().expect("a directory");
    let code = PythonCode {
        file: b"/home/me/graph.py",
        function: b"Graph.load",
        first_line: 40,
    };
    let mut bytes = good();
    bytes.python_code(2000, &code);
    bytes.python_frame(0, 1, (2000, code.offset(43)));
    bytes.python_frame(1, 0, (NO_TEXT, 7));
    let file = open(&directory.path().join("7.0"), &bytes);
    let progress = file.progress().expect("reads");
    let mut text = TextArea::default();
    for _ in 0..2 {
        file.read_text_area(&progress, &mut text).expect("reads");
    }
    let mut rows = Vec::new();
    file.read_sites(0, &progress, |_, row| rows.push(row))
        .expect("reads");
    let frames = rows[0].frames_in(&[], &text);
    assert_eq!(frames[1].to_string(), "Graph.load (graph.py:43)");
    assert_eq!(&*frames[1].module, "/home/me/graph.py");
    assert_eq!(frames[1].function_line, Some(40));
    assert!(frames[1].is_source() && !frames[0].is_source());
    let unknown = rows[1].frames_in(&[], &text);
    assert_eq!((&*unknown[0].module, unknown[0].offset), ("", 7));
}

#[test]
fn owners_beyond_holes_of_a_sparse_file_are_found() {
    use std::os::unix::fs::FileExt;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("7.0");
    let mut bytes = SessionBytes::new(7, 1, 55);
    bytes.arena(0, None, None);
    // The chunk table of a pool of 64 GiB, placed after all other data, with owners at both ends
    // only.
    let slots: u64 = 32 << 10;
    let table = bytes.bytes.len() as u64;
    let offset = |field: usize| field as u64;
    use isotherm_abi::session::SessionHeader as Header;
    let pool_bytes = (slots * CHUNK_BYTES).to_ne_bytes();
    bytes.put(
        offset(std::mem::offset_of!(Header, pool_bytes)),
        &pool_bytes,
    );
    bytes.put(
        offset(std::mem::offset_of!(Header, chunks_offset)),
        &table.to_ne_bytes(),
    );
    bytes.save(&path);
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("opens");
    file.set_len(table + 4 * slots).expect("grows");
    for chunk in [0, 1, slots - 1] {
        file.write_all_at(&1u32.to_ne_bytes(), table + 4 * chunk)
            .expect("writes");
    }
    let file = SessionFile::open(&path).expect("opens");
    let owned = file
        .read_owned(&file.progress().expect("reads"))
        .expect("reads");
    let ranges: Vec<_> = owned
        .iter()
        .map(|it| ((it.address - POOL) / CHUNK_BYTES, it.bytes / CHUNK_BYTES))
        .collect();
    assert_eq!(ranges, [(0, 2), (slots - 1, 1)]);
}

#[test]
fn a_mapping_that_is_being_rewritten_is_left_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut bytes = good();
    bytes.mapping(1, 1, 0x7000_0000, 8192, 5);
    let file = open(&directory.path().join("7.0"), &bytes);
    let owned = file
        .read_owned(&file.progress().expect("reads"))
        .expect("reads");
    assert!(owned.iter().all(|range| range.address >= POOL));
}

#[test]
fn access_counts_are_read_as_differences_of_pages() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("7.0");
    let mut bytes = good();
    bytes.access_count(2, 0, 1, 10);
    bytes.access_count(0, 0x7f_0000, 4095, 3);
    let mut file = open(&path, &bytes);
    let read = |file: &mut SessionFile| {
        let mut counts = Vec::new();
        file.read_accesses(|address, count| counts.push((address, count)))
            .expect("reads");
        counts
    };
    assert_eq!(file.header().access_period, 8);
    let last = 0x7f00_0000_0000 + 4095 * 4096;
    assert_eq!(read(&mut file), [(last, 3), (4096, 10)]);
    assert_eq!(read(&mut file), []);
    // The second count decreases, which the runtime never does: it is ignored.
    bytes.access_count(2, 0, 1, 4);
    bytes.access_count(0, 0x7f_0000, 0, u64::MAX);
    // A region beyond all addresses is ignored too.
    bytes.access_count(1, u64::MAX - 1, 7, 5);
    bytes.save(&path);
    assert_eq!(read(&mut file), [(0x7f00_0000_0000, u64::MAX)]);
    bytes.access_count(2, 0, 1, 6);
    bytes.save(&path);
    assert_eq!(read(&mut file), [(4096, 2)]);
}

#[test]
fn touches_are_read_once_and_the_overwritten_are_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("7.0");
    let mut bytes = good();
    bytes.touches(0, 10);
    let mut file = open(&path, &bytes);
    let read = |file: &mut SessionFile| {
        let mut pages = Vec::new();
        let progress = file.progress().expect("reads");
        let lost = file
            .read_touches(&progress, |address, _| pages.push(address / 4096))
            .expect("reads");
        (pages, lost)
    };
    assert_eq!(read(&mut file), ((0..10).collect(), 0));
    assert_eq!(read(&mut file), (vec![], 0));
    // The ring has 16 slots: of 30 new ones the first 14 are overwritten.
    bytes.touches(10, 40);
    bytes.save(&path);
    assert_eq!(read(&mut file), ((24..40).collect(), 14));
}

#[test]
fn large_allocations_are_read_once_and_the_overwritten_are_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("7.0");
    let mut bytes = good();
    bytes.objects(1, 4);
    let mut file = open(&path, &bytes);
    let read = |file: &mut SessionFile| {
        let mut sizes = Vec::new();
        let progress = file.progress().expect("reads");
        let take = |one: LargeAllocation| {
            assert_eq!((one.address >> 30, one.site), (one.bytes >> 20, 1));
            sizes.push(one.bytes >> 20);
        };
        let lost = file.read_objects(&progress, take).expect("reads");
        (sizes, lost)
    };
    // Number 0 was announced and never written.
    assert_eq!(read(&mut file), (vec![1, 2, 3], 1));
    assert_eq!(read(&mut file), (vec![], 0));
    // The ring has 8 slots: of 20 new ones the first 12 are overwritten.
    bytes.objects(4, 24);
    bytes.save(&path);
    assert_eq!(read(&mut file), ((16..24).collect(), 12));
}

#[test]
fn a_file_that_is_not_yet_made_is_told_from_a_wrong_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("7.0");
    for empty in [vec![], vec![0; 100], vec![0; 1 << 16]] {
        std::fs::write(&path, empty).expect("writes");
        assert!(matches!(
            SessionFile::open(&path),
            Err(SessionError::NotYet)
        ));
    }
    let mut wrong_version = good();
    wrong_version.put(8, &77u32.to_ne_bytes());
    wrong_version.save(&path);
    let error = SessionFile::open(&path)
        .expect_err("another version")
        .to_string();
    assert!(error.contains("version 77"), "{error}");
    assert!(SessionFile::open(directory.path()).is_err(), "a directory");
    assert!(
        SessionFile::open(Path::new("/dev/zero")).is_err(),
        "a device"
    );
}

#[test]
fn a_file_that_is_cut_short_under_the_reader_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("7.0");
    let file = open(&path, &good());
    let progress = file.progress().expect("reads");
    let handle = std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("opens");
    handle.set_len(5000).expect("cuts");
    assert!(file.read_owned(&progress).is_err());
    handle.set_len(0).expect("cuts");
    assert!(file.progress().is_err());
}

#[test]
fn a_sparse_file_of_any_size_cannot_claim_more_than_fits_memory() {
    use isotherm_abi::session::{SessionHeader, TouchRing};
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("7.0");
    let mut file = good();
    let ring = std::mem::offset_of!(SessionHeader, touches);
    let slots = ring + std::mem::offset_of!(TouchRing, slots);
    file.put(slots as u64, &(1u64 << 38).to_ne_bytes());
    file.save(&path);
    let handle = std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("opens");
    if handle.set_len(1 << 43).is_err() {
        return isotherm_skip::skip!("this file system has no such large sparse files");
    }
    let error = SessionFile::open(&path).expect_err("too much").to_string();
    assert!(error.contains("touches"), "{error}");
}

/// Reads the whole file; every call must return, whatever the content.
fn read_all(path: &Path) {
    let Ok(mut file) = SessionFile::open(path) else {
        return;
    };
    let Ok(progress) = file.progress() else {
        return;
    };
    if let Ok(owned) = file.read_owned(&progress) {
        for range in &owned {
            assert!(range.bytes > 0 && range.address.checked_add(range.bytes).is_some());
        }
    }
    let (mut modules, mut text) = (Vec::new(), TextArea::default());
    let _ = file.read_modules(&progress, &mut modules);
    let _ = file.read_text_area(&progress, &mut text);
    let _ = file.read_sites(0, &progress, |_, row| {
        let _ = row.frames_in(&modules, &text);
    });
    let _ = file.read_touches(&progress, |_, _| {});
}

proptest::proptest! {
    #[test]
    fn no_change_to_a_file_makes_the_reader_panic(
        changes in proptest::collection::vec((0usize..1 << 14, proptest::num::u64::ANY), 1..20),
        length in proptest::option::of(0usize..1 << 16),
    ) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("7.0");
        let mut file = good();
        for (offset, value) in changes {
            // Mostly the header, where wrong values do most harm.
            let offset = if value % 3 == 0 { offset } else { offset % 448 } & !3;
            let end = (offset + 8).min(file.bytes.len());
            file.bytes[offset..end].copy_from_slice(&value.to_ne_bytes()[..end - offset]);
        }
        if let Some(length) = length {
            file.bytes.truncate(length);
        }
        file.save(&path);
        read_all(&path);
    }

    #[test]
    fn no_counts_lead_beyond_the_tables(counts in proptest::array::uniform5(proptest::num::u32::ANY)) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("7.0");
        let mut file = good();
        let first = std::mem::offset_of!(isotherm_abi::session::SessionHeader, module_count);
        for (i, count) in counts.iter().enumerate() {
            file.put((first + 4 * i) as u64, &count.to_ne_bytes());
        }
        file.save(&path);
        read_all(&path);
        let file = SessionFile::open(&path).expect("the counts are not part of what is checked");
        let progress = file.progress().expect("reads");
        proptest::prop_assert!(progress.sites <= file.header().sites.slots);
        proptest::prop_assert!(file.read_owned(&progress).expect("reads").len() <= CHUNKS as usize + 8);
    }
}
