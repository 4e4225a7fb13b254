//! [`Thread`] is the state of one thread: its cache that finds the site or the placement of a calling context, and its places in arenas of
//! sites. A place has a thread cache of jemalloc, where there is room for one, and the change of the live bytes that is not yet counted at
//! the site. [`allocate`], [`free_block`] and [`reallocate`] serve blocks of these arenas by the thread's place, publish large blocks for
//! the observer, and let an arena follow a change of its tier. A thread that ends leaves its state to a later one.
//!
//! The word of a thread ([`crate::tls`]) is 0 before its first allocation, 1 while its state is being made and
//! after it was released, and the address of the state in between. States are mapped, never unmapped, and used
//! again by later threads, caches warm: a later thread often has the same stack.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering};

use isotherm_sys::memory;

use crate::arena;
use crate::config;
use crate::context::Cache;
use crate::instance::{self, INSTANCES};
use crate::objects;
use crate::site;
use crate::thread_list;
use crate::tls;

/// The word of a thread that has no state and will get none.
const NONE: usize = 1;

/// Places of a thread in arenas of sites; more arenas are used without a thread cache.
const PLACES: usize = 64;
/// Limit of the places in use, so that a search ends soon.
const PLACES_USED_MAX: u32 = 48;
/// Explicit thread caches of jemalloc in the whole process; it has room for 4,094.
const TCACHES_MAX: u32 = 3_500;
/// Live bytes that a thread gathers before it counts them at the site.
const LIVE_BYTES: i64 = 32 << 10;
/// Destructor rounds in which the state is kept, for destructors that run later in a round;
/// POSIX promises 4 rounds.
const ROUNDS: u32 = 3;

/// A thread's place in one arena.
#[repr(C)]
pub(crate) struct Place {
    /// The arena; 0 marks an unused place.
    arena: u32,
    /// Flags that make jemalloc use the arena and the thread's own cache for it.
    flags: c_int,
    /// Bytes allocated less bytes freed, not yet counted at the site.
    live: i64,
}

/// The state of a thread. Zeroes are a new state.
#[repr(C)]
pub(crate) struct Thread {
    pub(crate) cache: Cache,
    places: [Place; PLACES],
    places_used: u32,
    rounds: u32,
    next_free: usize,
}

static KEY: AtomicU32 = AtomicU32::new(u32::MAX);
static TCACHES: AtomicU32 = AtomicU32::new(0);

/// Makes the key whose destructor, `leave`, gives states back. Called once, at start.
pub(crate) fn start(leave: unsafe extern "C" fn(*mut c_void)) -> Option<()> {
    let mut key = 0;
    // SAFETY: the destructor is a function of this library, which is never unloaded.
    let error = unsafe { libc::pthread_key_create(&raw mut key, Some(leave)) };
    (error == 0).then(|| KEY.store(key, Ordering::Release))
}

/// The state of this thread, if it has one already.
#[inline]
pub(crate) fn existing() -> Option<&'static mut Thread> {
    let word = tls::get();
    // SAFETY: the word is the address of a state that only this thread uses. A signal handler that interrupts
    // finds the cache busy where that matters.
    (word > NONE).then(|| unsafe { &mut *core::ptr::with_exposed_provenance_mut(word) })
}

/// The state of this thread; `None` where it gets none.
pub(crate) fn current() -> Option<&'static mut Thread> {
    existing().or_else(|| if tls::get() == NONE { None } else { enter() })
}

/// Gives a new thread its state.
#[cold]
fn enter() -> Option<&'static mut Thread> {
    let key = KEY.load(Ordering::Acquire);
    if key == u32::MAX {
        return None;
    }
    // Allocations in here (a large key makes one) are served without a state.
    tls::set(NONE);
    let address = take_free().or_else(|| memory::fresh(size_of::<Thread>()).ok())?;
    let state = core::ptr::with_exposed_provenance_mut::<Thread>(address);
    // SAFETY: the state belongs to this thread now. The value only needs to be non-null.
    let error = unsafe { libc::pthread_setspecific(key, state.cast::<c_void>()) };
    // SAFETY: as above.
    let state = unsafe { &mut *state };
    state.rounds = 0;
    if error != 0 {
        give_free(state);
        return None;
    }
    tls::set(address);
    Some(state)
}

/// A state that an ended thread left.
fn take_free() -> Option<usize> {
    // SAFETY: states on the list are mapped, and no thread uses them.
    thread_list::take(|address| unsafe {
        (*core::ptr::with_exposed_provenance::<Thread>(address)).next_free
    })
}

/// Leaves a state for a later thread.
pub(crate) fn give_free(state: &mut Thread) {
    let address = core::ptr::from_mut(state).expose_provenance();
    thread_list::give(address, |next| state.next_free = next);
}

impl Thread {
    /// Keeps the state of an ending thread until the next round of destructors, while one is left.
    /// Answers whether it did.
    pub(crate) fn stays(&mut self) -> bool {
        self.rounds += 1;
        if self.rounds > ROUNDS {
            return false;
        }
        let key = KEY.load(Ordering::Relaxed);
        // SAFETY: the key exists. If this fails the state is never given back, which is only a
        // loss of memory.
        unsafe { libc::pthread_setspecific(key, core::ptr::from_mut(self).cast()) == 0 }
    }

    /// Takes the state from this thread, which gets no other.
    pub(crate) fn detach(&mut self) {
        self.settle();
        self.flush_tcaches();
        tls::set(NONE);
    }

