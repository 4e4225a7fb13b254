//! Implements the functions of `include/isotherm.h`, by which a program names its data, gives hints, asks its observer, an `isotherm`
//! process, to profile and optimize, and reads outcomes and statistics: they check the arguments and call the modules that do the work.
//!
//! The header finds them by their names, once `isotherm_serves_header` has said that this runtime serves its version. All keep
//! `errno`, but for allocations without memory. A signal handler may not call them; if it does, its allocations have no name.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ops::Range;
use core::ptr::{copy_nonoverlapping, from_mut, from_ref, null_mut};
use core::sync::atomic::{AtomicU64, Ordering};

use isotherm_abi::from_number;
use isotherm_abi::interface::{
    FREQUENCY_MAX, HEADER_VERSION, InterfaceAction, InterfaceObject, InterfaceOptions,
    InterfaceRequest, InterfaceResult, InterfaceStatistics, InterfaceStatus, NAME_WORDS,
    OutcomeRecord, SHARE_WHOLE_PPM, bytes_in_common, is_served,
};
use isotherm_abi::named_data::{NAME_BYTES_MAX, is_name, site_of_name};
use isotherm_abi::session::SessionCounter;
use zerocopy::FromZeros;

use crate::compiled_site::counted_arena;
use crate::config;
use crate::errno::{errno, set_errno};
use crate::fast_path::HOT;
use crate::heap::{self, Origin};
use crate::hints;
use crate::message;
use crate::observer_request::{self, Request};
use crate::reentrancy;
use crate::registered;
use crate::session;
use crate::site;
use crate::start;
use crate::state;

/// Number of optimizations of this process, and the bytes that they moved.
static OPTIMIZATIONS: AtomicU64 = AtomicU64::new(0);
static PROMOTED_BYTES: AtomicU64 = AtomicU64::new(0);
static DEMOTED_BYTES: AtomicU64 = AtomicU64::new(0);

/// Whether the runtime works in this process.
fn works() -> bool {
    if HOT.state.get() == state::UNDECIDED {
        start::decide();
    }
    matches!(HOT.state.get(), state::GUIDED | state::PROFILE)
}

/// Does the work of a function of the interface, where the runtime works, and returns its status. Keeps `errno`.
fn answered(work: impl FnOnce() -> Result<(), InterfaceStatus>) -> c_int {
    if !works() {
        return InterfaceStatus::Absent as c_int;
    }
    let before = errno();
    let status = work().err().unwrap_or(InterfaceStatus::Ok);
    set_errno(before);
    status as c_int
}

/// `isotherm_version`.
#[cfg_attr(not(test), unsafe(export_name = "isotherm_version"))]
extern "C" fn version() -> c_int {
    if works() { HEADER_VERSION as c_int } else { 0 }
}

/// `isotherm_serves_header`: 1 where this runtime works and serves programs with this version of the header. Where it works and does
/// not serve them, it prints so.
#[cfg_attr(not(test), unsafe(export_name = "isotherm_serves_header"))]
extern "C" fn serves_header(version: c_int) -> c_int {
    if !works() {
        return 0;
    }
    let serves = u32::try_from(version).is_ok_and(is_served);
    if !serves {
        let before = errno();
        message::refused_header(version);
        set_errno(before);
    }
    c_int::from(serves)
}

/// A valid name of the program's; `None` for another text.
///
/// # Safety
/// Null, or a text that ends in NUL and lives for this call.
unsafe fn name_at<'a>(text: *const c_char) -> Option<&'a [u8]> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise; nothing behind the end or the limit is read.
    let name = unsafe {
        let length = libc::strnlen(text, NAME_BYTES_MAX + 1);
        core::slice::from_raw_parts(text.cast::<u8>(), length)
    };
    is_name(name).then_some(name)
}

/// The name of data as the origin of an allocation: its arena or the number of a split in guided mode, the number of its site else.
/// `None` for data without a valid name, or where no site can be had: its origin counts for nothing.
#[derive(Clone, Copy)]
struct NamedData(Option<u32>);

