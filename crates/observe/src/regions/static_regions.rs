//! `StaticRegions` finds the variables of static storage in a process that ran already, with their addresses and sites, from the files of
//! its program and libraries: those of at least a page each as a site, the rest of a segment as one. Files with little static data, and the
//! runtime's own, have none.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use isotherm_model::site::{Site, SiteId, SiteKind};
use isotherm_model::spans;
use isotherm_model::units::Bytes;
use isotherm_symbols::code::open_mapped;
use isotherm_symbols::loaded_module::LoadedModule;
use isotherm_sys::file_root::FileRoot;
use isotherm_sys::memory_map::MappedRange;

use super::region::Region;

/// Most files that are read; of further ones the variables have no sites.
const MODULES_AT_MOST: usize = 4096;

/// The file of the runtime, whose variables are not the program's.
const RUNTIME: &str = "libisotherm.so";

/// A file, by its path and number.
type FileKey = (PathBuf, u64);

/// The modules that were read.
#[derive(Debug, Default)]
pub(super) struct StaticRegions {
    modules: HashMap<FileKey, Option<LoadedModule>>,
    /// Paths of mapped executable files at which no file or another one is found.
    unread: BTreeSet<PathBuf>,
    sites: BTreeMap<SiteId, Site>,
}

impl StaticRegions {
    /// The variables of the modules that a process with this root has mapped, by address and without overlap.
    pub(super) fn regions(&mut self, mappings: &[MappedRange<'_>], root: &FileRoot) -> Vec<Region> {
        let mut files: BTreeMap<FileKey, Vec<MappedRange<'_>>> = BTreeMap::new();
        for mapping in mappings.iter().filter(|mapping| mapping.inode > 0) {
            let path = Path::new(OsStr::from_bytes(mapping.name)).to_owned();
            let of_file = files.entry((path, mapping.inode)).or_default();
            of_file.push(mapping.clone());
        }
        let mut regions = Vec::new();
        for (file, mappings) in files {
            let is_module = mappings.iter().any(|mapping| mapping.is_executable);
            if !is_module || file.0.file_name() == Some(OsStr::new(RUNTIME)) {
                continue;
            }
            let known = self.modules.len();
            if known >= MODULES_AT_MOST && !self.modules.contains_key(&file) {
                continue;
            }
            self.read(&file, root);
            if let Some(Some(module)) = self.modules.get(&file)
                && let Some(base) = module.base(&mappings)
            {
                regions.extend(variables(module, base, &mut self.sites));
            }
        }
        regions.sort_unstable_by_key(|region| region.span.start);
        spans::keep_apart(&mut regions, |region| &region.span);
        regions
    }

    /// The site of a variable.
    pub(super) fn site(&self, site: SiteId) -> Option<Site> {
        self.sites.get(&site).cloned()
    }

    /// The paths of executable files that could not be read, or are other files by now.
    pub(super) fn unread(&self) -> Vec<&Path> {
        self.unread.iter().map(PathBuf::as_path).collect()
    }

    fn read(&mut self, file: &FileKey, root: &FileRoot) {
        let (path, inode) = file;
        if self.modules.contains_key(file) {
            return;
        }
        let opened = open_mapped(root, path, *inode);
        if opened.is_none() {
            self.unread.insert(path.clone());
        }
        let module = opened.and_then(|opened| LoadedModule::read(path, opened));
        self.modules.insert(file.clone(), module);
    }
}

/// The variables of a module, and their sites.
fn variables(module: &LoadedModule, base: u64, sites: &mut BTreeMap<SiteId, Site>) -> Vec<Region> {
    let mut sizes = BTreeMap::<SiteId, u64>::new();
    let mut regions = Vec::new();
    for object in module.objects() {
        let site = module.site(object.name);
        let start = base.wrapping_add(object.range.start);
        let bytes = object.range.end - object.range.start;
        let Some(end) = start.checked_add(bytes) else {
            continue;
        };
        *sizes.entry(site).or_default() += bytes;
        regions.push(Region {
            span: start..end,
            site,
            is_object: true,
        });
        sites.entry(site).or_insert_with(|| Site {
            frames: [module.frame(object)].into(),
            allocations: 1,
            ..Site::new(site, SiteKind::Static)
        });
    }
    for (site, bytes) in sizes {
        if let Some(site) = sites.get_mut(&site) {
            (site.requested, site.peak_requested) = (Bytes(bytes), Bytes(bytes));
        }
    }
    regions
}
