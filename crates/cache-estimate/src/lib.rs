//! Estimates, from the addresses of timer samples, which share of a program's waiting its caches served ([`CacheEstimate`]), and which
//! instructions of a thread follow a stream of addresses, so that they wait for memory bandwidth and not for memory latency ([`Streams`]).
//! By both, the observer (the Isotherm process outside the program) counts each timer sample as a wait for caches, latency or bandwidth,
//! and the runtime inside computes how long to delay a thread at its samples, where it emulates slow memory by such delays.
//!
//! A sample by time says where a program waited, and not whether for a cache or for memory. But pages that come back
//! soon are few, and few pages are in the caches. From how often pages come back among the last samples, this crate
//! estimates how many pages there are of each rate of access (`mixture.rs`), which of them a cache of a given size holds
//! (`occupancy.rs`), and so the share of each sample's waiting that the cache served.
//!
//! ```
//! use isotherm_cache_estimate::CacheEstimate;
//!
//! // A window of the last 1,024 samples, of a thread with a cache of 2 MiB.
//! let mut estimate = CacheEstimate::<1024>::new(2 << 20);
//! for sample in 0..1024_u64 {
//!     estimate.observe(0x7000_0000 + sample % 16 * 4096);
//! }
//! assert_eq!(estimate.served(0x7000_0000), Some(1.0));
//! ```
//!
//! Pure, and fit for a signal handler: no allocation, lock, system call or function of the C library. A sample costs some
//! ten nanoseconds, and every sixteenth part of the window an estimate of 30 to 100 us: at 1 kHz a thousandth of a
//! thread's time (`examples/cost.rs`). A window of 1,024 samples takes 41 KiB, and the stack less
//! than 8 KiB.
//!
//! # Limits
//!
//! - The samples of one window must belong to threads that share the cache.
//! - A window cannot tell sets that fit in a cache from larger ones before it has seen pages come back: a cache of more
//!   than `SAMPLES^2 / 32` pages is beyond it, 128 MiB for 1,024 samples; such a window is judged when it is full.
//! - Data that a program works on for less than a window, and then on other data, looks like data that never comes back:
//!   its few repeated samples do not suffice to distinguish its pages from pages that are sampled once.
//! - The share of a page that is in use (a list with one element a page fills 64 bytes of cache for each) is
//!   known only for pages that come back; others are counted whole.
//! - A scan in a circle over little more than the cache misses all of it under LRU; the estimate says what random
//!   accesses would miss, which is closer to what processors do.
//!
//! Modules are listed bottom-up: each uses only those above it.
#![forbid(unsafe_code)]

mod tables;
mod window;
mod mixture;
mod occupancy;
mod streams;

use mixture::{Histogram, Mixture};
use tables::{CLASSES, COUNTS, MIXED, ONCE};
use window::Window;

pub use streams::{AccessPattern, Streams, Walk};

/// Samples that must have come back to rarely sampled pages before these may count as served. With fewer their number is not known,
/// even to a factor of two: a few samples beside thousands in a hot set say nothing of how much data they are from.
const RARE_REPEATS: f32 = 4.0;

/// An estimate from the last `SAMPLES` samples of a stream: a power of two from 64 to 16,384.
///
/// In memory of all zero bytes there is a valid estimate with no samples, for a cache of no bytes, so that a runtime can
/// make one in place ([`Self::set_cache`]).
#[derive(Debug)]
#[repr(C)]
pub struct CacheEstimate<const SAMPLES: usize> {
    window: Window<SAMPLES>,
    cache_bytes: u64,
    settled: bool,
    shares: Shares,
}

/// The shares of pages that the caches served, by their number of samples.
#[derive(Debug)]
#[repr(C)]
struct Shares {
    mixture: Mixture,
    /// Shares of pages with up to [`COUNTS`] samples, by number of samples.
    few: [f32; COUNTS + 1],
    /// Shares of pages with more samples, by class.
    many: [f32; CLASSES],
}

