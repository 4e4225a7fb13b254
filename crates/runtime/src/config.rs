//! [`load`] reads the configuration file that the command line wrote for the runtime ([`isotherm_abi::config`]: the mode, the tiers, the
//! placements of the plan) and checks it, once, at start; [`Config`] holds the result.
//!
//! The file is read into our own memory, which is never released, so its tables live as long as the process and no
//! process changes or shortens them after the check. It is read only where no other user can have written it
//! ([`isotherm_sys::private`]).

use core::ffi::CStr;
use std::sync::OnceLock;

use isotherm_abi::accesses::{FILTER_LINES_MAX, PERIOD_MAX};
use isotherm_abi::config::{
    ConfigHeader, EmulationConfig, LeadingRecord, MAGIC, Mover, PERCENT_MAX, PageTrapConfig,
    PartRecord, PlanEntry, RuntimeMode, STATIC_BY_PLAN, SplitRecord, StaticRecord, TierRecord,
};
use isotherm_abi::from_number;
use isotherm_abi::session::OffReason;
use isotherm_abi::{CHUNK_BYTES, MAX_DEPTH, VERSION};
use isotherm_sys::descriptor::Descriptor;
use isotherm_sys::memory;
use isotherm_sys::policy::MempolicyMode;
use isotherm_sys::private::{self, PrivateError};
use rustix::fs::{self, OFlags};
use rustix::io::Errno;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::leading_table::LeadingTable;
use crate::path::Path;
use crate::plan::{Callers, FIRST_SPLIT, Sites, Target};
use crate::split_table::Splits;

/// Largest accepted configuration: room for more than a million sites.
const FILE_BYTES_MAX: u64 = 1 << 28;

/// Smallest useful pool; below it the runtime turns itself off.
pub(crate) const POOL_BYTES_MIN: u64 = 1 << 36;

/// Largest requested pool: all addresses that the kernel gives a program without a hint.
const POOL_BYTES_MAX: u64 = 1 << 47;

/// Longest accepted span of time, a day: sums of a few never overflow.
const NANOS_MAX: u64 = 24 * 3_600 * 1_000_000_000;

/// The checked configuration: what the command line requests from this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    /// The runtime's action on each allocation.
    pub(crate) mode: RuntimeMode,
    /// Callers in a calling context, 1 to [`MAX_DEPTH`].
    pub(crate) depth: usize,
    /// Tier of data that no entry names.
    pub(crate) default_tier: u32,
    /// A site gets its own arena once it has requested this many bytes.
    pub(crate) own_arena_bytes: u64,
    /// A private anonymous mapping of at least this many bytes is a site.
    pub(crate) mapping_bytes: usize,
    /// Address space to reserve.
    pub(crate) pool_bytes: u64,
    /// How the slow tier is emulated.
    pub(crate) emulation: EmulationConfig,
    /// Which pages are trapped to detect their accesses.
    pub(crate) trapping: PageTrapConfig,
    /// Accesses from one sample to the next in code that counts them; 0 to count none.
    pub(crate) access_period: u64,
    /// Lines of each thread's cache filter, a power of two: accesses that hit in it are not sampled; 0 for no filter.
    pub(crate) access_filter_lines: u64,
    /// Whether the runtime moves data on real nodes itself, by staged copy.
    pub(crate) moves: bool,
    /// The tiers, fastest first.
    pub(crate) tiers: &'static [TierRecord],
    /// The placement of each site of the plan.
    pub(crate) entries: Sites,
    /// The placement of sites whose objects are placed in parts.
    pub(crate) splits: Splits,
    /// The sites of which the memory that is allocated first goes elsewhere than the rest.
    pub(crate) leading: LeadingTable,
    /// The tier of each direct caller of the plan's sites, where they are known.
    pub(crate) callers: Callers,
    /// Static data whose sites are known.
    pub(crate) statics: &'static [StaticRecord],
    /// The tier of all static data, where that is not the plan's to say.
    pub(crate) static_tier: Option<u32>,
}

impl Config {
    /// Placement of the site with this name, or the default.
    pub(crate) fn target_or_default(&self, hash: u64) -> Target {
        let planned = self.entries.target_of(hash);
        planned.unwrap_or(Target::Tier(self.default_tier))
    }

    /// The arena of a target: the arenas of the leading records follow those of the tiers. For a split, the number that stands for it
    /// where arenas are expected.
    pub(crate) const fn arena_of(&self, target: Target) -> u32 {
        match target {
            Target::Tier(tier) => tier,
            Target::Leading(index) => self.tiers.len() as u32 + index,
            Target::Split(index) => FIRST_SPLIT + index,
        }
    }

