//! Pairs the sites of one profile with those of another, which may be of another build or of another depth of contexts, for `isotherm
//! diff`. A pair has all sites of both profiles that may be the same place of the source, so that none is guessed or counted twice; a site
//! that is gone or new is a pair with one side empty.
//!
//! ```text
//! before                                after                                   pair
//! a  malloc < load +0x10 < main +0x90   a  malloc < load +0x10 < main +0x90     same id: by name
//! b  malloc < grow +0x40 < main +0xa0   x  malloc < grow +0x48 < main +0xb0     each call by matched_calls()
//! c  malloc < init +0x20                                                        gone
//!                                       y  malloc < save +0x70                  new
//! ```
//!
//! Only the profiles are read, no program: the calls of a function are those that the sites of a profile went through. A call that could be
//! several others matches all of them, and sites that are joined by such matches are one pair, whose numbers are sums. The program itself
//! may have another file name in the other profile; a library another version.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use isotherm_model::calls::{Callee, FunctionCalls, MatchedBy};
use isotherm_model::profile::Profile;
use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
use isotherm_model::site_pair::SitePair;

use crate::rebuilt::{matched_calls, same_function};

/// Most contexts that are looked up for one site; with more it counts as not found.
const CONTEXTS_MAX: usize = 64;

/// Name of a module that is the same in both builds.
type ModuleName = Arc<str>;

/// A call in a module, by its return address.
type Place = (ModuleName, u64);

/// Sites by kind and callers.
type Contexts = HashMap<(SiteKind, Vec<Place>), Vec<SiteId>>;

/// Sites of static data by the module and the name of the variable.
type Variables = HashMap<(ModuleName, String), Vec<SiteId>>;

/// Pairs the sites of two profiles: each site is in exactly one pair, in the order of the earlier profile's sites; new ones follow.
#[must_use]
pub fn site_pairs(before: &Profile, after: &Profile) -> Vec<SitePair> {
    let depth = common_depth(before, after);
    let (former, now) = (Side::new(before, depth), Side::new(after, depth));
    let matches = CallMatches::new(&former, &now);
    let ids: BTreeSet<SiteId> = after.sites.iter().map(|site| site.id).collect();
    let contexts = now.by_context();
    let variables = (former.variables(), now.variables());
    let mut links = Vec::new();
    for (at, site) in before.sites.iter().enumerate() {
        // The id is a hash of the frames, and so holds for profiles of one depth only.
        let same = ids.contains(&site.id) && (is_named_alike(site) || depth.is_same);
        let found = match site.kind {
            _ if same => vec![(site.id, MatchedBy::Name)],
            SiteKind::Static => same_variable(&former, site, &variables),
            SiteKind::Heap | SiteKind::Mapping | SiteKind::Described => {
                matches.sites(&former, site, &contexts)
            }
            SiteKind::Named
            | SiteKind::Java
            | SiteKind::Region
            | SiteKind::Shared
            | SiteKind::Unattributed => Vec::new(),
        };
        links.extend(found.into_iter().map(|(id, by)| (at, id, by)));
    }
    joined(before, after, &links)
}

/// True for a site whose name does not depend on its calling context.
const fn is_named_alike(site: &Site) -> bool {
    matches!(
        site.kind,
        SiteKind::Named
            | SiteKind::Java
            | SiteKind::Region
            | SiteKind::Static
            | SiteKind::Described
            | SiteKind::Shared
            | SiteKind::Unattributed
    )
}

/// Callers that both profiles recorded.
#[derive(Clone, Copy)]
struct Depth {
    callers: usize,
    is_same: bool,
}

fn common_depth(before: &Profile, after: &Profile) -> Depth {
    let deepest = |profile: &Profile| match profile.meta.depth {
        // An imported or damaged profile does not record its depth.
        0 => usize::MAX,
        depth => depth as usize,
    };
    let (before, after) = (deepest(before), deepest(after));
    Depth {
        // Contexts of Python programs have more parts than the depth says.
        callers: match before == after {
            true => usize::MAX,
            false => before.min(after),
        },
        is_same: before == after,
    }
}

/// One of the two profiles.
struct Side<'a> {
    profile: &'a Profile,
    depth: usize,
    /// Names of the modules, by their paths.
    modules: HashMap<Arc<str>, ModuleName>,
}

