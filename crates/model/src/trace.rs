//! A trace: the accesses of a program to memory, one by one, in the order in which they happened.

use crate::units::Nanos;

/// One access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// When, from the start of the trace.
    pub time: Nanos,
    /// Address of the data.
    pub address: u64,
    /// True for a store, false for a load.
    pub write: bool,
}
