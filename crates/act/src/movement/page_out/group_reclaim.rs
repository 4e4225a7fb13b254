//! [`reclaim`] requests that the kernel reclaims memory of a control group whose processes may not be paged out from outside; the kernel
//! chooses the pages. The function writes `memory.reclaim` of version 2 (Linux 5.19, `Documentation/admin-guide/cgroup-v2.rst`), not the
//! limits of the group.

use std::io;
use std::path::Path;

use isotherm_model::outcome::Fate;
use isotherm_model::port::Clock;
use isotherm_model::units::{Bytes, Nanos};

/// Bytes requested by one write: some ten milliseconds, at the speed of compressed memory.
const BATCH: Bytes = Bytes(4 << 20);
/// Time after which no further write begins.
const TIME: Nanos = Nanos(100_000_000);

/// The bytes that the kernel reclaimed, and its answer to the last request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReclaimOutcome {
    /// Bytes that were reclaimed.
    pub reclaimed: Bytes,
    /// [`Fate::Requested`] where the kernel accepted all requests, else the reason.
    pub fate: Fate,
}

/// Has the kernel reclaim `bytes` of the group whose files are in this directory (`/sys/fs/cgroup/system.slice/app.service`), in batches,
/// as long as there is time.
pub fn reclaim(group: &Path, bytes: Bytes, clock: &impl Clock) -> ReclaimOutcome {
    let mut outcome = ReclaimOutcome {
        reclaimed: Bytes::ZERO,
        fate: Fate::Requested,
    };
    let file = group.join("memory.reclaim");
    if !file.exists() {
        outcome.fate = Fate::Denied("the control group has no memory.reclaim (Linux 5.19)".into());
        return outcome;
    }
    let end = clock.now().saturating_add(TIME);
    while outcome.reclaimed < bytes && clock.now() < end {
        let batch = BATCH.min(bytes.saturating_sub(outcome.reclaimed));
        match std::fs::write(&file, batch.0.to_string()) {
            Ok(()) => outcome.reclaimed += batch,
            Err(error) => {
                outcome.fate = refused(&error);
                break;
            }
        }
    }
    outcome
}

fn refused(error: &io::Error) -> Fate {
    match error.kind() {
        io::ErrorKind::WouldBlock => Fate::Busy("the kernel found less to reclaim".into()),
        _ => Fate::Denied(format!("memory.reclaim cannot be written: {error}").into()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use isotherm_model::outcome::Fate;
    use isotherm_model::port::Clock;
    use isotherm_model::units::{Bytes, Nanos};

    use super::reclaim;

    /// A clock that each look moves on.
    struct Steps(Cell<u64>, u64);

    impl Clock for Steps {
        fn now(&self) -> Nanos {
            self.0.set(self.0.get() + self.1);
            Nanos(self.0.get())
        }

        fn busy(&self) -> Nanos {
            Nanos::ZERO
        }

        fn sleep(&self, _: Nanos) {}
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_group_is_asked_in_batches_until_the_time_is_up() {
        let root = tempfile::tempdir().expect("a directory");
        let group = root.path().join("sys/fs/cgroup/unified/a/b");
        let ask = |bytes, step| reclaim(&group, Bytes(bytes), &Steps(Cell::new(0), step));
        let none = ask(10 * MIB, 1);
        assert!(matches!(none.fate, Fate::Denied(_)), "{none:?}");
        std::fs::create_dir_all(&group).expect("made");
        let file = group.join("memory.reclaim");
        std::fs::write(&file, "").expect("written");
        let all = ask(10 * MIB, 1);
        assert_eq!(
            (all.reclaimed, all.fate),
            (Bytes(10 * MIB), Fate::Requested)
        );
        let last = std::fs::read_to_string(&file).expect("read");
        assert_eq!(last, (2 * MIB).to_string(), "after two batches of 4 MiB");
        let late = ask(10 * MIB, 60_000_000);
        assert_eq!(late.reclaimed, Bytes(4 * MIB), "a look takes 60 ms");
    }
}
