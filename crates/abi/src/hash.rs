//! [`SiteHasher`] makes the name of a site that the compiler pass has not named: a 64-bit hash of its kind ([`SiteHashKind`]) and its
//! frames. A frame is a (module build-id or file name, ELF address) pair, so that the name stays the same across runs, address
//! randomisation and machines; of a Java site, texts of the class and methods with bytecode indices; of named data, the data's name.

/// Hashes the frames of one calling context, innermost first.
///
/// 64-bit FNV-1a over the bytes, then one avalanche step (the finaliser of `SplitMix64`), because
/// FNV alone leaves the high bits of short inputs poor. Ten million sites collide with a
/// probability of about 3 in 10^6 (birthday bound, n²/2^65).
#[derive(Clone, Copy, Debug)]
pub struct SiteHasher {
    state: u64,
}

/// The kind of a site, by the source of its memory. It is part of the hash, so that sites of two kinds do not share a
/// name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum SiteHashKind {
    /// An allocation through malloc, operator new and the like.
    Heap = 0,
    /// An anonymous mapping made by the program itself.
    Mapping = 1,
    /// An allocation whose site the compiler named; its name is not a hash of frames.
    Described = 2,
    /// A variable of static storage: its only frame is its own address.
    Static = 3,
    /// Data that the program names itself ([`crate::named_data::site_of_name`]).
    Named = 4,
    /// An allocation site of a Java program: class, methods and bytecode indices stand for modules and offsets.
    Java = 5,
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

impl SiteHasher {
    /// Starts the name of a site of this kind.
    #[must_use]
    pub const fn new(kind: SiteHashKind) -> Self {
        Self {
            state: (FNV_OFFSET ^ kind as u64).wrapping_mul(FNV_PRIME),
        }
    }

    /// Adds the next caller: the build-id of its module (any bytes that name the module; the
    /// file name where there is no build-id) and the ELF virtual address of the return address.
    #[must_use]
    pub fn frame(self, build_id: &[u8], offset: u64) -> Self {
        let add = |state: u64, word: u64| (state ^ word).wrapping_mul(FNV_PRIME);
        let bytes = build_id.iter().copied().chain(offset.to_le_bytes());
        let state = add(self.state, build_id.len() as u64);
        Self {
            state: bytes.map(u64::from).fold(state, add),
        }
    }

    /// The name. Never 0, which marks an empty slot in every table.
    #[must_use]
    pub const fn finish(self) -> u64 {
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        if z == 0 { 1 } else { z }
    }
}

#[cfg(test)]
mod tests {
    use super::{SiteHashKind, SiteHasher};

    #[test]
    fn order_and_kind_and_module_all_change_the_name() {
        let a = SiteHasher::new(SiteHashKind::Heap)
            .frame(b"m", 1)
            .frame(b"m", 2)
            .finish();
        let b = SiteHasher::new(SiteHashKind::Heap)
            .frame(b"m", 2)
            .frame(b"m", 1)
            .finish();
        let c = SiteHasher::new(SiteHashKind::Mapping)
            .frame(b"m", 1)
            .frame(b"m", 2)
            .finish();
        let d = SiteHasher::new(SiteHashKind::Heap)
            .frame(b"n", 1)
            .frame(b"m", 2)
            .finish();
        assert!(a != b && a != c && a != d && b != c);
    }

    #[test]
    fn the_name_is_frozen_because_profiles_on_disk_hold_it() {
        let name = SiteHasher::new(SiteHashKind::Heap)
            .frame(&[0xab; 20], 0x1234)
            .finish();
        assert_eq!(name, FROZEN);
    }

    const FROZEN: u64 = 2_934_019_326_602_491_528;
}
