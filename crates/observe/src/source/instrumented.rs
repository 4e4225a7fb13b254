//! `Instrumented`, the source `instrumented`, reads from session files the accesses by page that a program counts itself, because
//! `isotherm-cc --profile` compiled it ([`isotherm_abi::accesses`]): one access in a period, which stands for all of the period. With a
//! cache filter, a small model of a cache in each thread, only accesses that miss it are counted.

use isotherm_model::batch::{ObservedAccess, SourceReport};
use isotherm_model::source_kind::SourceKind;
use isotherm_model::units::Bytes;
use isotherm_model::words::counted;

use super::{AccessList, ScanContext, Source};

/// The cost to the program.
const COST: &str = "at one access in 1,024 about 1.1 times the run time, with every access counted 8 to 20 times \
                    (stencil and random updates, 2-core EPYC virtual machine, Linux 6.18)";

/// The cost to the program with a cache filter.
const FILTERED_COST: &str = "whatever the period about 1.9 to 2.5 times the run time (stencil and random updates, \
                             2-core EPYC virtual machine, Linux 6.18)";

/// The counts of all process images of a run.
#[derive(Debug)]
pub(super) struct Instrumented {
    report: SourceReport,
    /// The program counts only cache misses.
    filtered: bool,
    /// Samples for which a count had no room in a session file, at the last scan.
    uncounted: u64,
}

impl Instrumented {
    /// A source without any counts yet; with a filter of this size, the program counts only its
    /// misses.
    pub(super) fn new(filter: Option<Bytes>) -> Self {
        let cost = filter.map_or(COST.to_owned(), |size| {
            format!("{FILTERED_COST}; only accesses that miss a cache filter of {size} in each thread are counted")
        });
        Self {
            report: SourceReport::new(SourceKind::Instrumented.word(), &cost),
            filtered: filter.is_some(),
            uncounted: 0,
        }
    }
}

impl Source for Instrumented {
    fn report(&self) -> SourceReport {
        let mut report = self.report.clone();
        if report.lost > 0 {
            let samples = counted(report.lost, "sample");
            report.warning = format!("dropped for lack of room: {samples}");
        }
        report
    }

    fn advice(&self) -> &'static str {
        "was the program compiled with isotherm-cc --profile, and of this version?"
    }

    /// Adds the accesses counted since the last call, one access for each page.
    fn scan(&mut self, scan: &mut ScanContext<'_>, accesses: &mut AccessList) {
        let Some(sessions) = &mut scan.sessions else {
            return;
        };
        let begin = scan.clock.busy();
        let (source, report) = (SourceKind::Instrumented, &mut self.report);
        let unit = source.unit(self.filtered);
        sessions.read_accesses(|process, address, counted| {
            report.taken = report.taken.saturating_add(counted.samples);
            let access = ObservedAccess::at((process, address), source, (counted.accesses, unit));
            accesses.add(report, counted.samples, access);
        });
        let uncounted = sessions.accesses_lost();
        let before = std::mem::replace(&mut self.uncounted, uncounted);
        report.lost = report.lost.saturating_add(uncounted.saturating_sub(before));
        report.cost += scan.clock.busy().saturating_sub(begin);
    }
}
