//! [`OptimizationSummary`] reports an optimization within a run, a choice of hot data and its moves, as JSON and in one sentence.

use isotherm_model::stay::{StayReason, StayedBytes};
use isotherm_model::units::{Bytes, Nanos};
use serde::{Serialize, Serializer};

use crate::words::{counted, percent, share};

/// One choice from the samples so far, and its moves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OptimizationSummary {
    /// The policy that chose.
    pub policy: String,
    /// True if no data really moved.
    pub dry_run: bool,
    /// Process number, where the choice was for one of the program's processes.
    pub process: Option<u32>,
    /// Time from the program's start, in nanoseconds.
    pub at_ns: u64,
    /// Samples on which the choice rests.
    pub samples: u64,
    /// Timer samples a second of each thread's processor time, at the end of the profile; none where no timer samples.
    pub sampling_hz: Option<u32>,
    /// Data objects, and stretches of memory between them.
    pub regions: u64,
    /// Bytes of fast memory that the choice may use.
    pub capacity_bytes: u64,
    /// Bytes that were chosen for fast memory.
    pub selected_bytes: u64,
    /// Of these, bytes that were there already.
    pub placed_bytes: u64,
    /// Bytes that moved to fast memory.
    pub promoted_bytes: u64,
    /// Bytes that moved to slow memory.
    pub demoted_bytes: u64,
    /// Bytes that could not be moved.
    pub failed_bytes: u64,
    /// Bytes that stay in slow memory or could not be moved, by reason.
    #[serde(serialize_with = "by_reason")]
    pub stayed_bytes: StayedBytes,
    /// Resident bytes of the program's data after the moves.
    pub resident_bytes: u64,
    /// Of these, bytes in fast memory.
    pub fast_bytes: u64,
    /// Time of the choice, in nanoseconds.
    pub selection_ns: u64,
    /// Time of the moves, in nanoseconds.
    pub migration_ns: u64,
}

fn by_reason<S: Serializer>(stayed: &StayedBytes, serializer: S) -> Result<S::Ok, S::Error> {
    let bytes = |reason: StayReason| (reason.word(), stayed.of(reason).0);
    serializer.collect_map(StayReason::ALL.map(bytes))
}

/// Bytes of a page, the least that is moved.
const PAGE: u64 = 4096;

impl OptimizationSummary {
    /// Whether nothing could be chosen because the fast memory that may be used, such as what other processes leave of it, holds no page.
    #[must_use]
    pub const fn lacks_room(&self) -> bool {
        self.samples > 0 && self.selected_bytes == 0 && self.capacity_bytes < PAGE
    }

    /// A sentence on the chosen, the moved and the fast bytes, and the time that it cost.
    #[must_use]
    pub fn in_words(&self) -> String {
        let at = Nanos(self.at_ns);
        if self.lacks_room() {
            return format!(
                "after {at}: {} of fast memory may be used, less than a page, so nothing is to be fast: {} {} to slow memory{}",
                Bytes(self.capacity_bytes),
                Bytes(self.demoted_bytes),
                self.moved(),
                self.failures(),
            );
        }
        if self.selected_bytes + self.demoted_bytes == 0 {
            return format!(
                "after {at}: {} of the program's data prove no part of it hot, so nothing was moved",
                counted(self.samples, "sample")
            );
        }
        let crowded = match self.stayed_bytes.of(StayReason::Capacity) {
            Bytes::ZERO => String::new(),
            crowded => format!("{crowded} of hot data had no room, "),
        };
        format!(
            "after {at}, by {} of {}: {} chosen, {crowded}{} {} to fast memory and {} to slow memory{}; {} of {} fast ({}); chosen in {}, \
             moved in {}",
            counted(self.samples, "sample"),
            counted(self.regions, "region"),
            Bytes(self.selected_bytes),
            Bytes(self.promoted_bytes),
            self.moved(),
            Bytes(self.demoted_bytes),
            self.failures(),
            Bytes(self.fast_bytes),
            Bytes(self.resident_bytes),
            percent(share(self.fast_bytes, self.resident_bytes)),
            Nanos(self.selection_ns),
            Nanos(self.migration_ns),
        )
    }

    const fn moved(&self) -> &'static str {
        match self.dry_run {
            true => "would have moved",
            false => "moved",
        }
    }

    /// The bytes that could not be moved, by reason; empty where all were.
    fn failures(&self) -> String {
        if self.failed_bytes == 0 {
            return String::new();
        }
        let failed = StayReason::ALL.into_iter().filter_map(|reason| {
            let bytes = self.stayed_bytes.of(reason);
            let why = failure(reason).filter(|_| bytes > Bytes::ZERO)?;
            Some(format!("{bytes} {why}"))
        });
        let why = failed.collect::<Vec<String>>().join(", ");
        format!(", {} could not be ({why})", Bytes(self.failed_bytes))
    }
}

/// Why a move failed; `None` for a reason why none was tried.
const fn failure(reason: StayReason) -> Option<&'static str> {
    Some(match reason {
        StayReason::Capacity
        | StayReason::NotHot
        | StayReason::NotTouched
        | StayReason::NotMovable => return None,
        StayReason::NoRoom => "found no room",
        StayReason::InUse => "were in use",
        StayReason::Shared => "are shared since a fork",
        StayReason::Refused => "were refused by the kernel",
    })
}

#[cfg(test)]
mod tests {
    use super::OptimizationSummary;
    use isotherm_model::stay::{StayReason, StayedBytes};
    use isotherm_model::units::Bytes;

    #[test]
    fn the_sentence_says_what_was_chosen_and_what_moved() {
        let mut stayed = StayedBytes::default();
        stayed.add(StayReason::Capacity, Bytes(2 << 20));
        stayed.add(StayReason::NotHot, Bytes(30 << 20));
        stayed.add(StayReason::InUse, Bytes(4096));
        let done = OptimizationSummary {
            at_ns: 2_000_000_000,
            samples: 1500,
            regions: 3,
            selected_bytes: 16 << 20,
            promoted_bytes: 12 << 20,
            demoted_bytes: 8 << 20,
            failed_bytes: 4096,
            stayed_bytes: stayed,
            resident_bytes: 64 << 20,
            fast_bytes: 16 << 20,
            selection_ns: 2_500_000,
            migration_ns: 9_000_000,
            ..OptimizationSummary::default()
        };
        assert_eq!(
            done.in_words(),
            "after 2.00 s, by 1,500 samples of 3 regions: 16 MiB chosen, 2 MiB of hot data had no room, 12 MiB moved to fast memory and 8 MiB to slow \
             memory, 4 KiB could not be (4 KiB were in use); 16 MiB of 64 MiB fast (25 %); chosen in 2.5 ms, moved in 9.0 ms"
        );
        let no_room = OptimizationSummary {
            samples: 1500,
            capacity_bytes: 4095,
            demoted_bytes: 8 << 20,
            ..OptimizationSummary::default()
        };
        let said = no_room.in_words();
        assert!(
            said.ends_with(
                "less than a page, so nothing is to be fast: 8 MiB moved to slow memory"
            ),
            "{said}"
        );
        let json = serde_json::to_value(&done).unwrap();
        assert_eq!(json["stayed_bytes"]["not_hot"], 30 << 20);
        assert_eq!(json["stayed_bytes"]["shared"], 0);
        let nothing = OptimizationSummary {
            samples: 1,
            capacity_bytes: 4096,
            ..OptimizationSummary::default()
        };
        let said = nothing.in_words();
        assert!(
            said.contains("1 sample of") && said.contains("nothing was moved"),
            "{said}"
        );
    }
}
