//! Checks every size in a `perf.data` file before other code relies on it, and returns the file's events with the layouts of their samples,
//! and a header for the library that reads the records.
//!
//! ```text
//!   0  magic "PERFILE2"     8  bytes of the header    16  bytes of one event (attr and ids)
//!  24  events: offset, size                           40  records: offset, size
//!  56  event types: offset, size (no longer used)     72  features: 256 bits
//! 104  end of the header
//! ```
//!
//! An event is a `perf_event_attr`, followed by offset and size of the list of its ids. A record is
//! type (32 bits), flags (16), size with these 8 bytes (16), and its body.

use std::io::{self, BufRead, Read, Seek, SeekFrom};

use isotherm_sys::perf::record::{SampleLayout, field};

use crate::error::Fault;

/// The first bytes of a file from a little-endian machine.
pub(crate) const MAGIC: &[u8; 8] = b"PERFILE2";
const BIG_ENDIAN_MAGIC: &[u8; 8] = b"2ELIFREP";
/// Bytes of the header.
pub(super) const HEADER_BYTES: usize = 104;
/// Bytes of the header of a file that was written to a pipe.
const PIPE_HEADER: u64 = 16;
/// Bytes of a section's offset and size.
const SECTION_BYTES: u64 = 16;
/// Smallest and largest `perf_event_attr`: the first version's, and far beyond today's 136.
const ATTR_BYTES: std::ops::RangeInclusive<u64> = 64..=4096;
/// Most events, and most ids of one event: one for each processor of a large machine.
const EVENTS: u64 = 1 << 12;
const IDS: u64 = 1 << 20;
/// Records are sorted by holding two rounds of the recorder in memory: most bytes and records of
/// these. A round is the content of the buffers of all processors.
const HELD_BYTES: u64 = 1 << 30;
const HELD_RECORDS: u64 = 1 << 24;
/// Most bytes of one block of processor trace; it is held in memory and skipped.
const TRACE_BYTES: u64 = 1 << 28;

const RECORD_HEADER: u64 = 8;
const FINISHED_ROUND: u32 = 68;
const AUXTRACE: u32 = 71;
const COMPRESSED: [u32; 2] = [81, 83];

/// The type of an event, and the layout of its samples up to their last needed field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) kind: u32,
    pub(super) sample: SampleLayout,
}

/// The fields of a sample up to the last needed one: the data source, or the address if there is none.
pub(super) const fn needed(sample_type: u64) -> u64 {
    match sample_type & field::DATA_SOURCE {
        0 => sample_type & field::UP_TO_ADDRESS,
        _ => sample_type & field::UP_TO_DATA_SOURCE,
    }
}

/// A file whose sizes are consistent.
#[derive(Debug)]
pub(super) struct Layout {
    /// The header for the library.
    pub(super) header: [u8; HEADER_BYTES],
    pub(super) events: Vec<Event>,
}

