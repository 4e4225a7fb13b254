//! Opens perf events by `perf_event_open`: a [`Sampler`] reads the samples and other records of an event from rings, a [`PerfCounter`]
//! reads its count. [`PerfEventAttributes`] says which event is sampled, and what each sample holds.
//!
//! A [`Sampler`] is one event on every processor, inherited by all children of the process, with one ring buffer per processor: the kernel
//! refuses to map a ring for an inherited event that is not bound to a processor.
//!
//! [`ring`] reads the kernel's bytes from a ring and [`record`] decodes them; neither trusts the sizes found
//! there.
//!
//! Manual: `perf_event_open(2)`.

pub mod aux;
mod count_reading;
mod counter;
mod event_memory;
pub mod record;
pub mod ring;
pub mod thread_timer;

use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use perf_event_open_sys as raw;
use raw::bindings as abi;

use crate::descriptor::Descriptor;

use aux::{AuxRing, AuxTrace};
use record::{Record, Records, SampleLayout};
use ring::Ring;

pub use counter::PerfCounter;

/// The event to open, and the content of each sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerfEventAttributes {
    /// `perf_event_attr.type`: a `PERF_TYPE_*` or the number in a PMU's `type` file.
    pub kind: u32,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// `perf_event_attr.config1`.
    pub config1: u64,
    /// `perf_event_attr.config2`.
    pub config2: u64,
    /// Sample period: events per sample; nanoseconds for the `cpu-clock` event.
    pub period: u64,
    /// Required precision of the instruction address, 0 to 3 (`precise_ip`).
    pub precise: u8,
    /// Exclude accesses inside the kernel.
    pub exclude_kernel: bool,
    /// Record the data address.
    pub address: bool,
    /// Record latency and data source, where the hardware knows them.
    pub weight: bool,
    /// Record the physical address of the data, by these bits of `config` beside the others: 0 for events whose
    /// samples have a field for it, and none for those without one.
    pub physical: Option<u64>,
    /// Registers of the program to record, as `asm/perf_regs.h` numbers them; 0 for none.
    pub registers: u64,
    /// Record forks, exits, execs and executable mappings too.
    pub tasks: bool,
    /// Bytes of the ring that the hardware itself writes; 0 for events without one.
    pub aux_bytes: usize,
    /// `config` of the event of the same unit that must be counted beside this one.
    pub leader: Option<u64>,
}

impl PerfEventAttributes {
    /// The timer: a sample every `period_ns` nanoseconds of processor time, with the registers.
    #[must_use]
    pub fn cpu_clock(period_ns: u64) -> Self {
        Self {
            config: u64::from(abi::PERF_COUNT_SW_CPU_CLOCK),
            registers: register_mask(),
            tasks: true,
            ..Self::software(period_ns)
        }
    }

    /// Every `period`th page fault, with the address that faulted.
    #[must_use]
    pub fn page_faults(period: u64) -> Self {
        Self {
            config: u64::from(abi::PERF_COUNT_SW_PAGE_FAULTS),
            address: true,
            ..Self::software(period)
        }
    }

    /// A hardware event of a PMU that reports data addresses.
    #[must_use]
    pub fn precise(
        kind: u32,
        [config, config1, config2]: [u64; 3],
        period: u64,
        precise: u8,
    ) -> Self {
        Self {
            kind,
            config,
            config1,
            config2,
            precise,
            address: true,
            weight: true,
            tasks: true,
            ..Self::software(period)
        }
    }

    /// The event of a unit that writes its records itself, to a ring of about `aux_bytes`, which
    /// [`Sampler::read`] returns unchanged.
    #[must_use]
    pub fn traced(kind: u32, configs: [u64; 3], period: u64, aux_bytes: usize) -> Self {
        Self {
            address: false,
            weight: false,
            aux_bytes,
            ..Self::precise(kind, configs, period, 0)
        }
    }

    fn software(period: u64) -> Self {
        Self {
            kind: abi::PERF_TYPE_SOFTWARE,
            period,
            exclude_kernel: true,
            ..Self::default()
        }
    }

