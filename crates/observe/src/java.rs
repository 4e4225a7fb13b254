//! [`JavaHeaps`] follows the Java virtual machines of a live run by the files that Isotherm's agents in them write: it attributes the
//! sampled accesses in their heaps to allocation sites, by the live objects that the agent has sampled, and passes on the accesses that the
//! agent itself has counted at each site, and the sites with the bytes that they hold.
//!
//! ```text
//! agent's file ---> sites, sampled objects, classes, compiled code --+
//! /proc/pid/mem --> header of the object that was accessed ----------+--> place of each sample: a site's range
//! timer samples --> data address, registers of its operand ----------+
//! ```
//!
//! Objects of many sites share a page and move, so a site has no addresses of its own. It gets a *range* beyond all addresses of
//! programs instead (`RANGES`), which is an extent like any other: as long as the most bytes it ever held, resident as far as it
//! holds bytes now. An access to one of its objects counts in that range. The bytes that sites hold are subtracted from the
//! resident bytes of the heap itself: free room and objects that no sample stands for remain.
//!
//! Objects move while the collector works. A sample is attributed only between collections: samples from before the last one that are
//! read after it are counted as late, and stay with the heap as a whole. So the tool reads often ([`READ_EVERY`]).

mod live_objects;
mod site_text;
#[cfg(test)]
mod tests;
mod thread_role;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use isotherm_abi::java::{JavaHeader, JavaSiteRecord};
use isotherm_model::batch::{Count, Extent, JAVA_HEAP, ObservedAccess, Process, SourceReport};
use isotherm_model::site::{Site, SiteId};
use isotherm_model::source_kind::SourceKind;
use isotherm_model::units::Bytes;
use isotherm_session::{JavaFile, SessionError, parse_java_name};

use crate::processes::has_memory;
use crate::source::AccessList;
use live_objects::{FoundSite, LiveObjects};
use site_text::ParsedSite;
use thread_role::ThreadRole;

/// First address of the sites' ranges: no program has such addresses, on x86-64 and on aarch64.
const RANGES: u64 = 1 << 56;
/// Length of a range, 1 TiB: more than a heap has.
const RANGE_SHIFT: u32 = 40;
/// Time between two readings of the samples of a program with a Java heap; most programs collect garbage less often.
pub const READ_EVERY: Duration = Duration::from_millis(10);
/// Longest distance of an accessed byte from the begin of its object: longer objects are sampled themselves.
const OBJECT_AT_MOST: u64 = 1 << 32;
/// The cost of counting to the program.
const COUNTED_COST: &str = "the program is interpreted, and every access to a field calls the agent: some hundred times the run time";
/// Most threads whose role is remembered.
const THREADS_AT_MOST: usize = 1 << 14;

/// A sample of a program with a Java heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeapSample {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) time_ns: u64,
    /// The sampled instruction.
    pub(crate) ip: u64,
    /// The data address; `None` for a sample without one.
    pub(crate) address: Option<u64>,
    /// Where the object may begin; 0 for none.
    pub(crate) bases: [u64; 2],
}

/// One virtual machine: its open files, and what was read from them.
#[derive(Debug)]
struct VirtualMachine {
    file: JavaFile,
    memory: Option<File>,
    state: JavaHeader,
    objects: LiveObjects,
    /// [`JavaHeader::object_changes`] at which these objects were read.
    objects_read: Option<(u64, u64)>,
    classes: HashMap<u64, u32>,
    /// First address and length of compiled code, by address.
    code: BTreeMap<u64, u64>,
    sites: Vec<KnownSite>,
    roles: HashMap<u32, ThreadRole>,
    sums: SampleSums,
    trouble: Option<String>,
    /// It has ended, and its extents were passed on once more.
    is_told: bool,
}

#[derive(Clone, Debug)]
struct KnownSite {
    parsed: ParsedSite,
    /// The agent's counts for the site, their bytes at most the length of a range.
    sums: JavaSiteRecord,
    /// The counted accesses that were passed on.
    passed_on: u64,
}

