//! [`Sysfs`] is a trait for the files by which the kernel is set up: [`SysfsFiles`] are those of this machine, or a copy of another one's
//! below a directory (`isotherm tiers --root`, tests), and a dry run puts an implementation in their place that writes nothing.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Files of sysfs and of `/proc`, by their path from the root.
pub trait Sysfs {
    /// The names in a directory.
    ///
    /// # Errors
    /// It cannot be read.
    fn names(&self, directory: &Path) -> io::Result<Vec<String>>;

    /// The text of a file, without blanks around it.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&self, file: &Path) -> io::Result<String>;

    /// Writes a word into a file.
    ///
    /// # Errors
    /// The kernel refused.
    fn write(&mut self, file: &Path, word: &str) -> io::Result<()>;
}

/// The files of the machine below a root.
#[derive(Clone, Debug)]
pub struct SysfsFiles {
    root: PathBuf,
}

impl SysfsFiles {
    /// The files below this root: `/`.
    #[must_use]
    pub fn below(root: &Path) -> Self {
        let root = root.to_owned();
        Self { root }
    }
}

impl Sysfs for SysfsFiles {
    fn names(&self, directory: &Path) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(self.root.join(directory))?;
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect()
    }

    fn read(&self, file: &Path) -> io::Result<String> {
        let text = fs::read_to_string(self.root.join(file))?;
        Ok(text.trim().to_owned())
    }

    fn write(&mut self, file: &Path, word: &str) -> io::Result<()> {
        // sysfs refuses a truncation, and a missing file must not be created.
        let mut file = fs::OpenOptions::new()
            .write(true)
            .open(self.root.join(file))?;
        file.write_all(word.as_bytes())
    }
}