impl NamedData {
    /// # Safety
    /// The name is null or a text that ends in NUL.
    unsafe fn of(name: *const c_char) -> Self {
        // SAFETY: the caller's promise.
        let name = unsafe { name_at(name) }.filter(|_| works());
        Self(name.and_then(number_of))
    }
}

impl Origin for NamedData {
    fn arena(self, bytes: usize) -> u32 {
        match (self.0, HOT.state.get()) {
            (Some(site), state::PROFILE) => counted_arena(site, bytes),
            (Some(arena), _) => arena,
            (None, _) => config::current().map_or(0, heap::unplaced),
        }
    }
}

/// The number of a name. `None` where no site can be had: without a configuration, and in a signal handler.
fn number_of(name: &[u8]) -> Option<u32> {
    let config = config::current()?;
    if reentrancy::level() > 0 {
        return None;
    }
    let _visit = reentrancy::enter(0);
    if HOT.state.get() == state::PROFILE {
        return Some(site::of_name(name));
    }
    if session::current().is_some() {
        // Reported so that a plan of another program can be recognised.
        let _ = site::of_name(name);
    }
    Some(config.arena_of(config.target_or_default(site_of_name(name))))
}

/// `isotherm_alloc`.
///
/// # Safety
/// The name is null or a text that ends in NUL.
#[cfg_attr(not(test), unsafe(export_name = "isotherm_alloc"))]
unsafe extern "C" fn alloc(name: *const c_char, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    heap::allocate(bytes, 0, unsafe { NamedData::of(name) })
}

/// `isotherm_calloc`.
///
/// # Safety
/// As for [`alloc`].
#[cfg_attr(not(test), unsafe(export_name = "isotherm_calloc"))]
unsafe extern "C" fn alloc_zeroed(name: *const c_char, count: usize, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    heap::allocate_zeroed(count, bytes, unsafe { NamedData::of(name) })
}

/// `isotherm_alloc_aligned`.
///
/// # Safety
/// As for [`alloc`].
#[cfg_attr(not(test), unsafe(export_name = "isotherm_alloc_aligned"))]
unsafe extern "C" fn alloc_aligned(
    name: *const c_char,
    bytes: usize,
    alignment: usize,
) -> *mut c_void {
    if !alignment.is_power_of_two() {
        set_errno(libc::EINVAL);
        return null_mut();
    }
    // SAFETY: the caller's promise.
    heap::allocate_at_multiple(alignment, bytes, unsafe { NamedData::of(name) })
}

/// `isotherm_free`.
///
/// # Safety
/// As for `free`.
#[cfg_attr(not(test), unsafe(export_name = "isotherm_free"))]
unsafe extern "C" fn free_object(object: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { libc::free(object) }
}

/// The addresses of memory of the program; `None` where there are none.
fn range_at(address: *mut c_void, bytes: usize) -> Option<Range<usize>> {
    let end = address.addr().checked_add(bytes)?;
    (!address.is_null() && bytes > 0).then(|| address.addr()..end)
}

/// `isotherm_register`.
///
/// # Safety
/// The name is null or a text that ends in NUL.
#[cfg_attr(not(test), unsafe(export_name = "isotherm_register"))]
unsafe extern "C" fn register_memory(
    name: *const c_char,
    address: *mut c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { name_at(name) };
    answered(|| match (name, range_at(address, bytes)) {
        (Some(name), Some(range)) => registered::add(name, &range),
        _ => Err(InterfaceStatus::Invalid),
    })
}

/// `isotherm_unregister`.
#[cfg_attr(not(test), unsafe(export_name = "isotherm_unregister"))]
extern "C" fn unregister_memory(address: *mut c_void) -> c_int {
    answered(|| registered::remove(address.addr()))
}

