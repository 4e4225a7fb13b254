//! Computes the rank test of Mann and Whitney (1947): the chance that two sets of values of one distribution, whatever it is, differ as
//! much as two given sets. `times` applies it to the rounds of two placements.
//!
//! ```text
//! U = pairs (a, b) with a < b, a tie counting a half        between 0 and n x m; n x m / 2 where both sets are alike
//! orders(n, m, u) = orders(n - 1, m, u - m) + orders(n, m - 1, u)        of n + m values, those with U = u
//! ```

/// The chance that two sets of one distribution have ranks that differ as much as those of `one` and `other`: 0 to 1, two-sided, exact
/// where no values are equal and a little too large where some are; 1 where one of them is empty. The work is (n x m)^2 / 4 additions at most.
pub(crate) fn chance<T: Ord>(one: &[T], other: &[T]) -> f64 {
    let pairs = one.len() * other.len();
    let halves = |a: &T, b: &T| usize::from(a <= b) + usize::from(a < b);
    let of_one = |a: &T| other.iter().map(|b| halves(a, b)).sum::<usize>();
    let halves: usize = one.iter().map(of_one).sum();
    let lower = halves.min(2 * pairs - halves).div_ceil(2);
    let orders = orders(one.len(), other.len(), lower);
    let all: f64 = binomial(one.len() + other.len(), one.len());
    (2.0 * orders / all).min(1.0)
}

/// Orders of n + m different values with U of at most `most`.
fn orders(n: usize, m: usize, most: usize) -> f64 {
    // By the number of values in the other set, and U; of no value in the first set only U = 0 is possible.
    let mut table = vec![vec![0.0; most + 1]; m + 1];
    table.iter_mut().for_each(|row| row[0] = 1.0);
    for _ in 0..n {
        for others in 1..=m {
            let (before, rest) = table.split_at_mut(others);
            let (fewer, row) = (&before[others - 1], &mut rest[0]);
            for u in (0..=most).rev() {
                let last_of_first = u.checked_sub(others).map_or(0.0, |u| row[u]);
                row[u] = last_of_first + fewer[u];
            }
        }
    }
    table[m].iter().sum()
}

fn binomial(n: usize, k: usize) -> f64 {
    (1..=k).fold(1.0, |product, i| product * (n - k + i) as f64 / i as f64)
}

#[cfg(test)]
mod tests {
    use super::{binomial, chance, orders};

    /// All orders of n and m values, as masks of which are of the first set, by U.
    fn enumerated(n: usize, m: usize, most: usize) -> usize {
        let masks = 0u32..1 << (n + m);
        let of_n = masks.filter(|mask| mask.count_ones() as usize == n);
        let u = |mask: &u32| -> usize {
            let ours = (0..n + m).filter(|at| mask & (1 << at) != 0);
            ours.map(|at| (at + 1..n + m).filter(|b| mask & (1 << b) == 0).count())
                .sum()
        };
        of_n.filter(|mask| u(mask) <= most).count()
    }

    #[test]
    fn orders_are_those_of_an_enumeration() {
        for n in 1..=6 {
            for m in 1..=6 {
                for most in 0..=n * m {
                    let expected = enumerated(n, m, most) as f64;
                    assert!(
                        (orders(n, m, most) - expected).abs() < 0.5,
                        "{n} {m} {most}: {} for {expected}",
                        orders(n, m, most)
                    );
                }
            }
        }
        assert!((binomial(10, 5) - 252.0).abs() < 1e-9);
    }

    #[test]
    fn chances_are_those_of_the_published_tables() {
        let close = |chance: f64, expected: f64| (chance - expected).abs() < 5e-4;
        // Complete separation: 2 of 20, 2 of 252 orders.
        assert!(close(chance(&[1, 2, 3], &[4, 5, 6]), 0.1));
        assert!(close(
            chance(&[6, 7, 8, 9, 10], &[1, 2, 3, 4, 5]),
            2.0 / 252.0
        ));
        // U = 2 at n = m = 5 is the critical value at 5 %, U = 3 is beyond it.
        assert!(close(chance(&[1, 2, 3, 4, 7], &[5, 6, 8, 9, 10]), 0.0317));
        assert!(close(chance(&[1, 2, 3, 4, 8], &[5, 6, 7, 9, 10]), 0.0556));
        assert!(close(chance(&[1, 2, 3], &[1, 2, 3]), 1.0));
        assert!(close(chance::<u32>(&[], &[1]), 1.0));
    }
}
