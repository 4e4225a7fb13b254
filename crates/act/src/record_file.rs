//! `RecordFile` is a text file that the daemon writes before it changes the kernel (promotion knobs, memory taken offline), so that after a
//! crash its next start restores what was changed. The file is complete or absent at any moment; its first line names the kind of record,
//! and each further line is one changed thing with its state, as words.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use isotherm_sys::files::read_input_text;

/// The error in a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct RecordError {
    path: PathBuf,
    why: String,
}

/// The path and the kind of a record.
#[derive(Clone, Debug)]
pub(crate) struct RecordFile {
    /// The file.
    pub(crate) path: PathBuf,
    /// Its first line.
    pub(crate) first_line: &'static str,
    /// Largest record that is read.
    pub(crate) bytes_max: u64,
}

impl RecordFile {
    /// The facts of the record, each added by its words; none where there is no record. `form` shows a line as it should be.
    ///
    /// # Errors
    /// The file cannot be read, or a line is not of the form: why.
    pub(crate) fn read<T: Default>(
        &self,
        form: &str,
        mut add: impl FnMut(&mut T, &[&str]) -> Option<()>,
    ) -> Result<T, RecordError> {
        let mut facts = T::default();
        let text = match read_input_text(&self.path, self.bytes_max) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(facts),
            read => read.map_err(|error| self.error(error))?,
        };
        let mut lines = text.lines();
        if lines.next() != Some(self.first_line) {
            let why = format!("the first line is not \"{}\"", self.first_line);
            return Err(self.error(why));
        }
        for (line, number) in lines.zip(2..) {
            let words: Vec<&str> = line.split(' ').collect();
            add(&mut facts, &words)
                .ok_or_else(|| self.error(format!("line {number} is not `{form}`")))?;
        }
        Ok(facts)
    }

    /// Replaces the record by these facts; removes it where there are none. The change is on disk before this returns.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write(&self, facts: &[String]) -> Result<(), RecordError> {
        self.replace(facts).map_err(|error| self.error(error))
    }

    fn error(&self, why: impl ToString) -> RecordError {
        RecordError {
            path: self.path.clone(),
            why: why.to_string(),
        }
    }

    fn replace(&self, facts: &[String]) -> io::Result<()> {
        if facts.is_empty() {
            return match fs::remove_file(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed,
            };
        }
        let new = self.path.with_extension("new");
        let mut file = fs::File::create(&new)?;
        writeln!(file, "{}\n{}", self.first_line, facts.join("\n"))?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        let directory = self.path.parent().unwrap_or(Path::new("."));
        fs::File::open(directory)?.sync_all()
    }
}
