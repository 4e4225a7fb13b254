//! Every target over its corpus and over a few thousand invented inputs, and the canary.

use std::io::Write;
use std::path::PathBuf;

use isotherm_fuzz::campaign::{Failure, corpus, corpus_directory, invent, survive};
use isotherm_fuzz::{CANARY, TARGETS, Target};

/// Inputs invented for each target; `ISOTHERM_FUZZ_ROUNDS` sets another number.
const ROUNDS: usize = 2_000;

/// The seed of this run, from `ISOTHERM_SEED` or the clock, printed so that it can be replayed: on standard
/// error itself, since the output of a test is lost where its process ends.
fn seed() -> u64 {
    let given = std::env::var("ISOTHERM_SEED").ok();
    let seed = given.and_then(|text| text.parse().ok()).unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |now| now.as_nanos() as u64)
    });
    let _ = writeln!(std::io::stderr(), "ISOTHERM_SEED={seed}");
    seed
}

fn rounds() -> usize {
    let given = std::env::var("ISOTHERM_FUZZ_ROUNDS").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(ROUNDS)
}

/// Where the input in hand is kept.
fn path(target: &Target) -> PathBuf {
    std::env::temp_dir().join(format!("isotherm-fuzz-{}", target.name))
}

/// Says what broke the target, and how to run it again.
fn described(target: &Target, failure: &Failure) -> String {
    format!(
        "{}: {}\nthe input of {} bytes is in {}; fuzz/run {} FILE runs it again",
        target.name,
        failure.what,
        failure.input.len(),
        path(target).display(),
        target.name,
    )
}

/// Runs a target over invented inputs, each kept in its file until it is survived.
fn run(target: &Target, seed: u64) -> Result<usize, Failure> {
    let path = path(target);
    let sound = invent(target, seed, rounds(), |input| {
        std::fs::write(&path, input).expect("the input is kept");
    })?;
    let _ = std::fs::remove_file(path);
    Ok(sound)
}

#[test]
fn every_target_survives_its_corpus_and_takes_some_of_it_as_sound() {
    for target in TARGETS {
        let mut sound = 0;
        for (name, input) in corpus(target) {
            match survive(target, &input) {
                Ok(taken) => sound += usize::from(taken),
                Err(failure) => panic!("{}/{name}: {}", target.name, failure.what),
            }
        }
        assert!(
            sound > 0,
            "{}: every file of its corpus is refused, so its reader is hardly reached; after a \
             change of layout, `fuzz/run --seeds` writes the seeds anew",
            target.name
        );
    }
}

#[test]
fn every_target_survives_invented_inputs() {
    let seed = seed();
    let mut failures = Vec::new();
    for target in TARGETS {
        match run(target, seed) {
            Ok(sound) => println!("{}: {sound} of {} taken as sound", target.name, rounds()),
            Err(failure) => failures.push(described(target, &failure)),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn the_canary_is_found_and_again_with_the_same_seed() {
    let seed = seed();
    let find =
        || invent(&CANARY, seed, ROUNDS, |_| ()).expect_err("the planted fault is not found");
    let failure = find();
    assert!(failure.what.contains("out of range"), "{}", failure.what);
    assert_eq!(find().input, failure.input);
}

#[test]
fn each_folder_of_the_corpus_belongs_to_a_target() {
    let canary = corpus_directory(&CANARY);
    let root = canary.parent().expect("has a parent");
    for entry in std::fs::read_dir(root).expect("is there") {
        let name = entry.expect("is readable").file_name();
        let name = name.to_string_lossy();
        assert!(
            isotherm_fuzz::target(&name).is_some(),
            "corpus/{name} has no target"
        );
    }
}
