//! [`shares`] divides the outcome of a move among its units: bytes in the target tier, bytes kept out by a dry run, bytes that stayed.

use isotherm_model::movement::RangeOutcome;
use isotherm_model::outcome::{Fate, Reason};

/// Bytes of a unit by their outcome.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    pub there: u64,
    pub dry: u64,
    pub not_there: u64,
    /// Bytes not at the target because it had no room, or the epoch no time.
    pub missed: u64,
}

impl Share {
    /// Adds another range of the same unit.
    pub(super) const fn add(&mut self, other: Self) {
        self.there += other.there;
        self.dry += other.dry;
        self.not_there += other.not_there;
        self.missed += other.missed;
    }
}

/// The outcome of each unit of a run of units of equal size.
pub(super) fn shares(outcome: &RangeOutcome, units: usize) -> Vec<Share> {
    let mut shares = vec![Share::default(); units];
    let unit = outcome.action.range.bytes.0 / (units as u64).max(1);
    let mut at = 0;
    for part in &outcome.parts {
        let end = at + part.bytes.0;
        while at < end {
            let number = (at / unit.max(1)) as usize;
            let until = end.min((number as u64 + 1).saturating_mul(unit.max(1)));
            let Some(share) = shares.get_mut(number) else {
                break;
            };
            let is_late = part.fate == Fate::NotAttempted(Reason::OutOfTime);
            let missed = is_late || part.fate.lacks_room();
            share.missed += if missed { until - at } else { 0 };
            match &part.fate {
                Fate::Moved | Fate::AlreadyThere | Fate::Requested => share.there += until - at,
                Fate::NotAttempted(Reason::DryRun) => share.dry += until - at,
                Fate::NotAttempted(Reason::NotTouched) => {}
                Fate::Busy(_) | Fate::Denied(_) | Fate::NotAttempted(_) => {
                    share.not_there += until - at;
                }
            }
            at = until;
        }
    }
    shares
}
