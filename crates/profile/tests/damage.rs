//! Tests that files which were cut, changed, lost, exchanged or forged are named, and the rest is used.

mod support;

use isotherm_model::port::Recorder;
use isotherm_model::profile::{Ending, Profile};
use isotherm_profile::{Error, Existing, Writer, add_isolation, add_sensitivity, read, read_files};
use support::absorb::absorb;
use support::{Random, Scratch, files, isolation, meta, seed, segment, sensitivity};

/// A finished profile of several files a table.
fn recorded(path: &std::path::Path) -> Profile {
    let mut profile = Profile::new(meta(&mut Random(7)));
    let mut writer = Writer::create(path, &profile.meta, Existing::Refuse).unwrap();
    for epoch in 0..6 {
        let segment = segment(7, epoch, 40_000);
        writer.record(&segment).unwrap();
        absorb(&mut profile, segment);
    }
    profile.ending = Ending::Exited(0);
    writer.finish(profile.ending, &[]).unwrap();
    let runs = sensitivity(&mut Random(7));
    add_sensitivity(path, &profile, &runs).unwrap();
    profile.sensitivity = Some(runs);
    let runs = isolation(&mut Random(8));
    add_isolation(path, &profile, &runs).unwrap();
    profile.isolation = Some(runs);
    profile
}

#[test]
fn each_file_cut_short_is_named_and_the_rest_is_used() {
    let scratch = Scratch::new("cut");
    let path = scratch.path("a.iso");
    let whole = recorded(&path);
    let all = files(&path);
    assert!(all.len() > 9, "several files a table: {}", all.len());
    for victim in 0..all.len() {
        for part in [0, 7] {
            let mut cut = all.clone();
            let (name, bytes) = &mut cut[victim];
            let name = name.clone();
            bytes.truncate(bytes.len() * part / 8);
            let (profile, warnings) = read_files(&path, cut).unwrap();
            assert!(
                warnings.iter().any(|w| w.file == name),
                "{name}: {warnings:?}"
            );
            if !name.starts_with("heat") {
                assert_eq!(profile.heat, whole.heat, "{name}");
            }
            // Without the metadata it is not known which recording the added runs belong to.
            if !name.starts_with("isolation") && !name.starts_with("meta") {
                assert_eq!(profile.isolation, whole.isolation, "{name}");
            }
            if !name.starts_with("sensitivity") && !name.starts_with("meta") {
                assert_eq!(profile.sensitivity, whole.sensitivity, "{name}");
            }
            if !name.starts_with("sites") && !name.starts_with("frames") {
                assert_eq!(profile.sites, whole.sites, "{name}");
            }
            assert_eq!(profile.epochs.len(), whole.epochs.len(), "{name}");
        }
    }
}

#[test]
fn a_lost_file_is_named() {
    let scratch = Scratch::new("lost");
    let path = scratch.path("a.iso");
    recorded(&path);
    for name in ["meta.parquet", "heat-000000.parquet"] {
        let rest = files(&path).into_iter().filter(|(file, _)| file != name);
        let (profile, warnings) = read_files(&path, rest).unwrap();
        assert!(
            warnings.iter().any(|w| w.file == name),
            "{name}: {warnings:?}"
        );
        assert_eq!(profile.epochs.len(), 6);
    }
}

/// A log table has no file before its first rows, so only the other tables tell that there was one.
#[test]
fn the_only_file_of_heat_is_named_where_code_accessed_sites() {
    let scratch = Scratch::new("heat");
    let warnings_without_heat = |name: &str, has_code: bool| {
        let path = scratch.path(name);
        let mut writer = Writer::create(&path, &meta(&mut Random(7)), Existing::Refuse).unwrap();
        let mut segment = segment(7, 0, 60);
        assert!(!segment.heat.is_empty() && !segment.code.is_empty());
        if !has_code {
            segment.code.clear();
        }
        writer.record(&segment).unwrap();
        writer.finish(Ending::Exited(0), &[]).unwrap();
        std::fs::remove_file(path.join("heat-000000.parquet")).unwrap();
        read(&path).unwrap().1
    };
    let warnings = warnings_without_heat("a.iso", true);
    let [warning] = warnings.as_slice() else {
        panic!("{warnings:?}");
    };
    assert_eq!(warning.file, "heat-000000.parquet");
    assert!(warning.what.contains("it is missing"), "{warning:?}");
    assert_eq!(warnings_without_heat("b.iso", false), []);
}

#[test]
fn a_file_that_cannot_be_read_is_not_called_missing() {
    let scratch = Scratch::new("unreadable");
    let path = scratch.path("a.iso");
    recorded(&path);
    // A directory cannot be read as a file, by no user.
    std::fs::remove_file(path.join("meta.parquet")).unwrap();
    std::fs::create_dir(path.join("meta.parquet")).unwrap();
    let (_, warnings) = read(&path).unwrap();
    let of_meta: Vec<_> = warnings
        .iter()
        .filter(|warning| warning.file == "meta.parquet")
        .collect();
    assert_eq!(of_meta.len(), 1, "{warnings:?}");
    assert!(of_meta[0].what.contains("could not be read"), "{of_meta:?}");
}

