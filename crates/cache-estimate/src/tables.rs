//! Computes two tables at compile time, because a signal handler may not call the C library's `exp`, whose first call can enter the dynamic
//! linker: [`SEEN`] has the chance that a page of an access rate is sampled `k` times in a window, if at all, and [`HITS`] the share of the
//! accesses to a page that hit the cache, by the time that the program waits for the page while the cache is filled anew. The constants
//! define the classes of access rates.

/// Rates that a page may have, in steps of the square root of two: class `j` is sampled `2^((j - 16) / 2)` times in
/// a window, from 2^-8 to 2^17 times.
pub(crate) const CLASSES: usize = 51;

/// Classes below this one are found from the histogram of counts. A page with more samples than
/// [`COUNTS`] has the class of its own count.
pub(crate) const MIXED: usize = 29;

/// Class of a page that is sampled once in a window.
pub(crate) const ONCE: usize = 16;

/// Largest count with a place in the histogram.
pub(crate) const COUNTS: usize = 64;

/// Waiting for one miss, in waits for a hit. Between a hit of the last private cache (4 ns) or of a shared one (15 ns)
/// and DRAM (80 to 140 ns) lie 8 to 30.
pub(crate) const MISS_COST: f64 = 16.0;

/// Steps of [`HITS`] in one class.
pub(crate) const STEPS: i32 = 8;

/// Entries of [`HITS`]: 17 powers of two, of 16 steps each.
pub(crate) const HIT_STEPS: usize = 272;

/// Binary logarithm of the first entry of [`HITS`].
const FIRST_POWER: i32 = -12;

/// `SEEN[j][k]`: chance that a page of class `j` is sampled `k` times in a window, where it is sampled at all.
pub(crate) static SEEN: [[f32; COUNTS + 1]; MIXED] = seen();

/// Share of the accesses to a page that hit, by `y`: the time that the program waits for this page while the cache
/// is filled anew, in waits for a hit. Entry `i` is for `y = 2^(i / 16 - 12)`.
pub(crate) static HITS: [f32; HIT_STEPS] = hits();

const LN_2: f64 = core::f64::consts::LN_2;

/// e^-x for x >= 0, exact to 1e-12.
const fn decay(x: f64) -> f64 {
    if x > 700.0 {
        return 0.0;
    }
    let whole = (x / LN_2) as u64;
    let rest = x - whole as f64 * LN_2;
    let (mut term, mut sum, mut n) = (1.0, 1.0, 1);
    while n < 16 {
        term *= -rest / n as f64;
        sum += term;
        n += 1;
    }
    sum * f64::from_bits((1023 - whole) << 52)
}

/// 2^(numerator / 16), exact to 1e-12.
const fn sixteenths(numerator: i32) -> f64 {
    let whole = numerator.div_euclid(16);
    let rest = numerator.rem_euclid(16) as f64 / 16.0;
    1.0 / (decay(rest * LN_2) * f64::from_bits(((1023 - whole) as u64) << 52))
}

const fn seen() -> [[f32; COUNTS + 1]; MIXED] {
    let mut table = [[0.0; COUNTS + 1]; MIXED];
    let mut class = 0;
    while class < MIXED {
        let mean = sixteenths((class as i32 - ONCE as i32) * STEPS);
        let none = decay(mean);
        let (mut chance, mut count) = (none / (1.0 - none), 1);
        while count <= COUNTS {
            chance *= mean / count as f64;
            table[class][count] = chance as f32;
            count += 1;
        }
        class += 1;
    }
    table
}

/// The `y` between which the table rises in a straight line. The range with several solutions lies inside.
const BRANCHES: [f64; 2] = [2.5, 14.0];

const fn hits() -> [f32; HIT_STEPS] {
    let mut table = [0.0; HIT_STEPS];
    let mut step = 0;
    let (mut ramp_begin, mut ramp_end) = (0, HIT_STEPS);
    while step < HIT_STEPS {
        let wait = sixteenths(step as i32 + FIRST_POWER * 16);
        if wait <= BRANCHES[0] {
            table[step] = rarely_hit(wait) as f32;
            ramp_begin = step;
        } else if wait >= BRANCHES[1] {
            table[step] = (1.0 - decay(wait)) as f32;
            if ramp_end == HIT_STEPS {
                ramp_end = step;
            }
        }
        step += 1;
    }
    step = ramp_begin + 1;
    while step < ramp_end {
        let part = (step - ramp_begin) as f32 / (ramp_end - ramp_begin) as f32;
        table[step] = table[ramp_begin] + part * (table[ramp_end] - table[ramp_begin]);
        step += 1;
    }
    table
}

/// The hit share of a page that is mostly missed: solves `y = x (1 - e^-x + cost e^-x)` for its smallest `x`.
const fn rarely_hit(wait: f64) -> f64 {
    let (mut visits, mut round) = (wait / MISS_COST, 0);
    while round < 60 {
        let missed = decay(visits);
        visits = wait / (1.0 - missed + MISS_COST * missed);
        round += 1;
    }
    1.0 - decay(visits)
}

#[cfg(test)]
mod tests {
    use super::{COUNTS, HITS, MIXED, ONCE, SEEN, decay, sixteenths};

    #[test]
    fn powers_and_decays_are_those_of_the_standard_library() {
        for sixteenth in -256..256 {
            let right = (f64::from(sixteenth) / 16.0).exp2();
            assert!((sixteenths(sixteenth) / right - 1.0).abs() < 1e-11);
        }
        for x in 0..400 {
            let x = f64::from(x) / 3.0;
            assert!((decay(x) / (-x).exp() - 1.0).abs() < 1e-10, "{x}");
        }
    }

    #[test]
    fn a_page_that_is_seen_is_seen_once_or_more() {
        for (class, chances) in SEEN.iter().enumerate().take(MIXED - 3) {
            let sum: f32 = chances.iter().sum();
            assert!((sum - 1.0).abs() < 1e-3, "{class}: {sum}");
        }
        let once = SEEN[ONCE][1];
        assert!((once - 0.582).abs() < 1e-3, "1 / (e - 1): {once}");
        assert_eq!(SEEN[0].len(), COUNTS + 1);
    }

    #[test]
    fn pages_that_are_waited_for_more_hit_more() {
        assert!(HITS.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(HITS[0] < 1e-4 && HITS[HITS.len() - 1] > 0.999_99);
    }
}