impl<'a> Side<'a> {
    fn new(profile: &'a Profile, depth: Depth) -> Self {
        let own = profile.meta.command.first();
        let own = own.map(|path| file_name(path)).unwrap_or_default();
        let frames = profile.sites.iter().flat_map(|site| site.frames.iter());
        let mut modules = HashMap::new();
        for frame in frames {
            if !modules.contains_key(&frame.module) {
                let name = module_name(&frame.module, own);
                modules.insert(Arc::clone(&frame.module), name);
            }
        }
        Self {
            profile,
            depth: depth.callers,
            modules,
        }
    }

    /// The callers that both profiles have.
    fn frames<'b>(&self, site: &'b Site) -> &'b [Frame] {
        &site.frames[..site.frames.len().min(self.depth)]
    }

    fn module(&self, frame: &Frame) -> ModuleName {
        let known = self.modules.get(&frame.module);
        known.map_or_else(|| Arc::clone(&frame.module), Arc::clone)
    }

    fn place(&self, frame: &Frame) -> Place {
        (self.module(frame), frame.offset)
    }

    fn by_context(&self) -> Contexts {
        let mut sites = Contexts::new();
        for site in &self.profile.sites {
            let frames = self.frames(site).iter();
            let context: Vec<Place> = frames.map(|frame| self.place(frame)).collect();
            if !context.is_empty() {
                sites.entry((site.kind, context)).or_default().push(site.id);
            }
        }
        sites
    }

    fn variables(&self) -> Variables {
        let mut sites = Variables::new();
        let all = self.profile.sites.iter();
        for site in all.filter(|site| site.kind == SiteKind::Static) {
            if let Some(name) = self.variable(site) {
                sites.entry(name).or_default().push(site.id);
            }
        }
        sites
    }

    fn variable(&self, site: &Site) -> Option<(ModuleName, String)> {
        let frame = site.frames.first()?;
        Some((self.module(frame), frame.function.clone()?))
    }

    /// The calls that sites of this profile went through, by module and function.
    fn functions(&self) -> BTreeMap<ModuleName, Vec<FunctionCalls>> {
        let is_named = |site: &&Site| {
            matches!(
                site.kind,
                SiteKind::Static | SiteKind::Named | SiteKind::Region
            )
        };
        let sites = self.profile.sites.iter().filter(|site| !is_named(site));
        let contexts = sites.map(|site| self.frames(site));
        let functions = FunctionCalls::of_contexts(contexts, |frame| Some(self.module(frame)));
        let mut modules = BTreeMap::<ModuleName, Vec<FunctionCalls>>::new();
        for ((module, ..), mut function) in functions {
            // A call is listed once for each site that went through it.
            function.calls.sort_by_key(|call| call.offset);
            function.calls.dedup_by_key(|call| call.offset);
            modules.entry(module).or_default().push(function);
        }
        modules
    }

    /// The builds of a module.
    fn builds(&self) -> BTreeSet<(ModuleName, Arc<str>)> {
        let frames = self.profile.sites.iter();
        let frames = frames.flat_map(|site| site.frames.iter());
        frames
            .filter_map(|frame| Some((self.module(frame), frame.build_id.clone()?)))
            .collect()
    }
}

