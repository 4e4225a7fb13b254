//! [`PagedService`] moves watched processes' memory to compressed memory, or other swap, and back (`memory.tiers = "compressed"`): each
//! epoch it decides and has an executor move. Where a control group is too near its memory limit, and has processes whose memory the daemon
//! cannot see or may not page out, it asks the kernel to reclaim memory of the group.
//!
//! It decides as `isotherm run --tiers compressed` does, with floors and caps of control groups as on nodes. All paged-out memory comes
//! back when the daemon ends; after a kill each page comes back at its next touch.

use std::path::Path;

use anyhow::{Context, Result, bail};
use isotherm_act::movement::page_out::PageOut;
use isotherm_act::movement::page_out::group_reclaim::reclaim;
use isotherm_act::movement::remembered::Remembered;
use isotherm_act::movement::system::Kernel;
use isotherm_console::{Console, print};
use isotherm_model::outcome::Fate;
use isotherm_model::paged::{PagedObservation, RefaultCosts};
use isotherm_model::port::RangeExecutor;
use isotherm_model::tier::{Tier, TierKind, Tiers};
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::watch::{Observation, UnitHeat};
use isotherm_observe::clock::MachineClock;
use isotherm_observe::limited_groups::limited_groups;
use isotherm_observe::paged::PagedMemory;
use isotherm_pipeline::{
    EpochReport, GroupShortage, PagedConfig, PagedLimits, PagedReport, PagedStep, SavingRule,
    StepLimits,
};
use isotherm_policy::epoch::{MoveCosts, of_run};
use isotherm_report::paged_status::PagedStatus;
use isotherm_topology::SwapSpace;

use crate::config::Config;

/// The value of `memory.tiers` for compressed memory.
pub(crate) const COMPRESSED: &str = "compressed";

const PAGE: Bytes = Bytes(4096);
/// Most bytes that the kernel is asked to reclaim from a control group in an epoch: programs may need the reclaimed pages at once.
const RECLAIM_AT_MOST: Bytes = Bytes(32 << 20);

/// The decision step, the processes' memory as the daemon sees it, and the status.
pub(crate) struct PagedService {
    step: PagedStep,
    memory: PagedMemory,
    costs: RefaultCosts,
    status: PagedStatus,
    dry_run: bool,
    console: Console,
    /// Whether the lack of room in swap was already reported.
    has_warned: bool,
}

/// The tiers: this machine's memory, and its swap.
///
/// # Errors
/// It has no swap.
pub(crate) fn tiers(dry_run: bool) -> Result<Tiers> {
    let swap = isotherm_topology::swap(Path::new("/"));
    if swap.areas.is_empty() && !dry_run {
        bail!(
            "memory.tiers = \"{COMPRESSED}\": this machine has no swap; `isotherm tiers --make-compressed 2GiB` sets up compressed memory"
        );
    }
    let info = rustix::system::sysinfo();
    let memory = Bytes(info.totalram as u64 * u64::from(info.mem_unit));
    let tier = |name, capacity, reason| {
        Tier::unmeasured(name, TierKind::Nodes(Vec::new()), capacity, reason)
    };
    let tiers = vec![
        tier("memory", memory, "all nodes"),
        tier(COMPRESSED, size(&swap), "swap"),
    ];
    Ok(Tiers::new(tiers)?)
}

fn size(swap: &SwapSpace) -> Bytes {
    swap.areas.iter().map(|area| area.size).sum()
}

impl PagedService {
    /// Measures what a page costs; a dry run takes usual costs where that is not possible.
    ///
    /// # Errors
    /// There is too little swap to measure.
    pub(crate) fn new(config: &Config, dry_run: bool, console: Console) -> Result<Self> {
        /// As `isotherm tiers --measure` finds on most machines.
        const USUAL: RefaultCosts = RefaultCosts {
            out: Nanos(12_000),
            back: Nanos(8_000),
        };
        let costs = match isotherm_topology::measure::page_out(Path::new("/")) {
            Ok(measured) => RefaultCosts {
                out: measured.out,
                back: measured.back,
            },
            Err(_) if dry_run => USUAL,
            Err(error) => {
                return Err(error).context(format!(
                    "memory.tiers = \"{COMPRESSED}\": the costs of a page were not measured"
                ));
            }
        };
        let unit = config.memory.unit.0;
        let moves = MoveCosts::of_refaults(costs, unit);
        let policy = config.policy.clone();
        let make = move || of_run(&policy, moves);
        let step = PagedConfig {
            unit,
            page: PAGE,
            costs,
            slowdown: config.slowdown(),
            rule: SavingRule::Probes,
            modelled: dry_run,
        };
        Ok(Self {
            step: PagedStep::new(step, Box::new(make)),
            memory: PagedMemory::new(Path::new("/"), unit),
            costs,
            dry_run,
            console,
            has_warned: false,
            status: PagedStatus {
                slowdown_budget: config.slowdown(),
                back_ns: costs.back.0,
                ..PagedStatus::default()
            },
        })
    }

