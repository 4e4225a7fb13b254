//! [`read`] reads the allocation sites that the compiler pass wrote into a program, from its file; the program need not run and may be
//! stripped. A [`CompiledSite`] has the id, the callee and the source position. The resolver names frames by them; `isotherm sites` lists
//! them, and `isotherm import` and the search for a plan's sites in a new build find sites among them.
//!
//! The layout is [`isotherm_abi::site`]'s. The file is not trusted: an invalid reference yields no
//! name, and no more than a named bound is read.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use isotherm_abi::site::{DescribedSite, RECORD_BYTES, SECTION, VERSION};
use isotherm_model::site::{Frame, SiteId};
use isotherm_sys::files::open_input;
use object::read::ReadCache;
use object::{Object, ObjectKind, ObjectSection};

use crate::program_file::PROGRAM_BYTES;
use crate::segment::bytes_at;

/// Longest name that is accepted; a longer one is cut.
const TEXT_BYTES_MAX: u64 = 4096;

/// Largest section that is accepted: four million sites.
const SECTION_BYTES_MAX: u64 = 4 << 20 << 6;

/// A call that allocates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledSite {
    /// Its hash, the same in every build that does not change the function.
    pub id: SiteId,
    /// Address of its record, as an ELF virtual address.
    pub address: u64,
    /// The called function: `malloc`, `operator new`, the name of a wrapper.
    pub callee: String,
    /// The function that holds the call.
    pub function: String,
    /// Source file, relative to the project's root if it is below.
    pub path: String,
    /// Line; `None` if unknown to the compiler.
    pub line: Option<u32>,
    /// Column; `None` if unknown to the compiler.
    pub column: Option<u32>,
}

impl CompiledSite {
    /// The names in its record, as those of a frame.
    pub(crate) fn names(&self) -> Frame {
        Frame {
            function: Some(self.function.clone()),
            file: Some(self.path.clone()),
            line: self.line,
            column: self.column,
            ..Frame::default()
        }
    }
}

/// Why the sites of a file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct CompiledSiteError {
    path: PathBuf,
    why: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The sites of a program or library, by the addresses of their records; none where the pass did
/// not build it.
///
/// # Errors
/// See [`CompiledSiteError`].
pub fn read(path: &Path) -> Result<BTreeMap<u64, CompiledSite>, CompiledSiteError> {
    let failed = |why: &str| CompiledSiteError {
        path: path.to_owned(),
        why: why.to_owned(),
        source: None,
    };
    let not_elf = |error: object::Error| CompiledSiteError {
        source: Some(error.into()),
        ..failed("is not an ELF file that can be read; name a program or a shared library")
    };
    let opened = open_input(path, PROGRAM_BYTES).map_err(|error| match error.kind() {
        ErrorKind::IsADirectory => failed("is a directory; name a program or a shared library"),
        _ => CompiledSiteError {
            source: Some(error.into()),
            ..failed("cannot be read; name a program or a shared library")
        },
    })?;
    let cache = ReadCache::new(opened);
    let file = object::File::parse(&cache).map_err(not_elf)?;
    let Some(section) = file.section_by_name(SECTION) else {
        return Ok(BTreeMap::new());
    };
    if file.kind() == ObjectKind::Relocatable {
        return Err(failed(
            "is an object file; its sites can be listed once it is linked",
        ));
    }
    if section.size() > SECTION_BYTES_MAX {
        return Ok(BTreeMap::new());
    }
    let records = section.data().map_err(not_elf)?;
    let mut sites = BTreeMap::new();
    let addresses = (section.address()..).step_by(RECORD_BYTES);
    for (record, address) in records.chunks_exact(RECORD_BYTES).zip(addresses) {
        let record = Record { record, address };
        match record.word(std::mem::offset_of!(DescribedSite, version)) {
            VERSION => drop(sites.insert(address, record.described(&file))),
            found => {
                return Err(failed(&format!(
                    "its sites are of version {found}, this isotherm knows version {VERSION}; compile the \
                     program again with the isotherm-cc of this version"
                )));
            }
        }
    }
    Ok(sites)
}

/// The bytes of one record.
struct Record<'a> {
    record: &'a [u8],
    address: u64,
}

impl Record<'_> {
    fn word(&self, offset: usize) -> u32 {
        self.record
            .get(offset..offset + 4)
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, u32::from_le_bytes)
    }

    /// The text to which the word at this offset refers; empty for an invalid reference.
    fn text<'data>(&self, offset: usize, file: &impl Object<'data>) -> String {
        let distance = i64::from(self.word(offset) as i32);
        (self.address + offset as u64)
            .checked_add_signed(distance)
            .and_then(|place| text_at(file, place))
            .unwrap_or_default()
    }

    fn described<'data>(&self, file: &impl Object<'data>) -> CompiledSite {
        let known = |number: u32| (number != 0).then_some(number);
        let low = u64::from(self.word(0));
        CompiledSite {
            id: SiteId(low | u64::from(self.word(4)) << 32),
            address: self.address,
            callee: self.text(std::mem::offset_of!(DescribedSite, callee), file),
            function: self.text(std::mem::offset_of!(DescribedSite, function), file),
            path: self.text(std::mem::offset_of!(DescribedSite, path), file),
            line: known(self.word(std::mem::offset_of!(DescribedSite, line))),
            column: known(self.word(std::mem::offset_of!(DescribedSite, column))),
        }
    }
}

/// The text that ends in NUL at an address of the program.
pub(crate) fn text_at<'data>(file: &impl Object<'data>, place: u64) -> Option<String> {
    let bytes = bytes_at(file, place, TEXT_BYTES_MAX)?;
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    Some(String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::read;
    use std::path::Path;

    #[test]
    fn a_program_that_the_pass_did_not_build_has_no_sites() {
        let own = std::env::current_exe().expect("a path");
        assert!(read(&own).expect("an ELF file").is_empty());
    }

    #[test]
    fn what_is_no_program_is_refused_with_its_name() {
        let absent = read(Path::new("/nonexistent"));
        let absent = absent.expect_err("there is none").to_string();
        assert!(absent.contains("cannot be read"), "{absent}");
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("text");
        std::fs::write(&file, "not an ELF file").expect("writes");
        let error = read(&file).expect_err("refused").to_string();
        assert!(error.contains("text: is not an ELF file"), "{error}");
    }
}
