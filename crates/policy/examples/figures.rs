//! Measures the promised performance figures of the policies on this machine, one line each.
//!
//!     cargo run --release -p isotherm-policy --example figures [SECTION ...]
//!
//! Sections: `knapsack`, `hotness`, `chunks`, `share`; without an argument all of them run, in this order. Times are processor time,
//! medians of three runs. The peak memory is that of the whole process so far, including generated input, so run `knapsack` first or alone.
//! Lines that begin with `reached` or `not reached` compare the figures with SPECIFICATION.md; `bench/run policies` reads them.

use std::time::{Duration, Instant};

use isotherm_model::batch::Process;
use isotherm_model::emulation::Emulation;
use isotherm_model::plan::Item;
use isotherm_model::port::SitePolicy;
use isotherm_model::site::SiteId;
use isotherm_model::tier::Tiers;
use isotherm_model::units::Bytes;
use isotherm_policy::chunks::{ChunkParameters, CutReading, DataObject, select};
use isotherm_policy::{Hotset, Knapsack, PAGE, PlanRequest, Thermos, plan, standing};

const SEED: u64 = 2018;
const RUNS: usize = 3;

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let sections: [(&str, fn()); 4] = [
        ("knapsack", knapsack),
        ("hotness", hotness),
        ("chunks", chunks),
        ("share", share),
    ];
    let known = |name: &String| sections.iter().any(|(section, _)| section == name);
    if let Some(unknown) = asked.iter().find(|name| !known(name)) {
        eprintln!("there is no section \"{unknown}\"; there are knapsack, hotness, chunks, share");
        std::process::exit(2);
    }
    println!("seed {SEED}, {}", processor());
    for (name, section) in sections {
        if asked.is_empty() || asked.iter().any(|asked| asked == name) {
            section();
        }
    }
}

/// Prints a promise, and whether this machine keeps it.
fn verdict(what: &str, promised: &str, measured: &str, is_reached: bool) {
    let word = if is_reached { "reached" } else { "not reached" };
    println!("{word}: {what}: promised {promised}, measured {measured}");
}

/// SplitMix64: small, seeded, the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to below 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.unit() * end as f64) as u64
    }

    /// A random number for which every factor between the two is equally likely: sizes and hotness
    /// of real sites span decades.
    fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.unit())
    }
}

/// Sites with sizes and values from this function.
fn sites(
    random: &mut Random,
    count: usize,
    mut pages_and_value: impl FnMut(&mut Random) -> (u64, u64),
) -> Vec<Item> {
    let site = |order: usize| {
        let (pages, value) = pages_and_value(random);
        Item {
            site: SiteId(random.next() | 2),
            value,
            weight: Bytes(pages * PAGE),
            order: order as u32,
        }
    };
    (0..count).map(site).collect()
}

