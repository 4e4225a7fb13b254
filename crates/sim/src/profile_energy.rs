//! [`profile_energy`] computes the modelled energy of a recorded run, by tier and by site, for its report: with the data of the run where a
//! plan places them, or all in one tier without a plan.
//!
//! ```text
//! epoch     lines that each site moved, its resident bytes --> activity of each tier --> model --> energy of the tier
//!
//! tier      |######## idle ########|####### accesses #######|
//!            by bytes: sites, free   by lines: sites
//! ```
//!
//! *Idle* is what the model gives for the same epoch without accesses: standby, sleep, refresh. It belongs to the bytes that hold data, and
//! to the free rest. What accesses add belongs to the sites that make them, by their lines. The run's own times are used: the energy of a
//! plan is that of its placement at the speed of the recorded run.

use std::collections::BTreeMap;

use isotherm_model::batch::Epoch;
use isotherm_model::plan::{Assignment, Plan};
use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_model::tier::TierIndex;
use isotherm_model::units::{Accesses, Bytes, Nanos};
use isotherm_pipeline::BytesPerCount;

use crate::energy::{DataLayout, EnergyModel, TierActivity};
use crate::machine::LINE;

/// The energy of a run, in joules.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProfileEnergy {
    /// Each tier, fastest first.
    pub tiers: Vec<TierJoules>,
    /// Each site with data or accesses; those to memory of no site are [`SiteId::UNATTRIBUTED`].
    pub sites: BTreeMap<SiteId, f64>,
}

/// The energy of a tier, in joules.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TierJoules {
    /// Its name in the plan; `memory` without one.
    pub name: String,
    /// Energy that the tier would have taken without accesses.
    pub idle: f64,
    /// The part of `idle` that belongs to memory without data.
    pub free: f64,
    /// Energy that accesses added to `idle`.
    pub accesses: f64,
}

/// The energy of the run; without a plan all data is in one tier of the footprint. `None` where the counts of the profile cannot be
/// converted to bytes.
#[must_use]
pub fn profile_energy(
    profile: &Profile,
    plan: Option<&Plan>,
    model: &dyn EnergyModel,
) -> Option<ProfileEnergy> {
    let per_count = BytesPerCount::of(profile)?;
    let places = Places::new(profile, plan);
    let unused = |tier: &ModelledTier| TierJoules {
        name: tier.name.clone(),
        ..TierJoules::default()
    };
    let mut energy = ProfileEnergy {
        tiers: places.tiers.iter().map(unused).collect(),
        sites: BTreeMap::new(),
    };
    let mut epochs = by_epoch(profile, per_count);
    for span in &profile.epochs {
        let held = epochs.remove(&span.epoch).unwrap_or_default();
        for (index, tier) in places.tiers.iter().enumerate() {
            let index = TierIndex(index as u32);
            let sites = places.in_tier(&held, index);
            energy.charge(model, activity(index, tier, span.span, &sites), &sites);
        }
    }
    Some(energy)
}

/// A tier and the energy model's view of its devices.
struct ModelledTier {
    name: String,
    capacity: Bytes,
    layout: DataLayout,
}

/// The activity of a site in an epoch, or a part of it.
#[derive(Clone, Copy, Debug, Default)]
struct SiteActivity {
    resident: f64,
    lines: f64,
}

type Sites = BTreeMap<SiteId, SiteActivity>;

/// The activity of each site in each epoch.
fn by_epoch(profile: &Profile, per_count: BytesPerCount) -> BTreeMap<Epoch, Sites> {
    let mut epochs = BTreeMap::<Epoch, Sites>::new();
    let mut counts = BTreeMap::<(Epoch, SiteId), (Accesses, Accesses)>::new();
    for heat in &profile.heat {
        let (accesses, streamed) = counts.entry((heat.epoch, heat.site)).or_default();
        *accesses += heat.accesses;
        *streamed += heat.streamed;
    }
    for ((epoch, site), (accesses, streamed)) in counts {
        let lines = per_count.bytes(accesses, streamed) as f64 / LINE.0 as f64;
        let sites = epochs.entry(epoch).or_default();
        sites.entry(site).or_default().lines += lines;
    }
    for row in &profile.resident {
        let sites = epochs.entry(row.epoch).or_default();
        sites.entry(row.site).or_default().resident += row.bytes.0 as f64;
    }
    epochs
}

