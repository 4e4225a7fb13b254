//! Tests of samples that the running kernel takes, in its own layout.

use super::record::{PerfSample, Record, Records};
use super::{PerfCounter, PerfEventAttributes, Sampler};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::time::{ClockId, clock_gettime};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

const PAGES: usize = 16;
const FRAME: u64 = (1 << 55) - 1;

/// Pages of a file that were read and not yet written: a write to one faults, and its place until then is
/// known.
struct ReadPages {
    base: *mut u8,
    page: usize,
}

impl ReadPages {
    fn new() -> Self {
        let page = rustix::param::page_size();
        let file = memfd_create("pages", MemfdFlags::CLOEXEC).expect("a file");
        ftruncate(&file, (PAGES * page) as u64).expect("grows");
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address of the kernel's choice disturbs no other memory.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                PAGES * page,
                protection,
                flags,
                &file,
                0,
            )
        };
        let pages = Self {
            base: base.expect("maps").cast(),
            page,
        };
        for number in 0..PAGES {
            // SAFETY: within the mapping, which lives as long as `pages`.
            let byte = unsafe { pages.base.add(number * page).read_volatile() };
            assert_eq!(byte, 0);
        }
        pages
    }

    fn address(&self, number: usize) -> u64 {
        self.base as u64 + (number * self.page) as u64
    }

    /// The address of each page; zeros where the kernel hides it.
    fn physical(&self) -> Vec<u64> {
        let pagemap = std::fs::File::open("/proc/self/pagemap").expect("a pagemap");
        let of = |number| {
            let mut entry = [0; 8];
            let at = self.address(number) / self.page as u64 * 8;
            pagemap.read_exact_at(&mut entry, at).expect("an entry");
            (u64::from_ne_bytes(entry) & FRAME) * self.page as u64
        };
        (0..PAGES).map(of).collect()
    }

    fn write(&self) {
        for number in 0..PAGES {
            // SAFETY: within the mapping, which may be written and lives as long as `self`.
            unsafe { self.base.add(number * self.page).write_volatile(1) };
        }
    }
}

impl Drop for ReadPages {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and nothing refers to it any more.
        let _ = unsafe { munmap(self.base.cast(), PAGES * self.page) };
    }
}

/// The processors that are online, and some that are not.
fn processors() -> Vec<u32> {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let last = online.trim().rsplit(['-', ',']).next().unwrap_or_default();
    (0..=last.parse().unwrap_or(0)).collect()
}

/// The kernel finds the physical address of a fault's page as it does that of a PMU's sample.
#[test]
fn physical_addresses_are_those_of_the_page_map() {
    let event = PerfEventAttributes {
        physical: Some(0),
        ..PerfEventAttributes::page_faults(1)
    };
    let mut sampler = match Sampler::open(&event, 0, &processors(), 1 << 16) {
        Ok(sampler) => sampler,
        Err(error) => return isotherm_skip::skip!("physical addresses are refused: {error}"),
    };
    let pages = ReadPages::new();
    let expected = pages.physical();
    sampler.enable().expect("enables");
    pages.write();
    sampler.disable().expect("disables");
    let (mut bytes, mut traces) = (Vec::new(), Vec::new());
    assert_eq!(sampler.read(&mut bytes, &mut traces), 0);
    let records = Records::new(&bytes, sampler.layout());
    let samples: Vec<PerfSample> = records
        .filter_map(|record| match record {
            Record::Sample(sample) => Some(sample),
            _ => None,
        })
        .collect();
    for (number, expected) in expected.into_iter().enumerate() {
        let address = pages.address(number);
        let sample = samples.iter().find(|sample| sample.address == address);
        let physical = sample.expect("every first write faults").physical;
        if expected == 0 {
            isotherm_skip::skip!(
                "the kernel hides frames, so that there is nothing to compare with"
            );
            assert!(physical.is_some());
        } else {
            assert_eq!(physical, Some(expected), "page {number}");
        }
    }
}

/// Milliseconds of processor time that a thread works for.
const WORK_MS: i64 = 200;

fn work() {
    let used = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec * 1_000 + time.tv_nsec / 1_000_000
    };
    let end = used() + WORK_MS;
    while used() < end {
        // Samples in the kernel are left out, and the clock is read there.
        std::hint::black_box(
            (0..100_000_u64).fold(0, |sum, number| sum ^ std::hint::black_box(number)),
        );
    }
}

/// Samples of a thread that were taken since the last call.
fn samples_of(sampler: &mut Sampler, thread: u32) -> usize {
    let (mut bytes, mut traces) = (Vec::new(), Vec::new());
    assert_eq!(sampler.read(&mut bytes, &mut traces), 0);
    let records = Records::new(&bytes, sampler.layout());
    let is_of =
        |record: &Record<'_>| matches!(record, Record::Sample(sample) if sample.tid == thread);
    records.filter(is_of).count()
}

/// Nanoseconds of processor time that the event of each of three periods has counted, in all threads.
fn counted_ns(sampler: &Sampler) -> [u64; 3] {
    let read = |fd: &super::Descriptor| {
        let mut count = [0; 8];
        let read = rustix::io::read(fd, &mut count[..]);
        assert_eq!(read, Ok(count.len()));
        u64::from_ne_bytes(count)
    };
    let of = |opened: &super::Opened| {
        [
            read(&opened.event),
            read(&opened.further[0]),
            read(&opened.further[1]),
        ]
    };
    let sum = |a: [u64; 3], b: [u64; 3]| std::array::from_fn(|period| a[period] + b[period]);
    sampler.events.iter().map(of).fold([0; 3], sum)
}

