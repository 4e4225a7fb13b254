//! Where CPython keeps the functions that run on a thread: offsets in its records, by its version.
//!
//! ```text
//! 3.11, 3.12   thread state --thread_current--> C frame --c_frame_current--> frame
//! 3.13         thread state --thread_current--> frame
//!
//! frame --previous--> frame of the caller --previous--> ... --> null
//!   |-- code         the function
//!   |-- instruction  where in it: the instruction that runs, or a unit next to it
//!   `-- owner        whether it is a Python function's, or stands for a call from C
//! ```
//!
//! A version keeps its layout from its first release on, so the second number of the version names it. The headers are
//! `cpython/pystate.h` and `internal/pycore_frame.h` of each. An unknown version has no layout here, and its functions are not read.

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
    previous: usize,
    instruction: usize,
    owner: usize,
}

const V3_11: Layout = Layout {
    thread_current: 56,
    c_frame_current: Some(8),
    code: 32,
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

const V3_13: Layout = Layout {
    thread_current: 72,
    c_frame_current: None,
    ..V3_12
};

/// A Python function that runs: addresses of its code object and in its bytecode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PythonFrame {
    pub(super) code: usize,
    pub(super) instruction: usize,
}

/// The Python functions that run on a thread, innermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PythonFrames {
    frames: [PythonFrame; FRAMES_MAX],
    count: usize,
}

impl PythonFrames {
    /// No function.
    pub(crate) const NONE: Self = Self {
        frames: [PythonFrame {
            code: 0,
            instruction: 0,
        }; FRAMES_MAX],
        count: 0,
    };

    /// The functions.
    pub(crate) fn as_slice(&self) -> &[PythonFrame] {
        &self.frames[..self.count]
    }

    /// The innermost of them.
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
    /// That of a version, of the form of `PY_VERSION_HEX`: `0x030b07f0` is 3.11.7.
    pub(super) const fn of_version(version: u64) -> Option<Self> {
        match version >> 16 {
            0x030b => Some(V3_11),
            0x030c => Some(V3_12),
            0x030d => Some(V3_13),
            _ => None,
        }
    }

    /// The functions of a thread state. `read` yields the word at an address, a multiple of eight; `None` of it ends the walk with `None`.
    #[inline(always)]
    pub(super) fn frames(
        &self,
        thread_state: usize,
        read: impl Fn(usize) -> Option<usize>,
    ) -> Option<PythonFrames> {
        let mut found = PythonFrames::NONE;
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
                    code: read(frame.wrapping_add(self.code))?,
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
    use super::{FRAMES_MAX, Layout, PythonFrame, V3_11, V3_12, V3_13};
    use std::collections::BTreeMap;

    const THREAD: usize = 0x1000;
    const C_FRAME: usize = 0x2000;

    /// Memory in which frames with these owners run, innermost first. Frame n is at 0x10000 + 0x100 * n, its code
    /// n + 1 and its instruction 100 + n.
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
            words.insert(at(number) + layout.code, number + 1);
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
        for layout in [V3_11, V3_12, V3_13] {
            assert_eq!(codes(layout, &[]), []);
            assert_eq!(codes(layout, &[0]), [1]);
            assert_eq!(codes(layout, &[0, 3, 1, 2]), [1, 3, 4], "{layout:?}");
            assert_eq!(codes(layout, &[0; 9]).len(), FRAMES_MAX);
            assert_eq!(codes(layout, &[3; 40]), [], "the walk has an end");
        }
        let words = memory(V3_13, &[0]);
        let found = V3_13.frames(THREAD, |address| words.get(&address).copied());
        let frame = PythonFrame {
            code: 1,
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
        assert_eq!(Layout::of_version(0x030b_07f0), Some(V3_11));
        assert_eq!(Layout::of_version(0x030c_00a1), Some(V3_12));
        assert_eq!(Layout::of_version(0x030d_02f0), Some(V3_13));
        for version in [0, 0x030a_0df0, 0x030e_00f0, 0x0312_00f0, 0x0207_12f0] {
            assert_eq!(Layout::of_version(version), None, "{version:#x}");
        }
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
