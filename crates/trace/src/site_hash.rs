//! Makes ids of the sites in other tools' recordings, by a hash.

use isotherm_model::site::SiteId;

/// The 64-bit FNV-1a hash of the bytes: the same in every run and on every machine. It never
/// returns the two reserved ids.
pub(crate) fn site_hash(bytes: impl IntoIterator<Item = u8>) -> SiteId {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    let hash = bytes.into_iter().fold(OFFSET, step);
    match SiteId(hash) {
        SiteId::UNATTRIBUTED | SiteId::SHARED => SiteId(OFFSET),
        id => id,
    }
}