/// Sums over the samples of a virtual machine.
#[derive(Clone, Copy, Debug, Default)]
struct SampleSums {
    compiled_code: u64,
    collector: u64,
    compiler: u64,
    sampled_object: u64,
    nearest_of_class: u64,
    unknown_object: u64,
    late: u64,
}

/// The virtual machines of a run.
#[derive(Debug, Default)]
pub struct JavaHeaps {
    directory: PathBuf,
    proc_root: PathBuf,
    machines: BTreeMap<u32, VirtualMachine>,
    refused: BTreeMap<u32, String>,
    /// Each site as it was last passed on.
    told: BTreeMap<SiteId, Site>,
    /// The report on accesses that agents count.
    counted: SourceReport,
}

impl JavaHeaps {
    /// Follows the agents' files in a session directory; processes are found under `proc_root` (`/proc`).
    #[must_use]
    pub fn new(directory: &Path, proc_root: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            proc_root: proc_root.to_owned(),
            counted: SourceReport::new(SourceKind::JavaCounts.word(), COUNTED_COST),
            ..Self::default()
        }
    }

    /// True where no process has an agent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.machines.is_empty()
    }

    /// Opens the files of agents that are new.
    pub fn discover(&mut self) {
        // An unreadable directory is reported with the session files.
        let Ok(entries) = std::fs::read_dir(&self.directory) else {
            return;
        };
        for entry in entries.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(parse_java_name) else {
                continue;
            };
            if self.machines.contains_key(&pid) || self.refused.contains_key(&pid) {
                continue;
            }
            match JavaFile::open(&entry.path()) {
                Ok(file) if file.pid() == pid => {
                    let memory = File::open(self.proc_root.join(pid.to_string()).join("mem"));
                    self.machines
                        .insert(pid, VirtualMachine::new(file, memory.ok()));
                }
                Err(SessionError::NotYet) => {}
                Ok(_) => {
                    let why = "it names another process".to_owned();
                    self.refused.insert(pid, why);
                }
                Err(error) => {
                    self.refused.insert(pid, error.to_string());
                }
            }
        }
    }

    /// The address at which each sample counts: an address in the range of its site, or `None` for its own data address.
    pub(crate) fn places(&mut self, samples: &[HeapSample]) -> Vec<Option<u64>> {
        let mut places = vec![None; samples.len()];
        for (pid, machine) in &mut self.machines {
            let of_machine = samples.iter().zip(&mut places);
            let mut of_machine: Vec<_> = of_machine.filter(|(it, _)| it.pid == *pid).collect();
            if of_machine.is_empty() {
                continue;
            }
            let before = machine.sums;
            let found = machine.refresh().and_then(|()| {
                let found = of_machine.iter().map(|(sample, _)| {
                    let role = machine.role(&self.proc_root, sample.tid);
                    machine.place(sample, role)
                });
                let found: Vec<_> = found.collect();
                Ok((found, machine.file.state()?))
            });
            match found {
                Ok((found, after)) if after.collections == machine.state.collections => {
                    for ((_, place), found) in of_machine.iter_mut().zip(found) {
                        **place = found;
                    }
                }
                Ok((found, _)) => {
                    // A collection began meanwhile: the objects that were looked at may have moved.
                    let late = found.iter().flatten().count() as u64;
                    machine.sums = SampleSums {
                        sampled_object: before.sampled_object,
                        nearest_of_class: before.nearest_of_class,
                        late: machine.sums.late + late,
                        ..machine.sums
                    };
                }
                Err(error) => machine.trouble = Some(error.to_string()),
            }
        }
        places
    }

    /// Reads the sums of the sites.
    pub fn read_sites(&mut self) {
        for machine in self.machines.values_mut() {
            if let Err(error) = machine.read_sites() {
                machine.trouble = Some(error.to_string());
            }
        }
    }

    /// Adds the extents of the sites, and subtracts what they hold from the extents of the heap. `process` names the last image of a
    /// pid. The extents of an ended process are added once more, and later only beside its other extents.
    pub fn add_extents(&mut self, live: &mut Vec<Extent>, process: impl Fn(u32) -> Process) {
        for (pid, machine) in &mut self.machines {
            let image = process(*pid);
            if machine.is_told && !has_extent(live, image) {
                continue;
            }
            machine.is_told = !has_memory(&self.proc_root, *pid);
            let held: u64 = machine.sites.iter().map(|site| site.sums.live_bytes).sum();
            take_from_heap(live, image, &machine.state, held);
            for (site, number) in machine.sites.iter().zip(0..) {
                live.push(Extent {
                    process: image,
                    site: site.parsed.site.id,
                    address: range_start(number),
                    bytes: Bytes(site.sums.peak_bytes.max(1)),
                    resident: Bytes(site.sums.live_bytes),
                    tier: None,
                });
            }
        }
    }

    /// The sites that are new or whose numbers changed.
    pub fn take_changed_sites(&mut self) -> Vec<Site> {
        let mut sites = BTreeMap::<SiteId, Site>::new();
        let mut order = Vec::new();
        for known in self.machines.values().flat_map(|machine| &machine.sites) {
            let blank = &known.parsed.site;
            let site = sites.entry(blank.id).or_insert_with(|| {
                order.push(blank.id);
                blank.clone()
            });
            site.allocations = site.allocations.saturating_add(known.sums.allocations);
            site.requested += Bytes(known.sums.bytes);
            site.peak_requested += Bytes(known.sums.peak_bytes);
        }
        let changed = order.into_iter().filter_map(|id| sites.remove(&id));
        let changed = changed.filter(|site| self.told.get(&site.id) != Some(site));
        let changed: Vec<Site> = changed.collect();
        let told = changed.iter().map(|site| (site.id, site.clone()));
        self.told.extend(told);
        changed
    }

    /// Adds the accesses that agents counted since the last call, each at the begin of its site's range.
    pub(crate) fn count_accesses(
        &mut self,
        process: impl Fn(u32) -> Process,
        accesses: &mut AccessList,
    ) {
        let source = SourceKind::JavaCounts;
        for (pid, machine) in &mut self.machines {
            for (site, number) in machine.sites.iter_mut().zip(0..) {
                let counted = site.sums.accesses;
                let new = counted.saturating_sub(std::mem::replace(&mut site.passed_on, counted));
                if new == 0 {
                    continue;
                }
                self.counted.taken = self.counted.taken.saturating_add(new);
                let place = (process(*pid), range_start(number));
                let access = ObservedAccess::at(place, source, (new, source.unit(false)));
                accesses.add(&mut self.counted, new, access);
            }
        }
    }

    /// What Table 3 of the Cross-Layer paper counts, and how many samples were attributed in which way.
    #[must_use]
    pub fn counts(&self) -> Vec<Count> {
        let mut sums = BTreeMap::<&str, u64>::new();
        let mut add = |name, value: u64| {
            let sum = sums.entry(name).or_default();
            *sum = sum.saturating_add(value);
        };
        for machine in self.machines.values() {
            let sites = machine.sites.iter().map(|site| &site.parsed);
            let places: BTreeSet<_> = sites
                .clone()
                .map(|site| (&site.method, site.bytecode_index))
                .collect();
            let methods: BTreeSet<_> = places.iter().map(|(method, _)| method).collect();
            let types: BTreeSet<_> = sites.map(|site| &site.class).collect();
            let state = &machine.state;
            add("java_allocation_sites", places.len() as u64);
            add("java_allocating_methods", methods.len() as u64);
            add("java_types", types.len() as u64);
            add("java_compiled_methods", state.compiled_methods);
            let allocated = machine.sites.iter().map(|site| site.sums.bytes);
            add("java_allocated_bytes", allocated.sum());
            add("java_sampled_objects", state.sampled);
            add("java_unfollowed_objects", state.dropped);
            add("java_collections", state.collections / 2);
            add("java_collecting_ns", state.collecting_ns);
            let sums = &machine.sums;
            add("java_stack_samples", sums.compiled_code);
            add("java_collector_samples", sums.collector);
            add("java_compiler_samples", sums.compiler);
            add("java_samples_of_sampled_objects", sums.sampled_object);
            add("java_samples_by_class", sums.nearest_of_class);
            add("java_samples_of_unknown_objects", sums.unknown_object);
            add("java_late_samples", sums.late);
        }
        sums.into_iter()
            .map(|(name, value)| Count::of_run(name, value))
            .collect()
    }

    /// The report on the objects that agents sampled and, where an agent counts accesses, the report on these; none without an agent.
    pub fn reports(&self) -> impl Iterator<Item = SourceReport> {
        let mut machines = self.machines.values();
        let counts_all = machines.any(|machine| machine.state.counts_all == 1);
        let counted = counts_all.then(|| self.counted.clone());
        self.report().into_iter().chain(counted)
    }

    fn report(&self) -> Option<SourceReport> {
        let mut report = SourceReport::new(
            JAVA_HEAP,
            "a stack walk of about 5 us for each sampled object, one for each 512 KiB that the program allocates if not chosen otherwise",
        );
        for machine in self.machines.values() {
            report.taken += machine.state.sampled;
            report.lost += machine.state.dropped;
        }
        report.usable = report.taken.saturating_sub(report.lost);
        report.warning = self.trouble().unwrap_or_default();
        let is_used = !self.machines.is_empty() || !self.refused.is_empty();
        is_used.then_some(report)
    }

    /// What cannot be used of an agent, and why.
    fn trouble(&self) -> Option<String> {
        let of_machine = |(pid, machine): (&u32, &VirtualMachine)| {
            let no_heap = "its collector's references are no plain addresses (G1, Parallel and Serial have such), so no access is \
                           attributed to a Java site";
            let knows_no_heap = machine.state.heap_start == 0 && machine.state.sampled > 0;
            let why = machine.trouble.as_deref();
            why.or_else(|| knows_no_heap.then_some(no_heap))
                .map(|why| format!("the Java virtual machine {pid}: {why}"))
        };
        let refused = self.refused.iter().next();
        let refused =
            refused.map(|(pid, why)| format!("the file of the Java virtual machine {pid}: {why}"));
        refused.or_else(|| self.machines.iter().find_map(of_machine))
    }
}

