//! `ColouredTiers` has the two tiers of a plan by `isotherm plan --policy cold-set`, the fastest for hot data and the slowest for cold
//! data, and the number of memory devices that each stands for: `tiers` chooses for hot data the fewest that have the room and, where it is
//! given, the bandwidth. A plan by another policy keeps its tiers, and has no devices.
//!
//! On the emulated pair the fast tier is as large as the hot devices together. On memory nodes each tier keeps its size: the machine
//! interleaves the data of a node over all its devices, so a plan can name fewer devices, and no run can keep to them.

use anyhow::{Context, Result, bail};
use isotherm_model::colour::{Colour, ColourDevices, DEVICES_AT_MOST};
use isotherm_model::plan::Item;
use isotherm_model::port::SitePolicy;
use isotherm_model::tier::{Tier, TierIndex, Tiers};
use isotherm_model::units::Bytes;
use isotherm_model::words::counted;
use isotherm_policy::energy::{DeviceSet, Packing, PackingLimit};

use crate::bandwidth_file;
use crate::cli_devices::DevicesChoice;
use isotherm_console::Console;

/// The tiers of a plan with colours, and the devices of each.
pub(crate) struct ColouredTiers {
    pub(crate) tiers: Tiers,
    pub(crate) colours: Vec<ColourDevices>,
}

/// The tiers of a plan by this policy: for one that colours data, those that stand for the devices, for others the given ones.
///
/// # Errors
/// Devices for a policy without colours, one tier for two colours, or a bandwidth model that cannot be read.
pub(crate) fn tiers(
    policy: &dyn SitePolicy,
    (items, footprint): (&[Item], Bytes),
    tiers: Tiers,
    choice: &DevicesChoice,
    console: Console,
) -> Result<ColouredTiers> {
    if policy.adds_devices() {
        return pack(policy, (items, footprint), &tiers, choice, console);
    }
    if choice.devices.is_some() || choice.bandwidth.is_some() {
        bail!(
            "--policy {} places data on tiers, not on devices; leave out --devices and --bandwidth, or use --policy cold-set",
            policy.name()
        );
    }
    Ok(ColouredTiers {
        tiers,
        colours: Vec::new(),
    })
}

/// Packs the data that the policy takes on as few devices as possible, and prints their number and the reason for it.
fn pack(
    policy: &dyn SitePolicy,
    (items, footprint): (&[Item], Bytes),
    tiers: &Tiers,
    choice: &DevicesChoice,
    console: Console,
) -> Result<ColouredTiers> {
    let [fast, .., slow] = tiers.all() else {
        bail!(
            "--policy {} keeps cold data apart, and these tiers are one; name another, such as --tiers emulated:cxl",
            policy.name()
        );
    };
    let by_bandwidth = match (choice.bandwidth, &choice.bandwidth_model) {
        (Some(bandwidth), Some(path)) => {
            let model = bandwidth_file::read(path).context("--bandwidth-model")?;
            Some(model.devices(bandwidth))
        }
        _ => None,
    };
    let placeable: Vec<Item> = items
        .iter()
        .filter(|item| item.site.is_placeable())
        .copied()
        .collect();
    let choices = policy.choose(&placeable, fast.capacity);
    let hot: Bytes = choices
        .iter()
        .filter(|choice| choice.taken)
        .map(|choice| placeable[choice.item].weight)
        .sum();
    let set = choice.devices.unwrap_or_else(|| match fast.is_emulated() {
        true => DeviceSet::holding(footprint, fast.capacity),
        false => DeviceSet {
            devices: 2,
            capacity: fast.capacity,
        },
    });
    if set.devices > DEVICES_AT_MOST {
        bail!(
            "--fast: the footprint of {footprint} takes {} devices of {}, and {DEVICES_AT_MOST} are the most; name larger ones, such as --devices 4x16GiB",
            set.devices,
            set.capacity
        );
    }
    let held = set.capacity_of(set.devices);
    if held < footprint && choice.devices.is_some() {
        bail!(
            "--devices: {} of {} hold {held}, less than the footprint of {footprint}",
            set.devices,
            set.capacity
        );
    }
    let packing = set.pack(hot, by_bandwidth);
    console.info(&in_words(hot, set, packing));
    if !fast.is_emulated() {
        console.info(&format!(
            "the nodes of {} stand for hot devices and those of {} for cold ones; a machine interleaves the data of a node over its \
             devices, so a number of them within a node is planned, not carried out",
            fast.name, slow.name
        ));
    }
    Ok(ColouredTiers {
        tiers: pair(fast, slow, set, packing)?,
        colours: vec![
            of_colour(Colour::Hot, TierIndex::FASTEST, packing.hot, set),
            of_colour(Colour::Cold, TierIndex(1), packing.cold, set),
        ],
    })
}

/// The tiers of the two colours; the emulated fast one holds what its devices hold, within the machine's memory.
fn pair(fast: &Tier, slow: &Tier, set: DeviceSet, packing: Packing) -> Result<Tiers> {
    let capacity = match fast.is_emulated() {
        true => set.capacity_of(packing.hot).min(slow.capacity),
        false => fast.capacity,
    };
    let hot = Tier {
        capacity,
        ..fast.clone()
    };
    Ok(Tiers::new(vec![hot, slow.clone()])?)
}

const fn of_colour(colour: Colour, tier: TierIndex, devices: u32, set: DeviceSet) -> ColourDevices {
    ColourDevices {
        colour,
        tier,
        devices,
        device: set.capacity,
    }
}

fn in_words(hot: Bytes, set: DeviceSet, packing: Packing) -> String {
    let why = match packing.limit {
        PackingLimit::OneIsEnough => "the fewest there can be",
        PackingLimit::Capacity => "the fewest that hold them",
        PackingLimit::Bandwidth => "the fewest that have the bandwidth",
        PackingLimit::Devices => "all there are, and fewer than it needs",
    };
    format!(
        "{hot} of hot data on {} of {}, {} each, {why}; cold data on the other {}, which may sleep",
        packing.hot,
        counted(set.devices, "memory device"),
        set.capacity,
        packing.cold
    )
}
