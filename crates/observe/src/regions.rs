//! `Regions` turns the memory of a process that ran already into sites, for `isotherm record --pid`, and measures their resident bytes:
//! each mapping is a site by its name, except that small anonymous ones share a site, as do stacks, and small files have none; variables of
//! static storage are sites by their names.
//!
//! ```text
//! mappings   |app r-x|  app rw-  |     |[heap]|    | 64 MiB, no name |  |data.bin|    |[stack]|
//! sites      | file  | hot | cold|     |[heap]|    |   anonymous     |  |  file  |    |stacks |
//! ```
//!
//! The mappings of a process and their resident bytes are read again from time to time, within a part of the observer's time. Between two
//! readings an address counts for the mapping that was there at the first. Memory of the runtime's sites, where a process has the runtime,
//! is no region.

mod names;
mod region;
mod static_regions;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use isotherm_model::batch::{
    AllocatedObject, Extent, MEMORY_MAPS, OBJECT_AT_LEAST, Process, SourceReport,
};
use isotherm_model::movement::AddressRange;
use isotherm_model::site::{Site, SiteId};
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::words::counted;
use isotherm_sys::file_root::FileRoot;
use isotherm_sys::memory_map::{MappedRange, mapped_ranges};

use crate::processes::{has_memory, threads};
use crate::resident::{PageTables, Span};
use crate::tracked::EpochExtents;
use names::RegionNames;
use region::{Region, without};
use static_regions::StaticRegions;

/// A region, and how much of it was resident at most in this epoch.
#[derive(Clone, Debug)]
struct MeasuredRegion {
    region: Region,
    resident: u64,
    /// It was measured in this epoch.
    is_fresh: bool,
}

/// The memory of one process.
#[derive(Debug, Default)]
struct AddressSpace {
    /// The present regions, by address, without overlap.
    regions: Vec<MeasuredRegion>,
    /// Regions that were there earlier in this epoch.
    departed: Vec<MeasuredRegion>,
    /// An address in the stack of each thread that waited when it was looked at.
    stacks: BTreeMap<u32, u64>,
    /// The root of its files; `None` before it is looked for.
    root: Option<FileRoot>,
    /// It has ended; its regions are passed on once more.
    is_over: bool,
}

/// The memory of a process that ran already, and of those that it starts.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    proc_root: PathBuf,
    spaces: BTreeMap<Process, AddressSpace>,
    names: RegionNames,
    statics: StaticRegions,
    known: BTreeSet<SiteId>,
    /// Sites that were not passed on yet.
    new_sites: Vec<Site>,
    new_objects: Vec<AllocatedObject>,
    report: SourceReport,
}

impl Regions {
    /// No process is known yet; they are found under `proc_root` (`/proc`).
    pub(crate) fn new(proc_root: &Path) -> Self {
        Self {
            proc_root: proc_root.to_owned(),
            report: SourceReport::new(
                MEMORY_MAPS,
                "read from outside, some 10 us and 1 us a mapping; with resident-set at most 2 % of the time",
            ),
            ..Self::default()
        }
    }

    /// Reads what a process has mapped, and measures it. `taken` are the ranges that have other owners, sorted and without overlap; `stacks`
    /// are addresses in the stacks of its threads. A process that has ended keeps what it had.
    pub(crate) fn read(&mut self, process: Process, taken: &[Span], stacks: &[u64]) {
        let mut space = self.spaces.remove(&process).unwrap_or_default();
        self.report.taken += 1;
        match self.read_into(&mut space, process.pid, (taken, stacks)) {
            Some(objects) => {
                self.report.usable += 1;
                let objects = objects.into_iter();
                self.new_objects
                    .extend(objects.map(|region| object(process, &region)));
            }
            None => space.is_over = true,
        }
        self.spaces.insert(process, space);
    }

    /// Reads the regions of a process into its space; returns the new data objects. `None` where the process has ended, or ends meanwhile.
    fn read_into(
        &mut self,
        space: &mut AddressSpace,
        pid: u32,
        (taken, stacks): (&[Span], &[u64]),
    ) -> Option<Vec<Region>> {
        let text = std::fs::read(self.proc_root.join(format!("{pid}/maps"))).unwrap_or_default();
        if text.is_empty() || !has_memory(&self.proc_root, pid) {
            return None;
        }
        space.find_stacks(&self.proc_root, pid);
        let root = space.root.take();
        let root = root.unwrap_or_else(|| FileRoot::of_process(&self.proc_root, pid));
        space.root = Some(root);
        let stacks: Vec<u64> = space.stacks.values().chain(stacks).copied().collect();
        let regions = without(self.divided(&text, space, &stacks), taken);
        for site in regions.iter().map(|region| region.site) {
            if self.known.insert(site) {
                let made = self.names.site(site).or_else(|| self.statics.site(site));
                self.new_sites.extend(made);
            }
        }
        let spans: Vec<Span> = regions.iter().map(|it| it.span.clone()).collect();
        let tables = PageTables::open(&self.proc_root, pid);
        let resident = tables.and_then(|tables| tables.resident(&spans, 0));
        let resident = match resident {
            Err(_) if !space.regions.is_empty() => return None,
            resident => resident.unwrap_or_else(|_| vec![0; spans.len()]),
        };
        Some(space.take(regions, &resident))
    }

