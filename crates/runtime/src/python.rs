//! Reads the Python functions that run on a thread (CPython 3.11 to 3.14) as part of calling contexts: with names and lines for the name
//! and the record of a site ([`hashed`], [`noted`]), and as a hash by which contexts are cached ([`key`]).
//!
//! Unwinding shows only the interpreter: since 3.11 a Python function that calls another one stays within one call of the
//! interpreter's loop. The interpreter's own records have the functions ([`layout`]), and the names and lines of each
//! ([`interpreter`]). A context of a thread that runs Python consists of
//!
//! ```text
//! malloc <- npy_alloc <- array_zeros <- [interpreter ...] <- load (graph.py:12) <- main (graph.py:40) <- <module> (graph.py:52)
//!           |----- native callers ----|     left out         |---------------- Python functions -----------------------------|
//! ```
//!
//! The native part ends where the interpreter begins, because the interpreter reaches one line of Python by different ways of its
//! own, more and more direct ones as it specialises the bytecode; only the direct caller of the allocation is always kept, because
//! plans name direct callers. The line of each function is part of the context, so that each line that allocates is a site.
//!
//! Nothing here allocates, waits for the interpreter's lock, or changes the interpreter. A thread's frames are changed by that thread
//! alone, and a running function keeps its code, so what is read here lives while it is read. Before the first direct read the
//! records are read once by a system call that fails where an address is wrong ([`check`]); if they are not what the version
//! promises, no Python function is ever read.
//!
//! A context is cached by the instructions of its functions ([`key`]). Code that is freed, as that of a module's top level is after its
//! import, may leave its address to other code; then the cached site is wrong until the context is unwound again, as any guess of
//! [`crate::context`].

mod careful_word;
mod debug_offsets;
mod interpreter;
mod known_functions;
mod layout;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use isotherm_abi::hash::SiteHasher;
use isotherm_abi::python_code::PythonCode;
use isotherm_abi::session::{FrameRecord, NO_MODULE, PYTHON_FRAME};

use crate::config;
use crate::fast_path::HOT;
use crate::module;
use crate::sandbox;

use careful_word::careful_word;
use interpreter::{Interpreter, Place};
pub(crate) use layout::{PythonFrame, PythonFrames};

static INTERPRETER: OnceLock<Interpreter> = OnceLock::new();

/// Set where the interpreter's records are not what its version promises.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// Looks for an interpreter, where contexts are recorded. Called once, at start: the loader has loaded what the program needs by then.
pub(crate) fn start() {
    if config::current().is_none_or(|config| config.depth <= 1) {
        return;
    }
    if let Some(found) = Interpreter::find() {
        // Called once.
        let _ = INTERPRETER.set(found);
    }
    // The error of a look-up without a result is not the program's.
    // SAFETY: no precondition.
    unsafe { libc::dlerror() };
}

/// Whether [`key`] distinguishes contexts.
#[inline(always)]
pub(crate) fn is_read() -> bool {
    HOT.reads_python.load(Ordering::Relaxed)
}

/// A hash of the Python functions that run on this thread, which distinguishes contexts with the same return address and stack
/// pointer; 0 where none run.
pub(crate) fn key() -> u64 {
    match is_read() {
        true => key_of_thread(),
        false => 0,
    }
}

#[inline(never)]
fn key_of_thread() -> u64 {
    let frames = frames_of_thread();
    let mixed = |key: u64, frame: &PythonFrame| {
        let next = key.rotate_left(5) ^ frame.instruction as u64;
        next.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    let key = frames.as_slice().iter().fold(0, mixed);
    key ^ (key >> 32)
}

/// The functions that run on this thread; none before [`check`].
fn frames_of_thread() -> PythonFrames {
    match INTERPRETER.get() {
        // SAFETY: the word is set after the check.
        Some(found) if is_read() => unsafe { found.frames() },
        _ => PythonFrames::default(),
    }
}

/// The innermost functions that run on this thread, at most `wanted`. Checks the interpreter's records first, if that was not done.
#[inline(never)]
pub(crate) fn frames(wanted: usize) -> PythonFrames {
    let Some(found) = INTERPRETER.get() else {
        return PythonFrames::default();
    };
    if !is_read() && !REFUSED.load(Ordering::Relaxed) {
        check(found);
    }
    frames_of_thread().innermost(wanted)
}

/// Decides whether the interpreter's records are what its version promises, once a function runs.
#[cold]
fn check(found: &Interpreter) {
    let state = found.thread_state();
    // A filter of system calls may end the program at the careful reads.
    if state == 0 || sandbox::is_filtered() {
        return;
    }
    match found.agrees(state, careful_word) {
        None => {}
        Some(true) => HOT.reads_python.store(true, Ordering::Release),
        Some(false) => REFUSED.store(true, Ordering::Release),
    }
}

/// Whether the address is in the interpreter.
pub(crate) fn is_interpreter(address: usize) -> bool {
    let Some(found) = INTERPRETER.get() else {
        return false;
    };
    let module = module::of(address);
    module != NO_MODULE && module == module::of(found.eval_loop)
}

/// Adds a frame that runs on this thread to a site's name.
pub(crate) fn hashed(hasher: SiteHasher, frame: PythonFrame) -> SiteHasher {
    with_code(frame, |code, line| {
        hasher.frame(code.module_name(), code.offset(line))
    })
}

/// As [`hashed`], with the record of the frame: its names and its line are read once for both.
pub(crate) fn noted(hasher: SiteHasher, frame: PythonFrame) -> (SiteHasher, FrameRecord) {
    with_code(frame, |code, line| {
        let offset = code.offset(line);
        let record = FrameRecord {
            module: PYTHON_FRAME,
            text: known_functions::place(code),
            offset,
        };
        (hasher.frame(code.module_name(), offset), record)
    })
}

fn with_code<T>(frame: PythonFrame, take: impl FnOnce(&PythonCode<'_>, u32) -> T) -> T {
    let place: Option<Place> = INTERPRETER.get().map(|found| found.place(frame));
    let code = place.as_ref().map(|place| PythonCode {
        file: place.file.as_slice(),
        function: place.function.as_slice(),
        first_line: place.first_line,
    });
    let line = place.as_ref().map_or(0, |place| place.line);
    take(&code.unwrap_or_default(), line)
}
