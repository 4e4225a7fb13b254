//! [`Cache`], one for each thread, finds the placement or the site of an allocation by its calling context, almost always without unwinding
//! the stack: by the return address, the stack pointer and the words that held the next return addresses. Where sites are recorded, it also
//! counts the allocations of each context, and adds them to the site a few at a time.
//!
//! ```text
//! (return address, stack pointer) --> set of 4 ways --> value, if the words on the stack where
//!                                                       the next return addresses lay are still
//!                                                       the same
//! ```
//!
//! Where a thread runs Python, a key of its functions ([`crate::python::key`]) is part of the pair: they are not on the stack.
//!
//! The words distinguish contexts with the same return address and stack pointer. Where there are more of these than a set
//! has ways, the rest are in a second table, which is indexed by the words as well; the first table stores where the words
//! are. Words are read only in the page of the stack pointer, and up to the end of the stack that the program started with,
//! which are certainly mapped; callers further up are not checked, so the answer stays a guess. Therefore a context is
//! unwound again after 1,024 hits, and after twice as many (65,536 at most) each time the guess was right; a return address
//! with a wrong guess is unwound always.
//!
//! The cached value is what the mode needs: the tier or the split in guided mode, else the site. Behind the caches of the
//! threads is one shared table from whole contexts to values, so that a context is named (modules looked up,
//! build-ids hashed) once in a process.

use core::sync::atomic::{AtomicU64, Ordering, compiler_fence};

use isotherm_abi::config::RuntimeMode;
use isotherm_abi::hash::SiteHashKind;
use isotherm_abi::session::SessionCounter;

use crate::callers;
use crate::config::Config;
use crate::fast_path::HOT;
use crate::python;
use crate::session;
use crate::site;
use crate::unwind::{Caller, Context, unwind};

/// Sets of a thread's cache. A compiler that makes 3,000 contexts at many depths of its stack misses one allocation of
/// three with 256 sets here and 512 in the second table, and one of seven with these; more bring little.
const SETS: usize = 1024;
/// Contexts with one (return address, stack pointer) that are kept side by side.
const WAYS: usize = 4;
/// Sets of the second table, which is looked up by the checked words as well. 4,096 contexts are
/// what a thread knows beside the first table's 4,096; a line of 64 bytes each, where one is used.
const FURTHER_SETS: usize = 1024;
/// Callers beyond the direct one that are checked on the stack.
const CHECKED: usize = 3;
/// Hits after which a new context is unwound again.
const PERIOD_MIN: u32 = 1 << 10;
/// Hits after which a context that proved right many times is unwound again.
const PERIOD_MAX: u32 = 1 << 16;

/// One known context: a cache line.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
struct Way {
    /// Return address, stack pointer and generation; 0 marks an unused way.
    key: u64,
    /// Hash of the checked words.
    check: u64,
    /// All ones, or 0 where no word is checked.
    mask: u64,
    /// Offsets of the checked words, in words above the stack pointer.
    slots: [u16; CHECKED],
    /// Tier, the number of a split, or site.
    value: u32,
    /// Arena that serves the site, as of the last count; 0 is the shared arena.
    arena: u32,
    /// Hits that are left until the next slow path.
    left: u32,
    /// Hits that the last slow path granted.
    granted: u32,
    /// Hits counted since the context was last unwound.
    unchecked: u32,
    /// Hits after which it is unwound again.
    period: u32,
    /// Bytes not yet counted at the site.
    bytes: u64,
}

const _: () = assert!(size_of::<Way>() == 64);

/// A thread's cache. All zeroes is an empty cache.
#[repr(C)]
pub(crate) struct Cache {
    /// Set during a slow path: allocations from inside it (the unwinder, a signal handler) are served without
    /// this cache.
    busy: bool,
    /// The way of each set that is replaced next.
    next: [u8; SETS],
    further_next: [u8; FURTHER_SETS],
    /// A bit for each set that ever held a context, so that the end of a thread looks at no others.
    used: [u64; SETS / 64],
    further_used: [u64; FURTHER_SETS / 64],
    sets: [[Way; WAYS]; SETS],
    further: [[Way; WAYS]; FURTHER_SETS],
    /// Used where a context must not be kept.
    spare: Way,
}

