//! Requests of a program to the observer of its run: profile from here to there, and move now what the profile says
//! (`include/isotherm.h`).
//!
//! The reverse of [`crate::session::MoveRequest`]: here the runtime asks, and the observer answers. One request at a time: the
//! next is written when the last was answered, or when the program gave up waiting for it.
//!
//! ```text
//! runtime    kind, policy, fast_bytes, share_ppm, then asked      |  waits until answered == asked
//! observer   serves: observer_pid, heartbeat                      |  status, the result's numbers, then answered
//! ```

use core::sync::atomic::{AtomicU32, AtomicU64};

/// What a request asks for: [`InterfaceRequest::kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum InterfaceAction {
    /// Begin a profile of the process; one that is being taken is discarded.
    ProfileStart = 1,
    /// End the profile.
    ProfileStop = 2,
    /// Choose from the last profile what is to be in fast memory, and move it.
    Optimize = 3,
}

impl InterfaceAction {
    /// The action with this number.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::ProfileStart),
            2 => Some(Self::ProfileStop),
            3 => Some(Self::Optimize),
            _ => None,
        }
    }
}

/// The policy of an optimization, `enum isotherm_policy`: [`InterfaceRequest::policy`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum InterfacePolicy {
    /// The policy of the run.
    #[default]
    Default = 0,
    /// ATMem.
    Atmem = 1,
    /// Thermos.
    Thermos = 2,
}

impl InterfacePolicy {
    /// The policy with this number.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Default),
            1 => Some(Self::Atmem),
            2 => Some(Self::Thermos),
            _ => None,
        }
    }
}

/// What a function of the interface returns, `enum isotherm_status`: [`InterfaceRequest::status`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum InterfaceStatus {
    /// Done.
    Ok = 0,
    /// No runtime is loaded, or it is off.
    Absent = 1,
    /// No process observes this one.
    NoObserver = 2,
    /// Nothing was profiled, so nothing was moved.
    NoSamples = 3,
    /// Another thread waits for an answer.
    Busy = 4,
    /// An argument is out of range, or a struct is newer than the runtime.
    Invalid = 5,
    /// A part of the memory is registered already.
    Overlap = 6,
    /// The address begins no registered object.
    Unknown = 7,
    /// Memory that cannot be moved: a stack, a file, memory shared with other processes.
    NotMovable = 8,
    /// A table of the runtime is full.
    NoRoom = 9,
    /// The kernel refused.
    Failed = 10,
}

/// Millionths in a whole: the unit of [`InterfaceRequest::share_ppm`].
pub const SHARE_WHOLE_PPM: u64 = 1_000_000;

/// A request of the program, and the observer's answer.
#[derive(Debug, Default)]
#[repr(C)]
pub struct InterfaceRequest {
    /// Number of the newest request, written last (runtime).
    pub asked: AtomicU32,
    /// An [`InterfaceAction`].
    pub kind: AtomicU32,
    /// An [`InterfacePolicy`]; of [`InterfaceAction::Optimize`].
    pub policy: AtomicU32,
    /// Zero.
    pub reserved: AtomicU32,
    /// Most bytes of fast memory; 0 where [`Self::share_ppm`] limits.
    pub fast_bytes: AtomicU64,
    /// Most fast memory, in millionths of the recorded data; 0: the capacity of the run.
    pub share_ppm: AtomicU64,
    /// Number of the newest request that was carried out, written last (observer, as all below).
    pub answered: AtomicU32,
    /// An [`InterfaceStatus`].
    pub status: AtomicU32,
    /// Bytes moved to fast memory.
    pub promoted_bytes: AtomicU64,
    /// Bytes moved to slow memory.
    pub demoted_bytes: AtomicU64,
    /// Bytes that were already in the tier chosen for them.
    pub placed_bytes: AtomicU64,
    /// Bytes that could not be moved.
    pub failed_bytes: AtomicU64,
    /// Bytes chosen for fast memory.
    pub selected_bytes: AtomicU64,
    /// Samples on which the choice rests.
    pub samples: AtomicU64,
    /// Time of the choice, in nanoseconds.
    pub selection_ns: AtomicU64,
    /// Time of the moves, in nanoseconds.
    pub migration_ns: AtomicU64,
    /// The process that serves requests; 0 where none does.
    pub observer_pid: AtomicU32,
    /// Grows while the observer serves, at least once a second between requests.
    pub heartbeat: AtomicU32,
    /// 1 while a profile that the program requested is taken.
    pub profiling: AtomicU32,
    /// Zero.
    pub reserved_last: AtomicU32,
}

const _: () = assert!(size_of::<InterfaceRequest>() == 120);
