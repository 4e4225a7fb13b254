//! [`KernelPromotionStatus`] is the part of the daemon's status on the kernel's own promotion (NUMA balancing), which the daemon paces.

use isotherm_model::units::Bytes;
use serde::{Deserialize, Serialize};

use crate::words::counted;

/// The kernel's own promotion, at the daemon's pace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelPromotionStatus {
    /// The daemon sets it; false after it let go.
    pub active: bool,
    /// Why it let go; empty while it is active.
    pub why: String,
    /// Time between two parts of a round of unmapping.
    pub period_ms: u64,
    /// Time within which a page must be touched to be hot.
    pub threshold_ms: u64,
    /// Page faults of unmapped pages since the start, of all programs.
    pub hint_faults: u64,
    /// Bytes that the kernel promoted since the start, of all programs.
    pub promoted_bytes: u64,
    /// Bytes that its reclaim demoted, likewise.
    pub demoted_bytes: u64,
}

impl KernelPromotionStatus {
    /// Its moves and the pace that the daemon set, or why it let go.
    pub(super) fn line(&self) -> String {
        let (up, down) = (Bytes(self.promoted_bytes), Bytes(self.demoted_bytes));
        let faults = counted(self.hint_faults, "hint fault");
        let did = format!("{up} promoted at {faults}, {down} demoted by reclaim");
        match self.active {
            true => format!(
                "kernel: {did}; a round each {} ms, hot within {} ms",
                self.period_ms, self.threshold_ms
            ),
            false => format!("kernel: {did}; let go, because {}", self.why),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::KernelPromotionStatus;

    pub(in super::super) fn status() -> KernelPromotionStatus {
        KernelPromotionStatus {
            active: true,
            period_ms: 200,
            threshold_ms: 50,
            hint_faults: 1_234,
            promoted_bytes: 6 << 20,
            ..KernelPromotionStatus::default()
        }
    }

    #[test]
    fn the_line_has_the_pace_or_the_reason_why_there_is_none() {
        assert_eq!(
            status().line(),
            "kernel: 6 MiB promoted at 1,234 hint faults, 0 B demoted by reclaim; a round each 200 ms, hot within 50 ms"
        );
        let let_go = KernelPromotionStatus {
            active: false,
            why: "another owner".to_owned(),
            ..status()
        };
        assert!(let_go.line().ends_with("let go, because another owner"));
    }
}
