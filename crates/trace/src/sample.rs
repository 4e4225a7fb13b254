//! [`Samples`] turns the samples of a `perf.data` file or of `perf script` into accesses: a [`Sample`] without a data address is only
//! counted, and one that comes late gets the time of the one before it.

use std::collections::BTreeSet;

use isotherm_model::trace::Access;
use isotherm_model::units::Nanos;

use crate::accesses::{Reader, Tally};
use crate::error::Error;

/// The used fields of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) pid: u32,
    /// Nanoseconds of the recorder's clock.
    pub(crate) time: u64,
    /// `None` if the hardware reported none.
    pub(crate) address: Option<u64>,
    pub(crate) write: bool,
}

/// The samples of a source that have an address, as accesses.
pub(crate) struct Samples<S> {
    source: S,
    /// Time of the latest sample. `perf` sorts by time within its buffer; a sample that comes late
    /// gets the time of the one before it.
    latest: u64,
    /// The process of the last sample that had an address.
    process: u32,
    processes: BTreeSet<u32>,
    tally: Tally,
}

impl<S> Samples<S> {
    pub(crate) fn new(source: S) -> Self {
        Self {
            source,
            latest: 0,
            process: 0,
            processes: BTreeSet::new(),
            tally: Tally::default(),
        }
    }
}

impl<S: Iterator<Item = Result<Sample, Error>>> Reader for Samples<S> {
    fn next_access(&mut self) -> Result<Option<Access>, Error> {
        while let Some(sample) = self.source.next().transpose()? {
            self.tally.records += 1;
            let Some(address) = sample.address else {
                self.tally.without_address += 1;
                continue;
            };
            self.processes.insert(sample.pid);
            self.process = sample.pid;
            self.latest = self.latest.max(sample.time);
            return Ok(Some(Access {
                time: Nanos(self.latest),
                address,
                write: sample.write,
            }));
        }
        Ok(None)
    }

    fn tally(&self) -> Tally {
        Tally {
            processes: self.processes.len(),
            sampled: true,
            ..self.tally
        }
    }

    fn process(&self) -> u32 {
        self.process
    }
}

#[cfg(test)]
mod tests {
    use super::{Sample, Samples};
    use crate::accesses::Reader;

    #[test]
    fn late_samples_keep_their_place_and_those_without_an_address_are_counted() {
        let sample = |pid, time, address| Sample {
            pid,
            time,
            address,
            write: false,
        };
        let given = vec![
            sample(1, 10, Some(64)),
            sample(3, 11, None),
            sample(2, 5, Some(128)),
        ];
        let mut samples = Samples::new(given.into_iter().map(Ok));
        let mut seen = Vec::new();
        while let Some(access) = samples.next_access().expect("the source knows no errors") {
            seen.push((access.time.0, access.address));
        }
        assert_eq!(seen, [(10, 64), (10, 128)]);
        let tally = samples.tally();
        assert_eq!(
            (tally.records, tally.without_address, tally.processes),
            (3, 1, 2)
        );
    }
}
