//! Lists all memory of a process as actions, to move a whole process from outside.
//!
//! `migrate_pages` would do it in one call, but without a time limit, and with one number as its
//! result: programs have been blocked for minutes. A list of ranges goes through the same batches,
//! limits and outcomes as other moves. `process_madvise` moves no page between nodes and is not
//! used.

use std::fs;
use std::io;

use isotherm_model::batch::Process;
use isotherm_model::movement::{AddressRange, NodeId, RangeAction};
use isotherm_model::units::Bytes;

/// One action for each mapping of the process, in the order of addresses, without those that belong
/// to the kernel (such as `[vdso]`).
///
/// # Errors
/// The process has ended, or its `maps` may not be read.
pub fn actions(process: Process, node: NodeId) -> io::Result<Vec<RangeAction>> {
    let text = fs::read_to_string(format!("/proc/{}/maps", process.pid))?;
    let action = |range| RangeAction {
        process,
        range,
        node,
    };
    Ok(text.lines().filter_map(movable).map(action).collect())
}

/// The range of a line of `maps`: `7f00-7f10 rw-p 00000000 00:00 0    [heap]`.
fn movable(line: &str) -> Option<AddressRange> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    let name = words.nth(4).unwrap_or_default();
    let of_kernel = ["[vdso]", "[vvar", "[vsyscall]", "[uprobes]"];
    if of_kernel.iter().any(|known| name.starts_with(known)) {
        return None;
    }
    Some(AddressRange {
        start,
        bytes: Bytes(end.checked_sub(start)?),
    })
}

#[cfg(test)]
mod tests {
    use super::{actions, movable};
    use isotherm_model::batch::Process;
    use isotherm_model::movement::NodeId;
    use isotherm_model::units::Bytes;

    #[test]
    fn every_mapping_but_the_kernels_own_is_listed() {
        let heap = movable("55d0-55f0 rw-p 00000000 00:00 0                  [heap]").unwrap();
        assert_eq!((heap.start, heap.bytes), (0x55d0, Bytes(0x20)));
        assert!(movable("7f00-7f10 r-xp 00000000 08:01 99  /usr/lib/libc.so.6").is_some());
        assert_eq!(movable("7ffe-7fff r-xp 00000000 00:00 0  [vdso]"), None);
        assert_eq!(
            movable("7ffe-7fff r--p 00000000 00:00 0  [vvar_vclock]"),
            None
        );
        assert_eq!(movable("nonsense"), None);
        assert_eq!(movable("20-10 rw-p"), None);
    }

    #[test]
    fn this_process_has_mappings_and_an_absent_one_is_an_error() {
        let process = |pid| Process { pid, image: 0 };
        let own = actions(process(std::process::id()), NodeId(0)).unwrap();
        assert!(own.len() > 5);
        assert!(actions(process(u32::MAX), NodeId(0)).is_err());
    }
}
