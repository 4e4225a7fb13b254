//! [`OwnShare`] is this process's part of a [`Ledger`]: its slot, which it takes at first use and leaves at its end, and a byte for each
//! chunk or page, which names the tier whose room it uses. Both are in memory that the kernel zeroes in a forked child
//! (`MADV_WIPEONFORK`). It also has the ledger take back the shares of processes that ended.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};

use isotherm_sys::memory::{self, PAGE_BYTES};
use rustix::fs;
use rustix::io::Errno;
use rustix::process::Pid;

use super::{Ledger, ProcessName};
use crate::sandbox;

/// In place of the slot: a thread is joining, or the process has left.
const JOINING: usize = usize::MAX;
/// Inode of the pid namespace at the last query.
static NAMESPACE: AtomicU32 = AtomicU32::new(0);

/// A ledger, with the share of this process. A forked child begins without a share, since Linux 4.14.
pub(crate) struct OwnShare {
    pub(crate) ledger: Ledger,
    /// The slot + 1.
    slot: &'static AtomicUsize,
    /// A byte for each chunk or page that says in which tier it has room, as the user of the ledger defines it; 0 for none.
    pub(crate) charges: &'static [AtomicU8],
}

impl OwnShare {
    /// Maps this number of charges.
    pub(crate) fn map(ledger: Ledger, charges: usize) -> memory::Result<Self> {
        let bytes = PAGE_BYTES + charges;
        let start = memory::fresh(bytes)?;
        // SAFETY: the memory was mapped just now. Kernels before 4.14 do not know the advice: there a child shares its parent's slot.
        let _ = unsafe { memory::advise(start, bytes, libc::MADV_WIPEONFORK) };
        // SAFETY: the mapping is as long as that, zeroed and never unmapped; zero is a valid value of every atomic.
        let (slot, charges) = unsafe {
            let first = core::ptr::with_exposed_provenance(start + PAGE_BYTES);
            (
                &*core::ptr::with_exposed_provenance::<AtomicUsize>(start),
                core::slice::from_raw_parts(first, charges),
            )
        };
        Ok(Self {
            ledger,
            slot,
            charges,
        })
    }

    /// The slot. `None` where all are taken, while another thread joins for this process, and after [`Self::leave`].
    pub(crate) fn slot(&self) -> Option<usize> {
        let own = self.slot;
        match own.compare_exchange(0, JOINING, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                let slot = self.join();
                own.store(slot.map_or(0, |slot| slot + 1), Ordering::Release);
                slot
            }
            Err(JOINING) => None,
            Err(slot) => Some(slot - 1),
        }
    }

    fn join(&self) -> Option<usize> {
        let process = this_process();
        self.ledger.join(process).or_else(|| {
            self.reap();
            self.ledger.join(process)
        })
    }

    /// Gives back the shares of processes that ended.
    pub(crate) fn reap(&self) {
        let own = this_process();
        // A filter of system calls may end the process at a query.
        if own.namespace != 0 && !sandbox::is_filtered() {
            self.ledger.reap(own, has_ended);
        }
    }

    /// Gives the slot of this process back with its share. It has none from then on.
    pub(crate) fn leave(&self) {
        if let Some(slot) = self.slot() {
            self.slot.store(JOINING, Ordering::Release);
            self.ledger.leave(slot);
        }
    }
}

fn this_process() -> ProcessName {
    if !sandbox::is_filtered() {
        let namespace = fs::stat("/proc/self/ns/pid").map_or(0, |status| status.st_ino as u32);
        NAMESPACE.store(namespace, Ordering::Relaxed);
    }
    ProcessName {
        pid: rustix::process::getpid().as_raw_nonzero().get() as u32,
        namespace: NAMESPACE.load(Ordering::Relaxed),
    }
}

fn has_ended(pid: u32) -> bool {
    let pid = Pid::from_raw(pid as i32);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(Errno::SRCH))
}
