//! The configuration file, as the preloaded library checks it.
//!
//! The library's own module is compiled in here. Linking the library would replace `malloc` of the
//! fuzzer, and the module has no other way in.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use isotherm_act::configuration::Configuration;
use isotherm_model::site::SiteId;
use isotherm_model::tier::{Emulation, TierIndex, Tiers};
use isotherm_model::units::Bytes;

use super::Seeds;

#[path = "../../../crates/runtime/src/config.rs"]
#[allow(
    dead_code,
    clippy::all,
    reason = "a part of another crate, judged there"
)]
mod config;

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
    let taken = config::load(&name).is_some_and(|config| {
        is_sound(&config);
        true
    });
    unmap(&path);
    taken
}

fn is_sound(config: &config::Config) {
    assert!((1..=isotherm_abi::MAX_DEPTH).contains(&config.depth));
    assert!(config.pool_bytes.is_multiple_of(isotherm_abi::CHUNK_BYTES));
    let is_tier = |tier: u32| (tier as usize) < config.tiers.len();
    assert!(config.tiers.is_empty() || is_tier(config.default_tier));
    assert!(config.tiers.iter().all(|tier| tier.kind <= 2));
    if !config.entries.is_empty() {
        assert!(config.entries.len().is_power_of_two());
        // A search ends at an empty slot.
        assert!(config.entries.iter().any(|entry| entry.hash == 0));
    }
    let mut used = config.entries.iter().filter(|entry| entry.hash != 0);
    assert!(used.all(|entry| is_tier(entry.tier)));
}

/// Takes back what the library mapped: it keeps its one configuration for ever, while here are
/// thousands.
fn unmap(path: &Path) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let name = path.to_string_lossy();
    for line in maps.lines().filter(|line| line.ends_with(&*name)) {
        let range = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'));
        let (start, end) = range.expect("maps has ranges");
        let number = |text| usize::from_str_radix(text, 16).expect("of hexadecimal numbers");
        let (start, end) = (number(start), number(end));
        let first = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: needed because nothing else unmaps it. The range maps the file of this call alone
        // (its directory has a fresh name), and the only value with references into it, the
        // configuration, went out of scope in `is_taken` before this.
        unsafe { rustix::mm::munmap(first, end - start) }.expect("was mapped");
    }
}

pub(crate) fn seeds() -> Seeds {
    let tiers = Tiers::emulated(Bytes(64 << 20), Bytes(1 << 30), Emulation::PAPER);
    let mut guided = Configuration::online(4, tiers, TierIndex(1));
    guided.mode = isotherm_abi::config::Mode::Guided;
    guided.entries = vec![(SiteId(0x77), TierIndex(0)), (SiteId(0x87), TierIndex(1))];
    [("guided", guided), ("profile", Configuration::profile(8))]
        .into_iter()
        .filter_map(|(name, configuration)| Some((name, configuration.to_bytes().ok()?)))
        .collect()
}
