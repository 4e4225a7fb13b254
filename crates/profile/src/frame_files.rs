//! The files of the frames table, by the sites whose frames each holds.
//!
//! They grow as those of every log table do, but their rows are made of the sites when a file is written: frames get
//! names when a recording ends, and the file that holds them is then written once more.

use std::collections::BTreeSet;

use isotherm_model::site::SiteId;

use crate::layout::Table;
use crate::log::{FULL_EPOCHS, FULL_ROWS};

/// One file.
#[derive(Debug, Default)]
struct FrameFile {
    sites: Vec<SiteId>,
    rows: usize,
    epochs: u32,
    /// True where it differs from what is on disk.
    dirty: bool,
}

/// All of them; only the last one still grows.
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
