//! Formats values as JSON, for scripts.

use serde::Serialize;

/// A value as JSON, documented in `docs/formats.md`, ending in a line feed.
#[must_use]
pub fn json(value: &impl Serialize) -> String {
    // Strings, numbers and lists of them: serialising cannot fail.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}
