//! Tests that of several writers at one path one writes the profile, and no other takes it away.

mod support;

use std::fs;
use std::path::Path;
use std::sync::Barrier;

use isotherm_model::port::Recorder;
use isotherm_model::profile::Ending;
use isotherm_profile::{
    Error, Existing, Writer, add_isolation, add_sensitivity, check_addition, read,
};
use support::{Random, Scratch, isolation, meta, segment, sensitivity};

const WRITERS: u64 = 6;
const ALL: [Existing; 3] = [
    Existing::Refuse,
    Existing::Overwrite,
    Existing::OverwriteAtEnd,
];

fn create(path: &Path, seed: u64, existing: Existing) -> Result<Writer, Error> {
    Writer::create(path, &meta(&mut Random(seed)), existing)
}

fn finish(mut writer: Writer, seed: u64) {
    writer.record(&segment(seed, 0, 30)).unwrap();
    writer.finish(Ending::Exited(0), &[]).unwrap();
}

/// Writers that begin at the same time, and all live until the last one has begun. The seed of the only one that did.
fn only_winner(path: &Path, existing: Existing) -> u64 {
    let (begin, end) = [(); 2].map(|()| Barrier::new(WRITERS as usize)).into();
    let begun = |seed| {
        begin.wait();
        let writer = create(path, seed, existing);
        end.wait();
        match writer {
            Ok(writer) => finish(writer, seed),
            Err(Error::BeingRecorded(_)) => return None,
            Err(error) => panic!("{error}"),
        }
        Some(seed)
    };
    let winners: Vec<u64> = std::thread::scope(|scope| {
        let threads = (0..WRITERS).map(|seed| scope.spawn(move || begun(seed)));
        let threads: Vec<_> = threads.collect();
        let ended = threads.into_iter().filter_map(|it| it.join().unwrap());
        ended.collect()
    });
    assert_eq!(winners.len(), 1, "{existing:?}: {winners:?}");
    winners[0]
}

#[test]
fn of_writers_that_begin_together_one_records_and_the_others_are_refused() {
    let scratch = Scratch::new("together");
    let path = scratch.path("a.iso");
    let is_of = |seed| read(&path).unwrap().0.meta == meta(&mut Random(seed));
    for round in 0..60 {
        let existing = ALL[round % ALL.len()];
        // In place of nothing, and of an empty directory.
        if round % 2 == 0 {
            fs::create_dir(&path).unwrap();
        }
        assert!(is_of(only_winner(&path, existing)), "round {round}");
        // In place of a profile.
        if existing != Existing::Refuse {
            assert!(is_of(only_winner(&path, existing)), "round {round}");
        }
        fs::remove_dir_all(&path).unwrap();
        assert_eq!(fs::read_dir(scratch.path("")).unwrap().count(), 0);
    }
}

#[test]
fn a_profile_that_is_being_recorded_is_neither_overwritten_nor_added_to() {
    let scratch = Scratch::new("in-use");
    let path = scratch.path("a.iso");
    let mut writer = create(&path, 1, Existing::Refuse).unwrap();
    writer.record(&segment(1, 0, 30)).unwrap();
    let profile = read(&path).unwrap().0;
    for existing in ALL {
        let refused = create(&path, 2, existing).unwrap_err();
        assert!(matches!(refused, Error::BeingRecorded(_)), "{refused}");
    }
    let random = &mut Random(3);
    for refused in [
        check_addition(&path),
        add_sensitivity(&path, &profile, &sensitivity(random)),
        add_isolation(&path, &profile, &isolation(random)),
    ] {
        assert!(matches!(refused, Err(Error::BeingRecorded(_))));
    }
    assert_eq!(read(&path).unwrap().0, profile);
    writer.finish(Ending::Exited(0), &[]).unwrap();

    check_addition(&path).unwrap();
    let refused = create(&path, 2, Existing::Refuse).unwrap_err();
    assert!(matches!(refused, Error::Exists(_)), "{refused}");
    finish(create(&path, 2, Existing::Overwrite).unwrap(), 2);
}

#[test]
fn a_profile_that_is_put_aside_stays_with_the_writer_that_replaces_it() {
    let scratch = Scratch::new("put-aside");
    let path = scratch.path("a.iso");
    let (aside, moved) = (scratch.path(".a.iso.before"), scratch.path("moved"));
    finish(create(&path, 1, Existing::Refuse).unwrap(), 1);
    let former = read(&path).unwrap().0;
    let writer = create(&path, 2, Existing::Overwrite).unwrap();
    // The moment between the two renames of a replacement, and the moment in which another directory has the name.
    fs::rename(&path, &moved).unwrap();
    for exists in [false, true] {
        if exists {
            fs::create_dir(&path).unwrap();
        }
        for existing in ALL {
            let refused = create(&path, 3, existing).unwrap_err();
            assert!(matches!(refused, Error::BeingRecorded(_)), "{refused}");
        }
        assert_eq!(path.exists(), exists);
        assert_eq!(read(&aside).unwrap().0, former);
    }
    fs::remove_dir(&path).unwrap();
    fs::rename(&moved, &path).unwrap();
    drop(writer);
    assert_eq!(read(&path).unwrap().0, former);
}

#[test]
fn a_recording_that_was_removed_does_not_claim_that_its_epochs_are_there() {
    let scratch = Scratch::new("removed");
    let path = scratch.path("a.iso");
    let mut writer = create(&path, 1, Existing::Refuse).unwrap();
    writer.record(&segment(1, 0, 30)).unwrap();
    fs::remove_dir_all(&path).unwrap();
    let failed = writer.record(&segment(1, 1, 30)).unwrap_err();
    assert!(matches!(failed, Error::Removed(_)), "{failed}");
    let failed = writer.finish(Ending::Exited(0), &[]).unwrap_err();
    assert!(matches!(failed, Error::Removed(_)), "{failed}");
}

#[test]
fn a_locked_directory_of_another_program_is_no_profile() {
    let scratch = Scratch::new("foreign");
    let path = scratch.path("a.iso");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("notes.txt"), "mine").unwrap();
    let directory = isotherm_sys::files::Directory::open(&path).unwrap();
    assert!(directory.lock());
    for existing in ALL {
        let refused = create(&path, 1, existing).unwrap_err();
        assert!(matches!(refused, Error::Occupied(_)), "{refused}");
    }
}