/// `isotherm_profile_start_at`.
#[cfg_attr(not(test), unsafe(export_name = "isotherm_profile_start_at"))]
extern "C" fn profile_start_at(frequency: u32) -> c_int {
    if frequency > FREQUENCY_MAX {
        return answered(|| Err(InterfaceStatus::Invalid));
    }
    let request = Request {
        frequency,
        ..Request::of(InterfaceAction::ProfileStart)
    };
    ask(&request, |_| ())
}

/// `isotherm_profile_start`.
#[cfg_attr(not(test), unsafe(export_name = "isotherm_profile_start"))]
extern "C" fn profile_start() -> c_int {
    ask(&Request::of(InterfaceAction::ProfileStart), |_| ())
}

/// `isotherm_profile_stop`.
#[cfg_attr(not(test), unsafe(export_name = "isotherm_profile_stop"))]
extern "C" fn profile_stop() -> c_int {
    ask(&Request::of(InterfaceAction::ProfileStop), |_| ())
}

/// Asks the observer; `read` gets its answer.
fn ask(request: &Request, read: impl FnOnce(&InterfaceRequest)) -> c_int {
    let mut status = InterfaceStatus::Ok as u32;
    let asked = answered(|| {
        observer_request::ask(request, |answer| {
            status = answer.status.load(Ordering::Relaxed);
            read(answer);
        })
    });
    if asked == 0 {
        status.min(InterfaceStatus::Failed as u32) as c_int
    } else {
        asked
    }
}

/// `isotherm_optimize`.
///
/// # Safety
/// Each pointer is null or leads to as many bytes as its first word says.
#[cfg_attr(not(test), unsafe(export_name = "isotherm_optimize"))]
unsafe extern "C" fn optimize(
    options: *const InterfaceOptions,
    result: *mut InterfaceResult,
) -> c_int {
    let mut found = InterfaceResult::of_status(InterfaceStatus::Ok);
    // SAFETY: the caller's promise.
    let (request, room) = unsafe { (request_of(options), room_for_result(result)) };
    let status = match request.filter(|_| room.is_some()) {
        Some(request) => ask(&request, |answer| found = result_of(answer)),
        None if works() => InterfaceStatus::Invalid as c_int,
        None => InterfaceStatus::Absent as c_int,
    };
    if status == InterfaceStatus::Ok as c_int {
        OPTIMIZATIONS.fetch_add(1, Ordering::Relaxed);
        PROMOTED_BYTES.fetch_add(found.promoted_bytes, Ordering::Relaxed);
        DEMOTED_BYTES.fetch_add(found.demoted_bytes, Ordering::Relaxed);
    }
    if let Some(bytes) = room.filter(|bytes| *bytes > 0) {
        found.size = bytes as u32;
        found.status = status as u32;
        // SAFETY: the caller's promise: it is long enough.
        unsafe { write_bytes(result, &found, bytes) };
    }
    status
}

/// The bytes that a result takes: 0 for null, `None` for a size that no version has.
///
/// # Safety
/// As for [`optimize`].
unsafe fn room_for_result(result: *const InterfaceResult) -> Option<usize> {
    if result.is_null() {
        return Some(0);
    }
    // SAFETY: the caller's promise.
    unsafe { bytes_known(result, InterfaceResult::BYTES_LEAST) }
}

/// The bytes of a struct of the program, which begins with its size, that this runtime knows; `None` for a size that no version has.
///
/// # Safety
/// The pointer leads to four bytes at least.
unsafe fn bytes_known<T>(place: *const T, least: usize) -> Option<usize> {
    // SAFETY: the caller's promise.
    let size = unsafe { place.cast::<u32>().read() };
    bytes_in_common(size, least, size_of::<T>())
}

/// Writes the first bytes of a value over those of a struct of the program.
///
/// # Safety
/// The place and the value have at least this many bytes.
unsafe fn write_bytes<T: Copy>(place: *mut T, value: &T, bytes: usize) {
    // SAFETY: the caller's promise; the value is the runtime's own, so they do not overlap.
    unsafe { copy_nonoverlapping(from_ref(value).cast::<u8>(), place.cast(), bytes) };
}