/// Where a context is cached.
#[derive(Clone, Copy)]
enum Place {
    /// Set and way of the first table.
    First(usize, usize),
    /// Set and way of the second table.
    Further(usize, usize),
}

/// Slots of the shared table.
const SHARED_SLOTS: usize = 1 << 16;
/// Bits of a slot that hold the value; the rest is part of the context's hash.
const VALUE_MASK: u64 = (1 << 20) - 1;
static SHARED: [AtomicU64; SHARED_SLOTS] = [const { AtomicU64::new(0) }; SHARED_SLOTS];

/// One bit per hashed return address with a wrong guess.
static UNSTABLE: [AtomicU64; 256] = [const { AtomicU64::new(0) }; 256];

/// Forgets all cached contexts, because addresses may belong to other code now.
pub(crate) fn forget_all() {
    HOT.generation.fetch_add(1, Ordering::Release);
    callers::forget_all();
}

/// Spreads the bits (the finaliser of `SplitMix64`, cut to one round, which is enough for tables
/// of this size).
#[inline]
fn mix(value: u64) -> u64 {
    let value = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value ^ (value >> 32)
}

/// The key of a caller, and the set that is searched for it. `python` is the [`python::key`] of the thread.
#[inline]
fn key_of(caller: Caller, python: u64) -> (u64, usize) {
    let generation = HOT.generation.load(Ordering::Relaxed);
    let stack = caller.stack & HOT.stack_mask.load(Ordering::Relaxed);
    let mixed = (caller.address as u64).rotate_left(32) ^ (stack as u64) ^ (generation << 56);
    let mixed = mixed ^ python;
    // No hash: the pair itself is the key (never 0, which marks an unused way), and its low bits,
    // which differ between calls and between depths of the stack, choose the set.
    let set = (caller.address ^ (stack >> 4) ^ python as usize) % SETS;
    (mixed, set)
}

/// The set of the second table that can hold a context.
#[inline]
fn further_set(key: u64, check: u64) -> usize {
    mix(key ^ check.rotate_left(29)) as usize % FURTHER_SETS
}

/// Hash of the words at some slots above the stack pointer. No branch: a context without checked words reads
/// the word at the stack pointer and masks it away.
///
/// # Safety
/// The stack pointer is live, and each slot was accepted by [`visible_slot`] for it or is 0.
#[inline]
unsafe fn check_of(stack: usize, slots: &[u16; CHECKED], mask: u64) -> u64 {
    let base = core::ptr::with_exposed_provenance::<u64>(stack);
    let mut check = 0u64;
    for &slot in slots {
        // SAFETY: the word is in the page of the live stack pointer, or in the first stack.
        check = check.rotate_left(21) ^ unsafe { base.add(slot as usize).read_volatile() };
    }
    check & mask
}

/// The kernel maps nothing but the first stack in this many bytes below its end: the gap that it keeps there is at least twice
/// as large (`mmap_base` in Linux's `mm/util.c`).
const FIRST_STACK_BYTES: usize = 64 << 20;

/// The end of the stack that the program started with; 0 if it is not known. The kernel puts the program's name there.
fn first_stack_end() -> usize {
    // SAFETY: the C library reads the vector that the kernel gave the program.
    unsafe { libc::getauxval(libc::AT_EXECFN) as usize }
}

/// The slot of an address above the stack pointer, if it is in the same page, or in the first stack, which ends at `end`.
fn visible_slot(stack: usize, address: usize, end: usize) -> Option<u16> {
    let page = 4096;
    let first_stack = end.saturating_sub(FIRST_STACK_BYTES)..end;
    let is_mapped = address / page == stack / page
        || (first_stack.contains(&stack) && first_stack.contains(&address));
    if address < stack || !address.is_multiple_of(8) || !is_mapped {
        return None;
    }
    u16::try_from((address - stack) / 8).ok()
}

/// Whether the guess for this address was wrong before.
fn unstable_bit(address: usize) -> (&'static AtomicU64, u64) {
    let hash = mix(address as u64) as usize;
    (&UNSTABLE[(hash >> 6) % UNSTABLE.len()], 1 << (hash % 64))
}

