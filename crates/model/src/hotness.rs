//! [`hotter_first`] orders (value, weight, name) by hotness, the value per byte of weight: plans, policies and reports sort sites, and
//! pieces of sites, by it.

use std::cmp::Ordering;

use crate::units::Bytes;

/// Compares two (value, weight, name) by hotness, descending, then by name.
///
/// A value without weight is hotter than all others (it costs nothing); among several of these the
/// higher value comes first. A value of zero has hotness zero for any weight. So no element
/// compares equal to all others, and the order is total. The quotients are compared by their cross
/// products, which fit 128 bits, so no rounding occurs.
#[must_use]
pub fn hotter_first<N: Ord>(a: (u64, Bytes, N), b: (u64, Bytes, N)) -> Ordering {
    let weightless = |value: u64, weight: Bytes| value > 0 && weight.0 == 0;
    let product = |value: u64, weight: Bytes| u128::from(value) * u128::from(weight.0.max(1));
    let by_hotness = match (weightless(a.0, a.1), weightless(b.0, b.1)) {
        (true, true) => b.0.cmp(&a.0),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => product(b.0, a.1).cmp(&product(a.0, b.1)),
    };
    by_hotness.then_with(|| a.2.cmp(&b.2))
}

#[cfg(test)]
mod tests {
    use super::hotter_first;
    use crate::units::Bytes;
    use std::cmp::Ordering;

    #[test]
    fn hotness_puts_free_value_first_and_breaks_ties_by_name() {
        let mut sites = [
            (0, Bytes(0), 8),
            (0, Bytes(9), 7),
            (2, Bytes(4), 6),
            (1, Bytes(2), 5),
            (u64::MAX, Bytes(u64::MAX), 4),
            (1, Bytes(0), 3),
            (5, Bytes(0), 9),
        ];
        sites.sort_unstable_by(|a, b| hotter_first(*a, *b));
        assert_eq!(sites.map(|site| site.2), [9, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn the_order_is_total_with_pieces_of_no_bytes_and_no_value() {
        let numbers = [0, 1, 2, 7, u64::MAX];
        let all: Vec<_> = numbers
            .iter()
            .flat_map(|value| numbers.map(|weight| (*value, Bytes(weight), ())))
            .collect();
        for &a in &all {
            for &b in &all {
                assert_eq!(hotter_first(a, b), hotter_first(b, a).reverse());
                for &c in &all {
                    let (ab, bc) = (hotter_first(a, b), hotter_first(b, c));
                    if ab != Ordering::Greater && bc != Ordering::Greater {
                        let both = ab.then(bc);
                        assert_eq!(hotter_first(a, c), both, "{a:?} {b:?} {c:?}");
                    }
                }
            }
        }
    }
}
