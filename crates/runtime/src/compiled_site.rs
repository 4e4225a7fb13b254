//! [`CompiledSite`] finds the arena of an allocation at a site that the compiler pass described, and counts the allocation where sites are
//! recorded: the program has a record of the site, and passes its address with the allocation.
//!
//! The program's own copy of the entry points (`llvm/sites`) asks once for each record which functions serve
//! it ([`crate::resolve_site`]), and calls these directly from then on. The answer never changes: a plan is
//! read once, and a record is part of its module, so it is loaded and unloaded with the module.

use core::sync::atomic::Ordering;

use isotherm_abi::session::SessionCounter;
use isotherm_abi::site::{DescribedSite, SitePointer};

use crate::config;
use crate::fast_path::HOT;
use crate::heap::{self, Origin};
use crate::reentrancy;
use crate::session;
use crate::site;
use crate::state;

/// A record that [`crate::resolve_site`] has numbered.
#[derive(Clone, Copy)]
pub(crate) struct CompiledSite(&'static DescribedSite);

impl CompiledSite {
    /// The site of a record.
    ///
    /// # Safety
    /// A route of the runtime was called with this pointer.
    #[inline]
    pub(crate) unsafe fn new(site: SitePointer) -> Self {
        // SAFETY: the record is in a loaded module, whose code makes this call.
        Self(unsafe { &*site })
    }

    /// The number that [`crate::resolve_site`] stored: the arena or the number of a split in guided mode, the site else.
    #[inline]
    fn number(self) -> u32 {
        self.0.number.load(Ordering::Relaxed).wrapping_sub(1)
    }
}

impl Origin for CompiledSite {
    #[inline]
    fn arena(self, bytes: usize) -> u32 {
        if HOT.state.get() == state::PROFILE {
            return counted_arena(self.number(), bytes);
        }
        self.number()
    }
}

/// Counts an allocation at its site, whose number is known, and returns the arena that serves it.
pub(crate) fn counted_arena(site: u32, bytes: usize) -> u32 {
    let Some(config) = config::current() else {
        return 0;
    };
    // A signal handler that interrupts here must not make arenas.
    if reentrancy::level() > 0 {
        return heap::unplaced(config);
    }
    let _visit = reentrancy::enter(0);
    session::count(SessionCounter::Allocations, 1);
    site::add(config, site, 1, bytes as u64)
}