impl Cache {
    /// The first way of the caller's set, if it is the caller's context. This is the hot path of almost every
    /// allocation, so it is inlined.
    #[inline(always)]
    fn quick(&mut self, caller: Caller, python: u64) -> Option<&mut Way> {
        let (key, set) = key_of(caller, python);
        let known = &mut self.sets[set][0];
        // SAFETY: the slots were made for this very key, so for this stack pointer: they are in its
        // page, or in the first stack.
        let same = known.key == key
            && unsafe { check_of(caller.stack, &known.slots, known.mask) } == known.check;
        if !same || known.left == 0 || self.busy {
            return None;
        }
        known.left -= 1;
        Some(known)
    }

    /// The value of an allocation's context, if it is found at once: in guided mode, the tier or the number of a split.
    #[inline(always)]
    pub(crate) fn quick_value(&mut self, caller: Caller, python: u64) -> Option<u32> {
        self.quick(caller, python).map(|way| way.value)
    }

    /// Counts an allocation at its site and returns the arena that serves it, if both are possible at once.
    #[inline(always)]
    pub(crate) fn quick_arena(&mut self, caller: Caller, bytes: usize, python: u64) -> Option<u32> {
        let way = self.quick(caller, python)?;
        way.bytes = way.bytes.saturating_add(bytes as u64);
        if way.bytes >= PATIENCE_BYTES {
            way.give_up_rest();
        }
        Some(way.arena)
    }

    /// The value of an allocation's context. `None` during a slow path.
    #[inline(never)]
    pub(crate) fn value(&mut self, config: &Config, caller: Caller) -> Option<u32> {
        if self.busy {
            return None;
        }
        Some(self.find(config, caller).value)
    }

    /// Counts an allocation at its site and returns the arena that serves it. `None` during a slow path.
    #[inline(never)]
    pub(crate) fn arena(&mut self, config: &Config, caller: Caller, bytes: usize) -> Option<u32> {
        if self.busy {
            return None;
        }
        let way = self.find(config, caller);
        way.bytes = way.bytes.saturating_add(bytes as u64);
        if way.left > 0 && way.bytes < PATIENCE_BYTES {
            return Some(way.arena);
        }
        let way = core::ptr::from_mut(way);
        self.begin();
        // SAFETY: the way is in this cache, and nothing else uses the cache while it is busy.
        let arena = flush(config, unsafe { &mut *way });
        self.end();
        Some(arena)
    }

    /// Begins a slow path.
    fn begin(&mut self) {
        self.busy = true;
        compiler_fence(Ordering::SeqCst);
    }

    /// Ends a slow path.
    fn end(&mut self) {
        compiler_fence(Ordering::SeqCst);
        self.busy = false;
    }

    /// The context of an allocation, which is one of its hits. Finds it in the cache, or unwinds. Inlined, as all
    /// between the hook and the unwinder: each frame of ours is unwound as well.
    #[inline(always)]
    fn find(&mut self, config: &Config, caller: Caller) -> &mut Way {
        let (key, set) = key_of(caller, python::key());
        let Some(place) = self.place_of(caller, key, set) else {
            return self.miss(config, caller, key, set);
        };
        if self.at(place).left == 0 {
            self.begin();
            let way = self.at(place);
            flush(config, way);
            let due = way.unchecked >= way.period;
            self.end();
            if due && config.depth > 1 && !self.still_is(config, caller, place) {
                return self.distrust(config, caller);
            }
        }
        let way = self.at(place);
        way.left -= 1;
        way
    }

    /// Where the caller's context is cached.
    #[inline(always)]
    fn place_of(&self, caller: Caller, key: u64, set: usize) -> Option<Place> {
        for (way, known) in self.sets[set].iter().enumerate() {
            if known.key != key {
                continue;
            }
            // SAFETY: as in `quick`.
            let check = unsafe { check_of(caller.stack, &known.slots, known.mask) };
            if check == known.check {
                return Some(Place::First(set, way));
            }
            let further = further_set(key, check);
            let same = |other: &Way| {
                other.key == key && other.check == check && other.slots == known.slots
            };
            if let Some(way) = self.further[further].iter().position(same) {
                return Some(Place::Further(further, way));
            }
        }
        None
    }

