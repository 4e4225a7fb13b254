//! [`Modules`] reads the modules of one crate, with the names that each defines, imports and uses, but for test code.

use std::collections::{BTreeMap, BTreeSet};

use quote::ToTokens as _;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use crate::repository::Repository;
use crate::rust_source::RustSource;
use crate::tokens::{self, Spot};

/// The names of a path, outermost first: `crate`, `a`, `f` for `crate::a::f`.
pub(crate) type Names = Vec<String>;

/// The modules of one crate, by their path from the root: the root is empty, `crate::a::b` is `a`,
/// `b`.
#[derive(Debug)]
pub(crate) struct Modules {
    by_path: BTreeMap<Names, Module>,
}

/// One module: a file, or a part of one (`mod inner { ... }`).
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// The file's path from the repository's root.
    pub(crate) file: String,
    /// The modules declared here, in their order.
    pub(crate) children: Names,
    /// The functions, types, constants and macros defined here.
    items: BTreeSet<String>,
    /// Names that its `use` declarations import.
    pub(crate) imports: Vec<Import>,
    /// Paths of two names or more in its code, outside `use`.
    pub(crate) paths: Vec<Spot<Names>>,
    /// Single names in its code, outside `use`.
    words: BTreeSet<String>,
}

/// One name that a `use` declaration brings into scope.
#[derive(Debug)]
pub(crate) struct Import {
    /// The name in scope; `*` for all names of a module.
    pub(crate) name: String,
    /// The path as written.
    pub(crate) path: Names,
    /// Its line, from 1.
    pub(crate) line: usize,
    /// Whether it is a re-export: `pub use`, `pub(crate) use`.
    is_public: bool,
}

/// The target of a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The module's path from the root.
    pub(crate) module: Names,
    /// Whether the path names an item in the module, or only the module.
    pub(crate) is_item: bool,
}

/// Most re-exports that are followed: more than any path has, so that a circle of them ends.
const RE_EXPORTS: usize = 8;

/// The roots of the crates: one for each library and program.
pub(crate) fn roots(repository: &Repository) -> impl Iterator<Item = &str> {
    let paths = repository.rust_sources().map(|(file, _)| &*file.path);
    paths.filter(|path| path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs"))
}

impl Modules {
    /// Reads a crate from its root file on.
    pub(crate) fn read(repository: &Repository, root: &str) -> Self {
        let mut modules = Self {
            by_path: BTreeMap::new(),
        };
        modules.add_file(repository, Vec::new(), root);
        modules
    }

    /// Every module with its path.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Names, &Module)> {
        self.by_path.iter()
    }

    /// The module at a path from the root.
    pub(crate) fn get(&self, path: &[String]) -> Option<&Module> {
        self.by_path.get(path)
    }

    fn add_file(&mut self, repository: &Repository, path: Names, file: &str) {
        if let Some(Ok(source)) = repository.file(file).and_then(|file| file.rust.as_ref()) {
            let folder = folder_of_children(file);
            let at = FilePart {
                source,
                file,
                folder,
            };
            self.add(repository, path, &source.tree.items, &at);
        }
    }

    fn add(
        &mut self,
        repository: &Repository,
        path: Names,
        items: &[syn::Item],
        at: &FilePart<'_>,
    ) {
        let mut module = Module {
            file: at.file.to_owned(),
            ..Module::default()
        };
        for item in items {
            if at.source.is_test_line(item.span().start().line) {
                continue;
            }
            let syn::Item::Mod(child) = item else {
                module.add_item(item, at.source);
                continue;
            };
            let name = child.ident.to_string();
            let child_path = joined(&path, &name);
            let folder = format!("{}/{name}", at.folder);
            match &child.content {
                Some((_, items)) => {
                    self.add(repository, child_path, items, &FilePart { folder, ..*at })
                }
                None => {
                    let file = format!("{folder}.rs");
                    if repository.file(&file).is_some() {
                        self.add_file(repository, child_path, &file);
                    }
                }
            }
            module.children.push(name);
        }
        self.by_path.insert(path, module);
    }

    /// The path from the root for one that is written in a module; none where it is outside the crate.
    /// Re-exports are not followed.
    pub(crate) fn absolute(&self, module: &[String], written: &[String]) -> Option<Names> {
        self.absolute_within(module, written, RE_EXPORTS)
    }

    fn absolute_within(
        &self,
        module: &[String],
        written: &[String],
        depth: usize,
    ) -> Option<Names> {
        let (first, rest) = written.split_first()?;
        let here = self.get(module)?;
        let mut path = match first.as_str() {
            "crate" => Vec::new(),
            "self" => module.to_vec(),
            "super" => module.split_last()?.1.to_vec(),
            name if here.children.contains(first) => joined(module, name),
            _ => {
                let import = here.import(first).filter(|_| depth > 0)?;
                self.absolute_within(module, &import.path, depth - 1)?
            }
        };
        for name in rest {
            match name.as_str() {
                "super" => drop(path.pop()),
                "self" => {}
                _ => path.push(name.clone()),
            }
        }
        Some(path)
    }

    /// The target of a path that is written in a module, through re-exports to the definition.
    pub(crate) fn place(&self, module: &[String], written: &[String]) -> Option<Place> {
        self.definition(&self.absolute(module, written)?)
    }

    /// The target of a path from the root, through re-exports to the definition.
    pub(crate) fn definition(&self, path: &[String]) -> Option<Place> {
        self.definition_within(path, RE_EXPORTS)
    }

    fn definition_within(&self, path: &[String], depth: usize) -> Option<Place> {
        let mut module = Vec::new();
        for (at, name) in path.iter().enumerate() {
            let here = self.get(&module)?;
            let import = here.import(name);
            let is_last = at + 1 == path.len();
            let is_value = is_last && (import.is_some() || here.items.contains(name));
            if here.children.contains(name) && !is_value {
                module.push(name.clone());
                continue;
            }
            let Some(import) = import.filter(|_| depth > 0) else {
                return Some(Place {
                    module,
                    is_item: true,
                });
            };
            let mut target = self.absolute(&module, &import.path)?;
            target.extend_from_slice(&path[at + 1..]);
            return self.definition_within(&target, depth - 1);
        }
        Some(Place {
            module,
            is_item: false,
        })
    }
}

