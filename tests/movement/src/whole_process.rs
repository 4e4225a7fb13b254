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
use isotherm_sys::memory_map::{MappedRange, mapped_ranges};

/// One action for each mapping of the process, in the order of addresses, without those that belong
/// to the kernel (such as `[vdso]`).
///
/// # Errors
/// The process has ended, or its `maps` may not be read.
pub fn actions(process: Process, node: NodeId) -> io::Result<Vec<RangeAction>> {
    let text = fs::read(format!("/proc/{}/maps", process.pid))?;
    let action = |mapping: MappedRange<'_>| RangeAction {
        process,
        range: AddressRange {
            start: mapping.range.start,
            bytes: Bytes(mapping.range.end - mapping.range.start),
        },
        node,
    };
    let ours = mapped_ranges(&text).filter(|mapping| !is_of_kernel(mapping));
    Ok(ours.map(action).collect())
}

fn is_of_kernel(mapping: &MappedRange<'_>) -> bool {
    let names: [&[u8]; 4] = [b"[vdso]", b"[vvar", b"[vsyscall]", b"[uprobes]"];
    names.iter().any(|known| mapping.name.starts_with(known))
}

#[cfg(test)]
mod tests {
    use super::{actions, is_of_kernel};
    use isotherm_model::batch::Process;
    use isotherm_model::movement::NodeId;
    use isotherm_sys::memory_map::mapped_ranges;

    #[test]
    fn every_mapping_but_the_kernels_own_is_listed() {
        let text = b"55d0-55f0 rw-p 00000000 00:00 0                  [heap]\n\
            7f00-7f10 r-xp 00000000 08:01 99  /usr/lib/libc.so.6\n\
            7ffe-7fff r-xp 00000000 00:00 0  [vdso]\n\
            7ffe-7fff r--p 00000000 00:00 0  [vvar_vclock]\n";
        let of_kernel: Vec<bool> = mapped_ranges(text).map(|it| is_of_kernel(&it)).collect();
        assert_eq!(of_kernel, [false, false, true, true]);
    }

    #[test]
    fn this_process_has_mappings_and_an_absent_one_is_an_error() {
        let process = |pid| Process { pid, image: 0 };
        let own = actions(process(std::process::id()), NodeId(0)).unwrap();
        assert!(own.len() > 5);
        assert!(actions(process(u32::MAX), NodeId(0)).is_err());
    }
}