    fn at(&mut self, place: Place) -> &mut Way {
        match place {
            Place::First(set, way) => &mut self.sets[set][way],
            Place::Further(set, way) => &mut self.further[set][way],
        }
    }

    /// Unwinds a hit again, to check that the cached context is the right one.
    #[cold]
    fn still_is(&mut self, config: &Config, caller: Caller, place: Place) -> bool {
        self.begin();
        session::count(SessionCounter::ContextChecks, 1);
        let context = unwind(caller, config.depth);
        let value = heap_value(config, caller, &context);
        self.end();
        let way = self.at(place);
        way.unchecked = 0;
        way.period = (way.period * 2).min(PERIOD_MAX);
        way.value == value
    }

    /// Unwinds every allocation of this return address from now on.
    #[cold]
    fn distrust(&mut self, config: &Config, caller: Caller) -> &mut Way {
        session::count(SessionCounter::ContextMismatches, 1);
        let (word, bit) = unstable_bit(caller.address);
        word.fetch_or(bit, Ordering::Relaxed);
        // The address may be cached in other sets and threads, too.
        forget_all();
        let (key, set) = key_of(caller, python::key());
        self.miss(config, caller, key, set)
    }

    /// Unwinds, and remembers what was found.
    #[inline(always)]
    fn miss(&mut self, config: &Config, caller: Caller, key: u64, set: usize) -> &mut Way {
        self.begin();
        session::count(SessionCounter::ContextMisses, 1);
        let context = unwind(caller, config.depth);
        let value = heap_value(config, caller, &context);
        let (word, bit) = unstable_bit(caller.address);
        if word.load(Ordering::Relaxed) & bit != 0 {
            self.end();
            return self.keep_aside(config, value);
        }
        let mut found = Way {
            key,
            ..first_hit(value)
        };
        if config.depth > 1 {
            see_callers(&mut found, caller, &context);
        }
        let next = usize::from(self.next[set]) % WAYS;
        self.next[set] = self.next[set].wrapping_add(1);
        self.used[set / 64] |= 1 << (set % 64);
        let old = core::mem::replace(&mut self.sets[set][next], found);
        self.keep_further(config, old);
        // The newest context moves to the front, where it is found first.
        self.sets[set].swap(0, next);
        self.end();
        &mut self.sets[set][0]
    }

    /// Moves an evicted context to the second table, if its words distinguish it from the others there.
    fn keep_further(&mut self, config: &Config, mut old: Way) {
        if old.mask == 0 {
            flush(config, &mut old);
            return;
        }
        let set = further_set(old.key, old.check);
        let next = usize::from(self.further_next[set]) % WAYS;
        self.further_next[set] = self.further_next[set].wrapping_add(1);
        flush(config, &mut self.further[set][next]);
        self.further_used[set / 64] |= 1 << (set % 64);
        self.further[set][next] = old;
    }

    /// A context that is not cached: counted at once.
    fn keep_aside(&mut self, config: &Config, value: u32) -> &mut Way {
        self.begin();
        flush(config, &mut self.spare);
        self.end();
        self.spare = first_hit(value);
        &mut self.spare
    }

    /// Counts all pending allocations at their sites.
    pub(crate) fn flush_all(&mut self, config: &Config) {
        self.begin();
        for set in bits(&self.used) {
            for way in &mut self.sets[set] {
                flush(config, way);
            }
        }
        for set in bits(&self.further_used) {
            for way in &mut self.further[set] {
                flush(config, way);
            }
        }
        flush(config, &mut self.spare);
        self.end();
    }
}

/// The numbers of the bits that are set.
fn bits(words: &[u64]) -> impl Iterator<Item = usize> {
    let numbered = (0..).step_by(64).zip(words);
    numbered.flat_map(|(first, &word)| {
        let lowest = core::iter::successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)));
        let set = lowest.take_while(|&rest| rest != 0);
        set.map(move |rest| first + rest.trailing_zeros() as usize)
    })
}

/// A context that was just unwound, for an allocation that is not counted yet.
fn first_hit(value: u32) -> Way {
    Way {
        value,
        granted: 1,
        period: PERIOD_MIN,
        ..Way::default()
    }
}