/// Why the check ended early.
#[derive(Debug)]
pub(super) enum Stop {
    /// The fault, and its byte offset.
    Fault(Fault, u64),
    Read(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

/// A section of the file: its offset and size in bytes.
#[derive(Clone, Copy, Debug)]
struct Section {
    offset: u64,
    size: u64,
}

impl Section {
    /// The first offset after it, if it is within the file.
    fn end(self, length: u64) -> Option<u64> {
        self.offset
            .checked_add(self.size)
            .filter(|end| *end <= length)
    }
}

fn stop<T>(found: impl Into<String>, expected: &str, offset: u64) -> Result<T, Stop> {
    Err(Stop::Fault(Fault::new(found, expected), offset))
}

/// Checks every size in the file.
pub(super) fn check<R: BufRead + Seek>(source: &mut R) -> Result<Layout, Stop> {
    let length = source.seek(SeekFrom::End(0))?;
    source.seek(SeekFrom::Start(0))?;
    let mut begin = Vec::new();
    Read::take(&mut *source, HEADER_BYTES as u64).read_to_end(&mut begin)?;
    check_kind(&begin)?;
    let mut header = [0; HEADER_BYTES];
    header.copy_from_slice(&begin);
    let number = |at: usize| u64_at(&header, at);
    let attr_bytes = match number(16).checked_sub(SECTION_BYTES) {
        Some(bytes) if ATTR_BYTES.contains(&bytes) => bytes,
        _ => {
            let found = format!("an event has {} bytes", number(16));
            return stop(found, "80 to 4112", 16);
        }
    };
    let section = |at: usize| Section {
        offset: number(at),
        size: number(at + 8),
    };
    let (attrs, data) = (section(24), section(40));
    for (part, name, at) in [(attrs, "events", 24), (data, "records", 40)] {
        if part.end(length).is_none() {
            let found = format!(
                "the {name} ({} bytes from byte {}) reach beyond the end of the file",
                part.size, part.offset
            );
            let expected = "a file of that size; was it cut off while copied?";
            return stop(found, expected, at);
        }
    }
    let events = events(source, attrs, attr_bytes, length)?;
    follow_records(source, data)?;
    Ok(Layout {
        header: patched(&header, attr_bytes),
        events,
    })
}

/// The header for the library: no features, and the events where the library expects events with
/// their ids, which older files had under "event types".
fn patched(header: &[u8; HEADER_BYTES], attr_bytes: u64) -> [u8; HEADER_BYTES] {
    let mut patched = *header;
    patched[8..16].copy_from_slice(&(HEADER_BYTES as u64).to_le_bytes());
    patched[16..24].copy_from_slice(&attr_bytes.to_le_bytes());
    patched[56..72].copy_from_slice(&header[24..40]);
    patched[72..].fill(0);
    patched
}

fn check_kind(header: &[u8]) -> Result<(), Stop> {
    const EXPECTED: &str = "a file that `perf record` wrote";
    if header.starts_with(BIG_ENDIAN_MAGIC) {
        let expected = "one of a little-endian machine (`perf script` can print this one)";
        return stop("a big-endian machine wrote it", expected, 0);
    }
    if !header.starts_with(MAGIC) {
        return stop("it does not begin with PERFILE2", EXPECTED, 0);
    }
    if header.len() >= 16 && u64_at(header, 8) == PIPE_HEADER {
        let expected = "one written to a file (`perf script -i FILE` can print this one)";
        return stop("it was written to a pipe", expected, 8);
    }
    if header.len() < HEADER_BYTES {
        let found = format!("it ends after {} bytes", header.len());
        return stop(found, "a header of 104 bytes", header.len() as u64);
    }
    if u64_at(header, 8) < HEADER_BYTES as u64 {
        let found = format!("the header has {} bytes", u64_at(header, 8));
        return stop(found, "104 at least", 8);
    }
    Ok(())
}

fn events<R: BufRead + Seek>(
    source: &mut R,
    attrs: Section,
    attr_bytes: u64,
    length: u64,
) -> Result<Vec<Event>, Stop> {
    let entry = attr_bytes + SECTION_BYTES;
    let count = attrs.size / entry;
    if count == 0 || count > EVENTS || !attrs.size.is_multiple_of(entry) {
        let found = format!("the events take {} bytes, {entry} each", attrs.size);
        return stop(found, "1 to 4096 whole events", 24);
    }
    source.seek(SeekFrom::Start(attrs.offset))?;
    let mut events = Vec::new();
    let mut bytes = vec![0; entry as usize];
    for index in 0..count {
        source.read_exact(&mut bytes)?;
        let at = attr_bytes as usize;
        let ids = Section {
            offset: u64_at(&bytes, at),
            size: u64_at(&bytes, at + 8),
        };
        if ids.end(length).is_none() || ids.size / 8 > IDS {
            let found = format!("the ids of event {index} take {} bytes", ids.size);
            let place = attrs.offset + index * entry + attr_bytes;
            return stop(found, "at most 8 MiB within the file", place);
        }
        // An older event ends before the branches and registers, which are then 0.
        let attr = &bytes[..at];
        events.push(Event {
            kind: u64_at(attr, 0) as u32,
            sample: SampleLayout {
                fields: needed(u64_at(attr, 24)),
                registers: u64_at(attr, 80),
                counters: u64_at(attr, 32),
                branches: u64_at(attr, 72),
            },
        });
    }
    Ok(events)
}

fn follow_records<R: BufRead + Seek>(source: &mut R, data: Section) -> Result<(), Stop> {
    if data.size == 0 {
        let expected =
            "records; the recorder writes their size when it ends, so it did not end well";
        return stop("there are no records", expected, 40);
    }
    source.seek(SeekFrom::Start(data.offset))?;
    // The caller checked that this does not overflow.
    let end = data.offset + data.size;
    let mut position = data.offset;
    let mut rounds = Rounds::default();
    while position < end {
        let left = end - position;
        let mut head = [0; RECORD_HEADER as usize];
        if left < RECORD_HEADER {
            let found = format!("{left} bytes are left after the last record");
            return stop(found, "whole records", position);
        }
        source.read_exact(&mut head)?;
        let kind = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let size = u64::from(u16::from_le_bytes([head[6], head[7]]));
        if size < RECORD_HEADER || size > left {
            let found = format!("the record has {size} bytes, and {left} are left");
            let expected = "a record of 8 bytes or more that ends there";
            return stop(found, expected, position);
        }
        if COMPRESSED.contains(&kind) {
            let expected = "plain records (record without -z; `perf script` can print these)";
            return stop("the records are compressed", expected, position);
        }
        let mut body = size - RECORD_HEADER;
        position += size;
        if kind == AUXTRACE {
            let bytes = trace_bytes(source, body, left - size, position)?;
            // The first word of the body, the number of bytes after it, is already read.
            body = body - 8 + bytes;
            position += bytes;
        }
        // At most 2^28 + 2^16.
        source.seek_relative(body as i64)?;
        rounds.add(kind, size, position)?;
    }
    Ok(())
}

/// Bytes that follow a record of processor trace and are not in its size. The first word of the
/// record's body, which is read here, holds their number.
fn trace_bytes<R: BufRead>(
    source: &mut R,
    body: u64,
    left: u64,
    position: u64,
) -> Result<u64, Stop> {
    let mut word = [0; 8];
    if body < 8 {
        return stop("a record of processor trace has no size", "one", position);
    }
    source.read_exact(&mut word)?;
    let bytes = u64::from_le_bytes(word);
    if bytes > left.min(TRACE_BYTES) {
        let found = format!("a block of processor trace has {bytes} bytes, and {left} are left");
        return stop(found, "256 MiB at most", position);
    }
    Ok(bytes)
}

/// Bytes and records of two rounds that are in memory during the sort.
#[derive(Debug, Default)]
struct Rounds {
    before: (u64, u64),
    current: (u64, u64),
}

impl Rounds {
    fn add(&mut self, kind: u32, bytes: u64, position: u64) -> Result<(), Stop> {
        if kind == FINISHED_ROUND {
            self.before = std::mem::take(&mut self.current);
            return Ok(());
        }
        self.current.0 += bytes;
        self.current.1 += 1;
        let held = (
            self.before.0 + self.current.0,
            self.before.1 + self.current.1,
        );
        if held.0 > HELD_BYTES || held.1 > HELD_RECORDS {
            let found = format!("{} records in a row are not ended by a round", held.1);
            let expected = "rounds of at most 1 GiB (`perf script -i FILE` can print this file)";
            return stop(found, expected, position);
        }
        Ok(())
    }
}

/// A little-endian number; zero if the bytes are too few.
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
    word.copied().map_or(0, u64::from_le_bytes)
}
