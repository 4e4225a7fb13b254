//! `Lines` reads a text file line by line, one line in memory at a time, and knows the line's number for errors.

use std::borrow::Cow;
use std::io::{BufRead, Read};

use crate::error::{Error, Fault, Place};

/// Most bytes of a line. A `perf script` line with a long calling context in one line is far below;
/// a file without any line feed is not.
const LONGEST: usize = 1 << 16;

/// The lines of a file.
pub(crate) struct Lines<R> {
    source: R,
    file: String,
    number: u64,
    buffer: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(source: R, file: &str) -> Self {
        Self {
            source,
            file: file.to_owned(),
            number: 0,
            buffer: Vec::new(),
        }
    }

    /// The next line without its end (LF or CR LF); `None` after the last one. Bytes that are not
    /// UTF-8 become replacement characters, because names of programs may hold any bytes.
    pub(crate) fn next_line(&mut self) -> Result<Option<Cow<'_, str>>, Error> {
        self.buffer.clear();
        let limit = LONGEST as u64 + 1;
        let mut line = self.source.by_ref().take(limit);
        match line.read_until(b'\n', &mut self.buffer) {
            Err(source) => return Err(Error::read(&self.file, source)),
            Ok(0) => return Ok(None),
            Ok(_) => self.number += 1,
        }
        if self.buffer.len() > LONGEST {
            let found = format!("the line is longer than {LONGEST} bytes");
            return Err(self.error(Fault::new(found, "lines of text")));
        }
        for end in [b'\n', b'\r'] {
            if self.buffer.last() == Some(&end) {
                self.buffer.pop();
            }
        }
        Ok(Some(String::from_utf8_lossy(&self.buffer)))
    }

    /// Number of the line that was read last, from 1.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// An error in the line that was read last.
    pub(crate) fn error(&self, fault: Fault) -> Error {
        self.error_at(fault, self.number)
    }

    /// The value, or its fault as an error in the line that was read last.
    pub(crate) fn checked<T>(&self, value: Result<T, Fault>) -> Result<T, Error> {
        value.map_err(|fault| self.error(fault))
    }

    /// An error in an earlier line.
    pub(crate) fn error_at(&self, fault: Fault, line: u64) -> Error {
        fault.at(&self.file, Place::Line(line.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, Lines};

    #[test]
    fn lines_end_with_lf_crlf_or_the_file_and_may_hold_any_bytes() {
        let mut lines = Lines::new(&b"a\r\n\n\xffb"[..], "x");
        assert_eq!(lines.next_line().unwrap().as_deref(), Some("a"));
        assert_eq!(lines.next_line().unwrap().as_deref(), Some(""));
        assert_eq!(lines.next_line().unwrap().as_deref(), Some("\u{fffd}b"));
        assert_eq!(lines.number(), 3);
        assert!(lines.next_line().unwrap().is_none());
    }

    #[test]
    fn a_file_without_line_feeds_is_refused_before_it_fills_the_memory() {
        let long = vec![b'x'; LONGEST + 10];
        let mut lines = Lines::new(&long[..], "x");
        let error = lines.next_line().unwrap_err().to_string();
        assert!(error.starts_with("x:1: the line is longer"), "{error}");
    }
}
