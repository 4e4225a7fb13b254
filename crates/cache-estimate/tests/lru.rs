//! Tests the estimate against an exact LRU cache: invented programs, whose misses are known, are sampled by time, and
//! the estimate from the addresses alone is compared with the truth.
//!
//! `cargo test -p isotherm-cache-estimate --test lru -- --nocapture` prints the table.

use std::ops::RangeInclusive;

use isotherm_cache_estimate::CacheEstimate;
use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng;

const PAGE: u64 = 4096;
const LINE: u64 = 64;
const WINDOW: usize = 1024;

/// An LRU cache of blocks, exact: a doubly linked list in arrays.
struct Lru {
    /// By block: its place in the list plus 1, or 0.
    places: Vec<u32>,
    blocks: Vec<u32>,
    newer: Vec<u32>,
    older: Vec<u32>,
    newest: u32,
    oldest: u32,
    capacity: usize,
}

const NONE: u32 = u32::MAX;

impl Lru {
    fn new(blocks: u64, capacity: u64) -> Self {
        Self {
            places: vec![0; blocks as usize],
            blocks: Vec::new(),
            newer: Vec::new(),
            older: Vec::new(),
            newest: NONE,
            oldest: NONE,
            capacity: capacity as usize,
        }
    }

    /// Accesses a block; true for a hit.
    fn access(&mut self, block: u64) -> bool {
        let place = self.places[block as usize];
        if place > 0 {
            self.unlink(place - 1);
            self.link(place - 1);
            return true;
        }
        let place = if self.blocks.len() < self.capacity {
            self.blocks.push(0);
            self.newer.push(NONE);
            self.older.push(NONE);
            self.blocks.len() as u32 - 1
        } else {
            let place = self.oldest;
            self.unlink(place);
            self.places[self.blocks[place as usize] as usize] = 0;
            place
        };
        self.blocks[place as usize] = block as u32;
        self.places[block as usize] = place + 1;
        self.link(place);
        false
    }

    fn unlink(&mut self, place: u32) {
        let (newer, older) = (self.newer[place as usize], self.older[place as usize]);
        match newer {
            NONE => self.newest = older,
            newer => self.older[newer as usize] = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.newer[older as usize] = newer,
        }
    }

    fn link(&mut self, place: u32) {
        self.newer[place as usize] = NONE;
        self.older[place as usize] = self.newest;
        match self.newest {
            NONE => self.oldest = place,
            newest => self.newer[newest as usize] = place,
        }
        self.newest = place;
    }
}

fn below(random: &mut Pcg32, limit: u64) -> u64 {
    (u64::from(random.next_u32()) * limit) >> 32
}

fn chance(random: &mut Pcg32) -> f64 {
    f64::from(random.next_u32()) / 4_294_967_296.0
}

/// A program: gives the address of each access in turn, given the share of the run that is over.
type Program<'p> = Box<dyn FnMut(&mut Pcg32, f64) -> u64 + 'p>;

/// Random accesses to `pages` pages, to `lines` lines of each.
fn uniform<'p>(pages: u64, lines: u64) -> Program<'p> {
    Box::new(move |random, _| below(random, pages) * PAGE + below(random, lines) * LINE)
}

/// Random accesses by Zipf's law with exponent 0.99.
fn zipf<'p>(pages: u64) -> Program<'p> {
    let mut sums: Vec<f64> = Vec::new();
    let mut sum = 0.0;
    for rank in 1..=pages {
        sum += (rank as f64).powf(-0.99);
        sums.push(sum);
    }
    Box::new(move |random, _| {
        let at = chance(random) * sum;
        let rank = sums.partition_point(|sum| *sum < at) as u64;
        // Neighbours in rank are no neighbours in memory.
        rank * 7919 % pages * PAGE + below(random, 64) * LINE
    })
}

/// Random accesses to `hot` pages and a scan of `scanned` others, in a circle, that takes half of the time.
fn hot_and_stream<'p>(hot: u64, scanned: u64, miss_cost: u64) -> Program<'p> {
    let mut next = 0;
    Box::new(move |random, _| match below(random, miss_cost + 1) {
        0 => {
            next = (next + 1) % scanned;
            (hot + next) * PAGE + below(random, 64) * LINE
        }
        _ => below(random, hot) * PAGE + below(random, 64) * LINE,
    })
}

/// A small set for the first half of the run, then another that does not fit.
fn phases<'p>(small: u64, large: u64) -> Program<'p> {
    Box::new(move |random, over| match over < 0.5 {
        true => below(random, small) * PAGE + below(random, 64) * LINE,
        false => (small + below(random, large)) * PAGE + below(random, 64) * LINE,
    })
}

