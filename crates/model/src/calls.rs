//! [`FunctionCalls`] lists the calls in one function, each [`Call`] with its line, callee and variable: by them the sites of one build of a
//! program are matched to those of another build. [`MatchedBy`] names the method of such a match.

use std::collections::BTreeMap;

use crate::site::Frame;

/// The function that a call calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Callee {
    /// A function that allocates: `malloc`, `operator new` and similar.
    Allocation,
    /// The function with this name.
    Function(String),
    /// The target of a pointer, or an unknown target.
    #[default]
    Unknown,
}

/// A call in the machine code of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Return address as an ELF virtual address of the module; for a site that the compiler named,
    /// the address of its record.
    pub offset: u64,
    /// Line in the function's file; `None` without debugging information.
    pub line: Option<u32>,
    /// Column; `None` where the compiler recorded none.
    pub column: Option<u32>,
    /// The function that is called.
    pub callee: Callee,
    /// The variable that receives the result, where the source is unambiguous.
    pub variable: Option<String>,
}

impl Call {
    /// The call that a frame of a calling context made: of the function of the frame within it, or of the allocating function.
    #[must_use]
    pub fn of_frame(frame: &Frame, inner: Option<&Frame>) -> Self {
        Self {
            offset: frame.offset,
            line: frame.line,
            column: frame.column,
            callee: match inner {
                None => Callee::Allocation,
                Some(inner) => inner
                    .function
                    .clone()
                    .map_or(Callee::Unknown, Callee::Function),
            },
            variable: frame.variable.clone(),
        }
    }
}

/// A function and calls in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionCalls {
    /// Name of the function, as in frames.
    pub function: String,
    /// Source file of the function; `None` without debugging information.
    pub file: Option<String>,
    /// Line where it begins.
    pub first_line: Option<u32>,
    /// Calls in it.
    pub calls: Vec<Call>,
}

impl FunctionCalls {
    /// The calls that calling contexts went through, by module, function and file. A context is a list of frames, innermost first. Frames
    /// without a function or without a name of their module are left out.
    pub fn of_contexts<'a, M: Ord>(
        contexts: impl IntoIterator<Item = &'a [Frame]>,
        module: impl Fn(&Frame) -> Option<M>,
    ) -> BTreeMap<(M, &'a str, Option<&'a str>), Self> {
        let mut functions = BTreeMap::new();
        for frames in contexts {
            let inner = std::iter::once(None).chain(frames.iter().map(Some));
            for (frame, inner) in frames.iter().zip(inner) {
                let (Some(function), Some(module)) = (frame.function.as_deref(), module(frame))
                else {
                    continue;
                };
                let key = (module, function, frame.file.as_deref());
                let entry = functions.entry(key).or_insert_with(|| Self {
                    function: function.to_owned(),
                    file: frame.file.clone(),
                    first_line: frame.function_line,
                    calls: Vec::new(),
                });
                entry.calls.push(Call::of_frame(frame, inner));
            }
        }
        functions
    }
}

variant_words! {
    /// The method by which a call, or a site, of another build was found again; later methods are weaker.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum MatchedBy {
        /// The offset in the machine code, or the compiler's name: the call is unchanged.
        Name = "name",
        /// Function, file and line, or the only call of a function.
        Line = "line",
        /// Function and file, and the variable that receives the result.
        Variable = "variable",
        /// Function and file, and the order of the calls in it.
        Order = "order",
    }
}
