//! The source `trapped-pages` reads the accesses that the runtime traps in a random choice of the touched pages of the emulated pair, of
//! both tiers, and writes into a ring of its session file.

use isotherm_model::batch::{ObservedAccess, SourceReport};
use isotherm_model::source_kind::SourceKind;

use super::{AccessList, ScanContext, Source};

const COST: &str = "3.2 us a trapped access by a signal handler, about 10 us by userfaultfd (2-core EPYC virtual \
                    machine, Linux 6.18)";

/// The trapped accesses of all process images of a run.
#[derive(Debug)]
pub(super) struct TrappedPages(SourceReport);

impl Default for TrappedPages {
    fn default() -> Self {
        Self(SourceReport::new(SourceKind::TrappedPages.word(), COST))
    }
}

impl Source for TrappedPages {
    fn report(&self) -> SourceReport {
        self.0.clone()
    }

    fn overflows(&self) -> bool {
        true
    }

    fn scan(&mut self, scan: &mut ScanContext<'_>, accesses: &mut AccessList) {
        let Some(sessions) = &mut scan.sessions else {
            return;
        };
        let begin = scan.clock.busy();
        let (report, source) = (&mut self.0, SourceKind::TrappedPages);
        let lost = sessions.read_touches(|process, address, _| {
            report.taken += 1;
            let access = ObservedAccess::at((process, address), source, (1, source.unit(false)));
            accesses.add(report, 1, access);
        });
        report.lost = report.lost.saturating_add(lost);
        report.cost += scan.clock.busy().saturating_sub(begin);
    }
}
