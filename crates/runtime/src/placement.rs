//! Places memory in its tier as far as that has room, and the rest in the next ones: fresh ranges of the pool and static data, by the
//! kernel's memory policies on real nodes, or by the emulation in an emulated pair. Also discards and forgets ranges of the pool, brings
//! back pages that the emulation keeps elsewhere, and keeps changes of a range apart from moves ([`apart`]).

use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

use isotherm_abi::config::{TierRecord, TierRecordKind};
use isotherm_abi::page_tiers::PAGE_BYTES;
use isotherm_abi::session::OffReason;
use isotherm_sys::memory;
use isotherm_sys::policy::{self, MempolicyMode, NodeMask};

use crate::capacity;
use crate::config::{self, Config};
use crate::delay;
use crate::emulation::{self, RangeUse};
use crate::mover_lock;
use crate::pool;
use crate::session;

/// Set once pages of the pool may be away for a while, because the trap or a mover ([`crate::staged`]) runs: a
/// new process must not copy that state.
pub(crate) static AWAY: AtomicBool = AtomicBool::new(false);
/// Set once the kernel refused a tier's nodes; placement is not tried again.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// Notes that pages may be away from now on.
pub(crate) fn set_away() {
    AWAY.store(true, Ordering::Release);
}

/// Whether pages may be away.
#[inline]
pub(crate) fn may_be_away() -> bool {
    AWAY.load(Ordering::Relaxed)
}

/// Places a range that was just opened and not touched yet: in its tier as far as that has room, the rest in the next one.
pub(crate) fn place(address: usize, bytes: usize, tier: u32) {
    let Some(config) = config::current() else {
        return;
    };
    // For every kind of tier: only labelled chunks are sampled.
    set_use(address, bytes, &RangeUse::Tier(tier));
    let end = pool::overlap(address, bytes).end;
    session::publish_tiers_below(pages_below(end));
    if !capacity::is_limited() {
        return bind(address, bytes, tier);
    }
    let mut rest = address..address + bytes;
    capacity::give_back(&rest);
    for tier in tier..config.tiers.len() as u32 {
        let taken = capacity::take(&rest, tier, place_in_slowest);
        if taken > 0 {
            bind(rest.start, taken, tier);
        }
        rest.start += taken;
        if rest.is_empty() {
            return;
        }
    }
}

/// Places static data, which may be touched already: moves what this process has to itself.
pub(crate) fn place_static(range: Range<usize>, tier: u32) {
    delay::place_pages(&range, tier);
    let tiers = config::current().map_or(0, |config| config.tiers.len() as u32);
    let mut rest = range;
    for tier in tier..tiers {
        let taken = capacity::take_for_good(&rest, tier);
        if taken > 0 {
            move_to(rest.start..rest.start + taken, tier);
        }
        rest.start += taken;
        if rest.is_empty() {
            return;
        }
    }
}

/// Gives chunks that hold nothing the tier whose capacity is not limited.
pub(crate) fn place_in_slowest(chunks: Range<usize>) {
    let slowest = config::current().map_or(0, Config::slowest);
    bind(chunks.start, chunks.len(), slowest);
}

/// Gives chunks the slowest tier, if others have a limit.
pub(crate) fn move_to_slowest(chunks: Range<usize>) {
    if capacity::is_limited() {
        capacity::give_back(&chunks);
        move_to(chunks, config::current().map_or(0, Config::slowest));
    }
}

/// Requests the nodes of a tier for the pages of a range, those that are resident too.
fn move_to(range: Range<usize>, tier: u32) {
    set_nodes(range.start, range.len(), tier, policy::set_and_move);
}

/// As [`move_to`], for a part of an object, whose refusal does not end the placement of other data. Returns whether the range is
/// placed now.
pub(crate) fn move_part_to(range: &Range<usize>, tier: u32) -> bool {
    let set = policy::set_and_move;
    !REFUSED.load(Ordering::Relaxed) && try_nodes(range.start, range.len(), tier, set).is_ok()
}

