//! [`NamedSites`] finds, for a call stack of source positions, its allocation site in a program that `isotherm-cc` built: `isotherm import`
//! uses it to name the stacks that another tool recorded in another build of the program.
//!
//! ```text
//! malloc's caller, from the inside out          the program's records
//! make    /home/me/app/src/make.c:12:10   -->   src/make.c:12:10, calls malloc
//! load    /home/me/app/src/load.c:40:5    -->   a call around it, where the link separated contexts
//! ```

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use isotherm_model::site::{Frame, SiteId};

use crate::cloned_contexts::{self, Context, ContextCall, Contexts};
use crate::compiled_sites::{self, CompiledSite, CompiledSiteError};
use crate::demangled::{closed, demangled};
use crate::resolver::{SourceCall, build_id};

/// The site of a call stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSite {
    /// Its name.
    pub id: SiteId,
    /// Its frames, as a recording stores them: the records of the site and of the calls around it.
    pub frames: Vec<Frame>,
}

/// The sites of a program that the compiler pass built, by source position.
#[derive(Debug)]
pub struct NamedSites {
    module: Arc<str>,
    build_id: Option<Arc<str>>,
    sites: BTreeMap<u64, CompiledSite>,
    contexts: Contexts,
    /// Addresses of records by line and column.
    by_place: HashMap<(u32, u32), Vec<u64>>,
    /// Contexts by the address of their site's record.
    by_site: HashMap<u64, Vec<Context>>,
}

impl NamedSites {
    /// Reads the sites of a program.
    ///
    /// # Errors
    /// As [`compiled_sites::read`].
    pub fn read(program: &Path) -> Result<Self, CompiledSiteError> {
        let sites = compiled_sites::read(program)?;
        let contexts = cloned_contexts::read(program);
        let module = program.display().to_string();
        Ok(Self::new(&module, build_id(program), sites, contexts))
    }

    fn new(
        module: &str,
        build_id: Option<String>,
        sites: BTreeMap<u64, CompiledSite>,
        contexts: Contexts,
    ) -> Self {
        let mut by_place = HashMap::<_, Vec<u64>>::new();
        for (address, site) in &sites {
            if let Some(place) = site.line.zip(site.column) {
                by_place.entry(place).or_default().push(*address);
            }
        }
        let mut by_site = HashMap::<u64, Vec<Context>>::new();
        for context in contexts.all(&sites) {
            by_site.entry(context.site).or_default().push(context);
        }
        Self {
            module: module.into(),
            build_id: build_id.map(Into::into),
            sites,
            contexts,
            by_place,
            by_site,
        }
    }

    /// True where the pass recorded no site of the program.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// The site of a call stack, from the inside out: the innermost recorded call, or the call of a wrapper
    /// around it, with the longest matching context. `None` where no call is a site.
    #[must_use]
    pub fn find(&self, calls: &[SourceCall]) -> Option<NamedSite> {
        let mut found = (0..calls.len()).find(|&at| self.record(calls, at).is_some())?;
        let mut record = self.record(calls, found)?;
        // The calls of a wrapper are the sites, not the call in it.
        while let Some(outer) = self.record(calls, found + 1)
            && is_call_of(&outer.callee, &calls[found].function)
        {
            record = outer;
            found += 1;
        }
        let contexts = self
            .by_site
            .get(&record.address)
            .map_or(&[][..], Vec::as_slice);
        let around = &calls[found + 1..];
        let fitting = contexts.iter().filter(|context| self.fits(context, around));
        let context = fitting.max_by_key(|context| context.calls.len());
        let outer = context.map_or(&[][..], |context| &context.calls);
        Some(NamedSite {
            id: context.map_or(record.id, |context| context.id),
            frames: std::iter::once(&record.address)
                .chain(outer)
                .map(|address| self.frame(*address))
                .collect(),
        })
    }

