//! A function fits on a screen and a file has one subject. New excess fails; old excess is listed in a ratchet,
//! may only shrink, and is removed from the list when it fits.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};

use crate::finding::Finding;
use crate::repository::{Repository, RepositoryFile};

/// Lines of a function, from `fn` to its closing brace.
const FUNCTION_LINES: usize = 70;
/// Lines of a source file, tests included.
const FILE_LINES: usize = 700;
/// Source files, by the end of their names; scripts without an extension are recognised by `#!`.
const SOURCES: &[&str] = &[
    ".rs", ".c", ".cc", ".cpp", ".h", ".hpp", ".py", ".sh", ".js", ".css",
];

/// The list of old excess: `PATH LINES` for a file, `PATH FUNCTION LINES` for a function.
const RATCHET: &str = "xtask/ratchet.txt";

/// A function or file that is longer than its limit.
struct Excess {
    path: String,
    line: usize,
    /// `None` for the file as a whole.
    function: Option<String>,
    lines: usize,
}

pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let mut ratchet = ratchet_entries(repository);
    let mut findings = Vec::new();
    for excess in long_files(repository).chain(long_functions(repository)) {
        let allowed = ratchet.remove(&excess.key());
        if let Some(message) = excess.message(allowed.map(|entry| entry.lines)) {
            findings.push(Finding::new(&excess.path, excess.line, message));
        }
    }
    for (key, entry) in ratchet {
        let message = format!("{key} is no longer too long; remove this line");
        findings.push(Finding::new(RATCHET, entry.line, message));
    }
    findings
}

impl Excess {
    fn key(&self) -> String {
        match &self.function {
            Some(function) => format!("{} {function}", self.path),
            None => self.path.clone(),
        }
    }

    /// The violation, given the length that the ratchet allows.
    fn message(&self, allowed: Option<usize>) -> Option<String> {
        let (what, limit) = match &self.function {
            Some(name) => (format!("the function `{name}`"), FUNCTION_LINES),
            None => ("the file".to_owned(), FILE_LINES),
        };
        let lines = self.lines;
        match allowed {
            None => Some(format!(
                "{what} has {lines} lines, and {limit} is the limit; split it"
            )),
            Some(old) if lines > old => Some(format!(
                "{what} has grown from {old} to {lines} lines; it may only shrink"
            )),
            Some(old) if lines < old => Some(format!(
                "{what} has shrunk to {lines} lines; write that number into {RATCHET}"
            )),
            Some(_) => None,
        }
    }
}

struct RatchetEntry {
    line: usize,
    lines: usize,
}

fn ratchet_entries(repository: &Repository) -> BTreeMap<String, RatchetEntry> {
    let text = repository
        .file(RATCHET)
        .and_then(|file| file.text.as_deref())
        .unwrap_or_default();
    let entry = |(index, line): (usize, &str)| {
        let (key, lines) = line.rsplit_once(' ')?;
        Some((
            key.to_owned(),
            RatchetEntry {
                line: index + 1,
                lines: lines.parse().ok()?,
            },
        ))
    };
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.starts_with('#'))
        .filter_map(entry)
        .collect()
}

fn long_files(repository: &Repository) -> impl Iterator<Item = Excess> {
    repository
        .texts()
        .filter(|(file, text)| is_source(file, text))
        .filter_map(|(file, text)| {
            let lines = text.lines().count();
            let path = file.path.clone();
            (lines > FILE_LINES).then_some(Excess {
                path,
                line: 1,
                function: None,
                lines,
            })
        })
}

fn is_source(file: &RepositoryFile, text: &str) -> bool {
    let known = SOURCES.iter().any(|end| file.path.ends_with(end)) || text.starts_with("#!");
    known && !file.is_foreign()
}

fn long_functions(repository: &Repository) -> impl Iterator<Item = Excess> {
    repository.rust_sources().flat_map(|(file, source)| {
        let mut finder = LongFunctions {
            path: &file.path,
            found: Vec::new(),
        };
        finder.visit_file(&source.tree);
        finder.found
    })
}

struct LongFunctions<'a> {
    path: &'a str,
    found: Vec<Excess>,
}

impl LongFunctions<'_> {
    fn measure(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let first = signature.fn_token.span.start().line;
        let last = body.brace_token.span.close().end().line;
        let lines = last - first + 1;
        if lines > FUNCTION_LINES {
            self.found.push(Excess {
                path: self.path.to_owned(),
                line: first,
                function: Some(signature.ident.to_string()),
                lines,
            });
        }
    }
}

impl<'ast> Visit<'ast> for LongFunctions<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.measure(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.measure(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.measure(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/a/src/a.rs";

    /// A function of the given number of lines, its braces included.
    fn function(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    a();\n".repeat(lines - 2))
    }

    fn messages(text: &str, ratchet: &str) -> Vec<String> {
        let repository = Repository::of(&[(PATH, text), (RATCHET, ratchet)]);
        check(&repository).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_function_of_seventy_lines_passes_and_one_more_fails() {
        assert_eq!(messages(&function(70), ""), [""; 0]);
        let found = messages(&function(71), "");
        assert!(found[0].starts_with("crates/a/src/a.rs:1: the function `long` has 71 lines"));
    }

    #[test]
    fn a_method_and_a_default_method_are_measured_too() {
        let body = function(71);
        assert_eq!(messages(&format!("impl A {{\n{body}}}"), "").len(), 1);
        assert_eq!(messages(&format!("trait A {{\n{body}}}"), "").len(), 1);
    }

    #[test]
    fn a_file_of_seven_hundred_lines_passes_and_one_more_fails() {
        assert_eq!(messages(&"// line\n".repeat(700), ""), [""; 0]);
        assert_eq!(messages(&"// line\n".repeat(701), "").len(), 1);
    }

    #[test]
    fn listed_excess_passes_until_it_changes() {
        let entry = |lines| format!("# old excess\n{PATH} long {lines}\n");
        assert_eq!(messages(&function(80), &entry(80)), [""; 0]);
        assert!(messages(&function(81), &entry(80))[0].contains("grown from 80 to 81"));
        assert!(messages(&function(79), &entry(80))[0].contains("shrunk to 79"));
        assert!(messages(&function(60), &entry(80))[0].starts_with("xtask/ratchet.txt:2: "));
    }
}
