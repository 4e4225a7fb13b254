//! Reads the static data of a program or library (`.data`, `.bss`) from its file as sites that can be placed, in whole pages: each variable
//! of at least a page, and the rest of each segment as one. A module with less than [`LEAST_BYTES`] of it has none.
//!
//! ```text
//! segment      |..|  a  |.....|   b    |..|           variables of at least a page
//! pages      |    |    |    |    |    |    |
//! objects    |rest|  a      |rest|  b      |          whole pages: of two in a page the first has it
//! ```
//!
//! The file is not trusted: a variable outside the writable segments is none, and no more than a named number is kept.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use isotherm_model::spans;
use isotherm_sys::memory::PAGE_BYTES;
use object::{Object, ObjectSegment, ObjectSymbol, SegmentFlags, SymbolKind, elf};

use crate::demangled::demangled;
use crate::program_file::in_program;

const PAGE: u64 = PAGE_BYTES as u64;

/// Most variables of a module, the largest ones. The others count as small.
const VARIABLES_MAX: usize = 1024;

/// Modules with less writable data than this have no sites of it, as small heap sites have no arena.
pub const LEAST_BYTES: u64 = 256 << 10;

/// Name of what is left of a segment.
const SMALL: &str = "small static data";

/// A range of static data, in whole pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticObject {
    /// ELF virtual address that names it: the address of the variable; for small data the last address of its segment.
    pub name: u64,
    /// ELF virtual addresses. Small data of a segment may have several ranges.
    pub range: Range<u64>,
    /// `data NAME`, with the name as in the source; `small static data`.
    pub label: String,
}

/// A variable, by its addresses, with its name.
type Variable = (Range<u64>, String);

/// The static data of a module by address; none where there is little, or the file is no ELF file that can be read.
#[must_use]
pub fn read(path: &Path) -> Vec<StaticObject> {
    in_program(path, |file| Some(of_file(file))).unwrap_or_default()
}

/// The static data of a file that was opened, as [`read`].
pub(crate) fn of_file<'data>(file: &impl Object<'data>) -> Vec<StaticObject> {
    let segments = writable(file);
    let bytes = segments.iter().map(|segment| segment.end - segment.start);
    if bytes.sum::<u64>() < LEAST_BYTES {
        return Vec::new();
    }
    let variables = variables(file, &segments);
    let mut objects = Vec::new();
    for segment in &segments {
        let inside =
            |(range, _): &&Variable| segment.start <= range.start && range.end <= segment.end;
        divide(segment, variables.iter().filter(inside), &mut objects);
    }
    objects
}

/// The labels of static data, by the addresses that name it; other addresses have none.
#[must_use]
pub fn labels(path: &Path, addresses: &[u64]) -> HashMap<u64, String> {
    let labels = in_program(path, |file| {
        // Most addresses are of code, and need no look at the symbols.
        let segments = writable(file);
        let is_data = |address: &u64| segments.iter().any(|segment| segment.contains(address));
        addresses.iter().find(|address| is_data(address))?;
        let objects = of_file(file).into_iter();
        let wanted = objects.filter(|object| addresses.contains(&object.name));
        Some(wanted.map(|object| (object.name, object.label)).collect())
    });
    labels.unwrap_or_default()
}

/// The writable segments, by address, without overlap.
fn writable<'data>(file: &impl Object<'data>) -> Vec<Range<u64>> {
    let is_writable =
        |flags| matches!(flags, SegmentFlags::Elf { p_flags } if p_flags & elf::PF_W != 0);
    let mut segments: Vec<Range<u64>> = file
        .segments()
        .filter(|segment| is_writable(segment.flags()))
        .filter_map(|segment| {
            let end = segment.address().checked_add(segment.size())?;
            // The last page of the address space has no end.
            (end < u64::MAX - PAGE).then_some(segment.address()..end)
        })
        .collect();
    segments.sort_by_key(|segment| segment.start);
    let mut end = 0;
    segments.retain(|segment| {
        let apart = segment.start / PAGE * PAGE >= end && segment.start < segment.end;
        if apart {
            end = segment.end.next_multiple_of(PAGE);
        }
        apart
    });
    segments
}

