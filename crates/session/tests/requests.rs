//! Tests of the requests that are written into session files: they change the words of the request and nothing else.

mod support;

use std::fs::{self, File};
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::Path;

use isotherm_abi::page_tiers::{PageRequest, PageTable, StaticPageTable, StaticRange};
use isotherm_abi::session::{
    ArenaRecord, MOVE_CHUNKS, MappingRecord, MoveRequest, SessionHeader, SiteRecord,
};
use isotherm_model::batch::Process;
use isotherm_model::movement::AddressRange;
use isotherm_model::site::SiteId;
use isotherm_model::units::Bytes;
use isotherm_session::{MoveCommand, OpenFiles, RequestWord, SessionFile};
use support::session_bytes::{POOL, SessionBytes};

const SITE: SiteId = SiteId(0x55);

/// Site 0x55 in arena 3, and with two mappings, the second unmapped; site 0x66 in the shared arena.
fn good() -> SessionBytes {
    let mut bytes = SessionBytes::new(7, 7, 0);
    bytes.site(0, SITE.0, &[], 1);
    bytes.site(1, 0x66, &[], 1);
    bytes.arena(3, Some(0), Some(0));
    bytes.mapping(0, 0, 0x7000_0000, 8192, 2);
    bytes.mapping(1, 0, 0x7100_0000, 0, 2);
    bytes.mapping(2, 1, 0x7200_0000, 8192, 2);
    bytes
}

/// The offsets of the words that differ, and their new values.
fn changed(before: &[u8], path: &Path) -> Vec<(u64, u32)> {
    let after = fs::read(path).expect("reads");
    assert_eq!(before.len(), after.len());
    let words = (0..).step_by(4).zip(before.chunks_exact(4));
    let pairs = words.zip(after.chunks_exact(4));
    let differ = pairs.filter(|((_, old), new)| old != new);
    differ
        .map(|((at, _), new)| (at, u32::from_ne_bytes(new.try_into().expect("four"))))
        .collect()
}

#[test]
fn a_request_changes_one_word_of_the_sites_arena_and_of_its_mapping() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("7.0");
    for (word, of_arena, of_mapping) in [
        (
            RequestWord::Wanted,
            offset_of!(ArenaRecord, wanted_tier),
            offset_of!(MappingRecord, wanted_tier),
        ),
        (
            RequestWord::Tier,
            offset_of!(ArenaRecord, tier),
            offset_of!(MappingRecord, tier),
        ),
    ] {
        let bytes = good();
        bytes.save(&path);
        let mut file = SessionFile::open(&path).expect("opens");
        assert!(file.request_tier(SITE, 5, word).expect("writes"));
        let [_, _, arenas, _, mappings, ..] = bytes.layout.offsets();
        let arena = arenas + (3 * size_of::<ArenaRecord>() + of_arena) as u64;
        let expected = [(arena, 5), (mappings + of_mapping as u64, 5)];
        assert_eq!(changed(&bytes.bytes, &path), expected, "{word:?}");
    }
}

#[test]
fn a_site_without_a_record_of_its_own_gets_no_request() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("7.0");
    let mut bytes = good();
    bytes.site(2, 0x77, &[], 1);
    bytes.save(&path);
    let mut file = SessionFile::open(&path).expect("opens");
    for site in [0x77, 0x88] {
        let asked = file.request_tier(SiteId(site), 1, RequestWord::Wanted);
        assert!(!asked.expect("reads"));
    }
    assert_eq!(changed(&bytes.bytes, &path), []);
}

#[test]
fn a_site_that_was_not_yet_named_is_found_later() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("7.0");
    let mut bytes = good();
    let name = bytes.layout.offsets()[1] + offset_of!(SiteRecord, hash) as u64;
    bytes.put(name, &0_u64.to_ne_bytes());
    bytes.save(&path);
    let mut file = SessionFile::open(&path).expect("opens");
    let mut asks = |site| file.request_tier(site, 1, RequestWord::Wanted);
    assert!(!asks(SITE).expect("reads"));
    good().save(&path);
    assert!(asks(SITE).expect("writes"));
    assert!(asks(SiteId(0x66)).expect("writes"));
}

