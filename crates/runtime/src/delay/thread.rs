//! [`DelayedThread`] is the state of one thread in the emulation by time; it decodes the access of each sample, and computes the delay and
//! the bytes that follow from it, by the tier of its page and the share that the caches are estimated to serve.

use core::mem::MaybeUninit;

use isotherm_abi::config::EmulationConfig;
use isotherm_cache_estimate::{AccessPattern, CacheEstimate, Streams};
use isotherm_decode::{AccessOrder, Architecture, Window, access};
use isotherm_sys::perf::thread_timer::ThreadTimer;

use super::costs;
use super::interrupted::Interrupted;
use super::java_heap;
use super::page_tiers::PageTiers;
use super::signal_stack;
use super::stream_bytes::StreamBytes;
use super::traffic::Traffic;
use crate::clock;
use crate::published_tiers::Side;

/// Samples that the estimate of the caches looks back: one second of work.
const WINDOW: usize = 1024;

/// Bytes that memory delivers for an access.
const LINE_BYTES: u64 = 64;

/// Time of a random access to DRAM, in nanoseconds. Further accesses that wait at the same time are not counted.
const ACCESS_NS: u64 = 100;

/// Samples whose delay waits for the first estimate of the caches; later ones replace none.
const WAITING: usize = 1024;

/// A sample whose share beyond the caches is not known yet.
#[derive(Clone, Copy)]
struct Waiting {
    address: u64,
    /// Its cost if no cache served any of it.
    cost: Cost,
}

/// What a sampled access costs.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// Delay of the thread in nanoseconds.
    ns: u64,
    /// Bytes that the thread accessed.
    traffic: Traffic,
}

impl Cost {
    /// The part that no cache saved.
    fn beyond(self, served: f32) -> Self {
        let share = (1.0 - served).clamp(0.0, 1.0);
        Self {
            ns: (self.ns as f32 * share) as u64,
            traffic: self.traffic.scaled(share),
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            ns: self.ns + other.ns,
            traffic: self.traffic.and(other.traffic),
        }
    }
}

/// The state of a thread.
pub(crate) struct DelayedThread {
    timer: Option<ThreadTimer>,
    /// The process that the timer belongs to.
    process: i32,
    caches: CacheEstimate<WINDOW>,
    streams: Streams,
    stream_bytes: StreamBytes,
    waiting: [Waiting; WAITING],
    waiting_count: usize,
    /// Where the last signal interrupted the thread.
    last: Interrupted,
    /// Work of the thread in nanoseconds that the present sample stands for.
    work_ns: u64,
    /// Processor time of the thread at which it went on after the last sample, in nanoseconds.
    resumed_ns: u64,
    /// Work of the thread so far, in nanoseconds.
    worked_ns: u64,
    /// Bytes that the shared bandwidths have not served yet.
    owed: Traffic,
}

/// What a sample costs the thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delay {
    /// Nanoseconds.
    pub(crate) ns: u64,
    /// Bytes that the thread accessed since the last sample.
    pub(crate) traffic: Traffic,
    /// Whether the access went to slow memory.
    pub(crate) is_slow: bool,
}

