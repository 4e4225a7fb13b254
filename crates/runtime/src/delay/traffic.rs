//! [`Traffic`] is a number of bytes for each tier of the emulated pair: those that a thread accessed, or that a shared bandwidth serves.

use crate::published_tiers::Side;

/// Bytes of fast and of slow memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// Bytes of fast memory.
    pub(crate) fast: u64,
    /// Bytes of slow memory.
    pub(crate) slow: u64,
}

impl Traffic {
    /// Bytes of one tier.
    pub(crate) const fn of(side: Side, bytes: u64) -> Self {
        match side {
            Side::Fast => Self {
                fast: bytes,
                slow: 0,
            },
            Side::Slow => Self {
                fast: 0,
                slow: bytes,
            },
        }
    }

    /// This share of each, 0 to 1, rounded down.
    pub(crate) fn scaled(self, share: f32) -> Self {
        let scaled = |bytes: u64| (bytes as f32 * share) as u64;
        Self {
            fast: scaled(self.fast),
            slow: scaled(self.slow),
        }
    }

    /// Both together.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            fast: self.fast.saturating_add(other.fast),
            slow: self.slow.saturating_add(other.slow),
        }
    }

    /// Takes at most `most` of each away; `None` where nothing is left.
    pub(crate) fn take(&mut self, most: Self) -> Option<Self> {
        let part = Self {
            fast: self.fast.min(most.fast),
            slow: self.slow.min(most.slow),
        };
        self.fast -= part.fast;
        self.slow -= part.slow;
        (part != Self::default()).then_some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::{Side, Traffic};

    #[test]
    fn what_is_taken_is_gone_from_each_tier() {
        let mut owed = Traffic::of(Side::Fast, 5).and(Traffic::of(Side::Slow, 9));
        let most = Traffic { fast: 4, slow: 4 };
        assert_eq!(owed.take(most), Some(Traffic { fast: 4, slow: 4 }));
        assert_eq!(owed.take(most), Some(Traffic { fast: 1, slow: 4 }));
        assert_eq!(owed.take(most), Some(Traffic { fast: 0, slow: 1 }));
        assert_eq!(owed.take(most), None);
    }
}
