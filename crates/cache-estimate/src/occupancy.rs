//! [`served`] estimates, for the pages of each access rate, the share of the waiting for them that a cache of a given size served: Che's
//! approximation, adapted to timer samples, gives the share of accesses that hit, and the cost of a miss the share of the waiting.
//!
//! Che, Tung and Wang ("Hierarchical Web caching systems", IEEE JSAC 2002): a page that is visited `x` times on average
//! while an LRU cache is filled anew is found there with the chance `1 - e^-x`, and the sum of these chances, weighted by
//! bytes, is the size of the cache. Samples by time do not count visits but the waiting for them, and a miss takes
//! [`MISS_COST`] times a hit: `y = x (1 - e^-x + cost e^-x)`. The table [`HITS`] has the chance by `y`. Between
//! `y` of 5 and 7 there are three solutions: a page that is often missed is waited for as long as one that is often
//! visited. There and some way beyond, the table rises in a straight line, and the size of the cache selects the point on it.

use crate::tables::{CLASSES, HIT_STEPS, HITS, MISS_COST, STEPS};

/// The share of the waiting for pages of each class that the caches served.
pub(crate) fn served(bytes: &[f32; CLASSES], cache: f32) -> [f32; CLASSES] {
    if cache <= 0.0 {
        return [0.0; CLASSES];
    }
    if bytes.iter().sum::<f32>() <= cache {
        return [1.0; CLASSES];
    }
    let mut low = -(CLASSES as i32) * STEPS;
    let mut high = HIT_STEPS as i32;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match filled(bytes, middle) <= cache {
            true => low = middle,
            false => high = middle,
        }
    }
    let (below, above) = (filled(bytes, low), filled(bytes, high));
    let part = match above > below {
        true => ((cache - below) / (above - below)).clamp(0.0, 1.0),
        false => 0.0,
    };
    let mut served = [0.0; CLASSES];
    for (class, served) in served.iter_mut().enumerate() {
        let (less, more) = (hit_share(low, class), hit_share(high, class));
        *served = share_of_waiting(less + part * (more - less));
    }
    served
}

/// Bytes of the cache that are in use where it is filled anew in a time given as a step of [`HITS`].
fn filled(bytes: &[f32; CLASSES], time: i32) -> f32 {
    let parts = bytes.iter().enumerate();
    parts
        .map(|(class, bytes)| bytes * hit_share(time, class))
        .sum()
}

fn hit_share(time: i32, class: usize) -> f32 {
    let step = time + class as i32 * STEPS;
    match usize::try_from(step) {
        Ok(step) if step < HIT_STEPS => HITS[step],
        Ok(_) => 1.0,
        Err(_) => 0.0,
    }
}

/// The share of the waiting for a page that hits take, by the share of its accesses that hit.
fn share_of_waiting(hits: f32) -> f32 {
    let misses = (1.0 - hits) * MISS_COST as f32;
    if hits <= 0.0 {
        0.0
    } else {
        hits / (hits + misses)
    }
}
