//! [`Configuration`] holds the settings of the runtime for a run (a recording, a run by a plan, or an online run), and makes from them the
//! bytes of the configuration file, in the fixed layout that the runtime reads (`abi::config`).

use std::collections::BTreeMap;

use isotherm_abi::MAX_DEPTH;
use isotherm_abi::accesses::{FILTER_LINE_BYTES, FILTER_LINES_MAX};
use isotherm_abi::config::{
    ConfigHeader, EmulationConfig, LEADING, LeadingRecord, Mover, NODE_WORDS, PageTrapConfig,
    PlanEntry, RuntimeMode, SPLIT, STATIC_BY_PLAN, StaticRecord, TELL_APART, TierRecord,
    TierRecordKind,
};
use isotherm_model::emulation::Emulation;
use isotherm_model::plan::Plan;
use isotherm_model::shared_bandwidth::SharedBandwidth;
use isotherm_model::site::{CallerId, SiteId};
use isotherm_model::tier::{Placement, Tier, TierIndex, TierKind, Tiers};
use isotherm_model::units::{Bytes, Nanos};
use isotherm_sys::policy::MempolicyMode;
use zerocopy::IntoBytes;

use crate::leading;
use crate::splits::{self, Split, SplitError, SplitTables};

/// The settings of the runtime.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    /// The treatment of allocations.
    pub mode: RuntimeMode,
    /// Callers in a calling context, 1 to [`MAX_DEPTH`].
    pub depth: u32,
    /// The tiers, if data is placed.
    pub tiers: Option<Tiers>,
    /// Tier of sites without an entry.
    pub default_tier: TierIndex,
    /// Tier of each site ([`Plan::tiers_by_site`]).
    pub entries: Vec<(SiteId, TierIndex)>,
    /// Sites whose objects are placed in parts.
    pub splits: BTreeMap<SiteId, Split>,
    /// Sites whose first memory goes elsewhere than the rest: each record with the sites that share it.
    pub leading: Vec<(LeadingRecord, Vec<SiteId>)>,
    /// Tier of each direct caller ([`Plan::tiers_by_caller`]), if all are known.
    pub callers: Option<BTreeMap<CallerId, Option<TierIndex>>>,
    /// Pages to trap at a time, the period of trapping, and the random seed, if that source is on.
    pub trapping: Option<(u64, Nanos, u64)>,
    /// Sample period in accesses of an instrumented program, 1 to
    /// [`PERIOD_MAX`](isotherm_abi::accesses::PERIOD_MAX), if that source is on.
    pub access_period: Option<u64>,
    /// Size of the cache filter that accesses must miss to be sampled, a power of two of 64 bytes to 1 MiB; None for no
    /// filter.
    pub access_filter: Option<Bytes>,
    /// The mover of existing data on real nodes, in online runs.
    pub mover: Mover,
    /// Static data whose sites are known, by the files of the modules.
    pub statics: Vec<StaticRecord>,
    /// Tier of all static data; `None` where each object goes where its entry says, and all other static data stays.
    pub static_tier: Option<TierIndex>,
    /// Size of the caches that serve a thread, for an emulation by time; 4 MiB where it is not known.
    pub cache: Option<Bytes>,
}

/// Size of the caches where none is given: a second-level cache and a thread's share of a shared one.
const CACHE: Bytes = Bytes(4 << 20);

/// A thread's processor time between two samples of an emulation by time. Half of it costs the program some 10 per cent; with twice as much
/// a second has half the samples.
const SAMPLE: Nanos = Nanos(1_000_000);

/// Why a configuration cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    /// The depth is out of range.
    #[error("a calling context of {0} callers is not possible; use 1 to {most}", most = MAX_DEPTH)]
    Depth(u32),
    /// A site or the default names a tier that does not exist.
    #[error("there is no tier number {}", .0.0)]
    NoSuchTier(TierIndex),
    /// A node number is larger than Linux supports.
    #[error("node {0} is out of range; Linux has nodes 0 to {last}", last = NODE_WORDS * 64 - 1)]
    NodeOutOfRange(u32),
    /// The runtime does not support this size of the cache filter.
    #[error("a cache filter of {0} is not possible; use a power of two from 64B to 1MiB")]
    Filter(Bytes),
    /// The parts of objects cannot be written.
    #[error(transparent)]
    Split(#[from] SplitError),
}

