//! The configuration file, as the preloaded library checks it.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

use isotherm_abi::config::LeadingRecord;
use isotherm_act::configuration::Configuration;
use isotherm_act::splits::Split;
use isotherm_model::emulation::Emulation;
use isotherm_model::plan::PlacedPart;
use isotherm_model::site::SiteId;
use isotherm_model::tier::{TierIndex, Tiers};
use isotherm_model::units::Bytes;

use super::seeds::Seeds;
use crate::config::{self, Config};
use crate::plan::Target;

pub(crate) fn check(data: &[u8]) -> bool {
    is_taken(data)
}

/// True where the library takes a configuration. Each number that it then uses without another look
/// is used here.
pub(crate) fn is_taken(data: &[u8]) -> bool {
    let directory = tempfile::tempdir().expect("a directory for the file");
    let path = directory.path().join("config");
    std::fs::write(&path, data).expect("the file can be written");
    let name = CString::new(path.as_os_str().as_bytes()).expect("a path without zero bytes");
    // The library keeps its one configuration for ever, so each that is taken stays in memory here: a few KiB.
    match config::load(&name) {
        Ok(Some(config)) => {
            is_sound(&config);
            true
        }
        Ok(None) | Err(_) => false,
    }
}

fn is_sound(config: &Config) {
    assert!((1..=isotherm_abi::MAX_DEPTH).contains(&config.depth));
    assert!(config.pool_bytes.is_multiple_of(isotherm_abi::CHUNK_BYTES));
    let is_tier = |tier: u32| (tier as usize) < config.tiers.len();
    assert!(config.tiers.is_empty() || is_tier(config.default_tier));
    assert!(config.tiers.iter().all(|tier| tier.kind <= 2));
    assert!(config.static_tier.is_none_or(is_tier));
    for object in config.statics {
        assert!(object.module_bytes as usize <= object.module.len());
        assert!(object.offset.checked_add(object.bytes).is_some());
    }
    // A search ends and answers a tier that there is, for the names of the seeds and for others.
    for hash in (0..256).chain([u64::MAX]) {
        if let Some(target) = config.entries.target_of(hash) {
            assert!(is_tier(config.tier_of(target)));
            is_placed(config, target);
        }
        let of_caller = config.callers.tier_of(hash, config.default_tier);
        assert!(of_caller.is_none_or(|tier| config.tiers.is_empty() || is_tier(tier)));
    }
}

/// Bytes of an object that is cut into pieces.
const OBJECT: usize = 1 << 30;

/// The pieces of an object follow one another, and are in tiers that there are.
fn is_placed(config: &Config, target: Target) {
    let index = match target {
        Target::Split(index) => index,
        Target::Tier(_) => return,
        Target::Leading(index) => {
            let record = config.leading.get(index).expect("each that is named");
            assert!((record.first_tier as usize) < config.tiers.len());
            return;
        }
    };
    let split = config
        .splits
        .get(index)
        .expect("each split that is named exists");
    let mut end = 0;
    for (piece, tier) in split.pieces(0..OBJECT) {
        assert!(piece.start == end && !piece.is_empty() && piece.start.is_multiple_of(4096));
        assert!((tier as usize) < config.tiers.len());
        end = piece.end;
    }
    assert_eq!(end, OBJECT);
}

/// A part in so many pages.
fn part(start: u64, end: u64, tier: u32) -> PlacedPart {
    PlacedPart {
        start: Bytes(start << 12),
        end: Bytes(end << 12),
        tier: TierIndex(tier),
        value: 1,
        weight: Bytes(1),
    }
}

pub(crate) fn seeds() -> Seeds {
    let tiers = Tiers::emulated(Bytes(64 << 20), Bytes(1 << 30), Emulation::TMP);
    let mut guided = Configuration::online(4, tiers, TierIndex(1));
    guided.mode = isotherm_abi::config::RuntimeMode::Guided;
    guided.entries = vec![(SiteId(0x77), TierIndex(0)), (SiteId(0x87), TierIndex(1))];
    let mut split = guided.clone();
    for (site, parts) in [
        (0x77, vec![part(1, 9, 1), part(9, 1 << 20, 0)]),
        (0x97, vec![part(0, 1, 1)]),
    ] {
        let tier = TierIndex(0);
        split.splits.insert(SiteId(site), Split { tier, parts });
    }
    let mut leading = guided.clone();
    let record = LeadingRecord {
        first_tier: 0,
        later_tier: 1,
        bytes: 1 << 25,
    };
    leading.leading.push((record, vec![SiteId(0x87)]));
    [
        ("guided", guided),
        ("split", split),
        ("leading", leading),
        ("profile", Configuration::profile(8)),
    ]
    .into_iter()
    .filter_map(|(name, configuration)| Some((name, configuration.to_bytes().ok()?)))
    .collect()
}