    /// The record of one of the calls. Instances of a template share one position, and the function distinguishes
    /// them; the callee distinguishes calls of one position in one function, and if that is the same, the first
    /// represents them.
    fn record(&self, calls: &[SourceCall], at: usize) -> Option<&CompiledSite> {
        let call = calls.get(at)?;
        let addresses = self.by_place.get(&call.line.zip(call.column)?)?;
        let records = addresses
            .iter()
            .filter_map(|address| self.sites.get(address));
        let mut here: Vec<_> = records
            .filter(|site| is_file(&call.file, &site.path))
            .collect();
        // `lib/make.c` also ends like a `make.c` of the root; the longer path wins.
        let longest = here.iter().map(|site| site.path.len()).max()?;
        here.retain(|site| site.path.len() == longest);
        let first = *here.first()?;
        if here.iter().any(|site| site.function != first.function) {
            here.retain(|site| is_function(&site.function, &call.function));
        }
        let called = at.checked_sub(1).map(|inner| &calls[inner].function);
        let calls_it =
            |site: &&&CompiledSite| called.is_some_and(|name| is_call_of(&site.callee, name));
        here.iter().find(calls_it).or(here.first()).copied()
    }

    fn fits(&self, context: &Context, around: &[SourceCall]) -> bool {
        context.calls.len() <= around.len()
            && context.calls.iter().zip(around).all(|(address, call)| {
                self.contexts.call(*address).is_some_and(|known| {
                    known.line == call.line && is_file(&call.file, &known.path)
                })
            })
    }

    fn frame(&self, address: u64) -> Frame {
        let site = self.sites.get(&address).map(CompiledSite::names);
        let names = site.or_else(|| self.contexts.call(address).map(ContextCall::names));
        Frame {
            module: self.module.clone(),
            build_id: self.build_id.clone(),
            offset: address,
            ..names.unwrap_or_default()
        }
    }
}

/// True if a path of debugging information matches a path below a project's root.
fn is_file(whole: &str, below: &str) -> bool {
    !below.is_empty() && Path::new(whole).ends_with(below)
}

/// True if a function matches the name in a record, which has its parameters or none and never its result:
/// `make<int>` is `int* make<int>(long)`.
fn is_function(shown: &str, whole: &str) -> bool {
    let (shown, whole) = (closed(shown), closed(whole));
    whole.match_indices(&shown).any(|(at, _)| {
        let before = whole[..at].chars().next_back();
        let after = whole[at + shown.len()..].chars().next();
        before.is_none_or(|letter| " *&:".contains(letter))
            && after.is_none_or(|letter| letter == '(')
    })
}

/// True if a function is the callee of a site, for C++ by the mangled name: `_ZL7checkedm` is
/// `checked(unsigned long)`. Debugging information may lack parameters and the namespace.
fn is_call_of(callee: &str, function: &str) -> bool {
    if !callee.starts_with("_Z") {
        return callee == function;
    }
    let shown = demangled(callee);
    is_function(&shown, function) || (!function.contains('(') && is_function(function, &shown))
}

#[cfg(test)]
mod tests {
    use super::{NamedSites, is_call_of, is_function};
    use crate::cloned_contexts::Contexts;
    use crate::compiled_sites::CompiledSite;
    use crate::resolver::SourceCall;
    use isotherm_model::site::SiteId;
    use std::collections::BTreeMap;

    fn record(id: u64, callee: &str, function: &str, place: (u32, u32)) -> CompiledSite {
        CompiledSite {
            id: SiteId(id),
            address: 0x1000 + id,
            callee: callee.to_owned(),
            function: function.to_owned(),
            path: "src/make.c".to_owned(),
            line: Some(place.0),
            column: Some(place.1),
        }
    }

    fn call(function: &str, file: &str, place: (u32, u32)) -> SourceCall {
        SourceCall {
            function: function.to_owned(),
            file: file.to_owned(),
            line: Some(place.0),
            column: Some(place.1),
        }
    }

    fn sites(records: Vec<CompiledSite>) -> NamedSites {
        let records = records.into_iter().map(|site| (site.address, site));
        let records: BTreeMap<u64, CompiledSite> = records.collect();
        NamedSites::new("app", None, records, Contexts::default())
    }

    const FILE: &str = "/home/me/app/src/make.c";

