//! The input of one scan by a source of accessed bits.

use std::collections::BTreeMap;
use std::path::Path;

use isotherm_model::batch::Process;
use isotherm_model::units::Nanos;

use super::memory::ProcessMemory;
use isotherm_model::port::Clock;

/// One scan of the watched processes.
#[derive(Clone, Copy)]
pub struct ScanContext<'a> {
    /// Time, and the cost of the scan.
    pub clock: &'a dyn Clock,
    /// The directory `proc`.
    pub proc_root: &'a Path,
    /// The resident memory of each process.
    pub resident: &'a BTreeMap<Process, ProcessMemory>,
    /// Bytes of a page.
    pub page: u64,
    /// Time since the last scan.
    pub span: Nanos,
}
