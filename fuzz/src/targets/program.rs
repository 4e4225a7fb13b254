//! What the compiler pass wrote into a program: its sites and its table of contexts, which
//! `isotherm sites` reads from a file that may be any.
//!
//! An input that begins as an ELF file is the program. Any other is a table of contexts, and is put into a
//! program that is sound otherwise: of ten thousand bytes the table is four hundred.

use std::path::Path;

use isotherm_abi::contexts::LEVELS_MAX;
use isotherm_symbols::named_sites::NamedSites;
use isotherm_symbols::resolver::SourceCall;
use isotherm_symbols::{cloned_contexts, compiled_sites};

use super::seeds::Seeds;

/// MemBrain's figure 3 (llvm/tests/programs/figure3.c) as `isotherm-cc -O2 --isotherm-context -shared -nostartfiles -s` links it: one
/// site, three contexts.
const PROGRAM: &[u8] = include_bytes!("../../corpus/program/seed-program");
/// Where its table of contexts lies when it is loaded: what readelf says of the section `isotherm_contexts`.
const TABLE_ADDRESS: u64 = 0x8c8;

/// Contexts of one input at most that are looked at: a table of a few words can claim a million.
const MOST: usize = 2000;

pub(crate) fn check(data: &[u8]) -> bool {
    let directory = tempfile::tempdir().expect("a directory for the file");
    let path = directory.path().join("program");
    let bytes = match data.starts_with(b"\x7fELF") {
        true => data.to_vec(),
        false => with_table(data),
    };
    std::fs::write(&path, bytes).expect("the file can be written");
    is_sound(&path)
}

/// Each context is of a site that is there, and no longer than it may be. True where there is one.
fn is_sound(path: &Path) -> bool {
    let sites = compiled_sites::read(path).unwrap_or_default();
    let table = cloned_contexts::read(path);
    let mut count = 0;
    for context in table.all(&sites).take(MOST) {
        assert!(sites.contains_key(&context.site));
        assert!(context.calls.len() <= LEVELS_MAX);
        count += 1;
    }
    if count < MOST
        && let Ok(named) = NamedSites::read(path)
    {
        for site in sites.values() {
            let call = SourceCall {
                function: site.function.clone(),
                file: site.path.clone(),
                line: site.line,
                column: site.column,
            };
            let _ = named.find(&vec![call; LEVELS_MAX]);
        }
    }
    count > 0
}

/// The program with another table behind its end, to which the section's header leads.
fn with_table(table: &[u8]) -> Vec<u8> {
    let mut program = PROGRAM.to_vec();
    let at = header();
    program[at + 24..at + 32].copy_from_slice(&(PROGRAM.len() as u64).to_le_bytes());
    program[at + 32..at + 40].copy_from_slice(&(table.len() as u64).to_le_bytes());
    program.extend(table);
    program
}

/// Where the header of the table's section begins (ELF-64, System V ABI: `e_shoff` at 40, `e_shentsize` 64,
/// `sh_addr` at 16, `sh_offset` at 24, `sh_size` at 32).
fn header() -> usize {
    let headers = word(40) as usize..PROGRAM.len() - 63;
    let mut places = headers.step_by(64);
    places
        .find(|at| word(at + 16) == TABLE_ADDRESS)
        .expect("has the section")
}

fn word(at: usize) -> u64 {
    u64::from_le_bytes(PROGRAM[at..at + 8].try_into().expect("eight bytes"))
}

pub(crate) fn seeds() -> Seeds {
    let at = header();
    let start = word(at + 24) as usize;
    let table = PROGRAM[start..start + word(at + 32) as usize].to_vec();
    vec![("program", PROGRAM.to_vec()), ("table", table)]
}
