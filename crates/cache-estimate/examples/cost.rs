//! Measures the cost of a sample and of an estimate: `cargo run --release -p isotherm-cache-estimate --example cost`.

use std::time::Instant;

use isotherm_cache_estimate::CacheEstimate;

fn main() {
    for (name, pages) in [
        ("64 pages", 64),
        ("4,096 pages", 1 << 12),
        ("2^20 pages", 1 << 20),
    ] {
        let mut estimate = Box::new(CacheEstimate::<1024>::new(4 << 20));
        let (mut address, mut longest, mut renewed) = (1_u64, 0, 0);
        let mut of_estimates = 0;
        let begin = Instant::now();
        for _ in 0..200_000 {
            address = address
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let one = Instant::now();
            let is_new = estimate.observe((address >> 33) % pages * 4096 + (address >> 21) % 4096);
            let took = one.elapsed().as_nanos();
            if is_new {
                (renewed, of_estimates) = (renewed + 1, of_estimates + took);
                longest = longest.max(took);
            }
        }
        let all = begin.elapsed().as_nanos();
        println!(
            "{name:>12}: {:>4} ns a sample, {:>5.1} us an estimate, the longest {:>5.1} us",
            all / 200_000,
            of_estimates as f64 / f64::from(renewed) / 1e3,
            longest as f64 / 1e3
        );
    }
}