/// The largest variables of at least a page, by address.
fn variables<'data>(file: &impl Object<'data>, segments: &[Range<u64>]) -> Vec<Variable> {
    let large = |address: u64, size: u64| {
        let end = address.checked_add(size)?;
        let inside = segments
            .iter()
            .any(|segment| segment.start <= address && end <= segment.end);
        (size >= PAGE && inside).then_some(address..end)
    };
    let mut found = Vec::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        if symbol.kind() == SymbolKind::Data
            && let Some(range) = large(symbol.address(), symbol.size())
            && let Ok(name) = symbol.name()
        {
            found.push((range, name.to_owned()));
        }
    }
    // Of several names for one address the longest range counts, and then the first name.
    found.sort_by(|(a, one), (b, other)| {
        (Reverse(a.end - a.start), a.start, one).cmp(&(Reverse(b.end - b.start), b.start, other))
    });
    found.dedup_by(|(a, _), (b, _)| a.start == b.start);
    found.truncate(VARIABLES_MAX);
    found.sort_by_key(|(range, _)| (range.start, Reverse(range.end)));
    spans::keep_apart(&mut found, |(range, _)| range);
    found
}

/// Divides the pages of a segment among its variables, by address, and the rest.
fn divide<'a>(
    segment: &Range<u64>,
    variables: impl Iterator<Item = &'a Variable>,
    objects: &mut Vec<StaticObject>,
) {
    let small = |range: Range<u64>| StaticObject {
        name: segment.end - 1,
        range,
        label: SMALL.to_owned(),
    };
    let mut next = segment.start / PAGE * PAGE;
    for (range, name) in variables {
        let start = (range.start / PAGE * PAGE).max(next);
        let end = range.end.next_multiple_of(PAGE);
        if start >= end {
            continue;
        }
        if next < start {
            objects.push(small(next..start));
        }
        objects.push(StaticObject {
            name: range.start,
            range: start..end,
            label: format!("data {}", demangled(name)),
        });
        next = end;
    }
    let end = segment.end.next_multiple_of(PAGE);
    if next < end {
        objects.push(small(next..end));
    }
}

#[cfg(test)]
mod tests {
    use super::{divide, labels, read};
    use std::path::PathBuf;
    use std::process::Command;

    #[test]
    fn pages_are_divided_among_the_variables_and_the_rest_is_one() {
        let variable = |range: std::ops::Range<u64>, name: &str| (range, name.to_owned());
        let variables = [
            variable(0x1f00..0x3100, "a"),
            variable(0x3100..0x4200, "b"),
            variable(0x8000..0x9000, "c"),
        ];
        let mut objects = Vec::new();
        divide(&(0x1010..0xa010), variables.iter(), &mut objects);
        let found: Vec<_> = objects
            .iter()
            .map(|object| (object.name, object.range.clone(), object.label.as_str()))
            .collect();
        let small = "small static data";
        let expected = [
            (0x1f00, 0x1000..0x4000, "data a"),
            (0x3100, 0x4000..0x5000, "data b"),
            (0xa00f, 0x5000..0x8000, small),
            (0x8000, 0x8000..0x9000, "data c"),
            (0xa00f, 0x9000..0xb000, small),
        ];
        assert_eq!(found, expected);
    }

    fn built(source: &str) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        let [file, program] = ["data.c", "data"].map(|name| directory.path().join(name));
        std::fs::write(&file, source).expect("writes");
        let built = Command::new("cc")
            .arg(&file)
            .arg("-o")
            .arg(&program)
            .status();
        assert!(built.expect("a compiler").success());
        (directory, program)
    }

    #[test]
    fn large_variables_are_named_and_constants_and_small_ones_are_not() {
        let source = "static char hot[1 << 20]; char cold[3 << 20] = {1}; const char table[1 << 20] = {2};
            static char little[100]; int main(int n, char **v) { hot[n] = little[n]; return cold[n] + table[n]; }";
        let (_directory, program) = built(source);
        let objects = read(&program);
        let bytes_of = |label: &str| {
            let of_label = objects.iter().filter(|object| object.label == label);
            of_label
                .map(|object| object.range.end - object.range.start)
                .sum::<u64>()
        };
        for (label, mib) in [("data hot", 1), ("data cold", 3), ("data table", 0)] {
            let wanted = mib << 20..=(mib << 20) + 8192 * mib.min(1);
            assert!(wanted.contains(&bytes_of(label)), "{label}: {objects:?}");
        }
        assert!(bytes_of("small static data") > 0, "{objects:?}");
        let hot = objects.iter().find(|object| object.label == "data hot");
        let hot = hot.expect("a variable").name;
        assert_eq!(labels(&program, &[hot, 1]).len(), 1);
        assert_eq!(labels(&program, &[hot])[&hot], "data hot");
        assert!(labels(&program, &[1]).is_empty());
    }

    #[test]
    fn a_program_with_little_data_and_a_file_that_is_none_have_no_objects() {
        let (_directory, program) =
            built("static char few[8192]; int main(int n, char **v) { return few[n]; }");
        assert_eq!(read(&program), []);
        assert_eq!(read(std::path::Path::new("/proc/self/environ")), []);
    }
}
