//! Reads the modules and sites of a session file.

use std::mem::{offset_of, size_of};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use isotherm_abi::MAX_DEPTH;
use isotherm_abi::named_data::NAME_BYTES_MAX;
use isotherm_abi::session::{FrameRecord, ModuleRecord, NO_MODULE, PYTHON_FRAME, SiteRecord};
use isotherm_model::site::{Frame, SiteId, SiteKind};
use isotherm_sys::memory::PAGE_BYTES;

use crate::error::SessionError;
use crate::file::SessionFile;
use crate::header::{Progress, Table};
use crate::record::{long, word};
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

/// Counters of a site; they only grow (except `arena`, which changes once).
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
    /// The text by which the program calls the data, of [`SiteKind::Named`].
    pub name: Option<String>,
    /// Its callers, innermost first.
    pub frames: Vec<FrameRecord>,
    /// Its counters.
    pub numbers: SiteNumbers,
}

impl SessionSite {
    /// The callers with the paths and build-ids of their modules, or the names of Python functions; of a named site, a frame that is called so.
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
    /// Passes records `from..to` of a table to `take`, in order, reading a block at a time.
    pub(crate) fn read_records(
        &self,
        table: Table,
        from: u64,
        to: u64,
        mut take: impl FnMut(u64, &[u8]),
    ) -> Result<(), SessionError> {
        let record_bytes = table.record_bytes;
        let per_block = (BLOCK_BYTES / record_bytes) as u64;
        let mut block = vec![0; per_block as usize * record_bytes];
        let to = to.min(table.slots);
        let mut next = from;
        while next < to {
            let count = per_block.min(to - next);
            let bytes = &mut block[..count as usize * record_bytes];
            self.file
                .read_exact_at(bytes, table.offset + next * record_bytes as u64)?;
            for (number, record) in (next..).zip(bytes.chunks_exact(record_bytes)) {
                take(number, record);
            }
            next += count;
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
            found.push(module(record))
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
            if let Some(row) = site(record) {
                take(number, row);
            }
        })
    }
}

/// Bytes of the given number of the runtime's pages.
pub(crate) fn pages(count: u32) -> u64 {
    u64::from(count) * PAGE_BYTES as u64
}

/// Build-id, and where the path lies.
fn module(record: &[u8]) -> (Option<Arc<str>>, u32, u32) {
    let at = offset_of!(ModuleRecord, build_id);
    let length = word(record, offset_of!(ModuleRecord, build_id_bytes)).min(32) as usize;
    let is_one = word(record, offset_of!(ModuleRecord, has_build_id)) == 1 && length > 0;
    let hexadecimal = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    (
        is_one.then(|| hexadecimal(&record[at..at + length]).into()),
        word(record, offset_of!(ModuleRecord, path_offset)),
        word(record, offset_of!(ModuleRecord, path_bytes)),
    )
}

fn site(record: &[u8]) -> Option<SessionSite> {
    let id = SiteId(long(record, offset_of!(SiteRecord, hash)));
    if id == SiteId::UNATTRIBUTED {
        return None;
    }
    let depth = word(record, offset_of!(SiteRecord, depth)).min(MAX_DEPTH as u32) as usize;
    let kind = match word(record, offset_of!(SiteRecord, kind)) {
        1 => SiteKind::Mapping,
        2 => SiteKind::Described,
        3 => SiteKind::Static,
        4 => SiteKind::Named,
        _ => SiteKind::Heap,
    };
    let frames = (0..depth)
        .map(|i| {
            let at = offset_of!(SiteRecord, frames) + i * size_of::<FrameRecord>();
            FrameRecord {
                module: word(record, at + offset_of!(FrameRecord, module)),
                text: word(record, at + offset_of!(FrameRecord, text)),
                offset: long(record, at + offset_of!(FrameRecord, offset)),
            }
        })
        .collect();
    Some(SessionSite {
        id,
        kind,
        name: (kind == SiteKind::Named).then(|| name(record)),
        frames,
        numbers: SiteNumbers {
            allocations: long(record, offset_of!(SiteRecord, allocations)),
            requested_bytes: long(record, offset_of!(SiteRecord, requested_bytes)),
            peak_bytes: long(record, offset_of!(SiteRecord, peak_bytes)),
            peak_resident_bytes: pages(word(record, offset_of!(SiteRecord, peak_resident_pages))),
        },
    })
}

/// The text of a named site. Control characters, which no runtime writes, are replaced: names are printed on terminals.
fn name(record: &[u8]) -> String {
    let at = offset_of!(SiteRecord, frames);
    let bytes = record.get(at..at + NAME_BYTES_MAX).unwrap_or_default();
    let end = bytes.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())])
        .replace(char::is_control, "\u{fffd}")
}