/// True for a function whose sites all went through its only call, such as `_start`, which has no lines: its order proves nothing.
fn is_only_call(function: &FunctionCalls) -> bool {
    matches!(function.calls.as_slice(), [call] if call.callee != Callee::Allocation)
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Empty for the program itself, whose file may have another name in another build; else the file name, without the version of a library.
fn module_name(path: &str, own: &str) -> ModuleName {
    let name = file_name(path);
    if name == own {
        return "".into();
    }
    match name.split_once(".so.") {
        Some((library, version)) if version.starts_with(|c: char| c.is_ascii_digit()) => {
            library.into()
        }
        _ => name.strip_suffix(".so").unwrap_or(name).into(),
    }
}

/// The calls of the later profile for those of the earlier one.
struct CallMatches {
    /// Modules that have the same build in both profiles.
    same: BTreeSet<(ModuleName, Arc<str>)>,
    calls: HashMap<Place, (Vec<u64>, MatchedBy)>,
}

impl CallMatches {
    fn new(former: &Side<'_>, now: &Side<'_>) -> Self {
        let later = now.functions();
        let mut calls = HashMap::new();
        for (module, functions) in former.functions() {
            let Some(candidates) = later.get(&module) else {
                continue;
            };
            for function in &functions {
                let Some(same) = same_function(function, candidates) else {
                    continue;
                };
                let is_only = is_only_call(function) && is_only_call(same);
                for (offset, found) in matched_calls(function, same) {
                    let by = if is_only { MatchedBy::Line } else { found.by };
                    let found = (found.offsets, by);
                    calls.insert((Arc::clone(&module), offset), found);
                }
            }
        }
        let builds = now.builds();
        Self {
            same: former.builds().intersection(&builds).cloned().collect(),
            calls,
        }
    }

    /// The places of a caller in the later profile.
    fn places(&self, former: &Side<'_>, frame: &Frame) -> Option<(Vec<Place>, MatchedBy)> {
        let (module, offset) = former.place(frame);
        let build = frame.build_id.clone().map(|build| (module.clone(), build));
        if build.is_some_and(|build| self.same.contains(&build)) {
            return Some((vec![(module, offset)], MatchedBy::Name));
        }
        let (offsets, by) = self.calls.get(&(Arc::clone(&module), offset))?;
        let place = |offset: &u64| (Arc::clone(&module), *offset);
        Some((offsets.iter().map(place).collect(), *by))
    }

    /// The sites of the later profile whose every caller matches.
    fn sites(
        &self,
        former: &Side<'_>,
        site: &Site,
        contexts: &Contexts,
    ) -> Vec<(SiteId, MatchedBy)> {
        let mut possible = vec![Vec::new()];
        let mut weakest = MatchedBy::Name;
        for frame in former.frames(site) {
            let Some((places, by)) = self.places(former, frame) else {
                return Vec::new();
            };
            weakest = weakest.max(by);
            possible = possible
                .iter()
                .flat_map(|context: &Vec<Place>| {
                    let longer =
                        |place: &Place| [context.as_slice(), std::slice::from_ref(place)].concat();
                    places.iter().map(longer).collect::<Vec<_>>()
                })
                .collect();
            if possible.len() > CONTEXTS_MAX {
                return Vec::new();
            }
        }
        let found = possible.into_iter().filter_map(|context| {
            let sites = contexts.get(&(site.kind, context))?;
            Some(sites.iter().map(move |id| (*id, weakest)))
        });
        found.flatten().collect()
    }
}

/// The variable of the same name, if there is one in each profile: variables of several files may have one name.
fn same_variable(
    former: &Side<'_>,
    site: &Site,
    (before, after): &(Variables, Variables),
) -> Vec<(SiteId, MatchedBy)> {
    let Some(name) = former.variable(site) else {
        return Vec::new();
    };
    match (before.get(&name).map(Vec::as_slice), after.get(&name)) {
        (Some([_]), Some(sites)) if sites.len() == 1 => vec![(sites[0], MatchedBy::Variable)],
        _ => Vec::new(),
    }
}

/// Pairs of all sites that links join, directly or through others. A link is a position in the earlier profile and a site of the later one.
fn joined(
    before: &Profile,
    after: &Profile,
    links: &[(usize, SiteId, MatchedBy)],
) -> Vec<SitePair> {
    let first_new = before.sites.len();
    let ids = after.sites.iter().zip(first_new..);
    let ids: HashMap<SiteId, usize> = ids.map(|(site, at)| (site.id, at)).collect();
    let mut sets = DisjointSets::new(first_new + after.sites.len());
    for (at, id, _) in links {
        if let Some(other) = ids.get(id) {
            sets.join(*at, *other);
        }
    }
    let mut pairs = BTreeMap::<usize, SitePair>::new();
    let both = before.sites.iter().chain(&after.sites).enumerate();
    for (at, site) in both {
        let pair = pairs.entry(sets.first(at)).or_default();
        match at < first_new {
            true => pair.before.push(site.id),
            false => pair.after.push(site.id),
        }
    }
    for (at, _, by) in links {
        if let Some(pair) = pairs.get_mut(&sets.first(*at)) {
            pair.by = pair.by.max(Some(*by));
        }
    }
    pairs.into_values().collect()
}

/// Sets of positions that are joined; each is named by its first position.
struct DisjointSets(Vec<usize>);

impl DisjointSets {
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    fn first(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            // Halves the path, so that long chains stay short.
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.first(a), self.first(b));
        self.0[a.max(b)] = a.min(b);
    }
}

#[cfg(test)]
mod tests;
