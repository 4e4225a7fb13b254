//! [`PageWord`] is the record of one page in the emulation by page faults, packed into 16 bits: the period of its last touch and its
//! [`PageState`], which says the tier, where the content is, and whether a thread waits.
//!
//! *Home* is the page's address in the pool, which the program uses. *Shadow* is the address at a constant
//! distance that only the emulator knows. A page's content is at exactly one of the two.
//!
//! ```text
//!              first touch                period ends               fault
//! Untouched --------------> Fast                      +--------> Away -------> Waiting
//!     |                                               |                          |
//!     +------> FirstWaiting --------> Slow -----------+                          |
//!                  (access_ns)         ^ |   (busy: Stuck)     (access_ns)       |
//!                                      | +--> Stuck                              |
//!                                      +-----------------------------------------+
//! sampling:  Fast -> FastSampled -> Fast     Slow -> SlowSampled -> Slow     Away -> AwaySampled
//! migration: any -> ToFast -> Fast           any -> ToSlow -> Away   (ToSlowWaited -> Slow)
//! ```

use zerocopy::TryFromBytes;

use crate::published_tiers::Side;

/// The tier of a page, the place of its content, and why it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes)]
#[repr(u8)]
pub(crate) enum PageState {
    /// The program has not touched it since it was handed out or discarded.
    Untouched = 0,
    /// Fast tier, at home.
    Fast = 1,
    /// Slow tier, at home: it paid its delay in this period.
    Slow = 2,
    /// Slow tier, in the shadow: the next access pays.
    Away = 3,
    /// Slow tier, in the shadow; a thread waits for its delay.
    Waiting = 4,
    /// Slow tier, not made yet; a thread waits for the delay of the first touch.
    FirstWaiting = 5,
    /// Slow tier, at home: the kernel refused to move it.
    Stuck = 6,
    /// Fast tier, in the shadow to detect its next access.
    FastSampled = 7,
    /// Slow tier, in the shadow to detect its next access; it paid its delay in this period.
    SlowSampled = 8,
    /// As [`PageState::Away`], and part of the sample.
    AwaySampled = 9,
    /// On its way to the fast tier, in the shadow; counted there already.
    ToFast = 10,
    /// On its way to the slow tier, in the shadow; counted there already.
    ToSlow = 11,
    /// As [`PageState::ToSlow`], and a thread waits for it.
    ToSlowWaited = 12,
}

impl PageState {
    /// Whether the content is in the shadow.
    pub(crate) const fn in_shadow(self) -> bool {
        matches!(
            self,
            Self::Away
                | Self::Waiting
                | Self::FastSampled
                | Self::SlowSampled
                | Self::AwaySampled
                | Self::ToFast
                | Self::ToSlow
                | Self::ToSlowWaited
        )
    }

    /// The tier that counts its bytes; `None` while it has no content.
    pub(crate) const fn side(self) -> Option<Side> {
        match self {
            Self::Untouched | Self::FirstWaiting => None,
            Self::Fast | Self::FastSampled | Self::ToFast => Some(Side::Fast),
            _ => Some(Side::Slow),
        }
    }

    /// The state after its content is brought home for another reason than an access.
    pub(crate) const fn at_home(self) -> Self {
        match self.side() {
            None => self,
            Some(Side::Fast) => Self::Fast,
            Some(Side::Slow) => match self {
                Self::Stuck => Self::Stuck,
                _ => Self::Slow,
            },
        }
    }
}

impl PageState {
    /// The state of the same page in a forked child: no waiting thread, no sample that ends, no migration in progress.
    pub(crate) const fn without_company(self) -> Self {
        match self {
            Self::FirstWaiting => Self::Untouched,
            Self::Waiting
            | Self::SlowSampled
            | Self::AwaySampled
            | Self::ToSlow
            | Self::ToSlowWaited => Self::Away,
            Self::ToFast => Self::FastSampled,
            Self::Stuck => Self::Slow,
            other => other,
        }
    }
}

/// Periods are distinguished modulo this: after exactly 4,096 idle periods a page that is touched once more is
/// mistaken for a hot page.
const STAMPS: u64 = 1 << 12;

/// A state and the period of the last touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageWord(u16);

impl PageWord {
    pub(crate) const fn new(state: PageState, period: u64) -> Self {
        Self(((period % STAMPS) as u16) << 4 | state as u16)
    }

    pub(crate) const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    pub(crate) const fn bits(self) -> u16 {
        self.0
    }

    /// The state. Bits that come from no [`PageWord`] read as untouched.
    pub(crate) fn state(self) -> PageState {
        let number = (self.0 & 15) as u8;
        PageState::try_read_from_bytes(&[number]).unwrap_or(PageState::Untouched)
    }

    /// The word of the same page in another state.
    pub(crate) const fn with(self, state: PageState) -> Self {
        Self(self.0 & !15 | state as u16)
    }

    /// Whether the last touch was in the period before `period`: the page is hot.
    pub(crate) const fn touched_just_before(self, period: u64) -> bool {
        self.0 >> 4 == (period.wrapping_sub(1) % STAMPS) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::{PageState, PageWord, Side, TryFromBytes};

    fn all() -> impl Iterator<Item = PageState> {
        (0..13).map(|number| PageState::try_read_from_bytes(&[number]).expect("a state"))
    }

    #[test]
    fn a_word_gives_back_the_state_it_was_made_from() {
        for (number, state) in all().enumerate() {
            assert_eq!(state as usize, number);
            let word = PageWord::new(state, 0xfff_f1ab);
            assert_eq!(word.state(), state);
            assert_eq!(PageWord::from_bits(word.bits()), word);
            assert_eq!(word.with(PageState::Fast).state(), PageState::Fast);
            assert!(
                word.with(PageState::Fast).touched_just_before(0xfff_f1ac),
                "the stamp stays"
            );
        }
    }

    #[test]
    fn only_the_period_right_before_makes_a_page_hot() {
        let word = PageWord::new(PageState::Away, 41);
        assert!(word.touched_just_before(42));
        assert!(!word.touched_just_before(41));
        assert!(!word.touched_just_before(43));
        assert!(PageWord::new(PageState::Away, 4095).touched_just_before(4096));
    }

    #[test]
    fn bringing_a_page_home_never_changes_the_tier_it_counts_in() {
        for state in all() {
            assert_eq!(state.at_home().side(), state.side());
            assert!(!state.at_home().in_shadow() || state.side().is_none());
        }
        assert_eq!(PageState::ToFast.side(), Some(Side::Fast));
    }

    #[test]
    fn a_child_keeps_each_page_where_it_is_and_in_its_tier() {
        for state in all() {
            let alone = state.without_company();
            assert_eq!(alone.in_shadow(), state.in_shadow(), "{state:?}");
            assert_eq!(alone.side(), state.side(), "{state:?}");
        }
    }
}
