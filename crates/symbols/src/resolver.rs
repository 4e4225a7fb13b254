//! [`Symbols`] finds the names of addresses, for reports and plans: function, file, line and assigned variable of the frames of sites, the
//! variable of static data, function and line of sampled instructions, and each call, inlined ones included, that returns to an address
//! ([`SourceCall`]).
//!
//! It reads the ELF symbols and debugging information of the module, if they exist. A site from the compiler pass has its own description:
//! its frame is the address of its record. A frame that cannot be resolved stays unknown, and prints as module and offset.

mod code_names;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Sym, Symbolizer};
use isotherm_model::site::{Frame, Site};
use isotherm_sys::file_root::FileRoot;

use crate::assigned_variable::Sources;
use crate::cloned_contexts::{self, ContextCall};
use crate::compiled_sites::{self, CompiledSite};
use crate::name_cache::NameCache;
pub use crate::program_file::build_id;
use crate::static_data;
use crate::symbols_at::{calls_before, symbols_at};

/// A call in the source; an inlined call counts like any other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceCall {
    /// The function that holds the call.
    pub function: String,
    /// Its file, with the directory if known; empty without debugging information.
    pub file: String,
    /// Line; `None` if unknown.
    pub line: Option<u32>,
    /// Column; `None` if unknown.
    pub column: Option<u32>,
}

/// The bits that mark a return address in the keys of known names: none.
const RETURN_ADDRESS: u64 = 0;

/// Resolves names and caches them.
#[derive(Debug, Default)]
pub struct Symbols {
    symbolizer: Symbolizer,
    /// Names by module and key of the address: frames of which only the names are set.
    known: HashMap<(Arc<str>, u64), Frame>,
    cache: Option<NameCache>,
    /// The root of the modules' paths.
    root: FileRoot,
}

impl Symbols {
    /// Starts with the names that this user resolved before, from this folder.
    #[must_use]
    pub fn with_cache(cache: Option<NameCache>) -> Self {
        Self {
            cache,
            ..Self::default()
        }
    }

    /// Reads modules below this root.
    #[must_use]
    pub fn below(self, root: FileRoot) -> Self {
        Self { root, ..self }
    }

    /// Resolves the frames that have no function yet.
    pub fn symbolise(&mut self, sites: &mut [Site]) {
        let frames = sites.iter().flat_map(|site| site.frames.iter());
        self.find_names(frames, RETURN_ADDRESS, Self::look_up);
        let frames = sites
            .iter_mut()
            .flat_map(|site| Arc::make_mut(&mut site.frames));
        for frame in frames.filter(|frame| frame.function.is_none()) {
            if let Some(found) = self.known_name(frame, RETURN_ADDRESS) {
                *frame = named(frame, found);
            }
        }
    }