/// Tiles of `tile` pages, each worked on for a sixtieth of the run, all of them large.
fn tiles<'p>(tile: u64) -> Program<'p> {
    Box::new(move |random, over| {
        let number = (over * 60.0) as u64;
        (number * tile + below(random, tile)) * PAGE + below(random, 64) * LINE
    })
}

/// The results of one run.
#[derive(Clone, Copy, Debug)]
struct Totals {
    /// Share of the samples at misses.
    truth: f64,
    /// Sum of the shares beyond the caches, as a runtime takes them: each at once.
    at_once: f64,
    /// Sum of the shares beyond the caches where each is taken half a window later.
    later: f64,
}

struct Setting {
    seed: u64,
    cache_pages: u64,
    miss_cost: u64,
    /// The block that the cache holds: a page or a line.
    block: u64,
}

const SAMPLES: usize = 4 * WINDOW;
const ACCESSES_A_SAMPLE: u64 = 150;

/// Runs a program of `pages` pages in all until it has been sampled often enough.
fn run(setting: &Setting, pages: u64, mut program: Program<'_>) -> Totals {
    let mut random = Pcg32::new(setting.seed, 54);
    let in_page = PAGE / setting.block;
    let mut cache = Lru::new(pages * in_page, setting.cache_pages * in_page);
    // The cache is full when sampling starts.
    for _ in 0..setting.cache_pages * in_page * 4 {
        cache.access(program(&mut random, 0.0) / setting.block);
    }
    let mut samples = Vec::new();
    // Hits and misses get about the same number of samples for each access at any cost.
    let period = ACCESSES_A_SAMPLE * setting.miss_cost / 4;
    let mut left = period;
    while samples.len() < SAMPLES {
        let over = samples.len() as f64 / SAMPLES as f64;
        let address = program(&mut random, over);
        let hit = cache.access(address / setting.block);
        let cost = if hit { 1 } else { setting.miss_cost };
        if left <= cost {
            samples.push((address, hit));
            left += period + below(&mut random, 16);
        }
        left -= cost;
    }
    judge(&samples, setting)
}

fn judge(samples: &[(u64, bool)], setting: &Setting) -> Totals {
    let mut estimate = Box::new(CacheEstimate::<WINDOW>::new(setting.cache_pages * PAGE));
    let (mut at_once, mut later) = (0.0, 0.0);
    let mut settled = 0;
    for (number, &(address, _)) in samples.iter().enumerate() {
        estimate.observe(address);
        let Some(served) = estimate.served(address) else {
            continue;
        };
        if settled == 0 {
            let earlier = (1..=number).map(|age| estimate.served_before(age).unwrap());
            at_once += earlier.map(|served| 1.0 - f64::from(served)).sum::<f64>();
        }
        settled += 1;
        at_once += 1.0 - f64::from(served);
        if number >= WINDOW / 2 {
            later += 1.0 - f64::from(estimate.served_before(WINDOW / 2).unwrap());
        }
    }
    let count = samples.len() as f64;
    for age in 0..WINDOW / 2 {
        later += 1.0 - f64::from(estimate.served_before(age).unwrap_or(1.0));
    }
    Totals {
        truth: samples.iter().filter(|(_, hit)| !hit).count() as f64 / count,
        at_once: at_once / count,
        later: later / count,
    }
}

/// A row of the table.
struct Case {
    name: &'static str,
    /// Pages of the program, in quarters of the cache.
    quarters: u64,
    program: fn(u64, u64) -> Program<'static>,
    /// Bounds of the estimate of the total less the truth.
    error: RangeInclusive<f64>,
}

fn cases() -> Vec<Case> {
    fn case(
        name: &'static str,
        quarters: u64,
        program: fn(u64, u64) -> Program<'static>,
        error: f64,
    ) -> Case {
        Case {
            name,
            quarters,
            program,
            error: -error..=error,
        }
    }
    vec![
        case(
            "random, 0.25 of the cache",
            1,
            |c, _| uniform(c / 4, 64),
            0.03,
        ),
        case(
            "random, 0.5 of the cache",
            2,
            |c, _| uniform(c / 2, 64),
            0.1,
        ),
        // Where the set is as large as the cache, 3 % more of it change the truth by 0.3.
        case("random, 1 x the cache", 4, |c, _| uniform(c, 64), 0.45),
        case("random, 2 x the cache", 8, |c, _| uniform(2 * c, 64), 0.3),
        case("random, 4 x the cache", 16, |c, _| uniform(4 * c, 64), 0.1),
        case(
            "random, 16 x the cache",
            64,
            |c, _| uniform(16 * c, 64),
            0.05,
        ),
        case("Zipf 0.99 over 4 x", 16, |c, _| zipf(4 * c), 0.12),
        case("Zipf 0.99 over 16 x", 64, |c, _| zipf(16 * c), 0.1),
        case(
            "hot 0.25 and stream of 16 x",
            65,
            |c, m| hot_and_stream(c / 4, 16 * c, m),
            0.3,
        ),
        // A limit: a window of 16 tiles has few pages that come back. They count as beyond the cache, never as served.
        Case {
            error: 0.0..=1.0,
            ..case("tiles of 0.25, one by one", 60, |c, _| tiles(c / 4), 0.0)
        },
        case(
            "0.25, then random over 16 x",
            65,
            |c, _| phases(c / 4, 16 * c),
            0.15,
        ),
    ]
}

