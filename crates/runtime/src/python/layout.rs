//! [`Layout`] has the offsets in CPython's thread state and frames, by version (of 3.11 and 3.12 as constants, later ones from the
//! interpreter's own table), and reads with them the innermost Python functions that run on a thread ([`PythonFrames`]), for calling
//! contexts.
//!
//! ```text
//! 3.11, 3.12   thread state --thread_current--> C frame --c_frame_current--> frame
//! 3.13, 3.14   thread state --thread_current--> frame
//!
//! frame --previous--> frame of the caller --previous--> ... --> null
//!   |-- code         the function
//!   |-- instruction  where in it: the instruction that runs, or a unit next to it
//!   `-- owner        whether it is a Python function's, or stands for a call from C
//! ```
//!
//! 3.11 and 3.12 keep their layout from the first release on, so the second number of the version names it. The headers are
//! `cpython/pystate.h` and `internal/pycore_frame.h` of each. Later versions publish their offsets ([`super::debug_offsets`]).
//! From 3.14 on the reference to the code carries bits of the reference's kind (`internal/pycore_stackref.h`). An unknown
//! version has no layout here, and its functions are not read.

use super::debug_offsets::{self, DebugOffsets};

/// Most Python functions of a calling context.
const FRAMES_MAX: usize = 4;

/// Most frames that are looked at: between functions there may be some that stand for calls from C.
const LOOKED_AT_MAX: usize = 16;

/// The owner of the first kind of frame that stands for a call from C.
const OWNED_BY_C: usize = 3;

/// Offsets in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    thread_current: usize,
    c_frame_current: Option<usize>,
    code: usize,
    /// Bits of the reference to the code that are not part of its address.
    code_tag: usize,
    previous: usize,
    instruction: usize,
    owner: usize,
}

const V3_11: Layout = Layout {
    thread_current: 56,
    c_frame_current: Some(8),
    code: 32,
    code_tag: 0,
    previous: 48,
    instruction: 56,
    owner: 69,
};

const V3_12: Layout = Layout {
    c_frame_current: Some(0),
    code: 0,
    previous: 8,
    owner: 70,
    ..V3_11
};

/// `Py_TAG_BITS` of 3.14.
const STACK_REFERENCE_TAG: usize = 3;

/// A Python function that runs: addresses of its code object and in its bytecode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PythonFrame {
    pub(super) code: usize,
    pub(super) instruction: usize,
}

/// The Python functions that run on a thread, innermost first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PythonFrames {
    frames: [PythonFrame; FRAMES_MAX],
    count: usize,
}

impl PythonFrames {
    /// The functions.
    pub(crate) fn as_slice(&self) -> &[PythonFrame] {
        &self.frames[..self.count]
    }

    /// The innermost functions, at most `wanted`.
    pub(super) fn innermost(self, wanted: usize) -> Self {
        Self {
            count: self.count.min(wanted),
            ..self
        }
    }

    fn push(&mut self, frame: PythonFrame) {
        if let Some(slot) = self.frames.get_mut(self.count) {
            *slot = frame;
            self.count += 1;
        }
    }
}

impl Layout {
    /// The layout of an interpreter of this version, in the form of `PY_VERSION_HEX` (`0x030b07f0` is 3.11.7), whose `_PyRuntime` is at
    /// `runtime`. `read` yields the word at an address. `None` where the version is unknown or its offsets are not as promised.
    pub(super) fn of_version(
        version: u64,
        runtime: usize,
        read: impl Fn(usize) -> Option<usize>,
    ) -> Option<Self> {
        let published = |shape| DebugOffsets::read(runtime, version, shape, read);
        match version >> 16 {
            0x030b => Some(V3_11),
            0x030c => Some(V3_12),
            0x030d => Some(Self::published(published(debug_offsets::V3_13)?, 0)),
            0x030e => {
                let offsets = published(debug_offsets::V3_14)?;
                Some(Self::published(offsets, STACK_REFERENCE_TAG))
            }
            _ => None,
        }
    }

    const fn published(offsets: DebugOffsets, code_tag: usize) -> Self {
        Self {
            thread_current: offsets.current_frame,
            c_frame_current: None,
            code: offsets.executable,
            code_tag,
            previous: offsets.previous,
            instruction: offsets.instruction,
            owner: offsets.owner,
        }
    }

