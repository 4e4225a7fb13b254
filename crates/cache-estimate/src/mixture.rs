//! [`Mixture`] estimates, from how many samples each page has among the last samples (`Window`), how many pages there are of each access
//! rate, those never sampled included, and the bytes of cache that they would fill: all of a page, or less where samples that follow each
//! other in a page are often in one line. By these bytes `occupancy` says what share of the waiting the caches served.
//!
//! A page of rate `r` is sampled `k` times in a window with Poisson's chance. The histogram of counts is therefore a
//! mixture of Poisson distributions, and the mixture of greatest likelihood is found by expectation and maximisation
//! (Laird, "Nonparametric maximum likelihood estimation of a mixing distribution", JASA 1978; for unseen species Norris
//! and Pollock, "Non-parametric MLE for Poisson species abundance models", 1998). It answers the question of Good and
//! Turing ("The population frequencies of species", Biometrika 1953) and of Chao ("Nonparametric estimation of the
//! number of classes", 1984) for all counts at once, and without their division by counts that are zero.

use crate::tables::{CLASSES, COUNTS, MIXED, ONCE, SEEN};
use crate::window::{LINE, PAGE_LINES, Slot};

/// Rounds of the first estimate.
const FIRST_ROUNDS: usize = 40;
/// Longest step of an accelerated round, in steps of a plain one.
const LONGEST_STEP: f32 = 16.0;
/// Rounds of each later estimate, which begins with the result before it.
const ROUNDS: usize = 8;

/// Share of a class that each round takes away for each step below one sample a window. A page with one sample is as
/// likely in all cold classes; the penalty takes the warmest of those that explain the histogram as well.
const COLD_PENALTY: f32 = 0.001;

/// Where the pairs of samples outside the first and the last line of a page are a larger share of all pairs than this, they alone
/// say how many lines are in use.
const INNER: f32 = 1.0 / 16.0;

/// Pages by the number of their samples.
#[derive(Debug)]
pub(crate) struct Histogram {
    /// Pages with 1 to [`COUNTS`] samples.
    pages: [u32; COUNTS + 1],
    /// Pairs of samples of these pages.
    pairs: [PairSum; COUNTS + 1],
    /// Pages with more samples, by the class of their count, and their pairs.
    hot_pages: [u32; CLASSES],
    hot_pairs: [PairSum; CLASSES],
}

impl Histogram {
    pub(crate) fn of<'slots>(slots: impl Iterator<Item = &'slots Slot>) -> Self {
        let mut histogram = Self {
            pages: [0; COUNTS + 1],
            pairs: [PairSum::default(); COUNTS + 1],
            hot_pages: [0; CLASSES],
            hot_pairs: [PairSum::default(); CLASSES],
        };
        for slot in slots {
            let sum = PairSum::of(slot);
            if usize::from(slot.count) <= COUNTS {
                histogram.pages[usize::from(slot.count)] += 1;
                histogram.pairs[usize::from(slot.count)].add(&sum, 1.0);
            } else {
                let class = class_of_count(u32::from(slot.count));
                histogram.hot_pages[class] += 1;
                histogram.hot_pairs[class].add(&sum, 1.0);
            }
        }
        histogram
    }
}

/// Numbers of pairs of consecutive samples in one page, summed over pages.
#[derive(Clone, Copy, Debug, Default)]
struct PairSum {
    all: f32,
    matches: f32,
    inner: f32,
    inner_matches: f32,
}

impl PairSum {
    fn of(slot: &Slot) -> Self {
        Self {
            all: f32::from(slot.count) - 1.0,
            matches: f32::from(slot.pairs.matches),
            inner: f32::from(slot.pairs.inner),
            inner_matches: f32::from(slot.pairs.inner_matches),
        }
    }

    /// Adds a share of other pairs.
    fn add(&mut self, other: &Self, share: f32) {
        self.all += share * other.all;
        self.matches += share * other.matches;
        self.inner += share * other.inner;
        self.inner_matches += share * other.inner_matches;
    }

    /// Lines in use of a page: of two samples in one page, one in this many is in the same line.
    ///
    /// Prefetchers stop at the end of a page, so a program that reads in order waits for the first or the last line of each
    /// page far more often than for the others: such pairs match as if few lines were in use. Where pairs of other
    /// lines are more than [`INNER`] of all, the larger number counts. One match proves nothing: without more, whole pages count.
    fn lines_in_use(&self) -> f32 {
        let whole = PAGE_LINES as f32;
        let lines = |pairs: f32, matches: f32| {
            ((pairs + 1.0) / ((matches - 1.0).max(0.0) + 1.0 / whole)).clamp(1.0, whole)
        };
        let of_all = lines(self.all, self.matches);
        if self.inner <= self.all * INNER {
            return of_all;
        }
        of_all.max(lines(self.inner, self.inner_matches))
    }
}

/// The class of a page with more than [`COUNTS`] samples: twice the binary logarithm, rounded down.
pub(crate) const fn class_of_count(count: u32) -> usize {
    let power = count.ilog2();
    // count^2 >= 2^(2 power + 1): the upper half of the octave.
    let upper = (count as u64 * count as u64) >> (2 * power + 1);
    let class = ONCE + 2 * power as usize + (upper > 0) as usize;
    if class < CLASSES { class } else { CLASSES - 1 }
}

