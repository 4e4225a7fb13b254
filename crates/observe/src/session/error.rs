//! The error of every reader of session files.

/// Why a session file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Its header is still empty; look again later.
    #[error("it is still empty")]
    NotYet,
    /// It is not what the runtime writes.
    #[error("{0}")]
    Wrong(String),
    /// It could not be read.
    #[error("{0}")]
    Unreadable(#[from] std::io::Error),
}
