//! Describes what a program and the observer of its run (the Isotherm process outside it) exchange in the session file for the functions of
//! `include/isotherm.h`: [`InterfaceRequest`] (profile from here to there, and move now what the profile says) with the answer, the outcome
//! for each data object, hints about the heat of data, and the structs of the header, whose layout a test compares with C's.
//!
//! The reverse of [`crate::session::MoveRequest`]: here the runtime asks, and the observer answers. One request at a time: the
//! next is written when the last was answered, or when the program gave up waiting for it.
//!
//! ```text
//! runtime    kind, policy, frequency, fast_bytes, share_ppm, then asked   |  waits until answered == asked
//! observer   serves: observer_pid, heartbeat                              |  outcomes of objects, status, numbers, then answered
//! ```

use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, AtomicU64};

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, TryFromBytes};

/// `ISOTHERM_HEADER_VERSION`: the version of the header and of the functions that the runtime exports for it.
pub const HEADER_VERSION: u32 = 103;

/// Whether a runtime of this crate's version serves programs with this version of the header: every one of the same hundred.
#[must_use]
pub const fn is_served(version: u32) -> bool {
    version / 100 == HEADER_VERSION / 100
}

/// Most bytes of a struct of the header, in any version: a greater size is invalid.
pub const STRUCT_BYTES_MOST: usize = 4096;

/// The bytes of a struct that the runtime and its program both know. `None` for a size that no version has: version 100 had `least`
/// bytes, the runtime's has `known`, and each version adds whole words at the end.
#[must_use]
pub const fn bytes_in_common(size: u32, least: usize, known: usize) -> Option<usize> {
    let size = size as usize;
    if size < least || size > STRUCT_BYTES_MOST || !size.is_multiple_of(8) {
        return None;
    }
    Some(if size < known { size } else { known })
}

/// The action that a request asks for: [`InterfaceRequest::kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes)]
#[repr(u32)]
pub enum InterfaceAction {
    /// Begin a profile of the process; one that is being taken is discarded.
    ProfileStart = 1,
    /// End the profile.
    ProfileStop = 2,
    /// Choose from the last profile what is to be in fast memory, and move it.
    Optimize = 3,
}

/// The policy of an optimization, `enum isotherm_policy`: [`InterfaceRequest::policy`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, TryFromBytes)]
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

/// The result of a function of the interface, `enum isotherm_status`: [`InterfaceRequest::status`].
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
    /// An argument is out of range, or a struct has a size that no version has.
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

/// Why bytes stay in the tier where they were, `enum isotherm_reason`: the place of their number in [`InterfaceRequest::stayed_bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum InterfaceReason {
    /// Hot, and hotter data takes the fast memory that may be used.
    Capacity = 0,
    /// Neither samples nor hints prove it hot.
    NotHot = 1,
    /// It has no pages.
    NotTouched = 2,
    /// A hint calls memory hot that the run does not place.
    NotMovable = 3,
    /// The memory that it was to enter is full.
    NoRoom = 4,
    /// Its pages were in use, or the program did not obey in time.
    InUse = 5,
    /// Shared with another process since a fork.
    Shared = 6,
    /// The kernel refused.
    Refused = 7,
}

/// Reasons, and words of [`InterfaceRequest::stayed_bytes`].
pub const REASONS: usize = 8;

/// Millionths in a whole: the unit of [`InterfaceRequest::share_ppm`].
pub const SHARE_WHOLE_PPM: u64 = 1_000_000;

/// A request of the program, and the observer's answer.
#[derive(Debug, Default, FromBytes, IntoBytes)]
#[repr(C)]
pub struct InterfaceRequest {
    /// Number of the newest request, written last (runtime).
    pub asked: AtomicU32,
    /// An [`InterfaceAction`].
    pub kind: AtomicU32,
    /// An [`InterfacePolicy`]; of [`InterfaceAction::Optimize`].
    pub policy: AtomicU32,
    /// Samples a second of each thread's processor time, of [`InterfaceAction::ProfileStart`]; 0: as the run chooses.
    pub frequency: AtomicU32,
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
    /// Bytes of fast memory that the choice may use.
    pub capacity_bytes: AtomicU64,
    /// Bytes that stay in slow memory or could not be moved, by [`InterfaceReason`].
    pub stayed_bytes: [AtomicU64; REASONS],
    /// Samples a second of each thread's processor time at the end of the profile; 0 where no timer sampled.
    pub frequency_used: AtomicU64,
    /// The process that serves requests; 0 where none does.
    pub observer_pid: AtomicU32,
    /// Grows while the observer serves, at least once a second between requests.
    pub heartbeat: AtomicU32,
    /// 1 while a profile that the program requested is taken.
    pub profiling: AtomicU32,
    /// Zero.
    pub reserved_last: AtomicU32,
}

const _: () = assert!(size_of::<InterfaceRequest>() == 200);

/// Highest [`InterfaceRequest::frequency`].
pub const FREQUENCY_MAX: u32 = 20_000;

