//! [`FastMemoryNeed`] is the result of `isotherm plan --slowdown`: the least fast memory for a limit of slow-down, in words and as JSON.

use isotherm_model::units::Bytes;
use serde::Serialize;

use crate::words::percent;

/// Changes when a field changes its meaning or is removed.
pub const SCHEMA_VERSION: u32 = 1;

/// The least fast memory with which a program is expected to keep to a slow-down, over its time with all data fast.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FastMemoryNeed {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Name of the program.
    pub program: String,
    /// Name of the policy of the plan.
    pub policy: String,
    /// True where the tiers are emulated.
    pub emulated: bool,
    /// The slow-down that is allowed: 0.02 for 2 %.
    pub slowdown_limit: f64,
    /// The slow-down that the plan predicts; below 0 where tiers serve more bandwidth together than the fast one alone.
    pub expected_slowdown: f64,
    /// Capacity of the fast tier.
    pub fast_bytes: u64,
    /// Footprint of the program.
    pub footprint_bytes: u64,
    /// `fast_bytes` as a share of `footprint_bytes`.
    pub share_of_footprint: f64,
    /// The file of the plan.
    pub plan: String,
}

impl FastMemoryNeed {
    /// The sentence, without a full stop.
    #[must_use]
    pub fn in_words(&self) -> String {
        let (fast, footprint) = (Bytes(self.fast_bytes), Bytes(self.footprint_bytes));
        let emulated = if self.emulated { ", emulated" } else { "" };
        let need = match fast > footprint {
            true => format!(
                "all of its memory in the fast tier ({fast}{emulated}; more than its footprint of {footprint}, because its sites are \
                 largest at different times and a plan has room for each at its largest)"
            ),
            false => {
                let share = percent(self.share_of_footprint);
                format!("{share} of its memory in the fast tier ({fast} of {footprint}{emulated})")
            }
        };
        let slower = match self.slowdown_limit > 0.0 {
            true => format!("at most {} slower", exact_percent(self.slowdown_limit)),
            false => "no slower".to_owned(),
        };
        let program = &self.program;
        format!("{program} needs {need} to be {slower} than with all of it fast")
    }
}

/// A share in percent as it was given, without the error of its floating point: `2 %`, `0.25 %`.
#[must_use]
pub fn exact_percent(share: f64) -> String {
    format!("{} %", (share * 1e8).round() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::{FastMemoryNeed, exact_percent};

    fn need() -> FastMemoryNeed {
        FastMemoryNeed {
            schema_version: 1,
            program: "app".into(),
            policy: "thermos".into(),
            emulated: false,
            slowdown_limit: 0.02,
            expected_slowdown: 0.018,
            fast_bytes: 152 << 20,
            footprint_bytes: 380 << 20,
            share_of_footprint: 0.4,
            plan: "app.plan".into(),
        }
    }

    #[test]
    fn the_sentence_says_how_much_of_its_memory_a_program_needs_in_fast_memory() {
        assert_eq!(
            need().in_words(),
            "app needs 40 % of its memory in the fast tier (152 MiB of 380 MiB) to be at most 2 % slower than with all of it fast"
        );
        let emulated = FastMemoryNeed {
            emulated: true,
            slowdown_limit: 0.0,
            ..need()
        };
        assert_eq!(
            emulated.in_words(),
            "app needs 40 % of its memory in the fast tier (152 MiB of 380 MiB, emulated) to be no slower than with all of it fast"
        );
    }

    #[test]
    fn a_need_of_more_than_the_footprint_says_why() {
        let more = FastMemoryNeed {
            fast_bytes: 400 << 20,
            ..need()
        };
        assert_eq!(
            more.in_words(),
            "app needs all of its memory in the fast tier (400 MiB; more than its footprint of 380 MiB, because its sites are largest at \
             different times and a plan has room for each at its largest) to be at most 2 % slower than with all of it fast"
        );
    }

    #[test]
    fn a_limit_is_printed_as_it_was_given() {
        let texts = [0.07, 0.0025, 1.5].map(exact_percent);
        assert_eq!(texts, ["7 %", "0.25 %", "150 %"]);
    }

    #[test]
    fn json_has_the_bytes_and_the_share() {
        let json: serde_json::Value = serde_json::from_str(&crate::json(&need())).expect("is JSON");
        assert_eq!(json["schema_version"], 1);
        assert_eq!(json["fast_bytes"], 152 << 20);
        assert_eq!(json["footprint_bytes"], 380 << 20);
        assert_eq!(json["share_of_footprint"], 0.4);
        assert_eq!(json["slowdown_limit"], 0.02);
        assert_eq!(json["plan"], "app.plan");
    }
}
