//! Finds for `isotherm doctor` whether the kernel's own balancing of memory nodes can serve Isotherm: its hint faults as a source of
//! accesses, and its promotion, for which the daemon needs the files of [`PROMOTION_FILES`], in place of Isotherm's own moves.

use std::path::Path;

use isotherm_sys::perf::PerfEventAttributes;

use super::finding::{ALLOW_PERF, FeatureState, available, degraded, missing};
use crate::probe::Probe;
use crate::source::hint_faults::{BALANCING, REMEDY, balancing_mode};
use crate::source::perf_ring::refusal;

/// The files that the daemon writes while the kernel promotes: the switch, demotion, and the pace of the scan.
pub const PROMOTION_FILES: [&str; 8] = [
    BALANCING,
    "proc/sys/kernel/numa_balancing_promote_rate_limit_MBps",
    "sys/kernel/mm/numa/demotion_enabled",
    "sys/kernel/debug/sched/numa_balancing/hot_threshold_ms",
    "sys/kernel/debug/sched/numa_balancing/scan_delay_ms",
    "sys/kernel/debug/sched/numa_balancing/scan_period_min_ms",
    "sys/kernel/debug/sched/numa_balancing/scan_period_max_ms",
    "sys/kernel/debug/sched/numa_balancing/scan_size_mb",
];

/// Whether touches of pages that the kernel unmaps can be sampled.
pub(super) fn hint_faults(root: &Path, probe: &dyn Probe) -> FeatureState {
    if !root.join(BALANCING).exists() {
        return missing(
            format!("the kernel has no /{BALANCING}"),
            "a kernel with CONFIG_NUMA_BALANCING",
        );
    }
    if let Err(error) = probe.event(&PerfEventAttributes::page_faults(1)) {
        return missing(refusal(&error), ALLOW_PERF);
    }
    match balancing_mode(root) {
        Err(why) => degraded(why, REMEDY),
        Ok(2) => {
            available("touches of slow memory, for the daemon with accessed_bits = \"hint-faults\"")
        }
        Ok(mode) => available(format!(
            "touches of all nodes (numa_balancing is {mode}), for the daemon with accessed_bits = \"hint-faults\""
        )),
    }
}

/// Whether the kernel can promote at the touch, with knobs that the daemon can set.
pub(super) fn promotion(root: &Path) -> FeatureState {
    let absent = PROMOTION_FILES
        .iter()
        .find(|file| !root.join(file).exists());
    match absent {
        None => available("for the daemon, with CAP_SYS_ADMIN"),
        Some(file) => missing(
            format!("there is no /{file}"),
            "Linux 6.1 with CONFIG_NUMA_BALANCING and CONFIG_MIGRATION, and as root: mount -t debugfs debugfs /sys/kernel/debug",
        ),
    }
}
