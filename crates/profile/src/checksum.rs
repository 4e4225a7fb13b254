//! [`seal`] puts the checksum of a whole Parquet file of a profile into the file's own key-value metadata, in place of a placeholder that
//! is part of what is hashed; [`holds`] verifies it, so that a damaged file is noticed when it is read.
//!
//! ```text
//! ... isotherm.checksum 18 10 0000000000000000 ...   hashed like this
//! ... isotherm.checksum 18 10 5f1d2ab90c7e8834 ...   then the hash takes the zeros' place
//! ```
//!
//! `18 10` is Thrift's compact form of "next field, text, 16 bytes long". So no byte of the file
//! is outside the hash, and the length of the file does not change.

use twox_hash::XxHash64;

/// Key in the metadata.
pub(crate) const KEY: &str = "isotherm.checksum";
/// Placeholder of the checksum while the hash is computed: as many digits as a hash has.
pub(crate) const PLACEHOLDER: &str = "0000000000000000";

/// Puts the checksum into a file that holds the placeholder.
pub(crate) fn seal(file: &mut [u8]) {
    if let Some(at) = position(file) {
        let digits = format!("{:016x}", XxHash64::oneshot(0, file));
        file[at..at + digits.len()].copy_from_slice(digits.as_bytes());
    }
}

/// True where the file is as it was sealed.
pub(crate) fn holds(file: &[u8]) -> bool {
    position(file).is_some_and(|at| {
        let (before, rest) = file.split_at(at);
        let (digits, after) = rest.split_at(PLACEHOLDER.len());
        let mut hash = XxHash64::with_seed(0);
        for part in [before, PLACEHOLDER.as_bytes(), after] {
            std::hash::Hasher::write(&mut hash, part);
        }
        digits == format!("{:016x}", std::hash::Hasher::finish(&hash)).as_bytes()
    })
}

/// Position of the digits. The metadata is at the end, so the last match is the real one.
fn position(file: &[u8]) -> Option<usize> {
    let needle = [KEY.as_bytes(), &[0x18, PLACEHOLDER.len() as u8]].concat();
    let key = file
        .windows(needle.len())
        .rposition(|window| window == needle)?;
    let at = key + needle.len();
    (at + PLACEHOLDER.len() <= file.len()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::{holds, seal};

    #[test]
    fn a_sealed_file_holds_until_any_bit_changes() {
        let mut file = b"PAR1 pages isotherm.checksum\x18\x100000000000000000 footer PAR1".to_vec();
        assert!(!holds(&file));
        seal(&mut file);
        assert!(holds(&file));
        for bit in 0..file.len() * 8 {
            file[bit / 8] ^= 1 << (bit % 8);
            assert!(!holds(&file), "bit {bit}");
            file[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(!holds(b"no checksum in here"));
    }
}
