//! [`Mover`] moves pages by userfaultfd for the service thread, the thread of the runtime that serves the page faults of the emulation:
//! from *home*, the address that the program uses, to *shadow*, where only this thread reaches them, so that the next access faults, and
//! back. Where the kernel refuses a move, it tries smaller ranges or copies the page. It also fills new pages with zeroes, and wakes the
//! threads that wait in a fault.

use core::mem::ManuallyDrop;
use core::ops::Range;

use isotherm_sys::memory;
use isotherm_sys::userfaultfd::Userfaultfd;
use rustix::io::Errno;

use super::table::PAGE_BYTES;

/// Most pages in one call: 64 pages take some 30 us, for which other faults wait.
pub(crate) const BATCH_PAGES: usize = 64;

/// Retries of a call when the kernel reports "try again" without any progress.
const TRIES: usize = 8;

/// The result of a batch: the number of pages done, and why it stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) pages: usize,
    pub(crate) error: Option<Errno>,
}

/// The result for a page that had to come home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rescue {
    /// Its content is at home.
    Home,
    /// Its home is no longer memory that we serve: the program unmapped it or mapped over it.
    Gone,
    /// The kernel is out of memory for the moment; the content is still in the shadow.
    Later,
}

/// Moves pages of one pool.
pub(crate) struct Mover {
    /// Never closed by us: the descriptor's number is valid only in the service thread's own table, and a
    /// forked child drops its copy of this from another thread.
    uffd: ManuallyDrop<Userfaultfd>,
    pool: Range<usize>,
    shadow_offset: usize,
    zeroes: usize,
}

impl Mover {
    /// `zeroes` is the address of [`BATCH_PAGES`] pages of zeroes.
    pub(crate) fn new(
        uffd: Userfaultfd,
        pool: Range<usize>,
        shadow_offset: usize,
        zeroes: usize,
    ) -> Self {
        Self {
            uffd: ManuallyDrop::new(uffd),
            pool,
            shadow_offset,
            zeroes,
        }
    }

    pub(crate) fn uffd(&self) -> &Userfaultfd {
        &self.uffd
    }

    /// Address of a page at home.
    pub(crate) fn home(&self, page: u32) -> usize {
        self.pool.start + page as usize * PAGE_BYTES
    }

    fn shadow(&self, page: u32) -> usize {
        self.home(page).wrapping_add(self.shadow_offset)
    }

    /// Takes pages away from the program.
    pub(crate) fn away(&self, page: u32, pages: usize) -> Moved {
        let (from, to) = (self.home(page), self.shadow(page));
        // SAFETY: the shadow is ours alone; accesses to the home afterwards are faults that the
        // service thread serves, and no Rust code of ours refers to memory of the pool.
        self.repeat(pages, |done, bytes| unsafe {
            self.uffd.move_pages(to + done, from + done, bytes, false)
        })
    }

    /// Brings pages home and wakes the threads that wait for them.
    pub(crate) fn home_again(&self, page: u32, pages: usize) -> Moved {
        let (from, to) = (self.shadow(page), self.home(page));
        // SAFETY: as in `away`, in the other direction.
        self.repeat(pages, |done, bytes| unsafe {
            self.uffd.move_pages(to + done, from + done, bytes, true)
        })
    }

    /// Brings one page home by any means, and wakes the threads that wait for it.
    ///
    /// The move is refused where the program has changed the protection of the home since
    /// (`EINVAL`), or where the page became shared with a child (`EBUSY`); a copy works there.
    pub(crate) fn rescue(&self, page: u32) -> Rescue {
        let rescue = match self.home_again(page, 1).error {
            None => return Rescue::Home,
            Some(Errno::NOENT) => self.make_missing(page),
            Some(Errno::EXIST) => Rescue::Home,
            Some(_) => self.copy_home(page),
        };
        if rescue != Rescue::Later {
            self.drop_shadow(page, 1);
        }
        self.wake(page);
        rescue
    }

