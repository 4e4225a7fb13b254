//! Opens the ELF file of a program or library for the readers of its contents, and reads its build-id.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use isotherm_sys::files::open_input;
use object::Object;
use object::read::ReadCache;

/// Largest program or library that is read. Only the needed parts are read.
pub(crate) const PROGRAM_BYTES: u64 = 64 << 30;

/// A parsed file, whose parts are read when they are needed.
pub(crate) type ProgramFile<'a> = object::File<'a, &'a ReadCache<File>>;

/// Opens the file at a path and returns what `read` finds in it; `None` where it is no ELF file that can be read.
pub(crate) fn in_program<T>(
    path: &Path,
    read: impl FnOnce(&ProgramFile<'_>) -> Option<T>,
) -> Option<T> {
    let cache = ReadCache::new(open_input(path, PROGRAM_BYTES).ok()?);
    read(&object::File::parse(&cache).ok()?)
}

/// The GNU build-id of a program or library in hexadecimal, where it has one.
#[must_use]
pub fn build_id(path: &Path) -> Option<String> {
    in_program(path, |file| Some(build_id_of(file)?.as_ref().to_owned()))
}

/// The GNU build-id of a parsed file in hexadecimal, where it has one.
pub(crate) fn build_id_of<'data>(file: &impl Object<'data>) -> Option<Arc<str>> {
    let bytes = file.build_id().ok().flatten()?;
    let hexadecimal: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(hexadecimal.into())
}
