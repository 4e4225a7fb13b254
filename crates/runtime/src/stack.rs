//! Implements the hook of `pthread_create`: gives small stacks of the C library extra room, keeps stacks that the program brings itself
//! in place where they lie in the pool (no page trap, no staged move), notes these and the sizes of others for
//! [`crate::thread_stacks`], and starts the timer of the emulation by time in each new thread.
//!
//! The C library takes a thread's static thread-local storage from its stack, and the four instances need 8 KiB
//! of it. jemalloc's slow paths use more stack than the C library's. A program that requests the smallest stack
//! therefore gets some more; one that brings its own stack, or requests a usual size, gets its request.

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;

use crate::delay::DelayedThread;
use crate::instance::INSTANCES;
use crate::next_symbol::Next;
use crate::{delay, placement, pool, staged, thread, thread_stacks};

/// A stack smaller than this is given more room.
const SMALL_BYTES: usize = 256 << 10;

/// The extra room in bytes.
const ROOM_BYTES: usize = 128 << 10;

/// The C library's `pthread_create`.
type Create = unsafe extern "C" fn(
    *mut libc::pthread_t,
    *const libc::pthread_attr_t,
    *mut c_void,
    *mut c_void,
) -> c_int;

// SAFETY: the C library's function has this type.
static CREATE: Next<Create> = unsafe { Next::new(c"pthread_create") };

/// A copy of the attributes with more room, if they request a small stack of the C library's. The program's own
/// stack is not changed.
///
/// # Safety
/// The attributes are initialised, and live as long as the copy, which shares what they point to.
unsafe fn roomier(attributes: *const libc::pthread_attr_t) -> Option<libc::pthread_attr_t> {
    let mut bytes = 0;
    let mut stack = core::ptr::null_mut();
    let mut same = 0;
    // SAFETY: the caller's promise. Attributes without a stack of the program answer the address
    // that is their size below 0.
    unsafe {
        if libc::pthread_attr_getstacksize(attributes, &raw mut bytes) != 0
            || libc::pthread_attr_getstack(attributes, &raw mut stack, &raw mut same) != 0
        {
            return None;
        }
    }
    let own = stack.addr().wrapping_add(same) != 0;
    match own {
        true => {
            thread_stacks::note_own(stack.addr()..stack.addr().saturating_add(same));
            keep_there(stack.addr(), same);
        }
        false => thread_stacks::note_bytes(bytes.saturating_add(ROOM_BYTES)),
    }
    if bytes == 0 || bytes >= SMALL_BYTES || own {
        return None;
    }
    let mut copy = MaybeUninit::uninit();
    // SAFETY: both are valid for one value; the copy is only read, and never destroyed.
    unsafe {
        core::ptr::copy_nonoverlapping(attributes, copy.as_mut_ptr(), 1);
        let set = libc::pthread_attr_setstacksize(copy.as_mut_ptr(), bytes + ROOM_BYTES);
        (set == 0).then(|| copy.assume_init())
    }
}

/// Keeps a stack where it is: the kernel clears a word of it when the thread ends, and cannot wait for a page
/// then, so a thread that joins this one would wait for ever.
fn keep_there(stack: usize, bytes: usize) {
    let inside = pool::overlap(stack, bytes);
    if !inside.is_empty() {
        placement::settle(inside.start, inside.len());
        staged::leave_alone(inside.start, inside.len());
    }
}

/// `pthread_create`.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe extern "C" fn pthread_create_hook(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: *mut c_void,
    argument: *mut c_void,
) -> c_int {
    let Some(create) = CREATE.get() else {
        return libc::EAGAIN;
    };
    // SAFETY: the caller's promise; the copy of the attributes lives until the thread is made.
    unsafe {
        let roomier = (!attributes.is_null())
            .then(|| roomier(attributes))
            .flatten();
        let attributes = roomier.as_ref().map_or(attributes, ptr::from_ref);
        match delay::runs() {
            true => create_delayed(create, thread, attributes, start, argument),
            false => create(thread, attributes, start, argument),
        }
    }
}

/// The function that the program gave a thread, its argument, and the state of the emulation.
struct Start {
    start: *mut c_void,
    argument: *mut c_void,
    delayed: Option<&'static mut DelayedThread>,
}

/// Makes a thread whose memory is slowed by time.
///
/// # Safety
/// As for `pthread_create`.
unsafe fn create_delayed(
    create: Create,
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: *mut c_void,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: a block of this size; the new thread frees it, or this one where there is none. A program may make threads where
    // it may allocate.
    unsafe {
        let kept = (INSTANCES[0].malloc)(size_of::<Start>()).cast::<Start>();
        if kept.is_null() {
            return create(thread, attributes, start, argument);
        }
        kept.write(Start {
            start,
            argument,
            delayed: delay::prepare_thread(),
        });
        let error = create(thread, attributes, run_delayed as *mut c_void, kept.cast());
        if error != 0 {
            if let Some(state) = kept.read().delayed {
                delay::cancel_thread(state);
            }
            (INSTANCES[0].free)(kept.cast());
        }
        error
    }
}

/// The first function of a thread that [`create_delayed`] makes.
unsafe extern "C-unwind" fn run_delayed(kept: *mut c_void) -> *mut c_void {
    // SAFETY: `create_delayed` made the block for this thread, and the program gave a function of this type.
    unsafe {
        let Start {
            start,
            argument,
            delayed,
        } = kept.cast::<Start>().read();
        (INSTANCES[0].free)(kept);
        // The state's destructor ends the timer of a thread that does not return from here.
        let _ = thread::current();
        // A thread that the kernel gives no timer runs at the speed of fast memory.
        let _ = delayed.and_then(delay::enter_thread);
        let start = core::mem::transmute::<
            *mut c_void,
            unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void,
        >(start);
        let result = start(argument);
        delay::leave_thread();
        result
    }
}