    /// Decides for the epoch that begins, and has the executor move.
    pub(crate) fn epoch(
        &mut self,
        seen: Observation,
        config: &Config,
        limits: StepLimits,
        executor: &mut impl RangeExecutor,
    ) -> EpochReport {
        let most = seen.capacity;
        let processes = seen.processes.iter().map(|watched| watched.process);
        // Of a process that may not be read the observation says so.
        let units = self.memory.scan(processes.clone());
        let all: Bytes = units.iter().map(|held| held.all()).sum();
        let limits = PagedLimits {
            keep: config.compressed.keep.0.of(all),
            most,
            moves: limits.moves,
            groups: limits.groups,
            fair_start: limits.fair_start,
        };
        let seen = PagedObservation {
            stalled: self.memory.stalled(),
            units,
            groups: limited_groups(Path::new("/"), processes),
            seen,
        };
        let span = seen.seen.span;
        let mut remembered = Remembered::new(executor);
        let report = self.step.run(&seen, &limits, &mut remembered);
        self.memory.moved(remembered.outcomes());
        self.count(&report, span);
        for shortage in &report.shortages {
            self.ask_kernel(shortage);
        }
        report.units
    }

    /// Asks the kernel to reclaim memory of a control group that the daemon itself cannot page out. It never writes limits of control
    /// groups: they have an owner.
    fn ask_kernel(&mut self, shortage: &GroupShortage) {
        let GroupShortage {
            name,
            directory,
            bytes,
        } = shortage;
        let bytes = (*bytes).min(RECLAIM_AT_MOST);
        if self.dry_run {
            // A closed output ends a dry run elsewhere.
            let _ = print(&format!(
                "would: write {} to memory.reclaim of control group {name}\n",
                bytes.0
            ));
            return;
        }
        let outcome = reclaim(directory, bytes, &MachineClock);
        self.status.reclaimed_bytes += outcome.reclaimed.0;
        self.status.reclaim_refused = match outcome.fate {
            Fate::Denied(why) | Fate::Busy(why) => why.into_owned(),
            _ => String::new(),
        };
    }

    fn count(&mut self, report: &PagedReport, span: Nanos) {
        let swap = isotherm_topology::swap(Path::new("/"));
        let status = &mut self.status;
        status.out_bytes = report.out.0;
        status.out_taken_bytes = swap.taken_by(report.out).0;
        status.left_bytes += report.left.0;
        status.returned_bytes += report.returned.0;
        status.brought_back_bytes += report.brought_back.0;
        status.mistakes += report.mistakes;
        status.stalled_ns += report.stalled.0;
        status.stalled_share = report.stalled.0 as f64 / span.0.max(1) as f64;
        status.is_overdrawn = report.is_overdrawn;
        status.lacks_swap = report.lacks_swap;
        status.back_ns = self.costs.back.0;
        if report.lacks_swap && !self.has_warned {
            self.console.warn(swap.lack_of_room());
            self.has_warned = true;
        }
    }

    /// The memory that is paged out, and its costs so far.
    pub(crate) fn status(&self) -> PagedStatus {
        self.status.clone()
    }

    /// The observations of each unit in the last epoch.
    pub(crate) fn seen(&self) -> impl Iterator<Item = UnitHeat> {
        self.step.seen()
    }

    /// Brings back all paged-out memory of the processes that were watched; returns the bytes that came back.
    pub(crate) fn bring_back(&self) -> Bytes {
        let outcomes = PageOut::new(Kernel::default()).execute(&self.memory.ways_back());
        let came = |fate: &Fate| matches!(fate, Fate::Moved | Fate::Requested);
        outcomes.iter().map(|outcome| outcome.bytes_of(came)).sum()
    }
}
