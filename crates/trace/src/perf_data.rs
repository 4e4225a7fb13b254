//! [`PerfData`] yields the samples of a `perf.data` file in the order of time: once [`layout`] has checked all sizes, the library
//! `linux-perf-data` finds the events and sorts the records, and `sample` parses them. A file is refused if none of its events has data
//! addresses.
//!
//! The samples are parsed as
//! those of live rings are (`isotherm_sys::perf::record`), because the library skips the word that
//! distinguishes reads from writes. The library trusts the sizes in a file and would allocate that
//! much memory. So [`layout`] checks them all first, and passes on a header without the unneeded
//! parts.

mod layout;
mod sample;

use std::io::{BufRead, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};

use linux_perf_data::linux_perf_event_reader::RecordType;
use linux_perf_data::{PerfFile, PerfFileReader, PerfFileRecord, PerfRecordIter};

use crate::error::{Error, Fault, Place};
use crate::sample::Sample;
use layout::{Event, HEADER_BYTES, Stop};

/// The first bytes of every accepted file.
pub(crate) use layout::MAGIC;

/// Samples of a `perf.data` file.
pub(crate) struct PerfData<R: BufRead + Seek> {
    file: String,
    perf_file: PerfFile,
    records: PerfRecordIter<Patched<R>>,
    events: Vec<Event>,
    /// Number of samples that were read.
    samples: u64,
}

impl<R: BufRead + Seek> PerfData<R> {
    /// Checks every record of the file once, and opens it.
    ///
    /// # Errors
    /// It cannot be read, is not a `perf.data` file, is cut off, or holds no data addresses.
    pub(crate) fn open(mut source: R, file: &str) -> Result<Self, Error> {
        let layout = layout::check(&mut source).map_err(|stop| match stop {
            Stop::Read(source) => Error::read(file, source),
            Stop::Fault(fault, offset) => fault.at(file, Place::Offset(offset)),
        })?;
        let whole = |fault: Fault| fault.at(file, Place::Whole);
        sample::has_addresses(&layout.events).map_err(whole)?;
        let patched = Patched::new(source, layout.header).map_err(|e| Error::read(file, e))?;
        let opened = guarded(|| PerfFileReader::parse_file(patched).map_err(library_fault));
        let PerfFileReader {
            perf_file,
            record_iter,
        } = opened.map_err(whole)?;
        Ok(Self {
            file: file.to_owned(),
            perf_file,
            records: record_iter,
            events: layout.events,
            samples: 0,
        })
    }

    /// The next sample, in the order of time.
    fn next_record(&mut self) -> Result<Option<Sample>, Fault> {
        while let Some(record) = self
            .records
            .next_record(&mut self.perf_file)
            .map_err(library_fault)?
        {
            let PerfFileRecord::EventRecord { attr_index, record } = record else {
                continue;
            };
            if record.record_type != RecordType::SAMPLE {
                continue;
            }
            let Some(event) = self.events.get(attr_index) else {
                continue;
            };
            self.samples += 1;
            let number = self.samples;
            return match sample::parse(&record.data.as_slice(), event) {
                Some(sample) => Ok(Some(sample)),
                None => Err(Fault::new(
                    format!("sample {number} (in the order of time) is too short for its fields"),
                    "the fields that its event names",
                )),
            };
        }
        Ok(None)
    }
}

impl<R: BufRead + Seek> Iterator for PerfData<R> {
    type Item = Result<Sample, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = guarded(|| self.next_record()).transpose()?;
        Some(next.map_err(|fault| fault.at(&self.file, Place::Whole)))
    }
}

fn library_fault(error: linux_perf_data::Error) -> Fault {
    Fault::new(
        format!("its events or records contradict each other ({error})"),
        "a file as `perf record` leaves it (`perf script -i FILE` may read more)",
    )
}

/// Turns a panic into a fault: the library has assertions that a malicious file can violate.
fn guarded<T>(step: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(step)).unwrap_or_else(|_| {
        Err(Fault::new(
            "its events or records contradict each other",
            "a file as `perf record` leaves it",
        ))
    })
}

/// A file whose header is replaced by another.
struct Patched<R> {
    inner: R,
    header: [u8; HEADER_BYTES],
    position: u64,
}

impl<R: Seek> Patched<R> {
    fn new(mut inner: R, header: [u8; HEADER_BYTES]) -> std::io::Result<Self> {
        inner.seek(SeekFrom::Start(0))?;
        Ok(Self {
            inner,
            header,
            position: 0,
        })
    }
}

impl<R: Read + Seek> Read for Patched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let from = usize::try_from(self.position).unwrap_or(usize::MAX);
        let rest = self.header.get(from..).unwrap_or(&[]);
        if rest.is_empty() {
            let read = self.inner.read(buffer)?;
            self.position += read as u64;
            return Ok(read);
        }
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        self.position += read as u64;
        self.inner.seek(SeekFrom::Start(self.position))?;
        Ok(read)
    }
}

impl<R: Seek> Seek for Patched<R> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.position = self.inner.seek(to)?;
        Ok(self.position)
    }
}
