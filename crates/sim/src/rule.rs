//! [`Rule`] is the rule by which pages get their tier in a replay, made from the name of a policy: an epoch policy, a plan made before the
//! run (by a site policy or by ATMem's chunk selection), or cache mode; and, for the interleaved baseline, an even spread over the devices
//! of both tiers.

use std::collections::BTreeMap;

use isotherm_model::page::PageIndex;
use isotherm_model::plan::Item;
use isotherm_model::port::{EpochPolicy, SitePolicy};
use isotherm_model::site::SiteId;
use isotherm_model::tier::TierIndex;
use isotherm_model::units::Bytes;
use isotherm_pipeline::CountedObject;
use isotherm_policy::chunks::{ChunkParameters, select};
use isotherm_policy::{
    ATMEM, PlanRequest, chunk_parameters_from_text, epoch, plan, policy_from_text,
};

use crate::cache_mode::{CACHE_MODE, CacheMode};
use crate::machine::{LINE, Traffic};
use crate::request::{SimulateError, SimulationRequest};

pub(crate) enum Rule {
    /// An epoch policy, which decides again at every turn of an epoch.
    Epoch(Box<dyn EpochPolicy>),
    /// By a plan made before the run: marked pages enter while there is room, the others never.
    Planned(Vec<bool>),
    /// Fast memory is a cache of slow memory.
    Cached(CacheMode),
    /// All pages over all devices: the number of devices of the fast tier, and that of both tiers.
    Interleaved(u64, u64),
}

impl Rule {
    /// The policy with this name and its parameters, for a fast tier of the given number of pages.
    pub(crate) fn new(
        request: &SimulationRequest<'_>,
        text: &str,
        pages: u32,
    ) -> Result<Self, SimulateError> {
        let costs = request
            .machine()
            .move_costs(request.accesses_per_count.max(1));
        if let Some(policy) = epoch::by_name(text, costs) {
            return Ok(Self::Epoch(policy));
        }
        if text == CACHE_MODE {
            let page = request.workload.page();
            let cache = CacheMode::new(pages, page, request.accesses_per_count);
            return Ok(Self::Cached(cache));
        }
        let name = text.split('=').next().unwrap_or_default().trim();
        if name != ATMEM && isotherm_policy::by_name(name).is_none() {
            return Err(SimulateError::UnknownPolicy(text.to_owned()));
        }
        let wrong =
            |error: isotherm_policy::PolicyTextError| SimulateError::Parameter(error.to_string());
        let workload = request.workload;
        let fast = Bytes(workload.page().0.saturating_mul(u64::from(pages)));
        if name == ATMEM {
            let parameters = chunk_parameters_from_text(text, 1).map_err(wrong)?;
            of_chunks(request, &parameters, fast)
        } else {
            let policy = policy_from_text(text).map_err(wrong)?;
            of_sites(request, &*policy, fast)
        }
    }

    /// The capacity of the fast tier in pages; for a policy that adds devices, that of as many devices as hold the pages it takes.
    pub(crate) fn capacity(&self, device: u32, adds_devices: bool) -> u32 {
        match self {
            Self::Planned(fast) if adds_devices => {
                let pages = fast.iter().filter(|fast| **fast).count() as u64;
                let devices = pages.div_ceil(u64::from(device.max(1))).max(1);
                u32::try_from(devices.saturating_mul(device.into())).unwrap_or(u32::MAX)
            }
            Self::Epoch(_) | Self::Planned(_) | Self::Cached(_) | Self::Interleaved(..) => device,
        }
    }

    /// True if a page that is touched for the first time may enter the fast tier.
    pub(crate) fn admits(&self, page: PageIndex) -> bool {
        match self {
            Self::Epoch(_) | Self::Cached(_) | Self::Interleaved(..) => true,
            Self::Planned(fast) => fast[page.at()],
        }
    }
}

/// The pages of the sites that a policy takes.
fn of_sites(
    request: &SimulationRequest<'_>,
    policy: &dyn SitePolicy,
    fast: Bytes,
) -> Result<Rule, SimulateError> {
    let workload = request.workload;
    if !workload.has_sites() {
        return Err(SimulateError::NeedsSites(policy.name().to_owned()));
    }
    // The plan is replayed, not carried out.
    let machine = request.machine();
    let tiers = machine
        .tiers(fast, workload.bytes())
        .map_err(|error| SimulateError::Parameter(error.to_string()))?;
    let mut items = workload.items();
    if policy.balances() {
        in_bytes_per_second(&mut items, request);
    }
    let plan = plan(&PlanRequest::new(policy, &items, &tiers));
    let tier_of: BTreeMap<SiteId, TierIndex> =
        plan.assignments.iter().map(|a| (a.site, a.tier)).collect();
    let is_fast = |site| tier_of.get(&site) == Some(&TierIndex::FASTEST);
    let places = workload.places().iter();
    Ok(Rule::Planned(
        places.map(|place| is_fast(place.site)).collect(),
    ))
}

/// Turns the accesses of the sites into the bytes a second that the program asks for.
fn in_bytes_per_second(items: &mut [Item], request: &SimulationRequest<'_>) {
    let scale = request.accesses_per_count.max(1);
    let reads = items.iter().map(|item| item.value.saturating_mul(scale));
    let all = Traffic {
        reads: reads.fold(0, u64::saturating_add),
        writes: 0,
    };
    let time = request.machine().time_without_limit(all).0.max(1);
    for item in items {
        let bytes = u128::from(item.value) * u128::from(scale) * u128::from(LINE.0);
        let rate = bytes.saturating_mul(1_000_000_000) / u128::from(time);
        item.value = u64::try_from(rate).unwrap_or(u64::MAX);
    }
}

/// The pages in the ranges that ATMem selects.
fn of_chunks(
    request: &SimulationRequest<'_>,
    parameters: &ChunkParameters,
    fast: Bytes,
) -> Result<Rule, SimulateError> {
    let workload = request.workload;
    if !workload.has_sites() {
        return Err(SimulateError::NeedsSites(ATMEM.to_owned()));
    }
    let objects: Vec<_> = workload.objects().iter().map(CountedObject::view).collect();
    let selection = select(&objects, parameters, fast)
        .map_err(|error| SimulateError::Parameter(error.to_string()))?;
    let ranges = &selection.ranges;
    let places = workload.places().iter();
    let is_in_range = |(process, address)| {
        let begun =
            ranges.partition_point(|range| (range.process, range.address) <= (process, address));
        begun.checked_sub(1).is_some_and(|last| {
            let range = &ranges[last];
            range.process == process && address - range.address < range.bytes.0
        })
    };
    let is_fast = places.map(|place| place.at.is_some_and(is_in_range));
    Ok(Rule::Planned(is_fast.collect()))
}
