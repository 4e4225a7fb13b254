//! `Modules` has the files of a plan's callers and variables: it finds those that were rebuilt, and where the callers, the variables and
//! the sites that the compiler named are in them now.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use isotherm_model::calls::{Call, Callee, FunctionCalls, MatchedBy};
use isotherm_model::plan::Plan;
use isotherm_model::site::{Frame, SiteId};
use isotherm_pipeline::{MatchedCall, matched_calls, same_function};
use isotherm_symbols::resolver::build_id;
use isotherm_symbols::{calls, cloned_contexts, compiled_sites, static_data};

/// A module as frames name it: path and build-id.
type Key = (Arc<str>, Option<Arc<str>>);

/// The current state of a plan's modules.
pub(super) struct Modules {
    changed: BTreeMap<Key, Changed>,
    /// Sites and contexts that the compiler named, of all modules.
    described: BTreeSet<SiteId>,
}

/// A module that was rebuilt.
struct Changed {
    path: PathBuf,
    build_id: Option<Arc<str>>,
    /// Its calls by the return addresses in the former build.
    matched: BTreeMap<u64, MatchedCall>,
    /// The sites that the compiler named, by their locations in the former build.
    described: BTreeMap<u64, (SiteId, MatchedBy)>,
    has_functions: bool,
}

/// Function and file, as frames have them.
type Function = (String, Option<String>);

impl Modules {
    /// Reads each module of the plan; `program` is the one to run.
    pub(super) fn read(plan: &Plan, program: &Path) -> Self {
        let program = program
            .canonicalize()
            .unwrap_or_else(|_| program.to_owned());
        // Source files of an interpreter are no modules: their frames are named by functions and lines, in each version of the file.
        let frames = plan.frames.values().flatten();
        let keys: BTreeSet<Key> = frames.filter(|it| !it.is_source()).map(key).collect();
        let mut modules = Self {
            changed: BTreeMap::new(),
            described: BTreeSet::new(),
        };
        for key in keys {
            let Some(path) = path_now(&key.0, plan, &program) else {
                continue;
            };
            let records = compiled_sites::read(&path).unwrap_or_default();
            let contexts = cloned_contexts::read(&path);
            modules
                .described
                .extend(contexts.all(&records).map(|context| context.id));
            modules
                .described
                .extend(records.values().map(|site| site.id));
            let now = build_id(&path);
            // The runtime keeps 32 bytes of a build-id.
            let is_same = match (&key.1, &now) {
                (Some(former), Some(now)) => now.starts_with(&**former),
                _ => false,
            };
            if !is_same {
                let changed = Changed::read(plan, &key, path, now, &records);
                modules.changed.insert(key, changed);
            }
        }
        modules
    }

    /// The calls in this build for a caller: several if the compiler duplicated the call. `None` if there is none, or others look the same.
    pub(super) fn places(&self, frame: &Frame) -> Option<(Vec<Frame>, MatchedBy)> {
        let Some(changed) = self.changed.get(&key(frame)) else {
            return Some((vec![frame.clone()], MatchedBy::Name));
        };
        let matched = changed.matched.get(&frame.offset)?;
        let place = |offset: &u64| changed.place(frame, *offset);
        Some((matched.offsets.iter().map(place).collect(), matched.by))
    }

    /// The place in this build of a variable of static storage, which is found again by its name.
    pub(super) fn variable(&self, frame: &Frame) -> Option<(Frame, MatchedBy)> {
        let Some(changed) = self.changed.get(&key(frame)) else {
            return Some((frame.clone(), MatchedBy::Name));
        };
        let label = frame.function.as_ref()?;
        let objects = static_data::read(&changed.path);
        let mut named = objects.iter().filter(|object| object.label == *label);
        let name = named.next()?.name;
        // Several objects can have one label: variables of several files, or the rests of several segments.
        let is_alone = named.all(|object| object.name == name);
        is_alone.then(|| (changed.place(frame, name), MatchedBy::Variable))
    }

