//! [`MachineClock`] is the [`Clock`] of live runs and the daemon: the machine's time, the processor time of the calling thread, and sleep.

use isotherm_model::port::Clock;
use isotherm_model::units::Nanos;
use isotherm_sys::clock;

/// The machine's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct MachineClock;

impl Clock for MachineClock {
    fn now(&self) -> Nanos {
        Nanos(clock::now_ns())
    }

    fn busy(&self) -> Nanos {
        Nanos(clock::thread_ns())
    }

    fn sleep(&self, span: Nanos) {
        std::thread::sleep(std::time::Duration::from_nanos(span.0));
    }
}
