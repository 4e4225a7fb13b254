//! Finds the cut of top-N selection, one of the lower bounds of the priority (missed reads a byte) of a critical chunk (ATMem, section 4.2,
//! equation 2): the lowest priority among the hottest N per cent of an object's chunks ([`percentile`], the equation as printed) or before
//! the first steep fall ([`search`], the paper's text). [`CutReading`] names the choice.
//!
//! The printed equation takes the N-th percentile. The text around it says that this is inefficient in two cases: where the
//! distribution is skewed, the first N/2 % have a much higher priority than the next N/2 %, which should be left out; where it is
//! even, the chunks after the top N % hardly differ from them, and should be taken too. "ATMem employs a derivative-based search,
//! similar to a k-means clustering technique, to adjust the threshold value by quantifying the changes relative to the highest
//! priority score." [`search`] is that search:
//!
//! ```text
//! priorities, highest first, of the chunks above the other two bounds
//! | 9 9 8 8 | 8 8 7 7 | 7 2 2 1 |        windows of N/2 %, two side by side are N %
//!           1         2                  1: the means differ little; 2: they differ much
//!                       7 | 2            the cut divides the two windows like 2-means
//! ```

isotherm_model::variant_words! {
    /// A reading of equation 2. The readings are in the order of the paper.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CutReading {
        /// P_n, as the equation is printed: N per cent of the chunks and those with the same priority.
        Printed = "printed",
        /// The search of the paper's text: fewer than N per cent of a skewed distribution, more of an even one.
        Prose = "prose",
    }
}

/// P_n: the lowest priority among this many of the highest. The order of the priorities changes.
pub(super) fn percentile(priorities: &mut [f64], top: usize) -> f64 {
    if top == priorities.len() {
        return priorities.iter().copied().fold(f64::INFINITY, f64::min);
    }
    let (_, percentile, _) = priorities.select_nth_unstable_by(top - 1, |a, b| b.total_cmp(a));
    *percentile
}

/// The lowest priority before the first fall of at least `steep`, among priorities that have passed the other bounds; the lowest of all if
/// there is none. `top` is the number of chunks in N per cent of the object, at least 1. The priorities become sorted.
pub(super) fn search(priorities: &mut [f64], top: usize, steep: f64) -> f64 {
    let (mut lowest, mut highest) = (f64::INFINITY, 0.0_f64);
    for &priority in &*priorities {
        lowest = lowest.min(priority);
        highest = highest.max(priority);
    }
    // An even object needs no sorting.
    if highest - lowest < steep {
        return lowest;
    }
    priorities.sort_unstable_by(|a, b| b.total_cmp(a));
    let half = top.div_ceil(2);
    for start in (0..priorities.len()).step_by(half) {
        let middle = start + half;
        let end = priorities.len().min(middle + half);
        if middle >= end {
            break;
        }
        let fall = mean(&priorities[start..middle]) - mean(&priorities[middle..end]);
        if fall >= steep {
            let kept = start + first_of_two_clusters(&priorities[start..end]);
            return priorities[kept - 1];
        }
    }
    lowest
}

fn mean(priorities: &[f64]) -> f64 {
    priorities.iter().sum::<f64>() / priorities.len() as f64
}

/// The number of these descending priorities that are in the first of the two clusters with the least variance inside: 2-means, which in
/// one dimension is a single pass.
fn first_of_two_clusters(descending: &[f64]) -> usize {
    let all: f64 = descending.iter().sum();
    let (mut before, mut best, mut most) = (0.0, 1, f64::NEG_INFINITY);
    for kept in 1..descending.len() {
        before += descending[kept - 1];
        let after = all - before;
        // The sum of squares within the clusters is least where this is greatest.
        let between =
            before * before / kept as f64 + after * after / (descending.len() - kept) as f64;
        if between > most {
            (best, most) = (kept, between);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::search;

    /// Ten chunks are N per cent; a fall of ten is steep.
    fn cut(priorities: impl Iterator<Item = u32>) -> f64 {
        let mut priorities: Vec<f64> = priorities.map(f64::from).collect();
        search(&mut priorities, 10, 10.0)
    }

    #[test]
    fn a_fall_within_the_top_n_per_cent_selects_fewer() {
        let skewed = (0..100).map(|rank| if rank < 3 { 100 } else { 20 });
        assert_eq!(cut(skewed), 100.0);
        // The place of the fall does not depend on the windows.
        for hot in 1..10 {
            let skewed = (0..100).map(|rank| if rank < hot { 90 } else { 30 });
            assert_eq!(cut(skewed), 90.0, "{hot} are hot");
        }
    }

    #[test]
    fn without_a_fall_all_are_selected_and_with_a_late_one_those_before_it() {
        assert_eq!(cut((0..100).map(|_| 50)), 50.0);
        assert_eq!(cut((0..100).map(|rank| 50 + rank % 9)), 50.0);
        for hot in 11..95 {
            let late = (0..100).map(|rank| if rank < hot { 90 - rank / 20 } else { 30 });
            assert!(cut(late) > 80.0, "{hot} are hot");
        }
    }

    #[test]
    fn few_priorities_and_a_slow_decline_are_no_fall() {
        assert_eq!(cut([].into_iter()), f64::INFINITY);
        assert_eq!(cut([100, 20].into_iter()), 20.0, "fewer than N/2 per cent");
        assert_eq!(cut((1..=100).rev()), 1.0);
    }
}
