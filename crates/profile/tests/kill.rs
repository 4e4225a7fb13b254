//! Tests that a recording which is killed at any moment keeps every epoch it had noted.

mod support;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use isotherm_model::port::Recorder;
use isotherm_model::profile::{Ending, Profile};
use isotherm_profile::{Existing, Writer, read};
use support::absorb::absorb;
use support::{Random, Scratch, meta, seed, segment};

/// Names the profile that the child process writes.
const CHILD: &str = "ISOTHERM_TEST_KILLED_WRITER";
/// Has it overwrite the profile, over and over, where it is set.
const OVERWRITES: &str = "ISOTHERM_TEST_OVERWRITES";
const ROWS: u64 = 3_000;

/// Not a test of its own: what the killed child runs.
#[test]
fn child_records_until_it_is_killed() {
    let Ok(path) = std::env::var(CHILD) else {
        return;
    };
    let seed = support::seed();
    let meta = meta(&mut Random(seed));
    if std::env::var_os(OVERWRITES).is_some() {
        println!("noted that it begins");
        loop {
            let mut writer = Writer::create(path.as_ref(), &meta, Existing::Overwrite).unwrap();
            writer.record(&segment(seed, 0, ROWS)).unwrap();
            writer.finish(Ending::Exited(0), &[]).unwrap();
        }
    }
    let mut writer = Writer::create(path.as_ref(), &meta, Existing::Refuse).unwrap();
    for epoch in 0.. {
        writer.record(&segment(seed, epoch, ROWS)).unwrap();
        println!("noted {epoch}");
        std::io::stdout().flush().unwrap();
    }
}

#[test]
fn killing_the_writer_loses_at_most_the_last_epoch() {
    let seed = seed();
    let scratch = Scratch::new("kill");
    for round in 0..8 {
        let mut random = Random(seed ^ round);
        let path = scratch.path(&format!("{round}.iso"));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_records_until_it_is_killed", "--nocapture"])
            .env(CHILD, &path)
            .env("ISOTHERM_SEED", (seed ^ round).to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let wanted = format!("noted {}", random.below(15));
        let found = lines.by_ref().any(|line| line.unwrap() == wanted);
        assert!(found, "the child ended before \"{wanted}\"");
        // A moment within the next epochs: between two writes, in a write, before a rename.
        std::thread::sleep(std::time::Duration::from_micros(random.below(30_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let noted = lines
            .map_while(Result::ok)
            .filter(|line| line.starts_with("noted"))
            .last();
        let noted = noted.unwrap_or(wanted)["noted ".len()..]
            .parse::<usize>()
            .unwrap()
            + 1;

        let (profile, warnings) = read(&path).unwrap();
        let epochs = profile.epochs.len();
        assert!(
            epochs == noted || epochs == noted + 1,
            "round {round}: {epochs} of {noted}"
        );
        let mut expected = Profile::new(meta(&mut Random(seed ^ round)));
        for epoch in 0..epochs as u32 {
            absorb(&mut expected, segment(seed ^ round, epoch, ROWS));
        }
        assert_eq!(
            profile.epochs, expected.epochs,
            "round {round}: {warnings:?}"
        );
        assert_eq!(profile.heat, expected.heat, "round {round}: {warnings:?}");
        assert_eq!(
            profile.resident, expected.resident,
            "round {round}: {warnings:?}"
        );
        for site in &expected.sites {
            let kept = profile
                .sites
                .iter()
                .find(|kept| kept.id == site.id)
                .unwrap();
            assert_eq!(kept.kind, site.kind);
            assert_eq!(kept.frames, site.frames, "round {round}: {warnings:?}");
        }
    }
}

#[test]
fn killing_a_writer_that_overwrites_leaves_one_of_the_two_profiles() {
    let seed = seed();
    let scratch = Scratch::new("kill-overwrite");
    let mut random = Random(seed);
    for round in 0..16 {
        let path = scratch.path(&format!("{round}.iso"));
        let meta = meta(&mut Random(seed));
        let mut writer = Writer::create(&path, &meta, Existing::Refuse).unwrap();
        writer.record(&segment(seed, 0, ROWS)).unwrap();
        writer.finish(Ending::Exited(0), &[]).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_records_until_it_is_killed", "--nocapture"])
            .env(CHILD, &path)
            .env(OVERWRITES, "1")
            .env("ISOTHERM_SEED", seed.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().starts_with("noted")));
        std::thread::sleep(std::time::Duration::from_micros(random.below(60_000)));
        child.kill().unwrap();
        child.wait().unwrap();

        let aside = scratch.path(&format!(".{round}.iso.before"));
        let whole = |path: &std::path::Path| {
            read(path).is_ok_and(|(profile, _)| profile.heat == segment(seed, 0, ROWS).heat)
        };
        assert!(whole(&path) || whole(&aside), "round {round}");
        // The next one tidies up, and holds nothing itself.
        drop(Writer::create(&path, &meta, Existing::Overwrite).unwrap());
        assert!(whole(&path), "round {round}");
        assert!(!aside.exists(), "round {round}");
        let gone = scratch.path(&format!(".{round}.iso.gone"));
        assert!(!gone.exists(), "round {round}");
    }
}

#[test]
fn the_last_epoch_is_there_once_it_was_written_before_the_names() {
    let seed = seed();
    let scratch = Scratch::new("last");
    let path = scratch.path("last.iso");
    let mut writer = Writer::create(&path, &meta(&mut Random(seed)), Existing::Refuse).unwrap();
    writer.record(&segment(seed, 0, ROWS)).unwrap();
    // As after a kill: nothing more is written.
    std::mem::forget(writer);
    let (profile, _) = read(&path).unwrap();
    assert_eq!(profile.epochs.len(), 1);
    assert_eq!(profile.ending, Ending::Unknown);
}
