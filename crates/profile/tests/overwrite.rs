//! Tests that a profile which is overwritten is not lost before the new one holds something.

mod support;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use isotherm_model::port::Recorder;
use isotherm_model::profile::{Ending, Profile, Segment};
use isotherm_profile::{Error, Existing, FinishOutcome, Writer, read};
use support::absorb::absorb;
use support::{Random, Scratch, files, meta, segment};

const FORMER: u64 = 11;
const NEW: u64 = 12;

/// A finished profile beside a file that is not ours.
fn former(path: &Path) -> Profile {
    let mut writer = Writer::create(path, &meta(&mut Random(FORMER)), Existing::Refuse).unwrap();
    writer.record(&segment(FORMER, 0, 30)).unwrap();
    fs::write(path.join("notes.txt"), "mine").unwrap();
    assert_eq!(
        writer.finish(Ending::Exited(0), &[]).unwrap(),
        FinishOutcome::New
    );
    read(path).unwrap().0
}

fn overwriting(path: &Path, existing: Existing) -> Result<Writer, Error> {
    Writer::create(path, &meta(&mut Random(NEW)), existing)
}

/// Names the profile that the child process begins to overwrite.
const CHILD: &str = "ISOTHERM_TEST_OVERWRITTEN_PROFILE";

/// Not a test of its own: the child process that is killed.
#[test]
fn child_begins_to_overwrite() {
    if let Ok(path) = std::env::var(CHILD) {
        let _writer = overwriting(path.as_ref(), Existing::Overwrite).unwrap();
        std::process::abort();
    }
}

/// Begins to overwrite the profile, in a process that is killed: only its end gives the lock back, and no destructor runs.
fn begin_and_kill(path: &Path) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_begins_to_overwrite"])
        .env(CHILD, path)
        .output()
        .unwrap();
    assert!(child.status.signal().is_some(), "{child:?}");
}

/// What is beside the profile.
fn beside(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path.parent().unwrap()).unwrap();
    let entries = entries.map(|entry| entry.unwrap().path());
    entries.filter(|entry| entry != path).collect()
}

/// The profile is the former one, and nothing else is left.
fn assert_unchanged(path: &Path, former: &Profile) {
    assert_eq!(read(path).unwrap(), (former.clone(), vec![]));
    assert_eq!(fs::read(path.join("notes.txt")).unwrap(), b"mine");
    assert_eq!(beside(path), Vec::<PathBuf>::new());
}

#[test]
fn the_former_profile_goes_with_the_first_epoch_that_tells_something() {
    let scratch = Scratch::new("first-epoch");
    let path = scratch.path("a.iso");
    let former = former(&path);
    let aside = scratch.path(".a.iso.before");
    let mut writer = overwriting(&path, Existing::Overwrite).unwrap();
    writer.record(&Segment::default()).unwrap();
    assert_eq!(read(&aside).unwrap().0, former);
    let (_, warnings) = read(&path).unwrap();
    let told = warnings.iter().any(|w| w.what.contains(".a.iso.before"));
    assert!(told, "{warnings:?}");
    writer.record(&segment(NEW, 1, 30)).unwrap();
    assert_eq!(beside(&path), Vec::<PathBuf>::new());
    assert_eq!(fs::read(path.join("notes.txt")).unwrap(), b"mine");
    assert_eq!(
        writer.finish(Ending::Exited(0), &[]).unwrap(),
        FinishOutcome::New
    );
    assert_eq!(read(&path).unwrap().0.heat, {
        let mut new = Profile::new(meta(&mut Random(NEW)));
        absorb(&mut new, segment(NEW, 1, 30));
        new.heat
    });
}

#[test]
fn a_recording_that_holds_nothing_leaves_the_former_profile() {
    let scratch = Scratch::new("nothing");
    let path = scratch.path("a.iso");
    let former = former(&path);
    drop(overwriting(&path, Existing::Overwrite).unwrap());
    assert_unchanged(&path, &former);

    let mut writer = overwriting(&path, Existing::Overwrite).unwrap();
    writer.record(&Segment::default()).unwrap();
    let kept = writer.finish(Ending::Exited(127), &[]).unwrap();
    assert_eq!(kept, FinishOutcome::Former);
    assert_unchanged(&path, &former);

    let mut writer = overwriting(&path, Existing::Overwrite).unwrap();
    writer.keep_former();
    writer.record(&segment(NEW, 0, 30)).unwrap();
    let kept = writer.finish(Ending::Exited(127), &[]).unwrap();
    assert_eq!(kept, FinishOutcome::Former);
    assert_unchanged(&path, &former);

    let mut writer = overwriting(&path, Existing::Overwrite).unwrap();
    writer.record(&segment(NEW, 0, 30)).unwrap();
    writer.keep_former();
    let kept = writer.finish(Ending::Exited(127), &[]).unwrap();
    assert_eq!(kept, FinishOutcome::New);
}