/// The place in a file that items are read from.
struct FilePart<'a> {
    source: &'a RustSource,
    file: &'a str,
    /// Where the files of its modules are.
    folder: String,
}

/// `a` for `a.rs` and for `a/lib.rs`.
fn folder_of_children(file: &str) -> String {
    let (folder, name) = file.rsplit_once('/').unwrap_or_default();
    match name {
        "lib.rs" | "main.rs" => folder.to_owned(),
        _ => file.trim_end_matches(".rs").to_owned(),
    }
}

fn joined(path: &[String], name: &str) -> Names {
    let mut path = path.to_vec();
    path.push(name.to_owned());
    path
}

impl Module {
    fn import(&self, name: &str) -> Option<&Import> {
        self.imports.iter().find(|import| import.name == name)
    }

    /// The imports that the module itself uses: a re-export is not one.
    pub(crate) fn used_imports(&self) -> impl Iterator<Item = &Import> {
        let is_used = |import: &&Import| !import.is_public || self.words.contains(&import.name);
        self.imports.iter().filter(is_used)
    }

    fn add_item(&mut self, item: &syn::Item, source: &RustSource) {
        let mut uses = UseItems::default();
        uses.visit_item(item);
        for item in uses.found {
            if !source.is_test_line(item.span().start().line) {
                self.add_import(item);
            }
        }
        if matches!(item, syn::Item::Use(_)) {
            return;
        }
        self.items.extend(item_name(item));
        let tokens = item.to_token_stream();
        let is_tested = |line| source.is_test_line(line);
        let words = tokens::free_words(&tokens).into_iter();
        let words = words.filter(|word| !is_tested(word.line));
        self.words.extend(words.map(|word| word.what));
        let paths = tokens::paths(&tokens).into_iter();
        let paths = paths.filter(|path| !is_tested(path.line));
        self.paths.extend(paths.map(|path| Spot {
            what: path.what.split("::").map(str::to_owned).collect(),
            line: path.line,
        }));
    }

    fn add_import(&mut self, item: &syn::ItemUse) {
        let is_public = !matches!(item.vis, syn::Visibility::Inherited);
        let mut branches = Vec::new();
        collect_branches(&item.tree, Vec::new(), &mut branches);
        for (name, path) in branches {
            self.imports.push(Import {
                line: name.line,
                name: name.what,
                path,
                is_public,
            });
        }
    }
}

/// The name that an item defines.
fn item_name(item: &syn::Item) -> Option<String> {
    let name = match item {
        syn::Item::Const(item) => &item.ident,
        syn::Item::Enum(item) => &item.ident,
        syn::Item::Fn(item) => &item.sig.ident,
        syn::Item::Macro(item) => match &item.ident {
            Some(name) => name,
            None => return declared_enum(&item.mac),
        },
        syn::Item::Static(item) => &item.ident,
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        syn::Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// The enumeration that a call of `isotherm_model::variant_words` declares.
fn declared_enum(call: &syn::Macro) -> Option<String> {
    let name = &call.path.segments.last()?.ident;
    let item = (name == "variant_words").then(|| call.parse_body::<syn::ItemEnum>());
    Some(item?.ok()?.ident.to_string())
}

/// Every `use` declaration below an item, those in function bodies included.
#[derive(Default)]
struct UseItems<'ast> {
    found: Vec<&'ast syn::ItemUse>,
}

impl<'ast> Visit<'ast> for UseItems<'ast> {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.found.push(item);
        visit::visit_item_use(self, item);
    }
}

