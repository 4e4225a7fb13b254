//! Tests of what programs publish by the interface: requests to the observer, names, hints. Answers change their own words only.

mod support;

use std::fs;
use std::mem::offset_of;
use std::path::PathBuf;

use isotherm_abi::hash::SiteHashKind;
use isotherm_abi::interface::{
    HintRecord, InterfaceAction, InterfaceHint, InterfaceObject, InterfacePolicy, InterfaceRequest,
    InterfaceResult, InterfaceStatus, OutcomeRecord, OutcomeTable, SHARE_WHOLE_PPM,
};
use isotherm_abi::named_data::site_of_name;
use isotherm_abi::session::{SessionHeader, SiteRecord};
use isotherm_model::site::SiteKind;
use isotherm_session::{InterfaceCommand, MemoryHint, SessionFile, TextArea};
use support::session_bytes::SessionBytes;
use tempfile::TempDir;

/// The offset of a field of the request.
macro_rules! at {
    ($field:ident) => {
        offset_of!(SessionHeader, interface) + offset_of!(InterfaceRequest, $field)
    };
}

/// A session file whose program asked for this.
struct Asking {
    _directory: TempDir,
    path: PathBuf,
    file: SessionFile,
}

impl Asking {
    fn request(number: u32, kind: u32, policy: u32, share_ppm: u64) -> Self {
        let mut bytes = SessionBytes::new(7, 7, 0);
        bytes.put(at!(asked) as u64, &number.to_ne_bytes());
        bytes.put(at!(kind) as u64, &kind.to_ne_bytes());
        bytes.put(at!(policy) as u64, &policy.to_ne_bytes());
        bytes.put(at!(fast_bytes) as u64, &4096_u64.to_ne_bytes());
        bytes.put(at!(share_ppm) as u64, &share_ppm.to_ne_bytes());
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("7.0");
        bytes.save(&path);
        let file = SessionFile::open(&path).expect("opens");
        Self {
            _directory: directory,
            path,
            file,
        }
    }

    fn word(&self, offset: usize) -> u32 {
        let bytes = fs::read(&self.path).expect("reads");
        u32::from_ne_bytes(bytes[offset..][..4].try_into().expect("four"))
    }

    fn bytes(&self, offset: usize, length: usize) -> Vec<u8> {
        let bytes = fs::read(&self.path).expect("reads");
        bytes[offset..][..length].to_vec()
    }

    fn long(&self, offset: usize) -> u64 {
        let bytes = fs::read(&self.path).expect("reads");
        u64::from_ne_bytes(bytes[offset..][..8].try_into().expect("eight"))
    }
}

const DONE: InterfaceResult = InterfaceResult {
    size: size_of::<InterfaceResult>() as u32,
    status: InterfaceStatus::NoRoom as u32,
    promoted_bytes: 1,
    demoted_bytes: 2,
    placed_bytes: 3,
    failed_bytes: 4,
    selected_bytes: 5,
    samples: 6,
    selection_ns: 7,
    migration_ns: 8,
    capacity_bytes: 9,
    stayed_bytes: [10, 11, 12, 13, 14, 15, 16, 17],
    frequency: 18,
};

#[test]
fn a_request_is_read_until_it_is_answered() {
    let program = Asking::request(1, 3, 2, 250_000);
    let command = InterfaceCommand {
        number: 1,
        action: Some(InterfaceAction::Optimize),
        policy: Some(InterfacePolicy::Thermos),
        frequency: None,
        fast_bytes: 4096,
        share_ppm: 250_000,
    };
    for _ in 0..2 {
        let read = program.file.read_interface_request().expect("reads");
        assert_eq!(read, Some(command));
    }
    let answered = program.file.answer_interface_request(1, &DONE, true);
    assert!(answered.expect("writes"));
    assert_eq!(program.file.read_interface_request().expect("reads"), None);
    assert_eq!(program.word(at!(answered)), 1);
    assert_eq!(program.word(at!(status)), InterfaceStatus::NoRoom as u32);
    assert_eq!(program.word(at!(profiling)), 1);
    for (number, offset) in (1..).zip([
        at!(promoted_bytes),
        at!(demoted_bytes),
        at!(placed_bytes),
        at!(failed_bytes),
        at!(selected_bytes),
        at!(samples),
        at!(selection_ns),
        at!(migration_ns),
        at!(capacity_bytes),
    ]) {
        assert_eq!(program.long(offset), number);
    }
    let stayed = (10..18).zip((at!(stayed_bytes)..).step_by(8));
    for (number, offset) in stayed {
        assert_eq!(program.long(offset), number);
    }
    assert_eq!(program.long(at!(frequency_used)), 18);
}

