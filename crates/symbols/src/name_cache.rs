//! A [`NameCache`] keeps the names that the resolver found for addresses of code and of static data, in one file for each module, named by
//! the module's build-id, in a folder of the user.
//!
//! Reading the debugging information of one large library takes longer than a short program runs, with the same result
//! each time. The folder is `isotherm` in `$XDG_CACHE_HOME` (`~/.cache`); it is used only if no other user can access
//! it. A file holds the names of one module:
//!
//! ```text
//! isotherm-names 1
//! OFFSET <tab> FUNCTION <tab> FILE <tab> LINE <tab> COLUMN <tab> FIRST LINE <tab> VARIABLE
//! ```

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use isotherm_model::site::Frame;

/// First line of a file.
const FORMAT: &str = "isotherm-names 1";

/// Largest file that is read or written.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// Most bytes of all files; beyond that, the oldest are removed.
const ALL_BYTES_MAX: u64 = 64 << 20;

/// The folder of cached names.
#[derive(Clone, Debug)]
pub struct NameCache {
    folder: PathBuf,
}

impl NameCache {
    /// The folder of the user who runs this program; `None` if it cannot be created, or others can access it.
    #[must_use]
    pub fn of_user() -> Option<Self> {
        let absolute = |name: &str| {
            let path = std::env::var_os(name).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
        Self::in_folder(&caches?.join("isotherm"))
    }

    /// Opens a folder, and creates it if necessary.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Option<Self> {
        // The checks below apply to an existing folder too.
        let _ = DirBuilder::new().mode(0o700).recursive(true).create(folder);
        let found = folder.symlink_metadata().ok()?;
        let own = found.uid() == rustix::process::geteuid().as_raw();
        let private = found.is_dir() && found.mode() & 0o077 == 0;
        (own && private).then(|| Self {
            folder: folder.to_owned(),
        })
    }

    /// The cached names of a module, by offset, each a frame of which only the names are set; empty where the file is damaged.
    pub(crate) fn read(&self, build_id: &str) -> BTreeMap<u64, Frame> {
        self.try_read(build_id).unwrap_or_default()
    }

    fn try_read(&self, build_id: &str) -> Option<BTreeMap<u64, Frame>> {
        let path = self.path(build_id)?;
        let found = path.symlink_metadata().ok()?;
        if !found.is_file() || found.len() > FILE_BYTES_MAX {
            return None;
        }
        let mut text = String::new();
        let file = File::open(path).ok()?;
        file.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
        let mut lines = text.lines();
        (lines.next() == Some(FORMAT)).then(|| lines.filter_map(entry).collect())
    }

    /// Caches the names of a module. Names that cannot be cached are resolved again.
    pub(crate) fn write(&self, build_id: &str, names: &BTreeMap<u64, Frame>) {
        let text: String = names
            .iter()
            .filter_map(|(offset, found)| line(*offset, found))
            .collect();
        let text = format!("{FORMAT}\n{text}");
        if text.len() as u64 > FILE_BYTES_MAX {
            return;
        }
        if let Some(path) = self.path(build_id) {
            let is_new = !path.exists();
            let _ = self.replace(&path, &text);
            // A look at each file of the folder takes longer than to write one that is there already.
            if is_new {
                self.keep_small();
            }
        }
    }

    fn replace(&self, path: &Path, text: &str) -> std::io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(text.as_bytes())?;
        file.persist(path)?;
        Ok(())
    }

    /// Removes the oldest files if all together are too large.
    fn keep_small(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter_map(|entry| {
                let found = entry.metadata().ok().filter(fs::Metadata::is_file)?;
                Some((found.modified().ok()?, found.len(), entry.path()))
            })
            .collect();
        files.sort();
        let mut all: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in files {
            if all <= ALL_BYTES_MAX {
                return;
            }
            let _ = fs::remove_file(path);
            all -= bytes;
        }
    }

    /// The file of a module. It has another name once debugging information is installed.
    fn path(&self, build_id: &str) -> Option<PathBuf> {
        let is_name = build_id.len() > 2 && build_id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (first, rest) = build_id.split_at_checked(2).filter(|_| is_name)?;
        let apart = format!("/usr/lib/debug/.build-id/{first}/{rest}.debug");
        let kind = if Path::new(&apart).exists() {
            "debug"
        } else {
            "plain"
        };
        Some(self.folder.join(format!("{build_id}.{kind}")))
    }
}

