//! [`InProgram`] has the runtime inside the program copy the whole chunks (2 MiB) of a range to a node (staged copy), and then gives the
//! range to another executor, which moves the rest: all of it where the runtime has no thread for the copies (mover) or does not answer.
//!
//! A request in the program's session file names the range ([`MoveCommand`]); the runtime's thread copies whole chunks and reports which.
//! The other executor queries the node of every page, so the outcome is the kernel's view, not the runtime's. A forked child has no mover,
//! and neither has any program on an older kernel.

use std::path::PathBuf;

use isotherm_abi::CHUNK_BYTES;
use isotherm_abi::session::{MOVE_CHUNKS, MoverState};
use isotherm_model::movement::{RangeAction, RangeOutcome};
use isotherm_model::outcome::Fate;
use isotherm_model::port::{Clock, RangeExecutor};
use isotherm_model::units::Nanos;
use isotherm_session::{MoveCommand, OpenFiles, SessionError, SessionFile};

/// Interval at which the answer is polled. A chunk takes about half of it.
const LOOK: Nanos = Nanos(1_000_000);
/// The time limit of an answer: a request of [`MOVE_CHUNKS`] takes some 50 ms on an idle machine, and
/// a stopped program never answers.
const PATIENCE: Nanos = Nanos(500_000_000);

/// Sends requests to the runtimes of the programs whose session files are in a directory.
pub struct InProgram<E, C, F> {
    files: OpenFiles,
    /// Moves the rest, and reports the node of every page.
    pub rest: E,
    clock: C,
    /// Receives, once, the reason why a runtime does not move.
    say: Option<F>,
}

impl<E: RangeExecutor, C: Clock, F: FnOnce(&str)> InProgram<E, C, F> {
    /// `say` is called at most once, with the reason why a program has no mover.
    pub const fn new(directory: PathBuf, rest: E, clock: C, say: F) -> Self {
        Self {
            files: OpenFiles::new(directory),
            rest,
            clock,
            say: Some(say),
        }
    }

    /// Requests copies of the chunks of a range, in as many requests as needed.
    fn copy(&mut self, action: &RangeAction) -> Copied {
        let start = action.range.start.next_multiple_of(CHUNK_BYTES);
        let mut copied = Copied::none(start);
        let chunks = action.range.end().saturating_sub(start) / CHUNK_BYTES;
        let Ok(file) = self.files.of(action.process) else {
            return copied;
        };
        for first in (0..chunks).step_by(MOVE_CHUNKS as usize) {
            let asked = MoveCommand {
                node: action.node.0,
                start: start + first * CHUNK_BYTES,
                chunks: (chunks - first).min(u64::from(MOVE_CHUNKS)) as u32,
            };
            match ask(file, &self.clock, &asked) {
                Ok(MoveReply::Moved(moved)) => copied.moved.push(moved),
                Ok(MoveReply::NoMover(why)) => {
                    if let (Some(why), Some(say)) = (why, self.say.take_if(|_| why.is_some())) {
                        say(why);
                    }
                    break;
                }
                // The session file cannot be used; the kernel's migration does not need it.
                Ok(MoveReply::Late) | Err(_) => break,
            }
        }
        copied
    }
}

impl<E: RangeExecutor, C: Clock, F: FnOnce(&str)> RangeExecutor for InProgram<E, C, F> {
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
        let copied = self.copy(&action);
        copied.correct(self.rest.carry_out(action))
    }
}

enum MoveReply {
    /// Bit n: chunk n was moved.
    Moved(u64),
    /// The program has no mover; the reason if the user should know it.
    NoMover(Option<&'static str>),
    /// No answer in time; a request without an answer is not overwritten.
    Late,
}

fn ask(
    file: &SessionFile,
    clock: &impl Clock,
    asked: &MoveCommand,
) -> Result<MoveReply, SessionError> {
    let state = file.mover_state()?;
    if state != MoverState::Running as u32 {
        return Ok(MoveReply::NoMover(reason(state)));
    }
    let Some(number) = file.request_move(asked)? else {
        return Ok(MoveReply::Late);
    };
    let until = clock.now().saturating_add(PATIENCE);
    loop {
        if let Some(moved) = file.move_answer(number)? {
            return Ok(MoveReply::Moved(moved));
        }
        if clock.now() >= until {
            return Ok(MoveReply::Late);
        }
        clock.sleep(LOOK);
    }
}

/// The reason why a program does not move memory itself; `None` if it was not asked to.
fn reason(state: u32) -> Option<&'static str> {
    let reasons = [
        (
            MoverState::NoUserfaultfd,
            "userfaultfd may not serve the kernel's accesses; run as root, set \
             vm.unprivileged_userfaultfd=1, or give access to /dev/userfaultfd",
        ),
        (
            MoverState::OldKernel,
            "the kernel lacks UFFDIO_MOVE or PAGEMAP_SCAN; Linux 6.8 has both",
        ),
        (
            MoverState::NoPagemap,
            "/proc/self/pagemap cannot be read in the program; mount /proc",
        ),
        (
            MoverState::NoResources,
            "its thread could not be started; raise `ulimit -u` or `ulimit -v`",
        ),
        (
            MoverState::Trapping,
            "the source trapped-pages takes pages away already; use another source",
        ),
    ];
    let known = reasons.iter().find(|(known, _)| *known as u32 == state);
    known.map(|(_, why)| *why)
}

/// The chunks of a range that were copied.
struct Copied {
    /// First address of the first chunk.
    start: u64,
    /// One bit for each chunk, [`MOVE_CHUNKS`] in a word.
    moved: Vec<u64>,
}

impl Copied {
    const fn none(start: u64) -> Self {
        Self {
            start,
            moved: Vec::new(),
        }
    }

