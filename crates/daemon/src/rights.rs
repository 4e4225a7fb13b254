//! Lists the capability that each feature of the daemon needs, tells the status which of them the daemon holds, and drops all others;
//! `CAP_SYS_ADMIN` is kept only where a configured feature needs it.

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

/// The uses of `CAP_SYS_ADMIN`: two sources, and the kernel's promotion. Kept only if one of them is configured: it is almost full root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AdminUses {
    /// A source needs page frame numbers.
    pub frames: bool,
    /// The daemon sets the kernel's balancing.
    pub promotion: bool,
}

impl AdminUses {
    const fn feature(self) -> Option<&'static str> {
        match (self.frames, self.promotion) {
            (false, false) => None,
            (true, false) => {
                Some("find the frames of pages, for DAMON by frame and the bitmap of idle pages")
            }
            (false, true) => Some("set kernel.numa_balancing, for promotion by the kernel"),
            (true, true) => Some(
                "find the frames of pages, for DAMON by frame and the bitmap of idle pages; set kernel.numa_balancing, for \
                 promotion by the kernel",
            ),
        }
    }
}

fn table(admin: AdminUses) -> impl Iterator<Item = (CapabilitySet, &'static str, &'static str)> {
    let right = |feature| (CapabilitySet::SYS_ADMIN, "CAP_SYS_ADMIN", feature);
    TABLE.into_iter().chain(admin.feature().map(right))
}

/// The capabilities that the daemon needs, and whether it holds each.
pub(crate) fn held(admin: AdminUses) -> Vec<RightStatus> {
    let effective = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    let right = |(capability, name, feature): (CapabilitySet, &str, &str)| RightStatus {
        capability: name.to_owned(),
        feature: feature.to_owned(),
        held: effective.contains(capability),
    };
    table(admin).map(right).collect()
}

/// Whether this thread may set what only an administrator sets.
pub(crate) fn may_administer() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// Drops every capability without a feature here, for this thread and those it starts. Called
/// before the first of them.
///
/// # Errors
/// The kernel refused.
pub(crate) fn drop_others(admin: AdminUses) -> std::io::Result<()> {
    let sets = capabilities(None)?;
    let ours = table(admin).fold(CapabilitySet::empty(), |all, (one, _, _)| all | one);
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
    use super::{AdminUses, TABLE, drop_others, held};
    use rustix::thread::{CapabilitySet, capabilities};

    const NONE: AdminUses = AdminUses {
        frames: false,
        promotion: false,
    };

    #[test]
    fn what_buys_nothing_is_dropped_and_the_rest_is_as_before() {
        // In a separate thread: other tests keep their capabilities.
        let (before, after, left) = std::thread::spawn(|| {
            let before = held(NONE);
            drop_others(NONE).expect("the kernel lets us have less");
            let left = capabilities(None).expect("own capabilities");
            (before, held(NONE), left)
        })
        .join()
        .expect("no panic");
        assert_eq!(before, after);
        assert_eq!(before.len(), TABLE.len());
        assert!(!left.permitted.contains(CapabilitySet::SYS_ADMIN));
        assert!(!left.effective.contains(CapabilitySet::CHOWN));
    }

    #[test]
    fn the_right_of_an_administrator_is_kept_only_for_what_needs_it() {
        let frames = AdminUses {
            frames: true,
            ..NONE
        };
        let promotion = AdminUses {
            promotion: true,
            ..NONE
        };
        let (before, left) = std::thread::spawn(move || {
            let before = capabilities(None).expect("own capabilities").permitted;
            drop_others(promotion).expect("the kernel lets us have less");
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
        for uses in [frames, promotion] {
            let rights = held(uses);
            assert_eq!(rights.len(), TABLE.len() + 1);
        }
        let both = AdminUses {
            frames: true,
            promotion: true,
        };
        let feature = held(both).pop().expect("a right").feature;
        assert!(
            feature.contains("frames") && feature.contains("numa_balancing"),
            "{feature}"
        );
    }
}
