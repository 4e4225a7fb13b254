//! A [`LoadedModule`] is a program or library that a process has mapped, read from its file: it lists the module's static data, finds the
//! address at which the process has it, and makes the id and the frame of each variable's site, for `isotherm record --pid`.
//!
//! ```text
//! file         | headers | code  | data |            ELF addresses 0, 0x1000, 0x4000
//! mappings          |r-- 0|r-x 1000|rw- 3000|         of the same file, at an address of the loader's choice
//! base              = where ELF address 0 is: every segment is where it is expected from there
//! ```

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use isotherm_abi::hash::{SiteHashKind, SiteHasher};
use isotherm_model::site::{Frame, SiteId};
use isotherm_sys::memory::PAGE_BYTES;
use isotherm_sys::memory_map::MappedRange;
use object::Object;
use object::read::ReadCache;

use crate::program_file::build_id_of;
use crate::segment::{FileSegment, segments};
use crate::static_data::{self, StaticObject};

const PAGE: u64 = PAGE_BYTES as u64;

/// Most bytes of a module's name in the name of a site.
const NAME_BYTES: usize = 32;

/// A program or library.
#[derive(Clone, Debug)]
pub struct LoadedModule {
    path: Arc<str>,
    build_id: Option<Arc<str>>,
    /// The build-id or else the file name, which goes into the ids of its sites.
    name: Vec<u8>,
    segments: Vec<FileSegment>,
    objects: Vec<StaticObject>,
}

impl LoadedModule {
    /// Reads a module from its file, which its process has at this path. `None` where it is no ELF file that can be read.
    #[must_use]
    pub fn read(path: &Path, opened: File) -> Option<Self> {
        let cache = ReadCache::new(opened);
        let file = object::File::parse(&cache).ok()?;
        let file_name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let name = file.build_id().ok().flatten().unwrap_or(file_name);
        Some(Self {
            path: path.to_string_lossy().into(),
            build_id: build_id_of(&file),
            name: name[..name.len().min(NAME_BYTES)].to_vec(),
            segments: segments(&file),
            objects: static_data::of_file(&file),
        })
    }

    /// Its static data, by ELF addresses.
    #[must_use]
    pub fn objects(&self) -> &[StaticObject] {
        &self.objects
    }

    /// The address of the module's ELF address 0, from the mappings of its file in a process; what is added to an ELF address wraps
    /// around. `None` where the file is mapped, but not as a loader does it.
    #[must_use]
    pub fn base(&self, mappings: &[MappedRange<'_>]) -> Option<u64> {
        let first = self.segments.first()?;
        let begins = mappings
            .iter()
            .filter(|mapping| mapping.file_offset == first.file_offset / PAGE * PAGE);
        let mut bases = begins.map(|mapping| {
            let start = first.address.wrapping_sub(first.file_offset % PAGE);
            mapping.range.start.wrapping_sub(start)
        });
        bases.find(|base| self.is_at(*base, mappings))
    }

    /// Whether each segment is where this base puts it.
    fn is_at(&self, base: u64, mappings: &[MappedRange<'_>]) -> bool {
        self.segments.iter().all(|segment| {
            let address = base.wrapping_add(segment.address);
            let mapping = mappings
                .iter()
                .find(|mapping| mapping.range.contains(&address));
            mapping.is_some_and(|mapping| {
                let position = mapping
                    .file_offset
                    .checked_add(address - mapping.range.start);
                position == Some(segment.file_offset)
                    && (mapping.is_executable || !segment.is_executable)
            })
        })
    }

    /// The id of the site of its static data with this ELF address, as the runtime makes it.
    #[must_use]
    pub fn site(&self, name: u64) -> SiteId {
        let hasher = SiteHasher::new(SiteHashKind::Static).frame(&self.name, name);
        SiteId(hasher.finish())
    }

    /// The only frame of the site of an object.
    #[must_use]
    pub fn frame(&self, object: &StaticObject) -> Frame {
        Frame {
            module: Arc::clone(&self.path),
            build_id: self.build_id.clone(),
            offset: object.name,
            function: Some(object.label.clone()),
            ..Frame::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;

    use isotherm_sys::memory_map::{MappedRange, mapped_ranges};

    use super::LoadedModule;

    static DATA: [u64; 100_000] = [1; 100_000];

    #[test]
    fn the_base_is_where_the_loader_put_the_program() {
        let path = std::env::current_exe().expect("a path");
        let module = LoadedModule::read(&path, File::open(&path).expect("opens"));
        let module = module.expect("a program");
        let text = std::fs::read("/proc/self/maps").expect("is readable");
        let own = path.to_str().expect("a path").as_bytes();
        let mappings: Vec<MappedRange<'_>> = mapped_ranges(&text)
            .filter(|mapping| mapping.name == own)
            .collect();
        let base = module.base(&mappings).expect("a loader mapped it");
        let symbols = std::fs::read(&path).expect("is readable");
        let symbols = object::File::parse(&*symbols).expect("a program");
        let mut symbols = object::Object::symbols(&symbols);
        let data = symbols.find(|symbol| {
            object::ObjectSymbol::name(symbol)
                .is_ok_and(|name| name.contains("loaded_module5tests4DATA"))
        });
        let data = object::ObjectSymbol::address(&data.expect("a variable"));
        assert_eq!(base.wrapping_add(data), (&raw const DATA) as u64);
        // Read as data, the whole file lies in one piece, and no code is where it is expected.
        let whole = MappedRange {
            range: 0x1000_0000..0x8000_0000,
            is_executable: false,
            file_offset: 0,
            ..mappings[0].clone()
        };
        assert_eq!(module.base(&[whole]), None);
    }

    #[test]
    fn what_is_no_program_is_no_module() {
        let path = Path::new("/proc/self/environ");
        assert!(LoadedModule::read(path, File::open(path).expect("opens")).is_none());
    }
}
