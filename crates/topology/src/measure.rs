//! [`measure()`] measures latency, idle and under load, and bandwidth of every pair of a node with processors and a node with memory, as
//! far as this process may use them, for `isotherm tiers --measure`; `speeds` makes the speed of each memory node of the pairs, by which
//! nodes are grouped into tiers. [`page_out()`] measures the costs of swap, for that command and for runs and the daemon with page-out.
//!
//! ```text
//! for each node with memory:   map, prefer the node, touch, query the real node of the pages
//!   for each node with CPUs:     chase   one thread, dependent loads in random order
//!   for each node with CPUs:     stream  1, 2, 4, ... all of its CPUs: read, write, triad
//!   for each node with CPUs:     load    chase again, while its other CPUs read, with less and less pauses
//! swap:                          page_out  out, and back in random order
//! ```
//!
//! Memory is mapped with `MPOL_PREFERRED` and not with `MPOL_BIND`, with which a full node would
//! make the kernel kill a process. Instead the node of its pages is queried, and a node without
//! room is left out with a note. Threads are pinned, one a processor.

mod chase;
mod pair;
mod stream;
mod load;
mod page_out;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use isotherm_model::units::{Bytes, Nanos};
use isotherm_sys::affinity;
use isotherm_sys::node_memory::{HUGE_PAGE, NodeMemory};

pub use page_out::{PageOutCosts, PageOutError, page_out};
pub use pair::{Pair, Rates, TRIALS};

use super::grouping::{Speed, View, figures_in_words};
use super::{limits, nodes};
use crate::{caches, meminfo};

/// The settings of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct MeasureSettings {
    /// Size of the measured memory, for each node; `None` for four times the caches, at least
    /// [`MEMORY_AT_LEAST`].
    pub memory: Option<Bytes>,
    /// Duration of pointer chasing for a pair.
    pub chase: Duration,
    /// Duration of one bandwidth trial; the best of [`TRIALS`] counts.
    pub trial: Duration,
}

impl Default for MeasureSettings {
    fn default() -> Self {
        Self {
            memory: None,
            chase: Duration::from_millis(300),
            trial: Duration::from_millis(50),
        }
    }
}

/// A note reports that threads waited for processors if they ran for less than this share of their
/// time.
const RAN_AT_LEAST: f64 = 0.9;

/// Smallest size of the measured memory.
pub const MEMORY_AT_LEAST: Bytes = Bytes(64 << 20);
/// The working set in multiples of the caches: a cyclic order of accesses then has almost no cache
/// hits.
const TIMES_THE_CACHES: u64 = 4;
/// At most one part in this number of a node's available memory is used, so that other programs go
/// on.
const PART_OF_AVAILABLE: u64 = 4;

/// The current step of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasureStep {
    /// Steps done.
    pub done: usize,
    /// Total number of steps.
    pub total: usize,
    /// Node of the processors.
    pub cpu_node: u32,
    /// Node of the memory.
    pub memory_node: u32,
    /// What is measured of the pair.
    pub figure: MeasuredFigure,
}

/// What a step measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasuredFigure {
    /// The latency of idle memory.
    Latency,
    /// The bandwidth of this number of threads.
    Bandwidth(u32),
    /// The latency as the load rises.
    LoadedLatency,
}

/// The result and the cost of a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// The pairs, by memory node, then by node of processors.
    pub pairs: Vec<Pair>,
    /// Failed measurements, and conditions that affect the figures.
    pub notes: Vec<String>,
    /// Most memory used at one time.
    pub memory: Bytes,
    /// Duration of the measurement.
    pub elapsed: Nanos,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// `watch` interrupted the measurement.
    #[error("the measurement was interrupted")]
    Interrupted,
    /// No node could be measured.
    #[error("no memory could be measured: {0}")]
    Nothing(String),
    /// The kernel did not report the allowed processors, or did not pin a thread.
    #[error("threads cannot be pinned to processors: {0}")]
    Pinning(std::io::Error),
}

