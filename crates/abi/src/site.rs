//! [`DescribedSite`] is the record that the compiler pass puts into a program for each allocation site (or calling context of one): its
//! name, its place in the source, the runtime's number of it, and its routes, the functions that serve the site's calls of `malloc` or
//! `operator new`, the runtime's or the program's own, with the record as one argument more. `llvm/sites/isotherm_site.h` asserts the same
//! layout.
//!
//! The records are in the section [`SECTION`], [`RECORD_BYTES`] each, without gaps. A program and a runtime of
//! different versions do not interact: the runtime's exported names end in the version, so the program finds
//! none and runs as without a runtime.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32};

/// Version of the record and of the functions below.
pub const VERSION: u32 = 1;

/// The section of the records.
pub const SECTION: &str = "isotherm_sites";

/// Bytes of a record.
pub const RECORD_BYTES: usize = size_of::<DescribedSite>();

/// One site. In a file, the routes and the number have no meaning.
///
/// The place of a text is its distance in bytes from the word that holds it; all texts end in NUL.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct DescribedSite {
    /// The site's name: a hash of its place in the source; never 0 or 1.
    pub id: u64,
    /// The route of the site's calls of the C interface; null until the first.
    pub heap_route: AtomicPtr<HeapRoute>,
    /// The route of the site's calls of `operator new`; null until the first. In the record of a call of `malloc`, a function of
    /// the program itself. The runtime touches neither route.
    pub new_route: AtomicPtr<NewRoute>,
    /// The runtime's number of the site (in guided mode of its tier or split), plus 1; 0 until it has one.
    pub number: AtomicU32,
    /// [`VERSION`].
    pub version: u32,
    /// Place of the source file's path.
    pub path: i32,
    /// Place of the name of the function that holds the call, for display.
    pub function: i32,
    /// Line of the call; 0 where it is not known.
    pub line: u32,
    /// Column of the call; 0 where it is not known.
    pub column: u32,
    /// Calls before it in the function with the same line and column.
    pub ordinal: u32,
    /// Place of the name of the called function.
    pub callee: i32,
    /// Place of the symbol that only a library of the same version defines.
    pub version_symbol: i32,
    /// 0 in the record of a site. In the record of a context, the seven words of texts before this one refer to
    /// other records, and this is their number ([`DescribedSite::context`]).
    pub context_depth: u32,
}

impl DescribedSite {
    /// Addresses of the records of a context: the site's own, then a [`crate::contexts::CALL_BYTES`] record for
    /// each call around it, from the inside out. Empty for the record of a site.
    pub fn context(&self) -> impl Iterator<Item = usize> {
        let distances = [
            self.path,
            self.function,
            self.line.cast_signed(),
            self.column.cast_signed(),
            self.ordinal.cast_signed(),
            self.callee,
            self.version_symbol,
        ];
        let first = core::ptr::from_ref(&self.path).addr();
        distances
            .into_iter()
            .take(self.context_depth as usize)
            .enumerate()
            .map(move |(word, distance)| (first + 4 * word).wrapping_add_signed(distance as isize))
    }
}

/// The site argument of the functions.
pub type SitePointer = *const DescribedSite;

/// The functions that serve a site of the C interface: the C function's arguments, then the site.
#[derive(Debug)]
#[repr(C)]
pub struct HeapRoute {
    /// `malloc`.
    pub malloc: unsafe extern "C" fn(usize, SitePointer) -> *mut c_void,
    /// `calloc`.
    pub calloc: unsafe extern "C" fn(usize, usize, SitePointer) -> *mut c_void,
    /// `realloc`.
    pub realloc: unsafe extern "C" fn(*mut c_void, usize, SitePointer) -> *mut c_void,
    /// `reallocarray`.
    pub reallocarray: unsafe extern "C" fn(*mut c_void, usize, usize, SitePointer) -> *mut c_void,
    /// `memalign`.
    pub memalign: unsafe extern "C" fn(usize, usize, SitePointer) -> *mut c_void,
    /// `aligned_alloc`.
    pub aligned_alloc: unsafe extern "C" fn(usize, usize, SitePointer) -> *mut c_void,
    /// `posix_memalign`.
    pub posix_memalign: unsafe extern "C" fn(*mut *mut c_void, usize, usize, SitePointer) -> c_int,
    /// `valloc`.
    pub valloc: unsafe extern "C" fn(usize, SitePointer) -> *mut c_void,
    /// `pvalloc`.
    pub pvalloc: unsafe extern "C" fn(usize, SitePointer) -> *mut c_void,
    /// `strdup`.
    pub strdup: unsafe extern "C" fn(*const c_char, SitePointer) -> *mut c_char,
    /// `strndup`.
    pub strndup: unsafe extern "C" fn(*const c_char, usize, SitePointer) -> *mut c_char,
}

/// A form of `operator new` without alignment.
pub type New = unsafe extern "C-unwind" fn(usize, SitePointer) -> *mut c_void;
/// A form of `operator new` with size and alignment.
pub type NewAligned = unsafe extern "C-unwind" fn(usize, usize, SitePointer) -> *mut c_void;

/// The functions that serve a site of C++.
#[derive(Debug)]
#[repr(C)]
pub struct NewRoute {
    /// `operator new(size_t)`.
    pub single: New,
    /// `operator new[](size_t)`.
    pub array: New,
    /// `operator new(size_t, align_val_t)`.
    pub single_aligned: NewAligned,
    /// `operator new[](size_t, align_val_t)`.
    pub array_aligned: NewAligned,
    /// `operator new(size_t, nothrow_t const&)`.
    pub single_nothrow: New,
    /// `operator new[](size_t, nothrow_t const&)`.
    pub array_nothrow: New,
    /// `operator new(size_t, align_val_t, nothrow_t const&)`.
    pub single_aligned_nothrow: NewAligned,
    /// `operator new[](size_t, align_val_t, nothrow_t const&)`.
    pub array_aligned_nothrow: NewAligned,
}

/// The runtime's answer at the first use of a site. Null: the program serves it itself.
#[derive(Debug)]
#[repr(C)]
pub struct Routes {
    /// For the C interface.
    pub heap: *const HeapRoute,
    /// For `operator new`.
    pub operator_new: *const NewRoute,
    /// 0: too early in the program's start for an answer; queried again at the next allocation.
    pub settled: c_int,
}

const _: () = assert!(RECORD_BYTES == 64);
const _: () = assert!(core::mem::offset_of!(DescribedSite, heap_route) == 8);
const _: () = assert!(core::mem::offset_of!(DescribedSite, new_route) == 16);
const _: () = assert!(core::mem::offset_of!(DescribedSite, number) == 24);
const _: () = assert!(core::mem::offset_of!(DescribedSite, path) == 32);
const _: () = assert!(core::mem::offset_of!(DescribedSite, function) == 36);
const _: () = assert!(core::mem::offset_of!(DescribedSite, callee) == 52);
const _: () = assert!(core::mem::offset_of!(DescribedSite, context_depth) == 60);
const _: () = assert!(size_of::<HeapRoute>() == 11 * size_of::<*const ()>());
const _: () = assert!(size_of::<NewRoute>() == 8 * size_of::<*const ()>());
