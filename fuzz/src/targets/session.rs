//! Session files, as the observer reads them and as requests are written into them.

use std::collections::BTreeSet;
use std::mem::offset_of;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use isotherm_abi::accesses::REGION_COUNT_BYTES;
use isotherm_abi::config::RuntimeMode;
use isotherm_abi::interface::{
    FREQUENCY_MAX, InterfaceAction, InterfaceObject, InterfaceRequest, InterfaceResult,
    InterfaceStatus, OutcomeRecord, OutcomeTable, SHARE_WHOLE_PPM,
};
use isotherm_abi::page_tiers::PageRequest;
use isotherm_abi::session::{MoveRequest, SessionHeader, SessionLayout};
use isotherm_abi::{CHUNK_BYTES, MAX_DEPTH};
use isotherm_model::batch::Process;
use isotherm_model::site::SiteId;
use isotherm_observe::processes::Processes;
use isotherm_observe::sessions::Sessions;
use isotherm_session::{MoveCommand, OpenFiles, RequestWord, SessionFile, TextArea, file_name};

use super::seeds::Seeds;

pub(crate) fn check(data: &[u8]) -> bool {
    let directory = tempfile::tempdir().expect("a directory for the file");
    // A file of this process, so that what it claims to own is looked up in real page tables.
    let process = Process {
        pid: std::process::id(),
        image: 0,
    };
    let path = directory.path().join(file_name(process));
    std::fs::write(&path, data).expect("the file can be written");
    let sound = read(&path);
    follow(directory.path(), process);
    let requested = request(directory.path(), process, data.len());
    sound && requested
}

/// Requests a tier for three sites, and a move: neither changes the header's other words. True where a site has a record
/// for its request.
fn request(directory: &Path, process: Process, bytes: usize) -> bool {
    let path = directory.join(file_name(process));
    let contents = || std::fs::read(&path).expect("is there");
    let header = |contents: &[u8]| contents[..size_of::<SessionHeader>().min(bytes)].to_vec();
    let before = contents();
    assert_eq!(before.len(), bytes, "reading changes no length");
    let mut files = OpenFiles::new(directory.to_owned());
    let Ok(file) = files.of(process) else {
        return false;
    };
    let sites = [SiteId::SHARED, SiteId(0x55), SiteId(0x66)];
    let request = |site| file.request_tier(site, 1, RequestWord::Wanted);
    let requested: Vec<bool> = sites.map(request).into_iter().flatten().collect();
    let after = contents();
    assert_eq!(
        header(&after),
        header(&before),
        "a request leaves the header alone"
    );
    let number = file.request_move(&MoveCommand {
        node: 1,
        start: CHUNK_BYTES,
        chunks: u32::MAX,
    });
    if let Ok(Some(number)) = number {
        let answer = file.move_answer(number).expect("is there");
        assert_eq!(answer, None, "no runtime answers");
    }
    serve(file);
    let mut last = contents();
    assert_eq!(last.len(), bytes, "a request makes no file longer");
    let moving = offset_of!(SessionHeader, moving);
    let interface = offset_of!(SessionHeader, interface);
    let outcomes = offset_of!(SessionHeader, outcomes) + offset_of!(OutcomeTable, count);
    let table = file.header().outcomes;
    let records = table.offset as usize;
    for own in [
        moving..moving + size_of::<MoveRequest>(),
        interface..interface + size_of::<InterfaceRequest>(),
        outcomes..outcomes + size_of::<u64>(),
        records..records + table.slots as usize * table.record_bytes,
    ] {
        last[own.clone()].copy_from_slice(&after[own]);
    }
    assert!(
        last == after,
        "requests and answers change their own words only"
    );
    requested.contains(&true)
}

/// Answers what the program asks.
fn serve(file: &SessionFile) {
    let _ = file.serve_interface(std::process::id());
    let Ok(Some(command)) = file.read_interface_request() else {
        return;
    };
    assert!(command.share_ppm <= SHARE_WHOLE_PPM);
    assert!(command.frequency.is_none_or(|hz| hz <= FREQUENCY_MAX));
    let _ = file.write_outcomes(&[InterfaceObject::of_name(""); 3]);
    let answer = InterfaceResult::of_status(InterfaceStatus::NoSamples);
    let answered = file.answer_interface_request(command.number, &answer, false);
    assert!(answered.expect("is there"), "the program waits");
    let next = file.read_interface_request().expect("is there");
    assert_eq!(next, None, "one answer is enough");
}