/// Fills a struct of the program, which begins with its size, with what `find` makes for the size that this runtime knows.
///
/// # Safety
/// The pointer is null or leads to as many bytes as its first word says.
unsafe fn fill<T: Copy>(
    place: *mut T,
    least: usize,
    find: impl FnOnce(u32) -> Result<T, InterfaceStatus>,
) -> c_int {
    answered(|| {
        if place.is_null() {
            return Err(InterfaceStatus::Invalid);
        }
        // SAFETY: the caller's promise.
        let bytes = unsafe { bytes_known(place, least) }.ok_or(InterfaceStatus::Invalid)?;
        let found = find(bytes as u32)?;
        // SAFETY: it is long enough.
        unsafe { write_bytes(place, &found, bytes) };
        Ok(())
    })
}

/// The request of these options; `None` where one is out of range.
///
/// # Safety
/// As for [`optimize`].
unsafe fn request_of(options: *const InterfaceOptions) -> Option<Request> {
    if options.is_null() {
        return Some(Request::of(InterfaceAction::Optimize));
    }
    let mut known = InterfaceOptions::default();
    // SAFETY: the caller's promise; no more is read than there is, and no more than the runtime's struct holds, which takes any bits.
    unsafe {
        let bytes = bytes_known(options, InterfaceOptions::BYTES_LEAST)?;
        copy_nonoverlapping(options.cast::<u8>(), from_mut(&mut known).cast(), bytes);
    }
    let options = known;
    // Not a number is in no range.
    let share = Some(options.share).filter(|share| (0.0..=1.0).contains(share))?;
    Some(Request {
        policy: from_number(options.policy)?,
        fast_bytes: options.fast_bytes,
        share_ppm: ppm(share),
        ..Request::of(InterfaceAction::Optimize)
    })
}

/// A share in millionths: of a share above zero one at least, because none means the capacity of the run.
fn ppm(share: f64) -> u64 {
    let rounded = (share * SHARE_WHOLE_PPM as f64) as u64;
    rounded.max(u64::from(share > 0.0))
}

fn result_of(answer: &InterfaceRequest) -> InterfaceResult {
    let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
    InterfaceResult {
        promoted_bytes: read(&answer.promoted_bytes),
        demoted_bytes: read(&answer.demoted_bytes),
        placed_bytes: read(&answer.placed_bytes),
        failed_bytes: read(&answer.failed_bytes),
        selected_bytes: read(&answer.selected_bytes),
        samples: read(&answer.samples),
        selection_ns: read(&answer.selection_ns),
        migration_ns: read(&answer.migration_ns),
        capacity_bytes: read(&answer.capacity_bytes),
        stayed_bytes: answer.stayed_bytes.each_ref().map(read),
        frequency: read(&answer.frequency_used),
        ..InterfaceResult::of_status(InterfaceStatus::Ok)
    }
}

/// `isotherm_read_object`.
///
/// # Safety
/// The pointer is null or leads to as many bytes as its first word says.
#[cfg_attr(not(test), unsafe(export_name = "isotherm_read_object"))]
unsafe extern "C" fn read_object(number: u64, place: *mut InterfaceObject) -> c_int {
    let found = |size| {
        Ok(InterfaceObject {
            size,
            ..object(number)?
        })
    };
    // SAFETY: the caller's promise.
    unsafe { fill(place, InterfaceObject::BYTES_LEAST, found) }
}

/// The outcome of the last optimization for the data object with this number. A forked child, whose session is another, has none.
fn object(number: u64) -> Result<InterfaceObject, InterfaceStatus> {
    let session = session::current().ok_or(InterfaceStatus::Unknown)?;
    let words = &session.header().interface;
    let answered = observer_request::last_answered(words).ok_or(InterfaceStatus::Busy)?;
    let slots = session.layout().outcome_slots;
    let count = session.header().outcomes.count.load(Ordering::Acquire);
    if number >= count.min(slots) {
        return Err(InterfaceStatus::Unknown);
    }
    let found = object_of(session.outcome(number));
    // Another thread may have begun the next optimization, whose outcomes these are in part.
    match observer_request::last_answered(words) {
        Some(still) if still == answered => Ok(found),
        _ => Err(InterfaceStatus::Busy),
    }
}