    fn holds(&self, address: u64) -> bool {
        let chunk = address.checked_sub(self.start).map(|at| at / CHUNK_BYTES);
        let bit = |chunk: u64| {
            let word = self.moved.get((chunk / u64::from(MOVE_CHUNKS)) as usize);
            word.is_some_and(|word| word >> (chunk % u64::from(MOVE_CHUNKS)) & 1 == 1)
        };
        chunk.is_some_and(bit)
    }

    /// The outcome of the other executor, with "already there" corrected to "moved" for the copied
    /// chunks.
    fn correct(&self, seen: RangeOutcome) -> RangeOutcome {
        if self.moved.iter().all(|word| *word == 0) {
            return seen;
        }
        let mut outcome = RangeOutcome::begin(seen.action);
        for (range, fate) in seen.ranges() {
            for chunk in range.cut(CHUNK_BYTES) {
                let fate = match *fate == Fate::AlreadyThere && self.holds(chunk.start) {
                    true => Fate::Moved,
                    false => fate.clone(),
                };
                outcome.push(chunk.bytes, fate);
            }
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::fs::File;
    use std::mem::offset_of;
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::placement_requests::tests::session_file;
    use isotherm_abi::session::{MoveRequest, SessionHeader};
    use isotherm_model::batch::Process;
    use isotherm_model::movement::{AddressRange, NodeId};
    use isotherm_model::units::Bytes;

    /// The offset of a field of the request in a session file.
    macro_rules! at {
        ($field:ident) => {
            (offset_of!(SessionHeader, moving) + offset_of!(MoveRequest, $field)) as u64
        };
    }

    const CHUNK: u64 = CHUNK_BYTES;

    /// Reports each chunk from the third on as moved now, the others as already there.
    struct Kernel;

    impl RangeExecutor for Kernel {
        fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
            let mut outcome = RangeOutcome::begin(action);
            let there = action.range.bytes.0.min(2 * CHUNK);
            outcome.push(Bytes(there), Fate::AlreadyThere);
            outcome.push(outcome.left(), Fate::Moved);
            outcome
        }
    }

    /// The runtime: each sleep of the caller lets it move the first chunk of a request.
    struct Runtime<'a> {
        file: &'a File,
        answers: bool,
        slept: Cell<u64>,
    }

    impl Clock for Runtime<'_> {
        fn now(&self) -> Nanos {
            Nanos(self.slept.get())
        }

        fn busy(&self) -> Nanos {
            Nanos::ZERO
        }

        fn sleep(&self, time: Nanos) {
            self.slept.set(self.slept.get() + time.0);
            if self.answers {
                let mut number = [0; 4];
                self.file.read_exact_at(&mut number, at!(asked)).unwrap();
                self.file
                    .write_all_at(&1_u64.to_ne_bytes(), at!(moved))
                    .unwrap();
                self.file.write_all_at(&number, at!(answered)).unwrap();
            }
        }
    }

    /// The fates of four chunks and a half, and the messages.
    fn moved(state: MoverState, answers: bool) -> (Vec<(u64, Fate)>, Vec<String>, u64) {
        let dir = tempfile::tempdir().unwrap();
        let file = session_file(&dir.path().join("7.0"));
        file.write_all_at(&(state as u32).to_ne_bytes(), at!(state))
            .unwrap();
        let said = RefCell::new(Vec::new());
        let clock = Runtime {
            file: &file,
            answers,
            slept: Cell::new(0),
        };
        let say = |why: &str| said.borrow_mut().push(why.to_owned());
        let mut mover = InProgram::new(dir.path().to_owned(), Kernel, clock, say);
        let action = RangeAction {
            process: Process { pid: 7, image: 0 },
            range: AddressRange {
                start: CHUNK / 2,
                bytes: Bytes(4 * CHUNK + CHUNK / 2),
            },
            node: NodeId(1),
        };
        let outcome = &mover.execute(&[action, action])[1];
        let parts = outcome.parts.iter();
        let parts = parts.map(|part| (part.bytes.0, part.fate.clone()));
        let slept = mover.clock.slept.get();
        let parts = parts.collect();
        drop(mover);
        (parts, said.into_inner(), slept)
    }

    #[test]
    fn what_the_runtime_moved_is_told_from_what_was_there() {
        let (parts, said, _) = moved(MoverState::Running, true);
        // The first half chunk and half of the second whole one were already there.
        let expected = [
            (CHUNK / 2, Fate::AlreadyThere),
            (CHUNK, Fate::Moved),
            (CHUNK / 2, Fate::AlreadyThere),
            (2 * CHUNK + CHUNK / 2, Fate::Moved),
        ];
        assert_eq!(parts, expected);
        assert!(said.is_empty(), "{said:?}");
    }

    #[test]
    fn a_program_without_a_mover_is_moved_all_the_same_and_the_reason_said_once() {
        let (parts, said, slept) = moved(MoverState::OldKernel, false);
        assert_eq!(parts[0], (2 * CHUNK, Fate::AlreadyThere));
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("Linux 6.8"), "{said:?}");
        assert_eq!(slept, 0);
        assert!(moved(MoverState::Absent, false).1.is_empty());
    }

    #[test]
    fn a_program_that_does_not_answer_is_waited_for_once() {
        let (parts, _, slept) = moved(MoverState::Running, false);
        assert_eq!(parts[0], (2 * CHUNK, Fate::AlreadyThere));
        assert_eq!(slept, PATIENCE.0);
    }

    #[test]
    fn every_reason_has_words() {
        for state in 2..=MoverState::Trapping as u32 {
            assert!(reason(state).is_some(), "{state}");
        }
        assert_eq!(reason(MoverState::Absent as u32), None);
    }
}
