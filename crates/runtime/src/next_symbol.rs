//! Looks up functions of the program and its shared libraries by their names (`dlsym`): [`Next`] one that this library exports too,
//! behind its own (the C library's as a rule); [`function`] any other.

use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// The symbol of this name in the next object after this library, the C library as a rule; null if there is
/// none.
pub(crate) fn function(name: &CStr) -> *mut c_void {
    // SAFETY: the name ends in NUL.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// A function whose address is looked up once.
pub(crate) struct Next {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Next {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            found: AtomicPtr::new(null_mut()),
        }
    }

    /// Its address; null where there is none.
    pub(crate) fn get(&self) -> *mut c_void {
        let found = self.found.load(Ordering::Acquire);
        if found.is_null() { self.find() } else { found }
    }

    /// Looks it up now.
    pub(crate) fn find(&self) -> *mut c_void {
        let found = function(self.name);
        self.found.store(found, Ordering::Release);
        found
    }
}
