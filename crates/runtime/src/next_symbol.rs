//! Looks up functions of the program and its shared libraries by their names (`dlsym`): [`Next`] one that this library exports too,
//! behind its own (the C library's as a rule); [`function`] any other.

use core::ffi::{CStr, c_void};
use core::marker::PhantomData;
use core::mem::transmute_copy;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A function of the next object after this library, the C library as a rule, whose address is looked up once.
pub(crate) struct Next<F> {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
    kind: PhantomData<F>,
}

impl<F: Copy> Next<F> {
    /// The function of this name.
    ///
    /// # Safety
    /// `F` is the type of a pointer to it.
    pub(crate) const unsafe fn new(name: &'static CStr) -> Self {
        Self {
            name,
            found: AtomicPtr::new(null_mut()),
            kind: PhantomData,
        }
    }

    /// The function; `None` where there is none.
    pub(crate) fn get(&self) -> Option<F> {
        let found = self.found.load(Ordering::Acquire);
        let found = if found.is_null() { self.find() } else { found };
        // SAFETY: by the promise of `new` the symbol is a function of this type.
        unsafe { function_at(found) }
    }

    /// Looks it up now.
    pub(crate) fn find(&self) -> *mut c_void {
        // SAFETY: the name ends in NUL.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(found, Ordering::Release);
        found
    }
}

/// The function of this name in the program and its libraries; `None` where there is none.
///
/// # Safety
/// `F` is the type of a pointer to it.
pub(crate) unsafe fn function<F: Copy>(name: &CStr) -> Option<F> {
    // SAFETY: the name ends in NUL, and the caller promises the type.
    unsafe { function_at(libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr())) }
}

/// # Safety
/// Null, or the address of a function to which `F` is a pointer.
unsafe fn function_at<F: Copy>(address: *mut c_void) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the caller's promise.
    (!address.is_null()).then(|| unsafe { transmute_copy(&address) })
}
