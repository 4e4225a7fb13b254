//! [`SlowTierEmulator`] is the emulation of one pool and the state that the program's threads share with the service thread, which serves
//! its page faults (userfaultfd) with a [`FaultHandler`] of its own. The program's threads start the service, again after a fork or a call
//! that needs a process of one thread, label chunks with the tier of their first touches, discard pages, and have pages brought back and
//! kept. The service thread opens the userfaultfd here, and passes on each fault.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use isotherm_abi::config::TierRecord;
use isotherm_abi::from_number;
use isotherm_abi::session::OffReason;
use isotherm_sys::memory;
use isotherm_sys::thread::Stack;
use isotherm_sys::userfaultfd::{OpenError, Userfaultfd};
use rustix::thread::futex;

use super::account::Account;
use super::due::DueQueue;
use super::fault_handler::FaultHandler;
use super::migration::Migration;
use super::moves::{BATCH_PAGES, Mover};
use super::pool_range;
use super::progress::{FaultCosts, Progress};
use super::sample::Sample;
use super::service_channel::{ServiceChannel, ServiceCommand, ServiceRequest};
use super::settings::Settings;
use super::sparse::PageList;
use super::table::{PAGE_BYTES, Table};
use crate::published_tiers::Side;
use crate::tables::SessionTables;

const CHUNK_BYTES: usize = isotherm_abi::CHUNK_BYTES as usize;

/// Faults that measure their own cost: 64 take about half a millisecond, and at least one is undisturbed.
const CALIBRATION_FAULTS: usize = 64;

/// Stack of the service thread. Its deepest call is a sort of a few kilobytes.
const STACK_BYTES: usize = 128 << 10;

const STARTING: u32 = 0;
const RUNNING: u32 = 1;
/// Plus the number of an [`OffReason`].
const OFF: u32 = 2;

/// The function that the service thread runs; its argument is a `&'static SlowTierEmulator`.
pub(super) type ServiceLoop = extern "C" fn(*mut c_void);

/// One pool and its service.
pub(crate) struct SlowTierEmulator {
    pool: Range<usize>,
    shadow: Range<usize>,
    zeroes: usize,
    pub(super) table: &'static Table,
    channel: ServiceChannel,
    service: ServiceLoop,
    stack: Stack,
    status: AtomicU32,
    process: AtomicU32,
    /// The service thread's number.
    thread: AtomicU32,
    /// Whether the service should end; see [`Self::pause_for`].
    ends: AtomicBool,
    costs: &'static FaultCosts,
    /// Some chunk was released, so that its mapping may have been replaced since.
    recycled: AtomicBool,
    /// The tiers, fastest first.
    pub(super) tiers: &'static [TierRecord],
    requests: UnsafeCell<Option<SessionTables>>,
    pub(super) handler: UnsafeCell<FaultHandler>,
}

// SAFETY: `handler` and `requests` are touched only by the service thread, and by the only thread of a
// forked child before it starts its own service; everything else is atomic or never changes.
unsafe impl Sync for SlowTierEmulator {}