impl Way {
    /// Hits since the last slow path.
    fn hits(&self) -> u32 {
        self.granted - self.left
    }

    /// Makes the next hit take the slow path.
    fn give_up_rest(&mut self) {
        self.granted = self.hits();
        self.left = 0;
    }
}

/// Pending bytes after which a way is counted at its site, even with few allocations.
const PATIENCE_BYTES: u64 = 32 << 10;
/// Allocations after which a way is counted at its site. The first are counted sooner, so that a site that
/// allocates rarely is visible, and a count lags by half at most.
const PATIENCE_MAX: u32 = 64;

/// Counts a way's hits and grants new ones. Returns the arena that serves it now.
fn flush(config: &Config, way: &mut Way) -> u32 {
    let hits = way.hits();
    if hits == 0 {
        return way.arena;
    }
    session::count(SessionCounter::Allocations, u64::from(hits));
    way.unchecked = way.unchecked.saturating_add(hits);
    if config.mode == RuntimeMode::Guided {
        way.granted = way.period;
    } else {
        let bytes = core::mem::take(&mut way.bytes);
        way.granted = (hits * 2 + 1).min(PATIENCE_MAX);
        way.arena = site::add(config, way.value, u64::from(hits), bytes);
    }
    way.left = way.granted;
    way.arena
}

/// Stores in a way where the callers' return addresses are on the stack, as far as these places are visible.
fn see_callers(way: &mut Way, caller: Caller, context: &Context) {
    let (mut checked, end) = (0, first_stack_end());
    for frame in 1..context.depth.min(CHECKED + 1) {
        let (below, above) = (context.stacks[frame - 1], context.stacks[frame]);
        let Some(place) = saved_address(below, above, context.addresses[frame]) else {
            break;
        };
        let Some(slot) = visible_slot(caller.stack, place, end) else {
            break;
        };
        way.slots[checked] = slot;
        checked += 1;
    }
    if checked == 0 {
        return;
    }
    // Slots that are not needed repeat the last.
    let last = way.slots[checked - 1];
    way.slots[checked..].fill(last);
    way.mask = u64::MAX;
    // SAFETY: every slot was accepted for this stack pointer, which is live.
    way.check = unsafe { check_of(caller.stack, &way.slots, way.mask) };
}

/// Where in a frame (from its stack pointer to the next frame's) a return address is saved.
fn saved_address(below: usize, above: usize, address: usize) -> Option<usize> {
    // A larger frame is not searched: its slot is visible in the first stack only.
    if below == 0 || above <= below || above - below > 4096 || !above.is_multiple_of(8) {
        return None;
    }
    (below.next_multiple_of(8)..above)
        .step_by(8)
        .rev()
        .find(|&place| {
            // SAFETY: the word is in a live frame that the unwinder walked.
            unsafe { core::ptr::with_exposed_provenance::<usize>(place).read_volatile() == address }
        })
}

/// The value of a heap allocation's context. In guided mode a caller with one tier passes it to all of its
/// contexts, those that the plan does not know and those that it omits for that reason too, and is not looked
/// up again.
fn heap_value(config: &Config, caller: Caller, context: &Context) -> u32 {
    let value = value_of(config, context, SiteHashKind::Heap);
    let Some(direct) = context.frames().first() else {
        return value;
    };
    if config.mode != RuntimeMode::Guided {
        return value;
    }
    let name = site::name(&context.direct(), SiteHashKind::Heap);
    let Some(tier) = config.tier_of_caller(name) else {
        return value;
    };
    // A context may begin above the caller, where that is this library.
    if *direct == caller.address {
        callers::learn(caller.address, tier);
    }
    tier
}

