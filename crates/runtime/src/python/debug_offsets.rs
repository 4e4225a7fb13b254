//! [`DebugOffsets`] reads and checks the offsets of threads and frames that CPython publishes since 3.13 (`_Py_DebugOffsets`).
//!
//! A table of 64-bit words (`internal/pycore_debug_offsets.h`; in 3.13 `internal/pycore_runtime.h`):
//!
//! ```text
//! word     0        1        2              3..        6..                 | next        | next
//! holds    cookie   version  free_threaded  runtime    interpreter state   | thread      | frame
//!                                                      13 words in 3.13,   | size, prev, | size, previous, executable,
//!                                                      16 in 3.14          | next,interp,| instr_ptr, localsplus, owner
//!                                                                          | current_frame, ... (9 words)
//! ```
//!
//! A builder may change the records of an interpreter, and a later version has another table. So a table is used only where the cookie and
//! the version are the expected ones and each offset is within the record that it belongs to.

/// The first word: the text that marks a table.
const COOKIE: usize = usize::from_ne_bytes(*b"xdebugpy");

/// More bytes than a thread state or a frame without its local variables has: 304 and 80 in 3.13.
const RECORD_BYTES_MAX: usize = 1 << 14;

/// Bytes of a word.
const WORD: usize = 8;

/// Numbers of the words that differ between versions.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableShape {
    /// Where the offsets of a thread state begin.
    thread: usize,
    /// Where the offsets of a frame begin.
    frame: usize,
}

/// The table of 3.13.
pub(super) const V3_13: TableShape = TableShape {
    thread: 19,
    frame: 28,
};

/// The table of 3.14.
pub(super) const V3_14: TableShape = TableShape {
    thread: 22,
    frame: 31,
};

/// Offsets in bytes, each within its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DebugOffsets {
    /// In a thread state: the innermost frame.
    pub(super) current_frame: usize,
    /// In a frame: the caller's frame.
    pub(super) previous: usize,
    /// In a frame: the code object.
    pub(super) executable: usize,
    /// In a frame: the instruction that runs.
    pub(super) instruction: usize,
    /// In a frame: its kind, one byte.
    pub(super) owner: usize,
}

impl DebugOffsets {
    /// The offsets of the interpreter whose `_PyRuntime` is at an address. `read` yields the word at an address, `None` where none can be
    /// read.
    ///
    /// `None` where the table is not that of the version, the interpreter runs threads in parallel (its records are others), or an offset
    /// is outside its record.
    pub(super) fn read(
        runtime: usize,
        version: u64,
        shape: TableShape,
        read: impl Fn(usize) -> Option<usize>,
    ) -> Option<Self> {
        let word = |number: usize| read(runtime.wrapping_add(number * WORD));
        let is_table = word(0)? == COOKIE && word(1)? as u64 == version;
        let is_free_threaded = word(2)? != 0;
        if !is_table || is_free_threaded {
            return None;
        }
        let thread_bytes = word(shape.thread)?;
        let frame_bytes = word(shape.frame)?;
        let in_frame = |number| within(word(shape.frame + number)?, frame_bytes);
        Some(Self {
            current_frame: within(word(shape.thread + 4)?, thread_bytes)?,
            previous: in_frame(1)?,
            executable: in_frame(2)?,
            instruction: in_frame(3)?,
            owner: word(shape.frame + 5).filter(|owner| *owner < frame_bytes)?,
        })
    }
}

/// An offset of a word, if the word is within a record of these bytes.
fn within(offset: usize, bytes: usize) -> Option<usize> {
    let fits = offset.is_multiple_of(WORD) && offset < bytes && bytes <= RECORD_BYTES_MAX;
    fits.then_some(offset)
}

#[cfg(test)]
pub(super) mod tests {
    use super::{DebugOffsets, TableShape, V3_13, V3_14, WORD};

    const RUNTIME: usize = 0x7000;

    /// The first words of `_PyRuntime` of CPython 3.13.0.
    pub(in super::super) const RECORDED_3_13: [usize; 34] = [
        0x7970_6775_6265_6478,
        0x030d_00f0,
        0,
        283_320,
        608,
        632,
        194_968,
        7272,
        7264,
        7344,
        7400,
        7656,
        7640,
        7648,
        16,
        7752,
        0,
        7768,
        7760,
        304,
        0,
        8,
        16,
        72,
        152,
        160,
        232,
        32,
        80,
        8,
        0,
        56,
        72,
        70,
    ];

    /// The first words of `_PyRuntime` of CPython 3.14.10.
    pub(in super::super) const RECORDED_3_14: [usize; 37] = [
        0x7970_6775_6265_6478,
        0x030e_0af0,
        0,
        316_616,
        784,
        808,
        225_864,
        7280,
        7272,
        7344,
        7360,
        7408,
        7688,
        7672,
        7680,
        16,
        7784,
        0,
        7800,
        7792,
        7992,
        0,
        832,
        0,
        8,
        16,
        72,
        152,
        160,
        232,
        32,
        88,
        8,
        0,
        56,
        80,
        74,
    ];

    fn read(table: &[usize], version: u64, shape: TableShape) -> Option<DebugOffsets> {
        let word = |address: usize| table.get((address - RUNTIME) / WORD).copied();
        DebugOffsets::read(RUNTIME, version, shape, word)
    }

    #[test]
    fn the_offsets_of_an_interpreter_are_read() {
        let expected = DebugOffsets {
            current_frame: 72,
            previous: 8,
            executable: 0,
            instruction: 56,
            owner: 70,
        };
        assert_eq!(read(&RECORDED_3_13, 0x030d_00f0, V3_13), Some(expected));
        let expected = DebugOffsets {
            owner: 74,
            ..expected
        };
        assert_eq!(read(&RECORDED_3_14, 0x030e_0af0, V3_14), Some(expected));
    }

    #[test]
    fn a_table_of_another_version_or_kind_is_refused() {
        assert_eq!(read(&RECORDED_3_13, 0x030d_01f0, V3_13), None);
        let changed = |number: usize, value: usize| {
            let mut table = RECORDED_3_13;
            table[number] = value;
            read(&table, 0x030d_00f0, V3_13)
        };
        assert_eq!(changed(0, 0x7970_6775_6265_6479), None, "another cookie");
        assert_eq!(changed(2, 1), None, "free-threaded");
        assert_eq!(
            read(&RECORDED_3_13, 0x030d_00f0, V3_14),
            None,
            "its end is missing"
        );
    }

    #[test]
    fn an_offset_outside_its_record_is_refused() {
        let words = [("current frame", 23), ("previous", 29), ("executable", 30)];
        for (name, number) in words
            .into_iter()
            .chain([("instruction", 31), ("owner", 33)])
        {
            for value in [80 + 304, usize::MAX - 7] {
                let mut table = RECORDED_3_13;
                table[number] = value;
                assert_eq!(read(&table, 0x030d_00f0, V3_13), None, "{name} at {value}");
            }
        }
        let mut odd = RECORDED_3_13;
        odd[29] = 9;
        assert_eq!(read(&odd, 0x030d_00f0, V3_13), None, "not a word's offset");
        let mut huge = RECORDED_3_13;
        huge[28] = usize::MAX;
        assert_eq!(
            read(&huge, 0x030d_00f0, V3_13),
            None,
            "no frame is that large"
        );
    }
}
