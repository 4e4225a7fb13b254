//! Tests of all session files of a run, with an invented process tree and `/proc`.

mod support;

use std::collections::BTreeSet;
use std::path::Path;

use isotherm_abi::CHUNK_BYTES;
use isotherm_abi::session::SessionCounter;
use isotherm_model::batch::Process;
use isotherm_model::site::SiteId;
use isotherm_model::units::Bytes;
use isotherm_observe::processes::Processes;
use isotherm_observe::sessions::Sessions;
use isotherm_observe::tracked::EpochExtents;
use support::session_bytes::{POOL, SessionBytes};

struct World {
    directory: tempfile::TempDir,
    processes: Processes,
    sessions: Sessions,
}

impl World {
    fn new(root: u32) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let proc_root = directory.path().join("proc");
        let sessions = directory.path().join("sessions");
        std::fs::create_dir(&sessions).expect("makes");
        Self {
            processes: Processes::new(root, &proc_root),
            sessions: Sessions::new(&sessions, &proc_root),
            directory,
        }
    }

    fn lives(&self, pid: u32) {
        let path = self.directory.path().join("proc").join(pid.to_string());
        std::fs::create_dir_all(&path).expect("makes");
        std::fs::write(path.join("statm"), "100 50 0 0 0 0 0\n").expect("writes");
    }

    fn dies(&self, pid: u32) {
        let path = self.directory.path().join("proc").join(pid.to_string());
        std::fs::remove_dir_all(path).expect("removes");
    }

    fn save(&self, file: &SessionBytes, name: &str) {
        file.save(&Path::new(self.directory.path()).join("sessions").join(name));
    }

    fn look(&mut self) {
        self.sessions.discover().expect("reads");
        self.sessions.refresh(&self.processes);
        self.sessions.read_sites();
    }

    fn image_at(&self, pid: u32, time: u64) -> (u32, u32) {
        let process = self.sessions.image_at(&self.processes, pid, time);
        (process.pid, process.image)
    }
}

fn file(pid: u32, start_ns: u64) -> SessionBytes {
    let mut file = SessionBytes::new(pid, 1, start_ns);
    file.site(0, 111, &[], 1);
    file.arena(0, None, None);
    file.arena(1, Some(0), None);
    file.chunks(0..1, Some(0));
    file.chunks(1..3, Some(1));
    file.counter(SessionCounter::Allocations, 5);
    file.counter(SessionCounter::FastBytes, 4096);
    file
}

#[test]
fn a_sample_belongs_to_the_image_that_ran_at_its_time() {
    let mut world = World::new(10);
    world.lives(10);
    world.processes.exec(10, 50);
    world.save(&file(10, 100), "10.0");
    world.processes.exec(10, 500);
    world.save(&file(10, 550), "10.1");
    world.processes.fork(10, 20);
    world.processes.exec(20, 900);
    world.look();
    assert_eq!(
        world.image_at(10, 60),
        (10, 0),
        "before its runtime started"
    );
    assert_eq!(world.image_at(10, 300), (10, 0));
    assert_eq!(
        world.image_at(10, 520),
        (10, 1),
        "after exec, before the next file"
    );
    assert_eq!(world.image_at(10, 600), (10, 1));
    assert_eq!(world.image_at(20, 700), (10, 1), "a child is its parent");
    assert_eq!(
        world.image_at(20, 950),
        (20, 0),
        "until it runs another program"
    );
}

#[test]
fn an_ended_image_is_told_once_more_and_its_counts_are_folded() {
    let mut world = World::new(10);
    world.lives(10);
    world.save(&file(10, 100), "10.0");
    world.look();
    let none = BTreeSet::new();
    assert_eq!(world.sessions.extents(&none).live.len(), 2);
    let named = |world: &World, name: &str| {
        let counts = world.sessions.counts();
        let found = counts.into_iter().find(|count| count.name == name);
        found.map(|count| (count.process.map(|it| it.pid), count.value))
    };
    assert_eq!(named(&world, "allocations"), Some((Some(10), 5)));
    world.dies(10);
    world.look();
    let last = world.sessions.extents(&none).live;
    // Never measured: the site's peak request, one page, or else all mapped bytes.
    let resident: Vec<_> = last
        .iter()
        .map(|extent| (extent.site, extent.resident))
        .collect();
    let shared = (SiteId::SHARED, Bytes(CHUNK_BYTES));
    assert_eq!(resident, [shared, (SiteId(111), Bytes(4096))]);
    assert_eq!(world.sessions.extents(&none), EpochExtents::default());
    assert_eq!(named(&world, "allocations"), Some((None, 5)));
    assert_eq!(named(&world, "fast_bytes"), None);
    let sampled = BTreeSet::from([Process { pid: 10, image: 0 }]);
    assert_eq!(
        world.sessions.extents(&sampled).live.len(),
        2,
        "late samples still find it"
    );
}

#[test]
fn what_went_within_an_epoch_is_told_with_nothing_resident() {
    let mut world = World::new(10);
    world.lives(10);
    let mut bytes = file(10, 100);
    world.save(&bytes, "10.0");
    world.look();
    bytes.chunks(1..3, None);
    world.save(&bytes, "10.0");
    world.look();
    let extents = world.sessions.extents(&BTreeSet::new());
    let gone = extents
        .departed
        .iter()
        .find(|extent| extent.site == SiteId(111));
    let gone = gone.expect("a freed extent is reported once");
    assert_eq!(gone.address, POOL + CHUNK_BYTES);
    assert_eq!(
        (gone.bytes, gone.resident),
        (Bytes(2 * CHUNK_BYTES), Bytes(0))
    );
    let extents = world.sessions.extents(&BTreeSet::new());
    assert_eq!(extents.departed, []);
    let mut live = extents.live.iter();
    assert!(live.all(|extent| extent.site == SiteId::SHARED));
}

#[test]
fn files_that_cannot_be_used_are_named_and_strangers_are_left_alone() {
    let mut world = World::new(10);
    let sessions = world.directory.path().join("sessions");
    for (name, text) in [
        ("10.0", "what is this, and whose?"),
        ("notes.txt", ""),
        ("10", ""),
        (".0", ""),
    ] {
        // Longer than a header: a shorter file may be one that is being made.
        std::fs::write(sessions.join(name), text.repeat(1000)).expect("writes");
    }
    world.look();
    let refused: Vec<&String> = world.sessions.refused().keys().collect();
    assert_eq!(refused, ["10.0"]);
    assert!(world.sessions.is_empty());
}
