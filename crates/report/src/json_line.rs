//! [`JsonLine`] writes and reads the daemon's answers to requests, each as one line of JSON.
//!
//! A running daemon and the program that queries it may be of different releases: every answer contains the version of
//! its format, and the reader rejects an answer of another version.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The field that every answer has, in every version.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// A type of answer, such as the status or the heat map. It has a field `version`, the version of its format.
pub trait JsonLine: Serialize + DeserializeOwned {
    /// The word that a client sends to request this answer.
    const REQUEST: &'static str;
    /// The name of this type of answer in error messages.
    const NAME: &'static str;
    /// The version of the format that this program writes and reads; a change that old readers would misread raises it.
    const VERSION: u32;

    /// Semantic validation: checks that the fields agree with each other, such as the lengths of the rows of a grid.
    ///
    /// # Errors
    /// A message that names the disagreement.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// The answer as one line of JSON, without the line feed at its end.
    #[must_use]
    fn json_line(&self) -> String {
        // Serialising fails only for maps whose keys are not text; answers have none.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads an answer from its line of JSON, and checks its version and its fields.
    ///
    /// # Errors
    /// A message: the line is not an answer of this type, has another version, or fails [`Self::check`].
    fn from_json_line(line: &str) -> Result<Self, String> {
        let wrong = |error| format!("the daemon's answer is no {}: {error}", Self::NAME);
        // First the version: another one may have other fields.
        let Versioned { version } = serde_json::from_str(line).map_err(wrong)?;
        if version != Self::VERSION {
            return Err(format!(
                "the daemon speaks version {version} of the {} and this program version {}; restart the one that is \
                 older",
                Self::NAME,
                Self::VERSION
            ));
        }
        let answer: Self = serde_json::from_str(line).map_err(wrong)?;
        answer.check().map(|()| answer)
    }
}