    /// The target of an arena that exists from the start.
    pub(crate) const fn target_of_arena(&self, number: u32) -> Target {
        match number.checked_sub(self.tiers.len() as u32) {
            Some(index) if (index as usize) < self.leading.len() => Target::Leading(index),
            Some(_) | None => Target::Tier(number),
        }
    }

    /// The tier of a target's data that is neither placed in parts nor allocated first.
    pub(crate) fn tier_of(&self, target: Target) -> u32 {
        match target {
            Target::Tier(tier) => tier,
            Target::Leading(index) => {
                let record = self.leading.get(index);
                record.map_or(self.default_tier, |record| record.later_tier)
            }
            Target::Split(index) => {
                let split = self.splits.get(index);
                split.map_or(self.default_tier, |split| split.tier)
            }
        }
    }

    /// The slowest tier.
    pub(crate) const fn slowest(&self) -> u32 {
        slowest(self.tiers)
    }

    /// Tier of whatever the direct caller with this name allocates ([`Callers::tier_of`]).
    pub(crate) fn tier_of_caller(&self, hash: u64) -> Option<u32> {
        self.callers.tier_of(hash, self.default_tier)
    }
}

const fn slowest(tiers: &[TierRecord]) -> u32 {
    tiers.len().saturating_sub(1) as u32
}

static CURRENT: OnceLock<Config> = OnceLock::new();

/// The configuration of this process; `None` before it was read and in pass-through mode.
#[inline]
pub(crate) fn current() -> Option<&'static Config> {
    CURRENT.get()
}

/// Makes this the configuration of the process. Called once; a second call would change nothing.
pub(crate) fn install(config: Config) {
    let _ = CURRENT.set(config);
}

/// Reads the file and checks it. `None` where the file is gone: the recorder of this program has ended and
/// removed it.
///
/// # Errors
/// [`OffReason::Foreign`] or [`OffReason::BadConfig`].
pub(crate) fn load(path: &CStr) -> Result<Option<Config>, OffReason> {
    let file = match open(path) {
        Ok(file) => file,
        Err(PrivateError::Unopened(Errno::NOENT | Errno::NOTDIR)) => return Ok(None),
        // The directory is closed to other users: this program runs as another user now.
        Err(PrivateError::Unopened(Errno::ACCESS)) => return Err(OffReason::Foreign),
        Err(PrivateError::OtherUser | PrivateError::Writable) => return Err(OffReason::Foreign),
        Err(_) => return Err(OffReason::BadConfig),
    };
    let copy = read(&file).ok_or(OffReason::BadConfig)?;
    let config = check(copy);
    if config.is_none() {
        // SAFETY: `read` mapped it, and a check that fails keeps nothing of it.
        let _ = unsafe { memory::unmap(copy.as_ptr().addr(), size_of_val(copy)) };
    }
    config.map(Some).ok_or(OffReason::BadConfig)
}

/// Opens the file in its directory; both must belong to this user.
fn open(path: &CStr) -> Result<Descriptor, PrivateError> {
    let path = path.to_bytes_with_nul();
    let (parent, name): (&[u8], _) = match path.iter().rposition(|&byte| byte == b'/') {
        None => (b".", path),
        Some(0) => (b"/", &path[1..]),
        Some(slash) => (&path[..slash], &path[slash + 1..]),
    };
    let too_long = PrivateError::Unopened(Errno::NAMETOOLONG);
    let mut directory: Path = Path::new();
    directory.push(parent).ok_or(too_long)?;
    let directory = private::open_directory(directory.as_c_str().ok_or(too_long)?)?;
    let name = CStr::from_bytes_with_nul(name).map_err(|_| too_long)?;
    private::open_file(directory, name, OFlags::RDONLY)
}

