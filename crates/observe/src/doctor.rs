//! Finds which features work on this machine, and the cause and remedy of each that does not, for `isotherm doctor` ([`examine`]). Other
//! commands and the daemon choose their source here ([`best_source`], [`best_samples`]) or ask whether the emulated pair can work
//! ([`timer`], [`userfaultfd`]).
//!
//! Settings and files are read under a root directory; other features of the kernel are tried through [`Probe`]: available ones have
//! worked.

mod balancing;
mod finding;

use std::path::Path;

use isotherm_model::source_kind::ProfilingMethod;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::words::counted;
use isotherm_topology::sysfs;

pub use balancing::PROMOTION_FILES;
use finding::{ALLOW_PERF, degraded};
pub use finding::{FeatureState, Finding, available, missing};

use crate::counters::{self, CounterKind, Lack};
use crate::energy::EnergyMeter;
use crate::probe::{KernelProbe, Probe};
use crate::source::perf_ring::refusal;
use crate::source::pmu::Pmu;
use isotherm_model::source_kind::SourceKind;

/// A profile source in the order of preference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// The source.
    pub source: SourceKind,
    /// It can be used here.
    pub usable: bool,
    /// The data that it delivers, or the reason why it cannot be used.
    pub note: String,
}

/// The result for the whole machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examination {
    /// One entry for each feature.
    pub findings: Vec<Finding>,
    /// Profile sources, best first.
    pub ranking: Vec<Ranked>,
}

impl Examination {
    /// The source that would be used: the first usable one, if any is.
    #[must_use]
    pub fn chosen(&self) -> Option<SourceKind> {
        self.ranking.iter().find(|it| it.usable).map(|it| it.source)
    }
}

/// Examines the machine whose file system is mounted at `root` (`/`).
#[must_use]
pub fn examine(root: &Path) -> Examination {
    examine_with(root, &KernelProbe)
}

/// As [`examine`], with a given probe of the kernel.
#[must_use]
pub fn examine_with(root: &Path, probe: &dyn Probe) -> Examination {
    let found = PREFERRED.map(|source| tried(source, root, probe));
    let sources = PREFERRED.iter().zip(&found);
    let ranking = sources.map(|(source, state)| ranked(*source, state));
    let ranking = ranking.collect();
    let [pebs, ibs, spe, timer, accessed, trapped] = found;
    let mut found = vec![
        ("Intel PEBS", pebs),
        ("AMD IBS", ibs),
        ("Arm SPE", spe),
        ("timer samples", timer),
        ("kernel.perf_event_paranoid", paranoid(root)),
    ];
    found.extend(CounterKind::ALL.map(|kind| (kind.word(), counting(kind, root, probe))));
    found.extend([
        ("sources that may rest", resting(root, probe)),
        ("accessed bits", accessed),
        ("DAMON", damon(root)),
        ("idle pages", idle_pages(root)),
        ("hint faults", balancing::hint_faults(root, probe)),
        ("promotion by the kernel", balancing::promotion(root)),
        ("resident pages", page_tables(probe)),
        ("trapped pages and emulated tiers (userfaultfd)", trapped),
        ("memory tiers", nodes(root)),
        ("compressed memory", compressed_memory(root)),
        ("transparent huge pages", huge_pages(root)),
        ("vm.max_map_count", map_count(root)),
        ("memory limit", memory_limit(root)),
        ("reading a program's memory", ptrace_scope(root)),
        ("address space", address_space(root)),
        ("energy counters", energy_counters(root)),
    ]);
    let finding = |(feature, state)| Finding { feature, state };
    Examination {
        findings: found.into_iter().map(finding).collect(),
        ranking,
    }
}

/// The ranked sources, best first.
const PREFERRED: [SourceKind; 6] = [
    SourceKind::Pebs,
    SourceKind::Ibs,
    SourceKind::Spe,
    SourceKind::Timer,
    SourceKind::AccessedBits,
    SourceKind::TrappedPages,
];

/// Tries whether one of the ranked sources works.
fn tried(source: SourceKind, root: &Path, probe: &dyn Probe) -> FeatureState {
    match source {
        SourceKind::Timer => timer(probe),
        SourceKind::AccessedBits => accessed_bits(probe),
        SourceKind::TrappedPages => userfaultfd(probe),
        _ => hardware(source, root, probe),
    }
}

/// Finds the source that [`Examination::chosen`] names. The trials end at the first source that works, because a program waits for
/// the answer.
#[must_use]
pub fn best_source(root: &Path, probe: &dyn Probe) -> Option<SourceKind> {
    let usable = |source: &SourceKind| ranked(*source, &tried(*source, root, probe)).usable;
    PREFERRED.into_iter().find(usable)
}

