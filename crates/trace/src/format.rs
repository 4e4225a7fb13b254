//! [`Format`] lists the formats that the readers support, and detects the format of a file by its beginning.

use crate::{damo_record, damon_trace, memprof, perf_data, perf_script, text};

isotherm_model::variant_words! {
    /// A format of a recording tool.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Format {
        /// Plain text or CSV with a header.
        Text = "text",
        /// Output of `perf script` for samples with data addresses.
        PerfScript = "perf-script",
        /// A `perf.data` file with data addresses.
        PerfData = "perf-data",
        /// The tracepoint `damon:damon_aggregated` as text.
        DamonTrace = "damon-trace",
        /// Output of `damo record`.
        DamoRecord = "damo-record",
        /// Output of `llvm-profdata show --memory`.
        MemProf = "memprof",
        /// Output of a program built with clang's `-fmemory-profile`.
        MemProfRaw = "memprof-raw",
    }
}

/// Bytes at the start of a file from which its format is detected.
pub const HEAD: usize = 1 << 16;
/// Lines that detection reads: comments and callers may come before the first sample.
const LINES: usize = 200;

impl Format {
    /// True if the format holds single accesses; otherwise it holds sums, a profile.
    #[must_use]
    pub const fn has_single_accesses(self) -> bool {
        matches!(self, Self::Text | Self::PerfScript | Self::PerfData)
    }

    /// The format of a file that begins with these bytes ([`HEAD`] of them suffice); `None` if it
    /// is none of them.
    #[must_use]
    pub fn guess(head: &[u8]) -> Option<Self> {
        if head.starts_with(perf_data::MAGIC) || head.starts_with(b"2ELIFREP") {
            return Some(Self::PerfData);
        }
        if head.starts_with(memprof::raw::MAGIC) {
            return Some(Self::MemProfRaw);
        }
        if damo_record::is_zlib(head) {
            return Some(Self::DamoRecord);
        }
        let text = String::from_utf8_lossy(&head[..head.len().min(HEAD)]);
        if text.trim_start().starts_with(['[', '{']) && text.contains("\"snapshots\"") {
            return Some(Self::DamoRecord);
        }
        text.lines().take(LINES).find_map(of_line)
    }
}

/// The format of a line, for lines that identify one.
fn of_line(line: &str) -> Option<Format> {
    if damon_trace::is_event(line) {
        Some(Format::DamonTrace)
    } else if perf_script::is_sample(line) {
        Some(Format::PerfScript)
    } else if text::is_header(line) {
        Some(Format::Text)
    } else if memprof::is_heading(line) {
        Some(Format::MemProf)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Format;

    #[test]
    fn formats_are_told_by_their_content_and_nothing_else_is_taken_for_one() {
        let guess = |text: &str| Format::guess(text.as_bytes());
        for (text, format) in [
            ("# a comment\n\ntime_us,address\n", Format::Text),
            ("time_ns address_hex access\n", Format::Text),
            ("app 7/8 [001] 3.5: page-faults: 7ff0\n", Format::PerfScript),
            ("PERFILE2....", Format::PerfData),
            (
                "k 1 [000] 1.5: damon:damon_aggregated: target_id=1 nr_regions=1 0-4096: 0",
                Format::DamonTrace,
            ),
            (" [ { \"snapshots\": [", Format::DamoRecord),
            ("x\u{1}", Format::DamoRecord),
            ("---\nHeapProfileRecords:\n", Format::MemProf),
            ("MemprofProfile:\n  Summary:\n", Format::MemProf),
        ] {
            assert_eq!(guess(text), Some(format), "{text}");
        }
        for text in [
            "",
            "hello\nworld\n",
            "[1, 2]",
            "time,address\n",
            "\u{7f}ELF",
        ] {
            assert_eq!(guess(text), None, "{text}");
        }
    }

    #[test]
    fn words_are_read_back() {
        for format in Format::ALL {
            assert_eq!(Format::from_word(format.word()), Some(format));
        }
        assert_eq!(Format::from_word("csv"), None);
    }
}
