//! A reader with a planted fault: records of a length byte and as many bytes, after a magic word.
//! It trusts the length. Whoever cannot find this finds nothing.

const MAGIC: &[u8] = b"CANARY";

pub(crate) fn check(data: &[u8]) -> bool {
    let Some(mut rest) = data.strip_prefix(MAGIC) else {
        return false;
    };
    while let Some((&length, body)) = rest.split_first() {
        rest = &body[usize::from(length)..];
    }
    true
}
