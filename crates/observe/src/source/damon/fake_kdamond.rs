//! `machine` makes the sysfs files of the kernel's DAMON below a temporary root, for tests; `tell` sets the regions that the first kdamond
//! reports. `Slow` is a kdamond that does not respond (a FIFO in the place of its `state` file), until `Slow::end` makes it respond at once
//! and record its commands.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::admin::ADMIN;

/// Regions that a report may have.
const REGIONS: usize = 4;

/// A machine with the files of this many kdamonds.
pub(crate) fn machine(
    kdamonds: usize,
    count: &str,
    operations: &str,
    pid: &str,
) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let admin = root.path().join(ADMIN);
    for number in 0..kdamonds {
        let context = admin.join(format!("{number}/contexts/0"));
        let regions = (0..REGIONS).flat_map(|region| {
            ["schemes/0/tried_regions", "targets/0/regions"]
                .map(|directory| format!("{directory}/{region}"))
        });
        let others = [
            "monitoring_attrs/intervals",
            "monitoring_attrs/nr_regions",
            "schemes/0/access_pattern/sz",
            "schemes/0/access_pattern/nr_accesses",
            "schemes/0/access_pattern/age",
        ];
        for directory in regions.chain(others.map(str::to_owned)) {
            fs::create_dir_all(context.join(directory)).unwrap();
        }
        fs::write(context.join("avail_operations"), operations).unwrap();
        fs::write(admin.join(format!("{number}/pid")), pid).unwrap();
    }
    fs::write(admin.join("nr_kdamonds"), count).unwrap();
    root
}

/// The text of a DAMON file; empty where it does not exist.
pub(super) fn text(root: &Path, file: &str) -> String {
    fs::read_to_string(root.join(ADMIN).join(file)).unwrap_or_default()
}

/// Makes the first kdamond report these regions and the number of checks that found each accessed.
pub(crate) fn tell(root: &Path, regions: &[(Range<u64>, u64)]) {
    let tried = root
        .join(ADMIN)
        .join("0/contexts/0/schemes/0/tried_regions");
    for (number, (range, accesses)) in regions.iter().enumerate() {
        let directory = tried.join(number.to_string());
        fs::write(directory.join("start"), range.start.to_string()).unwrap();
        fs::write(directory.join("end"), range.end.to_string()).unwrap();
        fs::write(directory.join("nr_accesses"), accesses.to_string()).unwrap();
    }
}

/// The longest time that a kdamond stays silent, so that a test of code that waits for it fails and
/// ends.
const PATIENCE: Duration = Duration::from_secs(10);

/// A kdamond that does not respond: its `state` is a pipe, and a write there blocks.
pub(super) struct Slow {
    pipe: PathBuf,
    ends: Sender<()>,
    waits: JoinHandle<Option<Commands>>,
}

/// A kdamond that responds at once and records its commands.
pub(super) struct Commands(File);

impl Slow {
    /// Makes the kdamond with this number stop responding.
    pub(super) fn new(root: &Path, number: usize) -> Self {
        let pipe = root.join(ADMIN).join(format!("{number}/state"));
        let (kind, made) = (rustix::fs::FileType::Fifo, root.join("pipe"));
        rustix::fs::mknodat(rustix::fs::CWD, &made, kind, 0o600.into(), 0).unwrap();
        fs::rename(made, &pipe).unwrap();
        let (ends, told) = channel();
        let late = pipe.clone();
        let waits = move || told.recv_timeout(PATIENCE).is_err().then(|| open(&late));
        Self {
            pipe,
            ends,
            waits: std::thread::spawn(waits),
        }
    }

    /// Makes it respond again, and checks that no thread was blocked until then.
    pub(super) fn end(self) -> Commands {
        let commands = open(&self.pipe);
        let _ = self.ends.send(());
        let late = self.waits.join().unwrap();
        assert!(late.is_none(), "a thread was blocked by a kdamond");
        commands
    }
}

impl Commands {
    /// The commands since the last call, one after the other without a separator.
    pub(super) fn taken(&mut self) -> String {
        let mut bytes = [0; 4096];
        let length = self.0.read(&mut bytes).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }
}

/// A writer never waits on a pipe that is open for reading and writing.
fn open(pipe: &Path) -> Commands {
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).custom_flags(flags);
    Commands(options.open(pipe).unwrap())
}
