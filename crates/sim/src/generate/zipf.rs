//! Zipf: accesses the page of rank r in proportion to 1/r, like the keys of a store. The ranks are spread over the pages at random.
//!
//! Written by hand instead of with `rand_distr`, which computes in floating point: the same seed would give another trace where `powf` is
//! rounded otherwise.

use super::pcg::Pcg32;
use super::{GeneratorSettings, Pattern, shuffled, somewhere_in};

pub(super) fn zipf(settings: &GeneratorSettings, random: &mut Pcg32) -> Pattern {
    // Pages, most accessed first.
    let ranked = shuffled(settings.pages(), random);
    // Sums of 2^32/r up to each rank, rounded down.
    let mut sum = 0;
    let sums: Vec<u64> = (1..=settings.pages())
        .map(|rank| {
            sum += (1 << 32) / rank;
            sum
        })
        .collect();
    Box::new(move |_, random| {
        let pick = random.below(sum);
        let rank = sums.partition_point(|&sum| sum <= pick);
        somewhere_in(ranked[rank], random)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::zipf;
    use crate::generate::pcg::Pcg32;
    use crate::generate::{GeneratorSettings, PAGE, shuffled};
    use isotherm_model::units::Bytes;

    #[test]
    fn the_second_page_has_half_of_the_first_and_the_tenth_a_tenth() {
        let settings = GeneratorSettings {
            footprint: Bytes(256 * PAGE),
            ..GeneratorSettings::default()
        };
        let ranked = shuffled(256, &mut Pcg32::new(3));
        let mut random = Pcg32::new(3);
        let mut place = zipf(&settings, &mut random);
        let mut counts = BTreeMap::<u64, u64>::new();
        for at in 0..200_000 {
            *counts
                .entry(place(at, &mut random).offset / PAGE)
                .or_default() += 1;
        }
        let count = |rank: usize| counts[&ranked[rank - 1]];
        assert!(
            count(1).abs_diff(2 * count(2)) < count(1) / 20,
            "{} {}",
            count(1),
            count(2)
        );
        assert!(
            count(1).abs_diff(10 * count(10)) < count(1) / 10,
            "{} {}",
            count(1),
            count(10)
        );
    }
}
