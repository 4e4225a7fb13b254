//! The kernel's own balancing of memory nodes: hint faults as a source.

use std::path::Path;

use isotherm_sys::perf::PerfEventAttributes;

use super::{ALLOW_PERF, Finding, available, degraded, missing};
use crate::probe::Probe;
use crate::source::hint_faults::{BALANCING, REMEDY, balancing_mode};
use crate::source::perf_ring::refusal;

/// Whether touches of pages that the kernel unmaps can be sampled.
pub(super) fn hint_faults(root: &Path, probe: &dyn Probe) -> Finding {
    const NAME: &str = "hint faults";
    if !root.join(BALANCING).exists() {
        return missing(
            NAME,
            format!("the kernel has no /{BALANCING}"),
            "a kernel with CONFIG_NUMA_BALANCING",
        );
    }
    if let Err(error) = probe.event(&PerfEventAttributes::page_faults(1)) {
        return missing(NAME, refusal(&error), ALLOW_PERF);
    }
    match balancing_mode(root) {
        Err(why) => degraded(NAME, why, REMEDY),
        Ok(2) => available(
            NAME,
            "touches of slow memory, for the daemon with accessed_bits = \"hint-faults\"",
        ),
        Ok(mode) => available(
            NAME,
            format!(
                "touches of all nodes (numa_balancing is {mode}), for the daemon with accessed_bits = \"hint-faults\""
            ),
        ),
    }
}
