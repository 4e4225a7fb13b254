//! Makes [`INSTANCES`] independent copies of the jemalloc that `tikv-jemalloc-sys` built.
//!
//! An allocator keeps its state in global variables, so each tier needs its own copy of them all. The copies
//! come from the one static library: `objcopy` gives every global symbol of copy *i* the prefix `_je<i>_`
//! instead of `_rjem_`, and redirects four kinds of reference to the runtime:
//!
//! ```text
//! ehooks.o    extent_alloc_mmap   -> isotherm_extent_alloc_<i>  data comes from the pool
//! ehooks.o    extent_alloc_dss    -> isotherm_no_break          and, but for copy 0, from nowhere else
//! pages.o     mmap, munmap, ...   -> isotherm_kernel_*          our own `mmap` is a hook
//! jemalloc.o  pthread_atfork      -> isotherm_no_atfork         the runtime orders the locks
//! ```
//!
//! The runtime also defines, in place of copy 0, the function that its `free` calls for blocks that its fast
//! path does not handle: another copy may own them.
//!
//! jemalloc's own structures (`base.o`) keep their plain mappings outside the pool, so that they are neither
//! placed nor slowed. The constructors are dropped: an instance that serves no tier is never started.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Copies made; `instance.rs` names each of them.
const INSTANCES: usize = 4;

/// Prefix that `tikv-jemalloc-sys` gives to every global symbol.
const PREFIX: &str = "_rjem_";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let root = env::var_os("DEP_JEMALLOC_ROOT").expect("tikv-jemalloc-sys names its directory");
    let library = Path::new(&root).join("lib").join("libjemalloc_pic.a");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let members = extract(&library, &out.join("plain"));
    let symbols = defined_symbols(&library);
    for instance in 0..INSTANCES {
        copy_instance(instance, &members, &symbols, &out);
        println!("cargo:rustc-link-lib=static:-bundle=isotherm_je{instance}");
    }
    println!("cargo:rustc-link-search=native={}", out.display());
    // A debugger uses any function that is described under the name `mmap` or `clone`, the standard library's
    // too, as the one that the program calls. The symbol table, which holds full names, stays.
    println!("cargo:rustc-cdylib-link-arg=-Wl,--strip-debug");
    fs::write(out.join("instances.rs"), declarations()).expect("OUT_DIR is writable");
}

/// The functions of an instance that the runtime calls: name in the struct, symbol after the
/// prefix, and type.
const FUNCTIONS: [(&str, &str, &str); 17] = [
    ("malloc", "malloc", "(size: usize) -> *mut c_void"),
    (
        "calloc",
        "calloc",
        "(count: usize, size: usize) -> *mut c_void",
    ),
    (
        "realloc",
        "realloc",
        "(block: *mut c_void, size: usize) -> *mut c_void",
    ),
    ("free", "free", "(block: *mut c_void)"),
    (
        "usable_size",
        "malloc_usable_size",
        "(block: *const c_void) -> usize",
    ),
    (
        "mallocx",
        "mallocx",
        "(size: usize, flags: c_int) -> *mut c_void",
    ),
    (
        "rallocx",
        "rallocx",
        "(block: *mut c_void, size: usize, flags: c_int) -> *mut c_void",
    ),
    (
        "xallocx",
        "xallocx",
        "(block: *mut c_void, size: usize, extra: usize, flags: c_int) -> usize",
    ),
    (
        "sallocx",
        "sallocx",
        "(block: *const c_void, flags: c_int) -> usize",
    ),
    ("dallocx", "dallocx", "(block: *mut c_void, flags: c_int)"),
    (
        "sdallocx",
        "sdallocx",
        "(block: *mut c_void, size: usize, flags: c_int)",
    ),
    ("nallocx", "nallocx", "(size: usize, flags: c_int) -> usize"),
    (
        "mallctl",
        "mallctl",
        "(name: *const c_char, old: *mut c_void, old_bytes: *mut usize, new: *mut c_void, new_bytes: usize) -> c_int",
    ),
    // jemalloc's default source of extents, which an instance uses outside the pool.
    (
        "extent_alloc_mmap",
        "je_extent_alloc_mmap",
        "(new: *mut c_void, bytes: usize, alignment: usize, zero: *mut bool, commit: *mut bool) -> *mut c_void",
    ),
    ("prefork", "je_jemalloc_prefork", "()"),
    ("postfork_parent", "je_jemalloc_postfork_parent", "()"),
    ("postfork_child", "je_jemalloc_postfork_child", "()"),
];

/// Rust source that declares the functions and lists the instances.
fn declarations() -> String {
    let mut source = String::from("unsafe extern \"C\" {\n");
    for instance in 0..INSTANCES {
        for (_, symbol, signature) in FUNCTIONS {
            source.push_str(&format!(
                "    pub(crate) fn _je{instance}_{symbol}{signature};\n"
            ));
        }
    }
    source.push_str("}\n\n/// One independent jemalloc; aligned, so that a shift of its number gives its place.\n#[repr(align(256))]\npub(crate) struct Instance {\n    /// Its number, which is also the number of its arena.\n    pub(crate) number: u32,\n");
    for (name, _, signature) in FUNCTIONS {
        source.push_str(&format!(
            "    pub(crate) {name}: unsafe extern \"C\" fn{signature},\n"
        ));
    }
    source.push_str(&format!(
        "}}\n\n/// All of them.\npub(crate) static INSTANCES: [Instance; {INSTANCES}] = [\n"
    ));
    for instance in 0..INSTANCES {
        source.push_str(&format!("    Instance {{\n        number: {instance},\n"));
        for (name, symbol, _) in FUNCTIONS {
            source.push_str(&format!("        {name}: _je{instance}_{symbol},\n"));
        }
        source.push_str("    },\n");
    }
    source.push_str("];\n");
    source
}