/// Each table by itself. True where all of them can be read.
fn read(path: &Path) -> bool {
    let Ok(mut file) = SessionFile::open(path) else {
        return false;
    };
    let Ok(progress) = file.progress() else {
        return false;
    };
    let (mut modules, mut text) = (Vec::new(), TextArea::default());
    let read = file.read_modules(&progress, &mut modules);
    let read = read.and(file.read_text_area(&progress, &mut text));
    let owned = file.read_owned(&progress).unwrap_or_default();
    for range in &owned {
        assert!(range.bytes > 0 && range.address.checked_add(range.bytes).is_some());
    }
    let sites = file.read_sites(0, &progress, |_, row| {
        assert!(row.frames.len() <= MAX_DEPTH);
        assert_eq!(row.frames_in(&modules, &text).len(), row.frames.len());
    });
    let mut taken = 0;
    let lost = file.read_touches(&progress, |_, _| taken += 1);
    if let (Ok(lost), true) = (&lost, file.header().touches.slots > 0) {
        assert_eq!(
            lost + taken,
            progress.touches_written,
            "each is read or lost"
        );
    }
    let objects = file.read_objects(&progress, |one| {
        assert!(one.bytes > 0 && one.address.checked_add(one.bytes).is_some());
    });
    for hint in file.read_hints().unwrap_or_default() {
        assert!(hint.bytes > 0 && hint.address.checked_add(hint.bytes).is_some());
    }
    let accesses = file.read_accesses(|_, count| assert!(count > 0));
    let statics = file.static_tiers();
    if let Ok(statics) = &statics {
        let pages = statics.iter().map(|part| part.tiers.len() as u64);
        assert!(pages.sum::<u64>() <= file.header().pages.statics.slots);
        for part in statics {
            let bytes = part.tiers.len() as u64 * 4096;
            assert!(part.start.checked_add(bytes).is_some());
        }
    }
    let pages = file.page_tiers();
    if let Ok(pages) = &pages {
        let slots = file.header().pages.tiers.slots;
        assert!(
            pages.tiers.len() as u64 <= slots,
            "no page beyond the table"
        );
    }
    read.is_ok()
        && sites.is_ok()
        && lost.is_ok()
        && objects.is_ok()
        && accesses.is_ok()
        && pages.is_ok()
        && statics.is_ok()
}

/// As a run follows the file: found, read, measured, and told, twice.
fn follow(directory: &Path, process: Process) {
    let proc_root = Path::new("/proc");
    let processes = Processes::new(process.pid, proc_root);
    let mut sessions = Sessions::new(directory, proc_root);
    for _ in 0..2 {
        sessions.discover().expect("the directory can be read");
        sessions.refresh(&processes);
        sessions.read_touches(|_, _, _| ());
        let _ = sessions.take_objects();
        sessions.read_accesses(|_, _, _| ());
        let _ = sessions.accesses_lost();
        sessions.read_sites();
        sessions.measure();
        let extents = sessions.extents(&BTreeSet::new());
        for extent in extents.live.iter().chain(&extents.departed) {
            assert!(extent.resident <= extent.bytes, "{extent:?}");
        }
        sessions.take_changed_sites();
        let _ = sessions.counts();
        let ranges = sessions.ranges(process);
        assert!(ranges.iter().all(|range| range.start < range.end));
        assert!(ranges.is_sorted_by(|a, b| a.end <= b.start), "{ranges:?}");
        let _ = sessions.image_at(&processes, process.pid, u64::MAX);
    }
}

/// A file as the runtime makes it, but of a few kilobytes: two modules, two sites, one arena of the
/// second, a mapping, touches, access counts of one region.
pub(crate) fn seeds() -> Seeds {
    let offset = |table: usize| (size_of::<SessionHeader>() + 512 * table) as u64;
    let layout = SessionLayout {
        module_slots: 2,
        site_slots: 2,
        arena_slots: 3,
        mapping_slots: 2,
        touch_slots: 4,
        text_slots: 16,
        chunk_slots: 8,
        region_slots: 1,
        page_slots: 0,
        static_page_slots: 0,
        outcome_slots: 0,
        object_slots: 2,
    };
    let mut header = layout.header(RuntimeMode::Online, 4);
    (header.pid, header.parent_pid) = (7, 7);
    header.pool_base = 64 * CHUNK_BYTES;
    for count in [
        &header.module_count,
        &header.site_count,
        &header.mapping_count,
    ] {
        count.store(2, Relaxed);
    }
    header.arena_count.store(3, Relaxed);
    header.touches.written.store(6, Relaxed);
    header.objects.written.store(3, Relaxed);
    header.modules_offset = offset(0);
    header.sites_offset = offset(1);
    header.arenas_offset = offset(2);
    header.chunks_offset = offset(3);
    header.mappings_offset = offset(4);
    header.touches_offset = offset(5);
    header.text_offset = offset(6);
    let mut file = with_last_tables(&mut header, offset(7));
    let module = [0x40_0000, 0x50_0000, 0xab, 0, 0, 0, 1 << 32 | 1, 8 << 32];
    fill(&mut file, offset(0), &module);
    // Two sites of 23 longs: name, kind and depth, eight frames, arena, four numbers.
    fill(&mut file, offset(1), &[0x55, 1 << 32, 0, 0x1234]);
    fill(&mut file, offset(1) + 18 * 8, &[0, 9, 900, 90, 90]);
    fill(
        &mut file,
        offset(1) + 23 * 8,
        &[0x66, 2 << 32, 0, 0x1234, 1, 0x99],
    );
    fill(&mut file, offset(1) + 41 * 8, &[2, 9, 900, 90, 90]);
    // Arenas: site + 1 and tier, requested tier, bytes. The third is the second site's.
    fill(
        &mut file,
        offset(2) + 2 * 24,
        &[1 << 32 | 2, u64::from(u32::MAX), 4 << 20],
    );
    fill(&mut file, offset(3), &[1 << 32 | 1, 0, 3 << 32 | 3, 3]);
    fill(
        &mut file,
        offset(4),
        &[0, 0x7f00_0000_0000, 1 << 20, 1 << 32],
    );
    fill(
        &mut file,
        offset(5),
        &[0x7f00_0000_0000, 1, 0x7f00_0000_1000, 2],
    );
    file[offset(6) as usize..][..8].copy_from_slice(b"/bin/abc");
    with_faults(file, offset(4), offset(5) as usize)
}

