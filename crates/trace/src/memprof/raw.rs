//! `read` makes a [`Profile`] of a file `memprof.profraw.PID`, as a program built with clang's `-fmemory-profile` (LLVM's MemProf) writes
//! it: each call stack that allocates is a site. The whole file is held in memory, so one above 1 GiB is refused.
//!
//! Little-endian, packed, as LLVM 19's `MemProfData.inc` lays it out. A file holds one dump after
//! the other:
//!
//! ```text
//! offset  bytes  of a dump
//!      0      8  magic
//!      8      8  version, 3 or 4
//!     16      8  bytes of the dump
//!     24   3 x 8  offsets of segments, blocks and stacks, from the dump's first byte
//!
//! segments: count, then for each 64 bytes: first address, end, load address, bytes of the build-id, build-id (32)
//! blocks:   count, then for each: stack, MemInfoBlock (132 bytes; 144 in version 4), histogram (8 bytes an entry)
//! stacks:   count, then for each: stack, count of calls, address within each call
//! ```
//!
//! The frames are addresses in modules that are identified by their build-id; their names are
//! looked up later in the programs themselves.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, Read};
use std::sync::Arc;

use isotherm_model::profile::Profile;
use isotherm_model::site::{Frame, SiteId};

use super::stacks::{Stack, profile};
use crate::error::{Error, Fault, Place};
use crate::grain::Grain;
use crate::site_hash::site_hash;

/// The first eight bytes: `81`, `rforpm` backwards, `ff`.
pub(crate) const MAGIC: &[u8] = b"\x81rforpm\xff";
/// Bytes of a dump's head.
const HEAD_BYTES: u64 = 48;
/// Bytes of a segment's entry.
const SEGMENT_BYTES: u64 = 64;
/// Most bytes of a build-id.
const BUILD_ID_BYTES: u64 = 32;
/// Largest file that is read, because all of it is held in memory: a stack takes about 400 bytes,
/// and the largest programs have some millions.
const FILE_BYTES: u64 = 1 << 30;

/// The used fields of the `MemInfoBlock`: name, offset in the block, bytes.
const FIELDS: [(&str, u64, u64); 8] = [
    ("AllocCount", 0, 4),
    ("TotalAccessCount", 4, 8),
    ("TotalSize", 28, 8),
    ("MaxSize", 40, 4),
    ("AllocTimestamp", 44, 4),
    ("DeallocTimestamp", 48, 4),
    ("MaxLifetime", 64, 4),
    ("NumLifetimeOverlaps", 80, 4),
];

/// Fields of a `MemInfoBlock` by name.
type Numbers = BTreeMap<String, u64>;

/// The profile of a file.
pub(crate) fn read(source: impl BufRead, file: &str, grain: Grain) -> Result<Profile, Error> {
    let mut bytes = Vec::new();
    source
        .take(FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| Error::read(file, source))?;
    if bytes.len() as u64 > FILE_BYTES {
        let found = format!("it is larger than {FILE_BYTES} bytes");
        return Err(Fault::new(found, "the profile of one run").at(file, Place::Whole));
    }
    let mut stacks = BTreeMap::new();
    let mut start = 0;
    while start < bytes.len() as u64 {
        let mut dump = Dump {
            bytes: &bytes,
            place: start,
        };
        start = dump
            .read(&mut stacks)
            .map_err(|fault| fault.at(file, Place::Offset(dump.place)))?;
    }
    if stacks.is_empty() {
        let expected = "a profile of a program that allocates, built with clang's -fmemory-profile";
        return Err(Fault::new("it holds no allocation site", expected).at(file, Place::Whole));
    }
    Ok(profile(&stacks, grain))
}

/// A mapped part of a module.
struct Segment {
    start: u64,
    end: u64,
    /// Difference between run-time addresses and the module's own.
    load_address: u64,
    build_id: Option<Arc<str>>,
}

/// State of reading one dump.
struct Dump<'a> {
    bytes: &'a [u8],
    /// Position of the next read, from the beginning of the file.
    place: u64,
}

