//! [`ObjectSelection`] is what ATMem's chunk selection computed for one data object: the size and number of its chunks, the missed reads
//! per byte from which a chunk is critical (θ), the missed reads per byte of its critical chunks (W, the paper's "weight"), and the share
//! of critical chunks from which their neighbours are promoted (θ'). It stands beside the chosen [`FastRange`](super::FastRange)s.

use isotherm_model::batch::Process;
use isotherm_model::site::SiteId;
use isotherm_model::units::Bytes;

/// The result for one object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObjectSelection {
    /// Process that owns the address space.
    pub process: Process,
    /// Site that allocated it.
    pub site: SiteId,
    /// First address.
    pub address: u64,
    /// Length.
    pub bytes: Bytes,
    /// Size of its chunks; the last may be shorter.
    pub chunk: Bytes,
    /// Number of its chunks.
    pub chunks: u32,
    /// θ (equation 2): missed reads per byte from which a chunk is critical.
    pub threshold: f64,
    /// W (equation 4): missed reads per byte of its critical chunks; `None` if it has none.
    pub weight: Option<f64>,
    /// θ' (equation 5): tree ratio from which it promotes; `None` without a weight.
    pub tree_threshold: Option<f64>,
}
