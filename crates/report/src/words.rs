//! Shortens names, wraps sentences and replaces characters that steer a terminal. The formats of numbers are those of `isotherm_model`.

use isotherm_model::count_unit::CountUnit;
pub use isotherm_model::words::{counted, grouped, percent, share};
use serde::Serializer;
use textwrap::{Options, WordSplitter, fill};

/// Serialises a unit of counts as its noun.
pub(crate) fn noun<S: Serializer>(unit: &CountUnit, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(unit.noun())
}

/// At most `limit` characters of one line, the last one `…` where something was cut. What steers a
/// terminal becomes `?`, line feeds too.
#[must_use]
pub fn clip(text: &str, limit: usize) -> String {
    let mut characters = text.chars().map(harmless);
    let mut clipped: String = characters.by_ref().take(limit).collect();
    if characters.next().is_some() {
        clipped.pop();
        clipped.push('…');
    }
    clipped
}

/// A sentence for a terminal, broken at blanks; further lines begin with `indent`.
pub(crate) fn wrapped(sentence: &str, columns: usize, indent: &str) -> String {
    let options = Options::new(columns)
        .subsequent_indent(indent)
        .break_words(false)
        .word_splitter(WordSplitter::NoHyphenation);
    fill(&clip(sentence, 2000), options) + "\n"
}

/// The line under a table that shows only the first of its rows; empty where it shows all.
pub(crate) fn and_more(all: usize, shown: usize, noun: &str) -> String {
    match all.saturating_sub(shown) {
        0 => String::new(),
        more => format!("and {} more; --json lists all\n", counted(more, noun)),
    }
}

/// The text for a terminal: lines and tabs stay, everything else that steers one becomes `?`. Names, comments
/// and paths come from files that other people wrote, so all that a command prints goes through here.
#[must_use]
pub fn printable(text: &str) -> String {
    let kept = |c: char| match c {
        '\n' | '\t' => c,
        c => harmless(c),
    };
    text.chars().map(kept).collect()
}

/// `?` for control characters (C0, delete, C1) and for those that turn the direction of text around, with which
/// a name pretends to be another.
const fn harmless(c: char) -> char {
    match c {
        '\u{00}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => '?',
        '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '?',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::{clip, printable};

    #[test]
    fn names_are_cut_and_lose_what_steers_a_terminal() {
        assert_eq!(clip("abcdef", 6), "abcdef");
        assert_eq!(clip("abcdefg", 6), "abcde…");
        assert_eq!(clip("\x1b[31mred\n", 20), "?[31mred?");
        assert_eq!(clip("", 0), "");
        assert_eq!(clip("\u{9b}31m a\u{202e}b", 20), "?31m a?b");
    }

    #[test]
    fn a_printed_text_keeps_its_lines_and_steers_no_terminal() {
        let hostile = "a\tb\n\x1b]0;title\x07\r\u{9b}2J\x7f\u{2066}ä\n";
        assert_eq!(printable(hostile), "a\tb\n?]0;title???2J??ä\n");
    }
}
