//! [`write()`] writes a plan as text that [`read`](super::read()) reads back. This file also has the first line of a plan file ([`FORMAT`],
//! [`VERSION`]), which the reader checks.

use std::fmt::Write as _;

use isotherm_model::emulation::Emulation;
use isotherm_model::loaded_latency::LoadPoint;
use isotherm_model::plan::{Assignment, Caller, ExpectedTimes, Plan};
use isotherm_model::tier::{Tier, TierIndex, TierKind};
use isotherm_model::units::{Bytes, Nanos};

use super::words::{always_quoted, escaped, quoted};

/// First word of a plan file.
pub(super) const FORMAT: &str = "isotherm-plan";

/// Version of the format that is written and read.
pub(super) const VERSION: u32 = 1;

/// Writes a plan as text that [`read`](super::read()) reads back.
#[must_use]
pub fn write(plan: &Plan) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    line(format!("{FORMAT} {VERSION}"));
    if plan.tiers.emulates() {
        line("# emulated: both tiers are ordinary memory, one of them slowed".into());
    }
    line("# To move a site, change the tier word of its line.".into());
    line(format!("policy {}", quoted(&plan.policy)));
    line(format!("value {}  # {}", plan.value.word(), plan.valued()));
    line(format!("counted {}", plan.counted.word()));
    line(format!("weight {}", plan.weight.word()));
    line(format!("depth {}", plan.depth));
    let words = plan.command.iter();
    let words: String = words
        .map(|word| format!(" {}", always_quoted(word)))
        .collect();
    line(format!("command{words}"));
    for tier in plan.tiers.all() {
        line(tier_line(tier));
    }
    let name = |index: TierIndex| {
        plan.tiers
            .get(index)
            .map_or_else(|| index.0.to_string(), |tier| quoted(&tier.name))
    };
    line(format!("default {}", name(plan.default_tier)));
    for colour in &plan.colours {
        line(super::colours::write(colour, name));
    }
    line(format!(
        "standing planned {} first-touch {} bound {} total {}",
        plan.standing.planned, plan.standing.first_touch, plan.standing.bound, plan.standing.total
    ));
    if let Some(expected) = plan.expected {
        line(expected_line(expected));
    }
    let mut sites: Vec<&Assignment> = plan.assignments.iter().collect();
    sites.sort_by(|a, b| a.hotter_first(b));
    for site in sites {
        line(site_line(site, &name(site.tier)));
        let leading = super::leading::write(site, name);
        let parts = super::parts::write(site, name).into_iter();
        parts.chain(leading).for_each(&mut line);
    }
    super::small::write(plan).into_iter().for_each(&mut line);
    super::frames::write(plan).into_iter().for_each(&mut line);
    out
}

fn expected_line(expected: ExpectedTimes) -> String {
    let (slow, first_touch) = (expected.all_slow, expected.first_touch);
    let (planned, bound) = (expected.planned, expected.bound);
    format!(
        "expected all-slow {slow:.3} first-touch {first_touch:.3} planned {planned:.3} bound {bound:.3}  # times over all fast"
    )
}

fn tier_line(tier: &Tier) -> String {
    let mut text = format!("tier {} ", quoted(&tier.name));
    match &tier.kind {
        TierKind::Nodes(nodes) => {
            let nodes: Vec<String> = nodes.iter().map(ToString::to_string).collect();
            text.push_str(&format!("nodes {}", quoted(&nodes.join(","))));
        }
        TierKind::EmulatedFast => text.push_str("emulated-fast"),
        TierKind::EmulatedSlow(_) => text.push_str("emulated-slow"),
    }
    let mut field = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            // Writing into a String cannot fail.
            let _ = write!(text, " {name} {value}");
        }
    };
    field("capacity", Some(tier.capacity.exact()));
    field("placement", Some(tier.placement.word().to_owned()));
    field("latency", tier.latency.map(Nanos::exact));
    let bandwidth = |bandwidth: Option<u64>| bandwidth.map(|it| it.to_string());
    field("read-bandwidth", bandwidth(tier.read_bandwidth));
    field("write-bandwidth", bandwidth(tier.write_bandwidth));
    let point = |point: &LoadPoint| format!("{}:{}", point.bandwidth, point.latency.exact());
    let points: Vec<String> = tier.loaded.iter().map(point).collect();
    field("loaded", (!points.is_empty()).then(|| points.join(",")));
    match tier.kind {
        TierKind::EmulatedSlow(Emulation::Time(costs)) => {
            field("latency-factor", Some(costs.latency.to_string()));
            field("bandwidth-factor", Some(costs.bandwidth.to_string()));
            field("migrate", Some(costs.migrate.exact()));
            if let Some(shared) = costs.shared {
                field("fast-bandwidth-limit", shared.fast().map(|it| it.exact()));
                field("bandwidth-limit", shared.slow().map(|it| it.exact()));
                field("machine", shared.machine().map(|it| it.to_string()));
                field("machine-fast", shared.capacity().map(Bytes::exact));
            }
        }
        TierKind::EmulatedSlow(Emulation::PageTrap(costs)) => {
            field("period", Some(costs.period.exact()));
            field("access", Some(costs.access.exact()));
            field("hot", Some(costs.hot.exact()));
            field("migrate", Some(costs.migrate.exact()));
        }
        TierKind::EmulatedFast | TierKind::Nodes(_) => {}
    }
    if !tier.reason.is_empty() {
        text.push_str("  # ");
        text.push_str(&escaped(&tier.reason, false));
    }
    text
}

fn site_line(site: &Assignment, tier: &str) -> String {
    let Assignment { value, weight, .. } = site;
    let mut text = format!(
        "site {} {tier} value {value} weight {}",
        site.site,
        weight.exact()
    );
    match site.caller {
        Caller::Unknown => {}
        Caller::None => text.push_str(" caller none"),
        Caller::Direct { id, has_others } => {
            let others = if has_others { "+" } else { "" };
            text.push_str(&format!(" caller {id}{others}"));
        }
    }
    if !(site.label.is_empty() && site.reason.is_empty()) {
        text.push_str("  #");
    }
    if !site.label.is_empty() {
        text.push(' ');
        text.push_str(&escaped(&site.label, true));
    }
    if !site.reason.is_empty() {
        text.push_str(" -- ");
        text.push_str(&escaped(&site.reason, false));
    }
    text
}
