//! Requests of the program to its observer ([`InterfaceRequest`]), and the observer's answers.

use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use isotherm_abi::interface::{
    FREQUENCY_MAX, InterfaceAction, InterfacePolicy, InterfaceRequest, InterfaceStatus, REASONS,
    SHARE_WHOLE_PPM,
};
use isotherm_abi::session::SessionHeader;
use zerocopy::IntoBytes;

use crate::error::SessionError;
use crate::file::SessionFile;

/// A request of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceCommand {
    /// Its number, which the answer names.
    pub number: u32,
    /// `None`: a number that is no action; to be answered with [`InterfaceStatus::Invalid`].
    pub action: Option<InterfaceAction>,
    /// `None`: a number that is no policy; to be answered with [`InterfaceStatus::Invalid`].
    pub policy: Option<InterfacePolicy>,
    /// Samples a second of each thread, at most [`FREQUENCY_MAX`]; `None`: as the run chooses.
    pub frequency: Option<u32>,
    /// Most bytes of fast memory; 0 where the share limits.
    pub fast_bytes: u64,
    /// Most fast memory in millionths of the recorded data, at most [`SHARE_WHOLE_PPM`]; 0: the capacity of the run.
    pub share_ppm: u64,
}

/// The answer to a request. The numbers are those of an optimization, and 0 in other answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceAnswer {
    /// What the program's call returns.
    pub status: InterfaceStatus,
    /// Bytes moved to fast memory.
    pub promoted_bytes: u64,
    /// Bytes moved to slow memory.
    pub demoted_bytes: u64,
    /// Bytes that were already in the tier chosen for them.
    pub placed_bytes: u64,
    /// Bytes that could not be moved.
    pub failed_bytes: u64,
    /// Bytes chosen for fast memory.
    pub selected_bytes: u64,
    /// Samples on which the choice rests.
    pub samples: u64,
    /// Time of the choice, in nanoseconds.
    pub selection_ns: u64,
    /// Time of the moves, in nanoseconds.
    pub migration_ns: u64,
    /// Bytes of fast memory that the choice may use.
    pub capacity_bytes: u64,
    /// Bytes that stay where they are, by [`isotherm_abi::interface::InterfaceReason`].
    pub stayed_bytes: [u64; REASONS],
    /// Samples a second of each thread's processor time; 0 where no timer sampled.
    pub frequency: u64,
}

impl InterfaceAnswer {
    /// An answer without numbers.
    #[must_use]
    pub const fn of_status(status: InterfaceStatus) -> Self {
        Self {
            status,
            promoted_bytes: 0,
            demoted_bytes: 0,
            placed_bytes: 0,
            failed_bytes: 0,
            selected_bytes: 0,
            samples: 0,
            selection_ns: 0,
            migration_ns: 0,
            capacity_bytes: 0,
            stayed_bytes: [0; REASONS],
            frequency: 0,
        }
    }

    /// The words from [`InterfaceRequest::status`] to the result's last.
    fn bytes(&self) -> Vec<u8> {
        let mut answered = InterfaceRequest {
            status: (self.status as u32).into(),
            promoted_bytes: self.promoted_bytes.into(),
            demoted_bytes: self.demoted_bytes.into(),
            placed_bytes: self.placed_bytes.into(),
            failed_bytes: self.failed_bytes.into(),
            selected_bytes: self.selected_bytes.into(),
            samples: self.samples.into(),
            selection_ns: self.selection_ns.into(),
            migration_ns: self.migration_ns.into(),
            capacity_bytes: self.capacity_bytes.into(),
            stayed_bytes: self.stayed_bytes.map(AtomicU64::new),
            frequency_used: self.frequency.into(),
            ..InterfaceRequest::default()
        };
        let end = offset_of!(InterfaceRequest, observer_pid);
        answered.as_mut_bytes()[offset_of!(InterfaceRequest, status)..end].to_vec()
    }
}

/// The offset of a field of the request in a session file.
macro_rules! at {
    ($field:ident) => {
        (offset_of!(SessionHeader, interface) + offset_of!(InterfaceRequest, $field)) as u64
    };
}

impl SessionFile {
    /// The program's request that waits for an answer. `None` where there is none, or while one is being written.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn read_interface_request(&self) -> Result<Option<InterfaceCommand>, SessionError> {
        let number: u32 = self.read(at!(asked))?;
        if number == self.read::<u32>(at!(answered))? {
            return Ok(None);
        }
        // The words of a request are read after the number that announces them.
        fence(Ordering::Acquire);
        let request: InterfaceRequest = self.read(at!(asked))?;
        let command = InterfaceCommand {
            number,
            action: InterfaceAction::from_number(request.kind.into_inner()),
            policy: InterfacePolicy::from_number(request.policy.into_inner()),
            frequency: Some(request.frequency.into_inner())
                .filter(|frequency| *frequency > 0)
                .map(|frequency| frequency.min(FREQUENCY_MAX)),
            fast_bytes: request.fast_bytes.into_inner(),
            share_ppm: request.share_ppm.into_inner().min(SHARE_WHOLE_PPM),
        };
        Ok((self.read::<u32>(at!(asked))? == number).then_some(command))
    }

    /// Answers the request with this number, and states whether a profile is being taken now. False where the program waits
    /// for another request by now: it gave this one up.
    ///
    /// # Errors
    /// The file was cut short, or cannot be written.
    pub fn answer_interface_request(
        &self,
        number: u32,
        answer: &InterfaceAnswer,
        profiling: bool,
    ) -> Result<bool, SessionError> {
        if self.read::<u32>(at!(asked))? != number {
            return Ok(false);
        }
        self.write_interface_word(at!(profiling), u32::from(profiling))?;
        self.file.write_all_at(&answer.bytes(), at!(status))?;
        fence(Ordering::Release);
        self.write_interface_word(at!(answered), number)?;
        Ok(true)
    }

    /// States that a process answers the program's requests, and that it still does: to be called at least once a second
    /// between requests. Process 0: none does any more.
    ///
    /// # Errors
    /// The file was cut short, or cannot be written.
    pub fn serve_interface(&self, observer: u32) -> Result<(), SessionError> {
        let heartbeat = self.read::<u32>(at!(heartbeat))?.wrapping_add(1);
        self.write_interface_word(at!(heartbeat), heartbeat)?;
        self.write_interface_word(at!(observer_pid), observer)
    }

    fn write_interface_word(&self, offset: u64, value: u32) -> Result<(), SessionError> {
        Ok(self.file.write_all_at(&value.to_ne_bytes(), offset)?)
    }
}
