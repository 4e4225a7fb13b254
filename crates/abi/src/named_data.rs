//! Checks the name that a program gives to its data (`include/isotherm.h`), and makes from it the 64-bit name of the data's site and the
//! frames of the site's record, which hold the text.

use zerocopy::IntoBytes;

use crate::MAX_DEPTH;
use crate::hash::{SiteHashKind, SiteHasher};
use crate::interface::NAME_WORDS;
use crate::session::FrameRecord;

/// Most bytes of a name.
pub const NAME_BYTES_MAX: usize = 63;

/// Whether a text may name data: 1 to [`NAME_BYTES_MAX`] bytes without control characters.
#[must_use]
pub fn is_name(text: &[u8]) -> bool {
    (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.iter().any(u8::is_ascii_control)
}

/// The name of the site of data that the program names: the same in every program.
#[must_use]
pub fn site_of_name(name: &[u8]) -> u64 {
    SiteHasher::new(SiteHashKind::Named).frame(name, 0).finish()
}

/// The frames of a named site's record, whose bytes are the text, ended by NUL. It has no callers.
#[must_use]
pub fn frames_of_name(name: &[u8]) -> [FrameRecord; MAX_DEPTH] {
    let mut frames = [FrameRecord::default(); MAX_DEPTH];
    let name = &name[..name.len().min(NAME_BYTES_MAX)];
    frames.as_mut_bytes()[..name.len()].copy_from_slice(name);
    frames
}

const _: () = assert!(NAME_BYTES_MAX < MAX_DEPTH * size_of::<FrameRecord>());
const _: () = assert!(NAME_BYTES_MAX < NAME_WORDS * size_of::<u64>());

#[cfg(test)]
mod tests {
    use super::{NAME_BYTES_MAX, frames_of_name, is_name, site_of_name};

    #[test]
    fn names_are_short_texts_without_control_characters() {
        let longest = [b'x'; NAME_BYTES_MAX];
        assert!(is_name(b"edges of web") && is_name("Gewicht·ß".as_bytes()) && is_name(&longest));
        assert!(!is_name(b"") && !is_name(b"a\nb") && !is_name(b"\x7f") && !is_name(&[b'x'; 64]));
    }

    #[test]
    fn the_frames_hold_the_text() {
        let frames = frames_of_name(b"abcdEFGH01234567xy");
        assert_eq!(frames[0].module.to_ne_bytes(), *b"abcd");
        assert_eq!(frames[0].text.to_ne_bytes(), *b"EFGH");
        assert_eq!(frames[0].offset.to_ne_bytes(), *b"01234567");
        assert_eq!(frames[1].module.to_ne_bytes(), *b"xy\0\0");
    }

    #[test]
    fn the_site_of_a_name_is_frozen_because_plans_on_disk_hold_it() {
        assert_eq!(site_of_name(b"edges"), FROZEN);
    }

    const FROZEN: u64 = 8_305_431_288_426_371_086;
}
