//! `Fields` reads the numbers of one perf record front to back, and for a record that is not a sample its thread, time and processor from
//! the end ([`RecordOrigin`]). The byte order is this machine's; records of a `perf.data` file from another machine must have the same.

/// The bytes of a record that were not read yet. Every step returns `None` where too few are left.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    pub(super) bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn word(&mut self) -> Option<u32> {
        let (head, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(u32::from_ne_bytes(*head))
    }

    pub(super) fn long(&mut self) -> Option<u64> {
        let (head, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(u64::from_ne_bytes(*head))
    }

    pub(super) fn skip(&mut self, bytes: u64) -> Option<()> {
        self.bytes = self.bytes.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    pub(super) fn skip_longs(&mut self, longs: u64) -> Option<()> {
        self.skip(longs.checked_mul(8)?)
    }

    /// The identification that `sample_id_all` puts at the end of every record that is not a sample: (pid,
    /// tid), time, (cpu, nothing), 8 bytes each.
    pub(super) fn origin(&self) -> Option<RecordOrigin> {
        const TRAILER: usize = 24;
        let mut trailer = Self {
            bytes: &self.bytes[self.bytes.len().saturating_sub(TRAILER)..],
        };
        Some(RecordOrigin {
            pid: trailer.word()?,
            tid: trailer.word()?,
            time_ns: trailer.long()?,
            cpu: trailer.word()?,
        })
    }

    pub(super) fn trailing_time(&self) -> u64 {
        self.origin().map_or(0, |origin| origin.time_ns)
    }

    pub(super) fn text(&self) -> &'a [u8] {
        let end = self.bytes.iter().position(|byte| *byte == 0);
        &self.bytes[..end.unwrap_or(self.bytes.len())]
    }
}

/// The thread, time and processor of a record that is not a sample; a number that was not recorded is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordOrigin {
    /// Number of the process.
    pub pid: u32,
    /// Number of the thread.
    pub tid: u32,
    /// Time, `CLOCK_MONOTONIC`, nanoseconds.
    pub time_ns: u64,
    /// Number of the processor.
    pub cpu: u32,
}