/// Finds the first of PEBS, IBS and SPE that this machine has, else the timer. Nothing else is tried.
#[must_use]
pub fn best_samples(root: &Path, probe: &dyn Probe) -> SourceKind {
    let usable = |source: &SourceKind| {
        !matches!(hardware(*source, root, probe), FeatureState::Missing { .. })
    };
    let mut hardware = [SourceKind::Pebs, SourceKind::Ibs, SourceKind::Spe].into_iter();
    hardware.find(usable).unwrap_or(SourceKind::Timer)
}

fn ranked(source: SourceKind, state: &FeatureState) -> Ranked {
    let (usable, note) = match state {
        FeatureState::Available(detail) => (true, detail.clone()),
        FeatureState::Degraded { why, .. } => (true, why.clone()),
        FeatureState::Missing { why, .. } => (false, why.clone()),
    };
    Ranked {
        source,
        usable,
        note,
    }
}

fn hardware(source: SourceKind, root: &Path, probe: &dyn Probe) -> FeatureState {
    let pmu = match source {
        SourceKind::Ibs => Pmu::Ibs,
        SourceKind::Spe => Pmu::Spe,
        _ => Pmu::Pebs,
    };
    let event = match pmu.event(root) {
        Ok(event) => event,
        Err(why) => {
            let remedy = "a bare-metal machine, or a virtual machine that passes the PMU on";
            return missing(why, remedy);
        }
    };
    match probe.event(&event) {
        Ok(trial) if trial.samples == 0 => degraded(
            "the event opens, but accesses to trial memory produced no sample",
            "check whether `isotherm record` reports its samples; a hypervisor may fake the event",
        ),
        Ok(trial) if trial.in_memory == 0 => degraded(
            format!(
                "none of {} trial samples has the address of the access",
                trial.samples
            ),
            "Linux 6.2 for AMD IBS; --source timer until then",
        ),
        Ok(trial) => available(format!(
            "precise data addresses from the hardware ({} of {} trial samples fell on the accessed memory, \
                 {} of them with the level of memory)",
            trial.in_memory, trial.samples, trial.with_level
        )),
        Err(error) => missing(refusal(&error), ALLOW_PERF),
    }
}

/// Whether a thread can be sampled by time, which the emulated pair by time needs.
#[must_use]
pub fn timer(probe: &dyn Probe) -> FeatureState {
    match probe.timer() {
        Err(error) => missing(refusal(&error), ALLOW_PERF),
        Ok(found) if found.samples == 0 => missing(
            "the event opens but delivers no samples",
            "check for a seccomp profile or a hypervisor that fakes perf",
        ),
        Ok(found) if found.with_registers == 0 => missing(
            "samples come without the program's registers",
            "a kernel with CONFIG_HAVE_PERF_REGS",
        ),
        Ok(found) => available(format!(
            "data addresses by decoding, works on every machine ({} of {} trial samples with \
                 registers)",
            found.with_registers, found.samples
        )),
    }
}

/// The time that a timer sample takes from a program. Measuring it takes some 50 ms, and no choice of a source
/// depends on it.
#[must_use]
pub fn sample_cost(probe: &dyn Probe) -> FeatureState {
    match probe.sample_cost() {
        Ok(price) => available(format!("{price} of a program's time")),
        Err(error) => missing(refusal(&error), ALLOW_PERF),
    }
}

fn paranoid(root: &Path) -> FeatureState {
    match sysctl(root, "kernel/perf_event_paranoid") {
        None => missing(
            "the kernel has no perf events",
            "a kernel with CONFIG_PERF_EVENTS",
        ),
        Some(level) if level > 2 => degraded(
            format!("{level}: perf events are for privileged users only"),
            ALLOW_PERF,
        ),
        Some(level) => available(format!("{level}: own programs may be sampled")),
    }
}

fn counting(kind: CounterKind, root: &Path, probe: &dyn Probe) -> FeatureState {
    match counters::open(kind, root, &|event| probe.counter(event)) {
        Ok(counters::Counting::Events(events)) => {
            available(format!("counted by {}", counted(events.len(), "event")))
        }
        Ok(counters::Counting::Resctrl(_)) => available("bytes of all control groups"),
        Err(Lack { why, remedy }) => missing(why, remedy),
    }
}

