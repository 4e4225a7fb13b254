//! [`mapped_ranges`] parses the mappings of a process from the text of `/proc/PID/maps`, each line as a [`MappedRange`]: its addresses,
//! access, file and name.
//!
//! ```text
//! 55d0c0a00000-55d0c0a21000 rw-p 00002000 fe:00 1234   /usr/bin/app (deleted)
//! range                     access offset  device inode name
//! ```
//!
//! A program chooses its file names and the names of its anonymous memory: a line may hold any bytes, and one that is malformed is
//! left out.
//!
//! Manual: `proc_pid_maps(5)`.

use std::ops::Range;

/// A mapping, as one line of the text describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedRange<'a> {
    /// Its addresses; not empty.
    pub range: Range<u64>,
    /// It may be read.
    pub is_readable: bool,
    /// It may be written.
    pub is_writable: bool,
    /// It may be executed.
    pub is_executable: bool,
    /// It is shared with other processes, and not private.
    pub is_shared: bool,
    /// Position of its first byte in its file; 0 without a file.
    pub file_offset: u64,
    /// The number of its file; 0 without one.
    pub inode: u64,
    /// The path of its file, or a name in brackets such as `[heap]`; empty for anonymous memory without a name. `(deleted)` follows the path
    /// of a file that was removed.
    pub name: &'a [u8],
}

impl MappedRange<'_> {
    /// True for what the kernel maps for itself.
    #[must_use]
    pub fn is_of_kernel(&self) -> bool {
        let known: [&[u8]; 4] = [b"[vdso]", b"[vvar", b"[vsyscall]", b"[uprobes]"];
        known.iter().any(|name| self.name.starts_with(name))
    }
}

/// The mappings in the text, by address as the kernel lists them.
pub fn mapped_ranges(text: &[u8]) -> impl Iterator<Item = MappedRange<'_>> {
    text.split(|byte| *byte == b'\n').filter_map(mapped_range)
}

/// The mapping in a line of the text; `None` for a malformed line.
#[must_use]
pub fn mapped_range(line: &[u8]) -> Option<MappedRange<'_>> {
    let (addresses, rest) = word(line)?;
    let (access, rest) = word(rest)?;
    let (offset, rest) = word(rest)?;
    let (_device, rest) = word(rest)?;
    let (inode, name) = word(rest)?;
    let dash = addresses.iter().position(|byte| *byte == b'-')?;
    let range = hexadecimal(&addresses[..dash])?..hexadecimal(&addresses[dash + 1..])?;
    let allows = |at: usize, letter: u8| access.get(at) == Some(&letter);
    (range.start < range.end).then_some(MappedRange {
        range,
        is_readable: allows(0, b'r'),
        is_writable: allows(1, b'w'),
        is_executable: allows(2, b'x'),
        is_shared: allows(3, b's'),
        file_offset: hexadecimal(offset)?,
        inode: std::str::from_utf8(inode).ok()?.parse().ok()?,
        name: name.trim_ascii_start(),
    })
}

/// The text up to the next space, and what follows that space.
fn word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii_start();
    let end = line.iter().position(|byte| *byte == b' ');
    match end {
        Some(end) => Some((&line[..end], &line[end + 1..])),
        None => (!line.is_empty()).then_some((line, &[])),
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::{MappedRange, mapped_ranges};

    const TEXT: &[u8] = b"\
55d0c0a00000-55d0c0a21000 r-xp 00002000 fe:00 1234                       /usr/bin/my app (deleted)
55d0c0c00000-55d0c0c21000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000400000 rw-s 00000000 00:00 0
garbage
7f0000500000-7f0000400000 rw-p 00000000 00:00 0 backwards
7f0000500000-7f0000600000 rw-p 00000000
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]";

    #[test]
    fn lines_are_read_and_malformed_ones_are_left_out() {
        let found: Vec<MappedRange<'_>> = mapped_ranges(TEXT).collect();
        let names: Vec<&[u8]> = found.iter().map(|mapping| mapping.name).collect();
        let expected: [&[u8]; 4] = [b"/usr/bin/my app (deleted)", b"[heap]", b"", b"[vsyscall]"];
        assert_eq!(names, expected);
        let first = MappedRange {
            range: 0x55d0_c0a0_0000..0x55d0_c0a2_1000,
            is_readable: true,
            is_writable: false,
            is_executable: true,
            is_shared: false,
            file_offset: 0x2000,
            inode: 1234,
            name: expected[0],
        };
        assert_eq!(found[0], first);
        assert!(found[1].is_writable && !found[1].is_executable && !found[1].is_shared);
        assert!(found[2].is_shared && found[2].inode == 0);
    }

    #[test]
    fn this_process_has_its_code_mapped_from_its_file() {
        let text = std::fs::read("/proc/self/maps").expect("is readable");
        let own = this_address as *const () as u64;
        let mut found = mapped_ranges(&text);
        let code = found.find(|mapping| mapping.range.contains(&own));
        let code = code.expect("a mapping");
        assert!(code.is_executable && code.inode > 0 && code.name.starts_with(b"/"));
    }

    fn this_address() {}
}