impl DelayedThread {
    /// Makes the state of a thread whose caches hold `cache_bytes`, with the stack of its timer's handler below. It is never moved, and
    /// freed by [`Self::release`]. `None` where there is no memory.
    pub(crate) fn make(cache_bytes: u64) -> Option<&'static mut Self> {
        let address = signal_stack::map_above(size_of::<Self>()).ok()?;
        let place = core::ptr::with_exposed_provenance_mut::<MaybeUninit<Self>>(address);
        // SAFETY: fresh memory of this size, aligned to a page, of zeroes: the values that are valid as zeroes (the estimate
        // of the caches, the streams and their ends, the waiting samples) are left so, all others are written.
        unsafe {
            let state = (*place).as_mut_ptr();
            (&raw mut (*state).timer).write(None);
            (*state).process = 0;
            (&raw mut (*state).last).write(Interrupted::NOWHERE);
            (*state).caches.set_cache(cache_bytes);
            (*state).begin();
            Some(&mut *state)
        }
    }

    /// Takes over what another thread knows of its caches, if that is more and its own is not enough: both work on the same
    /// program's data.
    pub(crate) fn learn_from(&mut self, other: &Self) {
        let knows_more = other.caches.is_settled() || other.caches.taken() > self.caches.taken();
        if !self.caches.is_settled() && knows_more {
            // SAFETY: two places of one type that owns nothing. An assignment would copy 41 KiB over a stack that may be small.
            unsafe {
                core::ptr::copy_nonoverlapping(&raw const other.caches, &raw mut self.caches, 1)
            };
        }
    }

    /// Makes it the state of the calling thread.
    pub(crate) fn begin(&mut self) {
        let process = rustix::process::getpid().as_raw_nonzero().get();
        if self.process != process {
            // A forked child's copy: its parent pays for these samples.
            self.waiting_count = 0;
            self.owed = Traffic::default();
        }
        self.process = process;
        self.last = Interrupted::NOWHERE;
        self.resumed_ns = clock::thread_ns();
    }

    /// Ends the sampling of its thread.
    pub(crate) fn stop(&mut self) {
        let Some(timer) = self.timer.take() else {
            return;
        };
        if self.process != rustix::process::getpid().as_raw_nonzero().get() {
            // A child of a fork has a copy of the state, but not the timer's mapping: other memory may be there by now.
            core::mem::forget(timer);
        }
    }

    /// Frees a state that nothing refers to any more.
    pub(crate) fn release(state: &'static mut Self) {
        state.stop();
        let address = core::ptr::from_mut(state).expose_provenance();
        // SAFETY: `make` mapped the memory, and the caller gives the only reference.
        unsafe { signal_stack::unmap(address, size_of::<Self>()) };
    }

    /// Keeps the timer that samples this thread.
    pub(crate) fn set_timer(&mut self, timer: ThreadTimer) {
        self.timer = Some(timer);
    }

    /// Whether the thread did any work since the last sample. A timer that went off during a delay signals at its end,
    /// where the thread has all its registers as before.
    pub(crate) fn has_worked(&mut self, now: &Interrupted) -> bool {
        let has = self.last != *now;
        self.last = *now;
        has
    }

    /// Called before a sample, at this processor time of the thread. Sets the work that the sample stands for: the time since the last
    /// one, but at most a period, because the timer's signals wait while the kernel works for the thread. The timer goes on during a
    /// delay, so its period says nothing of the work between two samples.
    pub(crate) fn worked_until(&mut self, now_ns: u64, period_ns: u64) {
        self.work_ns = now_ns.saturating_sub(self.resumed_ns).min(period_ns);
    }

    /// Adds bytes that the shared bandwidths are to serve.
    pub(crate) fn owe(&mut self, traffic: Traffic) {
        self.owed = self.owed.and(traffic);
    }

    /// Takes at most `most` of the bytes that the shared bandwidths still have to serve; `None` where there are none.
    pub(crate) fn take_owed(&mut self, most: Traffic) -> Option<Traffic> {
        self.owed.take(most)
    }

    /// Called after a sample, at this processor time of the thread.
    pub(crate) fn resumes_at(&mut self, now_ns: u64) {
        self.resumed_ns = now_ns;
    }

    /// The delay of a sample.
    pub(crate) fn sample(
        &mut self,
        at: &Interrupted,
        tiers: &PageTiers,
        emulation: &EmulationConfig,
    ) -> Delay {
        let (code, start) = at.code();
        let window = Window {
            code,
            start,
            ip: at.ip,
        };
        self.worked_ns = self.worked_ns.saturating_add(self.work_ns);
        let Some(found) = access(Architecture::HERE, &window) else {
            return Delay::default();
        };
        let Some(address) = found.operand.address(&at.registers) else {
            return Delay::default();
        };
        let pattern = self.streams.note(at.ip, address, self.worked_ns);
        if !pattern.waits(found.order != AccessOrder::Next) {
            return Delay::default();
        }
        let bytes = match self.streams.walk(at.ip) {
            Some(walk) => self
                .stream_bytes
                .advance(walk, address, self.worked_ns, self.work_ns),
            None => self.work_ns * LINE_BYTES / ACCESS_NS,
        };
        self.access(address, pattern, bytes, tiers, emulation)
    }

    /// The delay of a sampled access; the thread has accessed `bytes` since the last one.
    fn access(
        &mut self,
        address: u64,
        pattern: AccessPattern,
        bytes: u64,
        tiers: &PageTiers,
        emulation: &EmulationConfig,
    ) -> Delay {
        self.caches.observe(address);
        let of_page = || Some(tiers.tier_of(tiers.page(address as usize)?));
        let side = java_heap::side_of(address as usize)
            .or_else(of_page)
            .unwrap_or(Side::Fast);
        let cost = Cost {
            ns: match side {
                Side::Fast => 0,
                Side::Slow => costs::delay_ns(emulation, self.work_ns, pattern),
            },
            traffic: Traffic::of(side, bytes),
        };
        let cost = match self.caches.served(address) {
            Some(served) => self.earlier().and(cost.beyond(served)),
            None => {
                self.wait(Waiting { address, cost });
                Cost::default()
            }
        };
        Delay {
            ns: cost.ns,
            traffic: cost.traffic,
            is_slow: side == Side::Slow,
        }
    }

    fn wait(&mut self, sample: Waiting) {
        if let Some(place) = self.waiting.get_mut(self.waiting_count) {
            *place = sample;
            self.waiting_count += 1;
        }
    }

    /// The delay of the samples that still wait for an estimate, by an estimate from these few: no more will come.
    pub(crate) fn last_delay(&mut self) -> Delay {
        if self.waiting_count == 0 {
            return Delay::default();
        }
        self.caches.settle();
        let Cost { ns, traffic } = self.earlier();
        Delay {
            ns,
            traffic,
            is_slow: false,
        }
    }

    /// The delay of the samples that waited for the first estimate.
    fn earlier(&mut self) -> Cost {
        let waiting = &self.waiting[..core::mem::take(&mut self.waiting_count)];
        let cost = |sample: &Waiting| {
            let served = self.caches.served(sample.address);
            sample.cost.beyond(served.unwrap_or(0.0))
        };
        waiting.iter().map(cost).fold(Cost::default(), Cost::and)
    }
}

