//! [`of_functions`] finds the calls in the named functions of a program's file, each with its return address, source position, callee and
//! the variable that its result is assigned to. By these the sites of a plan are found in a rebuilt program.
//!
//! The source is the program's symbols, machine code and debugging information; the program need not run. A program
//! without symbols has no functions here. The file is not trusted: unreadable parts are left out.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Sym, Symbolizer};
use isotherm_model::calls::{Call, Callee, FunctionCalls};
use object::{Object, ObjectSymbol, ObjectSymbolTable, RelocationTarget};

use crate::assigned_variable::Sources;
use crate::machine_calls::{self, Target};
use crate::program_file::{ProgramFile, in_program};
use crate::resolver::column;
use crate::segment::bytes_at;
use crate::symbols_at::symbols_at;

/// Largest function that is read.
const FUNCTION_BYTES_MAX: u64 = 16 << 20;

/// Most functions whose calls are read: the functions that a plan names, several of one name included.
const FUNCTIONS_MAX: usize = 1 << 14;

/// Functions of C that allocate; those of C++ are known by the beginning of their names.
const ALLOCATIONS: [&str; 18] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "valloc",
    "pvalloc",
    "strdup",
    "strndup",
    "wcsdup",
    "__strdup",
    "asprintf",
    "vasprintf",
    "getline",
    "mmap",
    "mmap64",
];

/// The calls in the functions of these names, as frames name them. Functions of one name and file are merged, because
/// no frame distinguishes them.
#[must_use]
pub fn of_functions(module: &Path, wanted: &BTreeSet<&str>) -> Vec<FunctionCalls> {
    in_program(module, |file| Some(in_file(file, module, wanted))).unwrap_or_default()
}

fn in_file(file: &ProgramFile<'_>, path: &Path, wanted: &BTreeSet<&str>) -> Vec<FunctionCalls> {
    let names = Names::new(path);
    let imports = imports(file);
    let mut sources = Sources::of(path);
    let mut found = BTreeMap::<(String, Option<String>), FunctionCalls>::new();
    for (start, bytes) in candidates(file, wanted) {
        let Some(function) = names.of(&[start]).into_iter().next().flatten() else {
            continue;
        };
        if !wanted.contains(&*function.name) {
            continue;
        }
        let calls = calls(file, start, bytes, &imports, &names, &mut sources);
        let place = function.code_info.as_deref();
        let source = place.map(|place| place.to_path().display().to_string());
        let key = (function.name.to_string(), source.clone());
        let entry = found.entry(key).or_insert_with(|| FunctionCalls {
            function: function.name.to_string(),
            file: source,
            first_line: place.and_then(|place| place.line),
            calls: Vec::new(),
        });
        entry.calls.extend(calls);
    }
    found.into_values().collect()
}

/// Addresses and sizes of the functions that may have one of the names: demangling all names of a large program would
/// take seconds.
fn candidates<'data>(file: &impl Object<'data>, wanted: &BTreeSet<&str>) -> BTreeMap<u64, u64> {
    let parts: BTreeSet<&str> = wanted.iter().map(|name| part(name)).collect();
    let symbols = file.symbols().chain(file.dynamic_symbols());
    symbols
        .filter(|symbol| symbol.kind() == object::SymbolKind::Text && symbol.size() > 0)
        .filter(|symbol| symbol.size() <= FUNCTION_BYTES_MAX)
        .filter(|symbol| {
            symbol.name().is_ok_and(|name| {
                wanted.contains(name)
                    || (name.starts_with('_') && parts.iter().any(|part| name.contains(part)))
            })
        })
        .map(|symbol| (symbol.address(), symbol.size()))
        .take(FUNCTIONS_MAX)
        .collect()
}

