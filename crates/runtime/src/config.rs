//! The configuration file, checked once.
//!
//! The file is mapped read-only and private and never unmapped, so its tables live as long as
//! the process.

use core::ffi::CStr;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;

use isotherm_abi::accesses::{FILTER_LINES_MAX, PERIOD_MAX};
use isotherm_abi::config::{
    ConfigHeader, Emulation, MAGIC, Mode, Mover, PlanEntry, TELL_APART, TierRecord, Trapping,
};
use isotherm_abi::{CHUNK_BYTES, MAX_DEPTH, VERSION};
use isotherm_sys::memory;
use rustix::fs::{self, OFlags};

/// Largest configuration that is believed: a million sites and room to spare.
const FILE_BYTES_MAX: u64 = 1 << 28;

/// Smallest pool that is worth having; below it the runtime turns itself off.
pub(crate) const POOL_BYTES_MIN: u64 = 1 << 36;

/// What the command line wants from this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    /// What to do with each allocation.
    pub(crate) mode: Mode,
    /// Callers in a calling context, 1 to [`MAX_DEPTH`].
    pub(crate) depth: usize,
    /// Tier of data that no entry names.
    pub(crate) default_tier: u32,
    /// A site gets its own arena once it has asked for this many bytes.
    pub(crate) own_arena_bytes: u64,
    /// A private anonymous mapping of at least this many bytes is a site.
    pub(crate) mapping_bytes: usize,
    /// Address space to reserve.
    pub(crate) pool_bytes: u64,
    /// How the slow tier is slowed.
    pub(crate) emulation: Emulation,
    /// Which chunks are trapped to see who touches them.
    pub(crate) trapping: Trapping,
    /// Accesses from one sample to the next in code that counts them; 0 where none is wanted.
    pub(crate) access_period: u64,
    /// Lines of the filter that accesses must miss to be sampled, a power of two; 0 without.
    pub(crate) access_filter_lines: u64,
    /// Whether data on real nodes is moved from inside, by staged copy.
    pub(crate) moves: bool,
    /// The tiers, fastest first.
    pub(crate) tiers: &'static [TierRecord],
    /// The plan, an open-addressed table.
    pub(crate) entries: &'static [PlanEntry],
    /// The direct callers of the plan's sites, another such table; empty where they are not known.
    pub(crate) callers: &'static [PlanEntry],
}

static CURRENT: OnceLock<Config> = OnceLock::new();

/// The configuration of this process; `None` before it was read and in pass-through mode.
#[inline]
pub(crate) fn current() -> Option<&'static Config> {
    CURRENT.get()
}

/// Makes this the configuration of the process. Called once.
pub(crate) fn install(config: Config) {
    // A second call would change nothing.
    let _ = CURRENT.set(config);
}

/// Maps the file and checks it. `None` if it is missing, cut short, hostile or of another
/// version.
pub(crate) fn load(path: &CStr) -> Option<Config> {
    let file = fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, fs::Mode::empty()).ok()?;
    let bytes = u64::try_from(fs::fstat(&file).ok()?.st_size).ok()?;
    if bytes < size_of::<ConfigHeader>() as u64 || bytes > FILE_BYTES_MAX {
        return None;
    }
    // SAFETY: without MAP_FIXED the kernel picks a range that nobody uses.
    let base = unsafe {
        memory::map(
            0,
            bytes as usize,
            libc::PROT_READ,
            libc::MAP_PRIVATE,
            file.as_raw_fd(),
            0,
        )
    }
    .ok()?;
    // SAFETY: the mapping is this long and stays; the command line writes a file in full before
    // it names it and never changes it afterwards.
    let file = unsafe {
        core::slice::from_raw_parts(
            core::ptr::with_exposed_provenance::<u64>(base),
            bytes as usize / 8,
        )
    };
    check(file, bytes)
}

