//! Tests that raw MemProf profiles become sites, and that damaged ones are refused with the place of the error.

use super::read;
use crate::grain::Grain;
use isotherm_model::profile::Profile;
use isotherm_model::units::{Bytes, Nanos};

/// The fields that a test changes in a dump.
struct Dump {
    version: u64,
    /// Bytes of histogram entries after the block, in version 4.
    histogram: Vec<u64>,
    stack_of_block: u64,
    build_id_bytes: u64,
    claimed_stacks: u64,
}

impl Default for Dump {
    fn default() -> Self {
        Self {
            version: 4,
            histogram: Vec::new(),
            stack_of_block: 77,
            build_id_bytes: 4,
            claimed_stacks: 1,
        }
    }
}

impl Dump {
    /// One module at 0x5000, one block, one stack of a call in it and one elsewhere.
    fn bytes(&self) -> Vec<u8> {
        let mut segments = words(&[1, 0x5000, 0x9000, 0x4000, self.build_id_bytes]);
        segments.extend([0xab, 0xcd, 0xef, 0x01]);
        segments.resize(8 + 64, 0);
        let mut blocks = words(&[1, self.stack_of_block]);
        let block_bytes = if self.version == 3 { 132 } else { 144 };
        let mut block = vec![0; block_bytes];
        for (offset, number) in [
            (0, 2_u32),
            (4, 900),
            (28, 600),
            (40, 400),
            (44, 10),
            (48, 60),
            (64, 45),
            (80, 1),
        ] {
            block[offset..offset + 4].copy_from_slice(&number.to_le_bytes());
        }
        if block_bytes > 132 {
            block[132..136].copy_from_slice(&(self.histogram.len() as u32).to_le_bytes());
        }
        blocks.extend(block);
        blocks.extend(words(&self.histogram));
        let stacks = words(&[self.claimed_stacks, 77, 2, 0x5010, 0x2]);
        let first = 48 + segments.len() as u64;
        let second = first + blocks.len() as u64;
        let end = second + stacks.len() as u64;
        let mut bytes = super::MAGIC.to_vec();
        bytes.extend(words(&[self.version, end, 48, first, second]));
        bytes.extend(segments);
        bytes.extend(blocks);
        bytes.extend(stacks);
        bytes
    }
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn profile(bytes: &[u8]) -> Profile {
    read(bytes, "x", Grain::default()).expect("is a profile")
}

fn failed(bytes: &[u8]) -> String {
    read(bytes, "x", Grain::default())
        .expect_err("is refused")
        .to_string()
}

#[test]
fn a_block_becomes_a_site_whose_frames_are_return_addresses_of_modules() {
    for version in [3, 4] {
        let histogram = if version == 4 { vec![5, 6] } else { Vec::new() };
        let dump = Dump {
            version,
            histogram,
            ..Dump::default()
        };
        let profile = profile(&dump.bytes());
        let site = &profile.sites[0];
        let frames: Vec<_> = site
            .frames
            .iter()
            .map(|frame| (frame.build_id.as_deref(), frame.offset))
            .collect();
        assert_eq!(
            frames,
            [(Some("abcdef01"), 0x1011), (None, 3)],
            "version {version}"
        );
        assert_eq!(
            (site.allocations, site.requested, site.peak_rss),
            (2, Bytes(600), Bytes(600))
        );
        assert_eq!(profile.heat[0].accesses.0, 900);
        assert_eq!(profile.span(), Nanos(50_000_000));
    }
}

#[test]
fn dumps_of_one_file_are_added_up() {
    let twice = [Dump::default().bytes(), Dump::default().bytes()].concat();
    let profile = profile(&twice);
    assert_eq!(profile.sites.len(), 1);
    assert_eq!(
        (profile.sites[0].allocations, profile.heat[0].accesses.0),
        (4, 1800)
    );
}

#[test]
fn each_way_to_be_wrong_names_its_place() {
    let with = |dump: Dump| failed(&dump.bytes());
    let whole = Dump::default().bytes();
    for (error, what) in [
        (
            with(Dump {
                version: 9,
                ..Dump::default()
            }),
            "its version is 9; expected 3 or 4",
        ),
        (
            with(Dump {
                stack_of_block: 1,
                ..Dump::default()
            }),
            "0x1 of a block is not among its stacks",
        ),
        (
            with(Dump {
                build_id_bytes: 33,
                ..Dump::default()
            }),
            "a build-id has 33 bytes",
        ),
        (
            with(Dump {
                claimed_stacks: u64::MAX,
                ..Dump::default()
            }),
            "18446744073709551615 entries are claimed",
        ),
        (
            with(Dump {
                histogram: vec![0; 3],
                claimed_stacks: 0,
                ..Dump::default()
            }),
            "is not among its stacks",
        ),
        (failed(&whole[..whole.len() - 1]), "the file ends before"),
        (
            failed(&whole[..20]),
            "x: at byte 16: it ends here; expected 8 bytes more",
        ),
        (
            failed(b"\x7fELF1234"),
            "x: at byte 0: no MemProf profile begins here",
        ),
        (
            failed(&[&whole[..], b"tail of 9"].concat()),
            "no MemProf profile begins here",
        ),
        (failed(b""), "x: it holds no allocation site"),
    ] {
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn no_byte_and_no_cut_makes_the_reader_panic() {
    let whole = Dump::default().bytes();
    for place in 0..whole.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[place] = value;
            let _ = read(&bytes[..], "x", Grain::default());
        }
        assert!(
            read(&whole[..place], "x", Grain::default()).is_err(),
            "cut at {place}"
        );
    }
}