    /// All regions in the text of a process's mappings, by address.
    fn divided(&mut self, text: &[u8], space: &AddressSpace, stacks: &[u64]) -> Vec<Region> {
        let mappings: Vec<MappedRange<'_>> = mapped_ranges(text).collect();
        let before = space.regions.iter().map(|it| &it.region);
        let named = self.names.regions(&mappings, stacks, before);
        let root = space.root.clone().unwrap_or_default();
        let statics = self.statics.regions(&mappings, &root);
        let spans: Vec<Span> = statics.iter().map(|region| region.span.clone()).collect();
        let mut regions = without(named, &spans);
        regions.extend(statics);
        regions.sort_unstable_by_key(|region| region.span.start);
        regions
    }

    /// Notes that all processes but these have ended.
    pub(crate) fn end_others(&mut self, living: &BTreeSet<Process>) {
        for (process, space) in &mut self.spaces {
            space.is_over |= !living.contains(process);
        }
    }

    /// The regions of all processes at the end of this epoch, and once more of those that ended in it.
    pub(crate) fn extents(&mut self) -> EpochExtents {
        let mut extents = EpochExtents::default();
        for (process, space) in &mut self.spaces {
            let all = |regions: &[MeasuredRegion]| -> Vec<Extent> {
                regions.iter().map(|it| extent(*process, it)).collect()
            };
            extents.live.extend(all(&space.regions));
            extents.departed.extend(all(&space.departed));
            space.departed.clear();
            space
                .regions
                .iter_mut()
                .for_each(|region| region.is_fresh = false);
        }
        self.spaces.retain(|_, space| !space.is_over);
        extents
    }

    /// The sites that are new since the last call.
    pub(crate) fn take_sites(&mut self) -> Vec<Site> {
        std::mem::take(&mut self.new_sites)
    }

    /// The data objects that are new since the last call.
    pub(crate) fn take_objects(&mut self) -> Vec<AllocatedObject> {
        std::mem::take(&mut self.new_objects)
    }

    /// The report on the readings so far.
    pub(crate) fn report(&self) -> SourceReport {
        let mut report = self.report.clone();
        let unread = self.statics.unread();
        if let Some(first) = unread.first() {
            report.warning = format!(
                "{} of the process cannot be read here ({}{}), so the names of that code and of its variables are missing: replaced or removed since the process \
                 started",
                counted(unread.len(), "file"),
                first.display(),
                if unread.len() > 1 { " and others" } else { "" }
            );
        }
        report
    }

    /// Adds to the cost of reading.
    pub(crate) fn add_cost(&mut self, cost: Nanos) {
        self.report.cost += cost;
    }
}

impl AddressSpace {
    /// Finds the stacks of threads that wait: their stack pointers are in a file. Samples give the stack pointers of running threads.
    fn find_stacks(&mut self, proc_root: &Path, pid: u32) {
        let there = threads(proc_root, pid);
        let is_there: BTreeSet<u32> = there.iter().copied().collect();
        self.stacks.retain(|thread, _| is_there.contains(thread));
        for thread in there {
            if self.stacks.contains_key(&thread) {
                continue;
            }
            let path = proc_root.join(format!("{pid}/task/{thread}/syscall"));
            let text = std::fs::read_to_string(path).unwrap_or_default();
            self.stacks
                .extend(waiting_stack(&text).map(|stack| (thread, stack)));
        }
    }

    /// Takes these regions, each with its resident bytes, in place of the former ones; returns the new ones that are data objects.
    fn take(&mut self, regions: Vec<Region>, resident: &[u64]) -> Vec<Region> {
        let before = std::mem::take(&mut self.regions);
        let known = |region: &Region| {
            let at = before.binary_search_by_key(&region.span.start, |it| it.region.span.start);
            at.ok().map(|at| &before[at])
        };
        let is_new = |region: &&Region| known(region).is_none_or(|it| it.region != **region);
        let is_object = |region: &&Region| {
            region.is_object && region.span.end - region.span.start >= OBJECT_AT_LEAST.0
        };
        let objects = regions.iter().filter(is_object).filter(is_new);
        let objects = objects.cloned().collect();
        let measured = regions.iter().zip(resident).map(|(region, now)| {
            let former = known(region).filter(|it| it.is_fresh && it.region.site == region.site);
            MeasuredRegion {
                region: region.clone(),
                resident: former.map_or(*now, |it| it.resident.max(*now)),
                is_fresh: true,
            }
        });
        self.regions = measured.collect();
        let now = &self.regions;
        let is_gone = |old: &MeasuredRegion| {
            let start = old.region.span.start;
            let next = now.partition_point(|it| it.region.span.start <= start);
            let holds = |at: usize| now[at].region.span.contains(&start);
            !next.checked_sub(1).is_some_and(holds)
        };
        self.departed
            .extend(before.into_iter().filter(|old| is_gone(old)));
        objects
    }
}

/// The stack pointer in the text of `/proc/PID/task/TID/syscall`: number and arguments of a system call, stack pointer and instruction
/// pointer. A thread that runs has the text `running`.
fn waiting_stack(text: &str) -> Option<u64> {
    let mut words = text.split_ascii_whitespace().rev();
    let stack = words.nth(1)?.strip_prefix("0x")?;
    u64::from_str_radix(stack, 16).ok()
}

fn object(process: Process, region: &Region) -> AllocatedObject {
    AllocatedObject {
        process,
        site: region.site,
        range: AddressRange::between(region.span.start, region.span.end),
    }
}

fn extent(process: Process, measured: &MeasuredRegion) -> Extent {
    let Region { span, site, .. } = &measured.region;
    Extent {
        process,
        site: *site,
        address: span.start,
        bytes: Bytes(span.end - span.start),
        resident: Bytes(measured.resident),
        tier: None,
    }
}

#[cfg(test)]
mod tests;
