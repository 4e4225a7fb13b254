//! [`KnobRecord`] is the record on disk of the knobs that were taken over, which the next start restores after a crash.
//!
//! ```text
//! isotherm kernel promotion 1
//! scan_period_min_ms was 1000 set 200 100
//! numa_balancing was 1 set 2
//! ```
//!
//! Two values after `set` were recorded before a write: the knob has the first, or already the last.

use std::path::Path;

use super::knob::{Knob, KnobError, TakenKnob, TakenKnobs};
use crate::record_file::RecordFile;

/// The record on disk of the knobs that were taken over.
#[derive(Clone, Debug)]
pub struct KnobRecord(RecordFile);

impl KnobRecord {
    /// The record in this directory, which only its owner may write.
    #[must_use]
    pub fn within(directory: &Path) -> Self {
        Self(RecordFile {
            path: directory.join("kernel-promotion"),
            first_line: "isotherm kernel promotion 1",
            // Eight lines take 400 bytes.
            bytes_max: 64 << 10,
        })
    }

    /// The knobs of the record; none where there is no record.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn read(&self) -> Result<TakenKnobs, KnobError> {
        let add = |taken: &mut TakenKnobs, words: &[&str]| {
            let (knob, values) = taken_knob(words)?;
            taken.insert(knob, values);
            Some(())
        };
        Ok(self.0.read("numa_balancing was 1 set 2", add)?)
    }

    /// Replaces the record; removes it where no knob is left. The change is on disk before this returns.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, taken: &TakenKnobs) -> Result<(), KnobError> {
        let line = |(knob, taken): (&Knob, &TakenKnob)| {
            let set: Vec<String> = taken.set.iter().map(u64::to_string).collect();
            format!("{} was {} set {}", knob.name(), taken.was, set.join(" "))
        };
        let lines: Vec<String> = taken.iter().map(line).collect();
        Ok(self.0.write(&lines)?)
    }
}

fn taken_knob(words: &[&str]) -> Option<(Knob, TakenKnob)> {
    let [name, "was", was, "set", set @ ..] = words else {
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
