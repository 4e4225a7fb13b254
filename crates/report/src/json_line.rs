//! The lines of JSON in which the daemon answers: each says its version, because the daemon and who asks
//! it may be of different ages.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// An answer of the daemon.
pub(crate) trait JsonLine: Serialize + DeserializeOwned {
    /// What it is, in an error.
    const NAME: &'static str;
    /// The version that this program knows.
    const VERSION: u32;

    /// The version that it was written in.
    fn version(&self) -> u32;
}

/// As one line of JSON, without a line feed.
pub(crate) fn write(answer: &impl JsonLine) -> String {
    // Strings, numbers and lists of them: serialising cannot fail.
    serde_json::to_string(answer).unwrap_or_default()
}

/// Reads a line of JSON.
///
/// # Errors
/// In words: it is none, or of a version that this program does not know.
pub(crate) fn read<T: JsonLine>(line: &str) -> Result<T, String> {
    let answer: T = serde_json::from_str(line)
        .map_err(|error| format!("the daemon's answer is no {}: {error}", T::NAME))?;
    if answer.version() == T::VERSION {
        return Ok(answer);
    }
    Err(format!(
        "the daemon speaks version {} of the {} and this program version {}; restart the one that is older",
        answer.version(),
        T::NAME,
        T::VERSION
    ))
}