impl SlowTierEmulator {
    /// As [`super::start`], for any pool. `None` where the settings need no service.
    pub(super) fn start(
        pool: Range<usize>,
        settings: &Settings,
        tables: Option<SessionTables>,
        service: ServiceLoop,
    ) -> Result<Option<&'static Self>, OffReason> {
        if settings.emulation.period_ns == 0 && settings.trapping.pages == 0 {
            return Ok(None);
        }
        let obeys = settings.online && !settings.tiers.is_empty();
        let emulator = Self::build(pool, settings, tables.filter(|_| obeys), service)
            .map_err(|_| OffReason::NoAddressSpace)?;
        // SAFETY: the service thread does not run yet.
        let handler = unsafe { &mut *emulator.handler.get() };
        handler.account = Account(tables);
        handler.account.set_fast_bytes(handler.capacity_bytes);
        emulator.launch()?;
        emulator.calibrate();
        Ok(Some(emulator))
    }

    /// Measures the cost of a fault without any delay.
    fn calibrate(&self) {
        let (round_trip_ns, processor_ns) = self.channel.time_fault(CALIBRATION_FAULTS);
        self.costs.set(round_trip_ns, processor_ns);
    }

    fn build(
        pool: Range<usize>,
        settings: &Settings,
        tables: Option<SessionTables>,
        service: ServiceLoop,
    ) -> rustix::io::Result<&'static Self> {
        let shadow_start = memory::fresh(pool.len())?;
        for start in [pool.start, shadow_start] {
            // A page is moved alone; huge pages would be split at the first move.
            // SAFETY: advice that changes no content.
            let _ = unsafe { memory::advise(start, pool.len(), libc::MADV_NOHUGEPAGE) };
        }
        let table: &'static Table = place(Table::map(pool.len())?)?;
        let costs: &'static FaultCosts = place(FaultCosts::default())?;
        place(Self {
            shadow: shadow_start..shadow_start + pool.len(),
            zeroes: memory::fresh(BATCH_PAGES * PAGE_BYTES)?,
            table,
            channel: ServiceChannel::map()?,
            service,
            stack: Stack::map(STACK_BYTES)?,
            status: AtomicU32::new(STARTING),
            process: AtomicU32::new(0),
            thread: AtomicU32::new(0),
            ends: AtomicBool::new(false),
            costs,
            recycled: AtomicBool::new(false),
            tiers: settings.tiers,
            requests: UnsafeCell::new(tables),
            handler: UnsafeCell::new(new_handler(pool.clone(), settings, table, costs)?),
            pool,
        })
    }

    /// Starts the service thread and waits until it serves, or reports why it cannot.
    fn launch(&'static self) -> Result<(), OffReason> {
        let process = rustix::process::getpid().as_raw_nonzero().get();
        self.process.store(process as u32, Ordering::Relaxed);
        self.status.store(STARTING, Ordering::Release);
        let argument = ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the stack is fresh, or its thread died with the fork; the service keeps to the
        // rules of bare threads; `self` is never freed.
        let spawned = unsafe { isotherm_sys::thread::spawn(&self.stack, self.service, argument) };
        let Ok(thread) = spawned else {
            self.status
                .store(OFF + OffReason::NoThread as u32, Ordering::Release);
            return Err(OffReason::NoThread);
        };
        self.thread.store(thread as u32, Ordering::Relaxed);
        loop {
            match self.status.load(Ordering::Acquire) {
                STARTING => {
                    let _ = futex::wait(&self.status, futex::Flags::PRIVATE, STARTING, None);
                }
                RUNNING => return Ok(()),
                off => return Err(from_number(off - OFF).unwrap_or(OffReason::NoUserfaultfd)),
            }
        }
    }

    /// Service thread: reports to the thread that started it whether it serves.
    pub(crate) fn announce(&self, opened: Result<(), OffReason>) {
        let status = opened.map_or_else(|reason| OFF + reason as u32, |()| RUNNING);
        self.status.store(status, Ordering::Release);
        let _ = futex::wake(&self.status, futex::Flags::PRIVATE, u32::MAX >> 1);
    }

    /// Service thread: opens the userfaultfd and registers pool, shadow and channel.
    pub(crate) fn open(&self, handler: &mut FaultHandler) -> Result<(), OffReason> {
        let uffd = Userfaultfd::open().map_err(|error| match error {
            OpenError::NoMove => OffReason::NoUffdMove,
            OpenError::Unavailable(_) => OffReason::NoUserfaultfd,
        })?;
        for range in [self.channel.range(), self.shadow.clone(), self.pool.clone()] {
            // SAFETY: the service thread serves all three and touches none of them.
            if unsafe { uffd.register(&range) }.is_err() {
                return Err(OffReason::NoUserfaultfd);
            }
        }
        let offset = self.shadow.start.wrapping_sub(self.pool.start);
        handler.mover = Some(Mover::new(uffd, self.pool.clone(), offset, self.zeroes));
        handler.account.set_shadow_offset(offset);
        // Only in a child that was made without [`super::ForkPhase::Before`] is anything still away.
        handler.bring_all_home();
        Ok(())
    }

    /// Service thread: a fatal error. Every page comes home, and the kernel serves the pool again.
    pub(crate) fn give_up(&self, handler: &mut FaultHandler, reason: OffReason) {
        handler.bring_all_home();
        if let Some(mover) = &handler.mover {
            for range in [self.pool.clone(), self.shadow.clone(), self.channel.range()] {
                let _ = mover.uffd().unregister(&range);
            }
        }
        handler.account.set_shadow_offset(0);
        handler.account.gave_up(reason);
        self.announce(Err(reason));
    }

    /// Service thread: its own state.
    ///
    /// # Safety
    /// Only the service thread may call this, and only once.
    #[expect(
        clippy::mut_from_ref,
        reason = "the cell's only user is the service thread"
    )]
    pub(crate) unsafe fn handler(&self) -> &mut FaultHandler {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.handler.get() }
    }

    /// Service thread: the requests it obeys, if any.
    pub(crate) fn requests(&self) -> Option<SessionTables> {
        // SAFETY: written only while no service thread runs.
        unsafe { *self.requests.get() }
    }

    /// Service thread: a thread waits for `address`.
    pub(crate) fn fault(&self, handler: &mut FaultHandler, address: usize, now_ns: u64) {
        if self.pool.contains(&address) {
            let page = (address - self.pool.start) / PAGE_BYTES;
            handler.fault(page as u32, now_ns);
        } else if self.channel.range().contains(&address) {
            if let Some(request) = self.channel.request(address) {
                handler.serve(&request);
                self.channel.answer(address);
            }
            if let Some(mover) = &handler.mover {
                mover.make_at(address);
            }
        }
    }

    fn ask(&self, request: ServiceCommand, range: Range<usize>) -> bool {
        if self.status.load(Ordering::Acquire) != RUNNING {
            return false;
        }
        // The process is compared only after a touch that no service answered: a `vfork` child is another
        // process too, and the parent's service answers it.
        let is_served = || {
            let process = rustix::process::getpid().as_raw_nonzero().get() as u32;
            self.status.load(Ordering::Acquire) == RUNNING
                && self.process.load(Ordering::Relaxed) == process
        };
        self.channel.ask(
            &ServiceRequest {
                command: request,
                range,
            },
            is_served,
        )
    }

    pub(super) fn label(&self, address: usize, bytes: usize, tier: u32) {
        let chunks = self.chunks(&(address..address.saturating_add(bytes)));
        if chunks.is_empty() {
            return;
        }
        if self.recycled.load(Ordering::Relaxed) {
            let start = self.pool.start + chunks.start * CHUNK_BYTES;
            let end = (self.pool.start + chunks.end * CHUNK_BYTES).min(self.pool.end);
            self.ask(ServiceCommand::Register, start..end);
        }
        self.table.label(chunks, Side::of_tier(self.tiers, tier));
    }

    pub(super) fn unlabel(&self, address: usize, bytes: usize) {
        self.discard(address, bytes);
        self.recycled.store(true, Ordering::Relaxed);
        let range = address..address.saturating_add(bytes);
        for chunk in pool_range::whole(&self.pool, &range, CHUNK_BYTES) {
            self.table.chunk(chunk).set_label(None);
        }
    }

    pub(super) fn discard(&self, address: usize, bytes: usize) {
        let range = address.next_multiple_of(PAGE_BYTES)
            ..address.saturating_add(bytes) / PAGE_BYTES * PAGE_BYTES;
        if range.is_empty() {
            return;
        }
        if self.has_touched(&range) {
            self.ask(ServiceCommand::Forget, range.clone());
        }
        drop_home(range.start, range.len());
    }

    pub(super) fn settle(&self, address: usize, bytes: usize) {
        let range = address..address.saturating_add(bytes);
        if !self.chunks(&range).is_empty() {
            self.recycled.store(true, Ordering::Relaxed);
            self.ask(ServiceCommand::Settle, range);
        }
    }

    pub(super) fn hold(&self) {
        self.ask(ServiceCommand::Hold, 0..0);
    }

    pub(super) fn release(&self) {
        self.ask(ServiceCommand::Release, 0..0);
    }

    pub(super) fn start_over(&'static self, tables: Option<SessionTables>) {
        if self.status.load(Ordering::Relaxed) != RUNNING {
            return;
        }
        self.launch_again(tables);
    }

    /// Makes a call that the kernel refuses a process of several threads, without a service meanwhile. The
    /// caller's thread is the program's only one.
    pub(super) fn pause_for<R>(
        &'static self,
        tables: Option<SessionTables>,
        work: impl FnOnce() -> R,
    ) -> R {
        if self.status.load(Ordering::Acquire) != RUNNING {
            return work();
        }
        // Every page comes home and stays there; the second request serves only to wake the service.
        self.hold();
        self.ends.store(true, Ordering::Release);
        self.hold();
        let process = self.process.load(Ordering::Relaxed) as i32;
        let thread = self.thread.load(Ordering::Relaxed) as i32;
        while isotherm_sys::thread::is_there(process, thread) {
            rustix::thread::sched_yield();
        }
        self.ends.store(false, Ordering::Relaxed);
        let answer = work();
        self.launch_again(tables);
        answer
    }

    /// Service thread: whether it should end. It publishes this by the status, so that no thread sends it
    /// further requests.
    pub(crate) fn ends(&self) -> bool {
        let ends = self.ends.load(Ordering::Acquire);
        if ends {
            self.status.store(STARTING, Ordering::Release);
        }
        ends
    }

    fn launch_again(&'static self, tables: Option<SessionTables>) {
        self.channel.clear();
        // SAFETY: the caller's thread is the only one: in a forked child, or since the service ended.
        let (handler, requests) = unsafe { (&mut *self.handler.get(), &mut *self.requests.get()) };
        *requests = requests.and(tables);
        handler.start_over(Account(tables));
        handler.account.set_fast_bytes(handler.capacity_bytes);
        // Without a service the slow tier is not slowed; the session, where there is one, reports it, and the
        // program continues.
        if let Err(reason) = self.launch() {
            handler.account.gave_up(reason);
        }
    }

    /// Whether any chunk of the range has touched pages.
    fn has_touched(&self, range: &Range<usize>) -> bool {
        self.chunks(range)
            .any(|chunk| self.table.chunk(chunk).touched() > 0)
    }

    /// The chunks that the range touches.
    fn chunks(&self, range: &Range<usize>) -> Range<usize> {
        pool_range::touched(&self.pool, range, CHUNK_BYTES)
    }
}