/// A node whose processors or memory are measured.
struct Target {
    number: u32,
    /// Processors of it that this process may use.
    cpus: Vec<u32>,
    /// Bytes to measure; zero for a node without usable memory.
    memory: u64,
}

/// Measures this machine, of which `root` (`/`) is the file system. `watch` is called before each
/// step and may interrupt.
///
/// # Errors
/// Interrupted; nothing could be measured; threads cannot be pinned.
pub fn measure(
    root: &Path,
    settings: MeasureSettings,
    watch: &mut dyn FnMut(MeasureStep) -> ControlFlow<()>,
) -> Result<Measurement, MeasureError> {
    let start = Instant::now();
    let allowed = affinity::allowed().map_err(MeasureError::Pinning)?;
    let mut notes = Vec::new();
    let targets = targets(root, &allowed, settings, &mut notes);
    let with_cpus: Vec<&Target> = targets.iter().filter(|it| !it.cpus.is_empty()).collect();
    let with_memory: Vec<&Target> = targets.iter().filter(|it| it.memory > 0).collect();
    let steps = with_cpus
        .iter()
        .map(|target| 2 + thread_counts(target.cpus.len()).len());
    let mut run = Run {
        root,
        settings,
        with_cpus: &with_cpus,
        notes: &mut notes,
        done: 0,
        total: steps.sum::<usize>() * with_memory.len(),
        watch,
        least_ran: 1.0,
    };
    let mut pairs = Vec::new();
    let mut most = 0;
    for target in &with_memory {
        most = most.max(target.memory);
        pairs.extend(run.memory_node(target, with_memory.len() == 1)?);
    }
    let least_ran = run.least_ran;
    if least_ran < RAN_AT_LEAST {
        let percent = least_ran * 100.0;
        notes.push(format!(
            "other programs ran meanwhile: threads had a processor for {percent:.0} % of the time at \
             the worst, so bandwidths are too low; measure again while little else runs"
        ));
    }
    if pairs.is_empty() {
        let why = match notes.is_empty() {
            true => "no node has both free memory and processors that may be used".to_owned(),
            false => notes.join("; "),
        };
        return Err(MeasureError::Nothing(why));
    }
    Ok(Measurement {
        pairs,
        notes,
        memory: Bytes(most),
        elapsed: Nanos(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)),
    })
}

/// 1, 2, 4, ... and all.
fn thread_counts(cpus: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1_usize), |count| count.checked_mul(2));
    powers
        .take_while(|count| *count < cpus)
        .chain([cpus])
        .collect()
}

/// The nodes of the machine, or all of it as node 0 where the kernel lists none.
fn targets(
    root: &Path,
    allowed: &[u32],
    settings: MeasureSettings,
    notes: &mut Vec<String>,
) -> Vec<Target> {
    let limits = limits::read(root);
    let nodes = nodes::read(root);
    let mut found: Vec<(u32, Vec<u32>, u64)> = Vec::new();
    for node in nodes {
        let cpus = node.cpus.iter().copied();
        let cpus = cpus.filter(|cpu| allowed.contains(cpu)).collect();
        let available = node.available.unwrap_or(node.memory).0;
        let is_usable = limits.allows(node.number);
        found.push((node.number, cpus, if is_usable { available } else { 0 }));
    }
    if found.is_empty() {
        let available = meminfo::available_bytes(&root.join("proc/meminfo")).unwrap_or(0);
        found.push((0, allowed.to_vec(), available));
    }
    let caches = found.iter().map(|(_, cpus, _)| caches::all(root, cpus));
    let caches = caches.max().unwrap_or(0);
    let wanted = settings.memory.map_or_else(
        || {
            MEMORY_AT_LEAST
                .0
                .max(caches.saturating_mul(TIMES_THE_CACHES))
        },
        |bytes| bytes.0,
    );
    let limit = limits.memory.map_or(u64::MAX, |limit| limit.0);
    let target = |(number, cpus, available): (u32, Vec<u32>, u64)| {
        let memory = wanted.min(available.min(limit) / PART_OF_AVAILABLE);
        // The smallest usable size is a huge page.
        let mut memory = memory - memory % HUGE_PAGE as u64;
        let is_hidden = memory < caches.saturating_mul(2);
        if memory < wanted && (is_hidden || memory == 0) && available > 0 {
            notes.push(format!(
                "node {number}: {} are available and a part of {PART_OF_AVAILABLE} may be taken, too \
                 little to see past caches of {}; it was not measured",
                Bytes(available),
                Bytes(caches)
            ));
            memory = 0;
        } else if memory > 0 && is_hidden {
            notes.push(format!(
                "node {number}: worked on {}, with caches of {}: the figures are in part the \
                 caches'",
                Bytes(memory),
                Bytes(caches)
            ));
        }
        Target {
            number,
            cpus,
            memory,
        }
    };
    found.into_iter().map(target).collect()
}