fn object_of(record: &OutcomeRecord) -> InterfaceObject {
    let read = |word: &AtomicU64| word.load(Ordering::Acquire);
    let mut name = [0; NAME_WORDS * size_of::<u64>()];
    for (bytes, word) in name.chunks_exact_mut(size_of::<u64>()).zip(&record.name) {
        bytes.copy_from_slice(&read(word).to_ne_bytes());
    }
    // Whatever the file holds, the program's text ends.
    name[NAME_BYTES_MAX] = 0;
    InterfaceObject {
        name,
        address: read(&record.address),
        bytes: read(&record.bytes),
        samples: read(&record.samples),
        resident_bytes: read(&record.resident_bytes),
        fast_bytes: read(&record.fast_bytes),
        selected_bytes: read(&record.selected_bytes),
        placed_bytes: read(&record.placed_bytes),
        promoted_bytes: read(&record.promoted_bytes),
        demoted_bytes: read(&record.demoted_bytes),
        stayed_bytes: record.stayed_bytes.each_ref().map(read),
        ..InterfaceObject::new_zeroed()
    }
}

/// `isotherm_read_statistics`.
///
/// # Safety
/// The pointer is null or leads to as many bytes as its first word says.
#[cfg_attr(not(test), unsafe(export_name = "isotherm_read_statistics"))]
unsafe extern "C" fn read_statistics(place: *mut InterfaceStatistics) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        fill(place, InterfaceStatistics::BYTES_LEAST, |size| {
            Ok(statistics(size))
        })
    }
}

fn statistics(size: u32) -> InterfaceStatistics {
    let counter = |counter: SessionCounter| {
        session::current().map_or(0, |session| {
            session.counter(counter).load(Ordering::Relaxed)
        })
    };
    let (named, named_bytes) = site::living_names();
    let (registered, registered_bytes) = registered::living();
    InterfaceStatistics {
        size,
        profiling: u32::from(observer_request::is_profiling()),
        objects: named + registered,
        object_bytes: named_bytes + registered_bytes,
        fast_bytes: counter(SessionCounter::FastBytes),
        slow_bytes: counter(SessionCounter::SlowBytes),
        optimizations: OPTIMIZATIONS.load(Ordering::Relaxed),
        promoted_bytes: PROMOTED_BYTES.load(Ordering::Relaxed),
        demoted_bytes: DEMOTED_BYTES.load(Ordering::Relaxed),
    }
}

/// `isotherm_hint`.
#[cfg_attr(not(test), unsafe(export_name = "isotherm_hint"))]
extern "C" fn hint(address: *mut c_void, bytes: usize, hint: u32) -> c_int {
    answered(|| match (range_at(address, bytes), from_number(hint)) {
        (Some(range), Some(hint)) => hints::give(&range, hint),
        _ => Err(InterfaceStatus::Invalid),
    })
}

/// `isotherm_status_text`, in the words of the header.
#[cfg_attr(not(test), unsafe(export_name = "isotherm_status_text"))]
extern "C" fn status_text(status: c_int) -> *const c_char {
    const TEXTS: [&CStr; 11] = [
        c"done",
        c"Isotherm's runtime is not loaded, or is off",
        c"no process observes this one",
        c"nothing was profiled, so nothing was moved",
        c"another thread waits for an answer",
        c"an argument is out of range",
        c"a part of the memory has a name already",
        c"no registered object begins there",
        c"this memory stays where it is",
        c"a table of the runtime is full",
        c"the kernel refused",
    ];
    let text = usize::try_from(status)
        .ok()
        .and_then(|number| TEXTS.get(number));
    text.map_or(c"an unknown status".as_ptr(), |text| text.as_ptr())
}