/// The counter by which each kind of source rests while it is low (TMP's rule of 20 %).
fn resting(root: &Path, probe: &dyn Probe) -> FeatureState {
    let chosen = ProfilingMethod::ALL.map(|method| {
        let choice = counters::choose(method, root, &|event| probe.counter(event));
        (method, choice.counting.map(|(kind, _)| kind.word()))
    });
    let words = chosen.map(|(method, kind)| match kind {
        Some(kind) => format!("{} by {kind}", method.words()),
        None => format!(
            "{} never: no counter that they depend on is available",
            method.words()
        ),
    });
    let words = words.join(", ");
    match chosen.iter().all(|(_, kind)| kind.is_some()) {
        true => available(words),
        false => degraded(words, "any of the counters above"),
    }
}

fn accessed_bits(probe: &dyn Probe) -> FeatureState {
    match probe.clear_refs() {
        Ok(()) => available("coarse: kilobytes for each mapping, in short windows"),
        Err(error) => missing(
            format!("/proc/self/clear_refs: {error}"),
            "a kernel with CONFIG_PROC_PAGE_MONITOR, and a writable /proc",
        ),
    }
}

fn damon(root: &Path) -> FeatureState {
    const KDAMONDS: &str = "sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds";
    match std::fs::read_to_string(root.join(KDAMONDS)) {
        Err(error) => missing(
            format!("/{KDAMONDS}: {error}"),
            "a kernel with CONFIG_DAMON_SYSFS, and with CONFIG_DAMON_VADDR or CONFIG_DAMON_PADDR",
        ),
        Ok(count) if count.trim() == "0" => available(
            "accessed bits by regions, for the daemon; of all memory with accessed_bits = \"damon-paddr\", which \
             needs CAP_SYS_ADMIN",
        ),
        Ok(count) => degraded(
            format!(
                "{} kdamonds are set up; the daemon leaves those of other users alone",
                count.trim()
            ),
            "write 0 to nr_kdamonds when they are off and unused",
        ),
    }
}

fn idle_pages(root: &Path) -> FeatureState {
    use crate::source::page_idle::{BITMAP, REMEDY};
    let mut options = std::fs::OpenOptions::new();
    match options.read(true).write(true).open(root.join(BITMAP)) {
        Ok(_) => available(
            "accessed bits of single pages, for the daemon with accessed_bits = \"page-idle\", which \
             needs CAP_SYS_ADMIN for frame numbers",
        ),
        Err(error) => missing(format!("/{BITMAP}: {error}"), REMEDY),
    }
}

fn page_tables(probe: &dyn Probe) -> FeatureState {
    match probe.page_tables() {
        Ok(crate::resident::ResidencyMethod::Scan) => available("by PAGEMAP_SCAN"),
        Ok(crate::resident::ResidencyMethod::Read) => degraded(
            "by reading pagemap, about 0.05 us for each page, absent ones too",
            "Linux 6.7, which has PAGEMAP_SCAN",
        ),
        Err(error) => missing(
            format!("/proc/self/pagemap: {error}"),
            "a kernel with CONFIG_PROC_PAGE_MONITOR",
        ),
    }
}

/// Whether pages can be trapped, which the emulated pair needs.
#[must_use]
pub fn userfaultfd(probe: &dyn Probe) -> FeatureState {
    use isotherm_sys::userfaultfd::OpenError;
    match probe.userfaultfd() {
        Ok(()) => available("kernel accesses are served, UFFDIO_MOVE is there"),
        Err(OpenError::NoMove) => missing("the kernel has no UFFDIO_MOVE", "Linux 6.8"),
        Err(OpenError::Unavailable(error)) => missing(
            format!("userfaultfd that serves the kernel's own accesses is not allowed ({error})"),
            "set vm.unprivileged_userfaultfd to 1, or give the user access to /dev/userfaultfd, \
             or the program CAP_SYS_PTRACE",
        ),
    }
}

fn nodes(root: &Path) -> FeatureState {
    const PAIR: &str = "use the emulated pair, or name the tiers in a file (--tiers)";
    match isotherm_topology::detect(root) {
        Err(error) => missing(error.to_string(), PAIR),
        Ok(_) if !root.join("proc/self/numa_maps").exists() => missing(
            "the kernel cannot place memory by node",
            "a kernel with CONFIG_NUMA, or the emulated pair",
        ),
        Ok(tiers) if tiers.all().len() == 1 => {
            degraded("this machine has one kind of memory", PAIR)
        }
        Ok(tiers) => {
            let names = tiers
                .all()
                .iter()
                .map(|tier| format!("{} ({})", tier.name, tier.reason));
            available(names.collect::<Vec<_>>().join("; "))
        }
    }
}

