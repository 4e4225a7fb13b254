//! [`Symbols::name_code`] names sampled instructions by the function and line of the instruction itself, or, of inlined library code, of
//! the program's function around it. (The frames of sites are named otherwise: by the calls that return to them.)

use std::path::Path;
use std::sync::Arc;

use isotherm_model::site::Frame;

use super::{SourceCall, Symbols, named};

/// Set in the key of an instruction in the cached names of a module, whose other keys are return addresses: no address of a module has it.
const INSTRUCTION: u64 = 1 << 63;

impl Symbols {
    /// Resolves the instructions that have no function yet. Inlined code gets the name of the innermost function that is not a
    /// library's: a loop of the program, and not the container's operator in it.
    pub fn name_code(&mut self, code: &mut [Arc<Frame>]) {
        let frames = code.iter().map(|frame| &**frame);
        self.find_names(frames, INSTRUCTION, Self::code_at);
        for frame in code.iter_mut().filter(|frame| frame.function.is_none()) {
            if let Some(found) = self.known_name(frame, INSTRUCTION) {
                *frame = Arc::new(named(frame, found));
            }
        }
    }

    /// One entry for each offset, empty if unknown.
    fn code_at(&self, path: &Path, offsets: &[u64]) -> Vec<Frame> {
        // These are addresses of instructions; the calls are looked up before the return addresses.
        let behind: Vec<u64> = offsets.iter().map(|offset| offset + 1).collect();
        let calls = self.source_calls(path, &behind);
        calls.iter().map(|calls| told(calls)).collect()
    }
}

/// The name of the innermost function that is not a library's, else of the outermost one; the calls are from the inside out.
fn told(calls: &[SourceCall]) -> Frame {
    let is_own = |call: &&SourceCall| {
        let of_library = call.file.starts_with("/usr/")
            || call.file.starts_with("/rustc/")
            || call.file.contains("/rustlib/");
        !call.file.is_empty() && !of_library
    };
    let Some(call) = calls.iter().find(is_own).or(calls.last()) else {
        return Frame::default();
    };
    Frame {
        function: Some(call.function.clone()),
        file: (!call.file.is_empty()).then(|| call.file.clone()),
        line: call.line,
        column: call.column.filter(|column| *column > 0),
        ..Frame::default()
    }
}

#[cfg(test)]
mod tests {
    use super::told;
    use crate::name_cache::NameCache;
    use crate::resolver::{SourceCall, Symbols};
    use isotherm_model::site::Frame;
    use object::{Object, ObjectSymbol};
    use std::sync::Arc;

    fn call(function: &str, file: &str) -> SourceCall {
        SourceCall {
            function: function.to_owned(),
            file: file.to_owned(),
            line: Some(7),
            column: Some(0),
        }
    }

    #[test]
    fn of_inlined_code_the_innermost_function_of_the_program_is_named() {
        let vector = call("operator[]", "/usr/include/c++/12/bits/stl_vector.h");
        let (kernel, main) = (
            call("kernel", "/home/me/bfs.cc"),
            call("main", "/home/me/bfs.cc"),
        );
        let name = |calls: &[SourceCall]| told(calls).function;
        let named = name(&[vector.clone(), kernel, main]);
        assert_eq!(named.as_deref(), Some("kernel"));
        let only = name(&[vector, call("std::sort", "/usr/include/x.h")]);
        assert_eq!(
            only.as_deref(),
            Some("std::sort"),
            "the function of the machine code"
        );
        assert_eq!(told(&[call("main", "")]).file, None);
        assert_eq!(name(&[]), None);
    }

    #[test]
    fn an_instruction_is_named_by_itself_and_from_the_cache() {
        let own = std::env::current_exe().expect("a path");
        let bytes = std::fs::read(&own).expect("reads");
        let file = object::File::parse(&*bytes).expect("an ELF file");
        let is_main = |symbol: &object::Symbol<'_, '_>| symbol.name() == Ok("main");
        let main = file.symbols().find(is_main).expect("has main").address();
        let build_id = crate::resolver::build_id(&own);
        let frame = Frame {
            module: own.to_str().expect("a path").into(),
            build_id: build_id.as_deref().map(Into::into),
            // The first byte of the function: as a return address it would be of the function before.
            offset: main,
            ..Frame::default()
        };
        let folder = tempfile::tempdir().expect("a directory");
        let cache = || NameCache::in_folder(&folder.path().join("isotherm"));
        for round in 0..2 {
            let mut code = [
                Arc::new(frame.clone()),
                Arc::new(Frame {
                    module: "".into(),
                    ..frame.clone()
                }),
            ];
            Symbols::with_cache(cache()).name_code(&mut code);
            assert_eq!(code[0].function.as_deref(), Some("main"), "round {round}");
            assert_eq!(code[0].offset, main);
            assert_eq!(code[1].function, None, "code without a file has no name");
        }
    }
}