#[test]
fn what_cannot_be_read_is_not_taken_for_something_else() {
    let scratch = Scratch::new("unknown");
    let path = scratch.path("a.iso");
    std::fs::create_dir_all(path.join("meta.parquet")).unwrap();
    let meta = meta(&mut Random(3));
    let refused = Writer::create(&path, &meta, Existing::Overwrite).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("meta.parquet could not be read"),
        "{refused}"
    );
}

#[test]
fn a_changed_bit_is_always_noticed() {
    let seed = seed();
    let mut random = Random(seed);
    let scratch = Scratch::new("bits");
    let path = scratch.path("a.iso");
    let mut writer = Writer::create(&path, &meta(&mut random), Existing::Refuse).unwrap();
    for epoch in 0..3 {
        writer.record(&segment(seed, epoch, 60)).unwrap();
    }
    writer.finish(Ending::Exited(0), &[]).unwrap();
    let all = files(&path);
    assert_eq!(read_files(&path, all.clone()).unwrap().1, []);
    for _ in 0..400 {
        let mut changed = all.clone();
        let bytes = &mut changed[random.below(all.len() as u64) as usize].1;
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << random.below(8);
        match read_files(&path, changed) {
            Ok((_, warnings)) => assert_ne!(warnings, [], "byte {at}"),
            Err(Error::Newer { .. }) => {}
            Err(error) => panic!("byte {at}: {error}"),
        }
    }
}

#[test]
fn hostile_bytes_are_refused_without_a_panic() {
    let seed = seed();
    let mut random = Random(seed);
    let scratch = Scratch::new("hostile");
    let path = scratch.path("a.iso");
    let mut writer = Writer::create(&path, &meta(&mut random), Existing::Refuse).unwrap();
    for epoch in 0..3 {
        writer.record(&segment(seed, epoch, 60)).unwrap();
    }
    let all = files(&path);
    let rounds = std::env::var("ISOTHERM_HOSTILE_ROUNDS").ok();
    let rounds = rounds.and_then(|text| text.parse().ok()).unwrap_or(300);
    for _ in 0..rounds {
        let mut changed = all.clone();
        let victim = random.below(all.len() as u64) as usize;
        let donor = random.below(all.len() as u64) as usize;
        let bytes = &mut changed[victim].1;
        match random.below(4) {
            // Exchange for another table's file, under this name.
            0 => *bytes = all[donor].1.clone(),
            1 => {
                let at = random.below(bytes.len() as u64) as usize;
                let end = (at + 1 + random.below(64) as usize).min(bytes.len());
                bytes.drain(at..end);
            }
            _ => {
                for _ in 0..=random.below(8) {
                    let at = random.below(bytes.len() as u64) as usize;
                    bytes[at] = random.next() as u8;
                }
            }
        }
        // An attacker computes the checksum anew, so that the decoder is reached.
        if random.below(8) > 0 {
            reseal(&mut changed[victim].1);
        }
        // A change may hit a value and so pass; it may not panic, and what is refused is named.
        if let Ok((_, warnings)) = read_files(&path, changed) {
            assert!(warnings.iter().all(|warning| !warning.what.is_empty()));
        }
    }
}

/// Gives a changed file the checksum that fits it.
fn reseal(file: &mut [u8]) {
    let key = b"isotherm.checksum\x18\x10";
    if let Some(at) = file.windows(key.len()).rposition(|window| window == key) {
        let at = at + key.len();
        if at + 16 <= file.len() {
            file[at..at + 16].fill(b'0');
            let digits = format!("{:016x}", twox_hash::XxHash64::oneshot(0, file));
            file[at..at + 16].copy_from_slice(digits.as_bytes());
        }
    }
}

#[test]
fn what_is_no_profile_is_told_apart() {
    let scratch = Scratch::new("none");
    let missing = read(&scratch.path("nothing.iso")).unwrap_err();
    assert!(matches!(missing, Error::Missing(_)), "{missing}");
    let file = scratch.path("file.iso");
    std::fs::write(&file, "x").unwrap();
    let not = read(&file).unwrap_err();
    assert!(matches!(not, Error::NotAProfile { .. }), "{not}");
    let empty = scratch.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let not = read(&empty).unwrap_err();
    assert!(
        not.to_string().contains("holds no file of a profile"),
        "{not}"
    );
    std::fs::write(empty.join("meta.parquet"), "x").unwrap();
    let not = read(&empty).unwrap_err();
    assert!(
        not.to_string().contains("none of its files can be read"),
        "{not}"
    );
}

#[test]
fn a_newer_version_is_refused_with_the_file_that_says_so() {
    let scratch = Scratch::new("newer");
    let path = scratch.path("a.iso");
    recorded(&path);
    let mut all = files(&path);
    let version = b"isotherm.format_version\x18\x011";
    let meta = all
        .iter_mut()
        .find(|(name, _)| name == "meta.parquet")
        .unwrap();
    let at = meta
        .1
        .windows(version.len())
        .position(|w| w == version)
        .unwrap();
    meta.1[at + version.len() - 1] = b'9';
    let newer = read_files(&path, all).unwrap_err();
    assert!(matches!(newer, Error::Newer { version: 9, .. }), "{newer}");
    assert!(newer.to_string().contains("meta.parquet"), "{newer}");
    assert!(newer.to_string().contains("update Isotherm"), "{newer}");
}