/// Processor time of this thread so far, so that other programs on the machine do not count; the
/// time of day where the kernel does not report it.
fn processor_time(start: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

/// Median processor time of some runs, and the last result.
fn timed<T>(mut run: impl FnMut() -> T) -> (Duration, T) {
    let start = Instant::now();
    let mut once = || {
        let begin = processor_time(start);
        let result = run();
        (processor_time(start).saturating_sub(begin), result)
    };
    let (first, mut result) = once();
    let mut times = vec![first];
    for _ in 1..RUNS {
        let (time, next) = once();
        times.push(time);
        result = next;
    }
    times.sort_unstable();
    (times[RUNS / 2], result)
}

fn size(random: &mut Random) -> u64 {
    random.log_uniform(1.0, 8192.0) as u64
}

/// 100,000 sites, 64 GiB of fast memory, about 350 GiB of footprint; one line for each relation of
/// value to size.
fn knapsack() {
    const SITES: usize = 100_000;
    let capacity = Bytes(64 << 30);
    type Kind = fn(&mut Random) -> (u64, u64);
    let kinds: [(&str, Kind); 3] = [
        ("value independent of size", |random| {
            let pages = size(random);
            (pages, random.log_uniform(1.0, 1e6) as u64)
        }),
        ("value within 10 % of size", |random| {
            let pages = size(random);
            (pages, pages * (900 + random.below(201)))
        }),
        ("value is size and a constant", |random| {
            let pages = size(random);
            (pages, pages + 100)
        }),
    ];
    let mut slowest = Duration::ZERO;
    for (name, kind) in kinds {
        let items = sites(&mut Random(SEED), SITES, kind);
        let footprint: Bytes = items.iter().map(|item| item.weight).sum();
        let (time, choices) = timed(|| Knapsack::DEFAULT.choose(&items, capacity));
        let unproved = choices.iter().any(|c| c.reason.contains("not proved"));
        slowest = slowest.max(time);
        println!(
            "knapsack  {SITES} sites of {footprint}, {capacity} fast, {name}: {:.3} s, {}, peak {}",
            time.as_secs_f64(),
            if unproved { "not proved" } else { "proved" },
            peak_memory().map_or("unknown".to_owned(), |peak| peak.to_string())
        );
    }
    let measured = format!("{:.2} s", slowest.as_secs_f64());
    let what = "knapsack, exact, 100,000 sites in pages, 64 GiB fast";
    verdict(what, "at most 2 s", &measured, slowest.as_secs_f64() <= 2.0);
    if let Some(peak) = peak_memory() {
        let is_reached = peak.0 <= 200_000_000;
        verdict(what, "at most 200 MB", &peak.to_string(), is_reached);
    }
}

/// A million sites, a quarter of their footprint fast: the walk alone, and the whole plan.
fn hotness() {
    const SITES: usize = 1_000_000;
    let items = sites(&mut Random(SEED), SITES, any_site);
    let footprint: Bytes = items.iter().map(|item| item.weight).sum();
    let capacity = Bytes(footprint.0 / 4);
    let tiers = Tiers::emulated(capacity, footprint, Emulation::TMP);
    let thermos = Thermos::default();
    let policies: [&dyn SitePolicy; 2] = [&thermos, &Hotset];
    for policy in policies {
        let (walk, _) = timed(|| policy.choose(&items, capacity));
        let (whole, _) = timed(|| plan(&PlanRequest::new(policy, &items, &tiers)));
        println!(
            "{:<9} {SITES} sites: {:.3} s for the choice with its reasons, {:.3} s for the whole plan",
            policy.name(),
            walk.as_secs_f64(),
            whole.as_secs_f64()
        );
        let what = format!("{}, choice among 1,000,000 sites", policy.name());
        let measured = format!("{:.2} s", walk.as_secs_f64());
        verdict(&what, "at most 1 s", &measured, walk.as_secs_f64() <= 1.0);
    }
}

/// Sizes from a page to 64 MiB, and accesses per page over four decades, both log-uniform.
fn any_site(random: &mut Random) -> (u64, u64) {
    let pages = random.log_uniform(1.0, 16384.0);
    let accesses = pages * random.log_uniform(0.01, 100.0);
    (pages as u64, accesses as u64)
}

/// Chunks of an object, and objects, for ten million chunks.
const CHUNKS: usize = 4096;
const OBJECTS: usize = 2442;

fn chunks() {
    let footprint = Bytes((CHUNKS * OBJECTS) as u64 * PAGE);
    let part = |parts: u64| Bytes(footprint.0 / parts);
    let usual = ChunkParameters::default();
    // The highest possible number of ranges, none promoted, and a capacity that requires sorting
    // them.
    let single = ChunkParameters {
        epsilon: 1.0,
        ..ChunkParameters::of_arity(2)
    };
    let counts = stretches();
    million(&counts, &usual);
    let rates = [
        select_chunks("hot stretches that fit", &counts, &usual, footprint),
        select_chunks("hot stretches, 1 % fast", &counts, &usual, part(100)),
        select_chunks(
            "every other chunk, 25 % fast",
            &alternating(),
            &single,
            part(4),
        ),
    ];
    let slowest = rates.into_iter().fold(f64::INFINITY, f64::min);
    verdict(
        "chunk selection, slowest of three inputs",
        "at least 10 million chunks/s",
        &format!("{slowest:.0} million chunks/s"),
        slowest >= 10.0,
    );
}

/// The time for a million of these chunks, of which a quarter fits.
fn million(counts: &[u64], usual: &ChunkParameters) {
    let counts = &counts[..1_000_000_usize.next_multiple_of(CHUNKS)];
    let mut usual_time = 0.0;
    for cut in CutReading::ALL {
        let parameters = ChunkParameters { cut, ..*usual };
        let capacity = Bytes(counts.len() as u64 * PAGE / 4);
        let name = format!("hot stretches, 25 % fast, eq2:{}", cut.word());
        let rate = select_chunks(&name, counts, &parameters, capacity);
        if cut == usual.cut {
            usual_time = 1e3 / rate;
        }
    }
    verdict(
        "chunk selection, a million chunks",
        "at most 10 ms",
        &format!("{usual_time:.0} ms"),
        usual_time <= 10.0,
    );
}

/// A hot stretch in each object, and single samples everywhere.
fn stretches() -> Vec<u64> {
    let mut random = Random(SEED);
    let mut counts = vec![0_u64; CHUNKS * OBJECTS];
    for object in counts.chunks_mut(CHUNKS) {
        let first = random.below(CHUNKS as u64) as usize;
        let length = random.log_uniform(1.0, 1024.0) as usize;
        let heat = random.log_uniform(2.0, 1000.0);
        for (index, count) in object.iter_mut().enumerate() {
            let in_stretch = (first..first + length).contains(&index);
            let expected = if in_stretch { heat } else { 0.1 };
            *count = (expected * 2.0 * random.unit()) as u64 + u64::from(random.unit() < 0.05);
        }
    }
    counts
}

fn alternating() -> Vec<u64> {
    let mut random = Random(SEED);
    let count = |index: usize| (1 + random.below(1000)) * (index % 2) as u64;
    (0..CHUNKS * OBJECTS).map(count).collect()
}

/// Prints the speed in million chunks a second.
fn select_chunks(name: &str, counts: &[u64], parameters: &ChunkParameters, capacity: Bytes) -> f64 {
    let object = |(number, missed_reads)| DataObject {
        process: Process::default(),
        site: SiteId(number as u64 + 2),
        address: (number as u64 + 1) << 32,
        bytes: Bytes(CHUNKS as u64 * PAGE),
        grain: Bytes(PAGE),
        missed_reads,
    };
    let objects: Vec<DataObject<'_>> = counts.chunks(CHUNKS).enumerate().map(object).collect();
    let (time, selection) = timed(|| select(&objects, parameters, capacity));
    let selection = selection.expect("these objects can be selected from");
    let rate = counts.len() as f64 / time.as_secs_f64() / 1e6;
    println!(
        "chunks    {} chunks, {name}: {rate:.1} million chunks/s; {} ranges of {}",
        counts.len(),
        selection.ranges.len(),
        selection.bytes()
    );
    rate
}

/// Share of the fractional bound that thermos serves, over 1,000 profiles of 16 to 1,024 sites.
fn share() {
    const PROFILES: u64 = 1000;
    let policies: [(&str, &dyn SitePolicy); 3] = [
        ("thermos", &Thermos::default()),
        ("hotset", &Hotset),
        ("knapsack", &Knapsack::DEFAULT),
    ];
    for (name, policy) in policies {
        let mut shares: Vec<f64> = (0..PROFILES)
            .map(|number| {
                let mut random = Random(SEED.wrapping_mul(1_000_003) + number);
                let count = random.log_uniform(16.0, 1024.0) as usize;
                let items = sites(&mut random, count, any_site);
                let footprint: Bytes = items.iter().map(|item| item.weight).sum();
                let capacity = Bytes(footprint.0 / 4);
                let choices = policy.choose(&items, capacity);
                let taken = choices.iter().filter(|choice| choice.taken);
                let taken: Vec<Item> = taken.map(|choice| items[choice.item]).collect();
                standing(&items, &taken, capacity).share_of_bound()
            })
            .collect();
        shares.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| shares[(share * (shares.len() - 1) as f64) as usize];
        println!(
            "share     {name} of the fractional bound at 25 %, {PROFILES} profiles: median {:.4}, \
             tenth {:.4}, lowest {:.4}",
            at(0.5),
            at(0.1),
            at(0.0)
        );
        if name == "thermos" {
            let what = "thermos, share of the fractional bound at 25 %, median of 1,000 profiles";
            let measured = format!("{:.3}", at(0.5));
            verdict(what, "at least 0.97", &measured, at(0.5) >= 0.97);
        }
    }
}

/// Peak resident memory of this process, where the kernel reports it.
fn peak_memory() -> Option<Bytes> {
    let line = proc_line("/proc/self/status", "VmHWM:")?;
    let kib: u64 = line.split(' ').next()?.parse().ok()?;
    Some(Bytes(kib << 10))
}

fn processor() -> String {
    let name = proc_line("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned());
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{name}, {count} processors, one used")
}

fn proc_line(path: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let value = line.trim_start_matches([' ', '\t', ':']);
    Some(value.split_whitespace().collect::<Vec<_>>().join(" "))
}