/// Where the data of each site is.
struct Places<'a> {
    tiers: Vec<ModelledTier>,
    plan: Option<&'a Plan>,
    assignments: BTreeMap<SiteId, &'a Assignment>,
}

impl<'a> Places<'a> {
    fn new(profile: &Profile, plan: Option<&'a Plan>) -> Self {
        let tiers = match plan {
            Some(plan) => tiers_of(plan),
            None => vec![ModelledTier {
                name: "memory".to_owned(),
                capacity: profile.footprint().0,
                layout: DataLayout::PACKED,
            }],
        };
        let assignments = plan.map_or(&[][..], |plan| &plan.assignments);
        let assignments = assignments.iter().map(|site| (site.site, site));
        Self {
            tiers,
            plan,
            assignments: assignments.collect(),
        }
    }

    /// The activity of each site in a tier.
    fn in_tier(&self, held: &Sites, tier: TierIndex) -> Sites {
        let here = |(site, all): (&SiteId, &SiteActivity)| {
            let (bytes, lines) = self.shares(*site, tier);
            let here = SiteActivity {
                resident: all.resident * bytes,
                lines: all.lines * lines,
            };
            (*site, here)
        };
        held.iter().map(here).collect()
    }

    /// The shares of the bytes and of the accesses of a site that are in a tier. Memory of no site stays where the kernel puts it first.
    fn shares(&self, site: SiteId, tier: TierIndex) -> (f64, f64) {
        let whole = |of| if of == tier { (1.0, 1.0) } else { (0.0, 0.0) };
        let Some(plan) = self.plan.filter(|_| site != SiteId::UNATTRIBUTED) else {
            return whole(TierIndex::FASTEST);
        };
        let Some(assigned) = self.assignments.get(&site) else {
            return whole(plan.unassigned_tier(site));
        };
        if !assigned.is_divided() {
            return whole(assigned.tier);
        }
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let values = assigned.shares().map(|(_, value, _)| value);
        let value = values.fold(0, u64::saturating_add);
        (
            share(assigned.bytes_in(tier).0, assigned.weight.0).min(1.0),
            share(assigned.value_in(tier), value),
        )
    }
}

/// The tiers of a plan; the tier of a colour consists of the devices of that colour.
fn tiers_of(plan: &Plan) -> Vec<ModelledTier> {
    let tier = |(tier, index): (&isotherm_model::tier::Tier, u32)| {
        let mut coloured = plan.colours.iter();
        let devices = coloured.find(|it| it.tier == TierIndex(index));
        ModelledTier {
            name: tier.name.clone(),
            capacity: devices.map_or(tier.capacity, |it| {
                Bytes(it.device.0.saturating_mul(it.devices.into()))
            }),
            layout: DataLayout {
                device: devices.map(|it| it.device),
                is_interleaved: false,
            },
        }
    };
    plan.tiers.all().iter().zip(0..).map(tier).collect()
}

/// The activity of a tier in an epoch. Profiles do not distinguish loads from stores: all lines count as read.
fn activity(tier: TierIndex, modelled: &ModelledTier, span: Nanos, sites: &Sites) -> TierActivity {
    let used: f64 = sites.values().map(|site| site.resident).sum();
    let lines: f64 = sites.values().map(|site| site.lines).sum();
    TierActivity {
        tier,
        capacity: modelled.capacity,
        used: Bytes(used as u64),
        span,
        reads: lines as u64,
        writes: 0,
        moved_out: Bytes::ZERO,
        moved_in: Bytes::ZERO,
        layout: modelled.layout,
    }
}

