//! [`Accesses`] reads the single accesses of a trace one at a time, from the `Reader` of any format that holds them (`perf script` and
//! `perf.data` share one), with times from the first access on; [`Tally`] counts the records that were read.

use isotherm_model::trace::Access;
use isotherm_model::units::Nanos;
use isotherm_model::words::counted;

use crate::error::{Error, Fault, Place};

/// The progress of a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Records that can be accesses: lines, samples.
    pub records: u64,
    /// Of these, samples without a data address.
    pub without_address: u64,
    /// Processes in the records; 0 if the format names none. With more than one, equal addresses of
    /// two processes cannot be distinguished.
    pub processes: usize,
    /// True if the records are samples: each represents an unknown number of accesses.
    pub sampled: bool,
}

/// A format that yields single accesses.
pub(crate) trait Reader {
    /// The next access; `None` after the last one. It is not called again after either `None` or an
    /// error.
    fn next_access(&mut self) -> Result<Option<Access>, Error>;

    fn tally(&self) -> Tally;

    /// The process of the last returned access; 0 if the format names none.
    fn process(&self) -> u32 {
        0
    }
}

/// The accesses of a trace in the order of time, which is counted from the first of them. It ends
/// after the first error; a trace without any access is an error.
pub struct Accesses {
    reader: Box<dyn Reader>,
    file: String,
    /// Time of the first access on the file's own clock.
    start: Option<Nanos>,
    ended: bool,
}

impl Accesses {
    pub(crate) fn new(reader: impl Reader + 'static, file: &str) -> Self {
        Self {
            reader: Box::new(reader),
            file: file.to_owned(),
            start: None,
            ended: false,
        }
    }

    /// The progress so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.reader.tally()
    }

    /// The process of the last returned access; 0 if the format names none.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.reader.process()
    }

    fn empty(&self) -> Error {
        let fault = match self.tally() {
            Tally { records: 0, .. } => {
                Fault::new("it holds no access", "at least one; is the file whole?")
            }
            Tally { records, .. } => Fault::new(
                format!("no data address in any of {}", counted(records, "sample")),
                "samples of memory accesses (`perf mem record`, or `perf record -d` with an event \
                 that knows addresses)",
            ),
        };
        fault.at(&self.file, Place::Whole)
    }
}

impl Iterator for Accesses {
    type Item = Result<Access, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = match self.reader.next_access() {
            Ok(Some(access)) => {
                let start = *self.start.get_or_insert(access.time);
                return Some(Ok(Access {
                    time: access.time.saturating_sub(start),
                    ..access
                }));
            }
            Ok(None) if self.start.is_none() => Some(Err(self.empty())),
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        };
        self.ended = true;
        next
    }
}

impl std::fmt::Debug for Accesses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Accesses")
            .field("file", &self.file)
            .field("tally", &self.tally())
            .finish_non_exhaustive()
    }
}
