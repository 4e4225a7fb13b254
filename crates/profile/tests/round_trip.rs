//! Tests that a profile reads as it was recorded, whatever the values and however the recording ends.

mod support;

use isotherm_model::port::Recorder;
use isotherm_model::profile::{Ending, Profile};
use isotherm_profile::{
    Error, Existing, Writer, add_isolation, add_sensitivity, check_addition, read,
};
use support::absorb::absorb;
use support::{Random, Scratch, isolation, meta, seed, segment, sensitivity};

#[test]
fn a_profile_reads_as_it_was_recorded() {
    let seed = seed();
    let scratch = Scratch::new("round-trip");
    for run in 0..4 {
        let mut random = Random(seed + run);
        let path = scratch.path(&format!("{run}.iso"));
        let mut expected = Profile::new(meta(&mut random));
        let mut writer = Writer::create(&path, &expected.meta, Existing::Refuse).unwrap();
        // The longest runs fill a file by epochs, the widest by rows.
        let (epochs, size) = [(0, 1), (3, 40), (260, 4), (4, 20_000)][run as usize % 4];
        for epoch in 0..epochs {
            let segment = segment(seed + run, epoch, size);
            writer.record(&segment).unwrap();
            absorb(&mut expected, segment);
        }
        let (cut_short, warnings) = read(&path).unwrap();
        assert_eq!(cut_short, expected, "run {run} before its end");
        assert_eq!(warnings.len(), 1, "{warnings:?}");

        for site in &mut expected.sites {
            for frame in std::sync::Arc::make_mut(&mut site.frames) {
                frame.function = Some(format!("f{}", frame.offset));
            }
        }
        let mut named = Vec::new();
        for row in &mut expected.code {
            let frame = std::sync::Arc::make_mut(&mut row.code);
            frame.function = Some(format!("f{}", frame.offset));
            named.push(std::sync::Arc::clone(&row.code));
        }
        writer.name_code(named);
        expected.ending = [Ending::Exited(3), Ending::Signalled(11)][run as usize % 2];
        writer.finish(expected.ending, &expected.sites).unwrap();
        let (finished, warnings) = read(&path).unwrap();
        assert_eq!(finished, expected, "run {run} after its end");
        assert_eq!(warnings, []);

        // The second measurement takes the place of the first.
        for _ in 0..2 {
            let runs = sensitivity(&mut random);
            check_addition(&path).unwrap();
            add_sensitivity(&path, &finished, &runs).unwrap();
            expected.sensitivity = Some(runs);
            let runs = isolation(&mut random);
            add_isolation(&path, &finished, &runs).unwrap();
            expected.isolation = Some(runs);
            assert_eq!(read(&path).unwrap(), (expected.clone(), vec![]));
        }
    }
}

#[test]
fn added_runs_stay_with_their_recording() {
    let scratch = Scratch::new("timed-runs");
    let path = scratch.path("a.iso");
    let record = |random: &mut Random, started: &str| {
        let mut meta = meta(random);
        meta.started = started.into();
        let mut writer = Writer::create(&path, &meta, Existing::Overwrite).unwrap();
        writer.record(&segment(9, 0, 30)).unwrap();
        writer.finish(Ending::Exited(0), &[]).unwrap();
        read(&path).unwrap().0
    };
    let mut random = Random(9);
    let former = record(&mut random, "2026-01-02T03:04:05Z");
    add_sensitivity(&path, &former, &sensitivity(&mut random)).unwrap();
    add_isolation(&path, &former, &isolation(&mut random)).unwrap();
    let tables = ["isolation", "sensitivity"].map(|name| path.join(format!("{name}.parquet")));
    let kept = tables.each_ref().map(|table| std::fs::read(table).unwrap());
    let next = record(&mut random, "2026-01-02T03:04:06Z");
    for (table, kept) in tables.iter().zip(kept) {
        assert!(!table.exists(), "a new recording has no added runs");
        // An Isotherm that does not know the table leaves it there.
        std::fs::write(table, kept).unwrap();
    }
    let (profile, warnings) = read(&path).unwrap();
    assert_eq!(profile, next);
    let warned: Vec<_> = warnings.iter().map(|it| it.file.as_str()).collect();
    assert_eq!(warned, ["sensitivity.parquet", "isolation.parquet"]);
    for (warning, again) in warnings
        .iter()
        .zip(["isotherm sensitivity", "--isolate sites"])
    {
        assert!(warning.what.contains("another recording"), "{warning:?}");
        assert!(warning.what.contains(again), "{warning:?}");
    }

    let empty = scratch.path("empty");
    std::fs::create_dir(&empty).unwrap();
    for refused in [
        check_addition(&empty),
        add_sensitivity(&empty, &next, &sensitivity(&mut random)),
        add_isolation(&empty, &next, &isolation(&mut random)),
    ] {
        assert!(matches!(refused, Err(Error::NotAProfile { .. })));
    }
    assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0);
}