/// Data objects whose outcomes are kept; of more the largest without a name are left out.
pub const OUTCOME_SLOTS: u64 = 4096;

/// What the last optimization did to each data object ([`OutcomeRecord`]).
#[derive(Debug, FromBytes, IntoBytes)]
#[repr(C)]
pub struct OutcomeTable {
    /// Slots; 0 where nothing is optimized.
    pub slots: u64,
    /// Start of the records.
    pub offset: u64,
    /// Records in use, by address; stored last (observer).
    pub count: AtomicU64,
}

/// What an optimization did to one data object, or to the data of a site between data objects.
#[derive(Debug, FromBytes, IntoBytes)]
#[repr(C)]
pub struct OutcomeRecord {
    /// Its name, ended by NUL; empty where the program gave none.
    pub name: [AtomicU64; NAME_WORDS],
    /// First address.
    pub address: AtomicU64,
    /// Bytes.
    pub bytes: AtomicU64,
    /// Samples in it.
    pub samples: AtomicU64,
    /// Bytes with pages after the moves.
    pub resident_bytes: AtomicU64,
    /// Resident bytes in fast memory.
    pub fast_bytes: AtomicU64,
    /// As [`InterfaceRequest::selected_bytes`], of the object, and so on.
    pub selected_bytes: AtomicU64,
    /// See `selected_bytes`.
    pub placed_bytes: AtomicU64,
    /// See `selected_bytes`.
    pub promoted_bytes: AtomicU64,
    /// See `selected_bytes`.
    pub demoted_bytes: AtomicU64,
    /// See `selected_bytes`.
    pub stayed_bytes: [AtomicU64; REASONS],
}

/// Words of a name with its end ([`crate::named_data::NAME_BYTES_MAX`]).
pub const NAME_WORDS: usize = 8;

const _: () = assert!(size_of::<OutcomeRecord>() == 200);

/// How hot the program says that memory is, `enum isotherm_hint`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes)]
#[repr(u32)]
pub enum InterfaceHint {
    /// Into fast memory before everything else.
    Hot = 0,
    /// Into slow memory.
    Cold = 1,
    /// Read or written in order.
    Streaming = 2,
    /// No hint.
    Unknown = 3,
}

/// Most hints of a process at a time.
pub const HINT_SLOTS: usize = 64;

/// A hint about a range of memory. Of two about the same memory, the one with the greater number is the newer.
#[derive(Debug, FromBytes, IntoBytes)]
#[repr(C)]
pub struct HintRecord {
    /// Number of the hint, from 1 on, stored last; 0 where the slot is free or being written.
    pub number: AtomicU64,
    /// First address.
    pub address: AtomicU64,
    /// Bytes.
    pub bytes: AtomicU64,
    /// An [`InterfaceHint`].
    pub hint: AtomicU32,
    /// Zero.
    pub reserved: AtomicU32,
}

const _: () = assert!(size_of::<HintRecord>() == 32);

/// `struct isotherm_options`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct InterfaceOptions {
    /// Bytes of this struct.
    pub size: u32,
    /// An [`InterfacePolicy`].
    pub policy: u32,
    /// Most bytes of fast memory; 0 where the share limits.
    pub fast_bytes: u64,
    /// Most fast memory, as a share of the recorded data; 0: the capacity of the run.
    pub share: f64,
}

/// `struct isotherm_result`. From `status` on it has the layout of the answer in an [`InterfaceRequest`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoBytes, Immutable)]
#[repr(C)]
pub struct InterfaceResult {
    /// Bytes of this struct.
    pub size: u32,
    /// An [`InterfaceStatus`].
    pub status: u32,
    /// As [`InterfaceRequest::promoted_bytes`], and so on.
    pub promoted_bytes: u64,
    /// See `promoted_bytes`.
    pub demoted_bytes: u64,
    /// See `promoted_bytes`.
    pub placed_bytes: u64,
    /// See `promoted_bytes`.
    pub failed_bytes: u64,
    /// See `promoted_bytes`.
    pub selected_bytes: u64,
    /// See `promoted_bytes`.
    pub samples: u64,
    /// See `promoted_bytes`.
    pub selection_ns: u64,
    /// See `promoted_bytes`.
    pub migration_ns: u64,
    /// See `promoted_bytes`. Since version 102, and so are those below.
    pub capacity_bytes: u64,
    /// See `promoted_bytes`.
    pub stayed_bytes: [u64; REASONS],
    /// As [`InterfaceRequest::frequency_used`]. Since version 103.
    pub frequency: u64,
}

/// `struct isotherm_object`, since version 103. From `name` on it has the layout of an [`OutcomeRecord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct InterfaceObject {
    /// Bytes of this struct.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// As [`OutcomeRecord::name`], and so on.
    pub name: [u8; NAME_WORDS * 8],
    /// See `name`.
    pub address: u64,
    /// See `name`.
    pub bytes: u64,
    /// See `name`.
    pub samples: u64,
    /// See `name`.
    pub resident_bytes: u64,
    /// See `name`.
    pub fast_bytes: u64,
    /// See `name`.
    pub selected_bytes: u64,
    /// See `name`.
    pub placed_bytes: u64,
    /// See `name`.
    pub promoted_bytes: u64,
    /// See `name`.
    pub demoted_bytes: u64,
    /// See `name`.
    pub stayed_bytes: [u64; REASONS],
}

