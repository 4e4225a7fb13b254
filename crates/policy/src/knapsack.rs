//! [`Knapsack`] is the site policy that takes the set of whole sites with the most value that fits (MemBrain, section III-A), exactly
//! unless the search reaches its limits.
//!
//! Weights count in pages: a site's is rounded up, the capacity down, so the chosen sites also fit
//! in bytes. Sites of no value are left out, those of no weight are taken, and the rest is a 0/1
//! knapsack solved by an expanding core (`minknap`), whose memory does not depend on the capacity.
//! Among several best sets the order of hotness and site decides.
//!
//! The problem is NP-hard. If the search reaches its limits, the plan holds the best set found, and
//! each reason states that it is not proved and how much better a set could be.

use isotherm_model::plan::Item;
use isotherm_model::port::{Choice, SitePolicy};
use isotherm_model::units::Bytes;

use crate::minknap::{Effort, pack_values};

/// Bytes of a page, the grain of the weights.
pub const PAGE: u64 = 4096;

/// Exact 0/1 knapsack over whole sites.
#[derive(Clone, Copy, Debug)]
pub struct Knapsack {
    effort: Effort,
}

impl Knapsack {
    /// The default limits of the search.
    pub const DEFAULT: Self = Self {
        effort: Effort::DEFAULT,
    };

    /// The default with another limit on the number of visited states.
    #[cfg(test)]
    pub(crate) const fn with_steps(steps: u64) -> Self {
        Self {
            effort: Effort {
                steps,
                ..Effort::DEFAULT
            },
        }
    }
}

impl Default for Knapsack {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The result for one site.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Worthless,
    Free,
    TooLarge,
    Packed,
    LeftOut,
}

impl SitePolicy for Knapsack {
    fn name(&self) -> &'static str {
        "knapsack"
    }

    fn fills(&self) -> bool {
        true
    }

    fn choose(&self, items: &[Item], capacity: Bytes) -> Vec<Choice> {
        let pages = capacity.0 / PAGE;
        let mut verdicts: Vec<Verdict> = items.iter().map(|item| sort_out(item, pages)).collect();
        let mut candidates: Vec<usize> = (0..items.len())
            .filter(|&i| verdicts[i] == Verdict::LeftOut)
            .collect();
        candidates.sort_unstable_by(|&a, &b| paged(&items[a]).hotter_first(&paged(&items[b])));
        let (taken, missing) = self.solve(items, &candidates, pages);
        for (index, taken) in candidates.into_iter().zip(taken) {
            if taken {
                verdicts[index] = Verdict::Packed;
            }
        }
        let doubt = missing.map_or_else(String::new, |missing| {
            format!(" (not proved: the search met its limit; at most {missing} more were possible)")
        });
        verdicts
            .into_iter()
            .enumerate()
            .map(|(item, verdict)| {
                let taken = matches!(verdict, Verdict::Free | Verdict::Packed);
                Choice::new(
                    item,
                    taken,
                    reason(verdict, &items[item], capacity) + &doubt,
                )
            })
            .collect()
    }
}

impl Knapsack {
    /// Packs the candidates. The second part is the possible missing value if optimality is not
    /// proved.
    fn solve(&self, items: &[Item], order: &[usize], pages: u64) -> (Vec<bool>, Option<u128>) {
        let values: Vec<u64> = order.iter().map(|&i| items[i].value).collect();
        // At most 2^52 pages, so the casts to i64 are exact.
        let weight = |&i: &usize| items[i].weight.0.div_ceil(PAGE) as i64;
        let weights: Vec<i64> = order.iter().map(weight).collect();
        pack_values(&values, &weights, pages as i64, self.effort)
    }
}

/// The item with its weight in whole pages, which gives the density for the order of the search.
fn paged(item: &Item) -> Item {
    Item {
        weight: Bytes(item.weight.0.div_ceil(PAGE)),
        ..*item
    }
}

fn sort_out(item: &Item, pages: u64) -> Verdict {
    if item.value == 0 {
        Verdict::Worthless
    } else if item.weight == Bytes::ZERO {
        Verdict::Free
    } else if item.weight.0.div_ceil(PAGE) > pages {
        Verdict::TooLarge
    } else {
        Verdict::LeftOut
    }
}

fn reason(verdict: Verdict, item: &Item, capacity: Bytes) -> String {
    let Item { value, weight, .. } = item;
    match verdict {
        Verdict::Worthless => "left out: it has no value".to_owned(),
        Verdict::Free => "taken: it weighs nothing".to_owned(),
        Verdict::TooLarge => format!("left out: its {weight} do not fit into {capacity}"),
        Verdict::Packed => {
            format!("taken: part of the most valuable set of whole sites that fits into {capacity}")
        }
        Verdict::LeftOut => format!(
            "left out: no set with it (value {value}, {weight}) is worth more than the set taken"
        ),
    }
}
