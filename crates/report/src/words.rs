//! Numbers and names as people read them.

use isotherm_model::count_unit::CountUnit;
pub use isotherm_model::words::{counted, grouped, percent, share};
use serde::Serializer;

/// What was counted, as JSON names it: in words.
pub(crate) fn noun<S: Serializer>(unit: &CountUnit, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(unit.noun())
}

/// At most `limit` characters, the last one `…` where something was cut. Control characters become
/// `?`, so that a name cannot steer a terminal.
#[must_use]
pub fn clip(text: &str, limit: usize) -> String {
    let clean = |c: char| if c.is_control() { '?' } else { c };
    let mut characters = text.chars().map(clean);
    let mut clipped: String = characters.by_ref().take(limit).collect();
    if characters.next().is_some() {
        clipped.pop();
        clipped.push('…');
    }
    clipped
}

#[cfg(test)]
mod tests {
    use super::clip;

    #[test]
    fn names_are_cut_and_lose_what_steers_a_terminal() {
        assert_eq!(clip("abcdef", 6), "abcdef");
        assert_eq!(clip("abcdefg", 6), "abcde…");
        assert_eq!(clip("\x1b[31mred\n", 20), "?[31mred?");
        assert_eq!(clip("", 0), "");
    }
}
