//! A record on disk that is whole or absent at any moment: what a next start needs after a death.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

/// Replaces the file with this text; removes it where there is none. On disk before it returns.
///
/// # Errors
/// It cannot be written.
pub(crate) fn replace(path: &Path, text: Option<&str>) -> io::Result<()> {
    let Some(text) = text else {
        return match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
    };
    let new = path.with_extension("new");
    let mut file = fs::File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::File::open(directory)?.sync_all()
}
