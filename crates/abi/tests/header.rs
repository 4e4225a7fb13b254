//! Tests that `include/isotherm.h` has the layouts and numbers of [`isotherm_abi::interface`], and compiles in every language it promises.

use std::fmt::Write as _;
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::Command;

use isotherm_abi::interface::{
    FREQUENCY_MAX, HEADER_VERSION, InterfaceHint, InterfaceObject, InterfaceOptions,
    InterfacePolicy, InterfaceReason, InterfaceResult, InterfaceStatistics, InterfaceStatus,
    REASONS,
};

/// The folder of the header.
fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include")
}

/// Compiles a source with the header, and answers the program.
fn compiled(name: &str, source: &str, compiler: &str, options: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (file, program) = (folder.join(name), folder.join(format!("{name}.program")));
    std::fs::write(&file, source).expect("the folder is writable");
    let built = Command::new(compiler)
        .args(["-Wall", "-Wextra", "-Werror", "-pedantic"])
        .args(options)
        .arg("-I")
        .arg(include())
        .arg("-o")
        .args([&program, &file])
        .output()
        .expect("a compiler");
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{compiler} {options:?}: {said}");
    program
}

/// A C program that prints each expression, and what it is expected to print.
#[derive(Default)]
struct Expressions {
    source: String,
    expected: String,
}

impl Expressions {
    fn add(&mut self, expression: &str, value: usize) {
        let _ = writeln!(
            self.source,
            "    printf(\"%s %zu\\n\", \"{expression}\", (size_t)({expression}));"
        );
        let _ = writeln!(self.expected, "{expression} {value}");
    }

    /// Size and offsets of a struct.
    fn layout(&mut self, name: &str, bytes: usize, fields: &[(&str, usize)]) {
        self.add(&format!("sizeof(struct {name})"), bytes);
        for (field, offset) in fields {
            self.add(&format!("offsetof(struct {name}, {field})"), *offset);
        }
    }
}

/// The fields of a struct with their offsets.
macro_rules! fields {
    ($record:ty: $($field:ident)*) => { &[$((stringify!($field), offset_of!($record, $field))),*] };
}

/// The constants of the header.
const CONSTANTS: &[(&str, usize)] = &[
    ("ISOTHERM_OK", InterfaceStatus::Ok as usize),
    ("ISOTHERM_ABSENT", InterfaceStatus::Absent as usize),
    ("ISOTHERM_NO_OBSERVER", InterfaceStatus::NoObserver as usize),
    ("ISOTHERM_NO_SAMPLES", InterfaceStatus::NoSamples as usize),
    ("ISOTHERM_BUSY", InterfaceStatus::Busy as usize),
    ("ISOTHERM_INVALID", InterfaceStatus::Invalid as usize),
    ("ISOTHERM_OVERLAP", InterfaceStatus::Overlap as usize),
    ("ISOTHERM_UNKNOWN", InterfaceStatus::Unknown as usize),
    ("ISOTHERM_NOT_MOVABLE", InterfaceStatus::NotMovable as usize),
    ("ISOTHERM_NO_ROOM", InterfaceStatus::NoRoom as usize),
    ("ISOTHERM_FAILED", InterfaceStatus::Failed as usize),
    (
        "ISOTHERM_STAYED_CAPACITY",
        InterfaceReason::Capacity as usize,
    ),
    ("ISOTHERM_STAYED_NOT_HOT", InterfaceReason::NotHot as usize),
    (
        "ISOTHERM_STAYED_NOT_TOUCHED",
        InterfaceReason::NotTouched as usize,
    ),
    (
        "ISOTHERM_STAYED_NOT_MOVABLE",
        InterfaceReason::NotMovable as usize,
    ),
    ("ISOTHERM_STAYED_NO_ROOM", InterfaceReason::NoRoom as usize),
    ("ISOTHERM_STAYED_IN_USE", InterfaceReason::InUse as usize),
    ("ISOTHERM_STAYED_SHARED", InterfaceReason::Shared as usize),
    ("ISOTHERM_STAYED_REFUSED", InterfaceReason::Refused as usize),
    ("ISOTHERM_REASONS", REASONS),
    ("ISOTHERM_FREQUENCY_MAX", FREQUENCY_MAX as usize),
    ("ISOTHERM_HOT", InterfaceHint::Hot as usize),
    ("ISOTHERM_COLD", InterfaceHint::Cold as usize),
    ("ISOTHERM_STREAMING", InterfaceHint::Streaming as usize),
    ("ISOTHERM_UNKNOWN_HEAT", InterfaceHint::Unknown as usize),
    ("ISOTHERM_POLICY_DEFAULT", InterfacePolicy::Default as usize),
    ("ISOTHERM_POLICY_ATMEM", InterfacePolicy::Atmem as usize),
    ("ISOTHERM_POLICY_THERMOS", InterfacePolicy::Thermos as usize),
];