/// Requests the nodes of a tier for the next pages of a range.
fn bind(address: usize, bytes: usize, tier: u32) {
    set_nodes(address, bytes, tier, policy::set_for_range);
}

/// A system call that sets the policy of a range: its address and bytes, the kernel's number of the policy, the nodes.
type SetPolicy = fn(usize, usize, u32, &NodeMask) -> memory::Result<()>;

/// Requests the nodes of a tier for a range. Where the kernel refuses, nothing is placed from then on.
fn set_nodes(address: usize, bytes: usize, tier: u32, set: SetPolicy) {
    if REFUSED.load(Ordering::Relaxed) {
        return;
    }
    let bound = try_nodes(address, bytes, tier, set);
    if bound.is_err() && !REFUSED.swap(true, Ordering::Relaxed) {
        session::off(OffReason::NoPlacement);
    }
}

/// As [`set_nodes`]; answers the kernel's error. No error where the tier is no node.
fn try_nodes(address: usize, bytes: usize, tier: u32, set: SetPolicy) -> memory::Result<()> {
    let tiers = config::current().map_or(&[][..], |config| config.tiers);
    let is_node = |record: &&TierRecord| record.kind == TierRecordKind::Nodes as u32;
    let Some(record) = tiers.get(tier as usize).filter(is_node) else {
        return Ok(());
    };
    let nodes: u32 = record.nodes.iter().map(|word| word.count_ones()).sum();
    let many = MempolicyMode::PreferredMany as u32;
    let wanted = if record.policy == MempolicyMode::Preferred as u32 && nodes > 1 {
        many
    } else {
        record.policy
    };
    let mask = NodeMask::from_words(record.nodes);
    let bound = set(address, bytes, wanted, &mask);
    if bound.is_err() && wanted == many {
        // Kernels before 5.15 do not know the policy; one preferred node is next best.
        return set(address, bytes, MempolicyMode::Preferred as u32, &mask);
    }
    bound
}

/// Pages of the pool below an address, a multiple of a page in it.
fn pages_below(address: usize) -> u64 {
    let bytes = address.saturating_sub(pool::range().start);
    bytes as u64 / PAGE_BYTES
}

/// Does work that changes a range. If the range has a part in the pool, no chunk moves meanwhile.
pub(crate) fn apart<R>(address: usize, bytes: usize, work: impl FnOnce() -> R) -> R {
    let inside = mover_lock::runs() && !pool::overlap(address, bytes).is_empty();
    let _kept = inside.then(mover_lock::keep);
    work()
}

/// Makes a range of the pool read as zero, wherever its contents lie.
///
/// # Errors
/// The kernel's error number.
pub(crate) fn discard(address: usize, bytes: usize) -> memory::Result<()> {
    if emulation::runs() {
        emulation::set_use(address, bytes, &RangeUse::Zeroes);
        return Ok(());
    }
    delay::set_use(address, bytes, &RangeUse::Zeroes);
    capacity::note_spare(address, bytes);
    apart(address, bytes, || {
        // SAFETY: the caller owns the range and wants its contents gone.
        unsafe { memory::advise(address, bytes, libc::MADV_DONTNEED) }
    })
}

/// Brings all contents of a range of the pool home, where they stay.
pub(crate) fn settle(address: usize, bytes: usize) {
    set_use(address, bytes, &RangeUse::Home);
}

/// Forgets a range of the pool before it becomes a reservation again.
pub(crate) fn forget(address: usize, bytes: usize) {
    capacity::give_back(&(address..address + bytes));
    set_use(address, bytes, &RangeUse::Nothing);
}

/// Sets in the emulated pair, by page faults or by time, what a range of the pool is for.
fn set_use(address: usize, bytes: usize, range_use: &RangeUse) {
    emulation::set_use(address, bytes, range_use);
    delay::set_use(address, bytes, range_use);
}
