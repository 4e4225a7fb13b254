//! [`PlacementRequestWriter`] requests the tier of a site's data from the runtime of a running program, by a word in its session file: on
//! the emulated pair of all its data, on real nodes of new data only.
//!
//! On the emulated pair a thread of the runtime reads the word and moves the data within a few milliseconds. On real nodes the runtime
//! reads it when the site's arena grows; existing data is moved from outside ([`crate::site_moves`]).

use std::path::PathBuf;

use isotherm_model::batch::Extent;
use isotherm_model::outcome::{Action, Fate, Outcome};
use isotherm_model::port::Executor;
use isotherm_session::{OpenFiles, RequestWord};

use crate::session_requests::request;

/// Writes requests into the session files of one run.
#[derive(Debug)]
pub struct PlacementRequestWriter {
    files: OpenFiles,
    word: RequestWord,
}

impl PlacementRequestWriter {
    /// Requests moves by the runtime's service thread, for the session files in this directory.
    #[must_use]
    pub const fn new(directory: PathBuf) -> Self {
        Self {
            files: OpenFiles::new(directory),
            word: RequestWord::Wanted,
        }
    }

    /// Requests the tier of new data only, for the session files in this directory.
    #[must_use]
    pub const fn placing(directory: PathBuf) -> Self {
        Self {
            files: OpenFiles::new(directory),
            word: RequestWord::Tier,
        }
    }

    /// Writes one request.
    pub(crate) fn one(&mut self, action: &Action) -> Fate {
        let left = Fate::NotAttempted("the site has no arena of its own".into());
        request(&mut self.files, action.process, left, |file| {
            file.request_tier(action.site, action.tier.0, self.word)
        })
    }
}

impl Executor for PlacementRequestWriter {
    fn execute(&mut self, actions: &[Action], _: &[Extent]) -> Vec<Outcome> {
        Outcome::of_each(actions, |action| self.one(action))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::PlacementRequestWriter;
    use crate::session_bytes::SessionBytes;
    use isotherm_abi::session::ArenaRecord;
    use isotherm_model::batch::Process;
    use isotherm_model::outcome::{Action, Fate};
    use isotherm_model::port::Executor;
    use isotherm_model::site::SiteId;
    use isotherm_model::tier::TierIndex;
    use isotherm_model::units::Bytes;
    use std::fs::File;
    use std::mem::offset_of;
    use std::os::unix::fs::FileExt;

    /// A session file with one site, hash 0x55, in arena 3.
    pub(crate) fn session_file(path: &std::path::Path) -> File {
        let mut bytes = SessionBytes::new(7, 7, 0);
        bytes.site(0, 0x55, &[], 1);
        bytes.arena(3, Some(0), Some(0));
        bytes.save(path);
        let mut options = File::options();
        options.read(true).write(true).open(path).unwrap()
    }

    fn word(file: &File, at: u64) -> u32 {
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, at).unwrap();
        u32::from_ne_bytes(bytes)
    }

    pub(crate) fn action(pid: u32, site: u64) -> Action {
        let process = Process { pid, image: 0 };
        Action {
            process,
            site: SiteId(site),
            tier: TierIndex(1),
            bytes: Bytes(4096),
        }
    }

    #[test]
    fn a_wish_lands_in_the_arena_of_the_site_and_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        let file = session_file(&dir.path().join("7.0"));
        let mut requests = PlacementRequestWriter::new(dir.path().to_owned());
        let outcomes = requests.execute(&[action(7, 0x55)], &[]);
        assert_eq!(outcomes[0].fate, Fate::Requested);
        let arenas = SessionBytes::new(7, 7, 0).layout.offsets()[2];
        let wanted = |arena: u64| {
            let record = arenas + arena * size_of::<ArenaRecord>() as u64;
            let at = record + offset_of!(ArenaRecord, wanted_tier) as u64;
            word(&file, at)
        };
        assert_eq!((wanted(3), wanted(0), wanted(4)), (1, 0, 0));
        let tier_of = |arena: u64| {
            let record = arenas + arena * size_of::<ArenaRecord>() as u64;
            word(&file, record + offset_of!(ArenaRecord, tier) as u64)
        };
        assert_eq!(tier_of(3), 0, "the runtime says itself where the data is");
        let mut placing = PlacementRequestWriter::placing(dir.path().to_owned());
        let outcomes = placing.execute(&[action(7, 0x55)], &[]);
        assert_eq!(outcomes[0].fate, Fate::Requested);
        assert_eq!((tier_of(3), tier_of(0), tier_of(4)), (1, 0, 0));
    }

    #[test]
    fn an_unknown_site_or_process_is_named_as_not_attempted() {
        let dir = tempfile::tempdir().unwrap();
        let _file = session_file(&dir.path().join("7.0"));
        let mut requests = PlacementRequestWriter::new(dir.path().to_owned());
        for outcome in requests.execute(&[action(7, 0x66), action(8, 0x55)], &[]) {
            assert!(matches!(outcome.fate, Fate::NotAttempted(_)), "{outcome:?}");
        }
    }
}
