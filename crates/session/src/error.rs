//! [`SessionError`] is the error of every reader and writer of session files, and of the reader of the Java agent's file.

/// Why a session file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Its header is still empty; try again later.
    #[error("it is still empty")]
    NotYet,
    /// It is not a valid session file.
    #[error("{0}")]
    Wrong(String),
    /// It could not be read.
    #[error("{0}")]
    Unreadable(#[from] std::io::Error),
}