    #[test]
    fn a_stack_is_the_innermost_call_that_is_recorded() {
        let known = sites(vec![record(7, "malloc", "make", (12, 10))]);
        let stack = [
            call("helper", "/usr/include/x.h", (12, 10)),
            call("make", FILE, (12, 10)),
            call("main", FILE, (40, 1)),
        ];
        let found = known.find(&stack).expect("is a site");
        assert_eq!((found.id, found.frames[0].offset), (SiteId(7), 0x1007));
        assert_eq!(found.frames[0].to_string(), "make (make.c:12)");
        for other in [
            call("make", "/home/me/app/xsrc/make.c", (12, 10)),
            call("make", FILE, (12, 11)),
            call("make", FILE, (13, 10)),
            SourceCall::default(),
        ] {
            assert_eq!(known.find(&[other]), None);
        }
    }

    #[test]
    fn files_of_one_name_are_told_apart_by_their_directories() {
        let in_root = CompiledSite {
            path: "make.c".to_owned(),
            ..record(1, "malloc", "make", (12, 10))
        };
        let known = sites(vec![in_root, record(2, "malloc", "make", (12, 10))]);
        let find = |file| {
            known
                .find(&[call("make", file, (12, 10))])
                .map(|site| site.id)
        };
        assert_eq!(find(FILE), Some(SiteId(2)));
        assert_eq!(find("/home/me/app/make.c"), Some(SiteId(1)));
    }

    #[test]
    fn the_calls_of_a_wrapper_are_the_sites_and_not_the_call_in_it() {
        let known = sites(vec![
            record(1, "malloc", "xmalloc", (5, 9)),
            record(2, "xmalloc", "load", (20, 3)),
            record(3, "free_text", "main", (30, 3)),
        ]);
        let inside = call("xmalloc", FILE, (5, 9));
        let stack = [
            inside.clone(),
            call("load", FILE, (20, 3)),
            call("main", FILE, (30, 3)),
        ];
        assert_eq!(known.find(&stack).map(|site| site.id), Some(SiteId(2)));
        let through_a_pointer = [inside, call("main", FILE, (30, 3))];
        assert_eq!(
            known.find(&through_a_pointer).map(|site| site.id),
            Some(SiteId(1))
        );
    }

    #[test]
    fn a_wrapper_of_cxx_is_known_by_the_linkers_name() {
        assert!(is_call_of("_ZL7checkedm", "checked(unsigned long)"));
        assert!(is_call_of(
            "_ZN5space4makeIiEEPT_m",
            "int* space::make<int>(unsigned long)"
        ));
        assert!(is_call_of("_ZN5space4makeIiEEPT_m", "make<int>"));
        assert!(is_call_of("xmalloc", "xmalloc"));
        assert!(!is_call_of("_ZL7checkedm", "unchecked(unsigned long)"));
        assert!(!is_call_of("xmalloc", "malloc"));
    }

    #[test]
    fn calls_of_one_place_are_told_apart_by_what_they_call() {
        let known = sites(vec![
            record(1, "_ZN4textC2EPKc", "load", (5, 9)),
            record(2, "_ZN4list4pushE4text", "load", (5, 9)),
        ]);
        let find = |inner| {
            let stack = [
                call(inner, "/usr/include/x.h", (1, 1)),
                call("load", FILE, (5, 9)),
            ];
            known.find(&stack).map(|site| site.id)
        };
        assert_eq!(find("text::text(char const*)"), Some(SiteId(1)));
        assert_eq!(find("list::push(text)"), Some(SiteId(2)));
        assert_eq!(find("other()"), Some(SiteId(1)));
    }

    #[test]
    fn instances_of_a_template_are_told_apart_by_their_functions_or_not_named() {
        let known = sites(vec![
            record(1, "operator new", "make<int>", (5, 9)),
            record(2, "operator new", "make<long>", (5, 9)),
        ]);
        let find = |function| {
            known
                .find(&[call(function, FILE, (5, 9))])
                .map(|site| site.id)
        };
        assert_eq!(find("long* make<long>(int)"), Some(SiteId(2)));
        assert_eq!(find("space::make<int>()"), Some(SiteId(1)));
        assert_eq!(find("long* make<short>()"), None);
        let shown = "list<int, std::allocator<int>> make<int>()";
        assert!(is_function(
            shown,
            "list<int, std::allocator<int> > make<int>()"
        ));
        assert_eq!(find("make<long>::inner()"), None);
    }
}
