//! Writes requests that the runtime's mover thread move chunks to a node ([`MoveRequest`](isotherm_abi::session::MoveRequest)), and reads
//! that thread's state and answers.

use isotherm_abi::session::MOVE_CHUNKS;

use crate::error::SessionError;
use crate::file::{SessionFile, at};

/// The chunks to move, and where to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveCommand {
    /// The target node.
    pub node: u32,
    /// First address, a multiple of the chunk size.
    pub start: u64,
    /// Number of chunks; at most the first [`MOVE_CHUNKS`] of them are requested.
    pub chunks: u32,
}

impl SessionFile {
    /// A `MoverState` number: whether the runtime moves memory.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn mover_state(&self) -> Result<u32, SessionError> {
        self.read(at!(moving.state))
    }

    /// Writes a request and returns its number; `None` while an earlier request has no answer, which is not
    /// overwritten.
    ///
    /// # Errors
    /// The file was cut short, or cannot be written.
    pub fn request_move(&self, command: &MoveCommand) -> Result<Option<u32>, SessionError> {
        let number: u32 = self.read(at!(moving.asked))?;
        if self.read::<u32>(at!(moving.answered))? != number {
            return Ok(None);
        }
        let number = number.wrapping_add(1);
        let chunks = command.chunks.min(MOVE_CHUNKS);
        self.write(at!(moving.node), &command.node)?;
        self.write(at!(moving.start), &command.start)?;
        self.write(at!(moving.chunks), &chunks)?;
        self.write(at!(moving.asked), &number)?;
        Ok(Some(number))
    }

    /// The chunks that the request with this number moved, bit n for chunk n; `None` before its answer.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn move_answer(&self, number: u32) -> Result<Option<u64>, SessionError> {
        if self.read::<u32>(at!(moving.answered))? != number {
            return Ok(None);
        }
        Ok(Some(self.read(at!(moving.moved))?))
    }
}
