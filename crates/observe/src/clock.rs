//! [`MachineClock`] is the [`Clock`] of live runs and the daemon: the machine's time, the processor time of the calling thread, and sleep.

use isotherm_model::port::Clock;
use isotherm_model::units::Nanos;

/// The machine's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct MachineClock;

impl Clock for MachineClock {
    fn now(&self) -> Nanos {
        read(rustix::time::ClockId::Monotonic)
    }

    fn busy(&self) -> Nanos {
        read(rustix::time::ClockId::ThreadCPUTime)
    }

    fn sleep(&self, span: Nanos) {
        std::thread::sleep(std::time::Duration::from_nanos(span.0));
    }
}

fn read(id: rustix::time::ClockId) -> Nanos {
    let time = rustix::time::clock_gettime(id);
    let nanos = time.tv_sec.saturating_mul(1_000_000_000) + time.tv_nsec;
    Nanos(u64::try_from(nanos).unwrap_or(0))
}
