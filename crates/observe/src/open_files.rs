//! `make_room` raises the soft limit of open files of this process for perf events, where the hard limit allows it: each event of a thread
//! on each processor is an open file, and 1,024 is the usual soft limit.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Open files that a run needs beside its events: session files, files of `/proc`, outputs.
const OTHERS: u64 = 512;

/// Makes room for this many further open files: raises the limit of this process, where it needs that and may. False where it may not.
/// Programs that run already keep their limit.
pub(crate) fn make_room(further: u64) -> bool {
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64;
    let limits = getrlimit(Resource::Nofile);
    match with_room(&limits, open.saturating_add(further).saturating_add(OTHERS)) {
        Some(raised) => raised == limits || setrlimit(Resource::Nofile, raised).is_ok(),
        None => false,
    }
}

/// The limits under which a process can open this many files; `None` where the hard limit is lower.
fn with_room(limits: &Rlimit, files: u64) -> Option<Rlimit> {
    let allows = |limit: Option<u64>| limit.is_none_or(|limit| limit >= files);
    let current = match allows(limits.current) {
        true => limits.current,
        false => Some(files),
    };
    let maximum = limits.maximum;
    allows(maximum).then_some(Rlimit { current, maximum })
}

#[cfg(test)]
mod tests {
    use super::with_room;
    use rustix::process::Rlimit;

    fn limits(current: u64, maximum: u64) -> Rlimit {
        let limit = |files: u64| Some(files).filter(|files| *files > 0);
        Rlimit {
            current: limit(current),
            maximum: limit(maximum),
        }
    }

    #[test]
    fn a_limit_is_raised_as_far_as_needed_and_to_the_hard_limit_at_most() {
        let usual = limits(1_024, 524_288);
        assert_eq!(with_room(&usual, 1_024), Some(usual));
        assert_eq!(with_room(&usual, 1_025), Some(limits(1_025, 524_288)));
        assert_eq!(with_room(&usual, 524_288), Some(limits(524_288, 524_288)));
        assert_eq!(with_room(&usual, 524_289), None);
        assert_eq!(with_room(&limits(60, 60), 61), None);
        assert_eq!(with_room(&limits(60, 0), 61), Some(limits(61, 0)));
        assert_eq!(with_room(&limits(0, 0), u64::MAX), Some(limits(0, 0)));
    }
}
