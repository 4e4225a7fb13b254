//! What a source of accessed bits needs to know to look.

use std::collections::BTreeMap;
use std::path::Path;

use isotherm_model::batch::Process;
use isotherm_model::units::Nanos;

use super::memory::ProcessMemory;
use isotherm_model::port::Clock;

/// One look at the processes that are watched.
#[derive(Clone, Copy)]
pub struct ScanContext<'a> {
    /// Time, and what the looking costs.
    pub clock: &'a dyn Clock,
    /// Where `proc` is.
    pub proc_root: &'a Path,
    /// What is resident of each process.
    pub resident: &'a BTreeMap<Process, ProcessMemory>,
    /// Bytes of a page.
    pub page: u64,
    /// Time since the last look.
    pub span: Nanos,
}