/// Whether the runtime supports a cache filter of this size: a power of two of 64 bytes to 1 MiB.
fn is_filter(size: Bytes) -> bool {
    let sizes = FILTER_LINE_BYTES..=FILTER_LINE_BYTES * u64::from(FILTER_LINES_MAX);
    size.0.is_power_of_two() && sizes.contains(&size.0)
}

impl Configuration {
    /// Settings for recording only: sites are distinguished, and no data is placed.
    #[must_use]
    pub fn profile(depth: u32) -> Self {
        Self {
            mode: RuntimeMode::Profile,
            depth,
            ..Self::default()
        }
    }

    /// Settings that place data by this plan.
    ///
    /// A `first-touch` plan has no entries: all data requests the fastest tier and spills when that
    /// is full, which is the definition of first touch.
    #[must_use]
    pub fn guided(plan: &Plan) -> Self {
        if plan.policy == "first-touch" {
            return Self::all_in(plan, TierIndex::FASTEST);
        }
        let callers = plan.tiers_by_caller();
        Self {
            entries: plan.tiers_by_site(callers.as_ref()),
            splits: splits::of_plan(&plan.assignments),
            leading: leading::of_plan(&plan.assignments),
            callers,
            ..Self::all_in(plan, plan.default_tier)
        }
    }

    /// Settings that place all data in one of the plan's tiers, whatever tiers the plan has for its sites; data beyond the tier's capacity
    /// spills.
    #[must_use]
    pub fn all_in(plan: &Plan, tier: TierIndex) -> Self {
        Self {
            mode: RuntimeMode::Guided,
            tiers: Some(plan.tiers.clone()),
            default_tier: tier,
            callers: Some(BTreeMap::new()),
            ..Self::profile(plan.depth)
        }
    }

    /// Settings that profile the running program and obey requests; new data of unknown sites goes
    /// to `default_tier`.
    #[must_use]
    pub fn online(depth: u32, tiers: Tiers, default_tier: TierIndex) -> Self {
        Self {
            mode: RuntimeMode::Online,
            tiers: Some(tiers),
            default_tier,
            ..Self::profile(depth)
        }
    }

    /// Whether the runtime counts the data that it places in a tier of nodes ([`isotherm_abi::capacity`]). The slowest tier is never
    /// counted: it takes the data that has room nowhere else.
    #[must_use]
    pub fn limits_a_tier(&self) -> bool {
        let tiers = self.tiers.as_ref().map_or(&[][..], Tiers::all);
        let faster = tiers.split_last().map_or(&[][..], |(_, faster)| faster);
        faster
            .iter()
            .any(|tier| matches!(tier.kind, TierKind::Nodes(_)) && tier.capacity != Bytes(u64::MAX))
    }

    /// The shared bandwidth limits of an emulation by time; `None` without them.
    #[must_use]
    pub fn shared_bandwidth(&self) -> Option<SharedBandwidth> {
        match self.slow_tier()? {
            Emulation::Time(costs) => costs.shared,
            Emulation::PageTrap(_) => None,
        }
    }