    /// Finds the names of the frames that have no function and no known name, module by module. All their addresses are of this kind.
    fn find_names<'a>(
        &mut self,
        frames: impl Iterator<Item = &'a Frame>,
        kind: u64,
        look_up: fn(&Self, &Path, &[u64]) -> Vec<Frame>,
    ) {
        let mut wanted: HashMap<&Arc<str>, Module<'_>> = HashMap::new();
        for frame in frames {
            let key = (Arc::clone(&frame.module), frame.offset | kind);
            let is_named = frame.function.is_some() || self.known.contains_key(&key);
            if !is_named && !frame.module.is_empty() {
                let module = wanted.entry(&frame.module).or_default();
                module.offsets.push(frame.offset);
                module.build_id = frame.build_id.as_deref();
            }
        }
        for (path, mut module) in wanted {
            module.offsets.sort_unstable();
            module.offsets.dedup();
            let found = self.cached(path, &module, kind, look_up);
            let keys = module.offsets.iter();
            let keys = keys.map(|offset| (Arc::clone(path), *offset | kind));
            self.known.extend(keys.zip(found));
        }
    }

    /// The name that was found for the address of a frame; the address is of this kind.
    fn known_name(&self, frame: &Frame, kind: u64) -> Option<&Frame> {
        let key = (Arc::clone(&frame.module), frame.offset | kind);
        let found = self.known.get(&key);
        found.filter(|found| found.function.is_some())
    }

    /// The source calls that return to each address of a module, from the inside out; none for an
    /// unknown address.
    #[must_use]
    pub fn source_calls(&self, module: &Path, offsets: &[u64]) -> Vec<Vec<SourceCall>> {
        let source = Source::Elf(Elf::new(module));
        let symbols = symbols_at(&self.symbolizer, &source, &calls_before(offsets));
        let calls = |symbol: &Option<Sym<'_>>| symbol.as_ref().map_or_else(Vec::new, source_calls);
        symbols.iter().map(calls).collect()
    }

    /// One entry for each offset, which is of this kind: from the cache, or as `look_up` finds it.
    fn cached(
        &self,
        path: &str,
        module: &Module<'_>,
        kind: u64,
        look_up: fn(&Self, &Path, &[u64]) -> Vec<Frame>,
    ) -> Vec<Frame> {
        let look_up = |module: &Module<'_>| {
            let path = &*self.root.path(Path::new(path));
            match module.is_at(path) {
                true => look_up(self, path, &module.offsets),
                false => vec![Frame::default(); module.offsets.len()],
            }
        };
        let (Some(cache), Some(build_id)) = (&self.cache, module.build_id) else {
            return look_up(module);
        };
        let mut names = cache.read(build_id);
        let offsets = module.offsets.iter().copied();
        let missing = Module {
            offsets: offsets
                .filter(|offset| !names.contains_key(&(offset | kind)))
                .collect(),
            build_id: module.build_id,
        };
        if !missing.offsets.is_empty() {
            let found = look_up(&missing);
            let is_news = found.iter().any(|found| found.function.is_some());
            let keys = missing.offsets.iter().map(|offset| offset | kind);
            names.extend(keys.zip(found));
            // What has no name is not kept: it may be found later.
            if is_news {
                cache.write(build_id, &names);
            }
        }
        let keys = module.offsets.iter().map(|offset| offset | kind);
        let found = keys.map(|key| names.remove(&key));
        found.map(Option::unwrap_or_default).collect()
    }

    /// One entry for each offset, empty if unknown.
    fn look_up(&self, path: &Path, offsets: &[u64]) -> Vec<Frame> {
        // A file whose records cannot be read still has its symbols.
        let described = compiled_sites::read(path).unwrap_or_default();
        let contexts = cloned_contexts::read(path);
        let data = static_data::labels(path, offsets);
        let by_symbols = self.by_symbols(path, offsets);
        offsets
            .iter()
            .zip(by_symbols)
            .map(|(offset, by_symbols)| {
                let site = described.get(offset).map(CompiledSite::names);
                let data = data.get(offset).map(|label| found_data(label));
                site.or(data)
                    .or_else(|| contexts.call(*offset).map(ContextCall::names))
                    .unwrap_or(by_symbols)
            })
            .collect()
    }

    /// Names of return addresses from the symbols and debugging information of a module.
    fn by_symbols(&self, path: &Path, offsets: &[u64]) -> Vec<Frame> {
        let source = Source::Elf(Elf::new(path));
        let symbols = symbols_at(&self.symbolizer, &source, &calls_before(offsets));
        let first_lines = self.first_lines(&source, &symbols);
        let mut sources = Sources::of(path);
        let mut name = |symbol: &Option<Sym<'_>>| match symbol {
            Some(symbol) => found(symbol, &first_lines, &mut sources),
            None => Frame::default(),
        };
        symbols.iter().map(&mut name).collect()
    }

    /// First lines of functions, by their addresses.
    fn first_lines(&self, source: &Source<'_>, symbols: &[Option<Sym<'_>>]) -> HashMap<u64, u32> {
        let symbols = symbols.iter().flatten();
        let with_lines = symbols.filter(|symbol| symbol.code_info.is_some());
        let starts: BTreeSet<u64> = with_lines.map(|symbol| symbol.addr).collect();
        let starts: Vec<u64> = starts.into_iter().collect();
        let found = symbols_at(&self.symbolizer, source, &starts);
        let lines = starts.into_iter().zip(&found);
        lines
            .filter_map(|(start, symbol)| Some((start, symbol.as_ref()?.code_info.as_ref()?.line?)))
            .collect()
    }
}

/// A frame with the names that were found for its address.
fn named(frame: &Frame, found: &Frame) -> Frame {
    Frame {
        module: Arc::clone(&frame.module),
        build_id: frame.build_id.clone(),
        offset: frame.offset,
        ..found.clone()
    }
}