#[test]
fn a_table_that_does_not_lie_within_the_file_is_not_written_to() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("7.0");
    let end = good().bytes.len() as u64;
    // The header, just past the end, far past it, and around the largest number.
    for offset in [0, end, 1 << 60, u64::MAX - 8] {
        let mut bytes = good();
        let field = offset_of!(SessionHeader, arenas_offset);
        bytes.put(field as u64, &offset.to_ne_bytes());
        bytes.save(&path);
        let error = SessionFile::open(&path).expect_err("a table outside the file");
        assert!(error.to_string().contains("arenas"), "{error}");
    }
}

#[test]
fn a_file_without_room_for_arenas_gets_no_request_for_the_shared_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("7.0");
    let mut bytes = good();
    let end = bytes.bytes.len() as u64;
    let put = |bytes: &mut SessionBytes, field: usize, value: &[u8]| bytes.put(field as u64, value);
    put(
        &mut bytes,
        offset_of!(SessionHeader, arenas_offset),
        &end.to_ne_bytes(),
    );
    put(
        &mut bytes,
        offset_of!(SessionHeader, arena_slots),
        &0_u32.to_ne_bytes(),
    );
    bytes.save(&path);
    let mut file = SessionFile::open(&path).expect("opens");
    let asked = file.request_tier(SiteId::SHARED, 1, RequestWord::Wanted);
    assert!(!asked.expect("reads"));
    assert_eq!(changed(&bytes.bytes, &path), []);
}

#[test]
fn a_file_that_is_cut_short_is_not_extended_by_a_request() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("7.0");
    let bytes = good();
    bytes.save(&path);
    let mut file = SessionFile::open(&path).expect("opens");
    let arenas = bytes.layout.offsets()[2];
    let handle = File::options().write(true).open(&path).expect("opens");
    handle.set_len(arenas).expect("cuts");
    for site in [SITE, SiteId::SHARED] {
        file.request_tier(site, 1, RequestWord::Wanted)
            .expect_err("nothing is there");
    }
    assert_eq!(handle.metadata().expect("is there").len(), arenas);
}

#[test]
fn a_move_is_requested_once_the_last_one_was_answered() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("7.0");
    good().save(&path);
    let file = SessionFile::open(&path).expect("opens");
    let command = MoveCommand {
        node: 2,
        start: 1 << 21,
        chunks: MOVE_CHUNKS + 9,
    };
    assert_eq!(file.request_move(&command).expect("writes"), Some(1));
    assert_eq!(file.request_move(&command).expect("reads"), None);
    assert_eq!(file.move_answer(1).expect("reads"), None);
    let runtime = File::options()
        .read(true)
        .write(true)
        .open(&path)
        .expect("opens");
    let at = |field: usize| (offset_of!(SessionHeader, moving) + field) as u64;
    let mut chunks = [0; 4];
    let place = at(offset_of!(MoveRequest, chunks));
    runtime.read_exact_at(&mut chunks, place).expect("reads");
    assert_eq!(u32::from_ne_bytes(chunks), MOVE_CHUNKS);
    for (field, value) in [
        (offset_of!(MoveRequest, moved), &0b101_u64.to_ne_bytes()[..]),
        (offset_of!(MoveRequest, answered), &1_u32.to_ne_bytes()[..]),
    ] {
        runtime.write_all_at(value, at(field)).expect("writes");
    }
    assert_eq!(file.move_answer(1).expect("reads"), Some(0b101));
    assert_eq!(file.request_move(&command).expect("writes"), Some(2));
}

#[test]
fn a_file_is_opened_when_it_is_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut files = OpenFiles::new(directory.path().to_owned());
    let process = Process { pid: 7, image: 0 };
    assert!(files.of(process).is_err());
    good().save(&directory.path().join("7.0"));
    assert_eq!(files.of(process).expect("opens").header().pid, 7);
}