/// Shares of the sampled pages by class, of pages with at most [`COUNTS`] samples.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Mixture {
    shares: [f32; MIXED],
    begun: bool,
}

impl Mixture {
    pub(crate) const EMPTY: Self = Self {
        shares: [0.0; MIXED],
        begun: false,
    };

    /// Fits the shares to a histogram.
    pub(crate) fn fit(&mut self, histogram: &Histogram) {
        let rounds = if self.begun { ROUNDS } else { FIRST_ROUNDS };
        if !self.begun {
            self.shares = [1.0 / MIXED as f32; MIXED];
        }
        self.begun = true;
        // A share of zero would stay zero.
        self.shares.iter_mut().for_each(|share| *share += 1e-4);
        for _ in 0..rounds {
            self.accelerated_round(histogram);
        }
    }

    /// Two rounds of expectation and maximisation, a step as far as their difference suggests, and a third round
    /// (Varadhan and Roland, "Simple and globally convergent methods for accelerating the convergence of any EM
    /// algorithm", Scandinavian Journal of Statistics 2008). The step may make a share negative; such a share begins anew.
    fn accelerated_round(&mut self, histogram: &Histogram) {
        let begin = self.shares;
        self.round(histogram);
        let middle = self.shares;
        self.round(histogram);
        let (mut first, mut second) = (0.0, 0.0);
        for class in 0..MIXED {
            let step = middle[class] - begin[class];
            first += step * step;
            let turn = self.shares[class] - middle[class] - step;
            second += turn * turn;
        }
        if second <= 0.0 {
            return;
        }
        let length = (first / second).sqrt().clamp(1.0, LONGEST_STEP);
        for (class, share) in self.shares.iter_mut().enumerate() {
            let step = middle[class] - begin[class];
            let turn = *share - middle[class] - step;
            let target = begin[class] + 2.0 * length * step + length * length * turn;
            *share = target.max(*share * 1e-2);
        }
        self.round(histogram);
    }

    fn round(&mut self, histogram: &Histogram) {
        let mut next = [0.0; MIXED];
        for (count, &pages) in histogram.pages.iter().enumerate().filter(|(_, p)| **p > 0) {
            let chances = self.classes_of(count);
            for (next, chance) in next.iter_mut().zip(chances) {
                *next += pages as f32 * chance;
            }
        }
        for (class, next) in next.iter_mut().enumerate() {
            *next *= 1.0 - COLD_PENALTY * ONCE.saturating_sub(class) as f32;
        }
        let sum: f32 = next.iter().sum();
        if sum > 0.0 {
            self.shares = next.map(|share| share / sum);
        }
    }

    /// The chances that a page with this many samples, at most [`COUNTS`], is of each class.
    pub(crate) fn classes_of(&self, count: usize) -> [f32; MIXED] {
        let mut chances = [0.0; MIXED];
        for (class, chance) in chances.iter_mut().enumerate() {
            *chance = self.shares[class] * SEEN[class][count];
        }
        let sum: f32 = chances.iter().sum();
        match sum > 0.0 {
            true => chances.map(|chance| chance / sum),
            false => chances,
        }
    }

    /// How often samples came back to a page of a class with less than one sample a window.
    pub(crate) fn rare_repeats(&self, histogram: &Histogram) -> f32 {
        let repeats = |count: usize| {
            let rare: f32 = self.classes_of(count)[..ONCE].iter().sum();
            histogram.pages[count] as f32 * (count - 1) as f32 * rare
        };
        let counts = (2..=COUNTS).filter(|&count| histogram.pages[count] > 0);
        counts.map(repeats).sum()
    }

    /// Bytes of cache that the pages of each class would fill.
    pub(crate) fn bytes(&self, histogram: &Histogram) -> [f32; CLASSES] {
        let mut pages = histogram.hot_pages.map(|pages| pages as f32);
        let mut pairs = histogram.hot_pairs;
        for count in (1..=COUNTS).filter(|&count| histogram.pages[count] > 0) {
            let seen = histogram.pages[count] as f32;
            for (class, chance) in self.classes_of(count).into_iter().enumerate() {
                pages[class] += seen * chance / share_seen(class);
                pairs[class].add(&histogram.pairs[count], chance);
            }
        }
        let mut bytes = pages;
        for (class, bytes) in bytes.iter_mut().enumerate() {
            *bytes *= LINE as f32 * near(&pairs, class).lines_in_use();
        }
        bytes
    }
}

/// Share of the pages of a class that a window has samples of: `1 - e^-rate`, which `SEEN` divides by.
fn share_seen(class: usize) -> f32 {
    // SEEN[j][1] = rate e^-rate / (1 - e^-rate) and SEEN[j][2] = SEEN[j][1] rate / 2.
    let rate = 2.0 * SEEN[class][2] / SEEN[class][1];
    let missed = SEEN[class][1] / rate;
    1.0 / (1.0 + missed)
}

/// The pairs of a class and of those within a factor of four, which are taken together.
fn near(pairs: &[PairSum; CLASSES], class: usize) -> PairSum {
    let mut sum = PairSum::default();
    for other in &pairs[class.saturating_sub(4)..CLASSES.min(class + 5)] {
        sum.add(other, 1.0);
    }
    sum
}