impl VirtualMachine {
    fn new(file: JavaFile, memory: Option<File>) -> Self {
        Self {
            file,
            memory,
            state: JavaHeader::default(),
            objects: LiveObjects::default(),
            objects_read: None,
            classes: HashMap::new(),
            code: BTreeMap::new(),
            sites: Vec::new(),
            roles: HashMap::new(),
            sums: SampleSums::default(),
            trouble: None,
            is_told: false,
        }
    }

    /// Reads what changed since the last time.
    fn refresh(&mut self) -> Result<(), SessionError> {
        let former = std::mem::replace(&mut self.state, self.file.state()?);
        let state = &self.state;
        let version = (state.collections, state.object_changes);
        if self.objects_read != Some(version) {
            self.objects = LiveObjects::new(self.file.objects(state)?);
            self.objects_read = Some(version);
        }
        let known = self.classes.len() as u64;
        let classes = self.file.classes(state, known)?;
        self.classes
            .extend(classes.iter().map(|record| (record.word, record.class)));
        // Code that is unloaded stays until other code has its place.
        let code = self.file.code(state, former.methods.used)?;
        let loaded = code.iter().filter(|code| code.bytes > 0);
        self.code
            .extend(loaded.map(|code| (code.start, code.bytes)));
        Ok(())
    }