impl Shares {
    const NONE: Self = Self {
        mixture: Mixture::EMPTY,
        few: [0.0; COUNTS + 1],
        many: [0.0; CLASSES],
    };

    /// Renews the shares from a histogram.
    fn fit(&mut self, histogram: &Histogram, cache_bytes: u64) {
        self.mixture.fit(histogram);
        let bytes = self.mixture.bytes(histogram);
        self.many = occupancy::served(&bytes, cache_bytes as f32);
        if self.mixture.rare_repeats(histogram) < RARE_REPEATS {
            self.many[..ONCE].fill(0.0);
        }
        for count in 1..=COUNTS {
            let classes = self.mixture.classes_of(count);
            let shares = classes.iter().zip(&self.many[..MIXED]);
            let share: f32 = shares.map(|(chance, share)| chance * share).sum();
            self.few[count] = share.clamp(0.0, 1.0);
        }
    }

    /// The share of the waiting for a page with this many samples that the caches served.
    fn of(&self, count: u32) -> f32 {
        match self.few.get(count.max(1) as usize) {
            Some(share) => *share,
            None => self.many[mixture::class_of_count(count)],
        }
    }
}

impl<const SAMPLES: usize> CacheEstimate<SAMPLES> {
    /// An estimate without samples, for caches of this many bytes in all.
    #[must_use]
    pub const fn new(cache_bytes: u64) -> Self {
        const { assert!(SAMPLES.is_power_of_two() && SAMPLES >= 64 && SAMPLES <= 1 << 14) }
        Self {
            window: Window::EMPTY,
            cache_bytes,
            settled: false,
            shares: Shares::NONE,
        }
    }

    /// Sets the bytes of the caches, from the next estimate on.
    pub const fn set_cache(&mut self, bytes: u64) {
        self.cache_bytes = bytes;
    }

    /// Number of samples so far.
    #[must_use]
    pub const fn taken(&self) -> u64 {
        self.window.taken
    }

    /// Whether the samples suffice for shares.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        self.settled
    }

    /// Takes the samples so far as enough: no more will come.
    pub fn settle(&mut self) {
        self.settled = true;
        self.estimate();
    }

    /// Adds the next sample of the stream. True where the estimate was renewed.
    pub fn observe(&mut self, address: u64) -> bool {
        self.window.push(address);
        let taken = self.window.taken;
        let period = SAMPLES as u64 / 16;
        let due = taken.is_multiple_of(period) || (taken < period && taken.is_power_of_two());
        if due {
            self.estimate();
        }
        due
    }

    /// The share of the waiting at the newest sample, which was at this address, that the caches served: 0 to 1. Of an
    /// earlier sample [`Self::served_before`] knows more.
    ///
    /// `None` as long as the samples do not exclude that all data fits: assume that the caches served them, and ask again
    /// for all samples so far once this returns a share.
    #[must_use]
    pub fn served(&self, address: u64) -> Option<f32> {
        self.settled
            .then(|| self.shares.of(self.window.count_of(address)))
    }

    /// As [`Self::served`], of the sample that was taken `age` samples before the newest one: half a window later the
    /// samples before and after it are known. `None` also where it has left the window.
    #[must_use]
    pub fn served_before(&self, age: usize) -> Option<f32> {
        let address = self.window.address_before(age).filter(|_| self.settled)?;
        Some(self.shares.of(self.window.count_of(address)))
    }

    /// Renews the estimate from the samples in the window.
    fn estimate(&mut self) {
        self.window.recount();
        let samples = self.window.len() as u64;
        // If all data were as large as the cache, two of its samples would be in one page once in `pages` times. With
        // sixteen such pairs expected, their number tells such data from data twice as large.
        let pairs = samples * samples / 2;
        self.settled |= samples == SAMPLES as u64 || pairs / 16 >= self.cache_bytes / 4096;
        let histogram = Histogram::of(self.window.pages());
        self.shares.fit(&histogram, self.cache_bytes);
    }
}
