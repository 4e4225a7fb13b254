//! The remaining limits of the process for a mover: mappings, and whether it locks memory.

use rustix::fs::{Mode, OFlags};

/// Mappings that one unit may leave behind: its own, and two halves of what it was cut from.
const PER_UNIT: usize = 3;
/// `vm.max_map_count` where it cannot be read: the kernel's default.
const DEFAULT_MAX: usize = 65_530;

/// The budget of mappings. A quarter of the limit is left to the program.
pub(super) struct Limits {
    most: usize,
    left: usize,
}

impl Limits {
    pub(super) fn read() -> Self {
        let mut most = 0;
        read(c"/proc/sys/vm/max_map_count", |bytes| {
            for byte in bytes.iter().filter(|byte| byte.is_ascii_digit()) {
                most = most * 10 + usize::from(byte - b'0');
            }
        });
        let most = if most == 0 { DEFAULT_MAX } else { most };
        Self {
            most: most - most / 4,
            left: 0,
        }
    }

    /// Whether one more unit may be mapped anew. Counts the process's mappings only when the remainder of the
    /// last count is used up: neighbours that were moved alike merge in between.
    pub(super) fn have_room(&mut self) -> bool {
        if self.left < PER_UNIT {
            self.left = self.most.saturating_sub(mappings());
        }
        self.left >= PER_UNIT
    }

    /// A unit was mapped anew.
    pub(super) const fn spend(&mut self) {
        self.left = self.left.saturating_sub(PER_UNIT);
    }
}

/// Number of mappings of this process.
#[must_use]
pub fn mappings() -> usize {
    let mut lines = 0;
    read(c"/proc/self/maps", |bytes| {
        lines += bytes.iter().filter(|byte| **byte == b'\n').count();
    });
    lines
}

/// Whether this process has locked any memory (`mlock`, `mlockall`).
pub(super) fn locks_memory() -> bool {
    const KEY: &[u8] = b"VmLck:";
    let mut found = false;
    read(c"/proc/self/status", |bytes| {
        // The file fits one read: it has some 60 short lines.
        for line in bytes.split(|byte| *byte == b'\n') {
            if let Some(value) = line.strip_prefix(KEY) {
                found |= value.iter().any(|byte| (b'1'..=b'9').contains(byte));
            }
        }
    });
    found
}

/// Reads a file of `/proc` piece by piece, without an allocation; nothing where it cannot be read.
fn read(path: &core::ffi::CStr, mut each: impl FnMut(&[u8])) {
    let Ok(file) = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else {
        return;
    };
    let mut bytes = [0; 4096];
    while let Ok(count) = rustix::io::read(&file, &mut bytes) {
        if count == 0 {
            return;
        }
        each(&bytes[..count]);
    }
}

#[cfg(test)]
mod tests {
    use super::{Limits, mappings};

    #[test]
    fn a_process_has_some_mappings_and_room_for_more() {
        let here = mappings();
        assert!(here > 5, "{here}");
        let mut limits = Limits::read();
        assert!(limits.have_room());
        let before = limits.left;
        limits.spend();
        assert_eq!(limits.left, before - 3);
    }
}
