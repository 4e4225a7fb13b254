//! [`Log`] holds the last file of a table that grows by epochs, for the writer: in numbered files, each full after a number of rows or
//! epochs. The rows of each epoch are added to it, and the next number begins when it is full.

use crate::tables::Row;

/// Rows after which a file is full. Each epoch writes the last file anew, so this bounds the work
/// of an epoch (some milliseconds) and, with [`FULL_EPOCHS`], the number of files of a long run.
pub(crate) const FULL_ROWS: usize = 16_384;
/// Epochs after which a file is full.
pub(crate) const FULL_EPOCHS: u32 = 256;

/// The file at the end of a log table: the only one that still changes.
#[derive(Debug)]
pub(crate) struct Log<R> {
    number: u32,
    epochs: u32,
    rows: Vec<R>,
    /// True where rows were added that are not in the file.
    dirty: bool,
}

impl<R: Row> Log<R> {
    pub(crate) const fn new() -> Self {
        Self {
            number: 0,
            epochs: 0,
            rows: Vec::new(),
            dirty: false,
        }
    }

    /// Adds the rows of one epoch. Rows that are not written yet stay in the same file.
    pub(crate) fn push(&mut self, rows: impl IntoIterator<Item = R>) {
        let full = self.rows.len() >= FULL_ROWS || self.epochs >= FULL_EPOCHS;
        if full && !self.dirty {
            self.number += 1;
            self.epochs = 0;
            self.rows.clear();
        }
        let before = self.rows.len();
        self.rows.extend(rows);
        self.epochs += 1;
        self.dirty |= self.rows.len() > before;
    }

    /// The file to write and its rows, where there are new ones.
    pub(crate) fn pending(&self) -> Option<(String, &[R])> {
        self.dirty
            .then(|| (R::TABLE.file(self.number), self.rows.as_slice()))
    }

    /// Notes that the pending file was written.
    pub(crate) const fn written(&mut self) {
        self.dirty = false;
    }
}

#[cfg(test)]
mod tests {
    use super::{FULL_EPOCHS, FULL_ROWS, Log};
    use isotherm_model::profile::EpochSpan;

    #[test]
    fn a_full_file_is_left_alone_and_the_next_number_begins() {
        let mut log = Log::<EpochSpan>::new();
        log.push(vec![EpochSpan::default(); FULL_ROWS]);
        assert_eq!(log.pending().unwrap().0, "epochs-000000.parquet");
        log.written();
        assert!(log.pending().is_none());
        log.push([EpochSpan::default()]);
        let (file, rows) = log.pending().unwrap();
        assert_eq!((file.as_str(), rows.len()), ("epochs-000001.parquet", 1));
    }

    #[test]
    fn an_epoch_without_rows_writes_nothing_and_yet_ages_the_file() {
        let mut log = Log::<EpochSpan>::new();
        log.push([EpochSpan::default()]);
        log.written();
        for _ in 0..FULL_EPOCHS {
            log.push([]);
            assert!(log.pending().is_none());
        }
        log.push([EpochSpan::default()]);
        assert_eq!(log.pending().unwrap().0, "epochs-000001.parquet");
    }

    #[test]
    fn rows_that_could_not_be_written_are_kept_for_the_next_try() {
        let mut log = Log::<EpochSpan>::new();
        for _ in 0..3 {
            log.push(vec![EpochSpan::default(); FULL_ROWS]);
        }
        let (file, rows) = log.pending().unwrap();
        assert_eq!(file, "epochs-000000.parquet");
        assert_eq!(rows.len(), 3 * FULL_ROWS);
    }
}
