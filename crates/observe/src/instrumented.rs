//! The source `instrumented` of a live run: accesses that the program counts itself, because
//! `isotherm-cc --profile` compiled it ([`isotherm_abi::accesses`]).

use isotherm_model::batch::{Sample, SourceReport};
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::words::counted;

use crate::perf_source::empty_report;
use crate::sessions::Sessions;
use crate::source::SampleSource;
use isotherm_model::port::Clock;

/// The cost to the program.
const COST: &str = "at one access in 1,024 about 1.1 times the run time, with every access counted 8 to 20 times \
                    (stencil and random updates, 2-core EPYC virtual machine, Linux 6.18)";

/// The cost to the program with a cache filter.
const FILTERED_COST: &str = "whatever the period about 1.9 to 2.5 times the run time (stencil and random updates, \
                             2-core EPYC virtual machine, Linux 6.18)";

/// The counts of all process images of a run.
#[derive(Debug)]
pub(crate) struct Instrumented {
    report: SourceReport,
    /// Samples that were counted but did not fit in a batch.
    dropped: u64,
}

impl Instrumented {
    /// A source without any counts yet; with a filter of this size, the program counts only its
    /// misses.
    pub(crate) fn new(filter: Option<Bytes>) -> Self {
        let cost = filter.map_or(COST.to_owned(), |size| {
            format!("{FILTERED_COST}; only accesses that miss a cache filter of {size} in each thread are counted")
        });
        Self {
            report: empty_report(SampleSource::Instrumented.name(), cost),
            dropped: 0,
        }
    }

    /// Adds the accesses counted since the last call, one sample for each page, while there are
    /// fewer than `most`.
    pub(crate) fn read(
        &mut self,
        clock: &dyn Clock,
        sessions: &mut Sessions,
        samples: &mut Vec<Sample>,
        most: usize,
    ) {
        let begin = clock.busy();
        sessions.read_accesses(|process, address, counted| {
            self.report.taken = self.report.taken.saturating_add(counted.samples);
            if samples.len() >= most {
                self.dropped = self.dropped.saturating_add(counted.samples);
                return;
            }
            samples.push(Sample {
                process,
                address,
                weight: counted.accesses,
            });
        });
        self.report.usable = self.report.taken.saturating_sub(self.dropped);
        self.report.lost = sessions.accesses_lost().saturating_add(self.dropped);
        self.report.cost += clock.busy().saturating_sub(begin);
    }

    /// The report on the samples so far, given the processor time that the program used.
    pub(crate) fn report(&self, cpu: Nanos, a_while: Nanos) -> SourceReport {
        let mut report = self.report.clone();
        if report.taken == 0 && cpu > a_while {
            report.warning = format!(
                "it delivered nothing although the program used {cpu} of processor time; was the \
                 program compiled with isotherm-cc --profile, and of this version?"
            );
        } else if report.lost > 0 {
            let samples = counted(report.lost, "sample");
            report.warning = format!("dropped for lack of room: {samples}");
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::Instrumented;
    use isotherm_model::units::Nanos;

    #[test]
    fn silence_of_a_busy_program_is_named() {
        let source = Instrumented::new(None);
        let quiet = source.report(Nanos(5), Nanos(10));
        assert_eq!((quiet.warning.as_str(), quiet.taken), ("", 0));
        let trouble = source.report(Nanos(20), Nanos(10)).warning;
        assert!(trouble.contains("isotherm-cc --profile"), "{trouble}");
    }
}