    /// The bytes of the emulated fast tier for all programs on a machine with a name together; `None` without a name or a limit.
    #[must_use]
    pub fn shared_capacity(&self) -> Option<Bytes> {
        let shared = self.shared_bandwidth()?;
        shared.machine()?;
        let mut tiers = self.tiers.iter().flat_map(Tiers::all);
        let fast = tiers.find(|tier| tier.kind == TierKind::EmulatedFast)?;
        let is_limited = fast.capacity != Bytes(u64::MAX);
        is_limited.then(|| shared.capacity().unwrap_or(fast.capacity))
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// A depth, tier or node out of range; parts that are not in order.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ConfigurationError> {
        if self.depth == 0 || self.depth as usize > MAX_DEPTH {
            return Err(ConfigurationError::Depth(self.depth));
        }
        if let Some(size) = self.access_filter.filter(|size| !is_filter(*size)) {
            return Err(ConfigurationError::Filter(size));
        }
        let tiers = self.tiers.as_ref().map_or(&[][..], Tiers::all);
        let named = self
            .entries
            .iter()
            .map(|(_, tier)| *tier)
            .chain(self.callers.iter().flatten().filter_map(|(_, tier)| *tier))
            .chain(self.static_tier)
            .chain(self.leading.iter().flat_map(|(record, _)| tiers_of(record)))
            .chain([self.default_tier]);
        if let Some(tier) = named
            .into_iter()
            .find(|t| !tiers.is_empty() && t.0 as usize >= tiers.len())
        {
            return Err(ConfigurationError::NoSuchTier(tier));
        }
        let records = tiers.iter().map(record).collect::<Result<Vec<_>, _>>()?;
        let splits = splits::tables(&self.splits, tiers.len())?;
        let sites = self.sites();
        let callers = self.callers.iter().map(|callers| {
            let tier = |tier: Option<TierIndex>| tier.map_or(TELL_APART, |tier| tier.0);
            callers
                .iter()
                .map(move |(caller, to)| (caller.0, tier(*to)))
        });
        // A table without entries differs from no table: callers without a site are then known, too.
        let callers = callers.map(|callers| table(callers, 1)).next();
        let callers = callers.unwrap_or_default();
        Ok(self.encode(&records, &table(sites.into_iter(), 0), &callers, &splits))
    }

    /// The name of each site, and the word of its entry.
    fn sites(&self) -> BTreeMap<u64, u32> {
        let whole = self.entries.iter().map(|(site, tier)| (site.0, tier.0));
        let split = (0..).zip(self.splits.keys());
        let split = split.map(|(index, site)| (site.0, SPLIT | index));
        let leading = (0..).zip(&self.leading).flat_map(|(index, (_, sites))| {
            let word = LEADING | index;
            sites.iter().map(move |site| (site.0, word))
        });
        whole.chain(split).chain(leading).collect()
    }

    fn encode(
        &self,
        tiers: &[TierRecord],
        slots: &[PlanEntry],
        callers: &[PlanEntry],
        SplitTables { splits, parts }: &SplitTables,
    ) -> Vec<u8> {
        let leading: Vec<LeadingRecord> = self.leading.iter().map(|(record, _)| *record).collect();
        let tables = [
            tiers.as_bytes(),
            slots.as_bytes(),
            callers.as_bytes(),
            self.statics.as_bytes(),
            splits.as_bytes(),
            parts.as_bytes(),
            leading.as_bytes(),
        ];
        let mut end = size_of::<ConfigHeader>() as u64;
        let [
            tiers_offset,
            entries_offset,
            callers_offset,
            statics_offset,
            splits_offset,
            parts_offset,
            leading_offset,
        ] = tables.map(|table| {
            let start = end;
            end += table.len() as u64;
            start
        });
        let (pages, period, seed) = self.trapping.unwrap_or((0, Nanos(0), 0));
        let filter_lines = self
            .access_filter
            .map_or(0, |size| size.0 / FILTER_LINE_BYTES);
        let header = ConfigHeader {
            file_bytes: end,
            depth: self.depth,
            default_tier: self.default_tier.0,
            tier_count: tiers.len() as u32,
            entry_slots: slots.len() as u32,
            tiers_offset,
            entries_offset,
            caller_slots: callers.len() as u32,
            mover: self.mover as u32,
            callers_offset,
            emulation: self.emulation(),
            trapping: PageTrapConfig {
                pages,
                period_ns: period.0,
                seed,
            },
            // The longest period has 31 bits, and the largest filter 2^14 lines.
            access_period: self.access_period.unwrap_or(0) as u32,
            access_filter_lines: filter_lines as u32,
            static_count: self.statics.len() as u32,
            static_tier: self.static_tier.map_or(STATIC_BY_PLAN, |tier| tier.0),
            statics_offset,
            split_count: splits.len() as u32,
            part_count: parts.len() as u32,
            splits_offset,
            parts_offset,
            leading_offset,
            leading_count: leading.len() as u32,
            ..ConfigHeader::new(self.mode)
        };
        [header.as_bytes(), &tables.concat()].concat()
    }

    /// The emulation of the slow tier; `None` on real nodes.
    fn slow_tier(&self) -> Option<Emulation> {
        self.tiers.as_ref().and_then(Tiers::emulation)
    }

