//! [`Interpreter`] finds the CPython of this process, checks that its records are as its version promises, and reads the functions that the
//! calling thread runs: the frames from memory ([`super::layout`]), the text of names and the lines by functions that CPython exports.
//! Reading neither allocates nor needs the interpreter's lock.
//!
//! The offsets in a code object come from the type's own table of attributes (`tp_members`), so that of all records only those of
//! [`super::layout`] depend on the version.

use core::ffi::{CStr, c_char, c_int, c_void};

use super::careful_word::careful_word;
use super::layout::{Layout, PythonFrame, PythonFrames};
use crate::next_symbol::function;

/// Most characters of a path; a longer one loses its beginning.
const FILE_CHARS: usize = 256;
/// Most characters of a qualified name; a longer one loses its beginning.
const FUNCTION_CHARS: usize = 64;
/// Bytes of a character in UTF-8.
const CHAR_BYTES: usize = 4;

/// Offsets in an object: its type, and the length of one of variable size.
const OBJECT_TYPE: usize = 8;
const OBJECT_LENGTH: usize = 16;
/// Offsets in a type (`cpython/object.h`): its name, the size of its objects without their variable part, and its attributes.
const TYPE_NAME: usize = 24;
const TYPE_BASIC_SIZE: usize = 32;
const TYPE_MEMBERS: usize = 240;
/// Bytes of an instruction.
const UNIT_BYTES: usize = 2;
/// More attributes than a code object has.
const MEMBERS_MAX: usize = 64;

/// CPython's description of an attribute (`PyMemberDef`).
#[repr(C)]
#[allow(dead_code, reason = "the layout is CPython's")]
struct Member {
    name: *const c_char,
    kind: c_int,
    offset: isize,
    flags: c_int,
    text: *const c_char,
}

/// Offsets in a code object.
#[derive(Clone, Copy, Debug)]
struct CodeLayout {
    file: usize,
    function: usize,
    first_line: usize,
    bytecode: usize,
}

#[derive(Debug)]
pub(super) struct Interpreter {
    pub(super) layout: Layout,
    code: CodeLayout,
    code_type: usize,
    text_type: usize,
    /// `Py_IsInitialized`: 0 before the interpreter works, and from the moment in which it begins to end.
    is_initialized: unsafe extern "C" fn() -> c_int,
    /// `PyGILState_GetThisThreadState`: null for a thread that never ran Python.
    thread_state: unsafe extern "C" fn() -> *mut c_void,
    /// `PyCode_Addr2Line`: -1 for code without a line.
    line: unsafe extern "C" fn(*mut c_void, c_int) -> c_int,
    /// `PyUnicode_GetLength`.
    char_count: unsafe extern "C" fn(*mut c_void) -> isize,
    /// `PyUnicode_ReadChar`.
    character: unsafe extern "C" fn(*mut c_void, isize) -> u32,
    /// Address of the loop that runs Python.
    pub(super) eval_loop: usize,
}

/// A text in UTF-8.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<const BYTES: usize> {
    bytes: [u8; BYTES],
    length: usize,
}

impl<const BYTES: usize> Text<BYTES> {
    const EMPTY: Self = Self {
        bytes: [0; BYTES],
        length: 0,
    };

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Appends a character, if there is room.
    fn push(&mut self, character: char) {
        if let Some(room) = self.bytes.get_mut(self.length..self.length + CHAR_BYTES) {
            self.length += character.encode_utf8(room).len();
        }
    }
}

/// The names of a frame's function, and the line at which the frame is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) file: Text<{ FILE_CHARS * CHAR_BYTES }>,
    pub(super) function: Text<{ FUNCTION_CHARS * CHAR_BYTES }>,
    pub(super) first_line: u32,
    pub(super) line: u32,
}

/// The symbol of this name in the program and its libraries; 0 if there is none.
fn symbol(name: &CStr) -> usize {
    // SAFETY: the name ends in NUL.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    found.expose_provenance()
}

