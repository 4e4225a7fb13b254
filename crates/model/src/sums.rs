//! [`sums`] adds up values by their keys.

use std::collections::BTreeMap;
use std::ops::AddAssign;

/// The sum of the values of each key.
pub fn sums<K: Ord, V: AddAssign + Default>(
    rows: impl IntoIterator<Item = (K, V)>,
) -> BTreeMap<K, V> {
    let mut sums = BTreeMap::<K, V>::new();
    for (key, value) in rows {
        *sums.entry(key).or_default() += value;
    }
    sums
}