    fn emulation(&self) -> EmulationConfig {
        match self.slow_tier() {
            None => EmulationConfig::default(),
            Some(Emulation::PageTrap(costs)) => EmulationConfig {
                period_ns: costs.period.0,
                access_ns: costs.access.0,
                hot_ns: costs.hot.0,
                migrate_ns: costs.migrate.0,
                ..EmulationConfig::default()
            },
            Some(Emulation::Time(costs)) => EmulationConfig {
                migrate_ns: costs.migrate.0,
                latency_percent: costs.latency.percent(),
                bandwidth_percent: costs.bandwidth.percent(),
                cache_bytes: self.cache.unwrap_or(CACHE).0,
                sample_ns: SAMPLE.0,
                ..EmulationConfig::default()
            },
        }
    }
}

/// The tiers that a record names.
fn tiers_of(record: &LeadingRecord) -> [TierIndex; 2] {
    [record.first_tier, record.later_tier].map(TierIndex)
}

fn record(tier: &Tier) -> Result<TierRecord, ConfigurationError> {
    let mut nodes = [0_u64; NODE_WORDS];
    let (kind, count) = match &tier.kind {
        TierKind::EmulatedFast => (TierRecordKind::EmulatedFast, 0),
        TierKind::EmulatedSlow(_) => (TierRecordKind::EmulatedSlow, 0),
        TierKind::Nodes(list) => {
            for &node in list {
                let word = nodes
                    .get_mut(node as usize / 64)
                    .ok_or(ConfigurationError::NodeOutOfRange(node))?;
                *word |= 1 << (node % 64);
            }
            (TierRecordKind::Nodes, list.len())
        }
    };
    let policy = match (tier.placement, count) {
        (Placement::Bind, _) => MempolicyMode::Bind,
        (Placement::Preferred, 0 | 1) => MempolicyMode::Preferred,
        (Placement::Preferred, _) => MempolicyMode::PreferredMany,
    };
    Ok(TierRecord {
        kind: kind as u32,
        policy: policy as u32,
        capacity_bytes: tier.capacity.0,
        nodes,
    })
}

