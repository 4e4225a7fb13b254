//! [`TextArea`] holds the text of a session file (paths of modules, Python functions) and decodes the functions. The runtime only appends.

use std::os::unix::fs::FileExt;

use isotherm_abi::python_code::PythonCode;
use isotherm_model::site::Frame;

use crate::error::SessionError;
use crate::file::SessionFile;
use crate::header::Progress;

/// Most bytes that are read: a few times what the runtime has room for. A sparse file may claim more.
const BYTES_MAX: u64 = 16 << 20;

/// The bytes of a text area that were read so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextArea(Vec<u8>);

impl TextArea {
    /// The frame of a Python function: its file stands for the module. Without names where the text is missing.
    #[must_use]
    pub(crate) fn python_frame(&self, place: u32, offset: u64) -> Frame {
        let Some(code) = PythonCode::read(&self.0, place) else {
            return Frame {
                offset,
                ..Frame::default()
            };
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let file = text(code.file);
        Frame {
            module: file.as_str().into(),
            offset,
            function: Some(text(code.function)),
            file: Some(file),
            line: Some(code.line(offset)),
            function_line: Some(code.first_line),
            ..Frame::default()
        }
    }
}

impl SessionFile {
    /// Reads the text that `known` lacks and adds it.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn read_text_area(
        &self,
        progress: &Progress,
        known: &mut TextArea,
    ) -> Result<(), SessionError> {
        let from = known.0.len();
        let new = progress.text.min(BYTES_MAX).saturating_sub(from as u64);
        let mut bytes = vec![0; new as usize];
        let start = self.header.text.offset + from as u64;
        self.file.read_exact_at(&mut bytes, start)?;
        known.0.append(&mut bytes);
        Ok(())
    }
}
