//! [`FrameFiles`] knows the sites whose frames (callers) each file of the frames table holds, and the files that have to be written: those
//! with new sites, and those whose frames got names at the end of the recording.
//!
//! The files grow as those of every log table do, but their rows are made of the sites when a file is written.

use std::collections::BTreeSet;

use isotherm_model::site::SiteId;

use crate::layout::Table;
use crate::log::{FULL_EPOCHS, FULL_ROWS};

/// A file of the table.
#[derive(Debug, Default)]
struct FrameFile {
    sites: Vec<SiteId>,
    rows: usize,
    epochs: u32,
    /// True where it differs from what is on disk.
    dirty: bool,
}

/// All files of the table; only the last one still grows.
#[derive(Debug, Default)]
pub(crate) struct FrameFiles {
    files: Vec<FrameFile>,
    /// Sites whose frames changed since they were written.
    renamed: BTreeSet<SiteId>,
}

impl FrameFiles {
    /// Adds the new sites of one epoch, each with its number of frames.
    pub(crate) fn push(&mut self, new: Vec<(SiteId, usize)>) {
        let has_room =
            |file: &FrameFile| file.dirty || (file.rows < FULL_ROWS && file.epochs < FULL_EPOCHS);
        if !self.files.last().is_some_and(has_room) {
            self.files.push(FrameFile::default());
        }
        if let Some(file) = self.files.last_mut() {
            file.epochs += 1;
            file.dirty |= !new.is_empty();
            for (site, frames) in new {
                file.sites.push(site);
                file.rows += frames;
            }
        }
    }

    /// Notes that the frames of a site are others than those that were written.
    pub(crate) fn renamed(&mut self, site: SiteId) {
        self.renamed.insert(site);
    }

    /// The files to write, and the sites of each.
    pub(crate) fn pending(&self) -> impl Iterator<Item = (String, &[SiteId])> {
        let is_old = |file: &&FrameFile| file.sites.iter().any(|id| self.renamed.contains(id));
        let numbered = (0..).zip(&self.files);
        let changed = numbered.filter(move |(_, file)| file.dirty || is_old(file));
        changed.map(|(number, file)| (Table::Frames.file(number), file.sites.as_slice()))
    }

    /// Notes that the pending files were written.
    pub(crate) fn written(&mut self) {
        self.renamed.clear();
        for file in &mut self.files {
            file.dirty = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FrameFiles;
    use crate::log::FULL_ROWS;
    use isotherm_model::site::SiteId;

    fn pending(files: &FrameFiles) -> Vec<(String, Vec<SiteId>)> {
        let pending = files.pending();
        pending
            .map(|(file, sites)| (file, sites.to_vec()))
            .collect()
    }

    #[test]
    fn a_full_file_is_written_again_only_for_a_site_of_its_own() {
        let [first, second, third] = [1, 2, 3].map(SiteId);
        let names = ["frames-000000.parquet", "frames-000001.parquet"].map(str::to_owned);
        let mut files = FrameFiles::default();
        files.push(vec![(first, FULL_ROWS)]);
        files.written();
        files.push(vec![(second, 4)]);
        assert_eq!(pending(&files), [(names[1].clone(), vec![second])]);
        files.written();
        files.push(Vec::new());
        assert_eq!(pending(&files), []);
        files.push(vec![(third, 4)]);
        assert_eq!(pending(&files), [(names[1].clone(), vec![second, third])]);
        files.written();
        files.renamed(first);
        assert_eq!(pending(&files), [(names[0].clone(), vec![first])]);
        files.written();
        assert_eq!(pending(&files), []);
    }
}