/// Whether the kernel keeps swapped pages in memory, compressed: a slow tier that every machine can have.
fn compressed_memory(root: &Path) -> FeatureState {
    const MAKE: &str = "isotherm tiers --make-compressed 2GiB, as root";
    let swap = isotherm_topology::swap(root);
    if swap.is_compressed() {
        let (stored, memory) = swap.compressed();
        return available(format!(
            "{} free; it holds {stored} of pages in {memory}",
            swap.free()
        ));
    }
    let zram = ["sys/block/zram0", "sys/class/zram-control/hot_add"];
    let remedy = match zram.iter().any(|path| root.join(path).exists()) {
        true => MAKE.to_owned(),
        false => format!("`modprobe zram` (a kernel with CONFIG_ZRAM), then {MAKE}"),
    };
    match swap.areas.is_empty() {
        true => missing("the machine has no swap", remedy),
        false => degraded(
            "swap is on disks only",
            format!("{remedy}; or echo Y > /sys/module/zswap/parameters/enabled"),
        ),
    }
}

fn huge_pages(root: &Path) -> FeatureState {
    const ADVISE: &str = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
    let chosen = sysfs::chosen(&root.join("sys/kernel/mm/transparent_hugepage/enabled"));
    match chosen.as_deref() {
        None => missing("the kernel has none", "CONFIG_TRANSPARENT_HUGEPAGE"),
        Some("never") => degraded("never: moving memory takes several times longer", ADVISE),
        Some(mode) => available(mode),
    }
}

/// Fewest mappings that a process should be allowed, the kernel's default: moved ranges and arenas take many.
const MAPS_WANTED: i64 = 65_530;

fn map_count(root: &Path) -> FeatureState {
    match sysctl(root, "vm/max_map_count") {
        Some(count) if count < MAPS_WANTED => degraded(
            format!("{count}: programs with many arenas may run out of mappings"),
            "sysctl vm.max_map_count=1048576",
        ),
        Some(count) => available(count.to_string()),
        None => degraded("it cannot be read", "mount /proc"),
    }
}

fn ptrace_scope(root: &Path) -> FeatureState {
    match sysctl(root, "kernel/yama/ptrace_scope") {
        Some(scope) if scope >= 2 => degraded(
            format!("kernel.yama.ptrace_scope is {scope}: just-in-time code cannot be decoded"),
            "sysctl kernel.yama.ptrace_scope=1, or CAP_SYS_PTRACE (not at 3)",
        ),
        Some(scope) => available(format!("kernel.yama.ptrace_scope is {scope}")),
        None => available("not restricted by Yama"),
    }
}

fn memory_limit(root: &Path) -> FeatureState {
    match isotherm_topology::limits::memory(root) {
        Some(limit) => degraded(
            format!("the control group allows {limit}"),
            "count it as the size of all tiers together, or raise memory.max (memory.limit_in_bytes in \
             version 1)",
        ),
        None => available("none by control group"),
    }
}

/// The address space that the runtime reserves; it uses only a part of it.
const POOL: u64 = 1 << 40;

fn address_space(root: &Path) -> FeatureState {
    let limits = std::fs::read_to_string(root.join("proc/self/limits")).unwrap_or_default();
    let limit: Option<u64> = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max address space"))
        .and_then(|line| line.split_ascii_whitespace().next()?.parse().ok());
    match limit {
        Some(limit) if limit < POOL => degraded(
            format!(
                "`ulimit -v` allows {}; the pool wants {}",
                Bytes(limit),
                Bytes(POOL)
            ),
            "ulimit -v unlimited; else the runtime uses a smaller pool, or leaves allocations to the C library",
        ),
        _ => match sysctl(root, "vm/overcommit_memory") {
            Some(2) => degraded(
                "vm.overcommit_memory is 2: mapped memory counts as used",
                "sysctl vm.overcommit_memory=0",
            ),
            _ => available("not limited"),
        },
    }
}

fn energy_counters(root: &Path) -> FeatureState {
    let meter = EnergyMeter::open(root, Nanos::ZERO);
    let names: Vec<&str> = meter.readings().map(|it| it.name.as_str()).collect();
    match (names.is_empty(), meter.refused()) {
        (false, _) => available(names.join(", ")),
        (true, []) => missing(
            "neither powercap nor hwmon has any, as in most virtual machines",
            "a processor with RAPL and CONFIG_INTEL_RAPL, the driver amd_energy, or a hwmon sensor of the power of memory or processors; energy is modelled without",
        ),
        (true, refused) => missing(
            format!("{} may be read by root only", refused.join(", ")),
            "run as root, or chmod a+r /sys/class/powercap/*/energy_uj, which lets every user measure",
        ),
    }
}

fn sysctl(root: &Path, name: &str) -> Option<i64> {
    sysfs::text(&root.join("proc/sys").join(name))?.parse().ok()
}