/// A measurement in progress.
struct Run<'a> {
    root: &'a Path,
    settings: MeasureSettings,
    with_cpus: &'a [&'a Target],
    notes: &'a mut Vec<String>,
    done: usize,
    total: usize,
    watch: &'a mut dyn FnMut(MeasureStep) -> ControlFlow<()>,
    /// The smallest share of their time for which the threads of a bandwidth trial had a processor.
    least_ran: f64,
}

impl Run<'_> {
    fn step(
        &mut self,
        cpu_node: u32,
        memory_node: u32,
        figure: MeasuredFigure,
    ) -> Result<(), MeasureError> {
        let step = MeasureStep {
            done: self.done,
            total: self.total,
            cpu_node,
            memory_node,
            figure,
        };
        self.done += 1;
        match (self.watch)(step) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(MeasureError::Interrupted),
        }
    }

    /// The pairs of one node's memory with all processors; none, and a note, where the memory
    /// cannot be allocated there.
    fn memory_node(&mut self, target: &Target, is_only: bool) -> Result<Vec<Pair>, MeasureError> {
        let mut memory = match self.memory_on(target, is_only) {
            Ok(memory) => memory,
            Err(why) => {
                self.notes.push(format!("node {}: {why}", target.number));
                return Ok(Vec::new());
            }
        };
        let mut pairs = Vec::new();
        chase::line_up(memory.words());
        for from in self.with_cpus {
            let figure = MeasuredFigure::Latency;
            self.step(from.number, target.number, figure)?;
            let latency = chase::latency(memory.words(), from.cpus[0], self.settings.chase)
                .map_err(MeasureError::Pinning)?;
            pairs.push(Pair {
                cpu_node: from.number,
                memory_node: target.number,
                latency,
                rates: Vec::new(),
                loaded: Vec::new(),
            });
        }
        for (from, pair) in self.with_cpus.iter().zip(&mut pairs) {
            for threads in thread_counts(from.cpus.len()) {
                let count = u32::try_from(threads).unwrap_or(u32::MAX);
                let figure = MeasuredFigure::Bandwidth(count);
                self.step(from.number, target.number, figure)?;
                let cpus = &from.cpus[..threads];
                let (rates, ran) = stream::rates(memory.words(), cpus, self.settings.trial)
                    .map_err(MeasureError::Pinning)?;
                self.least_ran = self.least_ran.min(ran);
                pair.rates.push(rates);
            }
        }
        self.loaded(memory.words(), target.number, &mut pairs)?;
        Ok(pairs)
    }

    /// Adds the latencies under load. The chain in the first half of the memory is made anew: writing has overwritten it.
    fn loaded(
        &mut self,
        words: &mut [u64],
        memory_node: u32,
        pairs: &mut [Pair],
    ) -> Result<(), MeasureError> {
        let half = words.len() / 2;
        chase::line_up(&mut words[..half]);
        for (from, pair) in self.with_cpus.iter().zip(pairs) {
            let figure = MeasuredFigure::LoadedLatency;
            self.step(from.number, memory_node, figure)?;
            pair.loaded = load::points(words, &from.cpus, self.settings.trial)
                .map_err(MeasureError::Pinning)?;
        }
        Ok(())
    }

    /// Allocates and touches memory on the node; the error is the reason in words.
    fn memory_on(&mut self, target: &Target, is_only: bool) -> Result<NodeMemory, String> {
        let failed =
            |what: &str, error: std::io::Error| format!("{what} ({error}), so it was not measured");
        let bytes = usize::try_from(target.memory).unwrap_or(usize::MAX);
        let mut memory =
            NodeMemory::map(bytes).map_err(|error| failed("memory cannot be mapped", error))?;
        // On a machine with one node no policy is needed.
        if let Err(error) = memory.prefer(target.number)
            && !is_only
        {
            return Err(failed("the memory policy cannot be set", error));
        }
        // Without huge pages the figures are lower, and a note below reports it.
        let _ = memory.advise_huge_pages();
        let before = huge_bytes(self.root);
        for page in memory.words().chunks_mut(PAGE_WORDS) {
            page[0] = 1;
        }
        let huge = huge_bytes(self.root).saturating_sub(before);
        if huge < target.memory / 2 {
            self.notes.push(format!(
                "node {}: {} of {} are huge pages; latencies hold walks through page tables",
                target.number,
                Bytes(huge),
                Bytes(target.memory)
            ));
        }
        if !is_only {
            check_place(&mut memory, target.number)?;
        }
        Ok(memory)
    }
}

