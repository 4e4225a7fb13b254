//! `Heat` is the heat of one page, for payback: the mean of its hits since its last change, the hits that it promises for the next epoch,
//! and the kind and age of that change.
//!
//! Counts vary by chance: their variance is their mean. A count that deviates by five standard
//! deviations from the mean is not chance, even among millions of pages. Then the mean starts
//! again, so that a phase change is followed at once. Smaller differences are averaged, so chance
//! has little effect. Where the pages together show a new phase ([`super::phase`]), a small deviation of
//! each is enough.

/// Greatest age of a mean: later epochs count with a weight of one in this number.
pub(super) const OLDEST: u8 = 15;

/// Square of the distance, in standard deviations, from which a count is not chance. One is added
/// to the variance, so that single accesses to a page without any are not a change.
const SURPRISE: f32 = 25.0;

/// Expected further part of a change. A change begins somewhere within an epoch, and its count
/// contains only the part after that point.
const GOES_ON: f32 = 0.5;

/// The last change of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The page was accessed for the first time.
    Appeared,
    /// Its accesses rose.
    Rose,
    /// Its accesses fell.
    Fell,
}

impl Origin {
    pub(super) const ALL: [Self; 3] = [Self::Appeared, Self::Rose, Self::Fell];
}

/// The heat of a page and its last change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heat {
    mean: f32,
    promised: f32,
    origin: Origin,
    age: u8,
}

impl Heat {
    /// A page without any access yet.
    pub(super) const UNSEEN: Self = Self {
        mean: 0.0,
        promised: 0.0,
        origin: Origin::Appeared,
        age: 0,
    };

    /// Moves the mean towards the hits of this epoch, or restarts it there.
    pub(super) fn follow(&mut self, seen: f32) {
        self.follow_unless(seen, SURPRISE);
    }

    /// As [`Self::follow`], in the first epoch of a new phase, in which a change of each page is likely: one standard deviation is enough.
    /// If a page was hot and has fewer hits now, its mean begins again at these: the hot pages have lost their share together, however few
    /// hits each had.
    pub(super) fn follow_new_phase(&mut self, seen: f32, was_hot: bool) {
        match was_hot && seen < self.mean {
            true => self.start(seen, Origin::Fell, seen),
            false => self.follow_unless(seen, 1.0),
        }
    }

    fn follow_unless(&mut self, seen: f32, surprise: f32) {
        let apart = seen - self.mean;
        if self.age == 0 {
            if seen > 0.0 {
                self.start(seen, Origin::Appeared, seen);
            }
        } else if apart * apart > surprise * (self.mean + 1.0) {
            let origin = match apart > 0.0 {
                true => Origin::Rose,
                false => Origin::Fell,
            };
            self.start(seen, origin, (seen + GOES_ON * apart).max(0.0));
        } else {
            self.mean += apart / f32::from(self.age + 1);
            self.promised = self.mean;
            self.age = OLDEST.min(self.age + 1);
        }
    }

    fn start(&mut self, seen: f32, origin: Origin, promised: f32) {
        *self = Self {
            mean: seen,
            promised,
            origin,
            age: 1,
        };
    }

    /// True where the page appeared or rose in the last epoch.
    pub(super) fn is_new(&self) -> bool {
        self.age == 1 && self.origin != Origin::Fell
    }

    /// Moves the promise of a new page half way to the mean promise of all new pages. Its own count
    /// depends as much on the time of its rise as on its heat.
    pub(super) const fn lean(&mut self, all: f64) {
        self.promised = f32::midpoint(self.promised, all as f32);
    }

    /// Converts the values to other hits, `scale` of them for each one so far.
    pub(super) fn scale(&mut self, scale: f64) {
        self.mean = (f64::from(self.mean) * scale) as f32;
        self.promised = (f64::from(self.promised) * scale) as f32;
    }

    /// Mean of the hits since its last change.
    pub(super) const fn mean(&self) -> f64 {
        self.mean as f64
    }

    /// Expected accesses in the next epoch if the page does not change.
    pub(super) const fn promised(&self) -> f64 {
        self.promised as f64
    }

    /// The last change, and its age in epochs, at most [`OLDEST`]; 0 before the first access.
    pub(super) const fn kind(&self) -> (Origin, u8) {
        (self.origin, self.age)
    }

    /// True before the first access.
    pub(super) const fn is_unseen(&self) -> bool {
        self.age == 0
    }
}

#[cfg(test)]
mod tests {
    use super::Origin::{Appeared, Fell, Rose};
    use super::{Heat, OLDEST};

    fn after(ranks: &[u64]) -> Heat {
        let mut page = Heat::UNSEEN;
        for &rank in ranks {
            page.follow(rank as f32);
        }
        page
    }

    fn promises(ranks: &[u64], accesses: f64) -> bool {
        (after(ranks).promised() - accesses).abs() < 1e-4
    }

    #[test]
    fn small_differences_are_averaged_and_only_the_last_ones_count() {
        assert!(promises(&[10, 14, 12], 12.0));
        assert_eq!(after(&[10, 14, 12]).kind(), (Appeared, 3));
        let mut ranks = vec![10; 40];
        assert_eq!(after(&ranks).kind(), (Appeared, OLDEST));
        ranks.push(26);
        assert!(promises(&ranks, 11.0));
    }

    #[test]
    fn a_jump_or_a_plunge_starts_anew_and_is_expected_to_go_on() {
        assert_eq!(after(&[10, 10, 100]).kind(), (Rose, 1));
        assert!(promises(&[10, 10, 100], 145.0));
        assert!(promises(&[10, 10, 100, 140], 120.0));
        assert_eq!(after(&[200, 200, 100]).kind(), (Fell, 1));
        assert!(promises(&[200, 200, 100], 50.0));
        assert!(promises(&[200, 200, 10], 0.0));
    }

    #[test]
    fn a_page_is_unseen_until_its_first_access_and_leans_on_others_while_it_is_new() {
        assert!(after(&[0, 0]).is_unseen());
        let mut page = after(&[0, 0, 4]);
        assert!(page.is_new() && !after(&[4, 4]).is_new() && !after(&[200, 1]).is_new());
        page.lean(10.0);
        assert!((page.promised() - 7.0).abs() < 1e-4);
    }

    #[test]
    fn counts_at_the_limit_stay_numbers() {
        let page = after(&[u64::MAX, 0, u64::MAX, u64::MAX]);
        assert!(page.promised().is_finite());
    }
}
