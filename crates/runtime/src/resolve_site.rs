//! Gives a program that `isotherm-cc` compiled the functions that serve each site that the compiler pass described in it ([`resolve`],
//! [`crate::compiled_site`]) and that free blocks ([`resolve_free`]), so that it calls them directly. The program's code asks at the first
//! use of a site, again if the answer was not settled, and once for each freeing function of a module.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::null;
use core::sync::atomic::{AtomicUsize, Ordering};

use isotherm_abi::hash::SiteHashKind;
use isotherm_abi::site::{DescribedSite, Routes, SitePointer};

use crate::compiled_site_routes;
use crate::config;
use crate::fast_path::HOT;
use crate::free_route::{self, Free};
use crate::reentrancy;
use crate::session;
use crate::site;
use crate::start;
use crate::state;
use crate::unwind::Context;

/// Returns the functions that serve a site. The program calls it at the first use of each site, perhaps by
/// several threads at once; all get the same answer.
///
/// # Safety
/// The record is one of a loaded module, of [`isotherm_abi::site::VERSION`].
#[cfg_attr(not(test), unsafe(export_name = "isotherm_resolve_site_1"))]
unsafe extern "C" fn resolve(site: SitePointer, own_malloc: usize, own_new: usize) -> Routes {
    let unserved = |settled| Routes {
        heap: null(),
        operator_new: null(),
        settled,
    };
    if HOT.state.get() == state::UNDECIDED && !start::decide() {
        return unserved(0);
    }
    // A program that brings its own allocator has the last word, as without the pass.
    let serves_new = own_new != 0 && is_ours(own_new, &OUR_NEW);
    if !is_ours(own_malloc, &OUR_MALLOC) || (own_new != 0 && !serves_new) {
        return unserved(1);
    }
    // SAFETY: the caller's promise.
    let site = unsafe { &*site };
    let Some(number) = number_of(site) else {
        return unserved(0);
    };
    site.number.store(number + 1, Ordering::Release);
    // A split has no instance of its own, so that each of its allocations is looked at.
    let arena = (HOT.state.get() != state::PROFILE).then_some(number);
    Routes {
        heap: compiled_site_routes::heap(arena),
        operator_new: compiled_site_routes::operator_new(arena),
        settled: 1,
    }
}

/// Returns the function that frees the blocks which a module would pass to `own`, its `free` or a form of
/// `operator delete`; `None` if that is the program's own function, and before the mode is decided. Called when the module is loaded.
///
/// # Safety
/// Any number may be asked about.
#[cfg_attr(not(test), unsafe(export_name = "isotherm_resolve_free_1"))]
unsafe extern "C" fn resolve_free(own: usize) -> Option<Free> {
    if HOT.state.get() == state::UNDECIDED && !start::decide() {
        return None;
    }
    is_ours(own, &OUR_FREE).then(free_route::current)
}

/// The arena of a site or the number of its split, or the site's number where sites are counted; `None` in a signal handler that
/// interrupted the allocator, where no site can be made.
fn number_of(described: &DescribedSite) -> Option<u32> {
    let Some(config) = config::current() else {
        return Some(0);
    };
    if HOT.state.get() == state::DIRECT {
        return Some(0);
    }
    if HOT.state.get() == state::PROFILE {
        if reentrancy::level() > 0 {
            return None;
        }
        let _visit = reentrancy::enter(0);
        return Some(record(described));
    }
    if session::current().is_some() {
        // Reported so that a plan of another program or version can be recognised.
        let _ = record(described);
    }
    Some(config.arena_of(config.target_or_default(described.id)))
}

/// The site's number in the tables. The addresses of records stand for the frames, the site's own or
/// those that its context is made of: the tools find the places in the source there.
fn record(described: &DescribedSite) -> u32 {
    let own = core::ptr::from_ref(described).addr();
    let own = (described.context_depth == 0).then_some(own);
    let context = Context::of(own.into_iter().chain(described.context()));
    site::named(described.id, &context, SiteHashKind::Described)
}

/// Functions that were found to be this library's, so that the loader is asked once.
static OUR_MALLOC: AtomicUsize = AtomicUsize::new(0);
static OUR_NEW: AtomicUsize = AtomicUsize::new(0);
static OUR_FREE: AtomicUsize = AtomicUsize::new(0);

/// Whether a function lies in this library. Its own symbols cannot be compared with: a program
/// that defines one overrides it here as well.
fn is_ours(function: usize, known: &AtomicUsize) -> bool {
    if function == known.load(Ordering::Relaxed) {
        return true;
    }
    let ours = module_base(function).is_some()
        && module_base(function) == module_base(core::ptr::from_ref(&HOT).addr());
    if ours {
        known.store(function, Ordering::Relaxed);
    }
    ours
}

/// First address of the module that holds an address.
fn module_base(address: usize) -> Option<usize> {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    let address = core::ptr::without_provenance::<c_void>(address);
    // SAFETY: the loader only compares the address, and fills the structure where it answers so.
    unsafe {
        (libc::dladdr(address, found.as_mut_ptr()) != 0)
            .then(|| found.assume_init().dli_fbase.addr())
    }
}
