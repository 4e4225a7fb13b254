//! What counts the bytes of the tier in which a site is alone: the memory controllers of a machine with two kinds of memory, else the account
//! of an emulated machine that slows nothing.

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
use isotherm_observe::counters::tier_traffic::open_for_tier;
use isotherm_observe::counters::{CounterEvent, Counting};
use isotherm_observe::probe::KernelProbe;
use isotherm_sys::perf::PerfCounter;

use crate::launch::EndedProgram;
use crate::tiers_choice;

/// Where data is alone, and what counts its bytes.
pub(super) struct Bench {
    /// The two tiers.
    pub tiers: Tiers,
    /// The tier whose bytes are counted.
    pub counted: TierIndex,
    /// What counts them.
    pub meter: Meter,
}

/// What counts the bytes of a tier.
pub(super) enum Meter {
    /// The emulated machine's account.
    Account,
    /// The memory controllers, and their count at the end of the last run.
    Controllers(Counting<PerfCounter>, u64),
}

impl Bench {
    /// That of this machine: its own two tiers where their bytes can be counted, else the emulated pair.
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
        if let Some(why) = tiers_choice::trouble(&tiers, &KernelProbe) {
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
        let value = counting.value();
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
    /// What it is, as profiles name it.
    pub(super) const fn counter(&self) -> BandwidthCounter {
        match self {
            Self::Account => BandwidthCounter::EmulatedAccount,
            Self::Controllers(..) => BandwidthCounter::Controllers,
        }
    }

    /// The bytes of the tier in a run that has just ended.
    ///
    /// # Errors
    /// The counter can no longer be read, or has gone backwards.
    pub(super) fn bytes(&mut self, ended: &EndedProgram) -> Result<Bytes> {
        match self {
            Self::Account => Ok(Bytes(
                ended.summary.counter(SessionCounter::SlowTrafficBytes),
            )),
            Self::Controllers(counting, last) => {
                let now = counting.value();
                let now = now.context(
                    "the memory controllers can no longer be read; the same command goes on",
                )?;
                let bytes = since(*last, now)?;
                *last = now;
                Ok(bytes)
            }
        }
    }
}

/// What was counted from one reading to the next.
///
/// # Errors
/// The count fell: a counter wrapped, or was set by another program.
fn since(last: u64, now: u64) -> Result<Bytes> {
    match now.checked_sub(last) {
        Some(bytes) => Ok(Bytes(bytes)),
        None => bail!(
            "the count of the memory controllers fell from {last} to {now}: it wrapped, or another program set it; the same command goes on"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{Bytes, since};

    #[test]
    fn a_count_that_falls_is_an_error_and_no_zero() {
        assert_eq!(since(5, 9).ok(), Some(Bytes(4)));
        let fell = since(9, 5).unwrap_err().to_string();
        assert!(fell.contains("another program"), "{fell}");
    }
}
