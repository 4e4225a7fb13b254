//! [`by_name`] generates a trace of a known access pattern, such as zipf or a sliding window, from a seed: an iterator of accesses
//! ([`Generated`]) for the simulator and its tests. The same settings give the same accesses on every machine.
//!
//! Each pattern is a function that makes it for the settings, in a file of its own. Patterns compute in integers only, so that results do
//! not depend on a mathematics library.

mod graph_walk;
mod pcg;
mod phases;
mod registry;
mod rmat;
mod scan_and_hot_set;
mod sliding_window;
mod stencil_sweep;
mod uniform;
mod zipf;

use isotherm_model::trace::Access;
use isotherm_model::units::{Bytes, Nanos};

use pcg::Pcg32;
pub use registry::{by_name, names};

/// First address of every generated trace.
const BASE: u64 = 1 << 36;

/// Bytes of a page: the grain at which patterns are hot or cold.
const PAGE: u64 = 4096;

/// Bytes of a cache line: the grain of an access.
const LINE: u64 = 64;

/// The smallest memory in which every pattern shows its characteristic behaviour: 16 pages.
pub const SMALLEST_FOOTPRINT: Bytes = Bytes(16 * PAGE);

/// The largest memory that is generated, 1 TiB: zipf, which holds two numbers for each of the 2^28
/// pages, takes 4 GiB for it.
pub const LARGEST_FOOTPRINT: Bytes = Bytes(PAGE << 28);

/// The input of every generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneratorSettings {
    /// Seed of the random numbers; another seed gives another trace of the same pattern.
    pub seed: u64,
    /// Memory of the program; accesses stay below it. Less than [`SMALLEST_FOOTPRINT`] counts as
    /// that; more than [`LARGEST_FOOTPRINT`] takes more memory than most machines have.
    pub footprint: Bytes,
    /// Number of accesses in the trace.
    pub accesses: u64,
    /// Time from one access to the next.
    pub interval: Nanos,
}

impl Default for GeneratorSettings {
    /// 16 MiB, four million accesses, one every 10 ns.
    fn default() -> Self {
        Self {
            seed: 1,
            footprint: Bytes(16 << 20),
            accesses: 1 << 22,
            interval: Nanos(10),
        }
    }
}

impl GeneratorSettings {
    /// Pages of the footprint.
    fn pages(&self) -> u64 {
        self.footprint.max(SMALLEST_FOOTPRINT).0 / PAGE
    }
}

/// The place of the next access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    /// Bytes from the first address.
    offset: u64,
    write: bool,
}

/// Chooses the place of each access, by the number of the access, from 0.
type Pattern = Box<dyn FnMut(u64, &mut Pcg32) -> Place>;

/// A trace as it is generated: an iterator of accesses.
pub struct Generated {
    pattern: Pattern,
    random: Pcg32,
    settings: GeneratorSettings,
    at: u64,
}

impl std::fmt::Debug for Generated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "access {} of {:?}", self.at, self.settings)
    }
}

impl Iterator for Generated {
    type Item = Access;

    fn next(&mut self) -> Option<Access> {
        if self.at >= self.settings.accesses {
            return None;
        }
        let place = (self.pattern)(self.at, &mut self.random);
        let time = Nanos(self.at.saturating_mul(self.settings.interval.0));
        self.at += 1;
        Some(Access {
            time,
            address: BASE + place.offset,
            write: place.write,
        })
    }
}

/// A random line of a page; one access in four is a write.
fn somewhere_in(page: u64, random: &mut Pcg32) -> Place {
    Place {
        offset: page * PAGE + random.below(PAGE / LINE) * LINE,
        write: random.below(4) == 0,
    }
}

/// All pages in random order: hot pages need not be adjacent.
fn shuffled(pages: u64, random: &mut Pcg32) -> Vec<u64> {
    let mut order: Vec<u64> = (0..pages).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{BASE, GeneratorSettings, by_name, names};
    use isotherm_model::trace::Access;
    use isotherm_model::units::{Bytes, Nanos};

    fn trace(name: &str, seed: u64) -> Vec<Access> {
        let settings = GeneratorSettings {
            seed,
            footprint: Bytes(1 << 20),
            accesses: 20_000,
            interval: Nanos(3),
        };
        by_name(name, settings).unwrap().collect()
    }

    #[test]
    fn every_trace_is_as_long_as_asked_for_in_order_and_within_its_footprint() {
        for name in names() {
            let trace = trace(name, 5);
            assert_eq!(trace.len(), 20_000, "{name}");
            assert!(trace.is_sorted_by_key(|access| access.time), "{name}");
            let inside = |access: &Access| (BASE..BASE + (1 << 20)).contains(&access.address);
            assert!(trace.iter().all(inside), "{name}");
            assert!(trace.iter().any(|access| access.write), "{name}");
            let pages: BTreeSet<u64> = trace.iter().map(|a| a.address >> 12).collect();
            assert!(pages.len() > 64, "{name}: {} pages", pages.len());
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_trace_and_chance_follows_the_seed() {
        for name in names() {
            assert_eq!(trace(name, 5), trace(name, 5), "{name}");
            let by_chance = name != "stencil-sweep";
            assert_eq!(trace(name, 5) != trace(name, 6), by_chance, "{name}");
        }
    }

    /// FNV-1a over the addresses and kinds of the accesses.
    fn digest(trace: &[Access]) -> u64 {
        let words = trace.iter().map(|at| at.address << 1 | u64::from(at.write));
        words.fold(0xcbf2_9ce4_8422_2325, |hash, word| {
            (hash ^ word).wrapping_mul(0x0100_0000_01b3)
        })
    }

    #[test]
    fn a_seed_names_the_same_trace_in_every_version() {
        let digests = names().map(|name| (name, digest(&trace(name, 5))));
        let digests: Vec<(&str, u64)> = digests.collect();
        let since_the_first = [
            ("uniform", 0xb811_a32f_cff9_412d),
            ("zipf", 0x27ac_cfbf_c88d_5f2a),
            ("sliding-window", 0xb10c_b17c_0fcb_812d),
            ("phases", 0xd61d_9c3f_6d4f_5c1c),
            ("scan-and-hot-set", 0x0506_8558_99ee_34bc),
            ("stencil-sweep", 0x70fd_2d18_849e_20e5),
            ("graph-walk", 0xc5b6_893f_85ff_120f),
        ];
        assert_eq!(digests, since_the_first);
    }

    #[test]
    fn the_smallest_settings_generate() {
        for name in names() {
            let settings = GeneratorSettings {
                footprint: Bytes(0),
                accesses: 100,
                ..GeneratorSettings::default()
            };
            assert_eq!(by_name(name, settings).unwrap().count(), 100, "{name}");
        }
    }
}
