//! [`PageRequestWriter`] moves pages between the tiers of an emulated machine: it writes requests into the session file of the program,
//! which the runtime inside the program obeys, and can wait until it has.
//!
//! The number of a tier is used as a node here: 0 is the fast tier, 1 the slow one. The runtime obeys requests in their order and reports
//! nothing for each; the tiers that it publishes show in the next epoch which pages have moved.

use std::path::PathBuf;

use isotherm_model::batch::Process;
use isotherm_model::movement::{RangeAction, RangeOutcome};
use isotherm_model::outcome::{Fate, Reason};
use isotherm_model::port::{Clock, RangeExecutor};
use isotherm_model::units::Nanos;
use isotherm_session::{OpenFiles, SessionError};

use crate::session_requests::request;

/// Interval at which the runtime's progress is looked up.
const LOOK: Nanos = Nanos(1_000_000);

/// Writes requests to move pages into session files.
#[derive(Debug)]
pub struct PageRequestWriter {
    files: OpenFiles,
}

impl PageRequestWriter {
    /// Writes to the session files in this directory, of one run.
    #[must_use]
    pub const fn new(directory: PathBuf) -> Self {
        Self {
            files: OpenFiles::new(directory),
        }
    }

    /// Writes to the session files of any running process of this user; `proc_root` is `/proc`.
    #[must_use]
    pub const fn of_running(proc_root: PathBuf) -> Self {
        Self {
            files: OpenFiles::of_running(proc_root),
        }
    }

    /// Waits until the runtimes of these processes have obeyed all requests, as long as they go on obeying; for a program that does not run
    /// at most `patience`.
    pub fn wait(&mut self, processes: &[Process], clock: &impl Clock, patience: Nanos) {
        for process in processes {
            let mut before = u64::MAX;
            let mut since = clock.now();
            while let Ok(waiting) = self.waiting(*process)
                && waiting > 0
                && clock.now().saturating_sub(since) < patience
            {
                if waiting < before {
                    (before, since) = (waiting, clock.now());
                }
                clock.sleep(LOOK);
            }
        }
    }

    /// Number of requests that the runtime of a process has not obeyed yet.
    pub(super) fn waiting(&mut self, process: Process) -> Result<u64, SessionError> {
        self.files.of(process)?.page_requests_waiting()
    }
}

impl RangeExecutor for PageRequestWriter {
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
        // Where there is no place, the runtime is late: a thread that waits in the kernel obeys nothing.
        let left = Fate::NotAttempted(Reason::OutOfTime);
        let fate = request(&mut self.files, action.process, left, |file| {
            file.request_pages(action.range, action.node.0)
        });
        RangeOutcome::whole(action, fate)
    }
}

#[cfg(test)]
mod tests {
    use super::PageRequestWriter;
    use crate::session_bytes::{POOL, SessionBytes};
    use isotherm_abi::page_tiers::PageTable;
    use isotherm_abi::session::SessionHeader;
    use isotherm_model::batch::Process;
    use isotherm_model::movement::{AddressRange, NodeId, RangeAction};
    use isotherm_model::outcome::{Fate, Reason};
    use isotherm_model::port::RangeExecutor;
    use isotherm_model::units::Bytes;
    use std::mem::offset_of;

    fn action(pid: u32, page: u64, pages: u64) -> RangeAction {
        RangeAction {
            process: Process { pid, image: 0 },
            range: AddressRange {
                start: POOL + page * 4096,
                bytes: Bytes(pages * 4096),
            },
            node: NodeId(1),
        }
    }

    #[test]
    fn requests_fill_the_ring_in_order_and_wait_where_it_is_full() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("7.0");
        let session = SessionBytes::new(7, 7, 0);
        session.save(&path);
        let slots = session.layout.request_slots();
        assert!(slots > 0);
        let mut writer = PageRequestWriter::new(directory.path().to_owned());
        for number in 0..slots {
            let outcome = writer.carry_out(action(7, number, 3));
            assert_eq!(outcome.parts[0].fate, Fate::Requested);
        }
        let late = writer.carry_out(action(7, 0, 1));
        let fate = Fate::NotAttempted(Reason::OutOfTime);
        assert_eq!(late.parts[0].fate, fate);
        let bytes = std::fs::read(&path).unwrap();
        let long = |at: u64| u64::from_ne_bytes(*bytes[at as usize..].first_chunk().unwrap());
        let requested = offset_of!(SessionHeader, pages) + offset_of!(PageTable, requested);
        assert_eq!(long(requested as u64), slots);
        let [.., ring, _] = session.layout.offsets();
        assert_eq!(long(ring + 2 * 16), POOL + 2 * 4096);
        assert_eq!(long(ring + 2 * 16 + 8), 3 | 1 << 32);
    }

    #[test]
    fn a_process_without_a_session_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let mut writers = [
            PageRequestWriter::new(directory.path().to_owned()),
            PageRequestWriter::of_running(directory.path().to_owned()),
        ];
        for writer in &mut writers {
            let outcome = writer.carry_out(action(8, 0, 1));
            let Fate::NotAttempted(Reason::Other(why)) = &outcome.parts[0].fate else {
                panic!("{outcome:?}")
            };
            assert!(why.contains("process 8"), "{why}");
        }
    }
}
