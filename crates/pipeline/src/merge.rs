//! [`merge`] makes one profile of several: those of a parallel program's ranks (MPI processes), each recorded by itself. The numbers of a
//! site, of its code and of the sources are added (resident bytes by epoch, of which its peak is the greatest sum); each process keeps its
//! own heat and extents.
//!
//! A site has the same name in every run of a program, by which its numbers are found.
//! Epochs are treated as if they began together: ranks start together, and an error of a part of an
//! epoch does not matter to a plan. Two machines may use the same process number; one of the
//! processes gets another.
//!
//! ```text
//!            rank 0            rank 1            together
//! site a     100 MiB, 9 hits   120 MiB, 5 hits   220 MiB, 14 hits
//! process    4711              4711              4711 and 4712
//! ```

use std::collections::{BTreeMap, BTreeSet};

use isotherm_model::batch::{Count, Epoch, Process, SourceReport};
use isotherm_model::code_access::CodeAccess;
use isotherm_model::profile::{Ending, EpochSpan, Profile, Resident};
use isotherm_model::site::{Site, SiteId};

/// Why profiles cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// The list is empty.
    #[error("there is no profile to merge")]
    Nothing,
    /// One profile, by its position in the list, was recorded with another setting than the first.
    #[error(
        "profile {} was recorded with another {what} than the first one, so their numbers cannot be \
         added; record all of them with the same flags",
        place + 1
    )]
    Differs {
        /// Position of the profile, from 0.
        place: usize,
        /// The differing setting, as the flag of `isotherm record` that sets it.
        what: &'static str,
    },
}

/// Merges the profiles. Command and machine are those of the first profile, the label of a site is its longest in any of
/// them.
///
/// # Errors
/// The list is empty, or chunks, epochs, contexts, samples, filters of caches or tiers of the profiles differ.
pub fn merge(profiles: &[Profile]) -> Result<Profile, MergeError> {
    let Some(first) = profiles.first() else {
        return Err(MergeError::Nothing);
    };
    for (place, profile) in profiles.iter().enumerate() {
        if let Some(what) = difference(first, profile) {
            return Err(MergeError::Differs { place, what });
        }
    }
    let mut merged = Profile::new(first.meta.clone());
    let started = profiles.iter().map(|profile| &profile.meta.started);
    merged.meta.started = started.min().cloned().unwrap_or_default();
    merged.ending = ending(profiles);
    merged.epochs = epochs(profiles);
    let resident = profiles.iter().flat_map(|profile| &profile.resident);
    merged.resident = Resident::summed(resident.copied());
    merged.sites = sites(profiles, &merged.resident);
    merged.sources = sources(profiles);
    let code = profiles.iter().flat_map(|profile| &profile.code).cloned();
    merged.code = merged_code(code.collect());
    let (mut known, mut run) = (BTreeSet::new(), BTreeMap::<String, u64>::new());
    for profile in profiles {
        let names = Names::new(profile, &known);
        known.extend(names.0.values().copied());
        let heat = profile
            .heat
            .iter()
            .map(|heat| isotherm_model::profile::Heat {
                process: names.of(heat.process),
                ..*heat
            });
        merged.heat.extend(heat);
        let extents = profile.extents.iter();
        let extents = extents.map(|extent| isotherm_model::batch::Extent {
            process: names.of(extent.process),
            ..*extent
        });
        merged.extents.extend(extents);
        for count in &profile.counts {
            match count.process {
                Some(process) => merged.counts.push(Count {
                    process: Some(names.of(process)),
                    ..count.clone()
                }),
                None => {
                    let sum = run.entry(count.name.clone()).or_default();
                    *sum = sum.saturating_add(count.value);
                }
            }
        }
    }
    let whole = run
        .into_iter()
        .map(|(name, value)| Count::of_run(name, value));
    merged.counts.extend(whole);
    merged
        .heat
        .sort_by_key(|heat| (heat.epoch, heat.process, heat.address));
    merged
        .extents
        .sort_by_key(|extent| (extent.process, extent.address));
    Ok(merged)
}

/// The setting that differs and so forbids to add the numbers of two profiles.
fn difference(a: &Profile, b: &Profile) -> Option<&'static str> {
    let (a, b) = (&a.meta, &b.meta);
    let differs = [
        (a.chunk != b.chunk, "--chunk"),
        (a.epoch_length != b.epoch_length, "--epoch"),
        (a.depth != b.depth, "--depth"),
        (
            a.sample_interval != b.sample_interval,
            "--frequency or --source",
        ),
        (a.cache_filter != b.cache_filter, "--cache-filter"),
        (a.emulated != b.emulated, "kind of tiers (emulated or real)"),
    ];
    differs
        .into_iter()
        .find_map(|(differs, what)| differs.then_some(what))
}

