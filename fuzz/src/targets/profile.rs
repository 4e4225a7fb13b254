//! Files of a profile, and what the rest of the flow makes of them. The first byte chooses the file
//! of a small sound profile that the other bytes replace.

use std::path::Path;
use std::sync::LazyLock;

use isotherm_act::callers::caller;
use isotherm_model::batch::{Count, Epoch, Extent, Process, SourceReport};
use isotherm_model::movement::AddressRange;
use isotherm_model::code_access::{AccessKind, CodeAccess, SampleWalk};
use isotherm_model::emulation::{Emulation, TimeCosts};
use isotherm_model::plan::{Value, Weight};
use isotherm_model::port::Recorder;
use isotherm_model::profile::{
    Ending, EpochSpan, Heat, HeatBin, HeatObject, Meta, Profile, Resident, Segment,
};
use isotherm_model::sensitivity_runs::{FastData, SensitivityRun, SensitivityRuns, TierPair};
use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
use isotherm_model::tier::Tiers;
use isotherm_model::units::{Accesses, Bytes, Nanos};
use isotherm_policy::{POLICIES, PlanRequest};
use isotherm_profile::{Existing, Writer, add_sensitivity, read, read_files};
use isotherm_report::Report;

use super::seeds::Seeds;

/// Set in the first byte: the file keeps its checksum, so that a change must be noticed.
const AS_IT_IS: u8 = 0x80;

type Files = Vec<(String, Vec<u8>)>;

static SOUND: LazyLock<Files> = LazyLock::new(sound);

/// The most bytes that a plan gives to a site.
const ADDRESS_SPACE: Bytes = Bytes(1 << 57);

pub(crate) fn check(data: &[u8]) -> bool {
    let Some((choice, content)) = data.split_first() else {
        return false;
    };
    let mut files = SOUND.clone();
    let victim = usize::from(choice & !AS_IT_IS) % files.len();
    let whole = files[victim].1 == content;
    files[victim].1 = content.to_vec();
    if choice & AS_IT_IS == 0 {
        seal(&mut files[victim].1);
    }
    let Ok((profile, warnings)) = read_files(Path::new("app.iso"), files) else {
        return false;
    };
    assert!(warnings.iter().all(|warning| !warning.what.is_empty()));
    assert!(!whole || warnings.is_empty(), "{warnings:?}");
    use_up(&profile);
    warnings.is_empty()
}

/// Every policy plans with it, each plan is read back as written, and the report is made in all of
/// its forms.
fn use_up(profile: &Profile) {
    let tiers = Tiers::emulated(Bytes(64 << 10), Bytes(1 << 30), Emulation::TMP);
    if let Some(timed) = &profile.sensitivity {
        // Times that cannot be are refused.
        let chunks = isotherm_pipeline::SiteChunks::of(profile, Bytes(64 << 10));
        let factors =
            Tiers::emulated(Bytes(1), Bytes(1), Emulation::Time(TimeCosts::CXL)).slow_factors();
        for factors in [None, factors] {
            let data = (profile, &chunks);
            let _ = isotherm_pipeline::measured_runs("bfs", data, timed, factors, Weight::PeakRss);
        }
    }
    let labels = isotherm_pipeline::labels(profile);
    let callers = profile.sites.iter().map(|site| (site.id, caller(site)));
    let callers = callers.collect();
    let mut last = None;
    for (value, weight) in [
        (Value::Accesses, Weight::PeakRss),
        (Value::Bandwidth, Weight::PeakRequested),
    ] {
        let items = isotherm_pipeline::items(profile, value, weight);
        for policy in POLICIES {
            let plan = isotherm_policy::plan(&PlanRequest {
                value,
                weight,
                command: &profile.meta.command,
                depth: profile.meta.depth,
                labels: Some(&labels),
                callers: Some(&callers),
                ..PlanRequest::new(policy, &items, &tiers)
            });
            let standing = plan.standing;
            assert!(
                standing.planned <= standing.bound,
                "{}: {standing:?}",
                policy.name()
            );
            assert!(standing.first_touch <= standing.bound, "{standing:?}");
            assert!(standing.bound <= standing.total, "{standing:?}");
            let text = isotherm_plan_text::write(&plan);
            let read = isotherm_plan_text::read(&text);
            // A damaged profile can claim more memory than an address space has. The reader of plans refuses that.
            let is_possible = plan.assignments.iter().all(|it| it.weight <= ADDRESS_SPACE);
            match is_possible {
                true => assert_eq!(read.as_ref(), Ok(&plan), "written as {text}"),
                false => assert!(read.is_err(), "written as {text}"),
            }
            last = Some(plan);
        }
    }
    for plan in [None, last.as_ref()] {
        let report = Report::new(profile, plan).named("app.iso", Some("app.plan"));
        for form in [report.text(80), report.json(), report.html()] {
            assert!(!form.is_empty());
        }
    }
}

/// Gives a changed file the checksum that fits it, as an attacker would: the decoder is reached.
fn seal(file: &mut [u8]) {
    /// The key of the checksum, and Thrift's mark of a text of 16 bytes.
    const KEY: &[u8] = b"isotherm.checksum\x18\x10";
    let found = file.windows(KEY.len()).rposition(|window| window == KEY);
    let Some(at) = found
        .map(|at| at + KEY.len())
        .filter(|at| at + 16 <= file.len())
    else {
        return;
    };
    file[at..at + 16].fill(b'0');
    let digits = format!("{:016x}", twox_hash::XxHash64::oneshot(0, file));
    file[at..at + 16].copy_from_slice(digits.as_bytes());
}