#[test]
fn the_outcomes_of_objects_are_there_before_their_number_and_no_more_than_there_is_room_for() {
    let program = Asking::request(1, 3, 2, 0);
    let table = offset_of!(SessionHeader, outcomes);
    let count = table + offset_of!(OutcomeTable, count);
    let first = program.long(table + offset_of!(OutcomeTable, offset)) as usize;
    let outcome = |name: &str, address| InterfaceObject {
        address,
        demoted_bytes: 7,
        stayed_bytes: [1, 2, 3, 4, 5, 6, 7, 8],
        ..InterfaceObject::of_name(name)
    };
    let long = "x".repeat(80);
    let all: Vec<_> = [
        (long.as_str(), 5),
        ("ranks", 6),
        ("", 7),
        ("a", 8),
        ("b", 9),
    ]
    .map(|(name, address)| outcome(name, address))
    .to_vec();
    assert_eq!(program.file.outcome_slots(), 4);
    program.file.write_outcomes(&all).expect("writes");
    assert_eq!(program.long(count), 4);
    let record = |number: usize| first + number * size_of::<OutcomeRecord>();
    let name = |number: usize| program.bytes(record(number), 64);
    assert_eq!(name(0), ["x".repeat(63).as_bytes(), &[0]].concat());
    assert_eq!(&name(1)[..6], b"ranks\0");
    let number = |at, field| program.long(record(at) + field);
    assert_eq!(number(3, offset_of!(OutcomeRecord, address)), 8);
    assert_eq!(number(3, offset_of!(OutcomeRecord, demoted_bytes)), 7);
    assert_eq!(number(3, offset_of!(OutcomeRecord, stayed_bytes) + 56), 8);
    program.file.write_outcomes(&[]).expect("writes");
    assert_eq!(program.long(count), 0);
}

#[test]
fn a_program_that_never_asked_has_no_request() {
    let program = Asking::request(0, 0, 0, 0);
    assert_eq!(program.file.read_interface_request().expect("reads"), None);
}

#[test]
fn unknown_actions_and_policies_are_none_and_a_share_is_at_most_the_whole() {
    let program = Asking::request(9, 4, 3, u64::MAX);
    let command = program.file.read_interface_request().expect("reads");
    let command = command.expect("waits");
    assert_eq!((command.action, command.policy), (None, None));
    assert_eq!(command.share_ppm, SHARE_WHOLE_PPM);
}

#[test]
fn an_answer_to_a_request_that_was_given_up_changes_nothing() {
    let program = Asking::request(2, 3, 0, 0);
    let before = fs::read(&program.path).expect("reads");
    let answered = program.file.answer_interface_request(1, &DONE, true);
    assert!(!answered.expect("reads"));
    assert!(before == fs::read(&program.path).expect("reads"));
}

#[test]
fn answers_and_heartbeats_change_their_own_words_only() {
    let program = Asking::request(1, 1, 0, 0);
    let mut before = fs::read(&program.path).expect("reads");
    program.file.serve_interface(77).expect("writes");
    program.file.serve_interface(77).expect("writes");
    assert_eq!(program.word(at!(observer_pid)), 77);
    assert_eq!(program.word(at!(heartbeat)), 2);
    let answer = InterfaceResult::of_status(InterfaceStatus::Ok);
    let answered = program.file.answer_interface_request(1, &answer, false);
    assert!(answered.expect("writes"));
    let mut after = fs::read(&program.path).expect("reads");
    let own = at!(answered)
        ..at!(answered) + size_of::<InterfaceRequest>() - offset_of!(InterfaceRequest, answered);
    before[own.clone()].fill(0);
    after[own].fill(0);
    assert!(before == after);
}

#[test]
fn a_file_that_was_cut_short_is_not_made_longer() {
    let program = Asking::request(1, 1, 0, 0);
    let file = fs::File::options().write(true).open(&program.path);
    file.expect("opens").set_len(64).expect("is cut");
    assert!(program.file.read_interface_request().is_err());
    let answer = program.file.answer_interface_request(1, &DONE, false);
    assert!(answer.is_err());
    assert!(program.file.serve_interface(77).is_err());
    assert_eq!(fs::metadata(&program.path).expect("is there").len(), 64);
}

#[test]
fn a_named_site_has_its_text_as_its_only_frame() {
    let mut bytes = SessionBytes::new(7, 7, 0);
    bytes.site(0, site_of_name(b"edges"), &[], 1);
    let at = bytes.layout.offsets()[1];
    let text = b"edges\x1b of web";
    bytes.put(at + offset_of!(SiteRecord, frames) as u64, text);
    let kind = (SiteHashKind::Named as u32).to_ne_bytes();
    bytes.put(at + offset_of!(SiteRecord, kind) as u64, &kind);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("7.0");
    bytes.save(&path);
    let file = SessionFile::open(&path).expect("opens");
    let progress = file.progress().expect("reads");
    let mut rows = Vec::new();
    let read = file.read_sites(0, &progress, |_, row| rows.push(row));
    read.expect("reads");
    assert_eq!(rows[0].kind, SiteKind::Named);
    let frames = rows[0].frames_in(&[], &TextArea::default());
    assert_eq!(frames.len(), 1);
    assert_eq!(frames[0].to_string(), "edges\u{fffd} of web");
}

#[test]
fn hints_are_read_oldest_first_and_those_that_say_nothing_are_left_out() {
    let mut bytes = SessionBytes::new(7, 7, 0);
    let first = offset_of!(SessionHeader, hints);
    let rows: [[u64; 4]; 6] = [
        [9, 4096, 100, 1],
        [0, 4096, 100, 0],
        [3, 4096, 0, 0],
        [4, u64::MAX, 2, 0],
        [5, 8192, 10, 3],
        [2, 8192, 10, 2],
    ];
    for (slot, row) in rows.iter().enumerate() {
        let record = row.map(u64::to_ne_bytes).concat();
        let at = first + slot * size_of::<HintRecord>();
        bytes.put(at as u64, &record);
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("7.0");
    bytes.save(&path);
    let file = SessionFile::open(&path).expect("opens");
    let hint = |address, bytes, hint| MemoryHint {
        address,
        bytes,
        hint,
    };
    let expected = [
        hint(8192, 10, InterfaceHint::Streaming),
        hint(4096, 100, InterfaceHint::Cold),
    ];
    assert_eq!(file.read_hints().expect("reads"), expected);
}
