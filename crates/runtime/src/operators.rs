//! Implements the forms of C++ `operator new` on the functions of [`crate::heap`], with the program's new-handler and `std::bad_alloc`.
//!
//! A throwing form that finds no memory calls the program's new-handler and tries again, or throws `std::bad_alloc`.
//! Both are in the C++ library, which a C program does not load, so they are looked up when they are needed.

use core::ffi::{CStr, c_void};

use crate::for_origin::for_origin;
use crate::heap::{self, Origin};
use crate::next_symbol::function;
use crate::unwind::Caller;

/// `std::get_new_handler()`.
const GET_NEW_HANDLER: &CStr = c"_ZSt15get_new_handlerv";
/// `std::__throw_bad_alloc()`.
const THROW_BAD_ALLOC: &CStr = c"_ZSt17__throw_bad_allocv";

/// A function of the C++ library without arguments, which may throw.
type CxxFunction<R> = unsafe extern "C-unwind" fn() -> R;

/// Calls the program's new-handler; `false` if it has none.
fn call_new_handler() -> bool {
    // SAFETY: the C++ library gives the symbol this type.
    let get = unsafe { function::<CxxFunction<Option<CxxFunction<()>>>>(GET_NEW_HANDLER) };
    // SAFETY: it only returns the handler that the program installed, to be called here.
    unsafe { get.and_then(|get| get()).map(|handler| handler()) }.is_some()
}

/// Throws `std::bad_alloc`.
fn throw() -> ! {
    // SAFETY: the C++ library gives the symbol this type; it does not return. A program that calls operator new without a C++ library
    // cannot receive the error.
    unsafe {
        if let Some(throw) = function::<CxxFunction<()>>(THROW_BAD_ALLOC) {
            throw();
        }
        libc::abort()
    }
}

/// Calls the new-handler for more memory until there is some.
#[cold]
fn insist(alignment: usize, bytes: usize, origin: impl Origin) -> *mut c_void {
    while call_new_handler() {
        let block = attempt(alignment, bytes, origin);
        if !block.is_null() {
            return block;
        }
    }
    throw()
}

#[inline]
fn attempt(alignment: usize, bytes: usize, origin: impl Origin) -> *mut c_void {
    if alignment == 0 {
        heap::allocate(bytes, 0, origin)
    } else {
        heap::allocate_aligned(alignment, bytes, origin)
    }
}

/// A throwing form, for a site. An alignment of 0 means the form without an alignment.
#[inline]
pub(crate) fn throwing(alignment: usize, bytes: usize, origin: impl Origin) -> *mut c_void {
    let block = attempt(alignment, bytes, origin);
    if block.is_null() {
        return insist(alignment, bytes, origin);
    }
    block
}

// The functions that the entry shims jump to, each for `new` and `new[]`. A form that must not throw calls the handler, too; a handler
// that throws ends the program, as in any function that must not throw.
for_origin! {
    (address: usize, stack: usize) => Caller { address, stack };
    "C-unwind" new(bytes: usize) -> *mut c_void => |caller| throwing(0, bytes, caller);
    "C-unwind" new_aligned(bytes: usize, alignment: usize) -> *mut c_void =>
        |caller| throwing(alignment.max(1), bytes, caller);
    "C" new_nothrow(bytes: usize, _nothrow: usize) -> *mut c_void => |caller| nothrow(0, bytes, caller);
    "C" new_aligned_nothrow(bytes: usize, alignment: usize, _nothrow: usize) -> *mut c_void =>
        |caller| nothrow(alignment.max(1), bytes, caller);
}

/// A form that returns null, for a site.
pub(crate) fn nothrow(alignment: usize, bytes: usize, origin: impl Origin) -> *mut c_void {
    loop {
        let block = attempt(alignment, bytes, origin);
        if !block.is_null() || !call_new_handler() {
            return block;
        }
    }
}