/// A word of the interpreter's.
///
/// # Safety
/// The address is that of an aligned word that is mapped.
#[inline(always)]
unsafe fn word(address: usize) -> usize {
    // SAFETY: the caller's promise; another thread may write it.
    unsafe { core::ptr::with_exposed_provenance::<usize>(address).read_volatile() }
}

impl Interpreter {
    /// The interpreter that the program contains or was linked with; `None` without one, or where its frames are in a layout that is
    /// not known.
    pub(super) fn find() -> Option<Self> {
        let version = symbol(c"Py_Version");
        if version == 0 {
            return None;
        }
        // SAFETY: CPython has a number of this size there.
        let version = unsafe { word(version) } as u64;
        let layout = Layout::of_version(version, symbol(c"_PyRuntime"), careful_word)?;
        let code_type = symbol(c"PyCode_Type");
        if !is_code_type(code_type) {
            return None;
        }
        // SAFETY: it is CPython's type of code objects, whose layout was just checked, and each function has the type that CPython
        // documents under its name.
        unsafe {
            Some(Self {
                layout,
                code: CodeLayout::of_type(code_type)?,
                code_type,
                text_type: symbol(c"PyUnicode_Type"),
                is_initialized: function(c"Py_IsInitialized")?,
                thread_state: function(c"PyGILState_GetThisThreadState")?,
                line: function(c"PyCode_Addr2Line")?,
                char_count: function(c"PyUnicode_GetLength")?,
                character: function(c"PyUnicode_ReadChar")?,
                eval_loop: symbol(c"_PyEval_EvalFrameDefault"),
            })
        }
    }

    /// The state of this thread; 0 where it runs no Python, and while the interpreter begins or ends: the states of threads that never
    /// end are freed then.
    #[inline(always)]
    pub(super) fn thread_state(&self) -> usize {
        // SAFETY: both functions may be called at any time, by any thread; the second answers null before the interpreter works.
        unsafe {
            match (self.is_initialized)() {
                0 => 0,
                _ => (self.thread_state)().expose_provenance(),
            }
        }
    }

    /// The functions that run on this thread.
    ///
    /// # Safety
    /// [`Self::agrees`] was true once.
    #[inline(always)]
    pub(super) unsafe fn frames(&self) -> PythonFrames {
        let state = self.thread_state();
        if state == 0 {
            return PythonFrames::default();
        }
        // SAFETY: the layout is the interpreter's, and only this thread changes what its state refers to.
        let found = self.layout.frames(state, |at| Some(unsafe { word(at) }));
        found.unwrap_or_default()
    }

    /// Whether the frames of a thread are what the layout says, by reads that cannot fault. `None` where no function runs.
    pub(super) fn agrees(
        &self,
        state: usize,
        read: impl Fn(usize) -> Option<usize>,
    ) -> Option<bool> {
        let Some(frames) = self.layout.frames(state, &read) else {
            return Some(false);
        };
        let is_code = |frame: &PythonFrame| {
            let is_of = |object: usize, kind| read(object.wrapping_add(OBJECT_TYPE)) == Some(kind);
            let text_at = |offset| {
                let text = read(frame.code.wrapping_add(offset));
                text.is_some_and(|text| text.is_multiple_of(8) && is_of(text, self.text_type))
            };
            let is_aligned = frame.code != 0 && frame.code.is_multiple_of(8);
            is_aligned
                && is_of(frame.code, self.code_type)
                && text_at(self.code.file)
                && text_at(self.code.function)
        };
        let frames = frames.as_slice();
        (!frames.is_empty()).then(|| frames.iter().all(is_code))
    }