/// A part of a function's name that its mangled name contains too: the last word before its parameters.
fn part(name: &str) -> &str {
    let named = name
        .rsplit("(anonymous namespace)::")
        .next()
        .unwrap_or(name);
    let own = named.split(['(', '<', '{']).next().unwrap_or_default();
    own.trim_end_matches(':')
        .rsplit(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
        .unwrap_or_default()
}

/// The calls in one function.
fn calls<'data>(
    file: &impl Object<'data>,
    start: u64,
    bytes: u64,
    imports: &HashMap<u64, String>,
    names: &Names<'_>,
    sources: &mut Sources,
) -> Vec<Call> {
    let architecture = file.architecture();
    let Some(code) = bytes_at(file, start, bytes) else {
        return Vec::new();
    };
    let found = machine_calls::calls(architecture, code, start);
    // A return address may belong to the next line, or to the next function.
    let places: Vec<u64> = found.iter().map(|call| call.returns_to - 1).collect();
    let places = names.of(&places);
    let targets: Vec<u64> = found
        .iter()
        .map(|call| match call.target {
            Target::Code(address) => address,
            Target::Pointer(_) | Target::Unknown => 0,
        })
        .collect();
    let targets = names.of(&targets);
    found
        .iter()
        .zip(places)
        .zip(targets)
        .map(|((call, place), target)| {
            let place = place.and_then(|symbol| symbol.code_info);
            let (line, column) = place
                .as_ref()
                .map_or((None, None), |place| (place.line, column(place)));
            let variable = place.as_ref().zip(line.zip(column));
            Call {
                offset: call.returns_to,
                line,
                column,
                callee: callee(file, call.target, target, imports),
                variable: variable.and_then(|(place, (line, column))| {
                    sources.variable(&place.to_path(), line, column)
                }),
            }
        })
        .collect()
}

/// The callee: a function of the module, or an imported one.
fn callee<'data>(
    file: &impl Object<'data>,
    target: Target,
    symbol: Option<Sym<'_>>,
    imports: &HashMap<u64, String>,
) -> Callee {
    let imported = match target {
        Target::Pointer(slot) => imports.get(&slot),
        Target::Code(address) => stub(file, address).and_then(|slot| imports.get(&slot)),
        Target::Unknown => None,
    };
    match (imported, target, symbol) {
        (Some(name), _, _) => of_linker_name(name),
        (None, Target::Code(address), Some(symbol)) if symbol.addr == address => {
            of_name(&symbol.name)
        }
        _ => Callee::Unknown,
    }
}

fn of_linker_name(name: &str) -> Callee {
    if name.starts_with("_Znw") || name.starts_with("_Zna") {
        return Callee::Allocation;
    }
    match cpp_demangle::Symbol::new(name).map(|symbol| symbol.demangle()) {
        Ok(Ok(shown)) => of_name(&shown),
        _ => of_name(name),
    }
}

fn of_name(name: &str) -> Callee {
    match ALLOCATIONS.contains(&name) || name.starts_with("operator new") {
        true => Callee::Allocation,
        false => Callee::Function(name.to_owned()),
    }
}

/// The pointer through which a linker stub at this address jumps to an imported function.
fn stub<'data>(file: &impl Object<'data>, address: u64) -> Option<u64> {
    let code = bytes_at(file, address, machine_calls::STUB_BYTES)?;
    machine_calls::stub(file.architecture(), code, address)
}

/// Names of imported functions by the addresses of the pointers that the loader sets for them.
fn imports<'data>(file: &impl Object<'data>) -> HashMap<u64, String> {
    let (Some(symbols), Some(relocations)) =
        (file.dynamic_symbol_table(), file.dynamic_relocations())
    else {
        return HashMap::new();
    };
    relocations
        .filter_map(|(slot, relocation)| {
            let RelocationTarget::Symbol(index) = relocation.target() else {
                return None;
            };
            let symbol = symbols.symbol_by_index(index).ok()?;
            Some((slot, symbol.name().ok()?.to_owned()))
        })
        .collect()
}

/// Names and source positions of addresses.
struct Names<'a> {
    symbolizer: Symbolizer,
    source: Source<'a>,
}

impl Names<'_> {
    fn new(path: &Path) -> Self {
        Self {
            symbolizer: Symbolizer::new(),
            source: Source::Elf(Elf::new(path)),
        }
    }

    fn of(&self, addresses: &[u64]) -> Vec<Option<Sym<'_>>> {
        symbols_at(&self.symbolizer, &self.source, addresses)
    }
}
#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn the_linkers_name_of_a_function_holds_the_last_word_of_the_shown_one() {
        for (shown, wanted) in [
            ("main", "main"),
            ("space::make<int>(unsigned long)", "make"),
            (
                "std::vector<int, std::allocator<int> >::push_back(int const&)",
                "vector",
            ),
            ("(anonymous namespace)::load(int)", "load"),
            ("main::{lambda(int)#1}::operator()(int) const", "main"),
            ("operator+(A, B)", ""),
            ("", ""),
        ] {
            assert_eq!(part(shown), wanted);
        }
    }
}