#[cfg(test)]
mod tests {
    use super::{AccessPattern, Delay, DelayedThread, EmulationConfig, PageTiers, Side, Traffic};

    const CHUNK: usize = isotherm_abi::CHUNK_BYTES as usize;
    const BASE: usize = 1 << 40;
    const CACHE: u64 = 4 << 20;
    const PERIOD: u64 = 1_000_000;

    fn slow(chunks: usize) -> PageTiers {
        let tiers = PageTiers::map(BASE..BASE + chunks * CHUNK, 0).expect("maps");
        tiers.want(BASE, chunks * CHUNK, Side::Slow);
        tiers
    }

    /// The delay of random accesses to `bytes` of slow memory over their time in fast memory.
    fn delay_of(bytes: u64, samples: u64) -> f64 {
        let costs = EmulationConfig {
            latency_percent: 300,
            bandwidth_percent: 300,
            ..EmulationConfig::default()
        };
        let tiers = slow(bytes as usize / CHUNK + 1);
        let thread = DelayedThread::make(CACHE).expect("memory");
        thread.work_ns = PERIOD;
        let (mut state, mut ns) = (7u64, 0);
        for _ in 0..samples {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let address = BASE as u64 + (state >> 20) % bytes;
            ns += thread
                .access(address, AccessPattern::Scattered, 64, &tiers, &costs)
                .ns;
        }
        DelayedThread::release(thread);
        ns as f64 / (samples * PERIOD) as f64
    }

    #[test]
    fn data_beyond_the_caches_costs_the_factor_and_data_in_them_nothing() {
        for samples in [300, 3_000] {
            let small = delay_of(CACHE / 4, samples);
            assert!(small < 0.1, "{small} of a quarter of the cache");
            let large = delay_of(64 * CACHE, samples);
            assert!((1.8..=2.0).contains(&large), "{large} of 64 caches");
        }
    }