/// The first abnormal end, if there is any.
fn ending(profiles: &[Profile]) -> Ending {
    let endings = profiles.iter().map(|profile| profile.ending);
    let mut bad = endings.filter(|ending| *ending != Ending::Exited(0));
    bad.next().unwrap_or(Ending::Exited(0))
}

/// Each epoch that any profile has, with its longest span.
fn epochs(profiles: &[Profile]) -> Vec<EpochSpan> {
    let mut epochs = BTreeMap::<Epoch, EpochSpan>::new();
    for span in profiles.iter().flat_map(|profile| &profile.epochs) {
        let known = epochs.entry(span.epoch).or_insert(*span);
        known.span = known.span.max(span.span);
    }
    epochs.into_values().collect()
}

/// Sites by name, with the sums of their numbers. Peak resident bytes are those of all profiles in
/// one epoch. Peak requested bytes are not recorded by epoch; the sum of the peaks is their bound.
fn sites(profiles: &[Profile], resident: &[Resident]) -> Vec<Site> {
    let mut sites = BTreeMap::<SiteId, Site>::new();
    for site in profiles.iter().flat_map(|profile| &profile.sites) {
        let Some(known) = sites.get_mut(&site.id) else {
            sites.insert(site.id, site.clone());
            continue;
        };
        if known.label().len() < site.label().len() {
            known.frames.clone_from(&site.frames);
        }
        known.allocations = known.allocations.saturating_add(site.allocations);
        known.requested += site.requested;
        known.peak_requested += site.peak_requested;
        known.peak_rss = known.peak_rss.max(site.peak_rss);
        known.first_seen = known.first_seen.min(site.first_seen);
    }
    for resident in resident {
        if let Some(site) = sites.get_mut(&resident.site) {
            site.peak_rss = site.peak_rss.max(resident.bytes);
        }
    }
    let mut order: Vec<(u32, SiteId)> = sites
        .values()
        .map(|site| (site.first_seen, site.id))
        .collect();
    order.sort_unstable();
    for ((_, id), number) in order.into_iter().zip(0..) {
        if let Some(site) = sites.get_mut(&id) {
            site.first_seen = number;
        }
    }
    sites.into_values().collect()
}

/// A row for each site and instruction, by key, with the sums of rows that have the same.
pub(crate) fn merged_code(mut rows: Vec<CodeAccess>) -> Vec<CodeAccess> {
    rows.sort_by(|a, b| a.key().cmp(&b.key()));
    let mut merged: Vec<CodeAccess> = Vec::with_capacity(rows.len());
    for row in rows {
        match merged.last_mut() {
            Some(last) if last.key() == row.key() => {
                last.accesses += row.accesses;
                last.streamed += row.streamed;
                last.served += row.served;
                // The threads are of different processes.
                last.threads = last.threads.saturating_add(row.threads);
                last.walk.merge(&row.walk);
                if last.code.function.is_none() {
                    last.code = row.code;
                }
            }
            _ => merged.push(row),
        }
    }
    merged
}

fn sources(profiles: &[Profile]) -> Vec<SourceReport> {
    let mut sources: Vec<SourceReport> = Vec::new();
    for source in profiles.iter().flat_map(|profile| &profile.sources) {
        let Some(known) = sources.iter_mut().find(|known| known.name == source.name) else {
            sources.push(source.clone());
            continue;
        };
        known.taken = known.taken.saturating_add(source.taken);
        known.usable = known.usable.saturating_add(source.usable);
        known.lost = known.lost.saturating_add(source.lost);
        known.cost += source.cost;
        if known.warning.is_empty() {
            known.warning.clone_from(&source.warning);
        }
    }
    sources
}

/// The new numbers of the processes of one profile.
struct Names(BTreeMap<u32, u32>);

impl Names {
    /// Processes whose number is not taken keep it.
    fn new(profile: &Profile, taken: &BTreeSet<u32>) -> Self {
        let heat = profile.heat.iter().map(|heat| heat.process);
        let extents = profile.extents.iter().map(|extent| extent.process);
        let counts = profile.counts.iter().filter_map(|count| count.process);
        let processes: BTreeSet<u32> = heat
            .chain(extents)
            .chain(counts)
            .map(|one| one.pid)
            .collect();
        let mut used: BTreeSet<u32> = taken.union(&processes).copied().collect();
        let mut names = BTreeMap::new();
        for pid in processes {
            let mut name = pid;
            if taken.contains(&pid) {
                name = (pid..).find(|name| !used.contains(name)).unwrap_or(pid);
                used.insert(name);
            }
            names.insert(pid, name);
        }
        Self(names)
    }

    fn of(&self, process: Process) -> Process {
        Process {
            pid: self.0.get(&process.pid).copied().unwrap_or(process.pid),
            ..process
        }
    }
}

#[cfg(test)]
mod tests;