/// This file, and what broke its reader once: a mapping to the end of the address space, and tables that the file has no room for.
fn with_faults(file: Vec<u8>, mappings: u64, cut: usize) -> Seeds {
    let mut to_the_end = file.clone();
    let start = u64::MAX - 0xff_ffff;
    fill(&mut to_the_end, mappings, &[0, start, u64::MAX - start]);
    let cut = file[..cut].to_vec();
    vec![
        ("small", file),
        ("mapping-to-the-end-of-the-address-space", to_the_end),
        ("tables-outside-the-file", cut),
    ]
}

/// A file with this header that ends in the access counts of one region, the one above 0x7f00_0000_0000, of which the first and
/// the third page were accessed, the tiers of eight pages, a ring of two large allocations, a ring of four requests, one of them made, the tiers of three
/// pages of static data, and room for the outcomes of two objects;
/// its program asks for an optimization, and has a hint.
fn with_last_tables(header: &mut SessionHeader, regions: u64) -> Vec<u8> {
    let counts = regions + 512;
    header.accesses.period = 1024;
    header.interface.asked.store(1, Relaxed);
    let optimize = InterfaceAction::Optimize as u32;
    header.interface.kind.store(optimize, Relaxed);
    header.hints[1].number.store(1, Relaxed);
    header.hints[1].bytes.store(4096, Relaxed);
    header.accesses.regions_offset = regions;
    header.accesses.counts_offset = counts;
    let (tiers, request_slots) = (counts + REGION_COUNT_BYTES, 4);
    let (requests, objects) = (tiers + 512, tiers + 256);
    let (statics, outcomes) = (
        tiers + 8,
        requests + request_slots * size_of::<PageRequest>() as u64,
    );
    (header.statics.slots, header.statics.tiers_offset) = (4, statics);
    header.statics.count.store(1, Relaxed);
    header.statics.ranges[0].start.store(0x50_0000, Relaxed);
    header.statics.ranges[0].pages.store(3, Relaxed);
    (header.outcomes.slots, header.outcomes.offset) = (2, outcomes);
    header.objects.offset = objects;
    (header.pages.slots, header.pages.tiers_offset) = (8, tiers);
    header.pages.request_slots = request_slots;
    header.pages.requests_offset = requests;
    header.pages.used.store(5, Relaxed);
    header.pages.requested.store(1, Relaxed);
    let mut file = header_bytes(header);
    let end = outcomes + 2 * size_of::<OutcomeRecord>() as u64;
    file.resize(end as usize, 0);
    fill(&mut file, regions, &[0x7f_0001]);
    fill(&mut file, counts, &[3, 0, 1]);
    fill(&mut file, tiers, &[0x01_0200_0102, 0x02_0001]);
    // The third of three allocations is in the first slot.
    fill(
        &mut file,
        objects,
        &[
            3,
            64 * CHUNK_BYTES,
            1 << 16,
            1,
            2,
            65 * CHUNK_BYTES,
            1 << 17,
            0,
        ],
    );
    fill(&mut file, requests, &[64 * CHUNK_BYTES, 1 << 32 | 2]);
    file
}

fn fill(file: &mut [u8], offset: u64, longs: &[u64]) {
    for (place, long) in file[offset as usize..].chunks_exact_mut(8).zip(longs) {
        place.copy_from_slice(&long.to_ne_bytes());
    }
}

fn header_bytes(header: &SessionHeader) -> Vec<u8> {
    let first = (&raw const *header).cast::<u8>();
    // SAFETY: needed because the layout's own type is the best writer of it. The header is borrowed
    // for as long as the slice, and has no padding: its fields add up to its size.
    unsafe { std::slice::from_raw_parts(first, size_of::<SessionHeader>()) }.to_vec()
}