    /// The layout of this event's samples.
    #[must_use]
    pub fn layout(&self) -> SampleLayout {
        let mut fields = abi::PERF_SAMPLE_IP
            | abi::PERF_SAMPLE_TID
            | abi::PERF_SAMPLE_TIME
            | abi::PERF_SAMPLE_CPU;
        if self.address {
            fields |= abi::PERF_SAMPLE_ADDR;
        }
        if self.weight {
            fields |= abi::PERF_SAMPLE_WEIGHT | abi::PERF_SAMPLE_DATA_SRC;
        }
        if self.registers != 0 {
            fields |= abi::PERF_SAMPLE_REGS_USER;
        }
        if self.physical.is_some() && self.aux_bytes == 0 {
            fields |= abi::PERF_SAMPLE_PHYS_ADDR;
        }
        SampleLayout {
            fields: u64::from(fields),
            registers: self.registers,
            ..SampleLayout::default()
        }
    }

    fn attributes(&self) -> abi::perf_event_attr {
        let mut attr = abi::perf_event_attr {
            type_: self.kind,
            size: size_of::<abi::perf_event_attr>() as u32,
            config: self.config | self.physical.unwrap_or(0),
            sample_type: self.layout().fields,
            sample_regs_user: self.registers,
            clockid: libc::CLOCK_MONOTONIC,
            ..Default::default()
        };
        attr.__bindgen_anon_1.sample_period = self.period;
        attr.__bindgen_anon_3.config1 = self.config1;
        attr.__bindgen_anon_4.config2 = self.config2;
        attr.set_disabled(1);
        attr.set_enable_on_exec(1);
        attr.set_inherit(1);
        attr.set_use_clockid(1);
        attr.set_sample_id_all(1);
        attr.set_exclude_hv(1);
        attr.set_exclude_kernel(u64::from(self.exclude_kernel));
        attr.set_precise_ip(u64::from(self.precise));
        let tasks = u64::from(self.tasks);
        attr.set_task(tasks);
        attr.set_comm(tasks);
        attr.set_comm_exec(tasks);
        attr.set_mmap(tasks);
        attr.set_mmap2(tasks);
        // No wake-ups: the reader reads once an epoch, and a poll would cost the program.
        attr.set_watermark(1);
        attr.__bindgen_anon_2.wakeup_watermark = u32::MAX;
        attr
    }
}

/// An event that only counts.
fn counting((kind, config): (u32, u64)) -> abi::perf_event_attr {
    let mut attr = PerfEventAttributes {
        kind,
        config,
        ..PerfEventAttributes::software(0)
    }
    .attributes();
    attr.sample_type = 0;
    attr.set_watermark(0);
    attr.__bindgen_anon_2.wakeup_watermark = 0;
    let times = abi::PERF_FORMAT_TOTAL_TIME_ENABLED | abi::PERF_FORMAT_TOTAL_TIME_RUNNING;
    attr.read_format = u64::from(times);
    attr
}

/// Makes an event begin at once, and for its thread or processor alone.
fn begin_at_once(attr: &mut abi::perf_event_attr) {
    attr.set_disabled(0);
    attr.set_enable_on_exec(0);
    attr.set_inherit(0);
}

/// The general registers of this machine, as `asm/perf_regs.h` numbers them.
#[must_use]
pub const fn register_mask() -> u64 {
    if cfg!(target_arch = "x86_64") {
        // AX to FLAGS, R8 to R15. The segment registers are left out: the kernel refuses some of
        // them and none holds the base that an address would need.
        0x3ff | 0xff_0000
    } else {
        // x0 to x29, lr, sp, pc.
        (1 << 33) - 1
    }
}