impl Dump<'_> {
    /// Adds the contents of the dump; returns the position of its end.
    fn read(&mut self, stacks: &mut BTreeMap<SiteId, Stack>) -> Result<u64, Fault> {
        let start = self.place;
        if self.take(8)? != MAGIC {
            self.place = start;
            let expected = "a profile from a program built with clang's -fmemory-profile";
            return Err(Fault::new("no MemProf profile begins here", expected));
        }
        let version = self.number(8)?;
        let block_bytes = match version {
            3 => 132,
            4 => 144,
            _ => {
                let found = format!("its version is {version}");
                let expected = "3 or 4, of LLVM 18 and 19 (llvm-profdata show --memory of the LLVM that made it prints \
                                what the format memprof reads)";
                return Err(Fault::new(found, expected));
            }
        };
        let bytes = self.number(8)?;
        let end = start
            .checked_add(bytes)
            .filter(|end| bytes >= HEAD_BYTES && *end <= self.bytes.len() as u64);
        let Some(end) = end else {
            let found = format!("a dump claims {bytes} bytes, and the file ends before");
            let expected = "a whole file; was the program killed while it wrote?";
            return Err(Fault::new(found, expected));
        };
        let tables = [self.number(8)?, self.number(8)?, self.number(8)?];
        let [segments, blocks, calls] = tables.map(|offset| start.saturating_add(offset));
        let bytes = &self.bytes[..end as usize];
        let at = |place| Dump { bytes, place };
        // An error is reported at the position in its own table.
        let segments = self.at(at(segments), Self::segments)?;
        let calls = self.at(at(calls), Self::calls)?;
        let blocks = self.at(at(blocks), |dump| dump.blocks(block_bytes))?;
        for (id, numbers) in blocks {
            let Some(calls) = calls.get(&id) else {
                let found = format!("the call stack {id:#x} of a block is not among its stacks");
                return Err(Fault::new(found, "a whole file"));
            };
            keep(stacks, frames(calls, &segments), numbers);
        }
        Ok(end)
    }

    /// Reads at another position; the position of this dump changes only if that fails.
    fn at<'a, T>(
        &mut self,
        mut there: Dump<'a>,
        read: impl FnOnce(&mut Dump<'a>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        read(&mut there).inspect_err(|_| self.place = there.place)
    }

    fn segments(&mut self) -> Result<Vec<Segment>, Fault> {
        let count = self.count(SEGMENT_BYTES)?;
        (0..count).map(|_| self.segment()).collect()
    }

    fn segment(&mut self) -> Result<Segment, Fault> {
        let (start, end) = (self.number(8)?, self.number(8)?);
        let (load_address, id_bytes) = (self.number(8)?, self.number(8)?);
        if id_bytes > BUILD_ID_BYTES {
            let found = format!("a build-id has {id_bytes} bytes");
            return Err(Fault::new(found, format!("{BUILD_ID_BYTES} at most")));
        }
        let id = &self.take(BUILD_ID_BYTES)?[..id_bytes as usize];
        let build_id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Segment {
            start,
            end,
            load_address,
            build_id: (!build_id.is_empty()).then(|| build_id.into()),
        })
    }

    /// Addresses of the calls by stack, from the allocation outwards.
    fn calls(&mut self) -> Result<HashMap<u64, Vec<u64>>, Fault> {
        let count = self.count(16)?;
        let mut stacks = HashMap::new();
        for _ in 0..count {
            let id = self.number(8)?;
            let depth = self.count(8)?;
            let calls: Result<Vec<u64>, Fault> = (0..depth).map(|_| self.number(8)).collect();
            stacks.insert(id, calls?);
        }
        Ok(stacks)
    }

    /// The blocks with their stacks.
    fn blocks(&mut self, block_bytes: u64) -> Result<Vec<(u64, Numbers)>, Fault> {
        let count = self.count(8 + block_bytes)?;
        let mut blocks = Vec::new();
        for _ in 0..count {
            let id = self.number(8)?;
            let block = self.place;
            let numbers = FIELDS.map(|(name, offset, bytes)| {
                self.place = block + offset;
                self.number(bytes).map(|number| (name.to_owned(), number))
            });
            let numbers: Result<Numbers, Fault> = numbers.into_iter().collect();
            let mut histogram = 0;
            if block_bytes > 132 {
                self.place = block + 132;
                histogram = self.number(4)?;
            }
            self.place = block;
            self.take(block_bytes + 8 * histogram)?;
            blocks.push((id, numbers?));
        }
        Ok(blocks)
    }

    fn take(&mut self, count: u64) -> Result<&[u8], Fault> {
        let end = self.place.saturating_add(count);
        let range = usize::try_from(self.place)
            .ok()
            .zip(usize::try_from(end).ok());
        let bytes = range.and_then(|(start, end)| self.bytes.get(start..end));
        let Some(bytes) = bytes else {
            return Err(Fault::new("it ends here", format!("{count} bytes more")));
        };
        self.place = end;
        Ok(bytes)
    }

    /// A number of the given bytes, at most eight.
    fn number(&mut self, bytes: u64) -> Result<u64, Fault> {
        let bytes = self.take(bytes)?.iter().rev();
        Ok(bytes.fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// A number of entries, each of at least the given bytes. A number that the file cannot hold is
    /// rejected, so that no memory is allocated for it.
    fn count(&mut self, entry_bytes: u64) -> Result<u64, Fault> {
        let count = self.number(8)?;
        let left = (self.bytes.len() as u64).saturating_sub(self.place);
        if count > left / entry_bytes {
            let found = format!("{count} entries are claimed, and {left} bytes are left");
            return Err(Fault::new(found, "a whole file"));
        }
        Ok(count)
    }
}

/// The frames of calls, as return addresses in their modules. MemProf writes an address within the
/// call.
fn frames(calls: &[u64], segments: &[Segment]) -> Vec<Frame> {
    let frame = |call: &u64| {
        let holds = |segment: &&Segment| (segment.start..segment.end).contains(call);
        let segment = segments.iter().find(holds);
        Frame {
            build_id: segment.and_then(|segment| segment.build_id.clone()),
            offset: call
                .wrapping_sub(segment.map_or(0, |segment| segment.load_address))
                .wrapping_add(1),
            ..Frame::default()
        }
    };
    calls.iter().map(frame).collect()
}

/// Keeps a stack; the numbers of a known one are added.
fn keep(stacks: &mut BTreeMap<SiteId, Stack>, frames: Vec<Frame>, numbers: BTreeMap<String, u64>) {
    let id = site_hash(frames.iter().flat_map(|frame| {
        let module = frame.build_id.as_deref().unwrap_or_default();
        let bytes = module.bytes().chain(frame.offset.to_le_bytes());
        bytes.collect::<Vec<_>>()
    }));
    let stack = Stack { frames, numbers };
    match stacks.get_mut(&id) {
        Some(known) => known.add(&stack),
        None => drop(stacks.insert(id, stack)),
    }
}

#[cfg(test)]
mod tests;