fn new_handler(
    pool: Range<usize>,
    settings: &Settings,
    table: &'static Table,
    costs: &'static FaultCosts,
) -> rustix::io::Result<FaultHandler> {
    Ok(FaultHandler {
        returned: PageList::map(table.pages())?,
        leaving: PageList::map(table.pages())?,
        stuck: PageList::map(table.pages())?,
        table,
        pool,
        emulation: settings.emulation,
        trapping: settings.trapping,
        capacity_bytes: settings.fast_bytes(),
        account: Account(None),
        mover: None,
        due: DueQueue::new(),
        leaving_done: 0,
        period: 0,
        progress: Progress::default(),
        costs,
        sample: Sample::new(settings.trapping.seed),
        migration: Migration::default(),
        held: 0,
        fast_bytes: 0,
        slow_bytes: 0,
    })
}

/// Puts a value into its own mapping, where it stays for good.
pub(crate) fn place<T>(value: T) -> rustix::io::Result<&'static T> {
    let start = memory::fresh(size_of::<T>())? as *mut T;
    // SAFETY: the mapping is fresh, page-aligned, large enough and never unmapped.
    unsafe {
        start.write(value);
        Ok(&*start)
    }
}

/// Drops the content at home.
fn drop_home(address: usize, bytes: usize) {
    // SAFETY: the caller of [`SlowTierEmulator::discard`] owns the range and does not want its content.
    let _ = unsafe { memory::advise(address, bytes, libc::MADV_DONTNEED) };
}
