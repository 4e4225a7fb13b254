//! `SampledEvent` describes the perf event of a source (a PMU, the timer or page faults), by the rates, the period and the choice of stores
//! in [`EventSettings`]: its attributes, how a sample gives a data address, whether stores count, and its cost as text.

use std::path::Path;

use isotherm_sys::perf::PerfEventAttributes;

use super::pmu::Pmu;

/// The method that turns a sample into a data address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addressing {
    /// Decodes the instruction.
    Decoded,
    /// Reads it from the sample.
    #[default]
    Given,
}

/// The choices of a consumer of samples: rates, period, and whether stores count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSettings {
    /// Timer samples a second of processor time.
    pub hz: u32,
    /// Rates that the timer can change to while the program runs. Each opens one more event per thread and processor.
    pub other_hz: &'static [u32],
    /// Sample period of a PMU's event, in loads and in stores (PEBS) or operations (IBS, SPE); `None` for the default.
    pub period: Option<u64>,
    /// Whether a PMU's samples of stores count; PEBS needs a second event for them.
    pub stores: bool,
}

impl EventSettings {
    /// Timer samples at this rate; PMU samples at the default period, of loads only.
    #[must_use]
    pub const fn at(hz: u32) -> Self {
        Self {
            hz,
            other_hz: &[],
            period: None,
            stores: false,
        }
    }
}

/// The perf event behind a source.
#[derive(Clone, Debug)]
pub(crate) struct SampledEvent {
    /// The event; an error message where the machine has none.
    pub event: Result<PerfEventAttributes, String>,
    /// A second event of the source, for the accesses that `event` omits; `None` where it omits none.
    pub beside: Option<PerfEventAttributes>,
    /// The method that yields addresses.
    pub addressing: Addressing,
    /// Samples of stores count.
    pub stores: bool,
    /// Bits of `config` that add physical addresses; None where it has no such bits.
    pub physical: Option<u64>,
    /// The cost to the program, with the origin of the figure.
    pub cost_note: &'static str,
}

impl SampledEvent {
    /// An event of a performance monitoring unit.
    pub(crate) fn hardware(pmu: Pmu, root: &Path, settings: EventSettings) -> Self {
        let of_period = |event: PerfEventAttributes| PerfEventAttributes {
            period: settings
                .period
                .map_or(event.period, |period| pmu.nearest_period(root, period)),
            ..event
        };
        let beside = pmu.beside(root).filter(|_| settings.stores);
        Self {
            event: pmu.event(root).map(of_period),
            beside: beside.map(of_period),
            addressing: Addressing::Given,
            stores: settings.stores,
            physical: pmu.physical(root),
            cost_note: HARDWARE_COST,
        }
    }

    /// A timer of this many samples a second of processor time.
    pub(crate) fn timer(hz: u32) -> Self {
        let event = PerfEventAttributes::cpu_clock(timer_period(hz));
        Self::software(event, Addressing::Decoded, TIMER_COST)
    }

    /// Every page fault.
    pub(crate) fn page_faults() -> Self {
        let event = PerfEventAttributes::page_faults(1);
        Self::software(event, Addressing::Given, FAULT_COST)
    }

    const fn software(
        event: PerfEventAttributes,
        addressing: Addressing,
        cost_note: &'static str,
    ) -> Self {
        Self {
            event: Ok(event),
            beside: None,
            addressing,
            stores: true,
            physical: None,
            cost_note,
        }
    }
}

/// Nanoseconds of processor time between two timer samples.
pub(crate) fn timer_period(hz: u32) -> u64 {
    1_000_000_000 / u64::from(hz.max(1))
}

const TIMER_COST: &str = "at 1 kHz 1.00 to 1.03 times the run time, at 4 kHz 1.08 to 1.13, at 10 kHz \
                          1.4 (2-core EPYC virtual machine, Linux 6.18, 1 GiB, Zipf 0.99)";
const HARDWARE_COST: &str = "1.22 to 1.32 times the run time for PEBS with allocation sites \
                             (MemBrain, Olson et al. 2018); not measured here";
const FAULT_COST: &str = "one record for each page fault; not measured";

#[cfg(test)]
mod tests {
    use super::{EventSettings, SampledEvent};
    use crate::source::pmu::Pmu;

    #[test]
    fn stores_are_sampled_by_choice_and_both_events_have_the_period() {
        let root = tempfile::tempdir().expect("a directory");
        for (name, text) in [
            ("type", "4"),
            ("events/mem-loads", "event=0xcd"),
            ("events/mem-stores", "event=0xd0"),
            ("format/event", "config:0-7"),
            ("format/ldlat", "config1:0-15"),
        ] {
            let path = root
                .path()
                .join("sys/bus/event_source/devices/cpu")
                .join(name);
            std::fs::create_dir_all(path.parent().expect("has one")).expect("makes");
            std::fs::write(path, text).expect("writes");
        }
        let of = |settings| SampledEvent::hardware(Pmu::Pebs, root.path(), settings);
        let loads = of(EventSettings::at(1000));
        assert!(loads.beside.is_none() && !loads.stores);
        assert_eq!(loads.event.expect("an event").period, 10_007);
        let both = of(EventSettings {
            period: Some(128),
            stores: true,
            ..EventSettings::at(1000)
        });
        assert!(both.stores);
        assert_eq!(both.event.expect("an event").period, 128);
        assert_eq!(both.beside.expect("an event").period, 128);
    }
}
