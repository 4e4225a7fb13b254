//! Session files: what the runtime inside a process tells us (`isotherm_abi::session`).
//!
//! A file is read with `pread`, not mapped: the program, or anyone who can write the session
//! directory, may cut it short at any time, which would kill a reader of a mapping by SIGBUS but
//! only shortens a read. Both see the same page cache, and one epoch reads a few megabytes at
//! most.
//!
//! Order: the header with the counts is read first, the records after it, so a record that is
//! counted is whole. A number that the runtime changes meanwhile may be a moment old; none is
//! used as an offset.

mod accesses;
mod error;
mod file;
mod header;
mod owners;
mod record;
mod tables;

pub use error::SessionError;
pub use file::SessionFile;
pub use header::{HEADER_BYTES, Header, Progress, Table};
pub use owners::{Owned, Owner};
pub use tables::{Module, SessionSite, SiteNumbers};

/// Pid and number of a session file's name, `<pid>.<n>`.
#[must_use]
pub fn parse_name(name: &str) -> Option<(u32, u32)> {
    let (pid, number) = name.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(pid) && digits(number)).then_some(())?;
    Some((pid.parse().ok()?, number.parse().ok()?))
}
