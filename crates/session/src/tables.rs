//! Reads the loaded modules and the sites of a session file, with the callers of a site as frames; and, for the other files of this crate,
//! the records of any table ([`SessionFile::read_records`]).

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use isotherm_abi::MAX_DEPTH;
use isotherm_abi::named_data::NAME_BYTES_MAX;
use isotherm_abi::session::{FrameRecord, ModuleRecord, NO_MODULE, PYTHON_FRAME, SiteRecord};
use isotherm_model::site::{Frame, SiteId, SiteKind};
use isotherm_sys::memory::PAGE_BYTES;
use zerocopy::{FromBytes, IntoBytes};

use crate::error::SessionError;
use crate::file::SessionFile;
use crate::header::{Progress, Table};
use crate::text_area::TextArea;

/// Longest module path that is accepted, `PATH_MAX`.
const PATH_AT_MOST: u32 = 4096;

/// Bytes read at a time.
const BLOCK_BYTES: usize = 256 << 10;

/// A loaded module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// Its path.
    pub path: Arc<str>,
    /// Its GNU build-id in hexadecimal, if it has one.
    pub build_id: Option<Arc<str>>,
}

/// Counters of a site; they only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteNumbers {
    /// Allocations so far.
    pub allocations: u64,
    /// Bytes requested so far.
    pub requested_bytes: u64,
    /// Most bytes requested and not freed at one time.
    pub peak_bytes: u64,
    /// Most bytes that the runtime measured as resident at one time; 0 where it did not measure.
    pub peak_resident_bytes: u64,
}

/// A site as stored in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSite {
    /// Its name.
    pub id: SiteId,
    /// The kind of memory that it allocates.
    pub kind: SiteKind,
    /// The program's name for the data, of a site of [`SiteKind::Named`].
    pub name: Option<String>,
    /// Its callers, innermost first.
    pub frames: Vec<FrameRecord>,
    /// Its counters.
    pub numbers: SiteNumbers,
}

impl SessionSite {
    /// The callers with the paths and build-ids of their modules, or with the names of Python functions; a named site has one frame.
    #[must_use]
    pub fn frames_in(&self, modules: &[Module], text: &TextArea) -> Vec<Frame> {
        if let Some(name) = &self.name {
            return vec![Frame {
                function: Some(name.clone()),
                ..Frame::default()
            }];
        }
        self.frames
            .iter()
            .map(|frame| match frame.module {
                NO_MODULE => native_frame(None, frame.offset),
                PYTHON_FRAME => text.python_frame(frame.text, frame.offset),
                number => native_frame(modules.get(number as usize), frame.offset),
            })
            .collect()
    }
}

fn native_frame(module: Option<&Module>, offset: u64) -> Frame {
    Frame {
        module: module.map(|module| module.path.clone()).unwrap_or_default(),
        build_id: module.and_then(|module| module.build_id.clone()),
        offset,
        ..Frame::default()
    }
}

impl SessionFile {
    /// Passes records `from..to` of a table of these records to `take`, in order, reading a block at a time.
    pub(crate) fn read_records<T: FromBytes>(
        &self,
        table: Table,
        from: u64,
        to: u64,
        mut take: impl FnMut(u64, T),
    ) -> Result<(), SessionError> {
        let record_bytes = size_of::<T>();
        debug_assert_eq!(record_bytes, table.record_bytes, "another kind of record");
        let per_block = (BLOCK_BYTES / record_bytes) as u64;
        let mut block = vec![0; per_block as usize * record_bytes];
        let to = to.min(table.slots);
        let mut next = from;
        while next < to {
            let count = per_block.min(to - next);
            let bytes = &mut block[..count as usize * record_bytes];
            self.file
                .read_exact_at(bytes, table.offset + next * record_bytes as u64)?;
            let mut rest = &bytes[..];
            while let Ok((record, after)) = T::read_from_prefix(rest) {
                take(next, record);
                (next, rest) = (next + 1, after);
            }
        }
        Ok(())
    }

    /// Reads the modules that `known` lacks and adds them to it.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn read_modules(
        &self,
        progress: &Progress,
        known: &mut Vec<Module>,
    ) -> Result<(), SessionError> {
        let mut found = Vec::new();
        let from = known.len() as u64;
        self.read_records(self.header.modules, from, progress.modules, |_, record| {
            found.push(module(&record))
        })?;
        for (build_id, path_offset, path_bytes) in found {
            let path = self.read_text(path_offset, path_bytes)?.into();
            known.push(Module { path, build_id });
        }
        Ok(())
    }

    fn read_text(&self, offset: u32, bytes: u32) -> Result<String, SessionError> {
        let end = u64::from(offset) + u64::from(bytes);
        if bytes > PATH_AT_MOST || end > self.header.text.slots {
            return Ok(String::new());
        }
        let mut text = vec![0; bytes as usize];
        self.file
            .read_exact_at(&mut text, self.header.text.offset + u64::from(offset))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Passes the sites from number `first` on to `take`, each with its number in the table. Incomplete sites are left
    /// out.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn read_sites(
        &self,
        first: u64,
        progress: &Progress,
        mut take: impl FnMut(u64, SessionSite),
    ) -> Result<(), SessionError> {
        let sites = self.header.sites;
        self.read_records(sites, first, progress.sites, |number, record| {
            if let Some(row) = site(&record) {
                take(number, row);
            }
        })
    }
}

/// Bytes of the given number of the runtime's pages.
pub(crate) fn pages(count: u32) -> u64 {
    u64::from(count) * PAGE_BYTES as u64
}

/// The build-id of a module, and the offset and length of its path in the text area.
fn module(record: &ModuleRecord) -> (Option<Arc<str>>, u32, u32) {
    let length = record.build_id_bytes.min(32) as usize;
    let is_one = record.has_build_id == 1 && length > 0;
    let hexadecimal = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    (
        is_one.then(|| hexadecimal(&record.build_id[..length]).into()),
        record.path_offset,
        record.path_bytes,
    )
}

fn site(record: &SiteRecord) -> Option<SessionSite> {
    let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
    let id = SiteId(count(&record.hash));
    if id == SiteId::UNATTRIBUTED {
        return None;
    }
    let depth = record.depth.min(MAX_DEPTH as u32) as usize;
    let kind = match record.kind {
        1 => SiteKind::Mapping,
        2 => SiteKind::Described,
        3 => SiteKind::Static,
        4 => SiteKind::Named,
        _ => SiteKind::Heap,
    };
    Some(SessionSite {
        id,
        kind,
        name: (kind == SiteKind::Named).then(|| name(&record.frames)),
        frames: record.frames[..depth].to_vec(),
        numbers: SiteNumbers {
            allocations: count(&record.allocations),
            requested_bytes: count(&record.requested_bytes),
            peak_bytes: count(&record.peak_bytes),
            peak_resident_bytes: pages(record.peak_resident_pages.load(Ordering::Relaxed)),
        },
    })
}

/// The text of a named site. Control characters, which no runtime writes, are replaced: names are printed on terminals.
fn name(frames: &[FrameRecord]) -> String {
    let bytes = frames.as_bytes();
    let bytes = &bytes[..bytes.len().min(NAME_BYTES_MAX)];
    let end = bytes.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())])
        .replace(char::is_control, "\u{fffd}")
}
