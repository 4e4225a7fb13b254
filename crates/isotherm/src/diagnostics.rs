//! `Diagnostics` prints the warnings and errors of the steps of an observed run, each once, even if its figures change. It also words the
//! error of a profile that could not be completed at the end of the run.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::anyhow;
use isotherm_console::Console;
use isotherm_model::profile::Segment;
use isotherm_observe::live::LiveError;
use isotherm_pipeline::StepReport;

#[derive(Debug)]
pub(crate) struct Diagnostics {
    console: Console,
    said: BTreeSet<String>,
    unwritten: bool,
}

impl Diagnostics {
    pub(crate) const fn new(console: Console) -> Self {
        Self {
            console,
            said: BTreeSet::new(),
            unwritten: false,
        }
    }

    /// Prints the warnings of a step's sources, or that it observed nothing. Returns its report.
    pub(crate) fn observed<F>(
        &mut self,
        report: Result<StepReport<F>, LiveError>,
    ) -> Option<StepReport<F>> {
        if let Err(error) = &report {
            self.once(&format!("nothing could be observed: {error}"));
        }
        let report = report.ok()?;
        self.sources(&report.segment);
        Some(report)
    }

    fn sources(&mut self, segment: &Segment) {
        let sources = segment.sources.iter();
        for source in sources.filter(|source| !source.warning.is_empty()) {
            self.once(&format!("source {}: {}", source.name, source.warning));
        }
    }

    /// Prints that an epoch could not be written.
    pub(crate) fn unwritten(&mut self, error: &isotherm_profile::Error) {
        self.unwritten = true;
        self.once(&error.to_string());
    }

    /// The error at the end of a recording to `path`; without the reason if it was printed while the
    /// program ran.
    pub(crate) fn at_the_end(&self, error: isotherm_profile::Error, path: &Path) -> anyhow::Error {
        let kept_epochs = match &error {
            isotherm_profile::Error::Finish { kept_epochs, .. } => *kept_epochs,
            isotherm_profile::Error::Removed(_) => 0,
            _ => return error.into(),
        };
        let shown = path.display();
        match (self.unwritten, kept_epochs) {
            (false, _) => error.into(),
            (true, 0) => anyhow!("{shown}: nothing of the run could be recorded"),
            (true, kept) => {
                anyhow!("{shown}: the end of the run is not recorded, {kept} of its epochs are")
            }
        }
    }

    /// Prints a sentence unless it was printed before.
    fn once(&mut self, sentence: &str) {
        if self.is_new(sentence) {
            self.console.warn(sentence);
        }
    }

    /// Records a sentence and returns true if it is new. The same sentence with other
    /// figures is not new, because many warnings have a count that grows with every epoch.
    fn is_new(&mut self, sentence: &str) -> bool {
        let is_figure = |letter: char| letter.is_ascii_digit() || letter == '.';
        self.said.insert(
            sentence
                .chars()
                .filter(|&letter| !is_figure(letter))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use isotherm_profile::Error;

    use super::{Console, Diagnostics};

    #[test]
    fn a_removed_recording_is_explained_once_and_its_end_claims_no_epochs() {
        let mut diagnostics = Diagnostics::new(Console::new(false));
        let removed = || Error::Removed(PathBuf::from("a.iso"));
        let end = |diagnostics: &Diagnostics| {
            let error = diagnostics.at_the_end(removed(), Path::new("a.iso"));
            error.to_string()
        };
        assert_eq!(end(&diagnostics), removed().to_string());
        diagnostics.unwritten(&removed());
        assert!(!diagnostics.is_new(&removed().to_string()));
        assert_eq!(
            end(&diagnostics),
            "a.iso: nothing of the run could be recorded"
        );
    }

    #[test]
    fn a_trouble_that_only_grows_is_said_once() {
        let mut diagnostics = Diagnostics::new(Console::new(false));
        assert!(diagnostics.is_new("source timer: no samples in 10.1 ms"));
        assert!(!diagnostics.is_new("source timer: no samples in 12 ms"));
        assert!(diagnostics.is_new("source timer: throttled 3 times"));
    }
}
