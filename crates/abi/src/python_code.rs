//! [`PythonCode`] is a Python function in a session file: it writes and reads the function's text (file, name, first line), and makes the
//! offset by which a [`FrameRecord`] with the module [`PYTHON_FRAME`] names a line in it.
//!
//! A frame is named by the function's file, its qualified name and the line in it, counted from the function's first line: changes
//! above the function leave the names of sites as they were.
//!
//! ```text
//! FrameRecord.text    place in the text area: first line (4 bytes), bytes of the path (2) and of the name (2), path, name
//! FrameRecord.offset  hash of the name (high 32 bits), line less the first line (low 32 bits, two's complement)
//! ```
//!
//! [`FrameRecord`]: crate::session::FrameRecord
//! [`PYTHON_FRAME`]: crate::session::PYTHON_FRAME

use crate::hash::{SiteHashKind, SiteHasher};

/// Bytes in front of the path.
pub const HEADER_BYTES: usize = 8;

/// [`FrameRecord::text`] where the text area had no room for the function.
///
/// [`FrameRecord::text`]: crate::session::FrameRecord::text
pub const NO_TEXT: u32 = u32::MAX;

/// Most bytes of a module's name that are hashed, as of a file without a build-id.
const MODULE_BYTES: usize = 32;

/// A Python function, as the text area has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PythonCode<'a> {
    /// Path of its file, or a name such as `<string>`.
    pub file: &'a [u8],
    /// Its qualified name: `Graph.load`.
    pub function: &'a [u8],
    /// The line where it begins.
    pub first_line: u32,
}

impl<'a> PythonCode<'a> {
    /// The bytes in front of path and name; `None` if one of them is too long.
    #[must_use]
    pub fn header(&self) -> Option<[u8; HEADER_BYTES]> {
        let file = u16::try_from(self.file.len()).ok()?;
        let function = u16::try_from(self.function.len()).ok()?;
        let lengths = u64::from(file) << 32 | u64::from(function) << 48;
        Some((u64::from(self.first_line) | lengths).to_le_bytes())
    }

    /// The function at this place of a text area; `None` where none is, or its end is missing.
    #[must_use]
    pub fn read(text: &'a [u8], place: u32) -> Option<Self> {
        let rest = text.get(place as usize..)?;
        let (header, rest) = rest.split_first_chunk::<HEADER_BYTES>()?;
        let header = u64::from_le_bytes(*header);
        let (file, rest) = rest.split_at_checked((header >> 32) as u16 as usize)?;
        let (function, _) = rest.split_at_checked((header >> 48) as usize)?;
        Some(Self {
            file,
            function,
            first_line: header as u32,
        })
    }

    /// What stands for the module in a site's name: the file's name without its folder, at most 32 bytes of it.
    #[must_use]
    pub fn module_name(&self) -> &'a [u8] {
        let slash = self.file.iter().rposition(|byte| *byte == b'/');
        let name = slash.map_or(self.file, |slash| &self.file[slash + 1..]);
        &name[..name.len().min(MODULE_BYTES)]
    }

    /// What stands for the return address in a site's name.
    #[must_use]
    pub fn offset(&self, line: u32) -> u64 {
        let hasher = SiteHasher::new(SiteHashKind::Heap).frame(self.function, 0);
        let within = line.wrapping_sub(self.first_line);
        (hasher.finish() & !0xffff_ffff) | u64::from(within)
    }

    /// The line that such an offset stands for.
    #[must_use]
    pub const fn line(&self, offset: u64) -> u32 {
        self.first_line.wrapping_add(offset as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::{HEADER_BYTES, PythonCode};

    const CODE: PythonCode<'_> = PythonCode {
        file: b"/home/me/graph.py",
        function: b"Graph.load",
        first_line: 40,
    };

    #[test]
    fn what_is_written_is_read_and_a_missing_end_is_no_function() {
        let mut text = [0; 64];
        let header = CODE.header().expect("short");
        let parts: [&[u8]; 3] = [&header, CODE.file, CODE.function];
        let mut end = 3;
        for part in parts {
            text[end..end + part.len()].copy_from_slice(part);
            end += part.len();
        }
        assert_eq!(end, 3 + HEADER_BYTES + 17 + 10);
        assert_eq!(PythonCode::read(&text[..end], 3), Some(CODE));
        assert_eq!(PythonCode::read(&text[..end - 1], 3), None);
        for place in [60, 64, 65, u32::MAX] {
            assert_eq!(PythonCode::read(&text, place), None, "{place}");
        }
    }

    #[test]
    fn a_name_is_kept_where_the_function_moves_and_no_two_lines_share_it() {
        let moved = PythonCode {
            first_line: 90,
            ..CODE
        };
        assert_eq!(CODE.offset(43), moved.offset(93));
        assert_ne!(CODE.offset(43), CODE.offset(44));
        let other = PythonCode {
            function: b"Graph.save",
            ..CODE
        };
        assert_ne!(CODE.offset(43), other.offset(43));
        // A decorated function may have a line before its first.
        for line in [0, 39, 40, 43, u32::MAX] {
            assert_eq!(CODE.line(CODE.offset(line)), line);
        }
    }

    #[test]
    fn a_module_is_its_file_without_the_folder() {
        let name = |file: &'static [u8]| PythonCode { file, ..CODE }.module_name();
        assert_eq!(name(b"/home/me/graph.py"), b"graph.py");
        assert_eq!(name(b"<string>"), b"<string>");
        assert_eq!(name(b""), b"");
        assert_eq!(name(&[b'x'; 40]), [b'x'; 32]);
    }
}
