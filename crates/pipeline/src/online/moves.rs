//! [`select`] chooses those moves of an epoch's plan that pay for themselves, and sets the tier of each such [`Candidate`]: demotions that
//! relieve an overfull tier, and promotions with the demotions that make room for them. It returns the sites whose spilled part can now
//! enter their tier.
//!
//! ```text
//! gain  = accesses a second * (cost there - cost here) * horizon       (of the part that fits)
//! price = pages * cost of moving a page + gain lost by demotions that make room
//! moved where gain > hysteresis * price
//! ```

use std::collections::BTreeSet;

use isotherm_model::site::SiteId;
use isotherm_model::tier::TierIndex;
use isotherm_model::units::Bytes;

use super::OnlineConfig;

/// A site, its present tier and its tier in the plan. Hottest first in every list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) site: SiteId,
    pub(super) bytes: Bytes,
    /// Accesses a second, the lower average.
    pub(super) low: f64,
    /// Accesses a second, the higher average.
    pub(super) high: f64,
    /// Its tier before this decision.
    pub(super) was: TierIndex,
    /// Its tier by the decisions so far.
    pub(super) at: TierIndex,
    /// Its tier in the plan.
    pub(super) target: TierIndex,
}

/// Moves candidates (their `at`) as far as it pays. Returns the sites that stay in a tier from
/// which others were demoted because it was overfull: their spilled part can enter it now.
pub(super) fn select(config: &OnlineConfig, candidates: &mut [Candidate]) -> BTreeSet<SiteId> {
    let mut refreshed = BTreeSet::new();
    for tier in 0..config.tiers.slowest().0 {
        relieve(config, candidates, TierIndex(tier), &mut refreshed);
    }
    // Each pass moves at least one candidate to its target, where it stays: there are at most as
    // many passes as candidates, in practice one or two.
    while promote(config, candidates) {}
    refreshed
}

fn cost(config: &OnlineConfig, tier: TierIndex) -> f64 {
    config
        .access
        .get(tier.0 as usize)
        .map_or(0.0, |c| c.0 as f64)
}

/// Nanoseconds saved over the horizon by serving this rate from `to` instead of `from`.
fn gain(config: &OnlineConfig, rate: f64, from: TierIndex, to: TierIndex) -> f64 {
    let accesses = rate * config.accesses_per_sample * config.horizon.0 as f64 / 1e9;
    accesses * (cost(config, from) - cost(config, to))
}

/// Nanoseconds to move the given bytes.
fn price(config: &OnlineConfig, bytes: f64) -> f64 {
    (bytes / config.page.0.max(1) as f64).ceil() * config.move_page.0 as f64
}

/// Bytes of room in each tier; negative where it is overfull.
fn rooms(config: &OnlineConfig, candidates: &[Candidate]) -> Vec<f64> {
    let tiers = config.tiers.all().iter();
    let mut rooms: Vec<f64> = tiers.map(|tier| tier.capacity.0 as f64).collect();
    for candidate in candidates {
        if let Some(room) = rooms.get_mut(candidate.at.0 as usize) {
            *room -= candidate.bytes.0 as f64;
        }
    }
    rooms
}

/// One pass over the requested promotions, hottest first. True if any site moved.
fn promote(config: &OnlineConfig, candidates: &mut [Candidate]) -> bool {
    let mut moved = false;
    let mut rooms = rooms(config, candidates);
    for index in 0..candidates.len() {
        let site = candidates[index];
        if site.target >= site.at {
            continue;
        }
        let bytes = site.bytes.0 as f64;
        let whole = gain(config, site.low, site.at, site.target);
        // A move that does not pay into free room does not pay either if others must make room.
        if whole <= config.hysteresis * price(config, bytes) {
            continue;
        }
        let mut lacking = bytes - rooms[site.target.0 as usize];
        let mut victims = Vec::new();
        let mut lost = 0.0;
        for (other, victim) in candidates.iter().enumerate().rev() {
            if lacking <= 0.0 {
                break;
            }
            if victim.at == site.target && victim.target > victim.at {
                lacking -= victim.bytes.0 as f64;
                lost += gain(config, victim.high, victim.target, victim.at)
                    + price(config, victim.bytes.0 as f64);
                victims.push(other);
            }
        }
        let fits = (bytes - lacking.max(0.0)).max(0.0);
        let share = if bytes == 0.0 { 1.0 } else { fits / bytes };
        let gained = whole * share;
        if gained > config.hysteresis * (price(config, fits) + lost) {
            for change in victims.into_iter().chain([index]) {
                let change = &mut candidates[change];
                rooms[change.at.0 as usize] += change.bytes.0 as f64;
                rooms[change.target.0 as usize] -= change.bytes.0 as f64;
                change.at = change.target;
            }
            moved = true;
        }
    }
    moved
}

/// Demotes sites from an overfull tier, coldest first, if the plan does not keep them there and the
/// spilled bytes of the others are worth more.
fn relieve(
    config: &OnlineConfig,
    candidates: &mut [Candidate],
    tier: TierIndex,
    refreshed: &mut BTreeSet<SiteId>,
) {
    let keeps = |c: &Candidate| c.at == tier && c.target <= tier;
    let kept: Bytes = candidates
        .iter()
        .filter(|c| keeps(c))
        .map(|c| c.bytes)
        .sum();
    let rate: f64 = candidates.iter().filter(|c| keeps(c)).map(|c| c.low).sum();
    let mut over = -rooms(config, candidates)[tier.0 as usize];
    let capacity = config.tiers.all()[tier.0 as usize].capacity.0 as f64;
    let mut relieved = false;
    for index in (0..candidates.len()).rev() {
        let site = candidates[index];
        if over <= 0.0 || kept == Bytes::ZERO {
            break;
        }
        if site.at != tier || site.target <= tier {
            continue;
        }
        let bytes = site.bytes.0 as f64;
        let freed = bytes.min(over);
        let comes = freed.min(kept.0 as f64);
        let share = comes / kept.0 as f64;
        let gained = gain(config, rate * share, site.target, tier);
        let lost = gain(config, site.high, site.target, tier);
        // No more of it can be in the tier: the rest spilled.
        let leaves = price(config, bytes.min(capacity));
        if gained > config.hysteresis * (lost + leaves + price(config, comes)) {
            candidates[index].at = site.target;
            over -= bytes;
            relieved = true;
        }
    }
    if relieved {
        refreshed.extend(candidates.iter().filter(|c| keeps(c)).map(|c| c.site));
    }
}