/// A table of `count` records of type T at `offset`, if it lies within the file.
fn table<T>(file: &'static [u64], offset: u64, count: u64) -> Option<&'static [T]> {
    const { assert!(align_of::<T>() <= 8) };
    let bytes = count.checked_mul(size_of::<T>() as u64)?;
    let end = offset.checked_add(bytes)?;
    if !offset.is_multiple_of(8) || end > file.len() as u64 * 8 {
        return None;
    }
    let first = file.as_ptr().cast::<u8>();
    // SAFETY: the range lies within the slice, is aligned, and every bit pattern is a value of
    // the record types of the configuration, which hold only integers.
    Some(unsafe { core::slice::from_raw_parts(first.add(offset as usize).cast(), count as usize) })
}

/// Checks every number of the file that is used later, so that nobody has to again.
fn check(file: &'static [u64], bytes: u64) -> Option<Config> {
    let header = *table::<ConfigHeader>(file, 0, 1)?.first()?;
    let mode = Mode::from_u32(header.mode)?;
    let tiers = table::<TierRecord>(file, header.tiers_offset, u64::from(header.tier_count))?;
    let entries = table::<PlanEntry>(file, header.entries_offset, u64::from(header.entry_slots))?;
    let callers = table::<PlanEntry>(file, header.callers_offset, u64::from(header.caller_slots))?;
    let has_tier = |entry: &PlanEntry| (entry.tier as usize) < tiers.len();
    let sound = header.magic == MAGIC
        && header.version == VERSION
        && header.file_bytes == bytes
        && (1..=MAX_DEPTH as u32).contains(&header.depth)
        && header.pool_bytes.is_multiple_of(CHUNK_BYTES)
        && (tiers.is_empty() || (header.default_tier as usize) < tiers.len())
        && tiers.len() <= TIERS_MAX
        && tiers.iter().all(|tier| tier.kind <= 2)
        && header.mover <= Mover::Staged as u32
        && u64::from(header.access_period) <= PERIOD_MAX
        && (header.access_filter_lines == 0 || header.access_filter_lines.is_power_of_two())
        && header.access_filter_lines <= FILTER_LINES_MAX
        && is_searchable(entries)
        && is_searchable(callers)
        && entries
            .iter()
            .all(|entry| entry.hash == 0 || has_tier(entry))
        && callers
            .iter()
            .all(|entry| entry.hash == 0 || entry.tier == TELL_APART || has_tier(entry));
    sound.then_some(Config {
        mode,
        depth: header.depth as usize,
        default_tier: if tiers.is_empty() {
            0
        } else {
            header.default_tier
        },
        own_arena_bytes: header.own_arena_bytes.max(1),
        mapping_bytes: header.mapping_bytes.max(4096) as usize,
        pool_bytes: header.pool_bytes.max(POOL_BYTES_MIN),
        emulation: header.emulation,
        trapping: header.trapping,
        access_period: u64::from(header.access_period),
        access_filter_lines: u64::from(header.access_filter_lines),
        moves: mode == Mode::Online && header.mover == Mover::Staged as u32,
        tiers,
        entries,
        callers,
    })
}

/// Whether every search in an open-addressed table ends: there is an empty slot, or no table.
fn is_searchable(entries: &[PlanEntry]) -> bool {
    entries.is_empty()
        || (entries.len().is_power_of_two() && entries.iter().any(|entry| entry.hash == 0))
}

/// Most tiers; a context cache holds 20 bits, a machine has a handful.
const TIERS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with two tiers and a table of two slots, changed by `edit`.
    fn checked(edit: impl FnOnce(&mut ConfigHeader, &mut [PlanEntry; 2])) -> Option<Config> {
        let header_words = size_of::<ConfigHeader>() / 8;
        let tier_words = 2 * size_of::<TierRecord>() / 8;
        let words = header_words + tier_words + 4;
        let mut header = ConfigHeader::new(Mode::Guided);
        header.tier_count = 2;
        header.entry_slots = 2;
        header.entries_offset = ((header_words + tier_words) * 8) as u64;
        header.file_bytes = (words * 8) as u64;
        let mut entries = [PlanEntry::default(); 2];
        entries[0].hash = 42;
        entries[0].tier = 1;
        edit(&mut header, &mut entries);
        let file: &'static mut [u64] = Box::leak(vec![0u64; words].into_boxed_slice());
        // SAFETY: the leaked slice is long enough for both and aligned.
        unsafe {
            file.as_mut_ptr().cast::<ConfigHeader>().write(header);
            file.as_mut_ptr()
                .add(header_words + tier_words)
                .cast::<[PlanEntry; 2]>()
                .write(entries);
        }
        check(file, (words * 8) as u64)
    }

    #[test]
    fn a_sound_file_is_taken_as_written() {
        let config = checked(|_, _| {}).unwrap();
        assert_eq!(config.mode, Mode::Guided);
        assert_eq!((config.tiers.len(), config.entries.len()), (2, 2));
        assert_eq!(config.entries[0].tier, 1);
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
        assert_eq!(with_callers(TELL_APART).unwrap().callers.len(), 2);
        assert_eq!(with_callers(1).unwrap().callers[0].tier, 1);
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
    }

    #[test]
    fn a_missing_file_is_no_configuration() {
        assert!(load(c"/nonexistent/isotherm").is_none());
    }
}
