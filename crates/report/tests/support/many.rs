//! Invents a recording of 50,000 sites whose callers branch as those of a large program do, and the code that accesses them.

use isotherm_model::batch::{Epoch, Process};
use isotherm_model::code_access::{AccessKind, CodeAccess, SampleWalk};
use isotherm_model::profile::{EpochSpan, Heat, Meta, Profile, Resident};
use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
use isotherm_model::units::{Accesses, Bytes, Nanos};

const SITES: u64 = 50_000;
const EPOCHS: u32 = 60;
const CHUNK: u64 = 2 << 20;

fn frame(function: String, line: u64) -> Frame {
    let module = line % 37;
    Frame {
        module: "/opt/service/bin/service".into(),
        offset: 0x1000 + line,
        file: Some(format!(
            "/src/service/module_{module}/source_{}.cc",
            line % 211
        )),
        line: Some(line as u32),
        function: Some(function),
        ..Frame::default()
    }
}

/// Innermost first; each level branches by another digit of the number.
fn callers(number: u64) -> Vec<Frame> {
    let (phase, module, class) = (number % 12, number / 12 % 40, number / 480 % 105);
    vec![
        frame(
            format!("service::Store_{class}::reserve(unsigned long)"),
            number,
        ),
        frame(
            format!("service::Store_{class}::load(service::Key_{module} const&)"),
            class + 900,
        ),
        frame(format!("service::Module_{module}::prepare()"), module + 500),
        frame(
            format!("service::Phase_{phase}::run(service::Options const&)"),
            phase + 100,
        ),
        frame("main".to_owned(), 24),
    ]
}

/// A few sites take most accesses; their numbers are spread over the callers.
fn accesses(number: u64) -> u64 {
    4_000_000 / (1 + number * 7_919 % SITES)
}

/// The recording.
pub(crate) fn profile() -> Profile {
    let mut profile = Profile::new(Meta {
        command: vec!["service".to_owned()],
        chunk: Bytes(CHUNK),
        ..Meta::default()
    });
    for epoch in (0..EPOCHS).map(Epoch) {
        let span = Nanos(1_000_000_000);
        profile.epochs.push(EpochSpan { epoch, span });
    }
    for number in 0..SITES {
        add(&mut profile, number);
    }
    profile
}

fn add(profile: &mut Profile, number: u64) {
    let id = SiteId(1000 + number);
    let mut site = Site::new(id, SiteKind::Heap);
    site.frames = callers(number).into();
    site.allocations = 1 + number % 9;
    site.peak_rss = Bytes(4096 * (1 + number * 31 % 4_001));
    let epoch = Epoch((number % u64::from(EPOCHS)) as u32);
    profile.resident.push(Resident {
        epoch,
        site: id,
        bytes: site.peak_rss,
    });
    profile.sites.push(site);
    profile.heat.push(Heat {
        epoch,
        process: Process { pid: 1, image: 0 },
        site: id,
        address: number * CHUNK,
        object: None,
        accesses: Accesses(accesses(number)),
        streamed: Accesses::ZERO,
        served: Accesses::ZERO,
    });
    for reader in 0..2 {
        let function = (number * 3 + reader * 17) % 900;
        let code = frame(
            format!("service::Reader_{function}::visit(service::Row const&)"),
            2_000 + function,
        );
        profile.code.push(CodeAccess {
            site: id,
            code: code.into(),
            kind: Some(AccessKind::Load),
            accesses: Accesses(accesses(number) / (2 + reader)),
            streamed: Accesses::ZERO,
            served: Accesses::ZERO,
            threads: 8,
            walk: SampleWalk::default(),
        });
    }
}
