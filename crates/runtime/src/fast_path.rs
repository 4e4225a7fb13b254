//! [`FastPathState`] holds the data that the fast paths of `malloc`, `free` and their relatives read (mode, pool and owners of its chunks,
//! number of jemalloc's copies, key of cached contexts, map for `free`), side by side in one cache line. [`HOT`] is that of the process.
//!
//! All of it is written at start, except the generation, which changes after a module is unloaded or a context
//! guess was wrong, and the word on Python, which is set once an interpreter runs.

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};

use crate::state::State;

/// The cache line. The entry shims of the allocating functions read its first byte.
#[repr(C, align(64))]
pub(crate) struct FastPathState {
    /// The mode, one of the numbers in [`crate::state`].
    pub(crate) state: State,
    /// Whether blocks are freed by instance 0, which finds the owner of what is not its own.
    pub(crate) frees_in_first: AtomicBool,
    /// Whether the thread's Python functions distinguish contexts; see [`crate::python`].
    pub(crate) reads_python: AtomicBool,
    /// Number of instances that serve tiers; see [`crate::instance`].
    pub(crate) instances: AtomicU32,
    /// First address of the pool.
    pub(crate) base: AtomicUsize,
    /// Bytes of the pool; 0 where there is none.
    pub(crate) bytes: AtomicUsize,
    /// Owner of each chunk of the pool.
    pub(crate) owners: AtomicPtr<AtomicU32>,
    /// Mixed into every context's key; see [`crate::context`].
    pub(crate) generation: AtomicU64,
    /// All ones, or 0 where contexts of one caller need no stack pointer.
    pub(crate) stack_mask: AtomicUsize,
    /// The owner of each block that instance 0 does not free; see [`crate::free_route`]. Null where instance 0
    /// owns all.
    pub(crate) free_map: AtomicPtr<AtomicU8>,
}

const _: () = assert!(size_of::<FastPathState>() == 64);

/// The cache line of this process.
pub(crate) static HOT: FastPathState = FastPathState {
    state: State::undecided(),
    frees_in_first: AtomicBool::new(false),
    reads_python: AtomicBool::new(false),
    instances: AtomicU32::new(1),
    base: AtomicUsize::new(0),
    bytes: AtomicUsize::new(0),
    owners: AtomicPtr::new(core::ptr::null_mut()),
    generation: AtomicU64::new(0),
    stack_mask: AtomicUsize::new(usize::MAX),
    free_map: AtomicPtr::new(core::ptr::null_mut()),
};
