//! The record on disk of knobs that were taken over: what a next start puts back after a death.
//!
//! ```text
//! isotherm kernel promotion 1
//! numa_balancing was 1 set 2
//! scan_period_min_ms was 1000 set 200 100
//! ```
//!
//! More than one value after `set`: the first was set, and the last was about to be.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use super::knob::{Knob, KnobError, TakenKnob, TakenKnobs};
use crate::record_file;

/// First line of a record.
const RECORD: &str = "isotherm kernel promotion 1";

/// Largest record that is read: eight lines take 400 bytes.
const RECORD_BYTES: u64 = 64 << 10;

/// The record on disk.
#[derive(Clone, Debug)]
pub struct KnobRecord {
    path: PathBuf,
}

impl KnobRecord {
    /// In this directory, which only its owner may write.
    #[must_use]
    pub fn within(directory: &Path) -> Self {
        Self {
            path: directory.join("kernel-promotion"),
        }
    }

    /// The knobs of the record; none where there is no record.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn read(&self) -> Result<TakenKnobs, KnobError> {
        match isotherm_sys::files::read_input_text(&self.path, RECORD_BYTES) {
            Ok(text) => parse(&text).map_err(|why| self.error(why)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(TakenKnobs::new()),
            Err(error) => Err(self.error(error)),
        }
    }

    /// Replaces the record; removes it where no knob is left. On disk before it returns.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, taken: &TakenKnobs) -> Result<(), KnobError> {
        let text = (!taken.is_empty()).then(|| text(taken));
        let written = record_file::replace(&self.path, text.as_deref());
        written.map_err(|error| self.error(error))
    }

    fn error(&self, why: impl ToString) -> KnobError {
        KnobError::Record {
            path: self.path.display().to_string(),
            why: why.to_string(),
        }
    }
}

fn text(taken: &TakenKnobs) -> String {
    let mut text = format!("{RECORD}\n");
    for (knob, taken) in taken {
        let set: Vec<String> = taken.set.iter().map(u64::to_string).collect();
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "{} was {} set {}",
            knob.name(),
            taken.was,
            set.join(" ")
        );
    }
    text
}

fn parse(text: &str) -> Result<TakenKnobs, String> {
    let mut lines = text.lines();
    if lines.next() != Some(RECORD) {
        return Err(format!("the first line is not \"{RECORD}\""));
    }
    let mut taken = TakenKnobs::new();
    for (line, number) in lines.zip(2..) {
        let knob = parsed_line(line)
            .ok_or_else(|| format!("line {number} is not `numa_balancing was 1 set 2`"))?;
        taken.insert(knob.0, knob.1);
    }
    Ok(taken)
}

fn parsed_line(line: &str) -> Option<(Knob, TakenKnob)> {
    let words: Vec<&str> = line.split(' ').collect();
    let [name, "was", was, "set", set @ ..] = &words[..] else {
        return None;
    };
    let set: Option<Vec<u64>> = set.iter().map(|word| word.parse().ok()).collect();
    let set = set.filter(|values| !values.is_empty())?;
    let was = was.parse().ok()?;
    Some((Knob::from_name(name)?, TakenKnob { was, set }))
}

#[cfg(test)]
mod tests {
    use super::{Knob, KnobRecord, TakenKnob, TakenKnobs};

    #[test]
    fn a_record_is_read_back_and_removed_with_its_last_knob() {
        let directory = tempfile::tempdir().expect("a directory");
        let record = KnobRecord::within(directory.path());
        assert_eq!(record.read(), Ok(TakenKnobs::new()));
        let one = |was, set: &[u64]| TakenKnob {
            was,
            set: set.to_vec(),
        };
        let taken = TakenKnobs::from([
            (Knob::Balancing, one(1, &[2])),
            (Knob::ScanPeriodMin, one(1000, &[200, 100])),
        ]);
        record.write(&taken).expect("written");
        assert_eq!(record.read().as_ref(), Ok(&taken));
        record.write(&TakenKnobs::new()).expect("removed");
        record.write(&TakenKnobs::new()).expect("removed before");
        let left = std::fs::read_dir(directory.path()).expect("a directory");
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn a_damaged_record_is_refused_with_its_line() {
        let directory = tempfile::tempdir().expect("a directory");
        let record = KnobRecord::within(directory.path());
        let first = "isotherm kernel promotion 1\n";
        for (text, wrong) in [
            (String::new(), "the first line"),
            (format!("{first}numa_balancing was x set 2\n"), "line 2"),
            (format!("{first}numa_balancing was 1 set\n"), "line 2"),
            (format!("{first}../../etc/passwd was 1 set 2\n"), "line 2"),
            (
                format!("{first}numa_balancing was 1 set 2\nscan_size_mb was 1\n"),
                "line 3",
            ),
        ] {
            std::fs::write(directory.path().join("kernel-promotion"), text).expect("written");
            let error = record.read().expect_err("damaged").to_string();
            assert!(error.contains(wrong), "{error}");
        }
    }
}