/// `struct isotherm_statistics`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct InterfaceStatistics {
    /// Bytes of this struct.
    pub size: u32,
    /// 1 while a profile is taken.
    pub profiling: u32,
    /// Registered objects, and names whose data lives.
    pub objects: u64,
    /// Bytes of these objects and of the data of these names.
    pub object_bytes: u64,
    /// Bytes of the process in emulated fast memory.
    pub fast_bytes: u64,
    /// Bytes of the process in emulated slow memory.
    pub slow_bytes: u64,
    /// Optimizations that succeeded.
    pub optimizations: u64,
    /// Bytes that they moved to fast memory.
    pub promoted_bytes: u64,
    /// Bytes that they moved to slow memory.
    pub demoted_bytes: u64,
}

const _: () = assert!(size_of::<InterfaceOptions>() == 24);
const _: () = assert!(size_of::<InterfaceResult>() == 152);
const _: () = assert!(size_of::<InterfaceObject>() == 208);
const _: () = assert!(size_of::<InterfaceStatistics>() == 64);

/// Asserts that each of these fields has the same distance from the field `first` in both structs.
macro_rules! assert_same_distances {
    ($one:ty, $other:ty, $first:ident: $($field:ident)*) => {
        $(assert!(
            offset_of!($one, $field) - offset_of!($one, $first)
                == offset_of!($other, $field) - offset_of!($other, $first)
        );)*
    };
}

const _: () = {
    assert_same_distances!(InterfaceResult, InterfaceRequest, status: promoted_bytes demoted_bytes placed_bytes failed_bytes
        selected_bytes samples selection_ns migration_ns capacity_bytes stayed_bytes);
    let answer = offset_of!(InterfaceRequest, status);
    let result = offset_of!(InterfaceResult, status);
    let frequency = offset_of!(InterfaceRequest, frequency_used);
    assert!(offset_of!(InterfaceResult, frequency) - result == frequency - answer);
    assert!(
        size_of::<InterfaceResult>() - result
            == offset_of!(InterfaceRequest, observer_pid) - answer
    );
    assert_same_distances!(InterfaceObject, OutcomeRecord, name: address bytes samples resident_bytes fast_bytes selected_bytes
        placed_bytes promoted_bytes demoted_bytes stayed_bytes);
    assert!(offset_of!(OutcomeRecord, name) == 0);
    let object = offset_of!(InterfaceObject, name);
    assert!(size_of::<InterfaceObject>() - object == size_of::<OutcomeRecord>());
};

impl InterfaceOptions {
    /// Bytes in version 100.
    pub const BYTES_LEAST: usize = 24;
}

impl InterfaceResult {
    /// Bytes in version 100.
    pub const BYTES_LEAST: usize = 72;

    /// A result without numbers.
    #[must_use]
    pub fn of_status(status: InterfaceStatus) -> Self {
        Self {
            size: size_of::<Self>() as u32,
            status: status as u32,
            ..Self::default()
        }
    }
}

impl InterfaceObject {
    /// Bytes in version 103.
    pub const BYTES_LEAST: usize = 208;

    /// An object without numbers. A longer name than there is room for is cut, also in the middle of a letter.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        let mut object = Self {
            size: size_of::<Self>() as u32,
            ..Self::new_zeroed()
        };
        // The last byte is the name's end.
        let bytes = name.len().min(object.name.len() - 1);
        object.name[..bytes].copy_from_slice(&name.as_bytes()[..bytes]);
        object
    }
}

impl InterfaceStatistics {
    /// Bytes in version 100.
    pub const BYTES_LEAST: usize = 64;
}

#[cfg(test)]
mod tests {
    use super::{STRUCT_BYTES_MOST, bytes_in_common, is_served};

    #[test]
    fn every_version_of_the_same_hundred_is_served() {
        let served = [100, 101, 102, 199].map(is_served);
        assert_eq!(served, [true; 4]);
        let refused = [0, 1, 99, 200, 202, u32::MAX].map(is_served);
        assert_eq!(refused, [false; 6]);
    }

    #[test]
    fn of_an_older_struct_and_a_newer_one_the_common_bytes_are_known() {
        let common = |size| bytes_in_common(size, 72, 144);
        assert_eq!(common(72), Some(72));
        assert_eq!(common(80), Some(80));
        assert_eq!(common(144), Some(144));
        assert_eq!(common(152), Some(144));
        assert_eq!(common(STRUCT_BYTES_MOST as u32), Some(144));
        for none in [0, 8, 71, 76, 145, STRUCT_BYTES_MOST as u32 + 8, u32::MAX] {
            assert_eq!(common(none), None, "{none}");
        }
    }
}
