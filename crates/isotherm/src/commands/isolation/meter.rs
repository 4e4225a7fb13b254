//! `Bench` chooses the tiers for the runs of `isotherm record --isolate`; `Meter` counts the bytes of the tier in which a site is alone: by
//! the memory controllers where the machine's tiers hold the program and can be counted, else by an emulated machine without delays, which
//! estimates them from samples.

use std::path::Path;

use anyhow::{Context, Result, bail};
use isotherm_abi::session::SessionCounter;
use isotherm_console::Console;
use isotherm_model::emulation::{Emulation, Factor, TimeCosts};
use isotherm_model::footprint::Footprint;
use isotherm_model::isolation_runs::BandwidthCounter;
use isotherm_model::profile::Profile;
use isotherm_model::tier::{TierIndex, Tiers};
use isotherm_model::units::Bytes;
use isotherm_model::words::counted;
use isotherm_observe::counters::tier_traffic::open_for_tier;
use isotherm_observe::counters::{CounterEvent, Counting};
use isotherm_observe::probe::KernelProbe;
use isotherm_sys::perf::PerfCounter;

use crate::launch::EndedProgram;
use crate::tiers_choice;

const UNREADABLE: &str = "the memory controllers cannot be read; the same command goes on";

/// Where data is alone, and what counts its bytes.
pub(super) struct Bench {
    /// The two tiers.
    pub tiers: Tiers,
    /// The tier whose bytes are counted.
    pub counted: TierIndex,
    pub meter: Meter,
}

pub(super) enum Meter {
    /// The emulated machine's account.
    Account,
    /// The memory controllers, and their count before the run.
    Controllers(Counting<PerfCounter>, u64),
}

impl Bench {
    /// The bench of this machine: its own two tiers where their bytes can be counted, else the emulated pair.
    ///
    /// # Errors
    /// Nothing can be emulated here either.
    pub(super) fn of_machine(profile: &Profile, console: Console) -> Result<Self> {
        let root = Path::new("/");
        let tiers = isotherm_topology::detect(root)?;
        if tiers.all().len() > 1 {
            match Self::real(root, tiers, profile.footprint()) {
                Ok(bench) => return Ok(bench),
                Err(why) => console.warn(&format!(
                    "the bytes of this machine's tiers cannot be counted, so those of an emulated machine are: {why}"
                )),
            }
        }
        let tiers = Tiers::emulated(Bytes(u64::MAX), Bytes(u64::MAX), Self::counting_only());
        if let Some(why) = tiers_choice::problem(&tiers, &KernelProbe) {
            bail!("nothing counts the bytes of a tier here: {why}");
        }
        Ok(Self {
            counted: tiers.slowest(),
            tiers,
            meter: Meter::Account,
        })
    }

    /// The tiers of the machine.
    fn real(root: &Path, tiers: Tiers, footprint: Footprint) -> Result<Self, String> {
        let open = &|event: &CounterEvent| event.open();
        let (counted, mut counting) = open_for_tier(root, &tiers, open)?;
        let small = tiers.all().iter().find(|tier| tier.capacity < footprint.0);
        if let Some(tier) = small {
            return Err(format!(
                "the tier \"{}\" holds {}, and the program has {footprint}, so data would spill into the tier that is counted; run a smaller \
                 input",
                tier.name, tier.capacity
            ));
        }
        let value = counting.begin();
        let begun = value.map_err(|error| format!("the memory controllers: {error}"))?;
        Ok(Self {
            tiers,
            counted,
            meter: Meter::Controllers(counting, begun),
        })
    }

    /// An emulation whose slow memory is as fast as the other: it only keeps account.
    const fn counting_only() -> Emulation {
        Emulation::Time(TimeCosts {
            latency: Factor::ONE,
            bandwidth: Factor::ONE,
            ..TimeCosts::CXL
        })
    }
}

impl Meter {
    /// The kind of the counter, as profiles name it.
    pub(super) const fn counter(&self) -> BandwidthCounter {
        match self {
            Self::Account => BandwidthCounter::EmulatedAccount,
            Self::Controllers(..) => BandwidthCounter::Controllers,
        }
    }

    /// Reads the counter directly before a run.
    ///
    /// # Errors
    /// The counter can no longer be read.
    pub(super) fn begin(&mut self) -> Result<()> {
        if let Self::Controllers(counting, begun) = self {
            *begun = counting.begin().context(UNREADABLE)?;
        }
        Ok(())
    }

    /// The bytes of the tier in a run that has just ended.
    ///
    /// # Errors
    /// The counter can no longer be read, or other events have had it during the whole run.
    pub(super) fn bytes(&mut self, ended: &EndedProgram) -> Result<Bytes> {
        match self {
            Self::Account => Ok(Bytes(
                ended.summary.counter(SessionCounter::SlowTrafficBytes),
            )),
            Self::Controllers(counting, begun) => {
                let now = counting.value().context(UNREADABLE)?;
                Ok(Bytes(now.saturating_sub(*begun)))
            }
        }
    }

    /// Why the bytes of a run are a rough estimate, if they are.
    pub(super) fn doubt(&self, ended: &EndedProgram) -> Option<String> {
        match self {
            Self::Account => too_few(ended.summary.counter(SessionCounter::SlowAccesses)),
            Self::Controllers(..) => None,
        }
    }
}

/// Samples from which the bytes of an account are good to some 10 per cent.
const ENOUGH_SAMPLES: u64 = 100;

/// The warning for an account of this number of samples; `None` if they are enough.
fn too_few(samples: u64) -> Option<String> {
    let why = || {
        format!(
            "its bytes are an estimate from {}, and may be far off; a longer input gives more",
            counted(samples, "sample")
        )
    };
    (samples < ENOUGH_SAMPLES).then(why)
}

#[cfg(test)]
mod tests {
    use super::too_few;

    #[test]
    fn an_account_of_few_samples_is_in_doubt() {
        assert_eq!(too_few(100), None);
        let doubt = too_few(99).expect("a doubt");
        assert!(doubt.contains("from 99 samples"), "{doubt}");
    }
}
