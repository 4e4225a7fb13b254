//! Tests that a run without a profile keeps nothing of past epochs: its resident memory does not grow with their number.

#[path = "../../profile/tests/support/absorb.rs"]
mod absorb;

use std::convert::Infallible;

use isotherm_model::batch::{Batch, Epoch, Extent, ObservedAccess, Process};
use isotherm_model::count_unit::CountUnit;
use isotherm_model::emulation::Emulation;
use isotherm_model::outcome::{Action, Fate, Outcome};
use isotherm_model::port::{Executor, Observer, Recorder};
use isotherm_model::profile::{Meta, Profile, Segment};
use isotherm_model::site::{Site, SiteId, SiteKind};
use isotherm_model::source_kind::SourceKind;
use isotherm_model::tier::Tiers;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_pipeline::{Online, OnlineConfig, Step};

use absorb::absorb;

const PAGE: u64 = 4096;
/// Pages that are accessed in each epoch; each is a row of the profile.
const ACCESSED: u64 = 5000;
const EPOCHS: usize = 200;
/// Growth of the resident memory that the allocator may cause.
const NOISE: u64 = 8 << 20;

/// Two sites of 64 MiB, of which every second page is accessed.
struct Program;

impl Observer for Program {
    type Error = Infallible;

    fn observe(&mut self, epoch: Epoch) -> Result<Batch, Infallible> {
        let process = Process::default();
        let (bytes, ids) = (Bytes(64 << 20), [8, 9]);
        let extent = |id: u64| Extent {
            process,
            site: SiteId(id),
            address: id << 30,
            bytes,
            resident: bytes,
            tier: None,
        };
        let sample = |page: u64| {
            let address = (ids[(page % 2) as usize] << 30) + page * 2 * PAGE;
            ObservedAccess::at((process, address), SourceKind::Timer, (1, CountUnit::Time))
        };
        Ok(Batch {
            epoch,
            span: Nanos(1_000_000_000),
            sites: ids.map(|id| Site::new(SiteId(id), SiteKind::Heap)).into(),
            extents: ids.map(extent).into(),
            accesses: (0..ACCESSED).map(sample).collect(),
            ..Batch::default()
        })
    }
}

struct Refused;

impl Executor for Refused {
    fn execute(&mut self, actions: &[Action], _: &[Extent]) -> Vec<Outcome> {
        let outcome = |action: &Action| Outcome {
            action: *action,
            fate: Fate::Busy("the node is full".into()),
        };
        actions.iter().map(outcome).collect()
    }
}

/// Keeps every epoch.
struct Kept(Profile);

impl Recorder for Kept {
    type Error = Infallible;

    fn record(&mut self, segment: &Segment) -> Result<(), Infallible> {
        absorb(&mut self.0, segment.clone());
        Ok(())
    }
}

/// Resident bytes of this process.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    kilobytes.unwrap().parse::<u64>().unwrap() << 10
}

/// Growth of the resident memory over the epochs, after a few to warm up.
fn growth(recorder: Option<Kept>) -> u64 {
    let meta = Meta {
        chunk: Bytes(PAGE),
        ..Meta::default()
    };
    let tiers = Tiers::emulated(Bytes(1 << 20), Bytes(1 << 30), Emulation::TMP);
    let online = Online::new(OnlineConfig::for_tiers(tiers));
    let mut step = Step::new(Program, Refused, recorder, &meta, Some(online));
    let mut moves = 0;
    let mut run = |epochs| {
        for _ in 0..epochs {
            moves += step.run().unwrap().outcomes.len() as u64;
        }
        resident()
    };
    let before = run(20);
    let after = run(EPOCHS);
    assert_eq!(step.moves().unfinished, moves);
    after.saturating_sub(before)
}

#[test]
fn only_a_recorder_makes_memory_grow_with_the_number_of_epochs() {
    let without = growth(None);
    assert!(without < NOISE, "{without} bytes");
    let kept = growth(Some(Kept(Profile::new(Meta::default()))));
    assert!(kept > 2 * NOISE, "the measurement sees only {kept} bytes");
}
