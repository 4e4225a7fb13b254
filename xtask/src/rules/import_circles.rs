//! The files of a crate import one another without circles, so that each can be read after the files that it
//! uses, and tested with them alone. A parent that calls its child, which uses definitions of the parent, is a
//! circle; a parent that only declares its child, or re-exports its names, is not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::finding::Finding;
use crate::modules::{self, Module, Modules};
use crate::repository::Repository;

/// From a file to those that it imports from, each with the line of the first import.
type Graph = BTreeMap<String, BTreeMap<String, usize>>;

pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let mut graph = Graph::new();
    for root in modules::roots(repository) {
        add_imports(&Modules::read(repository, root), &mut graph);
    }
    let circles = circles(&graph);
    circles
        .iter()
        .map(|circle| described(circle, &graph))
        .collect()
}

fn add_imports(modules: &Modules, graph: &mut Graph) {
    for (path, module) in modules.iter() {
        for (target, line) in imported_files(modules, path, module) {
            let imports = graph.entry(module.file.clone()).or_default();
            let first = imports.entry(target).or_insert(line);
            *first = line.min(*first);
        }
    }
}

/// The files that define the names that a module uses, with lines, without the module's own file.
fn imported_files(modules: &Modules, path: &[String], module: &Module) -> Vec<(String, usize)> {
    let imports = module
        .used_imports()
        .map(|import| (&import.path, import.line, import.name == "*"));
    let paths = module
        .paths
        .iter()
        .map(|path| (&path.what, path.line, false));
    let mut files = Vec::new();
    for (names, line, is_glob) in imports.chain(paths) {
        let Some(place) = modules.place(path, names) else {
            continue;
        };
        // A path that names only a module is followed by one that names something in it.
        let Some(target) = modules
            .get(&place.module)
            .filter(|_| place.is_item || is_glob)
        else {
            continue;
        };
        if target.file != module.file {
            files.push((target.file.clone(), line));
        }
    }
    files
}

/// For every import that is part of a circle, the shortest one, each once. A circle begins with
/// its first file by name.
fn circles(graph: &Graph) -> BTreeSet<Vec<&str>> {
    let mut circles = BTreeSet::new();
    for (from, imports) in graph {
        for to in imports.keys() {
            if let Some(mut circle) = shortest_way(graph, to, from) {
                let first = circle.iter().enumerate().min_by_key(|(_, file)| **file);
                let first = first.map_or(0, |(at, _)| at);
                circle.rotate_left(first);
                circles.insert(circle);
            }
        }
    }
    circles
}

/// The files on a shortest way along imports, both ends included.
fn shortest_way<'a>(graph: &'a Graph, from: &'a str, to: &str) -> Option<Vec<&'a str>> {
    let mut came_from: BTreeMap<&str, Option<&str>> = BTreeMap::from([(from, None)]);
    let mut queue = VecDeque::from([from]);
    while let Some(file) = queue.pop_front() {
        if file == to {
            let step = |at: &&'a str| came_from[at];
            let mut way: Vec<&str> = std::iter::successors(Some(file), step).collect();
            way.reverse();
            return Some(way);
        }
        for next in graph.get(file).into_iter().flat_map(BTreeMap::keys) {
            came_from.entry(next).or_insert_with(|| {
                queue.push_back(next);
                Some(file)
            });
        }
    }
    None
}

fn described(circle: &[&str], graph: &Graph) -> Finding {
    let line = |at: usize| graph[circle[at]][circle[(at + 1) % circle.len()]];
    let rest: Vec<String> = (1..circle.len())
        .map(|at| format!("{}:{}", circle[at], line(at)))
        .collect();
    let message = format!(
        "imports in a circle with {}; move what both sides need into a file that uses neither",
        rest.join(", which imports ")
    );
    Finding::new(circle[0], line(0), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(files: &[(&str, &str)]) -> Vec<String> {
        check(&Repository::of(files))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    const LIB: (&str, &str) = ("crates/a/src/lib.rs", "mod b;\nmod c;\nmod d;\n");
    const B: &str = "crates/a/src/b.rs";
    const C: &str = "crates/a/src/c.rs";
    const D: &str = "crates/a/src/d.rs";

    #[test]
    fn a_circle_of_two_and_one_of_three_are_reported_with_their_lines() {
        let found = messages(&[
            LIB,
            (B, "use crate::c::C;"),
            (C, "fn c() {\n crate::b::f() }"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with(&format!("{B}:1: imports in a circle with {C}:2;")),
            "{found:?}"
        );
        let (b, c, d) = (
            "use super::c::C;",
            "use crate::{d, b};\nd::F",
            "use crate::b::B;",
        );
        let found = messages(&[LIB, (B, b), (C, &format!("fn f() {{ {c} }}")), (D, d)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains(&format!("{C}:2, which imports {D}:1;")),
            "{found:?}"
        );
    }

    #[test]
    fn a_parent_and_a_child_that_use_each_other_are_a_circle() {
        let child = ("crates/a/src/b/e.rs", "use super::T;\npub fn f(_: T) {}");
        let parent = |text| messages(&[LIB, ("crates/a/src/b.rs", text), child]);
        assert_eq!(parent("mod e;\nstruct T;\nfn g() { e::f(T) }").len(), 1);
        assert_eq!(
            parent("mod e;\npub use e::f;\nstruct T;\nfn g() { f(T) }").len(),
            1
        );
        assert_eq!(parent("mod e;\npub use e::f;\nstruct T;"), [""; 0]);
    }

    #[test]
    fn a_re_export_is_followed_to_the_file_that_defines() {
        let parent = (
            "crates/a/src/b.rs",
            "mod e;\npub(crate) use e::T;\nfn g() {}",
        );
        let child = ("crates/a/src/b/e.rs", "use crate::c::f;\npub struct T;");
        let c = (C, "use crate::b::T;\npub fn f() {}");
        let found = messages(&[LIB, parent, child, c]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("crates/a/src/b/e.rs:1"), "{found:?}");
        let sibling = ("crates/a/src/b/e.rs", "use super::g;\npub struct T;");
        assert_eq!(
            messages(&[LIB, parent, sibling, (C, "use crate::b::T;")]),
            [""; 0]
        );
    }

    #[test]
    fn the_module_of_a_function_is_told_from_the_function() {
        let parent = ("crates/a/src/b.rs", "mod e;\nfn e() { e::f() }");
        let child = ("crates/a/src/b/e.rs", "fn f() { super::e() }");
        assert_eq!(messages(&[LIB, parent, child]).len(), 1);
    }

    #[test]
    fn tests_and_parts_of_a_file_are_no_circles() {
        let b = "use crate::c::C;\nfn f() {}\nmod part {\n    use super::f;\n}\n";
        let c = "struct C;\n#[cfg(test)]\nmod tests {\n    use crate::b::f;\n}\n";
        assert_eq!(messages(&[LIB, (B, b), (C, c)]), [""; 0]);
    }
}