/// The name of a variable, in place of a function.
fn found_data(label: &str) -> Frame {
    Frame {
        function: Some(label.to_owned()),
        ..Frame::default()
    }
}

/// The offsets to resolve in one module.
#[derive(Debug, Default)]
struct Module<'a> {
    offsets: Vec<u64>,
    build_id: Option<&'a str>,
}

impl Module<'_> {
    /// True if this module is still the file at the path, and no other replaced it.
    fn is_at(&self, path: &Path) -> bool {
        if !path.is_file() {
            return false;
        }
        let Some(wanted) = self.build_id else {
            return true;
        };
        // The runtime keeps 32 bytes of a build-id.
        build_id(path).is_some_and(|found| found.starts_with(wanted))
    }
}

fn source_calls(symbol: &Sym<'_>) -> Vec<SourceCall> {
    let call = |name: &str, place: Option<&CodeInfo<'_>>| SourceCall {
        function: name.to_owned(),
        file: place.map_or(String::new(), |place| place.to_path().display().to_string()),
        line: place.and_then(|place| place.line),
        column: place.and_then(|place| place.column).map(u32::from),
    };
    let inlined = symbol.inlined.iter().rev();
    let mut calls: Vec<SourceCall> = inlined
        .map(|function| call(&function.name, function.code_info.as_ref()))
        .collect();
    calls.push(call(&symbol.name, symbol.code_info.as_deref()));
    calls
}

fn found(symbol: &Sym<'_>, first_lines: &HashMap<u64, u32>, sources: &mut Sources) -> Frame {
    // For inlined calls, the function that contains the machine code is named, and the line in it:
    // its author knows that line, not the internals of a container's template.
    let place = symbol.code_info.as_deref();
    Frame {
        function: Some(symbol.name.to_string()),
        file: place.map(|place| place.to_path().display().to_string()),
        line: place.and_then(|place| place.line),
        column: place.and_then(column),
        function_line: first_lines.get(&symbol.addr).copied(),
        variable: place
            .and_then(|place| sources.variable(&place.to_path(), place.line?, column(place)?)),
        ..Frame::default()
    }
}

/// The column of a source position; 0 means that the compiler recorded none.
pub(crate) fn column(place: &CodeInfo<'_>) -> Option<u32> {
    place.column.map(u32::from).filter(|&column| column > 0)
}

#[cfg(test)]
mod tests {
    use super::{Symbols, build_id};
    use isotherm_model::site::{Frame, Site, SiteId, SiteKind};

    fn site(module: &str, offset: u64, build_id: Option<&str>) -> Site {
        Site {
            frames: vec![Frame {
                module: module.into(),
                offset,
                build_id: build_id.map(Into::into),
                ..Frame::default()
            }]
            .into(),
            ..Site::new(SiteId(9), SiteKind::Heap)
        }
    }

    #[test]
    fn what_is_not_there_or_is_no_module_stays_unknown() {
        let directory = tempfile::tempdir().expect("a directory");
        let text = directory.path().join("text");
        std::fs::write(&text, "not an ELF file").expect("writes");
        let text = text.to_str().expect("a path");
        for module in ["/nonexistent", "", "/dev/null", "/", text] {
            let mut sites = [site(module, 0x1234, None)];
            Symbols::default().symbolise(&mut sites);
            assert_eq!(sites[0].frames[0].function, None, "{module}");
        }
    }

    #[test]
    fn lengths_that_a_file_claims_are_not_believed() {
        let damaged: [&[u8]; 2] = [
            include_bytes!("../../../fuzz/corpus/program/crash-compressed-notes"),
            include_bytes!("../../../fuzz/corpus/program/crash-endless-note-name"),
        ];
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("program");
        for bytes in damaged {
            std::fs::write(&path, bytes).expect("writes");
            assert_eq!(build_id(&path), None, "{} bytes", bytes.len());
        }
    }

    #[test]
    fn another_module_of_the_same_path_is_not_asked() {
        let own = std::env::current_exe().expect("a path");
        let own = own.to_str().expect("a path");
        let mut sites = [site(own, 0x1234, Some("00112233"))];
        Symbols::default().symbolise(&mut sites);
        assert_eq!(sites[0].frames[0].function, None);
    }
}
