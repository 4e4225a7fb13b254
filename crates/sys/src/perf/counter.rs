//! [`PerfCounter`] counts an event by `perf_event_open`, without samples: of a process and its later children, of the calling thread, of a
//! processor, or of a unit outside the processors, such as a memory controller.

use std::io;
use std::os::fd::OwnedFd;

use perf_event_open_sys::bindings as abi;

use super::count_reading::CountReading;
use super::{begin_at_once, counting, open};

/// A hardware or software event that is only counted.
#[derive(Debug)]
pub struct PerfCounter {
    file: std::fs::File,
    last: CountReading,
    /// The count up to the last reading.
    total: u64,
}

impl PerfCounter {
    /// Misses of the last cache level.
    pub const CACHE_MISSES: (u32, u64) = (
        abi::PERF_TYPE_HARDWARE,
        abi::PERF_COUNT_HW_CACHE_MISSES as u64,
    );

    /// Reads that missed the data TLB.
    pub const TLB_MISSES: (u32, u64) = (
        abi::PERF_TYPE_HW_CACHE,
        abi::PERF_COUNT_HW_CACHE_DTLB as u64
            | (abi::PERF_COUNT_HW_CACHE_OP_READ as u64) << 8
            | (abi::PERF_COUNT_HW_CACHE_RESULT_MISS as u64) << 16,
    );

    /// Nanoseconds of processor time.
    pub const CPU_CLOCK: (u32, u64) =
        (abi::PERF_TYPE_SOFTWARE, abi::PERF_COUNT_SW_CPU_CLOCK as u64);

    fn of_file(file: impl Into<OwnedFd>) -> Self {
        Self {
            file: file.into().into(),
            last: CountReading::default(),
            total: 0,
        }
    }

    /// Opens an event (type, config) for a process and all its later children. Counting begins at exec.
    ///
    /// # Errors
    /// As [`super::Sampler::open`].
    pub fn open(event: (u32, u64), pid: u32) -> io::Result<Self> {
        let mut attr = counting(event);
        open(&mut attr, pid as i32, -1, None).map(Self::of_file)
    }

    /// Opens an event (type, config) for the calling thread alone. Counting begins at once.
    ///
    /// # Errors
    /// As [`super::Sampler::open`].
    pub fn of_thread(event: (u32, u64)) -> io::Result<Self> {
        let mut attr = counting(event);
        begin_at_once(&mut attr);
        open(&mut attr, 0, -1, None).map(Self::of_file)
    }

    /// Opens an event (type, config) for all programs on a processor. Counting begins at once.
    ///
    /// # Errors
    /// As [`super::Sampler::open`] of [`super::Sampler::EVERY_PROCESS`].
    pub fn of_processor(event: (u32, u64), cpu: u32) -> io::Result<Self> {
        let mut attr = counting(event);
        begin_at_once(&mut attr);
        open(&mut attr, -1, cpu as i32, None).map(Self::of_file)
    }

    /// Opens an event of a unit outside the processors, such as a memory controller: its number in sysfs and
    /// its values of config, config1 and config2, on the processor that the unit's `cpumask` names. Such units
    /// distinguish neither kernel from program nor one process from another. Counting begins at once.
    ///
    /// # Errors
    /// As [`super::Sampler::open`] of [`super::Sampler::EVERY_PROCESS`].
    pub fn of_unit(kind: u32, configs: [u64; 3], cpu: u32) -> io::Result<Self> {
        let mut attr = counting((kind, configs[0]));
        attr.__bindgen_anon_3.config1 = configs[1];
        attr.__bindgen_anon_4.config2 = configs[2];
        begin_at_once(&mut attr);
        attr.set_exclude_kernel(0);
        attr.set_exclude_hv(0);
        open(&mut attr, -1, cpu as i32, None).map(Self::of_file)
    }

    /// The count since the event was opened, including children that have exited or still run. Where other events had the counter for
    /// a part of an interval between two readings, what was counted in the other part stands for the whole interval. It never falls.
    ///
    /// # Errors
    /// The kernel could not read the event, or other events have had the counter all the time; the next reading goes on from here.
    pub fn value(&mut self) -> io::Result<u64> {
        match self.advance()? {
            true => Ok(self.total),
            false => Err(io::Error::other(
                "other events have had its counter all the time",
            )),
        }
    }

    /// As [`PerfCounter::value`], at the start of an interval: it does not matter whether other events had the counter before.
    ///
    /// # Errors
    /// The kernel could not read the event.
    pub fn begin(&mut self) -> io::Result<u64> {
        self.advance().map(|_| self.total)
    }

    /// Adds what was counted since the last reading; false where other events had the counter.
    fn advance(&mut self) -> io::Result<bool> {
        let now = self.reading()?;
        let counted = now.since(std::mem::replace(&mut self.last, now));
        self.total = self.total.saturating_add(counted.unwrap_or_default());
        Ok(counted.is_some())
    }

    fn reading(&mut self) -> io::Result<CountReading> {
        use std::io::Read;
        let mut bytes = [0; 24];
        self.file.read_exact(&mut bytes)?;
        let mut words = [0; 3];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_ne_bytes(*bytes);
        }
        let [count, enabled, ran] = words;
        Ok(CountReading {
            count,
            enabled,
            ran,
        })
    }
}
