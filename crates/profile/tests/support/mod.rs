//! Invents profiles from a seed, and makes directories that remove themselves.
#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod absorb;

use std::path::{Path, PathBuf};

use isotherm_model::batch::{Count, Epoch, Extent, Process, SourceReport};
use isotherm_model::code_access::{AccessKind, CodeAccess, SampleWalk};
use isotherm_model::isolation_runs::{BandwidthCounter, IsolatedData, IsolationRun, IsolationRuns};
use isotherm_model::movement::AddressRange;
use isotherm_model::profile::{EpochSpan, Heat, HeatBin, HeatObject, Meta, Resident, Segment};
use isotherm_model::sensitivity_runs::{FastData, SensitivityRun, SensitivityRuns, TierPair};
use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
use isotherm_model::tier::TierIndex;
use isotherm_model::units::{Accesses, Bytes, Nanos};

/// SplitMix64: small, and the same everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(crate) fn maybe<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(2) == 0).then(|| value(self))
    }

    /// Text with all that could upset a writer: quotes, line ends, other scripts, nothing.
    pub(crate) fn text(&mut self) -> String {
        let words = [
            "",
            "main",
            "a b",
            "\"'\\",
            "x\ny",
            "größe",
            "温度",
            "\0",
            "</script>",
        ];
        words[self.below(words.len() as u64) as usize].to_owned()
    }
}

/// The seed of this run, from `ISOTHERM_SEED` or the clock, printed so that it can be replayed.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("ISOTHERM_SEED").ok();
    let seed = given.and_then(|text| text.parse().ok()).unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |now| now.as_nanos() as u64)
    });
    println!("ISOTHERM_SEED={seed}");
    seed
}

/// A directory of its own, removed at the end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("isotherm-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn meta(random: &mut Random) -> Meta {
    Meta {
        isotherm: "0.1.0".into(),
        command: (0..random.below(12)).map(|_| random.text()).collect(),
        started: "2026-01-02T03:04:05Z".into(),
        machine: (0..random.below(4))
            .map(|_| (random.text(), random.text()))
            .collect(),
        depth: random.below(64) as u32,
        epoch_length: Nanos(random.next()),
        chunk: Bytes(random.next()),
        emulated: random.below(2) == 0,
        sample_interval: random.maybe(Random::next).map(Nanos),
        cache_filter: random.maybe(Random::next).map(Bytes),
        cache: random.maybe(Random::next).map(Bytes),
    }
}

fn frame(random: &mut Random) -> Frame {
    Frame {
        module: random.text().into(),
        build_id: random.maybe(|random| random.text().into()),
        offset: random.next(),
        function: random.maybe(Random::text),
        file: random.maybe(Random::text),
        line: random.maybe(|random| random.next() as u32),
        column: random.maybe(|random| random.next() as u32),
        function_line: random.maybe(|random| random.next() as u32),
        variable: random.maybe(Random::text),
    }
}

/// Frames of a site are the same whenever it is named, as in a real run.
pub(crate) fn site(id: u64, random: &mut Random) -> Site {
    let mut own = Random(id);
    let kinds = [
        SiteKind::Heap,
        SiteKind::Mapping,
        SiteKind::Shared,
        SiteKind::Unattributed,
    ];
    Site {
        id: SiteId(id),
        kind: kinds[own.below(4) as usize],
        frames: (0..own.below(5)).map(|_| frame(&mut own)).collect(),
        allocations: random.next(),
        requested: Bytes(random.next()),
        peak_requested: Bytes(random.next()),
        peak_rss: Bytes(random.next()),
        first_seen: own.next() as u32,
    }
}

fn process(random: &mut Random) -> Process {
    Process {
        pid: random.below(3) as u32 + 1,
        image: random.below(2) as u32,
    }
}

fn extent(random: &mut Random) -> Extent {
    Extent {
        process: process(random),
        site: SiteId(random.below(9)),
        address: random.below(50) << 12,
        bytes: Bytes(random.next()),
        resident: Bytes(random.next()),
        tier: random.maybe(|random| TierIndex(random.below(3) as u32)),
    }
}

fn count(random: &mut Random) -> Count {
    Count {
        process: random.maybe(process),
        name: random.text(),
        value: random.next(),
    }
}

fn source(random: &mut Random) -> SourceReport {
    SourceReport {
        name: random.text(),
        taken: random.next(),
        usable: random.next(),
        lost: random.next(),
        cost: Nanos(random.next()),
        cost_note: random.text(),
        warning: random.text(),
    }
}

