//! [`Path`] builds a path or a name on the stack, without an allocation.

use core::ffi::CStr;
use core::fmt::{self, Write};

/// Longest path, its final NUL included.
pub(crate) const PATH_BYTES: usize = 4096;

/// Text of at most `N - 1` bytes, for calls that expect a path or a name.
#[derive(Clone, Copy)]
pub(crate) struct Path<const N: usize = PATH_BYTES> {
    bytes: [u8; N],
    used: usize,
}

impl<const N: usize> Write for Path<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes()).ok_or(fmt::Error)
    }
}

impl<const N: usize> Path<N> {
    pub(crate) const fn new() -> Self {
        Self {
            bytes: [0; N],
            used: 0,
        }
    }

    /// Adds to the end; `None` where there is no room.
    pub(crate) fn push(&mut self, text: &[u8]) -> Option<()> {
        // One byte stays free for the NUL.
        let room = N - 1 - self.used;
        if text.len() > room {
            return None;
        }
        self.bytes[self.used..self.used + text.len()].copy_from_slice(text);
        self.used += text.len();
        Some(())
    }

    /// The form for the kernel; `None` where the text contains a NUL.
    pub(crate) fn as_c_str(&self) -> Option<&CStr> {
        CStr::from_bytes_with_nul(&self.bytes[..=self.used]).ok()
    }
}