    /// The names and the line of a frame that runs on this thread. Empty where its code is no code object.
    pub(super) fn place(&self, frame: PythonFrame) -> Place {
        let mut place = Place {
            file: Text::EMPTY,
            function: Text::EMPTY,
            first_line: 0,
            line: 0,
        };
        // SAFETY: a frame that runs keeps its code alive, and a code object its names, which never change.
        unsafe {
            if frame.code == 0 || word(frame.code + OBJECT_TYPE) != self.code_type {
                return place;
            }
            let first_line = frame.code + self.code.first_line;
            let first_line = core::ptr::with_exposed_provenance::<c_int>(first_line);
            place.first_line = first_line.read_volatile().max(0) as u32;
            place.line = self.line_of(frame).unwrap_or(place.first_line);
            self.read_text(word(frame.code + self.code.file), &mut place.file);
            self.read_text(word(frame.code + self.code.function), &mut place.function);
        }
        place
    }

    /// The line of a frame; `None` before its first instruction, and where the compiler gave none.
    ///
    /// # Safety
    /// The frame's code is a live code object.
    unsafe fn line_of(&self, frame: PythonFrame) -> Option<u32> {
        // SAFETY: the caller's promise.
        let units = unsafe { word(frame.code + OBJECT_LENGTH) };
        let start = frame.code + self.code.bytecode;
        let offset = frame.instruction.checked_sub(start)?;
        if offset >= units.checked_mul(UNIT_BYTES)? {
            return None;
        }
        let code = core::ptr::with_exposed_provenance_mut::<c_void>(frame.code);
        // SAFETY: the offset is within the bytecode of this code object; the function reads its table of lines.
        let line = unsafe { (self.line)(code, c_int::try_from(offset).ok()?) };
        u32::try_from(line).ok()
    }

    /// Reads a text object; of one that is too long, the end.
    ///
    /// # Safety
    /// The object is 0 or alive.
    unsafe fn read_text<const BYTES: usize>(&self, object: usize, text: &mut Text<BYTES>) {
        // SAFETY: the caller's promise. Both functions only read a text, and the numbers of its characters are less than their count.
        unsafe {
            if object == 0 || word(object + OBJECT_TYPE) != self.text_type {
                return;
            }
            let object = core::ptr::with_exposed_provenance_mut::<c_void>(object);
            let count = (self.char_count)(object);
            let most = (BYTES / CHAR_BYTES) as isize;
            for number in (count - most).max(0)..count {
                let character = char::from_u32((self.character)(object, number));
                text.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
    }
}

/// Whether the type of code objects is where the version has it: builds that trace references have longer objects.
fn is_code_type(address: usize) -> bool {
    let name = careful_word(address.wrapping_add(TYPE_NAME)).and_then(careful_word);
    name.is_some_and(|name| name.to_ne_bytes().starts_with(b"code\0"))
}

impl CodeLayout {
    /// Reads the attributes of the type of code objects.
    ///
    /// # Safety
    /// `code_type` is the address of that type.
    unsafe fn of_type(code_type: usize) -> Option<Self> {
        // SAFETY: the type's table of attributes ends at one without a name.
        let members = unsafe { word(code_type + TYPE_MEMBERS) };
        let first = core::ptr::with_exposed_provenance::<Member>(members);
        let offset = |wanted: &CStr| {
            if first.is_null() {
                return None;
            }
            for number in 0..MEMBERS_MAX {
                // SAFETY: as above, so the attribute and its name are there.
                unsafe {
                    let member = &*first.add(number);
                    if member.name.is_null() {
                        return None;
                    }
                    if CStr::from_ptr(member.name) == wanted {
                        return usize::try_from(member.offset).ok();
                    }
                }
            }
            None
        };
        Some(Self {
            file: offset(c"co_filename")?,
            function: offset(c"co_qualname")?,
            first_line: offset(c"co_firstlineno")?,
            // SAFETY: as above.
            bytecode: unsafe { word(code_type + TYPE_BASIC_SIZE) },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Interpreter, Text};

    #[test]
    fn a_program_without_an_interpreter_has_none() {
        assert!(Interpreter::find().is_none());
    }

    #[test]
    fn a_text_never_ends_within_a_character() {
        let mut text = Text::<8>::EMPTY;
        for character in "aß€x".chars() {
            text.push(character);
        }
        assert_eq!(text.as_slice(), "aß€".as_bytes());
    }
}