#[test]
fn totals_beyond_the_cache_are_those_of_an_lru_cache() {
    println!(
        "{:<30} {:>6} {:>4} {:>4} | {:>6} {:>7} {:>6}",
        "program", "cache", "cost", "seed", "truth", "at once", "later"
    );
    let mut wrong = Vec::new();
    for case in cases() {
        for cache_pages in [256, 1024, 4096] {
            for (seed, miss_cost) in [(1, 10), (2, 20), (3, 30)] {
                let setting = Setting {
                    seed,
                    cache_pages,
                    miss_cost,
                    block: PAGE,
                };
                let program = (case.program)(cache_pages, miss_cost);
                let got = run(&setting, case.quarters * cache_pages / 4, program);
                let row = format!(
                    "{:<30} {:>6} {miss_cost:>4} {seed:>4} | {:>6.3} {:>7.3} {:>6.3}",
                    case.name,
                    cache_pages * 4 / 1024,
                    got.truth,
                    got.at_once,
                    got.later
                );
                println!("{row}");
                let within = |total: f64| case.error.contains(&(total - got.truth));
                if !within(got.at_once) || !within(got.later) {
                    wrong.push(row);
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "beyond their bounds:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn a_list_with_one_element_a_page_fits_where_its_lines_fit() {
    for seed in 1..6 {
        let setting = Setting {
            seed,
            cache_pages: 256,
            miss_cost: 20,
            block: LINE,
        };
        let fits = run(&setting, 16 * 256, uniform(16 * 256, 1));
        let beyond = run(&setting, 256 * 256, uniform(256 * 256, 1));
        println!("seed {seed}: a quarter of the lines {fits:.3?}, 4 x the lines {beyond:.3?}");
        assert!(fits.truth < 0.01 && fits.at_once < 0.25 && fits.later < 0.1);
        assert!(beyond.truth > 0.9 && beyond.at_once > 0.85 && beyond.later > 0.85);
    }
}

/// A sweep over four times the cache, of which every third sample is at the end of a page, because prefetchers stop there.
#[test]
fn waiting_at_the_ends_of_pages_does_not_make_a_sweep_fit() {
    for (seed, cache_pages) in [(1, 256_u64), (2, 512), (3, 1024)] {
        let mut random = Pcg32::new(seed, 54);
        let mut estimate = Box::new(CacheEstimate::<WINDOW>::new(cache_pages * PAGE));
        for _ in 0..4 * WINDOW {
            // Between two samples there are several sweeps and a part of one.
            let page = below(&mut random, 4 * cache_pages);
            let line = match below(&mut random, 3) {
                0 => 63,
                _ => below(&mut random, 64),
            };
            estimate.observe(page * PAGE + line * LINE);
        }
        let shares = (0..WINDOW).map(|age| estimate.served_before(age).unwrap());
        let served = shares.sum::<f32>() / WINDOW as f32;
        println!("seed {seed}, cache of {cache_pages} pages: {served}");
        assert!(
            served < 0.1,
            "{served} of a sweep over four times the cache"
        );
    }
}

/// A hot set in the cache that is waited for in 49 of 50 samples, and random accesses over sixteen times the cache.
#[test]
fn a_few_samples_beside_a_hot_set_do_not_count_as_served() {
    for (seed, cache_pages) in [(1, 512_u64), (2, 2048), (3, 4096)] {
        let mut random = Pcg32::new(seed, 54);
        let mut estimate = Box::new(CacheEstimate::<WINDOW>::new(cache_pages * PAGE));
        let (mut served, mut count) = (0.0, 0.0);
        for sample in 0..8 * WINDOW {
            let is_rare = below(&mut random, 50) == 0;
            let page = match is_rare {
                true => cache_pages + below(&mut random, 16 * cache_pages),
                false => below(&mut random, 64),
            };
            let address = page * PAGE + below(&mut random, 64) * LINE;
            estimate.observe(address);
            if is_rare && sample >= WINDOW {
                served += f64::from(estimate.served(address).unwrap());
                count += 1.0;
            }
        }
        println!(
            "seed {seed}, cache of {cache_pages} pages: {}",
            served / count
        );
        assert!(served / count < 0.1, "{} of rare pages", served / count);
    }
}