/// Opens the event for a process (0: the caller) on a processor (-1: all), as a member of another event's group
/// if there is one.
fn open(
    attr: &mut abi::perf_event_attr,
    pid: i32,
    cpu: i32,
    leader: Option<&Descriptor>,
) -> io::Result<Descriptor> {
    let group = leader.map_or(-1, AsRawFd::as_raw_fd);
    let flags = u64::from(abi::PERF_FLAG_FD_CLOEXEC);
    // SAFETY: perf_event_open takes a pointer to an attribute block; `attr` is a live, exclusive
    // borrow of one whose `size` field is its true size. The call keeps no pointer.
    let fd = unsafe { raw::perf_event_open(attr, pid, cpu, group, flags as libc::c_ulong) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just made the descriptor for us and no other code owns it.
    Ok(Descriptor::from(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// Turns an event on or off at once, independent of exec.
fn switch(fd: &Descriptor, on: bool) -> io::Result<()> {
    let raw_fd = fd.as_raw_fd();
    // SAFETY: both requests take a plain integer and touch no memory of ours; the descriptor is a
    // live perf event.
    let done = unsafe {
        if on {
            raw::ioctls::ENABLE(raw_fd, 0)
        } else {
            raw::ioctls::DISABLE(raw_fd, 0)
        }
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// One event on every processor, each with its ring.
#[derive(Debug)]
pub struct Sampler {
    layout: SampleLayout,
    /// The event, for further threads.
    event: PerfEventAttributes,
    events: Vec<Opened>,
    /// The event was switched off and must not run again by itself.
    off: Cell<bool>,
    /// Index of the event's period: 0 for the first, 1 for the first further one, and so on.
    period: Cell<usize>,
}

/// An event on one processor. The fields drop in order: the mappings before the descriptors that they belong
/// to.
#[derive(Debug)]
struct Opened {
    aux: Option<AuxRing>,
    ring: Ring,
    event: Descriptor,
    leader: Option<Descriptor>,
    cpu: u32,
    /// Copies of the event with further periods, whose records go to `ring`, too.
    further: Vec<Descriptor>,
    /// Copies of the event for further threads, whose records go to `ring`, too.
    threads: Vec<ThreadEvent>,
}

/// An event of one thread on one processor.
#[derive(Debug)]
struct ThreadEvent {
    event: Descriptor,
    leader: Option<Descriptor>,
}

impl ThreadEvent {
    /// Opens the event, off, without a ring.
    fn open(event: &PerfEventAttributes, thread: u32, cpu: u32) -> io::Result<Self> {
        let (thread, cpu) = (thread as i32, cpu as i32);
        let leader = event.leader.map(|config| {
            let mut attr = counting((event.kind, config));
            open(&mut attr, thread, cpu, None)
        });
        let leader = leader.transpose()?;
        let event = open(&mut event.attributes(), thread, cpu, leader.as_ref())?;
        Ok(Self { event, leader })
    }

    fn switch(&self, on: bool) -> io::Result<()> {
        self.leader.iter().try_for_each(|fd| switch(fd, on))?;
        switch(&self.event, on)
    }
}

impl Opened {
    fn open(
        event: &PerfEventAttributes,
        pid: u32,
        cpu: u32,
        ring_bytes: usize,
    ) -> io::Result<Self> {
        let ThreadEvent { event: fd, leader } = ThreadEvent::open(event, pid, cpu)?;
        let ring = Ring::map(&fd, ring_bytes)?;
        let aux = (event.aux_bytes > 0).then(|| AuxRing::map(&fd, &ring, event.aux_bytes));
        Ok(Self {
            aux: aux.transpose()?,
            ring,
            event: fd,
            leader,
            cpu,
            further: Vec::new(),
            threads: Vec::new(),
        })
    }

    /// Opens the event of a further thread, off, with its records in this ring: the kernel allows that for events of one processor.
    fn open_thread(&self, event: &PerfEventAttributes, thread: u32) -> io::Result<ThreadEvent> {
        let opened = ThreadEvent::open(event, thread, self.cpu)?;
        self.share_ring(&opened.event)?;
        Ok(opened)
    }

    fn share_ring(&self, event: &Descriptor) -> io::Result<()> {
        // SAFETY: the request takes the number of a live perf event and touches no memory of ours.
        match unsafe { raw::ioctls::SET_OUTPUT(event.as_raw_fd(), self.event.as_raw_fd()) } {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Opens the event once more, off, with its records in this ring.
    fn open_further(&self, event: &PerfEventAttributes, pid: u32) -> io::Result<Descriptor> {
        let mut attr = event.attributes();
        attr.set_enable_on_exec(0);
        let fd = open(&mut attr, pid as i32, self.cpu as i32, None)?;
        self.share_ring(&fd)?;
        Ok(fd)
    }

    fn mapped_bytes(&self) -> usize {
        self.ring.mapped_bytes() + self.aux.as_ref().map_or(0, AuxRing::mapped_bytes)
    }

    /// Turns the event with one of its periods on or off.
    fn switch(&self, period: usize, on: bool) -> io::Result<()> {
        let threads = &mut self.threads.iter();
        threads.try_for_each(|thread| thread.switch(on))?;
        self.leader.iter().try_for_each(|fd| switch(fd, on))?;
        let further = period.checked_sub(1).and_then(|at| self.further.get(at));
        switch(further.unwrap_or(&self.event), on)
    }

    /// Appends the content of the rings to both lists; false where a ring is inconsistent. An event whose AUX
    /// ring was full continues if a period of it is `on`.
    fn read(
        &mut self,
        (layout, on): (SampleLayout, Option<usize>),
        bytes: &mut Vec<u8>,
        traces: &mut Vec<AuxTrace>,
    ) -> bool {
        let begin = bytes.len();
        let mut is_well = self.ring.read(bytes).is_ok();
        let Some(aux) = &mut self.aux else {
            return is_well;
        };
        let mut was_full = false;
        for record in Records::new(&bytes[begin..], layout) {
            let Record::Aux {
                offset,
                bytes: size,
                truncated,
                origin,
            } = record
            else {
                continue;
            };
            let taken = aux.take(&self.ring, offset, size);
            is_well &= taken.is_some();
            traces.push(AuxTrace {
                origin,
                truncated,
                bytes: taken.unwrap_or_default(),
            });
            was_full |= truncated;
        }
        if was_full && let Some(period) = on {
            // The kernel switched off the event because its ring was full.
            let _ = self.switch(period, true);
        }
        is_well
    }
}

impl Sampler {
    /// Selects every process on the processors, later ones included. Needs `CAP_PERFMON`, or
    /// `kernel.perf_event_paranoid` of 0 or less.
    pub const EVERY_PROCESS: u32 = u32::MAX;

    /// Opens the event for the thread `pid` (0: the calling one; a process id is that of its first thread) and
    /// all threads and processes that it starts from now on. Counting begins when it calls exec, or at
    /// [`Sampler::enable`].
    ///
    /// `ring_bytes` is rounded up to a power of two of pages; where the kernel refuses it for lack of lockable
    /// memory (`perf_event_mlock_kb`), smaller rings are tried.
    ///
    /// # Errors
    /// `EACCES`/`EPERM`: `perf_event_paranoid` forbids it; physical addresses need `CAP_PERFMON`, or
    /// 1 or less there. `EINVAL`: a kernel before 4.14, which has none. `ENOENT`, `EOPNOTSUPP`, `ENODEV`: the
    /// hardware has no such event. `ESRCH`: no such process. `EMFILE`: too many processors for the
    /// limit of open files.
    pub fn open(
        event: &PerfEventAttributes,
        pid: u32,
        cpus: &[u32],
        ring_bytes: usize,
    ) -> io::Result<Self> {
        let mut events = Vec::with_capacity(cpus.len());
        let mut skipped = libc::ENODEV;
        for &cpu in cpus {
            match Opened::open(event, pid, cpu, ring_bytes) {
                Ok(opened) => events.push(opened),
                // A processor that went offline since the list was read, or of a kind without such an event,
                // beside others that have it.
                Err(error) => match error.raw_os_error() {
                    Some(code @ (libc::ENODEV | libc::ENOENT)) if cpus.len() > 1 => skipped = code,
                    _ => return Err(error),
                },
            }
        }
        if events.is_empty() {
            return Err(io::Error::from_raw_os_error(skipped));
        }
        Ok(Self {
            layout: event.layout(),
            event: event.clone(),
            events,
            off: Cell::new(false),
            period: Cell::new(0),
        })
    }

    /// Opens the event for a further thread, with its first period, and for all threads and processes that this thread starts from now
    /// on. It counts at once. Its records go to the rings that are there.
    ///
    /// # Errors
    /// As [`Sampler::open`]: `ESRCH` where the thread has ended. The thread is not sampled then.
    pub fn add_thread(&mut self, thread: u32) -> io::Result<()> {
        let events = self.events.iter();
        let opened: io::Result<Vec<_>> = events
            .map(|opened| opened.open_thread(&self.event, thread))
            .collect();
        let opened = opened?;
        opened.iter().try_for_each(|event| event.switch(true))?;
        for (own, thread) in self.events.iter_mut().zip(opened) {
            own.threads.push(thread);
        }
        Ok(())
    }

    /// Opens the event once more with each of these periods, for [`Sampler::choose_period`]: the kernel changes the period of
    /// an event, but not that of the events that threads have inherited from it, while it turns these on and off with it. `pid` is
    /// that of [`Sampler::open`].
    ///
    /// # Errors
    /// As [`Sampler::open`]; the sampler has its first period only then.
    pub fn open_periods(
        &mut self,
        event: &PerfEventAttributes,
        pid: u32,
        periods: &[u64],
    ) -> io::Result<()> {
        let further = |opened: &Opened| -> io::Result<Vec<Descriptor>> {
            let of_period = |period: &u64| {
                let event = PerfEventAttributes {
                    period: *period,
                    ..event.clone()
                };
                opened.open_further(&event, pid)
            };
            periods.iter().map(of_period).collect()
        };
        let all: io::Result<Vec<_>> = self.events.iter().map(further).collect();
        for (opened, further) in self.events.iter_mut().zip(all?) {
            opened.further = further;
        }
        Ok(())
    }

    /// Samples from now on with the first period (0), or with one of [`Sampler::open_periods`] (1 for the first of them); others
    /// change nothing.
    ///
    /// # Errors
    /// As [`Sampler::enable`]; the event has its former period then.
    pub fn choose_period(&self, period: usize) -> io::Result<()> {
        let has_it = |opened: &Opened| period <= opened.further.len();
        let former = self.period.get();
        if !self.events.iter().all(has_it) || former == period {
            return Ok(());
        }
        let is_on = !self.off.get();
        let resume = || if is_on { self.enable() } else { Ok(()) };
        let stopped = self.disable();
        let changed = stopped.and_then(|()| {
            self.period.set(period);
            resume()
        });
        if changed.is_err() {
            // The first error is returned.
            let _ = self.disable();
            self.period.set(former);
            let _ = resume();
        }
        changed
    }

    /// The layout of the samples.
    #[must_use]
    pub const fn layout(&self) -> SampleLayout {
        self.layout
    }

    /// Bytes of each ring, as the kernel granted them.
    #[must_use]
    pub fn ring_bytes(&self) -> usize {
        self.events.first().map_or(0, |opened| opened.ring.bytes())
    }

    /// Number of rings, one per processor.
    #[must_use]
    pub const fn rings(&self) -> usize {
        self.events.len()
    }

    /// Bytes of all rings, including those that hardware writes. They are the kernel's memory; not every kernel
    /// counts them as resident in the process.
    #[must_use]
    pub fn mapped_bytes(&self) -> usize {
        self.events.iter().map(Opened::mapped_bytes).sum()
    }

    /// Starts counting now.
    ///
    /// # Errors
    /// The kernel refused; it does not for an event that could be opened.
    pub fn enable(&self) -> io::Result<()> {
        self.off.set(false);
        self.events
            .iter()
            .try_for_each(|opened| opened.switch(self.period.get(), true))
    }

    /// Stops counting.
    ///
    /// # Errors
    /// As [`Sampler::enable`].
    pub fn disable(&self) -> io::Result<()> {
        self.off.set(true);
        self.events
            .iter()
            .try_for_each(|opened| opened.switch(self.period.get(), false))
    }

    /// Appends the content of the rings to `bytes`, one ring after the other, each in the order of time, and
    /// the hardware's own records to `traces`. At most the size of all rings is added. Returns the number of
    /// inconsistent rings that were skipped.
    pub fn read(&mut self, bytes: &mut Vec<u8>, traces: &mut Vec<AuxTrace>) -> usize {
        let rings = 0..self.rings();
        let read = |number| self.read_ring(number, bytes, traces);
        rings.map(read).filter(|is_well| !is_well).count()
    }

    /// As [`Sampler::read`] of one ring, so that no more than its size is added. Returns false where it was
    /// inconsistent and skipped; a ring that does not exist is empty.
    pub fn read_ring(
        &mut self,
        number: usize,
        bytes: &mut Vec<u8>,
        traces: &mut Vec<AuxTrace>,
    ) -> bool {
        let how = (self.layout, (!self.off.get()).then(|| self.period.get()));
        let opened = self.events.get_mut(number);
        opened.is_none_or(|opened| opened.read(how, bytes, traces))
    }
}

#[cfg(test)]
mod tests;