    /// Counts everything gathered at its sites.
    pub(crate) fn settle(&mut self) {
        if let Some(config) = config::current() {
            self.cache.flush_all(config);
        }
        for place in &mut self.places {
            if place.arena != 0 {
                site::add_live(place.arena, core::mem::take(&mut place.live));
            }
        }
    }

    /// Empties the thread caches, so that their blocks do not wait for a later thread.
    fn flush_tcaches(&mut self) {
        for place in &mut self.places {
            let tcache = ((place.flags >> 8) & 0xfff) - 2;
            if place.arena != 0 && tcache >= 0 {
                let number = tcache as u32;
                let _ = INSTANCES[0].command(c"tcache.flush", &number);
            }
        }
    }

    /// This thread's place in an arena, made if there is room.
    #[inline]
    fn place(&mut self, arena: u32) -> Option<&mut Place> {
        let slot = arena as usize % PLACES;
        if self.places[slot].arena == arena {
            return Some(&mut self.places[slot]);
        }
        self.place_from(slot, arena)
    }

    /// As [`Self::place`], searched for from a slot on.
    #[inline(never)]
    fn place_from(&mut self, mut slot: usize, arena: u32) -> Option<&mut Place> {
        loop {
            let known = self.places[slot].arena;
            if known == arena {
                return Some(&mut self.places[slot]);
            }
            if known == 0 {
                break;
            }
            slot = (slot + 1) % PLACES;
        }
        if self.places_used >= PLACES_USED_MAX {
            return None;
        }
        self.places_used += 1;
        self.places[slot] = Place {
            arena,
            flags: bare_flags(arena, new_tcache()),
            live: 0,
        };
        Some(&mut self.places[slot])
    }
}

/// Flags for an arena and a thread cache, or none.
fn bare_flags(arena: u32, tcache: Option<u32>) -> c_int {
    instance::arena(arena::jemalloc_number(arena))
        | tcache.map_or(instance::TCACHE_NONE, instance::tcache)
}

/// A new explicit thread cache, if there is room.
fn new_tcache() -> Option<u32> {
    if TCACHES.fetch_add(1, Ordering::Relaxed) < TCACHES_MAX {
        let tcache = INSTANCES[0].control::<u32>(c"tcache.create");
        if tcache.is_some() {
            return tcache;
        }
    }
    TCACHES.fetch_sub(1, Ordering::Relaxed);
    None
}

/// How this thread uses an arena.
struct Use {
    arena: u32,
    /// `None` where the thread has no place in it.
    place: Option<&'static mut Place>,
}

impl Use {
    #[inline]
    fn of(arena: u32) -> Self {
        let place = current().and_then(|state| state.place(arena));
        Self { arena, place }
    }

    /// Flags that make jemalloc use the arena, and the thread's cache for it if there is one.
    fn flags(&self) -> c_int {
        match &self.place {
            Some(place) => place.flags,
            None => bare_flags(self.arena, None),
        }
    }

    /// Counts a change of the live bytes.
    fn count(&mut self, bytes: i64) {
        let live = match &mut self.place {
            Some(place) => {
                place.live += bytes;
                if place.live.abs() < LIVE_BYTES {
                    return;
                }
                core::mem::take(&mut place.live)
            }
            None => bytes,
        };
        site::add_live(self.arena, live);
        // With a place, rare enough for a read of the observer's request, and often enough.
        arena::follow_tier(self.arena);
    }
}

/// Allocates from the arena of a site.
#[inline]
pub(crate) fn allocate(arena: u32, bytes: usize, flags: c_int) -> *mut c_void {
    let bytes = bytes.max(1);
    let mut used = Use::of(arena);
    // SAFETY: the size is not 0 and the flags name an arena and a cache that exist.
    let block = unsafe { instance::_je0_mallocx(bytes, flags | used.flags()) };
    if !block.is_null() {
        // SAFETY: the size is not 0; the function only computes a size.
        let usable = unsafe { (INSTANCES[0].nallocx)(bytes, flags) };
        used.count(usable as i64);
        objects::publish(arena, block.addr(), usable);
    }
    block
}

/// Frees a block of the arena of a site.
///
/// # Safety
/// The block is one of that arena and is not used any more.
#[inline]
pub(crate) unsafe fn free_block(arena: u32, block: *mut c_void) {
    // SAFETY: the caller's promise; the arena belongs to instance 0.
    unsafe {
        let usable = instance::_je0_sallocx(block, 0);
        // Counted before the block is freed, so that the sum never includes another owner's block.
        let mut used = Use::of(arena);
        used.count(-(usable as i64));
        // With its size jemalloc need not look the block up once more.
        (INSTANCES[0].sdallocx)(block, usable, used.flags() & instance::TCACHE_MASK);
    }
}

/// Resizes a block of the arena of a site; it stays in that arena.
///
/// # Safety
/// As for [`free_block`], unless the answer is null.
pub(crate) unsafe fn reallocate(
    arena: u32,
    block: *mut c_void,
    bytes: usize,
    flags: c_int,
) -> *mut c_void {
    let mut used = Use::of(arena);
    // SAFETY: the caller's promise; the arena belongs to instance 0.
    unsafe {
        let before = (INSTANCES[0].sallocx)(block, 0) as i64;
        let moved = (INSTANCES[0].rallocx)(block, bytes.max(1), flags | used.flags());
        if !moved.is_null() {
            let after = (INSTANCES[0].sallocx)(moved, 0) as i64;
            used.count(after - before);
            objects::publish(arena, moved.addr(), after as usize);
        }
        moved
    }
}
