//! [`unwind`] finds the calling context of an allocation or a mapping ([`Context`]): its native callers by the C++ runtime's unwinder, from
//! the [`Caller`] that the hook passes on, and the Python functions around them.
//!
//! `_Unwind_Backtrace` follows the unwind tables (77 ns for four callers, where `backtrace()` of
//! the C library takes 1,440). It allocates nothing once the tables are those of loaded modules.
//! It may allocate, under a lock of its own, where a just-in-time compiler registered tables by
//! hand; such an allocation is never unwound ([`crate::module::is_unwinder`]).

use core::ffi::{c_int, c_void};

use isotherm_abi::MAX_DEPTH;

use crate::module;
use crate::python::{self, PythonFrames};

unsafe extern "C" {
    fn _Unwind_Backtrace(
        visit: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_GetCFA(context: *mut c_void) -> usize;
}

/// `_URC_NO_REASON`: go on.
const GO_ON: c_int = 0;
/// `_URC_END_OF_STACK`: enough.
const ENOUGH: c_int = 5;

/// Most frames of our own that are skipped in search of the caller.
const OWN_FRAMES_MAX: usize = 32;

/// The caller of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// Return address of the call; 0: not known, use the first frame outside this library.
    pub(crate) address: usize,
    /// Stack pointer in the caller.
    pub(crate) stack: usize,
}

/// A calling context: return addresses, innermost first, and the stack pointer in each frame; then the Python functions around these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Context {
    /// Return addresses.
    pub(crate) addresses: [usize; MAX_DEPTH],
    /// Stack pointer in each caller, as after the return of the call.
    pub(crate) stacks: [usize; MAX_DEPTH],
    /// Return addresses in use; with the Python functions, at most [`MAX_DEPTH`].
    pub(crate) depth: usize,
    /// The Python functions.
    pub(crate) python: PythonFrames,
}

impl Context {
    /// The context of these callers, at most [`MAX_DEPTH`], without their stack pointers.
    pub(crate) fn of(callers: impl IntoIterator<Item = usize>) -> Self {
        let mut context = Self::default();
        for (place, address) in context.addresses.iter_mut().zip(callers) {
            *place = address;
            context.depth += 1;
        }
        context
    }

    /// The return addresses in use.
    pub(crate) fn frames(&self) -> &[usize] {
        &self.addresses[..self.depth]
    }

    /// The direct caller alone.
    pub(crate) fn direct(&self) -> Self {
        Self {
            depth: self.depth.min(1),
            python: PythonFrames::default(),
            ..*self
        }
    }
}

/// The state of one walk.
struct Walk {
    context: Context,
    caller: Caller,
    wanted: usize,
    skipped: usize,
}

/// Up to `wanted` callers, and as many Python functions around them. At least the direct caller, if its address is known. Inlined:
/// its own frame would be unwound first.
#[inline(always)]
pub(crate) fn unwind(caller: Caller, wanted: usize) -> Context {
    let mut alone = Context {
        python: python_around(caller, wanted),
        ..Context::default()
    };
    if caller.address != 0 {
        alone.addresses[0] = caller.address;
        alone.stacks[0] = caller.stack;
        alone.depth = 1;
        let is_known = has_python(&alone) && python::is_interpreter(caller.address);
        if wanted == 1 || is_known || module::is_unwinder(caller.address) {
            return alone;
        }
    }
    let mut walk = Walk {
        context: Context { depth: 0, ..alone },
        caller,
        wanted: wanted.min(MAX_DEPTH - alone.python.as_slice().len()),
        skipped: 0,
    };
    // SAFETY: the callback gets the walk it expects, which outlives the call.
    unsafe { _Unwind_Backtrace(visit, (&raw mut walk).cast()) };
    if walk.context.depth == 0 {
        alone
    } else {
        walk.context
    }
}

/// The Python functions of a context with this many callers.
fn python_around(caller: Caller, wanted: usize) -> PythonFrames {
    // The unwinder holds a lock, and a context of one caller has no other part.
    if wanted <= 1 || (caller.address != 0 && module::is_unwinder(caller.address)) {
        return PythonFrames::default();
    }
    python::frames(wanted)
}

fn has_python(context: &Context) -> bool {
    !context.python.as_slice().is_empty()
}

/// Called for each frame, innermost first.
unsafe extern "C" fn visit(frame: *mut c_void, walk: *mut c_void) -> c_int {
    // SAFETY: `unwind` passed its walk; the frame is the unwinder's.
    let (walk, address, stack) = unsafe {
        (
            &mut *walk.cast::<Walk>(),
            _Unwind_GetIP(frame),
            _Unwind_GetCFA(frame),
        )
    };
    let context = &mut walk.context;
    if context.depth == 0 && !is_caller(walk.caller, address, stack) {
        walk.skipped += 1;
        return if walk.skipped < OWN_FRAMES_MAX {
            GO_ON
        } else {
            ENOUGH
        };
    }
    if address == 0 {
        return ENOUGH;
    }
    if module::is_own(address) {
        // The first function of a thread under emulation, which the recorded thread did not have.
        return GO_ON;
    }
    if context.depth > 0 && has_python(context) && python::is_interpreter(address) {
        return ENOUGH;
    }
    context.addresses[context.depth] = address;
    context.stacks[context.depth] = stack;
    context.depth += 1;
    if context.depth == walk.wanted {
        ENOUGH
    } else {
        GO_ON
    }
}

/// Whether a frame is the one that called the hook.
fn is_caller(caller: Caller, address: usize, stack: usize) -> bool {
    if caller.address == 0 {
        !module::is_own(address)
    } else {
        address == caller.address && stack == caller.stack
    }
}
