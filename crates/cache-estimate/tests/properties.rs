//! Tests properties of the estimate that hold for any stream of addresses.

use isotherm_cache_estimate::CacheEstimate;
use proptest::prelude::*;

const WINDOW: usize = 128;

/// The shares of all samples of a stream, each asked at once.
fn shares(addresses: &[u64], cache: u64) -> Vec<Option<f32>> {
    let mut estimate = CacheEstimate::<WINDOW>::new(cache);
    let share = |address: &u64| {
        estimate.observe(*address);
        estimate.served(*address)
    };
    addresses.iter().map(share).collect()
}

/// Streams over few or many pages, in any order, the ends of the address space included.
fn streams() -> impl Strategy<Value = Vec<u64>> {
    let page = prop_oneof![
        0..40_u64,
        0..4000_u64,
        (u64::MAX >> 12) - 3..=u64::MAX >> 12,
        any::<u64>()
    ];
    let address = (page, 0..4096_u64).prop_map(|(page, byte)| (page << 12) + byte);
    proptest::collection::vec(address, 0..600)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_share_is_between_nothing_and_all(stream in streams(), cache in 0..1_u64 << 40) {
        for share in shares(&stream, cache).into_iter().flatten() {
            prop_assert!((0.0..=1.0).contains(&share), "{share}");
        }
    }

    #[test]
    fn a_larger_cache_serves_no_less(stream in streams(), cache in 0..1_u64 << 24, more in 0..1_u64 << 24) {
        let (small, large) = (shares(&stream, cache), shares(&stream, cache + more));
        for (small, large) in small.into_iter().zip(large) {
            let (small, large) = (small.unwrap_or(1.0), large.unwrap_or(1.0));
            prop_assert!(small <= large + 1e-4, "{small} {large}");
        }
    }

    #[test]
    fn only_the_identity_of_pages_matters(stream in streams(), cache in 0..1_u64 << 24, key: u64) {
        let moved: Vec<u64> = stream.iter().map(|address| address ^ (key << 12)).collect();
        prop_assert_eq!(shares(&stream, cache), shares(&moved, cache));
    }
}

#[test]
fn without_a_cache_nothing_is_served() {
    let served = shares(&[4096; 400], 0);
    assert!(served.iter().all(|share| *share == Some(0.0)), "{served:?}");
}

#[test]
fn few_samples_say_nothing_about_a_large_cache() {
    let stream: Vec<u64> = (0..120).map(|sample| sample * 4096).collect();
    assert!(shares(&stream, 32 << 20).iter().all(Option::is_none));
    // For 256 KiB, 64 pages, 46 samples are enough, and they find pages that do not come back.
    let small = shares(&stream, 1 << 18);
    assert!(
        small.last().unwrap().is_some_and(|share| share < 0.2),
        "{small:?}"
    );
}

#[test]
fn the_share_of_the_window_that_is_in_one_page_is_served() {
    let stream: Vec<u64> = (0..256).map(|sample| sample % 2 * sample * 4096).collect();
    let mut estimate = CacheEstimate::<WINDOW>::new(1 << 16);
    stream.iter().for_each(|address| {
        estimate.observe(*address);
    });
    let last = &stream[stream.len() - WINDOW..];
    let shares = last
        .iter()
        .map(|address| estimate.served(*address).unwrap());
    let all = shares.sum::<f32>() / WINDOW as f32;
    assert!((0.4..0.6).contains(&all), "half are in one page: {all}");
}
