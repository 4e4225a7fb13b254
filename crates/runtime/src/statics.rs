//! At start, publishes variables of the program and its libraries (`.data`, `.bss`) as sites: those that the configuration lists, in a
//! guided run only those of them that its plan names. Places them as the plan says, or all static data in one tier; the emulation by time
//! gives the rest a tier, too.
//!
//! The tools read from the files of the modules which variables there are ([`isotherm_abi::config::StaticRecord`]). The range of each is
//! published as a mapping of its site, so that samples in it are attributed as those in the heap are. What no plan places goes, on a
//! machine that is emulated by time, where the heap's data without a plan does: into the fast tier while that has room.
//!
//! Libraries that the program loads later by itself are left alone, as is all static data under the page trap, which knows the
//! pool only.

use isotherm_abi::config::{RuntimeMode, StaticRecord};
use isotherm_abi::hash::SiteHashKind;
use isotherm_abi::session::NO_TIER;

use crate::config::{self, Config};
use crate::delay::{self, WritablePart};
use crate::emulation;
use crate::fast_path::HOT;
use crate::mapping::{self, Mapping};
use crate::module;
use crate::placement;
use crate::session;
use crate::site;
use crate::split;
use crate::state;
use crate::unwind::Context;

/// Publishes the static data and places it: called once, when the loader has mapped the program and its libraries, and before
/// the program runs.
pub(crate) fn start() {
    let works = matches!(HOT.state.get(), state::GUIDED | state::PROFILE);
    let Some(config) = config::current().filter(|_| works) else {
        return;
    };
    if config.statics.is_empty() && config.static_tier.is_none() && !delay::runs() {
        return;
    }
    module::refresh();
    let parts = writable_parts();
    let parts = || parts.iter().flatten();
    let pages = delay::set_segments(parts(), config.default_tier);
    session::publish_static_tiers(pages);
    if let Some(tier) = config.static_tier.filter(|_| !emulation::runs()) {
        for part in parts() {
            placement::place_static(part.range.clone(), tier);
        }
    }
    for object in config.statics {
        add(config, object);
    }
}

/// Publishes an object, and places it if the plan names it.
fn add(config: &Config, object: &StaticRecord) {
    let name = &object.module[..object.module_bytes as usize];
    let range = object.offset..object.offset + object.bytes;
    let Some(address) = module::address_of(name, range) else {
        return;
    };
    let bytes = object.bytes as usize;
    let variable = address.wrapping_add((object.name.wrapping_sub(object.offset)) as usize);
    let context = Context::of([variable]);
    let planned = config
        .entries
        .target_of(site::name(&context, SiteHashKind::Static));
    if planned.is_none() && config.mode == RuntimeMode::Guided {
        return;
    }
    let is_placed = config.static_tier.is_some() || emulation::runs();
    if let Some(target) = planned.filter(|_| !is_placed) {
        let range = address..address + bytes;
        match split::of_target(config, target) {
            Some(split) => split::place_static(&split, &range),
            None => placement::place_static(range, config.tier_of(target)),
        }
    }
    let planned_tier = planned.map(|target| config.tier_of(target));
    let site = site::of(&context, SiteHashKind::Static);
    site::add_mapping(site, object.bytes);
    if let Some(mappings) = mapping::lock() {
        mappings.add(Mapping {
            address,
            bytes,
            site,
            tier: config.static_tier.or(planned_tier).unwrap_or(NO_TIER),
        });
    }
}

/// The parts of the writable segments of all modules, as many as can have tiers.
fn writable_parts() -> [Option<WritablePart>; delay::SEGMENTS] {
    let mut parts = [const { None }; delay::SEGMENTS];
    let mut places = parts.iter_mut();
    module::for_each_writable(&mut |part| {
        if let Some(place) = places.next() {
            *place = Some(part);
        }
    });
    parts
}
