//! Locates a guided run between its bounds, from measured times.

/// Share of the gap between first touch and all fast that the guided run closes: (first touch −
/// guided) / (first touch − all fast). Above 1 if it is faster than all fast, negative if it is
/// slower than first touch.
///
/// `None` if there is no gap to close (all fast is not faster than first touch) or a time is not a
/// positive number.
#[must_use]
pub fn gap_closed(first_touch: f64, guided: f64, all_fast: f64) -> Option<f64> {
    let times = [first_touch, guided, all_fast];
    if !times.iter().all(|time| time.is_finite() && *time > 0.0) || first_touch <= all_fast {
        return None;
    }
    Some((first_touch - guided) / (first_touch - all_fast))
}

/// Geometric mean of ratios such as time divided by time of all fast. `None` without ratios, or if
/// one is not a positive number (shares of a gap can be negative: take the mean of the times, then
/// the share).
#[must_use]
pub fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    if ratios.is_empty() || !ratios.iter().all(|r| r.is_finite() && *r > 0.0) {
        return None;
    }
    let logs: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    Some((logs / ratios.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::{gap_closed, geometric_mean};

    #[test]
    fn the_share_is_one_at_all_fast_zero_at_first_touch_and_negative_when_slower() {
        assert_eq!(gap_closed(20.0, 10.0, 10.0), Some(1.0));
        assert_eq!(gap_closed(20.0, 20.0, 10.0), Some(0.0));
        assert_eq!(gap_closed(20.0, 15.0, 10.0), Some(0.5));
        assert_eq!(gap_closed(20.0, 25.0, 10.0), Some(-0.5));
    }

    #[test]
    fn without_a_gap_or_with_broken_times_there_is_no_share() {
        for (first_touch, guided, all_fast) in [
            (10.0, 9.0, 10.0),
            (9.0, 9.0, 10.0),
            (f64::NAN, 1.0, 1.0),
            (2.0, 0.0, 1.0),
        ] {
            assert_eq!(gap_closed(first_touch, guided, all_fast), None);
        }
    }

    #[test]
    fn the_mean_of_a_ratio_and_its_inverse_is_one() {
        let mean = geometric_mean(&[4.0, 0.25]).unwrap();
        assert!((mean - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[1.0, -1.0]), None);
    }
}
