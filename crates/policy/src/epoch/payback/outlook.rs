//! What becomes of the heat of pages, learnt by kind: how a page came to what it does, and how many
//! epochs ago.
//!
//! For each kind, what all its pages promised is set against what the next epoch brought; the
//! quotient is the share of their promise that such pages keep. One epoch on, a page is of the next
//! age, so one share after the other tells what to expect of it. A scan teaches that what appears
//! is gone at once; a window that slides, that what appeared some epochs ago will be gone soon.
//!
//! ```text
//! at age 1: 100 accesses  --keeps 1.0-->  100  --keeps 0.5-->  50  --keeps 0-->  0    together 150
//! ```

use super::heat::{Heat, OLDEST, Origin};

/// Epochs for which a moved page is trusted to follow its kind: a move must pay within them.
pub(super) const HORIZON: usize = 8;

/// Share of what was learnt that is kept from epoch to epoch, so that a new phase of the program is
/// believed after a few.
const REMEMBERED: f64 = 0.75;

/// Accesses by which a kind is believed to keep what it promises, or what it kept an epoch younger. A
/// few pages that rose by chance prove nothing.
const BELIEF: f64 = 100.0;

/// The most that a page is believed to grow: growth by chance must not multiply.
const GROWTH: f64 = 2.0;

const AGES: usize = OLDEST as usize + 1;
const ORIGINS: usize = Origin::ALL.len();

/// Sums over pages of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    promised: f64,
    came: f64,
}

/// What was learnt, by origin and age.
#[derive(Clone, Debug)]
pub(super) struct Outlook {
    sums: [[Sums; AGES]; ORIGINS],
    /// Accesses over the horizon for each access promised.
    ahead: [[f64; AGES]; ORIGINS],
}

impl Default for Outlook {
    /// Every page is believed to keep what it promises.
    fn default() -> Self {
        Self {
            sums: Default::default(),
            ahead: [[HORIZON as f64; AGES]; ORIGINS],
        }
    }
}

impl Outlook {
    /// Learns from an epoch: the pages as they were before it, and the hits that each had in it.
    pub(super) fn learn(&mut self, pages: &[Heat], hits: impl Iterator<Item = f64>) {
        for sums in self.sums.as_flattened_mut() {
            sums.promised *= REMEMBERED;
            sums.came *= REMEMBERED;
        }
        for (page, came) in pages.iter().zip(hits) {
            let (origin, age) = page.kind();
            let sums = &mut self.sums[origin as usize][usize::from(age)];
            sums.promised += page.promised();
            // A page that was not there before promised nothing.
            sums.came += if page.is_unseen() { 0.0 } else { came };
        }
        for origin in Origin::ALL {
            let mut younger = 1.0;
            let kept = self.sums[origin as usize].map(|sums| {
                younger = (sums.came + BELIEF * younger) / (sums.promised + BELIEF);
                younger
            });
            for age in 0..AGES {
                self.ahead[origin as usize][age] = ahead(&kept, age);
            }
        }
    }

    /// Counts what was learnt in other hits, `scale` of them for each one so far.
    pub(super) fn scale(&mut self, scale: f64) {
        for sums in self.sums.as_flattened_mut() {
            sums.promised *= scale;
            sums.came *= scale;
        }
    }

    /// Accesses to expect of a page over the horizon.
    pub(super) fn expected(&self, page: &Heat) -> f64 {
        let (origin, age) = page.kind();
        page.promised() * self.ahead[origin as usize][usize::from(age)]
    }
}

/// The shares kept one after the other from this age on, added up.
fn ahead(kept: &[f64; AGES], age: usize) -> f64 {
    let mut left = 1.0_f64;
    (age..age + HORIZON)
        .map(|age| {
            left = (left * kept[age.min(AGES - 1)]).min(GROWTH);
            left
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::{GROWTH, HORIZON, Heat, Outlook};

    /// A page that appeared with this count and has had it for so many epochs.
    fn page(count: u64, age: usize) -> Heat {
        let mut page = Heat::UNSEEN;
        for _ in 0..age {
            page.follow(count as f32);
        }
        page
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3 * b.abs().max(1.0)
    }

    #[test]
    fn a_kind_that_nobody_met_is_believed_to_stay_as_it_is() {
        let mut outlook = Outlook::default();
        let ten = page(10, 3);
        assert!(close(outlook.expected(&ten), 10.0 * HORIZON as f64));
        outlook.learn(&[Heat::UNSEEN], [1_000.0].into_iter());
        assert!(close(outlook.expected(&ten), 10.0 * HORIZON as f64));
        assert!(outlook.expected(&Heat::UNSEEN).abs() < 1e-9);
    }

    #[test]
    fn what_is_ahead_of_a_page_is_what_older_pages_kept_one_after_the_other() {
        let mut outlook = Outlook::default();
        let many = 1_000_000_000;
        let pages = [page(many, 1), page(many, 2), page(many, 3)];
        let half = many as f64 / 2.0;
        outlook.learn(&pages, [2.0 * half, half, 0.0].into_iter());
        let expected = |at: usize| outlook.expected(&pages[at]) / many as f64;
        assert!(close(expected(0), 1.5), "{}", expected(0));
        assert!(close(expected(1), 0.5), "{}", expected(1));
        assert!(expected(2) < 1e-3, "{}", expected(2));
    }

    #[test]
    fn growth_is_believed_but_not_multiplied() {
        let mut outlook = Outlook::default();
        let pages: Vec<Heat> = (1..=15).map(|age| page(1, age)).collect();
        outlook.learn(&pages, [1e6; 15].into_iter());
        assert!(outlook.expected(&pages[0]) <= GROWTH * HORIZON as f64);
    }
}
