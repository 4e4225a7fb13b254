//! The observer's side of session files, that of `isotherm` outside the program: reads what the runtime inside a process publishes in its
//! file (`isotherm_abi::session`: modules, sites, arenas, mappings, large allocations, tiers of pages, accesses, counters, hints,
//! requests), and writes the requests that the runtime obeys and the answers to the program's. Also finds the files of processes, and reads
//! that of the agent in a Java VM.
//!
//! A file is read with `pread` and written with `pwrite`, not memory-mapped: the program, or any process that can write the session
//! directory, may truncate it at any time. A truncated mapping would kill the reader by SIGBUS; a truncated read is only short. The runtime
//! maps the file shared, so a written word reaches it.
//!
//! Order: the header with the counts is read first, the records after it, so every counted record
//! is complete. A number that the runtime changes meanwhile may be slightly old; none is used as an
//! offset.
//!
//! Every read and write relies on the checks of the header at [`SessionFile::open`]: each table is behind the header and
//! within the file.
//!
//! Modules are listed bottom-up.
#![forbid(unsafe_code)]

mod error;
mod name;
mod session_of;

mod header;

mod file;

mod accesses;
mod hints;
mod interface_requests;
mod outcomes;
mod moves;
mod text_area;
mod tables;
mod ring;
mod objects;
mod touches;

mod owners;
mod page_tiers;
mod tier_requests;

mod open_files;

mod java;

pub use error::SessionError;
pub use file::SessionFile;
pub use header::{Header, PageTierTables, Progress, Table};
pub use hints::MemoryHint;
pub use interface_requests::InterfaceCommand;
pub use java::{JavaFile, parse_java_name};
pub use moves::MoveCommand;
pub use name::{file_name, parse_name};
pub use objects::LargeAllocation;
pub use open_files::OpenFiles;
pub use owners::{Owned, Owner};
pub use page_tiers::{PageTiers, StaticTiers};
pub use session_of::session_of;
pub use tables::{Module, SessionSite, SiteNumbers};
pub use text_area::TextArea;
pub use tier_requests::RequestWord;