#[test]
fn the_last_epoch_is_written_with_the_end_and_not_before() {
    let scratch = Scratch::new("last-epoch");
    let path = scratch.path("a.iso");
    let mut expected = Profile::new(meta(&mut Random(3)));
    let mut writer = Writer::create(&path, &expected.meta, Existing::Refuse).unwrap();
    let (first, last) = (segment(3, 0, 40), segment(3, 1, 40));
    writer.record(&first).unwrap();
    absorb(&mut expected, first);
    assert_eq!(read(&path).unwrap().0, expected);
    absorb(&mut expected, last.clone());
    expected.ending = Ending::Exited(0);
    writer.add_last(&last);
    writer.finish(expected.ending, &[]).unwrap();
    assert_eq!(read(&path).unwrap(), (expected, vec![]));
}

#[test]
fn a_long_run_makes_few_files() {
    let scratch = Scratch::new("files");
    let path = scratch.path("a.iso");
    let mut writer = Writer::create(&path, &meta(&mut Random(1)), Existing::Refuse).unwrap();
    for epoch in 0..300 {
        writer.record(&segment(1, epoch, 8)).unwrap();
    }
    // 300 epochs at 256 a file are 2 files of heat, of RSS and of epochs; all sites appear in the
    // first 256, so their frames are one; 6 tables of state.
    assert_eq!(support::files(&path).len(), 2 * 3 + 1 + 6);
}

#[test]
fn a_profile_is_overwritten_only_when_asked_and_anything_else_never() {
    let scratch = Scratch::new("existing");
    let meta = meta(&mut Random(2));
    let path = scratch.path("a.iso");
    let mut writer = Writer::create(&path, &meta, Existing::Refuse).unwrap();
    writer.record(&segment(2, 0, 30)).unwrap();
    std::fs::write(path.join("notes.txt"), "mine").unwrap();
    drop(writer);
    let refused = Writer::create(&path, &meta, Existing::Refuse).unwrap_err();
    assert!(matches!(refused, Error::Exists(_)), "{refused}");
    assert_eq!(read(&path).unwrap().0.epochs.len(), 1);

    let writer = Writer::create(&path, &meta, Existing::Overwrite).unwrap();
    assert_eq!(read(&path).unwrap().0, Profile::new(meta.clone()));
    drop(writer);
    assert_eq!(read(&path).unwrap().0.epochs.len(), 1);
    assert_eq!(std::fs::read(path.join("notes.txt")).unwrap(), b"mine");

    let other = scratch.path("documents");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("meta.parquet"), "not ours").unwrap();
    for existing in [Existing::Refuse, Existing::Overwrite] {
        let refused = Writer::create(&other, &meta, existing).unwrap_err();
        assert!(matches!(refused, Error::Occupied(_)), "{refused}");
        let file = other.join("meta.parquet");
        assert!(Writer::create(&file, &meta, existing).is_err());
        assert_eq!(std::fs::read(file).unwrap(), b"not ours");
    }
}

#[test]
fn what_cannot_be_written_says_so_and_what_is_there_stays_readable() {
    let scratch = Scratch::new("full");
    let meta = meta(&mut Random(3));
    let missing = scratch.path("no/such/parent.iso");
    let refused = Writer::create(&missing, &meta, Existing::Refuse).unwrap_err();
    assert!(
        refused.to_string().contains("nothing was recorded yet"),
        "{refused}"
    );
    let cause = std::error::Error::source(&refused);
    assert!(
        cause.is_none(),
        "the text has the cause; a chain would repeat it"
    );

    let path = scratch.path("a.iso");
    let mut writer = Writer::create(&path, &meta, Existing::Refuse).unwrap();
    let mut expected = Profile::new(meta);
    for epoch in 0..2 {
        let segment = segment(3, epoch, 30);
        writer.record(&segment).unwrap();
        absorb(&mut expected, segment);
    }
    // A directory in the place of the table fails as a full disk does, for root as well.
    let (obstacle, kept) = (path.join("heat-000000.parquet"), scratch.path("kept"));
    std::fs::rename(&obstacle, &kept).unwrap();
    std::fs::create_dir(&obstacle).unwrap();
    let late = segment(3, 2, 30);
    let refused = writer.record(&late).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("the 2 epochs recorded before it stay readable"),
        "{refused}"
    );
    std::fs::remove_dir(&obstacle).unwrap();
    std::fs::rename(&kept, &obstacle).unwrap();
    assert_eq!(read(&path).unwrap().0.heat, expected.heat);

    // With space again, the next epoch brings what was kept back.
    absorb(&mut expected, late);
    let next = segment(3, 3, 30);
    writer.record(&next).unwrap();
    absorb(&mut expected, next);
    assert_eq!(read(&path).unwrap().0, expected);
}
