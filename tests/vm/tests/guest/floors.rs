//! Floors on real nodes: a control group keeps its fast memory beside a far hotter group.

use std::path::{Path, PathBuf};

use crate::daemon::{
    ALL_MOVES, Daemon, HOT_PAGES, Running, config, hot_in_numa_maps, loopback, program,
};
use crate::{GuestTest, on, skip};

pub(crate) const TESTS: &[GuestTest] = &[on!(
    &["two-nodes"],
    a_floor_keeps_a_group_fast_beside_a_far_hotter_one
)];

/// Programs in the hotter group: their hot arrays are half as large again as the daemon's share of the fast
/// node.
const LOUD: usize = 3;

/// Epochs that are followed without a gap, and how often.
const EPOCHS: usize = 5;
const FOLLOWED: usize = 4;

/// Programs in a control group of version 2. All of it ends with the test.
pub(crate) struct Group {
    directory: PathBuf,
    programs: Vec<Running>,
}

impl Group {
    /// One with this name; skips the test where none can be made.
    pub(crate) fn of(name: &str, programs: Vec<Running>) -> Self {
        let directory = Path::new("/sys/fs/cgroup").join(name);
        let group = Self {
            directory,
            programs,
        };
        let made = std::fs::create_dir(&group.directory).and_then(|()| {
            let pids = group
                .programs
                .iter()
                .map(|program| program.0.id().to_string());
            let file = group.directory.join("cgroup.procs");
            pids.into_iter()
                .try_for_each(|pid| std::fs::write(&file, pid))
        });
        if let Err(error) = made {
            skip(&format!("no control group of version 2: {error}"));
        }
        group
    }

    /// Pages of its hot arrays on the fast node, as reported by the kernel.
    pub(crate) fn fast(&self) -> usize {
        let programs = self.programs.iter();
        programs
            .map(|program| hot_in_numa_maps(program.0.id(), 0))
            .sum()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.programs.clear();
        let _ = std::fs::remove_dir(&self.directory);
    }
}

fn a_floor_keeps_a_group_fast_beside_a_far_hotter_one() {
    loopback();
    // One rests for most of its time, and three never do; all arrays begin on the slow node.
    let quiet = Group::of("quiet", vec![program("r")]);
    let loud = Group::of("loud", (0..LOUD).map(|_| program("")).collect());
    let without = config(
        "accessed_bits = \"off\"\ntrace_samples = \"timer\"\n",
        ALL_MOVES,
    );
    let floor = format!("{without}[groups.\"/quiet\"]\nfloor = \"4MiB\"\n");
    let mut daemon = Daemon::with(&floor);
    let (kept, lost) = (HOT_PAGES * 9 / 10, HOT_PAGES / 10);
    daemon.wait("hot memory of both groups on the fast node", |_| {
        quiet.fast() >= kept && loud.fast() > 0
    });
    // In every epoch by the daemon's own account, and now and then by the kernel's.
    for _ in 0..FOLLOWED {
        for status in daemon.follow(EPOCHS) {
            let groups = status["groups"].as_array().expect("groups");
            let group = groups.iter().find(|it| it["control_group"] == "/quiet");
            let fast = group.and_then(|group| group["fast_bytes"].as_u64());
            assert!(fast >= Some(kept as u64 * 4096), "{status}");
        }
        let pages = quiet.fast();
        assert!(pages >= kept, "{pages} of {HOT_PAGES} pages");
    }
    // Only the floor keeps them there.
    daemon.reload(&without);
    daemon.wait("loss of what no floor keeps", |_| quiet.fast() <= lost);
    // And without the floor, they are given back.
    daemon.reload(&floor);
    daemon.wait("return of what is due", |_| quiet.fast() >= kept);
    daemon.stop();
}
