//! [`ServiceChannel`] passes requests of the program's threads (such as to bring pages back) to the service thread, the runtime's thread
//! that serves the page faults of the emulation, and waits for it: a thread fills a slot and touches the slot's page, which is missing, so
//! that the service thread reads the request as one more fault (userfaultfd). Also measures the cost of such a fault.
//!
//! A page fault is the one signal that needs no descriptor in the program's table (it may close all of them),
//! works from a `vfork` child, interrupts the service thread's sleep, and cannot hang: where no service runs,
//! the touch returns at once and the slot still states that nothing was done.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use isotherm_abi::from_number;
use isotherm_sys::memory::{self, Errno};
use zerocopy::TryFromBytes;

use super::table::PAGE_BYTES;
use crate::clock::{now_ns, thread_ns};

/// Threads that can have a request at the same time; the next one waits for a slot.
const SLOTS: usize = 32;

const FREE: u32 = 0;
const CLAIMED: u32 = 1;
const POSTED: u32 = 2;
const DONE: u32 = 3;

/// The kinds of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes)]
#[repr(u32)]
pub(crate) enum ServiceCommand {
    /// Forget the pages of the range: their content is not needed any more.
    Forget = 0,
    /// Bring the pages of the range home and leave them there.
    Settle = 1,
    /// Bring every page home and take none away until [`ServiceCommand::Release`]. They nest.
    Hold = 2,
    /// End a [`ServiceCommand::Hold`].
    Release = 3,
    /// Serve the range again: its mapping may have been replaced since it was last handed out.
    Register = 4,
}

/// A command, and the addresses that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServiceRequest {
    pub(crate) command: ServiceCommand,
    pub(crate) range: Range<usize>,
}

/// Zeroes are a free slot.
#[derive(Default)]
struct Slot {
    state: AtomicU32,
    request: AtomicU32,
    start: AtomicUsize,
    end: AtomicUsize,
}

/// The slots and their pages.
pub(crate) struct ServiceChannel {
    pages: usize,
    slots: [Slot; SLOTS],
}

impl ServiceChannel {
    pub(crate) fn map() -> Result<Self, Errno> {
        Ok(Self {
            pages: memory::fresh(SLOTS * PAGE_BYTES)?,
            slots: <[Slot; SLOTS]>::default(),
        })
    }

    /// The pages, to be registered.
    pub(crate) fn range(&self) -> Range<usize> {
        self.pages..self.pages + SLOTS * PAGE_BYTES
    }

    /// Sends a request and waits. `false` means that no service handled it.
    ///
    /// `is_served` reports whether a service can exist; it is called only after a touch without effect.
    pub(crate) fn ask(&self, request: &ServiceRequest, is_served: impl Fn() -> bool) -> bool {
        let index = loop {
            if let Some(index) = self.claim() {
                break index;
            }
            if !is_served() {
                return false;
            }
            rustix::thread::sched_yield();
        };
        let slot = &self.slots[index];
        slot.request
            .store(request.command as u32, Ordering::Relaxed);
        slot.start.store(request.range.start, Ordering::Relaxed);
        slot.end.store(request.range.end, Ordering::Relaxed);
        slot.state.store(POSTED, Ordering::Release);
        let done = loop {
            self.touch(index);
            if slot.state.load(Ordering::Acquire) == DONE {
                break true;
            }
            if !is_served() {
                break false;
            }
        };
        slot.state.store(FREE, Ordering::Release);
        done
    }

    fn claim(&self) -> Option<usize> {
        self.slots.iter().position(|slot| {
            slot.state
                .compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        })
    }

    /// Touches the slot's page and takes it away again, for the next request.
    fn touch(&self, index: usize) {
        self.fault(index);
        self.reset(index);
    }

    /// Reads the slot's page. Blocks until the service thread has done what the slot requests.
    fn fault(&self, index: usize) {
        let page = self.pages + index * PAGE_BYTES;
        // SAFETY: a readable page of our own mapping.
        unsafe { (page as *const u8).read_volatile() };
    }

    /// Takes the slot's page away.
    fn reset(&self, index: usize) {
        let page = self.pages + index * PAGE_BYTES;
        // SAFETY: the page holds nothing. Where this fails, the next touch returns at once and
        // `ask` tries again.
        let _ = unsafe { memory::advise(page, PAGE_BYTES, libc::MADV_DONTNEED) };
    }

    /// The cost of a fault with an empty request: wall-clock time and processor time, the least of `rounds`.
    /// (0, 0) where every slot is taken.
    pub(crate) fn time_fault(&self, rounds: usize) -> (u64, u64) {
        let Some(index) = self.claim() else {
            return (0, 0);
        };
        let (mut shortest, mut cheapest) = (u64::MAX, u64::MAX);
        for _ in 0..rounds {
            let (begin_ns, begin_processor_ns) = (now_ns(), thread_ns());
            self.fault(index);
            cheapest = cheapest.min(thread_ns() - begin_processor_ns);
            shortest = shortest.min(now_ns() - begin_ns);
            self.reset(index);
        }
        self.slots[index].state.store(FREE, Ordering::Release);
        (shortest, cheapest)
    }

    /// The request behind a fault at `address`. Service thread only.
    pub(crate) fn request(&self, address: usize) -> Option<ServiceRequest> {
        let slot = &self.slots[(address - self.pages) / PAGE_BYTES];
        if slot.state.load(Ordering::Acquire) != POSTED {
            return None;
        }
        let command = from_number(slot.request.load(Ordering::Relaxed));
        Some(ServiceRequest {
            command: command.unwrap_or(ServiceCommand::Register),
            range: slot.start.load(Ordering::Relaxed)..slot.end.load(Ordering::Relaxed),
        })
    }

    /// Publishes that the request behind `address` was served. Service thread only.
    pub(crate) fn answer(&self, address: usize) {
        let slot = &self.slots[(address - self.pages) / PAGE_BYTES];
        slot.state.store(DONE, Ordering::Release);
    }

    /// Empties every slot, in a forked child whose other threads are gone.
    pub(crate) fn clear(&self) {
        for slot in &self.slots {
            slot.state.store(FREE, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ServiceChannel, ServiceCommand, ServiceRequest};

    #[test]
    fn a_request_without_a_service_returns_at_once() {
        let channel = ServiceChannel::map().expect("map");
        let request = ServiceRequest {
            command: ServiceCommand::Forget,
            range: 0..4096,
        };
        let left = std::cell::Cell::new(3);
        let served = channel.ask(&request, || {
            left.set(left.get() - 1);
            left.get() > 0
        });
        assert!(!served);
        assert!(channel.claim().is_some(), "the slot is free again");
    }

    #[test]
    fn the_serving_side_reads_what_was_asked() {
        let channel = ServiceChannel::map().expect("map");
        let address = channel.range().start + 4096;
        assert_eq!(channel.request(address), None);
        let slot = &channel.slots[1];
        slot.request.store(
            ServiceCommand::Settle as u32,
            core::sync::atomic::Ordering::Relaxed,
        );
        slot.start
            .store(8192, core::sync::atomic::Ordering::Relaxed);
        slot.end.store(16384, core::sync::atomic::Ordering::Relaxed);
        slot.state
            .store(super::POSTED, core::sync::atomic::Ordering::Relaxed);
        let request = channel.request(address).expect("posted");
        assert_eq!(
            (request.command, request.range),
            (ServiceCommand::Settle, 8192..16384)
        );
        channel.answer(address);
        assert_eq!(channel.request(address), None, "served once");
    }
}
