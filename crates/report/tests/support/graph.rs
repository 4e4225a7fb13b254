//! Invents the recording of a graph program: a few small hot arrays, large cold ones, phases.

#[path = "../../../profile/tests/support/absorb.rs"]
mod absorb;

use std::collections::BTreeMap;

use isotherm_model::batch::{Count, Epoch, Process, SourceReport};
use isotherm_model::emulation::Emulation;
use isotherm_model::hotness::hotter_first;
use isotherm_model::plan::{Assignment, Caller, PlacedPart, Plan, PlanBounds, Value, Weight};
use isotherm_model::profile::{Ending, EpochSpan, Heat, Meta, Profile, Resident, Segment};
use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
use isotherm_model::tier::{TierIndex, Tiers};
use isotherm_model::units::{Accesses, Bytes, Nanos};

use absorb::absorb;

const MIB: u64 = 1 << 20;
const CHUNK: u64 = 2 * MIB;
const EPOCHS: u32 = 30;
const PROCESS: Process = Process {
    pid: 4711,
    image: 0,
};

/// Function, line, MiB, hotness, first and last epoch: one site each.
type Made = (&'static str, u32, u64, u64, u32, u32);
const SITES: [Made; 14] = [
    ("read_edges(std::string const&)", 41, 420, 9, 0, 6),
    ("Graph::Graph(EdgeList const&)", 88, 310, 14, 2, 29),
    ("Graph::Graph(EdgeList const&)", 92, 64, 220, 2, 29),
    ("Graph::transpose() const", 131, 310, 3, 5, 29),
    ("Graph::transpose() const", 135, 64, 11, 5, 29),
    ("pagerank(Graph const&, int)", 203, 32, 900, 7, 29),
    ("pagerank(Graph const&, int)", 204, 32, 640, 7, 29),
    ("bfs(Graph const&, unsigned)", 166, 32, 310, 6, 17),
    ("bfs(Graph const&, unsigned)", 171, 24, 140, 6, 17),
    ("Frontier::grow(unsigned long)", 57, 18, 90, 6, 17),
    ("load_labels(std::istream&)", 233, 140, 1, 1, 29),
    ("Checkpoint::Checkpoint(Graph const&)", 260, 96, 2, 20, 29),
    ("degree_histogram(Graph const&)", 281, 4, 60, 3, 5),
    ("Log::reserve(unsigned long)", 19, 12, 0, 0, 29),
];

fn frame(function: &str, file: &str, line: u32, offset: u64) -> Frame {
    Frame {
        module: "/home/user/graphs/bin/bfs".into(),
        build_id: Some("8f3c2a90d1e4".into()),
        offset,
        function: Some(function.into()),
        file: Some(file.into()),
        line: Some(line),
        ..Frame::default()
    }
}

fn site(index: usize) -> Site {
    let (function, line, mib, hotness, ..) = SITES[index];
    let seed = (index as u64 + 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut site = Site::new(SiteId(seed), SiteKind::Heap);
    site.frames = vec![
        frame(
            "std::vector<unsigned int>::_M_default_append(unsigned long)",
            "/usr/include/c++/12/bits/vector.tcc",
            650,
            0x2a10 + index as u64 * 0x40,
        ),
        frame(
            function,
            "/home/user/graphs/src/graph.cc",
            line,
            0x3f00 + u64::from(line) * 16,
        ),
        frame(
            "main",
            "/home/user/graphs/src/main.cc",
            24 + index as u32,
            0x1e80,
        ),
    ]
    .into();
    site.allocations = 1 + hotness % 7;
    site.requested = Bytes(mib * MIB + 4096 * index as u64);
    site.peak_requested = site.requested;
    site.peak_rss = Bytes(mib * MIB);
    site.first_seen = index as u32;
    site
}

/// A wave that stays within a fifth, so that heat is not flat.
fn wave(epoch: u32, chunk: u64) -> u64 {
    80 + (u64::from(epoch) * 7 + chunk * 13) % 41
}

fn segment(epoch: u32) -> Segment {
    let mut segment = Segment {
        epoch: EpochSpan {
            epoch: Epoch(epoch),
            span: Nanos(1_000_000_000 + u64::from(epoch % 5) * 3_100_000),
        },
        ..Segment::default()
    };
    for (index, (_, _, mib, hotness, first, last)) in SITES.into_iter().enumerate() {
        if !(first..=last).contains(&epoch) {
            continue;
        }
        let site = site(index);
        let chunks = (mib * MIB).div_ceil(CHUNK);
        for chunk in 0..chunks {
            // The front of an array is hotter, as low vertex numbers are in a sorted graph.
            let skew = 1 + 3 * (chunks - chunk) / chunks;
            let accesses = hotness * skew * wave(epoch, chunk) / 400;
            if accesses > 0 {
                segment.heat.push(Heat {
                    epoch: Epoch(epoch),
                    process: PROCESS,
                    site: site.id,
                    address: 0x7f00_0000_0000 + index as u64 * (4 << 30) + chunk * CHUNK,
                    object: None,
                    accesses: Accesses(accesses),
                    streamed: Accesses::ZERO,
                    served: Accesses::ZERO,
                });
            }
        }
        let filling = u64::from(epoch - first + 1).min(3);
        segment.resident.push(Resident {
            epoch: Epoch(epoch),
            site: site.id,
            bytes: Bytes(mib * MIB * filling / 3),
        });
        segment.sites.push(site);
    }
    small_and_foreign(&mut segment, epoch);
    segment
}

fn small_and_foreign(segment: &mut Segment, epoch: u32) {
    let mut shared = Site::new(SiteId::SHARED, SiteKind::Shared);
    shared.allocations = 18_204;
    shared.requested = Bytes(31 * MIB);
    shared.peak_rss = Bytes(11 * MIB);
    shared.first_seen = SITES.len() as u32;
    segment.sites.push(shared);
    segment.resident.push(Resident {
        epoch: Epoch(epoch),
        site: SiteId::SHARED,
        bytes: Bytes(11 * MIB),
    });
    for (site, address, accesses) in [
        (SiteId::SHARED, 0x7e00_0000_0000, 65),
        (SiteId::UNATTRIBUTED, 0x7ffc_0000_0000, 310),
    ] {
        segment.heat.push(Heat {
            epoch: Epoch(epoch),
            process: PROCESS,
            site,
            address,
            object: None,
            accesses: Accesses(accesses),
            streamed: Accesses::ZERO,
            served: Accesses::ZERO,
        });
    }
}

/// The recording.
pub(crate) fn profile() -> Profile {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut profile = Profile::new(Meta {
        isotherm: "0.1.0".into(),
        command: ["./bin/bfs", "--iterations", "20", "web graph.el"]
            .map(str::to_owned)
            .to_vec(),
        started: "2026-03-14T09:26:53Z".into(),
        machine: vec![
            pair("kernel", "6.18.0"),
            pair("processor", "AMD EPYC 9354"),
            pair("logical processors", "8"),
            pair("memory", "32 GiB"),
        ],
        depth: 4,
        epoch_length: Nanos(1_000_000_000),
        chunk: Bytes(CHUNK),
        emulated: true,
        sample_interval: Some(Nanos(1_000_000)),
        cache_filter: None,
        cache: None,
    });
    for epoch in 0..EPOCHS {
        absorb(&mut profile, segment(epoch));
    }
    profile.ending = Ending::Exited(0);
    profile.counts = vec![
        count(None, "delay_ns", 4_120_000_000),
        count(Some(PROCESS), "allocations", 18_251),
        count(Some(PROCESS), "context_misses", 312),
    ];
    profile.sources = vec![
        SourceReport {
            name: "timer".into(),
            taken: 60_480,
            usable: 52_113,
            lost: 12,
            cost: Nanos(410_000_000),
            cost_note: "about 1 % at 1,000 samples a second and thread".into(),
            warning: String::new(),
        },
        SourceReport {
            name: "pebs".into(),
            taken: 0,
            usable: 0,
            lost: 0,
            cost: Nanos(0),
            cost_note: String::new(),
            warning: "this machine has no performance counters (virtual machine)".into(),
        },
    ];
    profile
}

fn count(process: Option<Process>, name: &str, value: u64) -> Count {
    Count {
        process,
        name: name.into(),
        value,
    }
}

/// Gives everything that has a name one that would run if a page read it as markup or script.
pub(crate) fn make_hostile(profile: &mut Profile) {
    let name = |what: &str| {
        format!(
            "</script><img src=x onerror=\"window.hostile='{what}'\"></title><b>\u{1b}[2J${{7*7}}"
        )
    };
    for site in &mut profile.sites {
        for frame in std::sync::Arc::make_mut(&mut site.frames) {
            frame.function = Some(name("function"));
            frame.file = Some(name("file"));
            frame.module = name("module").into();
        }
    }
    for access in &mut profile.code {
        let frame = std::sync::Arc::make_mut(&mut access.code);
        frame.function = Some(name("accessing function"));
        frame.file = Some(name("accessing file"));
    }
    profile.meta.command = vec![name("program"), name("argument")];
    profile.meta.machine = vec![(name("fact"), name("value"))];
    profile.meta.started = name("started");
    profile.counts = vec![count(None, &name("counter"), 1)];
    for source in &mut profile.sources {
        source.name = name("source");
        source.warning = name("warning");
        source.cost_note = name("cost");
        source.usable = 0;
    }
}

/// A plan that takes whole sites, hottest first, while they fit.
pub(crate) fn plan(profile: &Profile, capacity: Bytes) -> Plan {
    let seen = profile.accesses_by_site();
    let placeable = profile
        .sites
        .iter()
        .filter(|site| site.id != SiteId::UNATTRIBUTED);
    let mut sites: Vec<(u64, &Site)> = placeable
        .map(|site| (seen.get(&site.id).map_or(0, |accesses| accesses.0), site))
        .collect();
    sites.sort_by_key(|(_, site)| site.first_seen);
    let total = sites.iter().map(|(value, _)| value).sum();
    let first_touch = fill(&sites, capacity);
    sites.sort_by(|a, b| hotter_first((a.0, a.1.peak_rss, a.1.id), (b.0, b.1.peak_rss, b.1.id)));
    let bound = fill(&sites, capacity);
    let (mut free, mut planned) = (capacity.0, 0);
    let assignments = sites
        .iter()
        .map(|(value, site)| {
            let fits = site.peak_rss.0 <= free;
            if fits {
                free -= site.peak_rss.0;
                planned += value;
            }
            Assignment {
                site: site.id,
                tier: TierIndex(u32::from(!fits)),
                value: *value,
                weight: site.peak_rss,
                parts: Vec::new(),
                leading: None,
                caller: Caller::Unknown,
                reason: if fits {
                    "taken: it fits".into()
                } else {
                    format!(
                        "left out: it would overflow the tier by {}",
                        Bytes(site.peak_rss.0 - free)
                    )
                },
                label: site.label(),
            }
        })
        .collect();
    Plan {
        policy: "thermos".into(),
        value: Value::Accesses,
        counted: profile.counted(),
        weight: Weight::PeakRss,
        command: profile.meta.command.clone(),
        depth: profile.meta.depth,
        tiers: Tiers::emulated(capacity, Bytes(8 << 30), Emulation::TMP),
        default_tier: TierIndex(1),
        small: BTreeMap::new(),
        standing: PlanBounds {
            planned,
            first_touch,
            bound,
            total,
        },
        colours: Vec::new(),
        expected: None,
        assignments,
        frames: BTreeMap::new(),
    }
}

/// The plan with the front of its largest slow site in fast memory, a tenth of its bytes with half of its value.
pub(crate) fn split(mut plan: Plan) -> Plan {
    let slow = plan.assignments.iter_mut();
    let slow = slow.filter(|site| site.tier == TierIndex(1) && site.value > 0);
    if let Some(site) = slow.max_by_key(|site| site.weight) {
        let weight = Bytes(site.weight.0 / 10 / CHUNK * CHUNK);
        site.parts = vec![PlacedPart {
            start: Bytes::ZERO,
            end: weight,
            tier: TierIndex::FASTEST,
            value: site.value / 2,
            weight,
        }];
    }
    plan
}

/// Value of the sites in this order until the capacity is full, the last one in part.
fn fill(sites: &[(u64, &Site)], capacity: Bytes) -> u64 {
    let (mut free, mut sum) = (capacity.0, 0);
    for (value, site) in sites {
        let part = site.peak_rss.0.min(free);
        sum += value * part / site.peak_rss.0.max(1);
        free -= part;
    }
    sum
}
