//! The names of one address of a module, as the resolver finds them and the cache keeps them.

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