/// The files of a profile with a row or two in each table.
fn sound() -> Files {
    let directory = tempfile::tempdir().expect("a directory for the profile");
    let path = directory.path().join("app.iso");
    let meta = Meta {
        command: vec!["./bfs".into(), "graph.bin".into()],
        started: "2026-01-02T03:04:05Z".into(),
        machine: vec![("kernel".into(), "6.18".into())],
        depth: 4,
        epoch_length: Nanos(1_000_000_000),
        chunk: Bytes(2 << 20),
        ..Meta::default()
    };
    let mut writer = Writer::create(&path, &meta, Existing::Refuse).expect("is made");
    for epoch in 0..2 {
        writer.record(&segment(Epoch(epoch))).expect("is written");
    }
    writer.finish(Ending::Exited(0), &[]).expect("is finished");
    let (profile, _) = read(&path).expect("is readable");
    add_sensitivity(&path, &profile, &sensitivity()).expect("is added");
    let mut files: Files = std::fs::read_dir(&path)
        .expect("is there")
        .flatten()
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, std::fs::read(entry.path()).expect("is readable"))
        })
        .collect();
    files.sort();
    files
}

/// A round in which one site was alone fast.
fn sensitivity() -> SensitivityRuns {
    let run = |(fast, time)| SensitivityRun {
        fast,
        round: 0,
        time: Nanos(time),
    };
    let runs = [
        (FastData::Nothing, 3_000_000_000),
        (FastData::Site(SiteId(5)), 2_000_000_000),
        (FastData::All, 1_000_000_000),
    ];
    SensitivityRuns {
        tiers: TierPair::from_text("emulated:B:2,L:2.3".to_owned()),
        runs: runs.map(run).to_vec(),
    }
}

/// Accesses to a page of an object of this site.
fn heat(epoch: Epoch, process: Process, site: u64) -> Heat {
    let range = AddressRange {
        start: site << 21,
        bytes: Bytes(1 << 20),
    };
    Heat {
        epoch,
        process,
        site: SiteId(site),
        address: site << 21,
        object: Some(HeatObject {
            range,
            bin: HeatBin::new(Bytes(8192), Bytes(4096), &range),
        }),
        accesses: Accesses(10 * site),
        streamed: Accesses(3 * site),
        served: Accesses(site),
    }
}

/// An instruction that walks through the data of this site.
fn code(site: u64) -> CodeAccess {
    let frame = Frame {
        module: "/bin/bfs".into(),
        build_id: Some("ab12".into()),
        offset: 0x1300 + site,
        function: Some("visit".into()),
        file: Some("bfs.cc".into()),
        line: Some(17),
        ..Frame::default()
    };
    CodeAccess {
        site: SiteId(site),
        code: frame.into(),
        kind: Some(AccessKind::Load),
        accesses: Accesses(10 * site),
        streamed: Accesses(site),
        served: Accesses(site),
        threads: 2,
        walk: SampleWalk {
            pairs: 9 * site,
            continued: 8 * site,
            divisor: Bytes(4096),
        },
    }
}

fn segment(epoch: Epoch) -> Segment {
    let process = Process { pid: 7, image: 0 };
    let frame = Frame {
        module: "/bin/bfs".into(),
        build_id: Some("ab12".into()),
        offset: 0x1234,
        function: Some("main".into()),
        file: Some("bfs.cc".into()),
        line: Some(7),
        column: Some(9),
        function_line: Some(3),
        variable: Some("edges".into()),
    };
    let site = |id: u64| Site {
        frames: vec![frame.clone()].into(),
        allocations: 9,
        requested: Bytes(4096),
        peak_requested: Bytes(4096),
        peak_rss: Bytes(8192 * id),
        first_seen: epoch.0,
        ..Site::new(SiteId(id), SiteKind::Heap)
    };
    let extent = |site: u64| Extent {
        process,
        site: SiteId(site),
        address: site << 21,
        bytes: Bytes(2 << 20),
        resident: Bytes(8192),
        tier: None,
    };
    let resident = |site: u64| Resident {
        epoch,
        site: SiteId(site),
        bytes: Bytes(8192),
    };
    Segment {
        epoch: EpochSpan {
            epoch,
            span: Nanos(1_000_000_000),
        },
        sites: vec![site(5), site(6)],
        extents: vec![extent(5), extent(6)],
        heat: [5, 6].map(|site| heat(epoch, process, site)).to_vec(),
        resident: vec![resident(5), resident(6)],
        code: [5, 6].map(code).to_vec(),
        counts: vec![Count {
            process: Some(process),
            name: "allocations".into(),
            value: 9,
        }],
        sources: vec![SourceReport {
            name: "timer".into(),
            taken: 40,
            usable: 30,
            lost: 1,
            cost: Nanos(1000),
            cost_note: "little".into(),
            warning: String::new(),
        }],
    }
}

/// Each file of the sound profile, unchanged.
pub(crate) fn seeds() -> Seeds {
    const NAMES: [&str; 11] = [
        "code",
        "counts",
        "epochs",
        "extents",
        "frames",
        "heat",
        "meta",
        "resident",
        "sensitivity",
        "sites",
        "sources",
    ];
    let with_choice = |(choice, content): (u8, &Vec<u8>)| [&[choice], &content[..]].concat();
    let files = (0..).zip(SOUND.iter().map(|(_, content)| content));
    NAMES.into_iter().zip(files.map(with_choice)).collect()
}
