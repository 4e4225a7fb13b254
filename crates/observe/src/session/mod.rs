//! Session files: the sites, arenas and counters that the runtime inside a process publishes
//! (`isotherm_abi::session`).
//!
//! A file is read with `pread`, not memory-mapped: the program, or any process that can write the
//! session directory, may truncate it at any time. A truncated mapping would kill the reader by
//! SIGBUS; a truncated read is only short. Both use the same page cache, and one epoch reads a few
//! megabytes at most.
//!
//! Order: the header with the counts is read first, the records after it, so every counted record
//! is complete. A number that the runtime changes meanwhile may be slightly old; none is used as an
//! offset.

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

/// Pid and number from a session file's name, `<pid>.<n>`.
#[must_use]
pub fn parse_name(name: &str) -> Option<(u32, u32)> {
    let (pid, number) = name.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(pid) && digits(number)).then_some(())?;
    Some((pid.parse().ok()?, number.parse().ok()?))
}
