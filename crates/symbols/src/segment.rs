//! `segments` lists the segments of a program's file that have bytes in it, with their positions in the file, and `bytes_at` reads the
//! file's bytes by ELF virtual address, as the file has it and not a process.

use object::{Object, ObjectSegment};

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