    /// The name in this build of a site that the compiler named.
    pub(super) fn described(&self, site: SiteId, frames: &[Frame]) -> Option<(SiteId, MatchedBy)> {
        let changed = frames
            .first()
            .and_then(|frame| self.changed.get(&key(frame)));
        if changed.is_none() || self.described.contains(&site) {
            return Some((site, MatchedBy::Name));
        }
        // The contexts of a site differ by calls that have no order.
        let [frame] = frames else {
            return None;
        };
        changed?.described.get(&frame.offset).copied()
    }

    /// The modules that were rebuilt.
    pub(super) fn changed(&self) -> Vec<PathBuf> {
        self.changed
            .values()
            .map(|module| module.path.clone())
            .collect()
    }

    /// The rebuilt modules without any of the functions that the plan names.
    pub(super) fn unknown(&self) -> Vec<PathBuf> {
        let without = self.changed.values().filter(|module| !module.has_functions);
        without.map(|module| module.path.clone()).collect()
    }
}

fn key(frame: &Frame) -> Key {
    (frame.module.clone(), frame.build_id.clone())
}

/// The current path of a module of the plan: the program's new name, or the same path for all others.
fn path_now(module: &str, plan: &Plan, program: &Path) -> Option<PathBuf> {
    let name = |path: &str| Path::new(path).file_name().map(ToOwned::to_owned);
    let planned = plan.command.first().and_then(|word| name(word));
    let own = name(module).filter(|own| {
        Some(own.as_os_str()) == program.file_name() || Some(own) == planned.as_ref()
    });
    let path = match own {
        Some(_) => program.to_owned(),
        None => PathBuf::from(module),
    };
    path.is_file().then_some(path)
}

impl Changed {
    /// The frame at this place of the module.
    fn place(&self, frame: &Frame, offset: u64) -> Frame {
        Frame {
            module: self.path.display().to_string().into(),
            build_id: self.build_id.clone(),
            offset,
            ..frame.clone()
        }
    }

    fn read(
        plan: &Plan,
        key: &Key,
        path: PathBuf,
        build_id: Option<String>,
        records: &BTreeMap<u64, compiled_sites::CompiledSite>,
    ) -> Self {
        let contexts = plan.frames.values().map(Vec::as_slice);
        let is_here = |frame: &Frame| (self::key(frame) == *key).then_some(());
        let former = FunctionCalls::of_contexts(contexts, is_here);
        let wanted: BTreeSet<&str> = former.keys().map(|(_, name, _)| *name).collect();
        let now = calls::of_functions(&path, &wanted);
        let named = described_functions(records);
        let mut changed = Self {
            path,
            build_id: build_id.map(Into::into),
            matched: BTreeMap::new(),
            described: BTreeMap::new(),
            has_functions: !now.is_empty() || !named.is_empty(),
        };
        for function in former.values() {
            if let Some(now) = same_function(function, &now) {
                changed.matched.extend(matched_calls(function, now));
            }
            if let Some(now) = same_function(function, &named) {
                let found = matched_calls(function, now).into_iter();
                changed
                    .described
                    .extend(found.filter_map(|(offset, found)| {
                        let [record] = found.offsets.as_slice() else {
                            return None;
                        };
                        Some((offset, (records.get(record)?.id, found.by)))
                    }));
            }
        }
        changed
    }
}

/// The sites that the compiler named, by function.
fn described_functions(
    records: &BTreeMap<u64, compiled_sites::CompiledSite>,
) -> Vec<FunctionCalls> {
    let mut functions = BTreeMap::<Function, FunctionCalls>::new();
    for (address, site) in records {
        let function = (site.function.clone(), Some(site.path.clone()));
        let entry = functions
            .entry(function)
            .or_insert_with_key(|(function, file)| FunctionCalls {
                function: function.clone(),
                file: file.clone(),
                ..FunctionCalls::default()
            });
        entry.calls.push(Call {
            offset: *address,
            line: site.line,
            column: site.column,
            callee: Callee::Allocation,
            variable: None,
        });
    }
    functions.into_values().collect()
}