/// A hash table with open addressing of (name, tier), at most half full, so that a search for a
/// missing name ends soon; `least` slots if there is no entry.
fn table(entries: impl ExactSizeIterator<Item = (u64, u32)>, least: usize) -> Vec<PlanEntry> {
    let size = match entries.len() {
        0 => least,
        count => (count * 2).next_power_of_two(),
    };
    let mut slots = vec![PlanEntry::default(); size];
    for (hash, tier) in entries {
        let mut at = hash as usize & (size - 1);
        while slots[at].hash != 0 && slots[at].hash != hash {
            at = (at + 1) & (size - 1);
        }
        slots[at] = PlanEntry {
            hash,
            tier,
            reserved: 0,
        };
    }
    slots
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Configuration, ConfigurationError, table};
    use crate::splits::Split;
    use isotherm_abi::config::{LEADING, LeadingRecord, PlanEntry, SPLIT, StaticRecord};
    use isotherm_model::emulation::Emulation;
    use isotherm_model::plan::PlacedPart;
    use isotherm_model::site::SiteId;
    use isotherm_model::tier::{Placement, Tier, TierIndex, TierKind, Tiers};
    use isotherm_model::units::Bytes;

    fn lookup(slots: &[PlanEntry], site: u64) -> Option<u32> {
        let mask = slots.len() - 1;
        let mut at = site as usize & mask;
        while slots[at].hash != 0 {
            if slots[at].hash == site {
                return Some(slots[at].tier);
            }
            at = (at + 1) & mask;
        }
        None
    }

    #[test]
    fn every_site_is_found_and_others_are_not_even_when_all_share_a_slot() {
        let entries: Vec<_> = (1..=100_u64).map(|i| (i << 32, (i % 2) as u32)).collect();
        let slots = table(entries.iter().copied(), 0);
        for (site, tier) in &entries {
            assert_eq!(lookup(&slots, *site), Some(*tier));
        }
        assert_eq!(lookup(&slots, 7), None);
        assert_eq!(table([].into_iter(), 0), []);
        assert_eq!(lookup(&table([].into_iter(), 1), 7), None);
    }

    #[test]
    fn the_file_is_as_long_as_its_header_says() {
        let tiers = Tiers::emulated(Bytes(1 << 20), Bytes(1 << 30), Emulation::TMP);
        let mut config = Configuration::online(4, tiers, TierIndex(1));
        config.entries = vec![(SiteId(77), TierIndex(0))];
        let bytes = config.to_bytes().unwrap();
        let said = u64::from_ne_bytes(bytes[16..24].try_into().unwrap());
        assert_eq!(said, bytes.len() as u64);
        assert_eq!(bytes.len(), 240 + 2 * 144 + 2 * 16);
        config.callers = Some(BTreeMap::new());
        assert_eq!(config.to_bytes().unwrap().len(), bytes.len() + 16);
        let object = StaticRecord {
            module: [7; 32],
            module_bytes: 32,
            reserved: 0,
            name: 0x4060,
            offset: 0x4000,
            bytes: 0x2000,
        };
        config.statics = vec![object; 3];
        assert_eq!(config.to_bytes().unwrap().len(), bytes.len() + 16 + 3 * 64);
        let part = PlacedPart {
            start: Bytes(0),
            end: Bytes(4096),
            tier: TierIndex(0),
            value: 1,
            weight: Bytes(4096),
        };
        let split = Split {
            tier: TierIndex(1),
            parts: vec![part],
        };
        // The entry of the site is there already.
        config.splits = BTreeMap::from([(SiteId(77), split)]);
        let with_split = bytes.len() + 16 + 3 * 64 + 16 + 24;
        assert_eq!(config.to_bytes().unwrap().len(), with_split);
        assert_eq!(config.sites()[&77], SPLIT);
        let record = LeadingRecord {
            first_tier: 0,
            later_tier: 1,
            bytes: 1 << 21,
        };
        config.leading = [5, 77].map(|site| (record, vec![SiteId(site)])).into();
        config.splits.clear();
        // A second site needs twice the slots.
        let with_leading = bytes.len() + 16 + 3 * 64 + 2 * 16 + 2 * 16;
        assert_eq!(config.to_bytes().unwrap().len(), with_leading);
        let words = (config.sites()[&5], config.sites()[&77]);
        assert_eq!(words, (LEADING, LEADING | 1));
    }

    #[test]
    fn a_depth_and_a_tier_out_of_range_are_refused() {
        let mut config = Configuration::profile(9);
        assert_eq!(config.to_bytes(), Err(ConfigurationError::Depth(9)));
        config.depth = 4;
        config.tiers = Some(Tiers::emulated(Bytes(1), Bytes(1), Emulation::TMP));
        config.default_tier = TierIndex(2);
        assert_eq!(
            config.to_bytes(),
            Err(ConfigurationError::NoSuchTier(TierIndex(2)))
        );
        config.default_tier = TierIndex(1);
        config.static_tier = Some(TierIndex(2));
        assert!(config.to_bytes().is_err());
        config.static_tier = Some(TierIndex(1));
        assert!(config.to_bytes().is_ok());
        let record = LeadingRecord {
            first_tier: 2,
            later_tier: 1,
            bytes: 1,
        };
        config.leading = vec![(record, vec![SiteId(5)])];
        assert!(config.to_bytes().is_err());
    }

    #[test]
    fn only_faster_tiers_of_nodes_have_a_limit_that_is_counted() {
        let tier = |name: &str, node, capacity| Tier {
            name: name.to_owned(),
            kind: TierKind::Nodes(vec![node]),
            capacity: Bytes(capacity),
            placement: Placement::Preferred,
            latency: None,
            read_bandwidth: None,
            write_bandwidth: None,
            loaded: Vec::new(),
            reason: String::new(),
        };
        let limits = |fast, slow| {
            let tiers = Tiers::new(vec![tier("fast", 0, fast), tier("slow", 1, slow)]).unwrap();
            Configuration::online(4, tiers, TierIndex(0)).limits_a_tier()
        };
        assert!(limits(1 << 30, u64::MAX));
        assert!(!limits(u64::MAX, 1 << 30));
        let emulated = Tiers::emulated(Bytes(1), Bytes(1), Emulation::TMP);
        assert!(!Configuration::online(4, emulated, TierIndex(0)).limits_a_tier());
        assert!(!Configuration::profile(4).limits_a_tier());
    }
}
