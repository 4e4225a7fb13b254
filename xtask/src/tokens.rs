//! Finds names, paths and calls in a token stream, macro bodies included: a syntax tree ends at a macro call, and
//! the rules must not.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A word of interest and the line it is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spot<T> {
    /// The word.
    pub(crate) what: T,
    /// Its line, from 1.
    pub(crate) line: usize,
}

/// The names of all macros that are called: `println` for `println!(...)`.
pub(crate) fn macro_calls(tokens: &TokenStream) -> Vec<Spot<String>> {
    let mut calls = Vec::new();
    for_each_level(tokens, &mut |level| {
        for three in level.windows(3) {
            if let [
                TokenTree::Ident(name),
                TokenTree::Punct(mark),
                TokenTree::Group(_),
            ] = three
                && mark.as_char() == '!'
            {
                calls.push(Spot {
                    what: name.to_string(),
                    line: name.span().start().line,
                });
            }
        }
    });
    calls.sort_by_key(|spot| spot.line);
    calls
}

/// Macros that write to a stream and return a result.
const WRITE_MACROS: &[&str] = &["write", "writeln"];
/// Methods that write to a stream and return a result.
const WRITE_METHODS: &[&str] = &["write_all", "write_fmt", "flush"];

/// Writes whose error is unwrapped on the spot: `writeln!(...).unwrap()`, `out.flush().expect(...)`.
pub(crate) fn unwrapped_writes(tokens: &TokenStream) -> Vec<Spot<String>> {
    let mut found = Vec::new();
    for_each_level(tokens, &mut |level| {
        for (at, token) in level.iter().enumerate() {
            let TokenTree::Ident(write) = token else {
                continue;
            };
            let (known, rest) = match level.get(at + 1) {
                Some(TokenTree::Punct(mark)) if mark.as_char() == '!' => {
                    (WRITE_MACROS, &level[at + 2..])
                }
                _ => (WRITE_METHODS, &level[at + 1..]),
            };
            if let [
                TokenTree::Group(_),
                TokenTree::Punct(dot),
                TokenTree::Ident(unwrap),
                ..,
            ] = rest
                && known.iter().any(|known| write == known)
                && dot.as_char() == '.'
                && (unwrap == "unwrap" || unwrap == "expect")
            {
                found.push(Spot {
                    what: format!("{write}().{unwrap}()"),
                    line: write.span().start().line,
                });
            }
        }
    });
    found.sort_by_key(|spot| spot.line);
    found
}

/// Every path of two parts or more, with the branches of `use` trees expanded: `use std::{fs, time::Instant}`
/// gives `std::fs` and `std::time::Instant`. A path that ends in `*` is given without it.
pub(crate) fn paths(tokens: &TokenStream) -> Vec<Spot<String>> {
    let mut found = Vec::new();
    collect_paths(tokens, "", &mut found);
    found
}

fn collect_paths(tokens: &TokenStream, prefix: &str, found: &mut Vec<Spot<String>>) {
    let level: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut at = 0;
    while at < level.len() {
        match &level[at] {
            TokenTree::Ident(first) => {
                let line = first.span().start().line;
                let mut path = join(prefix, &first.to_string());
                let mut is_branch = false;
                at += 1;
                while is_path_separator(&level, at) {
                    at += 2;
                    match level.get(at) {
                        Some(TokenTree::Ident(next)) => path = join(&path, &next.to_string()),
                        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                            collect_paths(&group.stream(), &path, found);
                            is_branch = true;
                        }
                        _ => break,
                    }
                    at += 1;
                }
                if path.contains("::") && !is_branch {
                    found.push(Spot { what: path, line });
                }
            }
            TokenTree::Group(group) => {
                collect_paths(&group.stream(), "", found);
                at += 1;
            }
            _ => at += 1,
        }
    }
}

fn join(prefix: &str, name: &str) -> String {
    match prefix {
        "" => name.to_owned(),
        _ => format!("{prefix}::{name}"),
    }
}

/// Names that may refer to a function, type or value in scope: no field, method, macro or later
/// part of a path, and no name that is being declared.
pub(crate) fn free_words(tokens: &TokenStream) -> Vec<Spot<String>> {
    let mut words = Vec::new();
    for_each_level(tokens, &mut |level| {
        for (at, token) in level.iter().enumerate() {
            let TokenTree::Ident(word) = token else {
                continue;
            };
            let is_declared = at > 0 && is_word(&level[at - 1], "fn")
                || is_mark(level, at + 1, ':') && !is_path_separator(level, at + 1);
            let is_part =
                at > 0 && is_mark(level, at - 1, '.') || at > 1 && is_path_separator(level, at - 2);
            let is_macro = is_mark(level, at + 1, '!')
                && matches!(level.get(at + 2), Some(TokenTree::Group(_)));
            if !is_declared && !is_part && !is_macro {
                words.push(Spot {
                    what: word.to_string(),
                    line: word.span().start().line,
                });
            }
        }
    });
    words
}

