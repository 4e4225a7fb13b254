//! Every target over its corpus and over a few thousand invented inputs, and the canary.

use isotherm_fuzz::campaign::{Failure, corpus, corpus_directory, invent, survive};
use isotherm_fuzz::{CANARY, TARGETS, Target};

/// Inputs invented for each target; `ISOTHERM_FUZZ_ROUNDS` sets another number.
const ROUNDS: usize = 2_000;

/// The seed of this run, from `ISOTHERM_SEED` or the clock, printed so that it can be replayed.
fn seed() -> u64 {
    let given = std::env::var("ISOTHERM_SEED").ok();
    let seed = given.and_then(|text| text.parse().ok()).unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |now| now.as_nanos() as u64)
    });
    println!("ISOTHERM_SEED={seed}");
    seed
}

fn rounds() -> usize {
    let given = std::env::var("ISOTHERM_FUZZ_ROUNDS").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(ROUNDS)
}

/// Keeps the input; the text says how to run it again.
fn kept(target: &Target, failure: &Failure) -> String {
    let directory = std::env::temp_dir();
    let path = directory.join(format!("isotherm-fuzz-{}", target.name));
    let kept = std::fs::write(&path, &failure.input);
    format!(
        "{}: {}\nthe input of {} bytes is in {} ({kept:?}); fuzz/run {} FILE runs it again",
        target.name,
        failure.what,
        failure.input.len(),
        path.display(),
        target.name,
    )
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
        match invent(target, seed, rounds()) {
            Ok(sound) => println!("{}: {sound} of {} taken as sound", target.name, rounds()),
            Err(failure) => failures.push(kept(target, &failure)),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn the_canary_is_found_and_again_with_the_same_seed() {
    let seed = seed();
    let find = || invent(&CANARY, seed, ROUNDS).expect_err("the planted fault is not found");
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
