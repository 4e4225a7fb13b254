//! Draws the hit rates of a simulation as bars of text, one for each capacity: a part for first touch, one for what the first policy adds,
//! and one for what the oracle would add to that.
//!
//! ```text
//! hit rate: █ first touch, ▓ payback beyond it, ░ up to the oracle
//!   8 MiB  ██████████████████████▓▓▓▓▓▓▓▓▓▓▓░░  84 %
//!   4 MiB  ████████▓▓▓▓▓▓▓▓▓▓▓▓▓▓░░░░░░         55 %
//! ```

use isotherm_model::units::Bytes;

use super::{SimulatedCapacity, SimulatedPolicy};
use crate::words::percent;

/// Columns of a hit rate of 1.
const WIDTH: f64 = 40.0;

/// One bar a capacity, largest first; nothing where there is no policy between the bounds. The
/// policy is the first one asked for.
pub(super) fn bars(capacities: &[SimulatedCapacity]) -> String {
    let mut text = String::new();
    let label = |at: &SimulatedCapacity| Bytes(at.fast_bytes).to_string();
    let labels: Vec<String> = capacities.iter().map(label).collect();
    let widest = labels.iter().map(String::len).max().unwrap_or(0);
    for (at, label) in capacities.iter().zip(&labels) {
        let [first, policy, .., oracle] = &at.policies[..] else {
            return String::new();
        };
        if text.is_empty() {
            text = format!(
                "\nhit rate: █ {}, ▓ {} beyond it, ░ up to the {}\n",
                first.policy, policy.policy, oracle.policy
            );
        }
        let bar = bar(first, policy, oracle);
        let rate = percent(policy.hit_rate);
        text += &format!("{label:>widest$}  {bar:<40}  {rate}\n");
    }
    text
}

/// A bar: solid for what first touch serves, dark for what the policy adds, light for the rest up to the oracle. A policy
/// that serves less than first touch is solid to its own rate.
fn bar(first: &SimulatedPolicy, policy: &SimulatedPolicy, oracle: &SimulatedPolicy) -> String {
    let columns = |rate: f64| (rate.clamp(0.0, 1.0) * WIDTH).round() as usize;
    let solid = columns(first.hit_rate.min(policy.hit_rate));
    let dark = columns(policy.hit_rate).saturating_sub(solid);
    let light = columns(oracle.hit_rate).saturating_sub(solid + dark);
    ["█".repeat(solid), "▓".repeat(dark), "░".repeat(light)].concat()
}
