//! Tests the resolved function, file and line of a call in a program compiled here.

#[path = "../../observe/tests/support/program.rs"]
mod program;

use std::process::Command;

use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
use isotherm_symbols::resolver::Symbols;

#[test]
fn a_call_is_named_by_function_file_and_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(program) = program::compile("symbols", directory.path()) else {
        return;
    };
    let output = Command::new(&program).output().expect("runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let offset = u64::from_str_radix(text.trim(), 16).expect("an offset");
    let frame = Frame {
        module: program.to_str().expect("a path").into(),
        offset,
        ..Frame::default()
    };
    let mut sites = [Site {
        frames: vec![frame].into(),
        ..Site::new(SiteId(9), SiteKind::Heap)
    }];
    Symbols::default().symbolise(&mut sites);
    let source = include_str!("programs/symbols.c");
    let call = 1 + source
        .lines()
        .position(|line| line.contains("= here()"))
        .expect("is there");
    let frame = &sites[0].frames[0];
    assert_eq!(frame.function.as_deref(), Some("first_caller"));
    assert!(
        frame
            .file
            .as_deref()
            .is_some_and(|file| file.ends_with("tests/programs/symbols.c"))
    );
    assert_eq!(frame.line, Some(call as u32));
}