/// Copies the file into fresh memory. `None` if its size is implausible or changes meanwhile, or there is no
/// memory.
fn read(file: &Descriptor) -> Option<&'static [u64]> {
    let bytes = u64::try_from(fs::fstat(file).ok()?.st_size).ok()?;
    if bytes < size_of::<ConfigHeader>() as u64
        || bytes > FILE_BYTES_MAX
        || !bytes.is_multiple_of(8)
    {
        return None;
    }
    let bytes = bytes as usize;
    let base = memory::fresh(bytes).ok()?;
    // SAFETY: the mapping was made just now, is this long, and no other code knows its address.
    let copy = unsafe {
        core::slice::from_raw_parts_mut(core::ptr::with_exposed_provenance_mut::<u8>(base), bytes)
    };
    let mut filled = 0;
    while filled < bytes {
        match rustix::io::read(file, &mut copy[filled..]) {
            Ok(0) => return None,
            Ok(more) => filled += more,
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    // SAFETY: nothing writes into the mapping after this, and all reads of it are reads of integers.
    unsafe {
        memory::protect(base, bytes, libc::PROT_READ).ok()?;
        Some(core::slice::from_raw_parts(
            core::ptr::with_exposed_provenance::<u64>(base),
            bytes / 8,
        ))
    }
}

/// A table of `count` records of type T at `offset`, if it is within the file.
fn table<T: FromBytes + Immutable>(
    file: &'static [u64],
    offset: u64,
    count: u64,
) -> Option<&'static [T]> {
    let bytes = count.checked_mul(size_of::<T>() as u64)?;
    let end = offset.checked_add(bytes)?;
    let table = file.as_bytes().get(offset as usize..end as usize)?;
    let is_aligned = offset.is_multiple_of(8);
    <[T]>::ref_from_bytes(table).ok().filter(|_| is_aligned)
}

/// Checks every number of the file that is used later, so that no later code needs a check.
fn check(file: &'static [u64]) -> Option<Config> {
    let header = *table::<ConfigHeader>(file, 0, 1)?.first()?;
    let mode = from_number(header.mode)?;
    let tiers = table::<TierRecord>(file, header.tiers_offset, u64::from(header.tier_count))?;
    let entries = table::<PlanEntry>(file, header.entries_offset, u64::from(header.entry_slots))?;
    let callers = table::<PlanEntry>(file, header.callers_offset, u64::from(header.caller_slots))?;
    let statics =
        table::<StaticRecord>(file, header.statics_offset, u64::from(header.static_count))?;
    let splits = table::<SplitRecord>(file, header.splits_offset, u64::from(header.split_count))?;
    let parts = table::<PartRecord>(file, header.parts_offset, u64::from(header.part_count))?;
    let splits = Splits::checked(splits, parts, tiers.len())?;
    let leading = u64::from(header.leading_count);
    let leading = table::<LeadingRecord>(file, header.leading_offset, leading)?;
    let leading = LeadingTable::checked(leading, tiers.len())?;
    let sound = header.magic == MAGIC
        && header.version == VERSION
        && header.file_bytes == size_of_val(file) as u64
        && (1..=MAX_DEPTH as u32).contains(&header.depth)
        && header.pool_bytes.is_multiple_of(CHUNK_BYTES)
        && header.pool_bytes <= POOL_BYTES_MAX
        && (tiers.is_empty() || (header.default_tier as usize) < tiers.len())
        && tiers.len() <= TIERS_MAX
        && tiers.iter().all(is_known)
        && header.mover <= Mover::Staged as u32
        && u64::from(header.access_period) <= PERIOD_MAX
        && (header.access_filter_lines == 0 || header.access_filter_lines.is_power_of_two())
        && header.access_filter_lines <= FILTER_LINES_MAX
        && spans(&header).iter().all(|&nanos| nanos <= NANOS_MAX)
        && is_possible(&header.emulation)
        && (header.static_tier == STATIC_BY_PLAN || (header.static_tier as usize) < tiers.len())
        && statics.iter().all(is_whole_pages);
    if !sound {
        return None;
    }
    Some(Config {
        mode,
        depth: header.depth as usize,
        // 0 without tiers.
        default_tier: header.default_tier.min(slowest(tiers)),
        own_arena_bytes: header.own_arena_bytes.max(1),
        mapping_bytes: header.mapping_bytes.max(4096) as usize,
        pool_bytes: header.pool_bytes.max(POOL_BYTES_MIN),
        emulation: header.emulation,
        trapping: header.trapping,
        access_period: u64::from(header.access_period),
        access_filter_lines: u64::from(header.access_filter_lines),
        moves: mode == RuntimeMode::Online && header.mover == Mover::Staged as u32,
        tiers,
        entries: Sites::checked(entries, tiers.len(), leading.len(), splits.len())?,
        splits,
        leading,
        callers: Callers::checked(callers, tiers.len())?,
        statics,
        static_tier: (header.static_tier != STATIC_BY_PLAN).then_some(header.static_tier),
    })
}

/// Whether the name and the range of an object of static data are possible: the range has whole pages.
fn is_whole_pages(object: &StaticRecord) -> bool {
    let page = memory::PAGE_BYTES as u64;
    object.module_bytes as usize <= object.module.len()
        && object.offset.is_multiple_of(page)
        && object.bytes.is_multiple_of(page)
        && object.offset.checked_add(object.bytes).is_some()
}

