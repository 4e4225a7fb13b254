//! `segments` lists the segments of a program's file that have bytes in it, with their positions in the file, and `bytes_at` reads the
//! file's bytes by ELF virtual address, as the file has it and not a process.

use object::{Object, ObjectSegment, SegmentFlags, elf};

/// A segment that has bytes in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileSegment {
    /// Position of its first byte in the file.
    pub(crate) file_offset: u64,
    /// Its bytes in the file.
    pub(crate) bytes: u64,
    /// ELF address of its first byte.
    pub(crate) address: u64,
    pub(crate) is_executable: bool,
}

/// The segments that have bytes in the file, by address.
pub(crate) fn segments<'data>(file: &impl Object<'data>) -> Vec<FileSegment> {
    let segments = file.segments().map(|segment| {
        let (file_offset, bytes) = segment.file_range();
        let is_executable =
            matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & elf::PF_X != 0);
        FileSegment {
            file_offset,
            bytes,
            address: segment.address(),
            is_executable,
        }
    });
    segments.filter(|segment| segment.bytes > 0).collect()
}

/// The bytes from an address of the program on, at most the given number; fewer where its segment
/// ends before.
pub(crate) fn bytes_at<'data>(
    file: &impl Object<'data>,
    place: u64,
    at_most: u64,
) -> Option<&'data [u8]> {
    let segment = file.segments().find(|segment| {
        let start = segment.address();
        place >= start && place - start < segment.size()
    })?;
    let left = segment.size() - (place - segment.address());
    segment.data_range(place, left.min(at_most)).ok().flatten()
}