    /// Reads the sums of the sites.
    fn read_sites(&mut self) -> Result<(), SessionError> {
        self.refresh()?;
        for (number, sums) in self.file.sites(&self.state)?.into_iter().enumerate() {
            let sums = JavaSiteRecord {
                live_bytes: sums.live_bytes.min(1 << RANGE_SHIFT),
                peak_bytes: sums.peak_bytes.min(1 << RANGE_SHIFT),
                ..sums
            };
            match self.sites.get_mut(number) {
                Some(site) => site.sums = sums,
                None => self.sites.push(KnownSite {
                    parsed: site_text::parse(&self.file.text(&sums)?),
                    sums,
                    passed_on: 0,
                }),
            }
        }
        Ok(())
    }

    fn role(&mut self, proc_root: &Path, tid: u32) -> ThreadRole {
        if self.roles.len() >= THREADS_AT_MOST {
            self.roles.clear();
        }
        let comm = || {
            let task = proc_root.join(format!("{}/task/{tid}/comm", self.file.pid()));
            std::fs::read_to_string(task).unwrap_or_default()
        };
        *self
            .roles
            .entry(tid)
            .or_insert_with(|| thread_role::of_name(&comm()))
    }

    /// The address in the range of the sample's site. Counts the sample.
    fn place(&mut self, sample: &HeapSample, role: ThreadRole) -> Option<u64> {
        match role {
            ThreadRole::Collector => self.sums.collector += 1,
            ThreadRole::Compiler => self.sums.compiler += 1,
            ThreadRole::Program => {
                let code = self.code.range(..=sample.ip).next_back();
                let is_compiled = code.is_some_and(|(start, bytes)| sample.ip - start < *bytes);
                self.sums.compiled_code += u64::from(is_compiled);
            }
        }
        let heap = self.state.heap_start..self.state.heap_end;
        let address = sample.address.filter(|it| heap.contains(it))?;
        if role != ThreadRole::Program {
            return None;
        }
        let is_still = self.state.collections.is_multiple_of(2)
            && sample.time_ns > self.state.collection_ended_ns;
        if !is_still {
            self.sums.late += 1;
            return None;
        }
        let found = self.objects.holding(address).or_else(|| {
            let class = self.class_of(address, sample.bases)?;
            self.objects.nearest(class, address)
        });
        let site = match found {
            Some(FoundSite::Sampled(site)) => {
                self.sums.sampled_object += 1;
                site
            }
            Some(FoundSite::OfClass(site)) => {
                self.sums.nearest_of_class += 1;
                site
            }
            None => {
                self.sums.unknown_object += 1;
                return None;
            }
        };
        // Neighbours in the heap stay neighbours in the range.
        let held = self.sites.get(site as usize);
        let room = held.map_or(1, |site| site.sums.peak_bytes.max(1));
        Some(range_start(u64::from(site)) + (address - heap.start) % room)
    }