/// The value of a context, from the shared table or newly made.
pub(crate) fn value_of(config: &Config, context: &Context, kind: SiteHashKind) -> u32 {
    let generation = HOT.generation.load(Ordering::Relaxed);
    let mut hash = mix(generation ^ ((kind as u64) << 63));
    for &address in context.frames() {
        hash = mix(hash.rotate_left(5) ^ address as u64);
    }
    let tag = (hash | (1 << 63)) & !VALUE_MASK;
    let slot = &SHARED[hash as usize % SHARED_SLOTS];
    // The addresses of Python code are used again for other code, so the names are read each time.
    let is_shared = context.python.as_slice().is_empty();
    let word = slot.load(Ordering::Acquire);
    if is_shared && word & !VALUE_MASK == tag {
        return (word & VALUE_MASK) as u32;
    }
    let value = if config.mode == RuntimeMode::Guided {
        // Reported so that a plan of another program or version can be recognised; once for each context,
        // and the allocation does not need the number.
        let name = match session::current() {
            Some(_) => site::with_name(context, kind).0,
            None => site::name(context, kind),
        };
        config.arena_of(config.target_or_default(name))
    } else {
        site::of(context, kind)
    };
    if is_shared && value != site::NO_SITE {
        slot.store(tag | u64::from(value), Ordering::Release);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bit_that_is_set_is_named_once_and_in_order() {
        let words = [0, 1 | 1 << 63, 0, 1 << 5];
        assert!(bits(&words).eq([64, 127, 197]));
        assert!(bits(&[u64::MAX, u64::MAX]).eq(0..128));
    }

    #[test]
    fn words_in_the_page_of_the_stack_pointer_and_in_the_first_stack_are_read() {
        for end in [0, 0x8000, 1 << 40] {
            assert_eq!(visible_slot(0x7000, 0x7000, end), Some(0));
            assert_eq!(visible_slot(0x7008, 0x7ff8, end), Some(510));
            assert_eq!(visible_slot(0x7008, 0x8000, end), None);
            assert_eq!(visible_slot(0x7008, 0x7000, end), None);
            assert_eq!(visible_slot(0x7008, 0x7011, end), None);
        }
        let end = 1 << 40;
        let stack = end - 0x2008;
        assert_eq!(visible_slot(stack, stack + 0x2000, end), Some(0x400));
        assert_eq!(visible_slot(stack, end, end), None);
        assert_eq!(visible_slot(end - (9 << 20), end - 8, end), None, "too far");
        let other = end - super::FIRST_STACK_BYTES - 8;
        assert_eq!(visible_slot(other, other + 8, end), None);
    }

    /// The words that distinguish callers may lie in the next page: where the stack begins is random.
    #[test]
    fn the_end_of_the_first_stack_is_above_this_process_s_environment() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let stack = maps.lines().find(|line| line.ends_with("[stack]"));
        let range = stack.and_then(|line| line.split(' ').next()).unwrap();
        let (_, end) = range.split_once('-').unwrap();
        let end = usize::from_str_radix(end, 16).unwrap();
        let found = super::first_stack_end();
        assert!(found < end && end - found <= 2 * 4096, "{found:x} {range}");
    }

    #[test]
    fn the_check_changes_with_any_checked_word_and_their_order() {
        let page = isotherm_sys::memory::fresh(4096).unwrap();
        let words = core::ptr::with_exposed_provenance_mut::<u64>(page);
        let slots = [1, 5, 9];
        // SAFETY: the page was mapped here and is long enough.
        let sum = |values: [u64; 3]| unsafe {
            for (slot, value) in slots.iter().zip(values) {
                words.add(*slot as usize).write(value);
            }
            check_of(page, &slots, u64::MAX)
        };
        let first = sum([10, 20, 30]);
        assert_ne!(first, sum([11, 20, 30]));
        assert_ne!(first, sum([10, 20, 31]));
        assert_ne!(first, sum([20, 10, 30]));
        assert_eq!(first, sum([10, 20, 30]));
    }

    #[test]
    fn a_saved_address_is_found_in_its_frame_only() {
        let page = isotherm_sys::memory::fresh(4096).unwrap();
        let words = core::ptr::with_exposed_provenance_mut::<usize>(page);
        // SAFETY: the page was mapped here and is long enough.
        unsafe { words.add(7).write(0x1234) };
        assert_eq!(saved_address(page, page + 64, 0x1234), Some(page + 56));
        assert_eq!(saved_address(page, page + 56, 0x1234), None);
        assert_eq!(saved_address(0, page + 64, 0x1234), None);
    }
}