    fn make_missing(&self, page: u32) -> Rescue {
        match self.make(page, 1).error {
            None | Some(Errno::EXIST) => Rescue::Home,
            Some(Errno::NOENT | Errno::INVAL) => Rescue::Gone,
            Some(_) => Rescue::Later,
        }
    }

    fn copy_home(&self, page: u32) -> Rescue {
        if !memory::is_resident(self.shadow(page)) {
            // No page of ours was away: the program put another mapping in this place by a raw system call. If
            // this thread read the shadow, it would wait for itself.
            return self.make_missing(page);
        }
        // SAFETY: the home is missing (its content is in the shadow), and the shadow page is
        // there: only this thread takes pages out of it.
        let copied = unsafe {
            self.uffd
                .copy(self.home(page), self.shadow(page), PAGE_BYTES)
        };
        match copied.error {
            None | Some(Errno::EXIST) => Rescue::Home,
            Some(Errno::NOENT | Errno::INVAL) => Rescue::Gone,
            Some(_) => Rescue::Later,
        }
    }

    /// Fills missing pages with zeroes and wakes the threads that wait for them.
    pub(crate) fn make(&self, page: u32, pages: usize) -> Moved {
        let to = self.home(page);
        // SAFETY: the pages were never touched or were discarded, so they hold nothing; the
        // zeroes are an ordinary mapping of `BATCH_PAGES` pages, and no caller requests more.
        self.repeat(pages.min(BATCH_PAGES), |done, bytes| unsafe {
            self.uffd.copy(to + done, self.zeroes + done, bytes)
        })
    }

    /// Fills one missing page of our own mapping (the channel) and wakes the threads that wait there.
    pub(crate) fn make_at(&self, address: usize) {
        // SAFETY: a page of the channel holds nothing.
        let copied = unsafe { self.uffd.copy(address, self.zeroes, PAGE_BYTES) };
        if copied.error.is_some() {
            let _ = self.uffd.wake(&(address..address + PAGE_BYTES));
        }
    }

    /// Wakes the threads that wait for the page; where it is still missing they fault again.
    pub(crate) fn wake(&self, page: u32) {
        let home = self.home(page);
        let _ = self.uffd.wake(&(home..home + PAGE_BYTES));
    }

    /// Discards the content of pages in the shadow.
    pub(crate) fn drop_shadow(&self, page: u32, pages: usize) {
        let shadow = self.shadow(page);
        // SAFETY: the shadow is ours alone, and the caller does not want the content.
        let _ = unsafe { memory::advise(shadow, pages * PAGE_BYTES, libc::MADV_DONTNEED) };
    }

    /// Repeats a transfer while it makes progress, and a few times while the kernel reports "try again".
    ///
    /// The kernel refuses a range that spans two of its mappings as a whole (`ENOENT` for a copy, `EINVAL` for
    /// a move), and the program splits mappings where it likes (`mprotect`, `madvise`, `munmap`): a refused
    /// range is tried in halves, down to the one page that a thread waits for.
    fn repeat(
        &self,
        pages: usize,
        transfer: impl Fn(usize, usize) -> isotherm_sys::userfaultfd::Transfer,
    ) -> Moved {
        let bytes = pages * PAGE_BYTES;
        let (mut done, mut idle, mut most) = (0, 0, pages);
        while done < bytes {
            let step = transfer(done, (bytes - done).min(most * PAGE_BYTES));
            done += step.bytes;
            let Some(error) = step.error else { continue };
            if step.bytes > 0 {
                continue;
            }
            if matches!(error, Errno::NOENT | Errno::INVAL) && most > 1 {
                most = (most / 2).min((bytes - done) / PAGE_BYTES).max(1);
                continue;
            }
            idle += 1;
            if error != Errno::AGAIN || idle > TRIES {
                return Moved {
                    pages: done / PAGE_BYTES,
                    error: Some(error),
                };
            }
        }
        Moved {
            pages: done / PAGE_BYTES,
            error: None,
        }
    }
}
