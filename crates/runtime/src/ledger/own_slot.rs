//! [`OwnShare`] is this process's part of a [`Ledger`]: its slot, which it takes at first use and leaves at its end, and a byte for each
//! chunk or page, which names the tier whose room it uses. Both are in memory that the kernel zeroes in a forked child
//! (`MADV_WIPEONFORK`). It also has the ledger take back the shares of processes that ended.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use rustix::fs;
use rustix::io::Errno;
use rustix::process::Pid;

use super::{Ledger, ProcessName};
use crate::sandbox;

/// In place of the slot: a thread is joining, or the process has left.
const JOINING: usize = usize::MAX;
/// Inode of the pid namespace at the last query.
static NAMESPACE: AtomicU32 = AtomicU32::new(0);

/// The slot. `None` where all are taken, and while another thread of a new child joins.
pub(crate) fn joined(ledger: &Ledger, own: &AtomicUsize) -> Option<usize> {
    match own.compare_exchange(0, JOINING, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            let slot = join(ledger);
            own.store(slot.map_or(0, |slot| slot + 1), Ordering::Release);
            slot
        }
        Err(JOINING) => None,
        Err(slot) => Some(slot - 1),
    }
}

fn join(ledger: &Ledger) -> Option<usize> {
    let process = this_process();
    ledger.join(process).or_else(|| {
        reap_as(ledger, process);
        ledger.join(process)
    })
}

/// Gives this process's share back. It has none from then on.
pub(crate) fn leave(ledger: &Ledger, own: &AtomicUsize) {
    if let Some(slot) = joined(ledger, own) {
        own.store(JOINING, Ordering::Release);
        ledger.leave(slot);
    }
}

/// Gives back the shares of processes that ended.
pub(crate) fn reap(ledger: &Ledger) {
    reap_as(ledger, this_process());
}

fn reap_as(ledger: &Ledger, own: ProcessName) {
    // A filter of system calls may end the process at a query.
    if own.namespace != 0 && !sandbox::is_filtered() {
        ledger.reap(own, has_ended);
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
