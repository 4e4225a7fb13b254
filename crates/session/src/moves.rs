//! Writes requests that the runtime's mover thread move chunks to a node ([`MoveRequest`](isotherm_abi::session::MoveRequest)), and reads
//! that thread's state and answers.

use std::mem::offset_of;
use std::os::unix::fs::FileExt;

use isotherm_abi::session::{MOVE_CHUNKS, MoveRequest, SessionHeader};

use crate::error::SessionError;
use crate::file::SessionFile;

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

/// The offset of a field of the request in a session file.
macro_rules! at {
    ($field:ident) => {
        (offset_of!(SessionHeader, moving) + offset_of!(MoveRequest, $field)) as u64
    };
}

impl SessionFile {
    /// A `MoverState` number: whether the runtime moves memory.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn mover_state(&self) -> Result<u32, SessionError> {
        self.read(at!(state))
    }

    /// Writes a request and returns its number; `None` while an earlier request has no answer, which is not
    /// overwritten.
    ///
    /// # Errors
    /// The file was cut short, or cannot be written.
    pub fn request_move(&self, command: &MoveCommand) -> Result<Option<u32>, SessionError> {
        let number: u32 = self.read(at!(asked))?;
        if self.read::<u32>(at!(answered))? != number {
            return Ok(None);
        }
        let number = number.wrapping_add(1);
        let chunks = command.chunks.min(MOVE_CHUNKS);
        self.file
            .write_all_at(&command.node.to_ne_bytes(), at!(node))?;
        self.file
            .write_all_at(&command.start.to_ne_bytes(), at!(start))?;
        self.file.write_all_at(&chunks.to_ne_bytes(), at!(chunks))?;
        self.file.write_all_at(&number.to_ne_bytes(), at!(asked))?;
        Ok(Some(number))
    }

    /// The chunks that the request with this number moved, bit n for chunk n; `None` before its answer.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn move_answer(&self, number: u32) -> Result<Option<u64>, SessionError> {
        if self.read::<u32>(at!(answered))? != number {
            return Ok(None);
        }
        Ok(Some(self.read(at!(moved))?))
    }
}
