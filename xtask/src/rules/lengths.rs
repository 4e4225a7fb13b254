//! A function has at most 70 lines, so that it fits on a screen, and a source file at most 700, so that it has one subject.

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

pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    long_files(repository)
        .chain(long_functions(repository))
        .collect()
}

/// The finding for a function or file that is longer than its limit.
fn excess(path: &str, line: usize, what: &str, lines: usize, limit: usize) -> Finding {
    let message = format!("{what} has {lines} lines, and {limit} is the limit; split it");
    Finding::new(path, line, message)
}

fn long_files(repository: &Repository) -> impl Iterator<Item = Finding> {
    repository
        .texts()
        .filter(|(file, text)| is_source(file, text))
        .filter_map(|(file, text)| {
            let lines = text.lines().count();
            (lines > FILE_LINES).then(|| excess(&file.path, 1, "the file", lines, FILE_LINES))
        })
}

fn is_source(file: &RepositoryFile, text: &str) -> bool {
    let known = SOURCES.iter().any(|end| file.path.ends_with(end)) || text.starts_with("#!");
    known && !file.is_foreign()
}

fn long_functions(repository: &Repository) -> impl Iterator<Item = Finding> {
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
    found: Vec<Finding>,
}

impl LongFunctions<'_> {
    fn measure(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let first = signature.fn_token.span.start().line;
        let last = body.brace_token.span.close().end().line;
        let lines = last - first + 1;
        if lines > FUNCTION_LINES {
            let what = format!("the function `{}`", signature.ident);
            let finding = excess(self.path, first, &what, lines, FUNCTION_LINES);
            self.found.push(finding);
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

    fn messages(text: &str) -> Vec<String> {
        let repository = Repository::of(&[(PATH, text)]);
        check(&repository).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_function_of_seventy_lines_passes_and_one_more_fails() {
        assert_eq!(messages(&function(70)), [""; 0]);
        let found = messages(&function(71));
        assert!(found[0].starts_with("crates/a/src/a.rs:1: the function `long` has 71 lines"));
    }

    #[test]
    fn a_method_and_a_default_method_are_measured_too() {
        let body = function(71);
        assert_eq!(messages(&format!("impl A {{\n{body}}}")).len(), 1);
        assert_eq!(messages(&format!("trait A {{\n{body}}}")).len(), 1);
    }

    #[test]
    fn a_file_of_seven_hundred_lines_passes_and_one_more_fails() {
        assert_eq!(messages(&"// line\n".repeat(700)), [""; 0]);
        assert_eq!(messages(&"// line\n".repeat(701)).len(), 1);
    }
}
