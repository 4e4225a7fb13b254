//! [`Access`] is one record of a trace: the memory accesses of a program, one by one, in the order of time. Traces are read from recordings
//! of other tools, or generated; the simulator, `isotherm curve` and the daemon's replay use them in place of a running program.

use crate::units::Nanos;

/// One access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Time from the start of the trace.
    pub time: Nanos,
    /// Address of the data.
    pub address: u64,
    /// True for a store, false for a load.
    pub write: bool,
}
