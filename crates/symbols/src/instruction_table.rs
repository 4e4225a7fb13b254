//! `InstructionTable` numbers the sampled instructions of a run, each by the path of its module and its address there, so that samples of
//! one instruction of a library count together, whichever process ran it. All code without a file has one number.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use isotherm_model::code_access::{AccessKind, InstructionId, SampledInstruction};
use object::read::ReadCache;

use crate::program_file::build_id_of;
use crate::segment::{FileSegment, segments};

/// Most instructions that are numbered; samples of further ones have no number. A hundred bytes each.
const INSTRUCTIONS_AT_MOST: usize = 1 << 16;

/// Most modules whose addresses are known; of further ones the position in the file is the address.
const MODULES_AT_MOST: usize = 4096;

/// An instruction by its place: path of its module, and address there.
type Place = (Arc<str>, u64);

/// The instructions of a run.
#[derive(Debug, Default)]
pub(crate) struct InstructionTable {
    ids: HashMap<Place, InstructionId>,
    fresh: Vec<SampledInstruction>,
    modules: HashMap<(PathBuf, u64), Arc<CodeModule>>,
}

/// A module, and where its file is in its address space.
#[derive(Debug)]
struct CodeModule {
    path: Arc<str>,
    build_id: Option<Arc<str>>,
    segments: Vec<FileSegment>,
}

impl CodeModule {
    fn read(path: &Path, file: Option<std::fs::File>) -> Self {
        let cache = file.map(ReadCache::new);
        let parsed = cache.as_ref();
        let parsed = parsed.and_then(|cache| object::File::parse(cache).ok());
        Self {
            path: path.to_string_lossy().into(),
            build_id: parsed.as_ref().and_then(build_id_of),
            segments: parsed.as_ref().map(segments).unwrap_or_default(),
        }
    }

    /// The address of a byte of the file; the position itself where no segment has it.
    fn address(&self, position: u64) -> u64 {
        let after = |segment: &FileSegment| position.checked_sub(segment.file_offset);
        let holds = |segment: &&FileSegment| after(segment).is_some_and(|at| at < segment.bytes);
        let segment = self.segments.iter().find(holds);
        segment.map_or(position, |segment| {
            let start = segment.address.wrapping_sub(segment.file_offset);
            start.wrapping_add(position)
        })
    }
}

impl InstructionTable {
    /// The number of the instruction at a position of a file; `open` opens that file where it is a new one.
    pub(crate) fn in_file(
        &mut self,
        (path, inode, position): (&Path, u64, u64),
        open: impl FnOnce() -> Option<std::fs::File>,
        kind: Option<AccessKind>,
    ) -> Option<InstructionId> {
        let key = (path.to_owned(), inode);
        if self.modules.len() >= MODULES_AT_MOST && !self.modules.contains_key(&key) {
            self.modules.clear();
        }
        let module = self.modules.entry(key);
        let module = Arc::clone(module.or_insert_with(|| Arc::new(CodeModule::read(path, open()))));
        let place = (Arc::clone(&module.path), module.address(position));
        self.number(place, module.build_id.clone(), kind)
    }

    /// The number of all code without a file, such as that of a just-in-time compiler.
    pub(crate) fn without_file(&mut self) -> Option<InstructionId> {
        self.number(("".into(), 0), None, None)
    }

    fn number(
        &mut self,
        place: Place,
        build_id: Option<Arc<str>>,
        kind: Option<AccessKind>,
    ) -> Option<InstructionId> {
        if let Some(known) = self.ids.get(&place) {
            return Some(*known);
        }
        if self.ids.len() >= INSTRUCTIONS_AT_MOST {
            return None;
        }
        let number = u32::try_from(self.ids.len() + 1).ok()?;
        let id = InstructionId(NonZeroU32::new(number)?);
        self.fresh.push(SampledInstruction {
            id,
            module: Arc::clone(&place.0),
            build_id,
            offset: place.1,
            kind,
        });
        self.ids.insert(place, id);
        Some(id)
    }

    /// The instructions that were numbered since the last call.
    pub(crate) fn take_fresh(&mut self) -> Vec<SampledInstruction> {
        std::mem::take(&mut self.fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::{CodeModule, InstructionTable};
    use std::path::Path;

    #[test]
    fn an_instruction_of_a_file_has_its_address_and_build_and_keeps_its_number() {
        let own = std::env::current_exe().expect("a path");
        let open = || std::fs::File::open(&own).ok();
        let module = CodeModule::read(&own, open());
        let largest = module.segments.iter().max_by_key(|it| it.bytes);
        let largest = largest.expect("one");
        let position = largest.file_offset + largest.bytes / 2;
        let mut table = InstructionTable::default();
        let mut at = |position| table.in_file((own.as_path(), 1, position), open, None);
        let (first, again, other) = (at(position), at(position), at(position + 1));
        assert!(first.is_some() && first == again && first != other);
        let fresh = table.take_fresh();
        assert_eq!(fresh.len(), 2);
        assert_eq!(fresh[0].offset, largest.address + largest.bytes / 2);
        assert_eq!(fresh[0].module.as_ref(), own.to_str().expect("a path"));
        assert!(table.take_fresh().is_empty());
    }

    #[test]
    fn a_file_that_is_no_program_or_is_gone_and_code_without_one_are_numbered_too() {
        let mut table = InstructionTable::default();
        let gone = Path::new("/nonexistent");
        assert!(table.in_file((gone, 1, 64), || None, None).is_some());
        let jit = table.without_file();
        assert!(jit.is_some() && jit == table.without_file());
        let fresh = table.take_fresh();
        assert_eq!(fresh[0].offset, 64);
        assert_eq!((fresh[1].module.as_ref(), fresh[1].offset), ("", 0));
    }
}
