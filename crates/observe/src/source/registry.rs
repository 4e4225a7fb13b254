//! Maps each [`SourceKind`] to its implementation: [`open`] opens a source that scans, and `sampled_event` describes the perf event of a
//! source that samples; counts of Java virtual machines and imported profiles have neither. [`OF_PROGRAMS`] lists the sources of a live
//! run.

use std::path::Path;

use isotherm_model::source_kind::SourceKind;
use isotherm_model::units::Bytes;

use super::Source;
use super::damon::{Damon, PhysicalDamon};
use super::hint_faults::HintFaults;
use super::instrumented::Instrumented;
use super::mapping_bits::MappingBits;
use super::page_idle::PageIdle;
use super::pmu::Pmu;
use super::sampled_event::{EventSettings, SampledEvent};
use super::trapped_pages::TrappedPages;

/// The parameters of a source that scans.
#[derive(Clone, Copy, Debug)]
pub struct ScanSettings<'a> {
    /// Root of the file system that holds `proc` and `sys`.
    pub root: &'a Path,
    /// A directory that only we may write and that outlives us; None for no record.
    pub state: Option<&'a Path>,
    /// Its budget, in millionths of one processor's time.
    pub budget_ppm: u64,
    /// Size of the cache filter in the program, where it counts only misses.
    pub cache_filter: Option<Bytes>,
}

/// How a source is opened.
enum Opening {
    /// It scans: a source, or a message with the reason and the remedy.
    Scan(fn(&ScanSettings<'_>) -> Result<Box<dyn Source>, String>),
    /// It samples by a perf event, on the machine below this root.
    Perf(fn(&Path, EventSettings) -> SampledEvent),
}

/// How a source is opened; `None` for counts of the agent in a Java virtual machine, and for sources of imported profiles.
fn opening(source: SourceKind) -> Option<Opening> {
    use Opening::{Perf, Scan};
    Some(match source {
        SourceKind::Instrumented => Scan(|it| Ok(Box::new(Instrumented::new(it.cache_filter)))),
        SourceKind::Pebs => Perf(|root, it| SampledEvent::hardware(Pmu::Pebs, root, it)),
        SourceKind::Ibs => Perf(|root, it| SampledEvent::hardware(Pmu::Ibs, root, it)),
        SourceKind::Spe => Perf(|root, it| SampledEvent::hardware(Pmu::Spe, root, it)),
        SourceKind::Timer => Perf(|_, it| SampledEvent::timer(it.hz)),
        SourceKind::PageFaults => Perf(|_, _| SampledEvent::page_faults()),
        SourceKind::AccessedBits => Scan(|it| Ok(Box::new(MappingBits::new(it.budget_ppm)))),
        SourceKind::TrappedPages => Scan(|_| Ok(Box::new(TrappedPages::default()))),
        SourceKind::Damon => {
            Scan(|it| Ok(Box::new(Damon::open(it.root, it.state, it.budget_ppm)?)))
        }
        SourceKind::DamonPhysical => Scan(|it| {
            Ok(Box::new(PhysicalDamon::open(
                it.root,
                it.state,
                it.budget_ppm,
            )?))
        }),
        SourceKind::PageIdle => Scan(|it| Ok(Box::new(PageIdle::open(it.root, it.budget_ppm)?))),
        SourceKind::HintFaults => {
            Scan(|it| Ok(Box::new(HintFaults::open(it.root, it.budget_ppm)?)))
        }
        SourceKind::JavaCounts | SourceKind::MemProf | SourceKind::Trace => return None,
    })
}

/// The sources that a live run of a program can use.
pub const OF_PROGRAMS: [SourceKind; 9] = [
    SourceKind::Instrumented,
    SourceKind::Pebs,
    SourceKind::Ibs,
    SourceKind::Spe,
    SourceKind::Timer,
    SourceKind::AccessedBits,
    SourceKind::TrappedPages,
    SourceKind::PageFaults,
    SourceKind::JavaCounts,
];

/// Opens a source that scans; None for one that samples by a perf event, for counts of the agent in a Java virtual machine
/// ([`crate::java`]), and for sources of imported profiles.
///
/// # Errors
/// A message with the reason and the remedy.
pub fn open(
    source: SourceKind,
    settings: &ScanSettings<'_>,
) -> Option<Result<Box<dyn Source>, String>> {
    match opening(source)? {
        Opening::Scan(open) => Some(open(settings)),
        Opening::Perf(_) => None,
    }
}

/// The perf event behind a source below this root; None for sources that are not perf's.
pub(crate) fn sampled_event(
    source: SourceKind,
    root: &Path,
    settings: EventSettings,
) -> Option<SampledEvent> {
    match opening(source)? {
        Opening::Perf(event) => Some(event(root, settings)),
        Opening::Scan(_) => None,
    }
}