/// Unpacks the library and returns its members.
fn extract(library: &Path, into: &Path) -> Vec<PathBuf> {
    let _ = fs::remove_dir_all(into);
    fs::create_dir_all(into).expect("OUT_DIR is writable");
    run(tool("AR", "ar").arg("x").arg(library).current_dir(into));
    let mut members: Vec<PathBuf> = fs::read_dir(into)
        .expect("the directory was just made")
        .map(|entry| entry.expect("the directory is readable").path())
        .collect();
    members.sort();
    members
}

/// Every global symbol that the library defines.
fn defined_symbols(library: &Path) -> BTreeSet<String> {
    let listing = run(tool("NM", "nm")
        .args(["--defined-only", "--extern-only", "--format=posix"])
        .arg(library));
    listing
        .lines()
        .filter_map(|line| line.split_once(' ').map(|(name, _)| name.to_owned()))
        .filter(|name| !name.ends_with(':') && !name.contains('['))
        .collect()
}

/// Writes `libisotherm_je<instance>.a`.
fn copy_instance(instance: usize, members: &[PathBuf], symbols: &BTreeSet<String>, out: &Path) {
    let directory = out.join(format!("je{instance}"));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).expect("OUT_DIR is writable");
    let archive = out.join(format!("libisotherm_je{instance}.a"));
    let _ = fs::remove_file(&archive);
    let mut objects = Vec::new();
    for member in members {
        let name = member.file_name().expect("a member is a file");
        let table = directory.join(name).with_extension("renames");
        let stem = name.to_string_lossy();
        let stem = stem.split('.').next().unwrap_or_default();
        fs::write(&table, renames(instance, stem, symbols)).expect("OUT_DIR is writable");
        let object = directory.join(name);
        let mut command = tool("OBJCOPY", "objcopy");
        command.arg(format!("--redefine-syms={}", table.display()));
        for section in [".init_array", ".rela.init_array", ".ctors", ".rela.ctors"] {
            command.arg(format!("--remove-section={section}"));
        }
        // Otherwise the position of the most frequent functions in a cache line depends on what else is linked.
        for function in ["malloc", "free"] {
            command.arg(format!(
                "--set-section-alignment=.text.{PREFIX}{function}=64"
            ));
        }
        run(command.arg(member).arg(&object));
        if instance == 0 && stem == "jemalloc" {
            lead_out_of_free(&object);
        }
        objects.push(object);
    }
    run(tool("AR", "ar").arg("crs").arg(&archive).args(&objects));
}

/// Gives the slow path of `free` a second name, and makes the first name weak, so that the runtime's function
/// of that name is called instead.
fn lead_out_of_free(object: &Path) {
    let section = format!(".text.{PREFIX}je_free_default");
    run(tool("OBJCOPY", "objcopy")
        .arg(format!(
            "--add-symbol=_je0_free_slowly={section}:0,function,global"
        ))
        .arg("--weaken-symbol=_je0_je_free_default")
        .arg(object));
}

/// The table of `old new` pairs for one object file.
fn renames(instance: usize, object: &str, symbols: &BTreeSet<String>) -> String {
    let bent: Vec<(String, String)> = match object {
        "ehooks" => {
            let data = (
                format!("{PREFIX}je_extent_alloc_mmap"),
                format!("isotherm_extent_alloc_{instance}"),
            );
            let program_break = (
                format!("{PREFIX}je_extent_alloc_dss"),
                "isotherm_no_break".to_owned(),
            );
            match instance {
                0 => vec![data],
                _ => vec![data, program_break],
            }
        }
        "pages" => ["mmap", "munmap", "mprotect", "madvise"]
            .iter()
            .map(|name| ((*name).to_owned(), format!("isotherm_kernel_{name}")))
            .collect(),
        "jemalloc" => vec![("pthread_atfork".to_owned(), "isotherm_no_atfork".to_owned())],
        _ => Vec::new(),
    };
    let mut table = String::new();
    for (old, new) in &bent {
        table.push_str(&format!("{old} {new}\n"));
    }
    for symbol in symbols {
        if bent.iter().all(|(old, _)| old != symbol) {
            let rest = symbol.strip_prefix(PREFIX).unwrap_or(symbol);
            table.push_str(&format!("{symbol} _je{instance}_{rest}\n"));
        }
    }
    table
}

/// A binutils program; the environment variable of its usual name overrides it.
fn tool(variable: &str, name: &str) -> Command {
    println!("cargo:rerun-if-env-changed={variable}");
    Command::new(env::var_os(variable).unwrap_or_else(|| name.into()))
}

/// Runs the program and returns what it printed; the build ends if it fails.
fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?} does not start: {error}; install binutils"));
    assert!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
