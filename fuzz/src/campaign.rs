//! Runs a target over inputs and reports the first one that it does not survive.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use crate::Target;
use crate::mutation::{Random, mutated};

/// An input that broke a target.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The input.
    pub input: Vec<u8>,
    /// What the panic said.
    pub what: String,
}

/// The committed inputs of a target, by file name. Empty where it has none.
#[must_use]
pub fn corpus(target: &Target) -> Vec<(String, Vec<u8>)> {
    let Ok(entries) = std::fs::read_dir(corpus_directory(target)) else {
        return Vec::new();
    };
    let mut files: Vec<_> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            Some((name, std::fs::read(entry.path()).ok()?))
        })
        .collect();
    files.sort();
    files
}

/// Where the committed inputs of a target lie.
#[must_use]
pub fn corpus_directory(target: &Target) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target.name)
}

/// Runs a target on one input; true where the input was taken as sound.
///
/// # Errors
/// The target panicked.
pub fn survive(target: &Target, input: &[u8]) -> Result<bool, Failure> {
    catch_unwind(AssertUnwindSafe(|| (target.check)(input))).map_err(|panic| Failure {
        input: input.to_vec(),
        what: panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_default(),
    })
}

/// Runs a target on this many invented inputs; returns how many were taken as sound. `before` is shown each
/// first: a reader that runs out of memory or stack ends the process, and nothing after it is said.
///
/// # Errors
/// The target panicked; with one seed it does so on the same input again.
pub fn invent(
    target: &Target,
    seed: u64,
    rounds: usize,
    mut before: impl FnMut(&[u8]),
) -> Result<usize, Failure> {
    let inputs: Vec<Vec<u8>> = corpus(target).into_iter().map(|(_, bytes)| bytes).collect();
    let mut random = Random(seed);
    let mut sound = 0;
    for _ in 0..rounds {
        let input = mutated(&mut random, &inputs);
        before(&input);
        sound += usize::from(survive(target, &input)?);
    }
    Ok(sound)
}