/// The keywords that declare a type.
const TYPE_KEYWORDS: &[&str] = &["enum", "struct", "trait", "type", "union"];

/// The types that are declared `pub`, without `pub(crate)` and the like; macro bodies included.
pub(crate) fn public_types(tokens: &TokenStream) -> Vec<Spot<String>> {
    let mut types = Vec::new();
    for_each_level(tokens, &mut |level| {
        for (at, token) in level.iter().enumerate() {
            if !is_word(token, "pub") {
                continue;
            }
            let is_unsafe = level
                .get(at + 1)
                .is_some_and(|word| is_word(word, "unsafe"));
            let keyword = at + 1 + usize::from(is_unsafe);
            if let Some([word, TokenTree::Ident(name)]) = level.get(keyword..keyword + 2)
                && TYPE_KEYWORDS.iter().any(|known| is_word(word, known))
            {
                types.push(Spot {
                    what: name.to_string(),
                    line: name.span().start().line,
                });
            }
        }
    });
    types
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(name) if name == word)
}

fn is_mark(level: &[TokenTree], at: usize, mark: char) -> bool {
    matches!(level.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == mark)
}

fn is_path_separator(level: &[TokenTree], at: usize) -> bool {
    is_mark(level, at, ':') && is_mark(level, at + 1, ':')
}

/// Calls `visit` with the tokens of every nesting level in turn.
fn for_each_level(tokens: &TokenStream, visit: &mut impl FnMut(&[TokenTree])) {
    let level: Vec<TokenTree> = tokens.clone().into_iter().collect();
    visit(&level);
    for token in &level {
        if let TokenTree::Group(group) = token {
            for_each_level(&group.stream(), visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> TokenStream {
        text.parse().expect("valid tokens")
    }

    #[test]
    fn macro_calls_are_found_inside_other_macros_and_not_in_comparisons() {
        let calls = macro_calls(&parsed("fn f() {\n if a != (b) { vec![print!(\"\")]; }\n}"));
        let names: Vec<_> = calls
            .iter()
            .map(|call| (call.what.as_str(), call.line))
            .collect();
        assert_eq!(names, [("vec", 2), ("print", 2)]);
    }

    #[test]
    fn use_trees_are_written_out() {
        let found = paths(&parsed(
            "use std::{fs, time::{Duration, Instant}};\nstd::env::var();",
        ));
        let names: Vec<_> = found.iter().map(|path| path.what.as_str()).collect();
        for wanted in [
            "std::fs",
            "std::time::Duration",
            "std::time::Instant",
            "std::env::var",
        ] {
            assert!(names.contains(&wanted), "{wanted} is not in {names:?}");
        }
        assert!(
            !names.contains(&"std::time"),
            "the trunk of a branch is no use of it"
        );
        assert_eq!(found.last().map(|path| path.line), Some(2));
    }

    #[test]
    fn free_words_are_no_fields_methods_macros_declarations_or_parts_of_paths() {
        let found = free_words(&parsed(
            "fn f(a: B) { g(c.d).map(h); i::J; k::<L>(); m!(n != o) }",
        ));
        let words: Vec<_> = found.iter().map(|word| word.what.as_str()).collect();
        for wanted in ["B", "g", "c", "h", "i", "k", "L", "n", "o"] {
            assert!(words.contains(&wanted), "{wanted} is not in {words:?}");
        }
        for unwanted in ["f", "a", "d", "map", "J", "m"] {
            assert!(!words.contains(&unwanted), "{unwanted} is in {words:?}");
        }
    }

    #[test]
    fn public_types_are_found_in_macros_and_narrower_ones_are_not() {
        let text = "pub struct A;\npub(crate) enum B {}\nunits! { pub struct C(u64); }\n\
                    pub unsafe trait D {}\npub fn e() {}\nimpl F for G { type H = (); }";
        let types: Vec<_> = public_types(&parsed(text))
            .into_iter()
            .map(|spot| (spot.what, spot.line))
            .collect();
        let mut names: Vec<_> = types
            .iter()
            .map(|(name, line)| (name.as_str(), *line))
            .collect();
        names.sort();
        assert_eq!(names, [("A", 1), ("C", 3), ("D", 4)]);
    }
}
