//! Numbers of a record of a session file; 0 where the record is too short.

pub(crate) fn word(bytes: &[u8], offset: usize) -> u32 {
    bytes
        .get(offset..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |chunk| u32::from_ne_bytes(*chunk))
}

pub(crate) fn long(bytes: &[u8], offset: usize) -> u64 {
    bytes
        .get(offset..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |chunk| u64::from_ne_bytes(*chunk))
}