/// Words of the smallest page.
const PAGE_WORDS: usize = 4096 / size_of::<u64>();
/// One page in this number may be on another node.
const ELSEWHERE: usize = 50;

/// Queries the node of one page in each huge page's worth.
fn check_place(memory: &mut NodeMemory, node: u32) -> Result<(), String> {
    let words = memory.words().len();
    let mut asked = 0;
    let mut elsewhere = 0;
    for index in (0..words).step_by(HUGE_PAGE / size_of::<u64>()) {
        let found = memory
            .node_of(index)
            .map_err(|error| format!("the kernel does not say where its pages lie ({error})"))?;
        asked += 1;
        elsewhere += usize::from(found != node);
    }
    match elsewhere * ELSEWHERE > asked {
        true => Err(format!(
            "it had no room: {elsewhere} of {asked} pages lie elsewhere, so it was not measured; if \
             copies of files fill it, `echo 1 > /proc/sys/vm/drop_caches` frees them"
        )),
        false => Ok(()),
    }
}

/// Bytes of this process in transparent huge pages.
fn huge_bytes(root: &Path) -> u64 {
    meminfo::bytes(&root.join("proc/self/smaps_rollup"), "AnonHugePages:").unwrap_or(0)
}

/// Nodes form one tier while their scores differ by no more than this factor: runs on one memory
/// differ by this much on a busy machine. Kinds of memory differ by more: HBM and DDR by two and
/// more, DDR and CXL by four and more.
const MEASURED_TOLERANCE: f64 = 1.5;

/// The measured speed of each memory node: from the view's node, or from the best one.
#[must_use]
pub(crate) fn speeds(pairs: &[Pair], view: View) -> BTreeMap<u32, Speed> {
    let mut best = BTreeMap::<u32, (f64, Speed)>::new();
    for pair in pairs {
        if matches!(view, View::Node(from) if from != pair.cpu_node) {
            continue;
        }
        let (latency, read) = (pair.latency.0 as f64, pair.most(|rates| rates.read) as f64);
        if latency <= 0.0 || read <= 0.0 {
            continue;
        }
        let mut speed = Speed {
            latency: Some(latency),
            read: Some(read),
            write: Some(pair.most(|rates| rates.write) as f64).filter(|write| *write > 0.0),
            tolerance: MEASURED_TOLERANCE,
            loaded: pair.loaded.clone(),
            ..Speed::default()
        };
        let words = figures_in_words(&speed);
        speed.words = format!("measured from node {}: {words}", pair.cpu_node);
        let score = latency / read;
        let known = best.get(&pair.memory_node);
        if known.is_none_or(|(known, _)| score < *known) {
            best.insert(pair.memory_node, (score, speed));
        }
    }
    let speeds = best.into_iter();
    speeds.map(|(node, (_, speed))| (node, speed)).collect()
}

#[cfg(test)]
mod tests;