    /// The functions of a thread state. `read` yields the word at an address, a multiple of eight; where it yields `None`, so does this.
    #[inline(always)]
    pub(super) fn frames(
        &self,
        thread_state: usize,
        read: impl Fn(usize) -> Option<usize>,
    ) -> Option<PythonFrames> {
        let mut found = PythonFrames::default();
        let mut frame = read(thread_state.wrapping_add(self.thread_current))?;
        if let Some(current) = self.c_frame_current
            && frame != 0
        {
            frame = read(frame.wrapping_add(current))?;
        }
        for _ in 0..LOOKED_AT_MAX {
            if frame == 0 || found.count == FRAMES_MAX {
                break;
            }
            let around = read(frame.wrapping_add(self.owner & !7))?;
            let owner = around >> (self.owner % 8 * 8);
            if owner & 0xff < OWNED_BY_C {
                found.push(PythonFrame {
                    code: read(frame.wrapping_add(self.code))? & !self.code_tag,
                    instruction: read(frame.wrapping_add(self.instruction))?,
                });
            }
            frame = read(frame.wrapping_add(self.previous))?;
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::debug_offsets::tests::{RECORDED_3_13, RECORDED_3_14};
    use super::{FRAMES_MAX, Layout, PythonFrame, V3_11, V3_12};
    use std::collections::BTreeMap;

    const THREAD: usize = 0x1000;
    const C_FRAME: usize = 0x2000;
    const RUNTIME: usize = 0x7000;

    /// The layout of the interpreter that publishes this table.
    fn published(table: &[usize], version: u64) -> Option<Layout> {
        Layout::of_version(version, RUNTIME, |address| {
            table.get((address - RUNTIME) / 8).copied()
        })
    }

    fn v3_13() -> Layout {
        published(&RECORDED_3_13, 0x030d_00f0).expect("recorded")
    }

    fn v3_14() -> Layout {
        published(&RECORDED_3_14, 0x030e_0af0).expect("recorded")
    }

    /// Memory in which frames with these owners run, innermost first. Frame n is at 0x10000 + 0x100 * n, its code
    /// 8 * (n + 1) and its instruction 100 + n.
    fn memory(layout: Layout, owners: &[usize]) -> BTreeMap<usize, usize> {
        let at = |number: usize| 0x10000 + 0x100 * number;
        let mut words = BTreeMap::new();
        let first = if owners.is_empty() { 0 } else { at(0) };
        match layout.c_frame_current {
            Some(offset) => {
                words.insert(THREAD + layout.thread_current, C_FRAME);
                words.insert(C_FRAME + offset, first);
            }
            None => {
                words.insert(THREAD + layout.thread_current, first);
            }
        }
        for (number, owner) in owners.iter().enumerate() {
            let is_last = number + 1 == owners.len();
            let next = if is_last { 0 } else { at(number + 1) };
            words.insert(at(number) + layout.code, 8 * (number + 1));
            words.insert(at(number) + layout.instruction, 100 + number);
            words.insert(at(number) + layout.previous, next);
            // The bytes beside the owner hold something else.
            let shift = layout.owner % 8 * 8;
            let word = (usize::MAX & !(0xff << shift)) | (owner << shift);
            words.insert(at(number) + (layout.owner & !7), word);
        }
        words
    }

    fn codes(layout: Layout, owners: &[usize]) -> Vec<usize> {
        let words = memory(layout, owners);
        let found = layout.frames(THREAD, |address| words.get(&address).copied());
        let found = found.expect("every word is there");
        found.as_slice().iter().map(|frame| frame.code).collect()
    }

    #[test]
    fn functions_come_innermost_first_and_calls_from_c_are_left_out() {
        for layout in [V3_11, V3_12, v3_13(), v3_14()] {
            assert_eq!(codes(layout, &[]), []);
            assert_eq!(codes(layout, &[0]), [8]);
            assert_eq!(codes(layout, &[0, 3, 1, 4, 2]), [8, 24, 40], "{layout:?}");
            assert_eq!(codes(layout, &[0; 9]).len(), FRAMES_MAX);
            assert_eq!(codes(layout, &[3; 40]), [], "the walk has an end");
        }
        let words = memory(v3_13(), &[0]);
        let found = v3_13().frames(THREAD, |address| words.get(&address).copied());
        let frame = PythonFrame {
            code: 8,
            instruction: 100,
        };
        assert_eq!(
            found.map(|found| found.as_slice().to_vec()),
            Some(vec![frame])
        );
    }

    #[test]
    fn a_word_that_cannot_be_read_ends_the_walk() {
        let words = memory(V3_12, &[0, 0]);
        for missing in words.keys() {
            let read =
                |address: usize| words.get(&address).copied().filter(|_| address != *missing);
            assert_eq!(V3_12.frames(THREAD, read), None, "{missing:#x}");
        }
    }

    #[test]
    fn a_layout_holds_for_all_releases_of_a_version_and_no_other() {
        let without_table = |version| Layout::of_version(version, 0, |_| None);
        assert_eq!(without_table(0x030b_07f0), Some(V3_11));
        assert_eq!(without_table(0x030c_00a1), Some(V3_12));
        assert_eq!(published(&RECORDED_3_14, 0x030e_01f0), None);
        for version in [0, 0x030a_0df0, 0x030f_00f0, 0x0312_00f0, 0x0207_12f0] {
            let mut table = RECORDED_3_14;
            table[1] = version;
            assert_eq!(published(&table, version as u64), None, "{version:#x}");
        }
    }

    #[test]
    fn a_version_that_publishes_its_offsets_has_no_others() {
        assert_eq!(Layout::of_version(0x030d_00f0, 0, |_| None), None);
        let mut moved = RECORDED_3_13;
        // A builder has put a word in front of the innermost frame.
        moved[23] += 8;
        let layout = published(&moved, 0x030d_00f0).expect("a table");
        assert_eq!(layout.thread_current, v3_13().thread_current + 8);
    }

    #[test]
    fn bits_of_a_reference_are_no_part_of_the_address() {
        let mut words = memory(v3_14(), &[0]);
        words.insert(0x10000 + v3_14().code, 0x5000 | 1);
        let found = v3_14().frames(THREAD, |address| words.get(&address).copied());
        let found = found.expect("every word is there");
        assert_eq!(found.as_slice()[0].code, 0x5000);
    }

    #[test]
    fn the_innermost_are_kept() {
        let words = memory(V3_11, &[0; 4]);
        let all = V3_11.frames(THREAD, |address| words.get(&address).copied());
        let all = all.expect("every word is there");
        for wanted in 0..6 {
            let kept = all.innermost(wanted);
            assert_eq!(kept.as_slice(), &all.as_slice()[..wanted.min(4)]);
        }
    }
}