impl ProfileEnergy {
    /// Adds the energy of a tier in an epoch, and divides it among its sites.
    fn charge(&mut self, model: &dyn EnergyModel, activity: TierActivity, sites: &Sites) {
        let all = model.energy(&activity).energy.joules();
        let idle = model.energy(&TierActivity {
            reads: 0,
            ..activity
        });
        let idle = idle.energy.joules().min(all);
        let used: f64 = sites.values().map(|site| site.resident).sum();
        let lines: f64 = sites.values().map(|site| site.lines).sum();
        // More data than the tier holds would spill; all of its idle energy is that of data then.
        let capacity = (activity.capacity.0 as f64).max(used).max(1.0);
        for (site, here) in sites.iter().filter(|(_, it)| it.resident + it.lines > 0.0) {
            let of_lines = (all - idle) * here.lines / lines.max(f64::MIN_POSITIVE);
            *self.sites.entry(*site).or_default() += idle * here.resident / capacity + of_lines;
        }
        let sum = &mut self.tiers[activity.tier.0 as usize];
        sum.idle += idle;
        sum.free += idle * (1.0 - used / capacity);
        sum.accesses += all - idle;
    }
}

#[cfg(test)]
mod tests {
    use super::{ProfileEnergy, profile_energy};
    use crate::energy::{DramPower, FlatPower};
    use isotherm_model::batch::{Epoch, Process, SourceReport};
    use isotherm_model::colour::{Colour, ColourDevices};
    use isotherm_model::plan::Plan;
    use isotherm_model::profile::{EpochSpan, Heat, Meta, Profile, Resident};
    use isotherm_model::site::{Site, SiteId, SiteKind};
    use isotherm_model::tier::{Placement, Tier, TierIndex, TierKind, Tiers};
    use isotherm_model::units::{Accesses, Bytes, Nanos};
    use isotherm_policy::{AllFast, PlanRequest, plan};

    const HOT: SiteId = SiteId(20);
    const COLD: SiteId = SiteId(21);
    const GIB: u64 = 1 << 30;

    /// Two epochs of a second: 1 GiB that a million accesses reach each second, and 3 GiB without an access.
    fn profile() -> Profile {
        let mut profile = Profile::new(Meta::default());
        let epochs = [Epoch(0), Epoch(1)];
        let span = |epoch| EpochSpan {
            epoch,
            span: Nanos(1_000_000_000),
        };
        profile.epochs = epochs.map(span).to_vec();
        profile.sites = [HOT, COLD].map(|id| Site::new(id, SiteKind::Heap)).to_vec();
        for (site, bytes) in profile.sites.iter_mut().zip([GIB, 3 * GIB]) {
            site.peak_rss = Bytes(bytes);
        }
        for epoch in epochs {
            let resident = |(site, bytes)| Resident {
                epoch,
                site,
                bytes: Bytes(bytes),
            };
            let rows = [(HOT, GIB), (COLD, 3 * GIB)];
            profile.resident.extend(rows.map(resident));
            profile.heat.push(Heat {
                epoch,
                process: Process::default(),
                site: HOT,
                address: 0,
                object: None,
                accesses: Accesses(1_000_000),
                streamed: Accesses::ZERO,
                served: Accesses::ZERO,
            });
        }
        profile.sources = vec![SourceReport {
            taken: 9,
            usable: 9,
            ..SourceReport::new("memprof", "")
        }];
        profile
    }

    /// A plan with the cold site in the slow tier, for tiers of these capacities.
    fn split(capacities: [u64; 2]) -> Plan {
        let tier = |(name, number, capacity): (&str, u32, u64)| Tier {
            name: name.to_owned(),
            kind: TierKind::Nodes(vec![number]),
            capacity: Bytes(capacity),
            placement: Placement::Preferred,
            latency: None,
            read_bandwidth: None,
            write_bandwidth: None,
            loaded: Vec::new(),
            reason: String::new(),
        };
        let tiers = [("fast", 0, capacities[0]), ("slow", 1, capacities[1])];
        let tiers = Tiers::new(tiers.map(tier).to_vec()).expect("tiers");
        let profile = profile();
        let items = isotherm_pipeline::items(
            &profile,
            isotherm_model::plan::Value::Accesses,
            isotherm_model::plan::Weight::PeakRss,
        );
        let mut plan = plan(&PlanRequest::new(&AllFast, &items, &tiers));
        for site in plan.assignments.iter_mut().filter(|it| it.site == COLD) {
            site.tier = TierIndex(1);
        }
        plan
    }

