//! Declares and starts [`INSTANCES`], four independent copies of jemalloc: in guided runs one for each of the first tiers, then of the
//! leading records ([`crate::leading`]), while there are instances; in profile and online mode one for all sites, beside spare ones for
//! signal handlers. Finds the instance of an arena's number ([`straight`], [`running_as`]), makes the flags of its `mallocx`, and reads and
//! writes its `mallctl` values.
//!
//! A copy keeps jemalloc's own fast path, which an arena number in each call would lose (measured: 1.0 against 1.4 to 2.0). The build makes
//! both the copies and the declarations, so that they cannot differ.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::fast_path::HOT;

include!(concat!(env!("OUT_DIR"), "/instances.rs"));

/// `MALLOCX_ZERO`: the block comes zeroed.
pub(crate) const ZERO: c_int = 0x40;

/// `MALLOCX_TCACHE_NONE`: the block bypasses the thread's cache.
pub(crate) const TCACHE_NONE: c_int = 1 << 8;

/// `MALLOCX_ALIGN(alignment)`, for a power of two.
pub(crate) const fn align(alignment: usize) -> c_int {
    alignment.trailing_zeros() as c_int
}

/// `MALLOCX_TCACHE(tcache)`.
pub(crate) const fn tcache(tcache: u32) -> c_int {
    (tcache as c_int + 2) << 8
}

/// `MALLOCX_ARENA(arena)`.
pub(crate) const fn arena(arena: u32) -> c_int {
    (arena as c_int + 1) << 20
}

/// Bits of the flags that name an arena or a thread cache.
pub(crate) const PLACE_FLAGS: c_int = !0xff;

/// Number of instances that were started.
static RUNNING: AtomicU32 = AtomicU32::new(1);

/// Number of arenas, from 0 on, that are instances with direct calls: one while passing through, one for each of the first
/// tiers in guided mode, and none while profiling, where each call goes through [`crate::reentrancy`].
#[inline]
pub(crate) fn in_use() -> u32 {
    HOT.instances.load(Ordering::Relaxed)
}

/// Instances that were started: arenas with numbers below this are instances.
#[inline]
pub(crate) fn running() -> u32 {
    RUNNING.load(Ordering::Relaxed)
}

/// The instance of an arena, where direct calls are allowed.
#[inline]
pub(crate) fn straight(arena: u32) -> Option<&'static Instance> {
    numbered(arena, in_use())
}

/// The instance of an arena, with or without direct calls.
#[inline]
pub(crate) fn running_as(arena: u32) -> Option<&'static Instance> {
    numbered(arena, running())
}

#[inline]
fn numbered(number: u32, count: u32) -> Option<&'static Instance> {
    // The remainder avoids a second comparison.
    (number < count).then(|| &INSTANCES[number as usize % INSTANCES.len()])
}

/// The instances that were started.
pub(crate) fn all_running() -> &'static [Instance] {
    &INSTANCES[..running() as usize]
}

/// Starts the first `count` instances and lets them serve, with or without direct calls.
pub(crate) fn start(count: u32, straight: bool) {
    let count = count.clamp(1, INSTANCES.len() as u32);
    // First, so that all memory of the instances is in the pool, where its owner can be found.
    RUNNING.store(count, Ordering::Release);
    HOT.instances
        .store(if straight { count } else { 0 }, Ordering::Release);
    for instance in &INSTANCES[..count as usize] {
        // A query of the version starts it and takes no memory of the pool.
        let _ = instance.control::<usize>(c"version");
    }
}

/// Bits of the flags that name a thread cache.
pub(crate) const TCACHE_MASK: c_int = 0xfff << 8;

impl Instance {
    /// Reads the value of a `mallctl` name, a plain number.
    pub(crate) fn control<T: Copy + Default>(&self, name: &CStr) -> Option<T> {
        let (mut old, mut bytes) = (T::default(), size_of::<T>());
        let place = (&raw mut old).cast();
        // SAFETY: the name ends in NUL, and the value has the stated length.
        let error = unsafe { (self.mallctl)(name.as_ptr(), place, &raw mut bytes, null_mut(), 0) };
        (error == 0).then_some(old)
    }

    /// Writes a value to a `mallctl` name. Returns whether it was accepted.
    pub(crate) fn command<T: Copy>(&self, name: &CStr, value: &T) -> bool {
        let new = core::ptr::from_ref(value).cast_mut().cast();
        // SAFETY: the name ends in NUL, and the value, which is only read, has the stated length.
        unsafe { (self.mallctl)(name.as_ptr(), null_mut(), null_mut(), new, size_of::<T>()) == 0 }
    }
}
