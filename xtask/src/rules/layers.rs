//! A module uses only modules that are listed above it: the `mod` lines of a crate's root file list its modules as
//! layers, lowest first. Holds for every crate whose root file says so.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::modules::{self, Module, Modules, Names};
use crate::repository::Repository;

/// The sentence in the documentation of a root file that turns this rule on.
const SENTENCE: &str = "Modules are listed bottom-up: each uses only those above it.";

pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    modules::roots(repository)
        .filter(|root| is_layered(repository, root))
        .flat_map(|root| upward_imports(&Modules::read(repository, root)))
        .collect()
}

/// Whether the sentence is in the root file's documentation.
fn is_layered(repository: &Repository, root: &str) -> bool {
    let text = repository.file(root).and_then(|file| file.text.as_deref());
    let lines = text.unwrap_or_default().lines();
    let words: Vec<&str> = lines
        .filter_map(|line| line.strip_prefix("//!"))
        .flat_map(str::split_whitespace)
        .collect();
    words.join(" ").contains(SENTENCE)
}

/// The imports of later modules.
fn upward_imports(modules: &Modules) -> Vec<Finding> {
    let mut found = Vec::new();
    let order = modules
        .get(&[])
        .map(|root| &*root.children)
        .unwrap_or_default();
    for (path, module) in modules.iter() {
        let Some(own) = path.first() else {
            continue;
        };
        for (target, line) in imported_layers(modules, path, module) {
            let later = order.iter().skip_while(|name| *name != own).skip(1);
            let message = match target {
                Some(name) if later.clone().any(|other| *other == name) => format!(
                    "`{own}` uses `{name}`, which is listed after it; move what both need into a \
                     module above `{own}`"
                ),
                Some(_) => continue,
                None => format!(
                    "`{own}` uses what the crate's root file defines; move it into a module above \
                     `{own}`"
                ),
            };
            found.push(Finding::new(&module.file, line, message));
        }
    }
    found
}

/// The modules below the root that a module imports from, each with a line; none stands for the
/// root file's own definitions. Only paths that begin at the root or at a parent: others follow
/// from an import.
fn imported_layers(
    modules: &Modules,
    path: &[String],
    module: &Module,
) -> BTreeSet<(Option<String>, usize)> {
    let imports = module
        .imports
        .iter()
        .map(|import| (&import.path, import.line));
    let paths = module.paths.iter().map(|path| (&path.what, path.line));
    let is_absolute = |names: &Names| matches!(names[0].as_str(), "crate" | "super" | "self");
    let mut layers = BTreeSet::new();
    for (names, line) in imports.chain(paths).filter(|(names, _)| is_absolute(names)) {
        let Some(target) = modules
            .absolute(path, names)
            .filter(|target| !target.is_empty())
        else {
            continue;
        };
        let root = modules.get(&[]);
        let is_module = root.is_some_and(|root| root.children.contains(&target[0]));
        let layer = match is_module {
            true => Some(target[0].clone()),
            // A name of the root file: its own definition, or a re-export from one of its modules.
            false => match modules.definition(&target) {
                Some(place) => place.module.into_iter().next(),
                None => continue,
            },
        };
        layers.insert((layer, line));
    }
    layers
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str = "//! A crate. Modules are listed bottom-up: each uses\n//! only those above \
                       it.\nmod low;\nmod middle;\nmod high;\npub use high::High;\nstruct Root;\n";

    fn messages(lib: &str, files: &[(&str, &str)]) -> Vec<String> {
        let mut all = vec![("crates/a/src/lib.rs", lib)];
        all.extend_from_slice(files);
        check(&Repository::of(&all))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn an_import_of_a_later_module_is_reported_with_its_line() {
        let found = messages(
            LIB,
            &[
                (
                    "crates/a/src/low.rs",
                    "use std::fmt;\nuse crate::{high::High, middle};\n",
                ),
                (
                    "crates/a/src/middle.rs",
                    "fn f() {\n    super::high::g();\n}\n",
                ),
                ("crates/a/src/high.rs", "use crate::{low, middle};\n"),
            ],
        );
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("crates/a/src/low.rs:2: `low` uses `high`"));
        assert!(found[1].starts_with("crates/a/src/low.rs:2: `low` uses `middle`"));
        assert!(found[2].starts_with("crates/a/src/middle.rs:2: `middle` uses `high`"));
    }

    #[test]
    fn a_file_of_a_module_counts_as_the_module() {
        let found = messages(
            LIB,
            &[
                ("crates/a/src/middle.rs", "mod part;\nfn f() {}\n"),
                (
                    "crates/a/src/middle/part.rs",
                    "use super::f;\nuse super::super::high::g;\n",
                ),
                ("crates/a/src/low.rs", "use crate::middle::part::h;\n"),
                ("crates/a/src/high.rs", ""),
            ],
        );
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("crates/a/src/low.rs:1: `low` uses `middle`"));
        assert!(found[1].starts_with("crates/a/src/middle/part.rs:2: `middle` uses `high`"));
    }

    #[test]
    fn what_the_root_defines_or_passes_on_is_no_way_around() {
        let found = messages(
            LIB,
            &[
                (
                    "crates/a/src/low.rs",
                    "use crate::High;\nuse crate::Root;\n",
                ),
                ("crates/a/src/middle.rs", ""),
                ("crates/a/src/high.rs", "use super::High as Again;\n"),
            ],
        );
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("`low` uses what the crate's root file defines"));
        assert!(found[1].contains("`low` uses `high`"), "{found:?}");
    }

    #[test]
    fn tests_and_crates_that_do_not_ask_for_it_are_free() {
        let test = "#[cfg(test)]\nmod tests {\n    use crate::high::High;\n}\n";
        let low = ("crates/a/src/low.rs", test);
        let high = ("crates/a/src/high.rs", "");
        assert_eq!(messages(LIB, &[low, high]), [""; 0]);
        let low = ("crates/a/src/low.rs", "use crate::high::High;\n");
        assert_eq!(messages("mod low;\nmod high;\n", &[low, high]), [""; 0]);
    }
}