/// Whether the kind and the policy of a tier are known ones.
fn is_known(tier: &TierRecord) -> bool {
    tier.kind <= 2 && tier.policy <= MempolicyMode::WeightedInterleave as u32
}

/// Every span of time that the file names, in nanoseconds.
const fn spans(header: &ConfigHeader) -> [u64; 6] {
    let emulation = &header.emulation;
    [
        emulation.sample_ns,
        emulation.period_ns,
        emulation.access_ns,
        emulation.hot_ns,
        emulation.migrate_ns,
        header.trapping.period_ns,
    ]
}

/// Whether the numbers of an emulation by time, where there is one, are possible.
const fn is_possible(emulation: &EmulationConfig) -> bool {
    const fn is_factor(percent: u32) -> bool {
        percent >= 100 && percent <= PERCENT_MAX
    }
    emulation.latency_percent == 0
        || (is_factor(emulation.latency_percent)
            && is_factor(emulation.bandwidth_percent)
            && emulation.sample_ns >= SAMPLE_NS_MIN)
}

/// Shortest time between two samples of a thread: a tenth of a millisecond.
const SAMPLE_NS_MIN: u64 = 100_000;

/// Most tiers; a context cache holds 20 bits, a machine has fewer than ten.
const TIERS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use isotherm_abi::config::{LEADING, SPLIT, TELL_APART};

    use super::*;

    /// A file with two tiers and a table of two slots, changed by `edit`.
    fn checked(edit: impl FnOnce(&mut ConfigHeader, &mut [PlanEntry; 2])) -> Option<Config> {
        let header_words = size_of::<ConfigHeader>() / 8;
        let tier_words = 2 * size_of::<TierRecord>() / 8;
        let words = header_words + tier_words + 4;
        let mut header = ConfigHeader::new(RuntimeMode::Guided);
        header.tier_count = 2;
        header.entry_slots = 2;
        header.entries_offset = ((header_words + tier_words) * 8) as u64;
        header.file_bytes = (words * 8) as u64;
        let mut entries = [PlanEntry::default(); 2];
        entries[0].hash = 42;
        entries[0].tier = 1;
        edit(&mut header, &mut entries);
        let file: &'static mut [u64] = Box::leak(vec![0u64; words].into_boxed_slice());
        let bytes = file.as_mut_bytes();
        bytes[..size_of::<ConfigHeader>()].copy_from_slice(header.as_bytes());
        bytes[(header_words + tier_words) * 8..].copy_from_slice(entries.as_bytes());
        check(file)
    }

    #[test]
    fn a_sound_file_is_taken_as_written() {
        let config = checked(|_, _| {}).unwrap();
        assert_eq!(config.mode, RuntimeMode::Guided);
        assert_eq!(config.tiers.len(), 2);
        assert_eq!(config.entries.target_of(42), Some(Target::Tier(1)));
    }

    #[test]
    fn each_target_has_an_arena_number_of_its_own() {
        let records = [LeadingRecord::default(); 2];
        let leading = LeadingTable::checked(Box::leak(Box::new(records)), 2).unwrap();
        let config = Config {
            leading,
            ..checked(|_, _| {}).unwrap()
        };
        let targets = [
            Target::Tier(0),
            Target::Tier(1),
            Target::Leading(0),
            Target::Leading(1),
        ];
        for (number, target) in (0..).zip(targets) {
            assert_eq!(config.arena_of(target), number);
            assert_eq!(config.target_of_arena(number), target);
            assert_eq!(Target::split_of_arena(number), None);
        }
        let number = config.arena_of(Target::Split(9));
        assert_eq!(Target::split_of_arena(number), Some(9));
    }

    #[test]
    fn a_caller_may_ask_for_its_contexts_to_be_told_apart() {
        let with_callers = |tier| {
            checked(|header, entries| {
                header.entry_slots = 0;
                header.caller_slots = 2;
                header.callers_offset = header.entries_offset;
                entries[0].tier = tier;
            })
        };
        let tier_of = |config: Config| config.callers.tier_of(42, config.default_tier);
        assert_eq!(with_callers(TELL_APART).map(tier_of), Some(None));
        assert_eq!(with_callers(1).map(tier_of), Some(Some(1)));
        assert!(with_callers(2).is_none());
    }

    #[test]
    fn every_unsound_number_is_refused() {
        assert!(checked(|header, _| header.version += 1).is_none());
        assert!(checked(|header, _| header.magic[0] = 0).is_none());
        assert!(checked(|header, _| header.mode = 9).is_none());
        assert!(checked(|header, _| header.depth = 0).is_none());
        assert!(checked(|header, _| header.depth = 9).is_none());
        assert!(checked(|header, _| header.mover = 2).is_none());
        assert!(checked(|header, _| header.access_period = PERIOD_MAX as u32 + 1).is_none());
        for lines in [3, FILTER_LINES_MAX + 1, 2 * FILTER_LINES_MAX] {
            assert!(checked(|header, _| header.access_filter_lines = lines).is_none());
        }
        assert!(checked(|header, _| header.default_tier = 2).is_none());
        assert!(checked(|header, _| header.file_bytes += 8).is_none());
        assert!(checked(|header, _| header.tiers_offset = u64::MAX - 7).is_none());
        assert!(checked(|header, _| header.entries_offset += 1).is_none());
        assert!(checked(|header, _| header.entries_offset += 8).is_none());
        assert!(checked(|header, _| header.entry_slots = u32::MAX).is_none());
        assert!(checked(|_, entries| entries[0].tier = 2).is_none());
        assert!(checked(|_, entries| entries[0].tier = TELL_APART).is_none());
        assert!(checked(|header, _| header.caller_slots = u32::MAX).is_none());
        assert!(checked(|header, _| header.callers_offset += 4).is_none());
        assert!(checked(|_, entries| entries[1].hash = 43).is_none());
        assert!(checked(|header, _| header.pool_bytes = CHUNK_BYTES << 40).is_none());
        assert!(checked(|header, _| header.static_tier = 1).is_some());
        assert!(checked(|header, _| header.static_tier = 2).is_none());
        assert!(checked(|header, _| header.static_count = u32::MAX).is_none());
        assert!(checked(|header, _| header.statics_offset += 4).is_none());
        assert!(checked(|_, entries| entries[0].tier = SPLIT).is_none());
        assert!(checked(|_, entries| entries[0].tier = LEADING).is_none());
        assert!(checked(|header, _| header.split_count = u32::MAX).is_none());
        assert!(checked(|header, _| header.leading_count = u32::MAX).is_none());
        assert!(checked(|header, _| header.leading_offset += 4).is_none());
        assert!(checked(|header, _| header.part_count = u32::MAX).is_none());
        assert!(checked(|header, _| header.splits_offset += 4).is_none());
        assert!(checked(|header, _| header.parts_offset = u64::MAX - 7).is_none());
        assert!(checked(|header, _| header.emulation.period_ns = NANOS_MAX + 1).is_none());
        let timed = |latency, bandwidth, sample| {
            let edit = |header: &mut ConfigHeader, _: &mut [PlanEntry; 2]| {
                header.emulation.latency_percent = latency;
                header.emulation.bandwidth_percent = bandwidth;
                header.emulation.sample_ns = sample;
            };
            checked(edit).is_some()
        };
        assert!(timed(300, 100, SAMPLE_NS_MIN) && timed(PERCENT_MAX, 300, 1_000_000));
        assert!(!timed(99, 300, SAMPLE_NS_MIN) && !timed(300, 0, SAMPLE_NS_MIN));
        assert!(!timed(300, 300, 0) && !timed(PERCENT_MAX + 1, 300, SAMPLE_NS_MIN));
        assert!(checked(|header, _| header.trapping.period_ns = u64::MAX).is_none());
    }

    #[test]
    fn an_object_of_static_data_has_whole_pages_and_a_name_that_fits() {
        let object = StaticRecord {
            module: [0; 32],
            module_bytes: 20,
            reserved: 0,
            name: 0x4060,
            offset: 0x4000,
            bytes: 0x2000,
        };
        assert!(is_whole_pages(&object));
        for wrong in [
            StaticRecord {
                offset: 0x4060,
                ..object
            },
            StaticRecord {
                bytes: 100,
                ..object
            },
            StaticRecord {
                module_bytes: 33,
                ..object
            },
            StaticRecord {
                offset: u64::MAX << 12,
                bytes: 1 << 20,
                ..object
            },
        ] {
            assert!(!is_whole_pages(&wrong), "{wrong:?}");
        }
    }

    #[test]
    fn a_missing_file_is_no_configuration() {
        for path in [c"/nonexistent/isotherm", c"nonexistent"] {
            assert!(load(path).is_ok_and(|config| config.is_none()));
        }
    }

    #[test]
    fn a_file_that_changes_after_it_was_read_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("configuration");
        let words = size_of::<ConfigHeader>() / 8;
        std::fs::write(&path, vec![7; words * 8]).unwrap();
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        let copy = read(&open(&name).unwrap()).unwrap();
        std::fs::write(&path, []).unwrap();
        assert_eq!(copy, vec![0x0707_0707_0707_0707; words]);
    }
}
