//! What the stages of chunk selection find in one object.

use isotherm_model::batch::Process;
use isotherm_model::site::SiteId;
use isotherm_model::units::Bytes;

/// What was found in one object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObjectSelection {
    /// In whose address space.
    pub process: Process,
    /// Who made it.
    pub site: SiteId,
    /// First address.
    pub address: u64,
    /// Length.
    pub bytes: Bytes,
    /// Size of its chunks; the last may be shorter.
    pub chunk: Bytes,
    /// Number of its chunks.
    pub chunks: u32,
    /// θ (equation 2): missed reads a byte from which a chunk is critical.
    pub threshold: f64,
    /// W (equation 4): missed reads a byte of its critical chunks; none without any.
    pub weight: Option<f64>,
    /// θ' (equation 5): tree ratio from which it promotes; none without a weight.
    pub tree_threshold: Option<f64>,
}