    fn is_about(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    /// The sites and the free rest have all that the tiers take.
    fn adds_up(energy: &ProfileEnergy) {
        let tiers = energy.tiers.iter();
        let tiers: f64 = tiers.map(|it| it.idle + it.accesses - it.free).sum();
        let sites: f64 = energy.sites.values().sum();
        assert!(is_about(tiers, sites), "{energy:?}");
    }

    #[test]
    fn without_a_plan_idle_energy_is_divided_by_bytes_and_that_of_accesses_by_lines() {
        let energy = profile_energy(&profile(), None, &FlatPower::ROUND).expect("accesses");
        adds_up(&energy);
        let [memory] = &energy.tiers[..] else {
            panic!("{energy:?}");
        };
        // 4 GiB at 100 mW each for two seconds, and two million lines of 10,240 pJ.
        assert!(
            is_about(memory.idle, 0.8) && is_about(memory.free, 0.0),
            "{memory:?}"
        );
        assert!(is_about(memory.accesses, 2e6 * 10_240e-12), "{memory:?}");
        assert!(
            is_about(energy.sites[&HOT], 0.2 + memory.accesses),
            "{energy:?}"
        );
        assert!(is_about(energy.sites[&COLD], 0.6), "{energy:?}");
    }

    #[test]
    fn a_plan_s_tiers_have_the_energy_of_their_own_data_and_free_memory_is_told_apart() {
        let plan = split([2 * GIB, 4 * GIB]);
        let energy = profile_energy(&profile(), Some(&plan), &FlatPower::ROUND).expect("accesses");
        adds_up(&energy);
        let [fast, slow] = &energy.tiers[..] else {
            panic!("{energy:?}");
        };
        assert_eq!((&*fast.name, &*slow.name), ("fast", "slow"));
        assert!(
            is_about(fast.idle, 0.4) && is_about(fast.free, 0.2),
            "{fast:?}"
        );
        // 50 mW for each GiB of the slow tier, of which a quarter is free.
        assert!(
            is_about(slow.idle, 0.4) && is_about(slow.free, 0.1),
            "{slow:?}"
        );
        assert!(is_about(slow.accesses, 0.0), "{slow:?}");
        assert!(is_about(energy.sites[&COLD], 0.3), "{energy:?}");
    }

    #[test]
    fn the_devices_of_a_colour_that_are_not_accessed_sleep() {
        let coloured = |device| {
            let mut plan = split([2 * GIB, 4 * GIB]);
            let devices = |(colour, tier, devices)| ColourDevices {
                colour,
                tier: TierIndex(tier),
                devices,
                device: Bytes(device),
            };
            plan.colours = [(Colour::Hot, 0, 1), (Colour::Cold, 1, 3)]
                .map(devices)
                .to_vec();
            plan
        };
        let plan = coloured(GIB);
        let energy = profile_energy(&profile(), Some(&plan), &DramPower::DDR4).expect("accesses");
        adds_up(&energy);
        // Three ranks in self-refresh for two seconds, but for a first millisecond of each.
        let slow = &energy.tiers[1];
        assert!((slow.idle - 3.0 * 2.0 * 0.288).abs() < 0.01, "{slow:?}");
        assert!(energy.tiers[0].accesses > 0.1, "{energy:?}");
    }

    #[test]
    fn page_touches_tell_no_energy_and_an_empty_profile_has_none() {
        let mut touched = profile();
        touched.sources[0].name = "trapped-pages".to_owned();
        assert_eq!(profile_energy(&touched, None, &FlatPower::ROUND), None);
        let mut empty = Profile::new(Meta::default());
        empty.sources = profile().sources;
        let energy = profile_energy(&empty, None, &FlatPower::ROUND).expect("a source");
        assert!(energy.sites.is_empty());
    }
}
