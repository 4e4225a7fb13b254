//! The sources of samples by name, the perf events behind them, and their measured costs, for live
//! runs and `doctor`.

use std::path::Path;

use isotherm_sys::perf::PerfEventAttributes;

use crate::perf_source::Addressing;
use crate::pmu::Pmu;

/// A source of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SampleSource {
    /// Accesses that the program counts itself, because `isotherm-cc --profile` compiled it.
    Instrumented,
    /// Intel's precise load samples.
    Pebs,
    /// AMD's instruction-based sampling.
    Ibs,
    /// Arm's statistical profiling extension.
    Spe,
    /// A timer; the interrupted instruction is decoded.
    Timer,
    /// Accessed bits of the page tables.
    AccessedBits,
    /// Pages that the runtime traps.
    TrappedPages,
    /// Page faults: first touches only. Works on every machine; for tests of the sample path.
    PageFaults,
}

impl SampleSource {
    /// All of them, best first where they are available.
    pub const ALL: [Self; 8] = [
        Self::Instrumented,
        Self::Pebs,
        Self::Ibs,
        Self::Spe,
        Self::Timer,
        Self::AccessedBits,
        Self::TrappedPages,
        Self::PageFaults,
    ];

    /// Its name in reports and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Instrumented => "instrumented",
            Self::Pebs => "pebs",
            Self::Ibs => "ibs",
            Self::Spe => "spe",
            Self::Timer => "timer",
            Self::AccessedBits => "accessed-bits",
            Self::TrappedPages => "trapped-pages",
            Self::PageFaults => "page-faults",
        }
    }

    /// The source with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

impl SampleSource {
    /// The perf event of a source, the method that yields addresses, and the cost; None for sources
    /// that are not perf's. The event is an error message where the machine has none.
    pub(crate) fn event(
        self,
        root: &Path,
        hz: u32,
    ) -> Option<(
        Result<PerfEventAttributes, String>,
        Addressing,
        &'static str,
    )> {
        let hardware = |pmu: Pmu| (pmu.event(root), Addressing::Given, HARDWARE_COST);
        Some(match self {
            Self::Timer => {
                let event = PerfEventAttributes::cpu_clock(1_000_000_000 / u64::from(hz));
                (Ok(event), Addressing::Decoded, TIMER_COST)
            }
            Self::Pebs => hardware(Pmu::Pebs),
            Self::Ibs => hardware(Pmu::Ibs),
            Self::Spe => hardware(Pmu::Spe),
            Self::PageFaults => (
                Ok(PerfEventAttributes::page_faults(1)),
                Addressing::Given,
                FAULT_COST,
            ),
            Self::Instrumented | Self::AccessedBits | Self::TrappedPages => return None,
        })
    }

    /// As [`Pmu::physical`]; None for sources without a PMU.
    pub(crate) fn physical(self, root: &Path) -> Option<u64> {
        match self {
            Self::Pebs => Pmu::Pebs.physical(root),
            Self::Ibs => Pmu::Ibs.physical(root),
            Self::Spe => Pmu::Spe.physical(root),
            Self::Timer
            | Self::PageFaults
            | Self::Instrumented
            | Self::AccessedBits
            | Self::TrappedPages => None,
        }
    }

    /// The event to open beside the source's own, where there is one.
    pub(crate) fn beside(self, root: &Path) -> Option<PerfEventAttributes> {
        (self == Self::Pebs).then(|| Pmu::Pebs.beside(root))?
    }
}

const TIMER_COST: &str = "at 1 kHz 1.00 to 1.03 times the run time, at 4 kHz 1.08 to 1.13, at 10 kHz \
                          1.4 (2-core EPYC virtual machine, Linux 6.18, 1 GiB, Zipf 0.99)";
const HARDWARE_COST: &str = "1.22 to 1.32 times the run time for PEBS with allocation sites \
                             (MemBrain, Olson et al. 2018); not measured here";
const FAULT_COST: &str = "one record for each page fault; not measured";
