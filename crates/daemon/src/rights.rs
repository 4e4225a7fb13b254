//! The capability behind each feature; the daemon keeps these and drops all others.

use isotherm_report::watch_status::RightStatus;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// A capability, its name and its feature.
const TABLE: [(CapabilitySet, &str, &str); 4] = [
    (
        CapabilitySet::SYS_PTRACE,
        "CAP_SYS_PTRACE",
        "read the page tables and page locations of other users' processes, and the code that \
         samples point to",
    ),
    (
        CapabilitySet::SYS_NICE,
        "CAP_SYS_NICE",
        "move the pages of other users' processes, and to nodes outside their cpuset",
    ),
    (
        CapabilitySet::PERFMON,
        "CAP_PERFMON",
        "sample every process with one event a processor, find the memory node of a sample's data, and \
         count misses; without it each thread of processes of the same user has an event",
    ),
    (
        CapabilitySet::DAC_OVERRIDE,
        "CAP_DAC_OVERRIDE",
        "clear the accessed bits of other users' processes",
    ),
];

/// Needed by two sources only, and kept only if one of them is configured: it is almost full root.
const FRAMES: (CapabilitySet, &str, &str) = (
    CapabilitySet::SYS_ADMIN,
    "CAP_SYS_ADMIN",
    "find the frames of pages, for DAMON by frame and the bitmap of idle pages",
);

fn table(frames: bool) -> impl Iterator<Item = (CapabilitySet, &'static str, &'static str)> {
    TABLE.into_iter().chain(frames.then_some(FRAMES))
}

/// The capabilities of the daemon; with `frames` it reads page frame numbers.
pub(crate) fn held(frames: bool) -> Vec<RightStatus> {
    let effective = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    let right = |(capability, name, feature): (CapabilitySet, &str, &str)| RightStatus {
        capability: name.to_owned(),
        feature: feature.to_owned(),
        held: effective.contains(capability),
    };
    table(frames).map(right).collect()
}

/// Drops every capability without a feature here, for this thread and those it starts. Called
/// before the first of them. With `frames` it reads page frame numbers.
///
/// # Errors
/// The kernel refused.
pub(crate) fn drop_others(frames: bool) -> std::io::Result<()> {
    let sets = capabilities(None)?;
    let ours = table(frames).fold(CapabilitySet::empty(), |all, (one, _, _)| all | one);
    set_capabilities(
        None,
        CapabilitySets {
            effective: sets.effective & ours,
            permitted: sets.permitted & ours,
            inheritable: CapabilitySet::empty(),
        },
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{TABLE, drop_others, held};
    use rustix::thread::{CapabilitySet, capabilities};

    #[test]
    fn what_buys_nothing_is_dropped_and_the_rest_is_as_before() {
        // In a separate thread: other tests keep their capabilities.
        let (before, after, left) = std::thread::spawn(|| {
            let before = held(false);
            drop_others(false).expect("the kernel lets us have less");
            let left = capabilities(None).expect("own capabilities");
            (before, held(false), left)
        })
        .join()
        .expect("no panic");
        assert_eq!(before, after);
        assert_eq!(before.len(), TABLE.len());
        assert!(!left.permitted.contains(CapabilitySet::SYS_ADMIN));
        assert!(!left.effective.contains(CapabilitySet::CHOWN));
    }

    #[test]
    fn the_right_to_see_frames_is_kept_only_for_the_source_that_needs_it() {
        let (before, left) = std::thread::spawn(|| {
            let before = capabilities(None).expect("own capabilities").permitted;
            drop_others(true).expect("the kernel lets us have less");
            (
                before,
                capabilities(None).expect("own capabilities").permitted,
            )
        })
        .join()
        .expect("no panic");
        let admin = CapabilitySet::SYS_ADMIN;
        assert_eq!(left.contains(admin), before.contains(admin));
        assert!(!left.contains(CapabilitySet::CHOWN));
        assert_eq!(held(true).len(), TABLE.len() + 1);
    }
}