/// Checks which event runs, and not how many samples it delivers: a loaded machine delivers fewer. The thread was started before the
/// period is chosen, so its events are inherited ones.
#[test]
fn a_chosen_period_holds_for_threads_that_run_and_its_samples_are_in_the_same_rings() {
    let event = PerfEventAttributes {
        tasks: false,
        ..PerfEventAttributes::cpu_clock(20_000_000)
    };
    let mut sampler = match Sampler::open(&event, 0, &processors(), 1 << 18) {
        Ok(sampler) => sampler,
        Err(error) => return isotherm_skip::skip!("no timer: {error}"),
    };
    let opened = sampler.open_periods(&event, 0, &[1_000_000, 5_000_000]);
    opened.expect("the same event again");
    sampler.enable().expect("enables");
    let (start, starts) = std::sync::mpsc::channel::<()>();
    let (end, ends) = std::sync::mpsc::channel();
    let worker = std::thread::spawn(move || {
        end.send(rustix::thread::gettid()).expect("is received");
        while starts.recv().is_ok() {
            work();
            end.send(rustix::thread::gettid()).expect("is received");
        }
    });
    let thread = ends.recv().expect("starts").as_raw_nonzero().get() as u32;
    // A period that was not opened changes nothing.
    for (chosen, expected) in [(0, 0), (1, 1), (9, 1), (2, 2), (0, 0)] {
        sampler.choose_period(chosen).expect("is open");
        let before = counted_ns(&sampler);
        start.send(()).expect("runs");
        ends.recv().expect("works");
        let after = counted_ns(&sampler);
        for period in 0..3 {
            let counted = after[period] - before[period];
            match period == expected {
                true => assert!(counted > WORK_MS as u64 * 500_000, "{chosen}: {counted} ns"),
                false => assert_eq!(counted, 0, "{chosen}: period {period}"),
            }
        }
        assert!(samples_of(&mut sampler, thread) > 0, "{chosen}");
    }
    drop(start);
    worker.join().expect("ends");
}

#[test]
fn a_period_that_cannot_be_chosen_leaves_the_former_one() {
    let event = PerfEventAttributes::cpu_clock(1_000_000);
    let mut sampler = match Sampler::open(&event, 0, &processors(), 1 << 18) {
        Ok(sampler) => sampler,
        Err(error) => return isotherm_skip::skip!("no timer: {error}"),
    };
    let opened = sampler.open_periods(&event, 0, &[5_000_000]);
    opened.expect("the same event again");
    // A file that cannot be switched on.
    let file = std::fs::File::open("/dev/null").expect("opens");
    let last = sampler.events.last_mut().expect("a processor");
    last.further[0] = OwnedFd::from(file).into();
    let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    sampler.enable().expect("enables");
    sampler.choose_period(1).expect_err("is no event");
    assert_eq!((sampler.period.get(), sampler.off.get()), (0, false));
    work();
    let taken = samples_of(&mut sampler, thread) as u64;
    assert!(taken > 0, "the former period goes on");
}

/// The sampled threads among those that work: the one that an event is opened for, one that is added, and one that starts later.
#[test]
fn a_thread_that_is_added_is_sampled_with_those_that_it_starts() {
    let event = PerfEventAttributes::cpu_clock(1_000_000);
    let number = || rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let (told, threads) = std::sync::mpsc::channel();
    let (start, begins) = std::sync::mpsc::channel();
    let worker = std::thread::spawn(move || {
        told.send(number()).expect("waits");
        begins.recv().expect("begins");
        let later = std::thread::spawn(move || {
            work();
            number()
        });
        work();
        later.join().expect("ends")
    });
    let added = threads.recv().expect("runs");
    let mut sampler = match Sampler::open(&event, number(), &processors(), 1 << 18) {
        Ok(sampler) => sampler,
        Err(error) => return isotherm_skip::skip!("no timer: {error}"),
    };
    sampler.enable().expect("enables");
    sampler.add_thread(added).expect("is there");
    start.send(()).expect("waits");
    work();
    let later = worker.join().expect("ends");
    sampler.disable().expect("disables");
    let (mut bytes, mut traces) = (Vec::new(), Vec::new());
    assert_eq!(sampler.read(&mut bytes, &mut traces), 0);
    let sampled = |thread| {
        let samples = Records::new(&bytes, sampler.layout());
        samples
            .filter(|record| matches!(record, Record::Sample(sample) if sample.tid == thread))
            .count()
    };
    for thread in [number(), added, later] {
        assert!(
            sampled(thread) > 0,
            "thread {thread} of {added} and {later}"
        );
    }
    let ended = sampler.add_thread(later).expect_err("has ended");
    assert_eq!(ended.raw_os_error(), Some(libc::ESRCH));
}

#[test]
fn the_processor_time_of_a_thread_is_counted() {
    let mut clock = match PerfCounter::of_thread(PerfCounter::CPU_CLOCK) {
        Ok(clock) => clock,
        Err(error) => return isotherm_skip::skip!("a counter of a thread: {error}"),
    };
    let first = clock.value().expect("a count");
    let begun = clock_gettime(ClockId::ThreadCPUTime);
    let spun = |since: rustix::time::Timespec| {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        (now.tv_sec - since.tv_sec) * 1_000_000_000 + now.tv_nsec - since.tv_nsec
    };
    while spun(begun) < 20_000_000 {}
    assert!(clock.value().expect("a count") > first);
}

#[test]
fn the_processor_time_of_a_processor_is_counted() {
    let mut clock = match PerfCounter::of_processor(PerfCounter::CPU_CLOCK, 0) {
        Ok(clock) => clock,
        Err(error) => return isotherm_skip::skip!("a counter of a processor: {error}"),
    };
    let first = clock.value().expect("a count");
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert!(clock.value().expect("a count") > first);
}
