//! `Outlook` predicts the accesses of each page over the next epochs, for payback: the page's promise (the hits that [`super::heat`]
//! expects in the next epoch if the page does not change) times the share of it that is left in each epoch. It learns that share for pages
//! of one kind: those whose last change (appeared, rose or fell) was the same and as many epochs ago.
//!
//! For each kind, the promise of all its pages is compared with the hits of the next epoch. The
//! quotient is the share of their promise that such pages keep. In each later epoch a page has the
//! next age, so the product of the shares predicts its accesses. From a scan the policy learns that
//! new pages cool at once; from a sliding window, that they cool some epochs later.
//!
//! ```text
//! at age 1: 100 accesses  --keeps 1.0-->  100  --keeps 0.5-->  50  --keeps 0-->  0    together 150
//! ```

use super::heat::{Heat, OLDEST, Origin};

/// Epochs for which a moved page is expected to follow its kind: a move must pay within them.
pub(super) const HORIZON: usize = 8;

/// Share of the learnt sums that is kept from epoch to epoch, so that a new phase of the program
/// takes effect after a few epochs.
const REMEMBERED: f64 = 0.75;

/// Prior weight, in accesses, of the assumption that a kind keeps its promise, or the share of the
/// kind one epoch younger. A few pages that rose by chance prove nothing.
const BELIEF: f64 = 100.0;

/// Largest growth that is predicted for a page: growth by chance must not multiply.
const GROWTH: f64 = 2.0;

const AGES: usize = OLDEST as usize + 1;
const ORIGINS: usize = Origin::ALL.len();

/// Sums over pages of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    promised: f64,
    came: f64,
}

/// The learnt sums, by origin and age.
#[derive(Clone, Debug)]
pub(super) struct Outlook {
    sums: [[Sums; AGES]; ORIGINS],
    /// Expected accesses over the horizon for each access promised.
    ahead: [[f64; AGES]; ORIGINS],
}

impl Default for Outlook {
    /// Every page is expected to keep its promise.
    fn default() -> Self {
        Self {
            sums: Default::default(),
            ahead: [[HORIZON as f64; AGES]; ORIGINS],
        }
    }
}

impl Outlook {
    /// Learns from an epoch: the pages before it, and the hits of each in it.
    pub(super) fn learn(&mut self, pages: &[Heat], hits: impl Iterator<Item = f64>) {
        for sums in self.sums.as_flattened_mut() {
            sums.promised *= REMEMBERED;
            sums.came *= REMEMBERED;
        }
        for (page, came) in pages.iter().zip(hits) {
            let (origin, age) = page.kind();
            let sums = &mut self.sums[origin as usize][usize::from(age)];
            sums.promised += page.promised();
            // A page without earlier accesses has promised nothing.
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

    /// Converts the learnt sums to other hits, `scale` of them for each one so far.
    pub(super) fn scale(&mut self, scale: f64) {
        for sums in self.sums.as_flattened_mut() {
            sums.promised *= scale;
            sums.came *= scale;
        }
    }

    /// Expected accesses of a page over the horizon.
    pub(super) fn expected(&self, page: &Heat) -> f64 {
        let (origin, age) = page.kind();
        page.promised() * self.ahead[origin as usize][usize::from(age)]
    }
}

/// The sum of the running products of the shares, from this age on.
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

    /// A page that appeared with this count and has had it for the given number of epochs.
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
