//! The tiers of a machine: as its firmware and kernel describe them, as a measurement finds them, or
//! as a file says.

mod detect;
mod file;
mod grouping;
pub mod limits;
pub mod measure;
pub mod nodes;

pub use detect::{DetectError, Detected, PlacedNode, detect, examine, examine_measured};
pub use file::{FileError, TiersFile, parse, print, read_file};
pub use grouping::View;
