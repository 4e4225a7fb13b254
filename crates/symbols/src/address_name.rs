//! The names of one address of a module, as the resolver finds them and the cache keeps them.

use isotherm_model::site::Frame;

/// Function, position in the source and assigned variable of one address; `None` for an unknown part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AddressName {
    pub(crate) function: Option<String>,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    pub(crate) column: Option<u32>,
    pub(crate) function_line: Option<u32>,
    pub(crate) variable: Option<String>,
}

impl AddressName {
    /// Names a frame.
    pub(crate) fn give_to(&self, frame: &mut Frame) {
        frame.function.clone_from(&self.function);
        frame.file.clone_from(&self.file);
        frame.line = self.line;
        frame.column = self.column;
        frame.function_line = self.function_line;
        frame.variable.clone_from(&self.variable);
    }
}
