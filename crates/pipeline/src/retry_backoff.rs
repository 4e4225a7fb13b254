//! `RetryBackoff` delays the retries of refused moves exponentially: they are not retried for 1, 2, 4 ... 64 epochs.
//!
//! Most refusals are temporary: a page that is shared after a fork is private again when the child
//! has ended, a page under writeback is written. Some are permanent, such as locked pages; a retry
//! in every epoch would cost as much as a move.

use std::collections::BTreeMap;

use isotherm_model::batch::Epoch;

/// Longest backoff, in epochs.
const EPOCHS_AT_MOST: u32 = 64;

/// The refused keys, and the epoch in which each is retried.
#[derive(Clone, Debug)]
pub(crate) struct RetryBackoff<K>(BTreeMap<K, Refused>);

#[derive(Clone, Copy, Debug)]
struct Refused {
    times: u32,
    until: u32,
}

impl<K> Default for RetryBackoff<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Copy + Ord> RetryBackoff<K> {
    /// True while this key is not retried.
    pub(crate) fn has(&self, what: K, now: Epoch) -> bool {
        self.0
            .get(&what)
            .is_some_and(|refused| now.0 < refused.until)
    }

    /// Records that this key could not be moved.
    pub(crate) fn refused(&mut self, what: K, now: Epoch) {
        let times = self.0.get(&what).map_or(0, |refused| refused.times);
        let epochs = 1_u32.checked_shl(times).unwrap_or(u32::MAX);
        let refused = Refused {
            times: times.saturating_add(1),
            until: now.0.saturating_add(1 + epochs.min(EPOCHS_AT_MOST)),
        };
        self.0.insert(what, refused);
    }

    /// Records that this key was moved.
    pub(crate) fn moved(&mut self, what: K) {
        self.0.remove(&what);
    }

    /// Drops the keys that no longer exist.
    pub(crate) fn retain(&mut self, lives: impl Fn(K) -> bool) {
        self.0.retain(|what, _| lives(*what));
    }

    /// Number of keys with stored state.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.0.len()
    }

    /// Number of keys that are not retried now.
    pub(crate) fn count(&self, now: Epoch) -> usize {
        let left = self.0.values().filter(|refused| now.0 < refused.until);
        left.count()
    }
}

#[cfg(test)]
mod tests {
    use super::RetryBackoff;
    use isotherm_model::batch::Epoch;

    #[test]
    fn what_is_refused_again_and_again_is_asked_for_ever_more_rarely_until_it_moves() {
        let mut left = RetryBackoff::default();
        let mut asked = Vec::new();
        for epoch in (0..200).map(Epoch) {
            if !left.has('a', epoch) {
                asked.push(epoch.0);
                left.refused('a', epoch);
            }
        }
        assert_eq!(asked, [0, 2, 5, 10, 19, 36, 69, 134, 199]);
        assert_eq!(left.count(Epoch(200)), 1);
        left.moved('a');
        assert!(!left.has('a', Epoch(200)));
        left.refused('a', Epoch(200));
        assert!(!left.has('a', Epoch(202)), "it begins with one epoch again");
        left.retain(|_| false);
        assert_eq!(left.count(Epoch(200)), 0);
    }
}
