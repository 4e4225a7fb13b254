//! Calls within functions, by which the sites of a program are found again in another build of it.

/// What a call leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Callee {
    /// A function that allocates: `malloc`, `operator new` and their kin.
    Allocation,
    /// The function of this name.
    Function(String),
    /// Whatever a pointer leads to, or what could not be told.
    #[default]
    Unknown,
}

/// A call in the machine code of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Return address as an ELF virtual address of the module; of a site that the compiler named, its record's.
    pub offset: u64,
    /// Line in the function's file; `None` without debugging information.
    pub line: Option<u32>,
    /// Column; `None` where the compiler noted none.
    pub column: Option<u32>,
    /// What is called.
    pub callee: Callee,
    /// What the result is assigned to, where the source says so beyond doubt.
    pub variable: Option<String>,
}

/// A function and calls in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionCalls {
    /// Its name, as frames have it.
    pub function: String,
    /// Its source file; `None` without debugging information.
    pub file: Option<String>,
    /// Line where it begins.
    pub first_line: Option<u32>,
    /// Calls in it.
    pub calls: Vec<Call>,
}
