//! [`RustSource`] is one parsed Rust file, with the lines that are test code.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use proc_macro2::{Span, TokenStream};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A Rust file: its tokens, its syntax tree, and its test-only lines.
#[derive(Debug)]
pub(crate) struct RustSource {
    /// Every token; comments are removed, document comments are attributes.
    pub(crate) tokens: TokenStream,
    /// The syntax tree.
    pub(crate) tree: syn::File,
    test_lines: Vec<RangeInclusive<usize>>,
}

impl RustSource {
    /// Parses a file's text; the error gives the problem and its line.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let tokens = TokenStream::from_str(text).map_err(|error| located(error.span(), &error))?;
        let tree = syn::parse_file(text).map_err(|error| located(error.span(), &error))?;
        let mut finder = TestItems::default();
        finder.visit_file(&tree);
        Ok(Self {
            tokens,
            tree,
            test_lines: finder.lines,
        })
    }

    /// Whether the line belongs to an item under `#[cfg(test)]` or `#[test]`.
    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.test_lines.iter().any(|range| range.contains(&line))
    }
}

fn located(span: Span, error: &impl Display) -> String {
    format!("line {}: {error}", span.start().line)
}

/// Collects the line ranges of items that are compiled for tests only.
#[derive(Default)]
struct TestItems {
    lines: Vec<RangeInclusive<usize>>,
}

impl TestItems {
    fn note(&mut self, attributes: &[syn::Attribute], span: Span) {
        if attributes.iter().any(is_for_tests) {
            self.lines.push(span.start().line..=span.end().line);
        }
    }
}

impl<'ast> Visit<'ast> for TestItems {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes: &[syn::Attribute] = match item {
            syn::Item::Const(item) => &item.attrs,
            syn::Item::Enum(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Macro(item) => &item.attrs,
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Static(item) => &item.attrs,
            syn::Item::Struct(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            _ => &[],
        };
        self.note(attributes, item.span());
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.note(&item.attrs, item.span());
        visit::visit_impl_item_fn(self, item);
    }
}

/// `#[test]`, `#[cfg(test)]` or `#[cfg(all(test, ...))]`, but not `#[cfg(not(test))]`.
fn is_for_tests(attribute: &syn::Attribute) -> bool {
    if attribute.path().is_ident("test") {
        return true;
    }
    let syn::Meta::List(list) = &attribute.meta else {
        return false;
    };
    if !attribute.path().is_ident("cfg") {
        return false;
    }
    let condition = list.tokens.to_string();
    condition == "test" || condition.replace(' ', "").starts_with("all(test,")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_test_items_are_told_from_the_rest() {
        let source = RustSource::parse(
            "fn a() {}\n\
             #[cfg(not(test))]\n\
             fn b() {}\n\
             #[cfg(test)]\n\
             mod tests {\n\
             \x20   fn c() {}\n\
             }\n\
             fn d() {}\n",
        )
        .expect("valid Rust");
        let test_lines: Vec<usize> = (1..=8).filter(|&line| source.is_test_line(line)).collect();
        assert_eq!(test_lines, [4, 5, 6, 7]);
    }

    #[test]
    fn a_syntax_error_names_its_line() {
        let error = RustSource::parse("fn a() {}\nfn ( {}\n").expect_err("invalid Rust");
        assert!(error.contains("line 2"), "{error}");
    }
}
