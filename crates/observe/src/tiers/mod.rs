//! The tiers of a machine: as its firmware and kernel describe them, or as a file says.

mod detect;
mod file;

pub use detect::{DetectError, detect};
pub use file::{FileError, parse, print, read_file, write_file};