#[test]
fn a_recording_that_cannot_be_written_leaves_the_former_profile() {
    let scratch = Scratch::new("unwritten");
    let path = scratch.path("a.iso");
    former(&path);
    for existing in [Existing::Overwrite, Existing::OverwriteAtEnd] {
        let mut writer = overwriting(&path, existing).unwrap();
        fs::create_dir(path.join("epochs-000000.parquet")).unwrap();
        writer.record(&segment(NEW, 0, 30)).unwrap_err();
        let failed = writer.finish(Ending::Exited(0), &[]).unwrap_err();
        assert!(
            failed.to_string().contains("nothing of the run"),
            "{failed}"
        );
        assert_eq!(read(&path).unwrap().0.meta, meta(&mut Random(FORMER)));
        assert_eq!(beside(&path), Vec::<PathBuf>::new());
    }
}

#[test]
fn what_is_written_at_once_replaces_the_former_profile_at_its_end() {
    let scratch = Scratch::new("at-end");
    let path = scratch.path("a.iso");
    let former = former(&path);
    let mut writer = overwriting(&path, Existing::OverwriteAtEnd).unwrap();
    writer.record(&segment(NEW, 0, 30)).unwrap();
    drop(writer);
    assert_unchanged(&path, &former);
    let mut writer = overwriting(&path, Existing::OverwriteAtEnd).unwrap();
    writer.record(&segment(NEW, 0, 30)).unwrap();
    assert_eq!(
        writer.finish(Ending::Exited(0), &[]).unwrap(),
        FinishOutcome::New
    );
    assert_eq!(read(&path).unwrap().0.meta, meta(&mut Random(NEW)));
    assert_eq!(beside(&path), Vec::<PathBuf>::new());
}

#[test]
fn what_a_kill_left_is_named_and_tidied_up_by_the_next_writer() {
    let scratch = Scratch::new("kill-left");
    let path = scratch.path("a.iso");
    let former = former(&path);
    // Killed before the first epoch.
    begin_and_kill(&path);
    assert_eq!(read(&scratch.path(".a.iso.before")).unwrap().0, former);
    drop(overwriting(&path, Existing::Overwrite).unwrap());
    assert_unchanged(&path, &former);
    // Killed between the rename and the new directory.
    fs::rename(&path, scratch.path(".a.iso.before")).unwrap();
    let lost = read(&path).unwrap_err();
    assert!(matches!(lost, Error::PutAside { .. }), "{lost}");
    let refused = overwriting(&path, Existing::Refuse).unwrap_err();
    assert!(matches!(refused, Error::Exists(_)), "{refused}");
    assert_unchanged(&path, &former);
    // Killed before the first rename.
    fs::create_dir(scratch.path(".a.iso.new")).unwrap();
    drop(overwriting(&path, Existing::Overwrite).unwrap());
    assert_unchanged(&path, &former);
    // Killed while the former one was removed.
    let gone = scratch.path(".a.iso.gone");
    fs::create_dir(&gone).unwrap();
    let (name, bytes) = files(&path).remove(0);
    fs::write(gone.join(name), bytes).unwrap();
    drop(overwriting(&path, Existing::Overwrite).unwrap());
    assert_unchanged(&path, &former);
}

#[test]
fn a_directory_that_is_no_profile_is_left_alone_beside_one_that_was_put_aside() {
    let scratch = Scratch::new("other");
    let path = scratch.path("a.iso");
    former(&path);
    fs::rename(&path, scratch.path(".a.iso.before")).unwrap();
    fs::create_dir(&path).unwrap();
    fs::write(path.join("thesis.txt"), "mine").unwrap();
    let refused = overwriting(&path, Existing::Overwrite).unwrap_err();
    assert!(matches!(refused, Error::Occupied(_)), "{refused}");
    assert_eq!(fs::read(path.join("thesis.txt")).unwrap(), b"mine");
    assert!(scratch.path(".a.iso.before").join("meta.parquet").exists());
}

#[test]
fn a_link_to_a_profile_stays_a_link() {
    let scratch = Scratch::new("link");
    let (path, link) = (scratch.path("a.iso"), scratch.path("link.iso"));
    former(&path);
    std::os::unix::fs::symlink("a.iso", &link).unwrap();
    let mut writer = overwriting(&link, Existing::Overwrite).unwrap();
    writer.record(&segment(NEW, 0, 30)).unwrap();
    writer.finish(Ending::Exited(0), &[]).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(read(&path).unwrap().0.meta, meta(&mut Random(NEW)));
    assert_eq!(beside(&path), [link]);
}