/// None, an object of which the chunk alone is known, or one with a bin.
fn heat_object(random: &mut Random) -> Option<HeatObject> {
    let range = AddressRange {
        start: random.next(),
        bytes: Bytes(random.below(1 << 30) + 1),
    };
    let bytes = 4096 << random.below(12);
    let start = random.below(range.bytes.0) / bytes * bytes;
    match random.below(3) {
        0 => None,
        1 => Some(range.into()),
        _ => Some(HeatObject {
            range,
            bin: HeatBin::new(Bytes(start), Bytes(bytes), &range),
        }),
    }
}

/// The accesses of an instruction to the data of a site. Columns that sites have and code has not are as read.
fn code(random: &mut Random) -> CodeAccess {
    let frame = Frame {
        function_line: None,
        variable: None,
        ..frame(random)
    };
    CodeAccess {
        site: SiteId(random.below(9)),
        code: frame.into(),
        kind: random.maybe(|random| AccessKind::ALL[random.below(3) as usize]),
        accesses: Accesses(random.next()),
        streamed: Accesses(random.next()),
        served: Accesses(random.next()),
        threads: random.below(17) as u32,
        walk: SampleWalk {
            pairs: random.next(),
            continued: random.next(),
            divisor: Bytes(random.next()),
        },
    }
}

/// The rows that epoch `epoch` of the run with this seed adds. `size` scales their number.
pub(crate) fn segment(seed: u64, epoch: u32, size: u64) -> Segment {
    let mut random = Random(seed ^ (u64::from(epoch) << 32));
    let epoch = Epoch(epoch);
    let mut heat: Vec<_> = (0..random.below(size))
        .map(|_| Heat {
            epoch,
            process: process(&mut random),
            site: SiteId(random.below(9)),
            address: random.next(),
            object: heat_object(&mut random),
            accesses: Accesses(random.below(1 << 56)),
            streamed: Accesses(u64::from(epoch.0) + 1),
            served: Accesses(random.below(9)),
        })
        .collect();
    heat.sort_by_key(|heat| (heat.process, heat.address));
    Segment {
        epoch: EpochSpan {
            epoch,
            span: Nanos(random.next()),
        },
        sites: (0..random.below(6))
            .map(|_| {
                let id = random.below(40);
                site(id, &mut random)
            })
            .collect(),
        extents: (0..random.below(size))
            .map(|_| extent(&mut random))
            .collect(),
        heat,
        resident: (0..random.below(9))
            .map(|site| Resident {
                epoch,
                site: SiteId(site),
                bytes: Bytes(random.next()),
            })
            .collect(),
        code: (0..random.below(size)).map(|_| code(&mut random)).collect(),
        counts: (0..random.below(4)).map(|_| count(&mut random)).collect(),
        sources: (0..random.below(3)).map(|_| source(&mut random)).collect(),
    }
}

/// Timed runs of some rounds, with random sites alone fast.
pub(crate) fn sensitivity(random: &mut Random) -> SensitivityRuns {
    let sites = [random.next(), random.next()].map(|id| FastData::Site(SiteId(id)));
    let shared = FastData::Site(SiteId::SHARED);
    let all = [FastData::Nothing, shared, sites[0], sites[1], FastData::All];
    let round = |round: u64| all.map(|fast| (round as u32, fast));
    let runs = (0..1 + random.below(4)).flat_map(round);
    let runs: Vec<_> = runs
        .map(|(round, fast)| SensitivityRun {
            fast,
            round,
            time: Nanos(random.next()),
        })
        .collect();
    SensitivityRuns {
        tiers: TierPair::from_text(random.text()),
        runs,
    }
}

/// Runs with random sites alone in a tier.
pub(crate) fn isolation(random: &mut Random) -> IsolationRuns {
    let site = IsolatedData::Site(SiteId(random.next()));
    let shared = IsolatedData::Site(SiteId::SHARED);
    let all = [IsolatedData::Nothing, site, shared, IsolatedData::Rest];
    let runs = all.map(|isolated| IsolationRun {
        isolated,
        bytes: Bytes(random.next()),
        time: Nanos(random.next()),
    });
    let counter = BandwidthCounter::ALL[random.below(2) as usize];
    IsolationRuns {
        tiers: TierPair::from_text(random.text()),
        counter,
        runs: runs.to_vec(),
    }
}

/// Contents of all files of a profile, by name.
pub(crate) fn files(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(path)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}
