//! Finds names, paths and calls in a token stream, macro bodies included: a syntax tree ends at a macro call, and
//! the rules must not.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};

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
    spots(tokens, |level, at, name| {
        let is_call = is_mark(level, at + 1, '!') && is_group(level, at + 2);
        is_call.then(|| name.to_string())
    })
}

/// Macros that write to a stream and return a result.
const WRITE_MACROS: &[&str] = &["write", "writeln"];
/// Methods that write to a stream and return a result.
const WRITE_METHODS: &[&str] = &["write_all", "write_fmt", "flush"];

/// Writes whose error is unwrapped on the spot: `writeln!(...).unwrap()`, `out.flush().expect(...)`.
pub(crate) fn unwrapped_writes(tokens: &TokenStream) -> Vec<Spot<String>> {
    spots(tokens, |level, at, write| {
        let (known, group) = match is_mark(level, at + 1, '!') {
            true => (WRITE_MACROS, at + 2),
            false => (WRITE_METHODS, at + 1),
        };
        let is_write = is_group(level, group) && known.iter().any(|known| write == known);
        let unwrap = ["unwrap", "expect"].into_iter().find(|unwrap| {
            is_mark(level, group + 1, '.')
                && level.get(group + 2).is_some_and(|it| is_word(it, unwrap))
        });
        unwrap
            .filter(|_| is_write)
            .map(|unwrap| format!("{write}().{unwrap}()"))
    })
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
    spots(tokens, |level, at, word| {
        let is_declared = at > 0 && is_word(&level[at - 1], "fn")
            || is_mark(level, at + 1, ':') && !is_path_separator(level, at + 1);
        let is_part =
            at > 0 && is_mark(level, at - 1, '.') || at > 1 && is_path_separator(level, at - 2);
        let is_macro = is_mark(level, at + 1, '!') && is_group(level, at + 2);
        (!is_declared && !is_part && !is_macro).then(|| word.to_string())
    })
}

/// The keywords that declare a type.
const TYPE_KEYWORDS: &[&str] = &["enum", "struct", "trait", "type", "union"];

/// The types that are declared `pub`, without `pub(crate)` and the like; macro bodies included.
pub(crate) fn public_types(tokens: &TokenStream) -> Vec<Spot<String>> {
    let is_type = |word: &TokenTree| TYPE_KEYWORDS.iter().any(|known| is_word(word, known));
    spots(tokens, |level, at, name| {
        let is_public = match &level[..at] {
            [.., first, second, keyword] if is_word(second, "unsafe") => {
                is_word(first, "pub") && is_type(keyword)
            }
            [.., first, keyword] => is_word(first, "pub") && is_type(keyword),
            _ => false,
        };
        is_public.then(|| name.to_string())
    })
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(name) if name == word)
}

fn is_mark(level: &[TokenTree], at: usize, mark: char) -> bool {
    matches!(level.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == mark)
}

fn is_group(level: &[TokenTree], at: usize) -> bool {
    matches!(level.get(at), Some(TokenTree::Group(_)))
}

fn is_path_separator(level: &[TokenTree], at: usize) -> bool {
    is_mark(level, at, ':') && is_mark(level, at + 1, ':')
}

/// The results of `find` for the words of every nesting level, with their lines, in the order of the lines. `find` gets the level,
/// the place of the word in it, and the word.
fn spots(
    tokens: &TokenStream,
    find: impl Fn(&[TokenTree], usize, &Ident) -> Option<String>,
) -> Vec<Spot<String>> {
    let mut found = Vec::new();
    let mut levels = vec![tokens.clone()];
    while let Some(tokens) = levels.pop() {
        let level: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in level.iter().enumerate() {
            match token {
                TokenTree::Group(group) => levels.push(group.stream()),
                TokenTree::Ident(word) => found.extend(find(&level, at, word).map(|what| Spot {
                    what,
                    line: word.span().start().line,
                })),
                _ => {}
            }
        }
    }
    found.sort_by_key(|spot| spot.line);
    found
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