#[test]
fn the_tiers_of_pages_are_those_that_the_runtime_published() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("7.0");
    let mut bytes = good();
    let [.., tiers, _, _, _, _] = bytes.layout.offsets();
    bytes.put(tiers, &[1, 2, 0, 1, 2]);
    let table = offset_of!(SessionHeader, pages);
    let at = |field: usize| (table + field) as u64;
    // Of five pages the first four are published.
    bytes.put(at(offset_of!(PageTable, used)), &4u64.to_ne_bytes());
    bytes.put(
        at(offset_of!(PageTable, fast_bytes)),
        &8192u64.to_ne_bytes(),
    );
    bytes.save(&path);
    let file = SessionFile::open(&path).expect("opens");
    assert!(file.has_page_tiers());
    let read = file.page_tiers().expect("reads");
    assert_eq!(read.tiers, [1, 2, 0, 1]);
    assert_eq!((read.start, read.fast_capacity.0), (POOL, 8192));
    // A count beyond the table reads no more than the table.
    bytes.put(at(offset_of!(PageTable, used)), &u64::MAX.to_ne_bytes());
    bytes.save(&path);
    let file = SessionFile::open(&path).expect("opens");
    let read = file.page_tiers().expect("reads");
    assert_eq!(read.tiers.len() as u64, bytes.layout.page_slots);
}

#[test]
fn the_tiers_of_static_data_are_those_of_the_ranges_that_can_be() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("7.0");
    let mut bytes = good();
    let [.., tiers, _, _, _] = bytes.layout.offsets();
    let slots = bytes.layout.static_page_slots;
    bytes.put(tiers, &[1, 2, 0, 1, 2]);
    let table = offset_of!(SessionHeader, statics);
    let count = (table + offset_of!(StaticPageTable, count)) as u64;
    let ranges = (table + offset_of!(StaticPageTable, ranges)) as u64;
    // First address, pages, number of the first page; only the first two can be.
    let records = [
        (0x5000, 2, 0),
        (0x10_0000, 3, 2),
        (0x5000, 1, slots),
        (0x5000, slots, 0),
        (0x5000, u64::MAX, 1),
        (u64::MAX - 0xfff, 2, 0),
        (0x5001, 1, 0),
    ];
    for (number, (start, pages, first)) in records.into_iter().enumerate() {
        let at = ranges + (number * size_of::<StaticRange>()) as u64;
        for (field, value) in [start, pages, first].into_iter().enumerate() {
            bytes.put(at + 8 * field as u64, &value.to_ne_bytes());
        }
    }
    let read = |bytes: &SessionBytes| {
        bytes.save(&path);
        let file = SessionFile::open(&path).expect("opens");
        file.static_tiers().expect("reads")
    };
    assert_eq!(read(&bytes), []);
    for claimed in [records.len() as u64, u64::MAX] {
        bytes.put(count, &claimed.to_ne_bytes());
        let found = read(&bytes);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!((found[0].start, &found[0].tiers[..]), (0x5000, &[1, 2][..]));
        assert_eq!(found[1].tiers, [0, 1, 2]);
    }
}

#[test]
fn a_request_for_pages_fills_the_next_slot_and_a_full_ring_takes_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("7.0");
    let mut bytes = good();
    let table = offset_of!(SessionHeader, pages);
    let requested = (table + offset_of!(PageTable, requested)) as u64;
    let slots = bytes.layout.request_slots();
    bytes.put(requested, &(slots + 1).to_ne_bytes());
    let obeyed = (table + offset_of!(PageTable, obeyed)) as u64;
    bytes.put(obeyed, &2u64.to_ne_bytes());
    bytes.save(&path);
    let file = SessionFile::open(&path).expect("opens");
    let range = AddressRange {
        start: POOL + 4096,
        bytes: Bytes(3 * 4096),
    };
    assert!(file.request_pages(range, 1).expect("writes"));
    assert!(!file.request_pages(range, 1).expect("reads"), "full");
    let [.., ring, _] = bytes.layout.offsets();
    let record = ring + size_of::<PageRequest>() as u64;
    let (low, high) = ((POOL + 4096) as u32, ((POOL + 4096) >> 32) as u32);
    let expected = [
        (requested, (slots + 2) as u32),
        (record, low),
        (record + 4, high),
        (record + 8, 3),
        (record + 12, 1),
    ];
    assert_eq!(changed(&bytes.bytes, &path), expected);
}