    #[test]
    fn a_new_thread_knows_what_its_maker_knows_of_the_caches() {
        let maker = DelayedThread::make(CACHE).expect("memory");
        for sample in 0..1024 {
            maker.caches.observe(sample % 16 * 4096);
        }
        let made = DelayedThread::make(CACHE).expect("memory");
        assert_eq!(made.caches.served(0), None);
        for sample in 0..100 {
            made.caches.observe(sample * 4096);
        }
        let idle = DelayedThread::make(CACHE).expect("memory");
        idle.caches.observe(0);
        made.learn_from(idle);
        assert_eq!(made.caches.taken(), 100, "it knows more than an idle maker");
        made.learn_from(maker);
        assert_eq!(made.caches.served(0), Some(1.0));
        for sample in 0..1024 {
            made.caches.observe(sample * 4096);
        }
        made.learn_from(maker);
        let served = made.caches.served(0).expect("its own samples tell");
        assert!(served < 0.01, "{served}");
        for state in [maker, made, idle] {
            DelayedThread::release(state);
        }
    }

    #[test]
    fn a_program_that_ends_early_is_delayed_at_its_end() {
        let tiers = slow(64);
        let costs = EmulationConfig {
            latency_percent: 300,
            bandwidth_percent: 300,
            ..EmulationConfig::default()
        };
        let thread = DelayedThread::make(64 << 20).expect("memory");
        thread.work_ns = PERIOD;
        for sample in 0..100 {
            let address = (BASE + sample * 7919 % (64 * CHUNK / 4096) * 4096) as u64;
            let delay = thread.access(address, AccessPattern::Scattered, 64, &tiers, &costs);
            assert_eq!(delay.ns, 0);
        }
        let last = thread.last_delay();
        assert!(last.ns.abs_diff(200 * PERIOD) < PERIOD, "{last:?}");
        // Each sample is rounded down.
        assert!(last.traffic.slow.abs_diff(100 * 64) <= 100, "{last:?}");
        assert_eq!(last.traffic.fast, 0);
        assert_eq!(thread.last_delay(), Delay::default());
        DelayedThread::release(thread);
    }

    #[test]
    fn a_forked_child_does_not_pay_what_its_parent_owes() {
        let state = DelayedThread::make(CACHE).expect("memory");
        let owed = Traffic { fast: 3, slow: 7 };
        for process in [state.process, state.process + 1] {
            state.process = process;
            state.wait(super::Waiting {
                address: 0,
                cost: super::Cost {
                    ns: 7,
                    traffic: owed,
                },
            });
            state.owe(owed);
            state.begin();
            let is_own = process == rustix::process::getpid().as_raw_nonzero().get();
            assert_eq!(
                (state.waiting_count, state.take_owed(owed)),
                if is_own { (1, Some(owed)) } else { (0, None) }
            );
        }
        DelayedThread::release(state);
    }

    #[test]
    fn accesses_to_fast_memory_are_counted_and_cost_no_time() {
        let tiers = PageTiers::map(BASE..BASE + CHUNK, CHUNK as u64).expect("maps");
        tiers.want(BASE, CHUNK, Side::Fast);
        let costs = EmulationConfig {
            latency_percent: 300,
            bandwidth_percent: 300,
            ..EmulationConfig::default()
        };
        // Half of the pages of the chunk, which do not fit in this cache.
        let thread = DelayedThread::make(1).expect("memory");
        thread.work_ns = PERIOD;
        let mut seen = Traffic::default();
        for sample in 0..1_000 {
            let address = (BASE + sample * 7919 % (CHUNK / 4096) * 4096) as u64;
            let delay = thread.access(address, AccessPattern::Scattered, 64, &tiers, &costs);
            assert_eq!(delay.ns, 0);
            seen = seen.and(delay.traffic);
        }
        seen = seen.and(thread.last_delay().traffic);
        assert_eq!(seen.slow, 0);
        assert!(seen.fast > 1_000 * 64 * 9 / 10, "{seen:?}");
        DelayedThread::release(thread);
    }

    #[test]
    fn a_sample_stands_for_the_work_since_the_last_one() {
        let thread = DelayedThread::make(CACHE).expect("memory");
        thread.resumes_at(5 * PERIOD);
        thread.worked_until(5 * PERIOD + 700_000, PERIOD);
        assert_eq!(thread.work_ns, 700_000);
        thread.worked_until(9 * PERIOD, PERIOD);
        assert_eq!(thread.work_ns, PERIOD, "the rest was the kernel's");
        DelayedThread::release(thread);
    }
}