#[test]
fn the_header_has_the_layouts_and_numbers_of_the_runtime() {
    let mut expressions = Expressions::default();
    expressions.add("ISOTHERM_HEADER_VERSION", HEADER_VERSION as usize);
    expressions.layout(
        "isotherm_options",
        size_of::<InterfaceOptions>(),
        fields!(InterfaceOptions: size policy fast_bytes share),
    );
    expressions.layout(
        "isotherm_result",
        size_of::<InterfaceResult>(),
        fields!(InterfaceResult: size status promoted_bytes demoted_bytes placed_bytes failed_bytes
            selected_bytes samples selection_ns migration_ns capacity_bytes stayed_bytes frequency),
    );
    expressions.layout(
        "isotherm_object",
        size_of::<InterfaceObject>(),
        fields!(InterfaceObject: size reserved name address bytes samples resident_bytes fast_bytes
            selected_bytes placed_bytes promoted_bytes demoted_bytes stayed_bytes),
    );
    expressions.layout(
        "isotherm_statistics",
        size_of::<InterfaceStatistics>(),
        fields!(InterfaceStatistics: size profiling objects object_bytes fast_bytes slow_bytes
            optimizations promoted_bytes demoted_bytes),
    );
    for (name, number) in CONSTANTS {
        expressions.add(name, *number);
    }
    let source = format!(
        "#include \"isotherm.h\"\n#include <stdio.h>\nint main(void)\n{{\n{}    return 0;\n}}\n",
        expressions.source
    );
    let program = compiled("layouts.c", &source, "cc", &["-std=c99"]);
    let output = Command::new(program).output().expect("starts");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        expressions.expected
    );
}

/// Two files with the header in one program, in each language.
#[test]
fn the_header_compiles_without_a_warning_as_c_and_as_cpp() {
    let source = "#include \"isotherm.h\"\n#include \"isotherm.h\"\n\
        int main() { atmem_profiling_start(); isotherm_free(isotherm_alloc(\"a\", 1)); return isotherm_version(); }\n";
    for (compiler, name, options) in [
        ("cc", "c99.c", &["-std=c99"][..]),
        ("cc", "c17.c", &["-std=c17", "-O2", "-Wcast-function-type"]),
        ("c++", "cpp98.cc", &["-std=c++98", "-Wno-long-long"]),
        ("c++", "cpp20.cc", &["-std=c++20", "-O2"]),
    ] {
        let program = compiled(
            name,
            &source.replace("main()", "main(void)"),
            compiler,
            options,
        );
        assert!(Command::new(program).status().expect("starts").success());
    }
}

/// The page's program compiles, and runs without a runtime.
#[test]
fn the_program_of_the_documentation_compiles_and_runs() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/interface.md");
    let page = std::fs::read_to_string(page).expect("it is there");
    let begin = page.find("```c\n").expect("a program") + "```c\n".len();
    let source = &page[begin..][..page[begin..].find("```").expect("its end")];
    let lines = source.lines().count();
    assert!((30..=45).contains(&lines), "{lines} lines");
    let program = compiled("documentation.c", source, "cc", &["-std=c99"]);
    let output = Command::new(program).output().expect("starts");
    assert!(output.status.success(), "{output:?}");
}