/// Writes out a `use` tree: the name in scope and the path of each branch.
fn collect_branches(tree: &syn::UseTree, mut path: Names, found: &mut Vec<(Spot<String>, Names)>) {
    let spot = |what: String| Spot {
        what,
        line: tree.span().start().line,
    };
    match tree {
        syn::UseTree::Path(part) => {
            path.push(part.ident.to_string());
            collect_branches(&part.tree, path, found);
        }
        syn::UseTree::Group(group) => {
            for branch in &group.items {
                collect_branches(branch, path.clone(), found);
            }
        }
        syn::UseTree::Name(name) if name.ident == "self" => {
            let module = path.last().cloned().unwrap_or_default();
            found.push((spot(module), path));
        }
        syn::UseTree::Name(name) => {
            path.push(name.ident.to_string());
            found.push((spot(name.ident.to_string()), path));
        }
        syn::UseTree::Rename(rename) => {
            path.push(rename.ident.to_string());
            found.push((spot(rename.rename.to_string()), path));
        }
        syn::UseTree::Glob(_) => found.push((spot("*".to_owned()), path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(b: &str, written: &str) -> Option<String> {
        let repository = Repository::of(&[
            ("crates/a/src/lib.rs", "mod b;\nmod c;\npub use c::d::T;\n"),
            ("crates/a/src/b.rs", b),
            (
                "crates/a/src/c.rs",
                "mod d;\npub use d::T as U;\npub use std::io;\n",
            ),
            ("crates/a/src/c/d.rs", "pub use super::V;\n"),
        ]);
        let modules = Modules::read(&repository, "crates/a/src/lib.rs");
        let written: Names = written.split("::").map(str::to_owned).collect();
        let place = modules.place(&["b".to_owned()], &written)?;
        let kind = if place.is_item { "in" } else { "is" };
        Some(format!("{kind} {}", place.module.join("::")))
    }

    #[test]
    fn a_path_leads_through_imports_and_re_exports_to_the_definition() {
        let is = |b, written, place_wanted: &str| {
            assert_eq!(
                place(b, written).as_deref(),
                Some(place_wanted),
                "{b} {written}"
            );
        };
        is("", "crate::T", "in c::d");
        is("", "super::c::U::new", "in c::d");
        is("", "crate::c::d", "is c::d");
        is("use crate::c::{self as e, d};", "e::U", "in c::d");
        is("fn f() { use crate::c::d; }", "d::T", "in c::d");
        is("mod part {}", "part::f", "in b::part");
        is("", "crate::c::d::V", "in c");
    }

    #[test]
    fn a_path_out_of_the_crate_leads_nowhere() {
        assert_eq!(place("use std::fmt;", "fmt::Display"), None);
        assert_eq!(place("", "crate::c::io::Error"), None);
        assert_eq!(place("use b::b;", "b::f"), None);
    }

    #[test]
    fn a_name_that_is_only_passed_on_is_no_use() {
        let used = |code: &str| {
            let text = format!("pub use d::f;\nuse d::g;\n{code}");
            let repository = Repository::of(&[("crates/a/src/lib.rs", &text)]);
            let modules = Modules::read(&repository, "crates/a/src/lib.rs");
            let root = modules.get(&[]).expect("the root");
            root.used_imports().count()
        };
        assert_eq!(used("fn h() { self.f(d::f) }"), 1);
        assert_eq!(used("fn h() { f() }"), 2);
        assert_eq!(used("#[cfg(test)]\nfn h() { f() }"), 1);
    }

    #[test]
    fn an_enumeration_with_words_is_an_item_as_any_other() {
        let text = "isotherm_model::variant_words! {\n/// E.\n#[derive(Clone)]\npub(crate) enum E {\n\
                    /// A.\n#[default]\nA = \"a\",\n}\n}\nenum F {}\nother! { enum G {} }";
        let repository = Repository::of(&[("crates/a/src/lib.rs", text)]);
        let modules = Modules::read(&repository, "crates/a/src/lib.rs");
        let root = modules.get(&[]).expect("the root");
        assert_eq!(Vec::from_iter(&root.items), ["E", "F"]);
    }
}
