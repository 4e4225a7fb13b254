//! [`SessionFile::read_interface_request`] reads from a session file the program's waiting request to its observer, the `isotherm` process
//! that serves it: to begin or end a profile, or to optimize ([`InterfaceCommand`]). Also writes the observer's answer, and states in the
//! file that an observer serves the program.

use std::mem::offset_of;
use std::sync::atomic::{Ordering, fence};

use isotherm_abi::from_number;
use isotherm_abi::interface::{
    FREQUENCY_MAX, InterfaceAction, InterfacePolicy, InterfaceRequest, InterfaceResult,
    SHARE_WHOLE_PPM,
};
use zerocopy::IntoBytes;

use crate::error::SessionError;
use crate::file::{SessionFile, at};

/// A request of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceCommand {
    /// Its number, which the answer names.
    pub number: u32,
    /// `None`: a number that is no action; to be answered with [`isotherm_abi::interface::InterfaceStatus::Invalid`].
    pub action: Option<InterfaceAction>,
    /// `None`: a number that is no policy; to be answered with [`isotherm_abi::interface::InterfaceStatus::Invalid`].
    pub policy: Option<InterfacePolicy>,
    /// Samples a second of each thread, at most [`FREQUENCY_MAX`]; `None`: as the run chooses.
    pub frequency: Option<u32>,
    /// Most bytes of fast memory; 0 where the share limits.
    pub fast_bytes: u64,
    /// Most fast memory in millionths of the recorded data, at most [`SHARE_WHOLE_PPM`]; 0: the capacity of the run.
    pub share_ppm: u64,
}

impl SessionFile {
    /// The program's request that waits for an answer. `None` where there is none, or while one is being written.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn read_interface_request(&self) -> Result<Option<InterfaceCommand>, SessionError> {
        let number: u32 = self.read(at!(interface.asked))?;
        if number == self.read::<u32>(at!(interface.answered))? {
            return Ok(None);
        }
        // The words of a request are read after the number that announces them.
        fence(Ordering::Acquire);
        let request: InterfaceRequest = self.read(at!(interface.asked))?;
        let command = InterfaceCommand {
            number,
            action: from_number(request.kind.into_inner()),
            policy: from_number(request.policy.into_inner()),
            frequency: Some(request.frequency.into_inner())
                .filter(|frequency| *frequency > 0)
                .map(|frequency| frequency.min(FREQUENCY_MAX)),
            fast_bytes: request.fast_bytes.into_inner(),
            share_ppm: request.share_ppm.into_inner().min(SHARE_WHOLE_PPM),
        };
        Ok((self.read::<u32>(at!(interface.asked))? == number).then_some(command))
    }

    /// Answers the request with this number, and states whether a profile is being taken now. The numbers of the answer are those
    /// of an optimization, and 0 in other answers. False where the program waits for another request by now: it gave this one up.
    ///
    /// # Errors
    /// The file was cut short, or cannot be written.
    pub fn answer_interface_request(
        &self,
        number: u32,
        answer: &InterfaceResult,
        profiling: bool,
    ) -> Result<bool, SessionError> {
        if self.read::<u32>(at!(interface.asked))? != number {
            return Ok(false);
        }
        self.write(at!(interface.profiling), &u32::from(profiling))?;
        let words = &answer.as_bytes()[offset_of!(InterfaceResult, status)..];
        self.write(at!(interface.status), words)?;
        fence(Ordering::Release);
        self.write(at!(interface.answered), &number)?;
        Ok(true)
    }

    /// States that a process answers the program's requests, and that it still does: to be called at least once a second
    /// between requests. Process 0: none does any more.
    ///
    /// # Errors
    /// The file was cut short, or cannot be written.
    pub fn serve_interface(&self, observer: u32) -> Result<(), SessionError> {
        let heartbeat = self.read::<u32>(at!(interface.heartbeat))?.wrapping_add(1);
        self.write(at!(interface.heartbeat), &heartbeat)?;
        self.write(at!(interface.observer_pid), &observer)
    }
}