    /// The class of the object that begins at one of these addresses and may hold the accessed one.
    fn class_of(&self, address: u64, bases: [u64; 2]) -> Option<u32> {
        let is_possible = |base: &u64| {
            *base >= self.state.heap_start
                && base.is_multiple_of(8)
                && *base <= address
                && address - *base < OBJECT_AT_MOST
        };
        let bases = bases.into_iter().filter(is_possible);
        bases.filter_map(|base| self.class_at(base)).next()
    }

    /// The class of an object, by its header; `None` where no object of a sampled class begins.
    fn class_at(&self, base: u64) -> Option<u32> {
        let mut header = [0; 16];
        let memory = self.memory.as_ref()?;
        memory.read_exact_at(&mut header, base).ok()?;
        let [mark, class] = [0, 8].map(|at| {
            let bytes = header[at..at + 8].first_chunk();
            bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
        });
        let class = match self.state.class_word_bytes {
            4 => class & 0xffff_ffff,
            8 => class,
            _ => return None,
        };
        is_mark(mark)
            .then(|| self.classes.get(&class).copied())
            .flatten()
    }
}

/// True for the first word of an object's header outside of a collection: unlocked, or a pointer to a lock. Data that looks like
/// the word of a class rarely has such a word before it.
const fn is_mark(mark: u64) -> bool {
    match mark & 3 {
        1 => true,
        0 | 2 => mark > 1 << 12,
        _ => false,
    }
}

const fn range_start(number: u64) -> u64 {
    RANGES + (number << RANGE_SHIFT)
}

fn has_extent(live: &[Extent], process: Process) -> bool {
    live.iter().any(|extent| extent.process == process)
}

/// Subtracts these bytes from the resident bytes of the heap's own extents, one after the other.
fn take_from_heap(live: &mut [Extent], process: Process, heap: &JavaHeader, bytes: u64) {
    let mut left = Bytes(bytes);
    for extent in live.iter_mut().filter(|it| it.process == process) {
        let end = extent.address.saturating_add(extent.bytes.0);
        let is_heap = extent.address < heap.heap_end && end > heap.heap_start;
        if is_heap {
            let taken = left.min(extent.resident);
            extent.resident = extent.resident.saturating_sub(taken);
            left = left.saturating_sub(taken);
        }
    }
}
