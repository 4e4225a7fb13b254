//! Implements the forms of C++ `operator new` on the functions of [`crate::heap`], with the program's new-handler and `std::bad_alloc`.
//!
//! A throwing form that finds no memory calls the program's new-handler and tries again, or throws `std::bad_alloc`.
//! Both are in the C++ library, which a C program does not load, so they are looked up when they are needed.

use core::ffi::{CStr, c_void};

use crate::heap::{self, Origin};
use crate::unwind::Caller;

/// `std::get_new_handler()`.
const GET_NEW_HANDLER: &CStr = c"_ZSt15get_new_handlerv";
/// `std::__throw_bad_alloc()`.
const THROW_BAD_ALLOC: &CStr = c"_ZSt17__throw_bad_allocv";

/// A function of the C++ library, if the program has it.
fn look_up(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends in NUL.
    let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!function.is_null()).then_some(function)
}

/// Calls the program's new-handler; `false` if it has none.
fn call_new_handler() -> bool {
    let Some(get) = look_up(GET_NEW_HANDLER) else {
        return false;
    };
    // SAFETY: the C++ library gives the symbol this type; a handler may throw.
    let handler = unsafe {
        core::mem::transmute::<
            *mut c_void,
            unsafe extern "C-unwind" fn() -> Option<unsafe extern "C-unwind" fn()>,
        >(get)()
    };
    match handler {
        // SAFETY: the program installed the handler to be called here.
        Some(handler) => unsafe { handler() },
        None => return false,
    }
    true
}

/// Throws `std::bad_alloc`.
fn throw() -> ! {
    if let Some(throw) = look_up(THROW_BAD_ALLOC) {
        // SAFETY: the C++ library gives the symbol this type; it does not return.
        unsafe { core::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn()>(throw)() };
    }
    // SAFETY: a program that calls operator new without a C++ library cannot receive the error.
    unsafe { libc::abort() }
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

/// `operator new(size_t)` and the array form.
pub(crate) extern "C-unwind" fn new(bytes: usize, address: usize, stack: usize) -> *mut c_void {
    throwing(0, bytes, Caller { address, stack })
}

/// `operator new(size_t, align_val_t)` and the array form.
pub(crate) extern "C-unwind" fn new_aligned(
    bytes: usize,
    alignment: usize,
    address: usize,
    stack: usize,
) -> *mut c_void {
    throwing(alignment.max(1), bytes, Caller { address, stack })
}

/// `operator new(size_t, nothrow_t const&)` and the array form. It calls the handler, too; a handler that
/// throws ends the program, as in any function that must not throw.
pub(crate) extern "C" fn new_nothrow(
    bytes: usize,
    _: usize,
    address: usize,
    stack: usize,
) -> *mut c_void {
    nothrow(0, bytes, Caller { address, stack })
}

/// `operator new(size_t, align_val_t, nothrow_t const&)` and the array form.
pub(crate) extern "C" fn new_aligned_nothrow(
    bytes: usize,
    alignment: usize,
    _: usize,
    address: usize,
    stack: usize,
) -> *mut c_void {
    nothrow(alignment.max(1), bytes, Caller { address, stack })
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