/// A line of a file; `None` for an address without a function, because one may be found later, and for names
/// that a line cannot hold.
fn line(offset: u64, found: &Frame) -> Option<String> {
    let function = found.function.as_ref()?;
    let number = |number: Option<u32>| number.map_or(String::new(), |number| number.to_string());
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let cells = [
        format!("{offset:x}"),
        function.clone(),
        text(&found.file),
        number(found.line),
        number(found.column),
        number(found.function_line),
        text(&found.variable),
    ];
    let plain = cells.iter().all(|cell| !cell.contains(['\t', '\n', '\r']));
    plain.then(|| cells.join("\t") + "\n")
}

fn entry(line: &str) -> Option<(u64, Frame)> {
    let cells: Vec<&str> = line.split('\t').collect();
    let [
        offset,
        function,
        file,
        line,
        column,
        function_line,
        variable,
    ] = cells.as_slice()
    else {
        return None;
    };
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let found = Frame {
        function: text(function),
        file: text(file),
        line: line.parse().ok(),
        column: column.parse().ok(),
        function_line: function_line.parse().ok(),
        variable: text(variable),
        ..Frame::default()
    };
    Some((u64::from_str_radix(offset, 16).ok()?, found))
}

#[cfg(test)]
mod tests {
    use super::{Frame, NameCache};
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const BUILD: &str = "0123456789abcdef";

    fn names() -> BTreeMap<u64, Frame> {
        let found = |function: &str, line| Frame {
            function: Some(function.to_owned()),
            file: Some("/src/a b.c".to_owned()),
            line,
            variable: line.map(|_| "rows[i]".to_owned()),
            ..Frame::default()
        };
        BTreeMap::from([
            (0x10, found("main", Some(7))),
            (u64::MAX, found("operator new(unsigned long)", None)),
        ])
    }

    #[test]
    fn names_are_read_back_as_they_were_written_and_what_has_none_is_left_out() {
        let folder = tempfile::tempdir().expect("a directory");
        let cache = NameCache::in_folder(&folder.path().join("isotherm")).expect("a cache");
        assert!(cache.read(BUILD).is_empty());
        let mut more = names();
        more.insert(0x20, Frame::default());
        let two_lines = Some("two\nlines".to_owned());
        more.insert(
            0x30,
            Frame {
                function: two_lines,
                ..Frame::default()
            },
        );
        cache.write(BUILD, &more);
        assert_eq!(cache.read(BUILD), names());
        for name in ["", "..", "../../etc/passwd", "xyz"] {
            cache.write(name, &names());
            assert!(cache.read(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn a_damaged_file_knows_nothing_or_less() {
        let folder = tempfile::tempdir().expect("a directory");
        let cache = NameCache::in_folder(&folder.path().join("isotherm")).expect("a cache");
        cache.write(BUILD, &names());
        let path = cache.path(BUILD).expect("a path");
        let whole = fs::read(&path).expect("was written");
        for bytes in 0..whole.len() {
            fs::write(&path, &whole[..bytes]).expect("writes");
            assert!(cache.read(BUILD).len() <= 2);
        }
        fs::write(&path, b"isotherm-names 1\n\xff").expect("writes");
        assert!(cache.read(BUILD).is_empty());
    }

    #[test]
    fn a_folder_that_others_may_write_or_that_is_a_link_is_not_used() {
        let folder = tempfile::tempdir().expect("a directory");
        let (open, link) = (folder.path().join("open"), folder.path().join("link"));
        fs::create_dir(&open).expect("makes");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("changes");
        assert!(NameCache::in_folder(&open).is_none());
        fs::set_permissions(&open, fs::Permissions::from_mode(0o700)).expect("changes");
        assert!(NameCache::in_folder(&open).is_some());
        symlink(&open, &link).expect("links");
        assert!(NameCache::in_folder(&link).is_none());
    }
}
