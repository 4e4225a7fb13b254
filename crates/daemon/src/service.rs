//! [`run`] runs the daemon: it reads the configuration, finds the tiers of the machine, and enters the main loop. Every second the loop
//! selects the processes to watch and reads their samples. At the end of every epoch it decides which address ranges change their tier,
//! moves them, and publishes the status for the socket, the metrics and systemd. SIGHUP reads the configuration again; SIGTERM and SIGINT
//! end the loop. `step` and `limits` make the decision step and its limits, for the replay of a recording too.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use isotherm_act::movement::limit::{Allowance, Limit};
use isotherm_act::movement::migration::Migration;
use isotherm_act::movement::obeyed_requests::ObeyedRequests;
use isotherm_act::movement::page_out::PageOut;
use isotherm_act::movement::page_requests::PageRequestWriter;
use isotherm_act::movement::system::{HUGE_BYTES, Kernel};
use isotherm_act::sysfs::SysfsFiles;
use isotherm_model::batch::Epoch;
use isotherm_model::movement::NodeId;
use isotherm_model::port::RangeExecutor;
use isotherm_model::source_kind::{ProfilingMethod, SourceKind};
use isotherm_model::tier_loads::TierLoads;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::watch::{Observation, Placed, UnitHeat};
use isotherm_observe::clock::MachineClock;
use isotherm_observe::probe::{KernelProbe, Probe};
use isotherm_observe::source::process_samples::{ProcessSamples, SampleRate};
use isotherm_observe::watch::watcher::{Watcher, WatcherConfig};
use isotherm_pipeline::{EpochReport, StepLimits, UnitStep, UnitStepConfig};
use isotherm_policy::epoch::of_run;
use isotherm_report::watch_maps::Maps;
use isotherm_report::watch_status::Status;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::config::Config;
use crate::dry_run::DryRun;
use crate::energy::{AwakeOnly, EnergySaver};
use crate::epoch_end::EpochEnd;
use crate::kernel_mover::KernelMover;
use crate::machine_tiers::{MachineTiers, NO_NODE_FAST, TierPlace};
use crate::notify::Notify;
use crate::paged::PagedService;
use crate::rights::AdminUses;
use crate::socket::{Listening, StatusPublisher};
use crate::status::StatusBuilder;
use crate::tier_meter::TierMeter;
use crate::{energy, kernel_mover, metrics, rights, socket};
use isotherm_console::{Console, print, shell_quoting, terminal_width};

/// Interval at which the loop checks for signals and elapsed times.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Interval at which the processes to watch are selected (as in TMP, section III) and their samples read.
const TICK: Duration = Duration::from_secs(1);

/// The risk of metrics that are served to other machines.
const NOT_LOOPBACK: &str = "every client that reaches this address may read the names of programs and of control groups and how \
                            much memory they have; there is no authentication, so let a firewall or a NetworkPolicy \
                            admit your Prometheus only";

/// The options of the command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// The configuration file; None for the defaults.
    pub config: Option<PathBuf>,
    /// Decide, but move nothing.
    pub dry_run: bool,
    /// Print each range that a dry run would move; on real nodes each system call.
    pub verbose: bool,
    /// End after one epoch.
    pub once: bool,
    /// Put back what a daemon that was killed left changed, and end.
    pub restore: bool,
}

/// The running daemon.
struct Service {
    options: Options,
    config: Config,
    places: MachineTiers,
    watcher: Watcher,
    step: DaemonStep,
    /// The loads of the tiers, for a policy that balances them.
    meter: Option<TierMeter>,
    status_builder: StatusBuilder,
    publisher: Arc<StatusPublisher>,
    notify: Notify,
    console: Console,
    epoch: u32,
    /// Takes memory offline; `None` in a run of one epoch.
    energy: Option<EnergySaver>,
    /// The kernel's own promotion; None where the daemon alone promotes.
    kernel: Option<KernelMover<SysfsFiles>>,
    epoch_end: EpochEnd,
}

/// The decision step: for memory in tiers, or for compressed memory.
enum DaemonStep {
    Units(Box<UnitStep>),
    Paged(Box<PagedService>),
}

/// Flags that the signal handlers set.
struct Signals {
    stop: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
}

/// Runs the daemon until a signal ends it; with [`Options::once`], for one epoch.
///
/// # Errors
/// The configuration is not valid, the machine has one kind of memory (and this is no dry run), the state directory or
/// the socket cannot be created, or the socket is in use.
pub fn run(options: Options, console: Console) -> Result<()> {
    // Without these malloc settings the daemon only holds more freed memory; the status shows its memory.
    let _ = isotherm_sys::heap::keep_little();
    let config = Config::read(options.config.as_deref())?;
    if config.foresees() {
        bail!(
            "policy = \"oracle\": it needs future accesses, which only a recording has; \
             `isotherm daemon --replay FILE` replays one"
        );
    }
    if options.restore {
        kernel_mover::restore_now(&config, console)?;
        return energy::restore(&config, false, console);
    }
    let signals = Signals::new()?;
    if !options.once {
        kernel_mover::restore_left(&config, options.dry_run, console)?;
    }
    let may_set_kernel = config.lets_kernel_promote() && !(options.dry_run || options.once);
    give_up_rights(admin_uses(&config, may_set_kernel), console);
    // A run of one epoch has no state of its own, and a daemon that runs already may have taken memory offline.
    if !options.once {
        energy::restore(&config, options.dry_run, console)?;
    }
    let places = MachineTiers::find(&config, options.dry_run)?;
    config.check_floors(places.fast_limit(&config))?;
    let kernel = match may_set_kernel && places.place == TierPlace::Nodes {
        true => KernelMover::start(&config, places.fast.len(), console)?,
        false => None,
    };
    give_up_rights(admin_uses(&config, kernel.is_some()), console);
    let mut service = Service::new(options, config, places, kernel, console)?;
    let _listening = service.open()?;
    if !service.options.once {
        let dry_run = service.options.dry_run;
        service.energy = Some(EnergySaver::start(&service.config, dry_run, console)?);
    }
    service.notify.send("READY=1");
    service.run_until_stopped(&signals)?;
    service.bring_back();
    service.notify.send("STOPPING=1");
    Ok(())
}

impl Signals {
    fn new() -> Result<Self> {
        let signals = Self {
            stop: Arc::default(),
            reload: Arc::default(),
        };
        for (signal, flag) in [
            (SIGTERM, &signals.stop),
            (SIGINT, &signals.stop),
            (SIGHUP, &signals.reload),
        ] {
            signal_hook::flag::register(signal, Arc::clone(flag))
                .context("signals cannot be received")?;
        }
        Ok(signals)
    }
}

impl DaemonStep {
    fn epoch(
        &mut self,
        seen: Observation,
        config: &Config,
        limits: StepLimits,
        mut executor: &mut dyn RangeExecutor,
    ) -> EpochReport {
        match self {
            Self::Units(step) => step.run(&seen, &limits, &mut executor),
            Self::Paged(paged) => paged.epoch(seen, config, limits, &mut executor),
        }
    }

    /// Sets the loads of the tiers in the epoch that is decided next.
    fn set_loads(&mut self, loads: Option<TierLoads>) {
        if let Self::Units(step) = self {
            step.set_loads(loads);
        }
    }

    /// The observations of each unit in the last epoch.
    fn seen(&self) -> Vec<UnitHeat> {
        match self {
            Self::Units(step) => step.seen().collect(),
            Self::Paged(paged) => paged.seen().collect(),
        }
    }
}

impl Service {
    fn new(
        options: Options,
        config: Config,
        places: MachineTiers,
        kernel: Option<KernelMover<SysfsFiles>>,
        console: Console,
    ) -> Result<Self> {
        let meter = TierMeter::start(&config, &places, options.dry_run)?;
        let watcher = watcher(&options, &config, &places, kernel.is_some())?;
        let step = match places.place {
            TierPlace::Paged => DaemonStep::Paged(Box::new(PagedService::new(
                &config,
                options.dry_run,
                console,
            )?)),
            TierPlace::Nodes | TierPlace::Imagined | TierPlace::Emulated => {
                DaemonStep::Units(Box::new(step(options.dry_run, &config, &places)))
            }
        };
        let mut notes = Vec::new();
        let note = match places.place {
            TierPlace::Nodes | TierPlace::Paged => None,
            TierPlace::Imagined => Some(
                "this machine has one kind of memory: the fast tier is imagined, and everything is \
                 assumed to be in slow memory at first",
            ),
            TierPlace::Emulated => Some(
                "the tiers are emulated: only programs of this user that `isotherm run --policy none` started are watched",
            ),
        };
        notes.extend(note.map(str::to_owned));
        let status_builder = StatusBuilder::new(Status {
            dry_run: options.dry_run,
            policy: config.policy.clone(),
            rights: rights::held(admin_uses(&config, kernel.is_some())),
            notes,
            ..Status::default()
        });
        let publisher = Arc::new(StatusPublisher::default());
        publisher.put(status_builder.status.clone());
        Ok(Self {
            notify: Notify::from_environment(),
            options,
            config,
            places,
            watcher,
            step,
            meter,
            status_builder,
            publisher,
            console,
            epoch: 0,
            energy: None,
            kernel,
            epoch_end: EpochEnd::default(),
        })
    }

    /// Opens the socket and the address of the metrics; a run of one epoch has neither.
    fn open(&self) -> Result<Option<Listening>> {
        if self.options.once {
            return Ok(None);
        }
        let path = &self.config.serve.socket;
        let listening = socket::listen(path, Arc::clone(&self.publisher))?;
        self.console
            .info(&format!("answering on {}", path.display()));
        if let Some(address) = self.config.metrics()? {
            if !address.ip().is_loopback() {
                self.console
                    .warn(&format!("serve.metrics = \"{address}\": {NOT_LOOPBACK}"));
            }
            match metrics::serve(address, Arc::clone(&self.publisher)) {
                Ok(address) => self
                    .console
                    .info(&format!("metrics on http://{address}/metrics")),
                // Not fatal, unlike a failure of the socket: the daemon moves memory without metrics too.
                Err(error) => self.console.warn(&format!("{error:#}")),
            }
        }
        let socket = shell_quoting::socket(path);
        self.console.next(&format!("isotherm top{socket}"));
        Ok(Some(listening))
    }

    fn run_until_stopped(&mut self, signals: &Signals) -> Result<()> {
        self.watcher.tick();
        let (mut ticked, mut begun) = (Instant::now(), Instant::now());
        let mut prepared = false;
        while !signals.stop.load(Ordering::Relaxed) {
            std::thread::sleep(POLL_INTERVAL);
            if signals.reload.swap(false, Ordering::Relaxed) {
                self.reload();
            }
            let epoch = Duration::from_nanos(self.config.epoch.0.0);
            let elapsed = begun.elapsed();
            if self.epoch_end.is_due(elapsed, epoch, &mut self.watcher) {
                (begun, ticked) = (Instant::now(), Instant::now());
                prepared = false;
                self.end_epoch()?;
                if self.options.once {
                    return print(&self.status_builder.status.text(terminal_width()));
                }
            } else if elapsed >= epoch / 2 && !prepared {
                prepared = true;
                self.watcher.prepare();
            } else if ticked.elapsed() >= TICK {
                ticked = Instant::now();
                self.watcher.tick();
                // Epochs may be longer than systemd's watchdog timeout.
                self.notify.send("WATCHDOG=1");
            }
        }
        Ok(())
    }

    /// Ends an epoch: reads the observed accesses, decides, moves, and publishes the status.
    fn end_epoch(&mut self) -> Result<()> {
        // At the sample rate of this epoch: `observe` may set another rate for the next one.
        let worth = self.watcher.samples().map(ProcessSamples::worth);
        let accesses_per_sample = self.places.accesses_per_sample(worth);
        let observation = self.watcher.observe(Epoch(self.epoch));
        self.epoch = self.epoch.saturating_add(1);
        let meter = self.meter.as_mut();
        let loads = meter.and_then(|meter| meter.loads(&observation, worth, &mut self.watcher));
        self.step.set_loads(loads);
        let limits = limits(&self.config, accesses_per_sample)?
            .of_part(observation.span, self.config.epoch.0);
        let mut dry_run = DryRun::new(self.places.dry_target(), self.options.verbose);
        let mut mover = self.mover(observation.span);
        let executor: &mut dyn RangeExecutor = match self.options.dry_run {
            true => &mut dry_run,
            false => &mut mover,
        };
        let report = self.step.epoch(observation, &self.config, limits, executor);
        self.watcher.end_moves();
        print(&dry_run.lines())?;
        self.follow_kernel(&report);
        let was_whole = report.span.0 >= self.config.epoch.0.0 / 4 * 3;
        let has_room = !self.watcher.kernel_lacks_room();
        self.epoch_end.follow(was_whole, has_room, placed(&report));
        self.publish(&report);
        Ok(())
    }

    /// Sets the pace of the kernel's own promotion by the epoch.
    fn follow_kernel(&mut self, report: &EpochReport) {
        if let Some(kernel) = &mut self.kernel {
            kernel.follow(report, &self.config);
            self.watcher.set_kernel_promotes(kernel.is_active());
        }
    }

    /// The executor of the moves of one epoch. It is not kept for the next one, because it holds a pidfd of each process
    /// until it is dropped.
    fn mover(&self, span: Nanos) -> Box<dyn RangeExecutor> {
        let moves = &self.config.moves;
        // Moves take at most half of an epoch, so that the loop returns in time for the next one. Both limits are doubled
        // for that half, so that their averages over a whole epoch are the configured ones. Ranges that remain are not
        // attempted; the next epoch decides about them again.
        let allowance = Allowance {
            bytes_a_second: Bytes(moves.rate.0.0.saturating_mul(2).max(1)),
            time_a_second: Nanos(moves.time.0.0.saturating_mul(2).min(1_000_000_000)),
        };
        // An epoch that ended early has as much less.
        let time = Nanos(self.config.epoch.0.0.min(span.0) / 2);
        match self.places.place {
            TierPlace::Emulated => {
                let requests = PageRequestWriter::of_running(PathBuf::from("/proc"));
                let limited = Limit::new(requests, MachineClock, allowance).within(time);
                let own = PageRequestWriter::of_running(PathBuf::from("/proc"));
                Box::new(ObeyedRequests::new(
                    limited,
                    own,
                    MachineClock,
                    NO_NODE_FAST,
                ))
            }
            TierPlace::Paged => {
                let kernel = PageOut::new(Kernel::default());
                Box::new(Limit::new(kernel, MachineClock, allowance).within(time))
            }
            TierPlace::Nodes | TierPlace::Imagined => {
                let kernel = Migration::new(Kernel::default()).splitting();
                Box::new(AwakeOnly {
                    inner: Box::new(Limit::new(kernel, MachineClock, allowance).within(time)),
                    offline: self.offline_nodes(),
                })
            }
        }
    }

    /// Brings back all paged-out memory.
    fn bring_back(&self) {
        if let DaemonStep::Paged(paged) = &self.step
            && !self.options.dry_run
        {
            let back = paged.bring_back();
            self.console.info(&format!("{back} came back to memory"));
        }
    }

    /// The nodes whose memory is offline, to save energy.
    fn offline_nodes(&self) -> BTreeSet<NodeId> {
        let energy = self.energy.as_ref();
        energy.map(EnergySaver::offline).unwrap_or_default()
    }

    /// Publishes the status, the heat map and the tiers of ranges after an epoch, for the socket and the metrics, and
    /// sends systemd a summary.
    fn publish(&mut self, report: &EpochReport) {
        self.status_builder.take(report, self.places.tiers.all());
        self.status_builder.watch(&self.watcher);
        let offline = self.offline_nodes();
        let status = &mut self.status_builder.status;
        status.offline_nodes = offline.iter().map(|node| node.0).collect();
        status.kernel_promotion = self.kernel.as_ref().map(KernelMover::status);
        if let DaemonStep::Paged(paged) = &self.step {
            status.paged = Some(paged.status());
        }
        let status = status.clone();
        self.notify
            .send(&format!("WATCHDOG=1\nSTATUS={}", status.headline()));
        let processes = report.processes.iter();
        let names = processes.map(|share| (share.process, share.name.as_str()));
        let unit = self.config.memory.unit.0;
        self.publisher.see(|heat| {
            let seen = self.step.seen().into_iter();
            heat.push(report.epoch, report.span, unit, names.clone(), seen);
        });
        let maps = Maps::new(report.epoch, unit, names, self.step.seen());
        self.publisher.put_maps(maps);
        self.publisher.put(status);
    }

    /// Reads the configuration again. If the new one is not valid, the daemon warns and keeps the old one.
    fn reload(&mut self) {
        let read = Config::read(self.options.config.as_deref());
        let read = read.and_then(|config| {
            config.check_floors(self.places.fast_limit(&config))?;
            Ok((config.selection()?, config))
        });
        match read {
            Err(error) => self
                .console
                .warn(&format!("the old configuration stays: {error:#}")),
            Ok((selection, mut config)) => {
                let restart_keys = self.config.needs_restart(&config);
                if !restart_keys.is_empty() {
                    self.console.warn(&format!(
                        "takes effect at the next start: {}",
                        restart_keys.join(", ")
                    ));
                }
                config.keep_started(&self.config);
                self.watcher.select(selection, config.filter());
                self.watcher
                    .set_limits(self.places.fast_limit(&config), config.budget_ppm());
                self.config = config;
                self.console.info("configuration read again");
            }
        }
    }
}

/// The uses of `CAP_SYS_ADMIN` under this configuration.
const fn admin_uses(config: &Config, promotion: bool) -> AdminUses {
    AdminUses {
        frames: config.sees_frames(),
        promotion,
    }
}

/// Gives up every right but those with a use. A daemon that still has them works too.
fn give_up_rights(uses: AdminUses, console: Console) {
    if let Err(error) = rights::drop_others(uses) {
        console.warn(&format!(
            "rights that are not needed cannot be given up: {error}"
        ));
    }
}

/// Creates the watcher by the configuration, and the state directory.
fn watcher(
    options: &Options,
    config: &Config,
    places: &MachineTiers,
    kernel_promotes: bool,
) -> Result<Watcher> {
    // A run of one epoch has no state directory: it stores nothing, and a daemon that runs already may be using it.
    if !options.once {
        config.make_state()?;
    }
    let state = (!options.once).then(|| config.serve.state.clone());
    let fast = match places.place {
        TierPlace::Imagined | TierPlace::Emulated | TierPlace::Paged => BTreeSet::new(),
        TierPlace::Nodes => places.fast.iter().copied().collect(),
    };
    let samples = config.samples();
    let settings = WatcherConfig {
        root: PathBuf::from("/"),
        state,
        selection: config.selection()?,
        filter: config.filter(),
        unit: config.memory.unit.0,
        fast,
        emulated: places.place == TierPlace::Emulated,
        fast_limit: places.fast_limit(config),
        kernel_promotes,
        bits: config.bits(kernel_promotes),
        samples,
        cache: config.cache(),
        sample_rate: SampleRate {
            timer_hz: config.sources.sample_hz,
            pmu: config.sources.pmu_rate,
        },
        sample_cost: sample_cost(samples),
        budget_ppm: config.budget_ppm(),
    };
    Ok(Watcher::new(settings, Box::new(MachineClock)))
}

/// An initial estimate of the processor time that a timer sample costs a program. None if it cannot be measured, or
/// the samples come from another source.
fn sample_cost(samples: Option<SourceKind>) -> Option<Nanos> {
    match samples {
        Some(SourceKind::Timer) => KernelProbe.sample_cost().ok(),
        _ => None,
    }
}

/// The limits of an epoch's decision, from the current configuration and the number of accesses that one sample
/// represents.
///
/// # Errors
/// The limits of control groups are not valid.
pub(super) fn limits(config: &Config, accesses_per_sample: u64) -> Result<StepLimits> {
    // The configured rate times a whole epoch: `Service::mover` moves as much, at twice the rate in half the time.
    let (rate, epoch) = (
        u128::from(config.moves.rate.0.0),
        u128::from(config.epoch.0.0),
    );
    let moves = u64::try_from(rate * epoch / 1_000_000_000).unwrap_or(u64::MAX);
    Ok(StepLimits {
        accesses_per_sample,
        moves: Bytes(moves),
        groups: config.groups()?,
        // Like [groups], it would take the oracle's bound away.
        fair_start: match config.foresees() {
            true => 0,
            false => config.memory.fair_start,
        },
    })
}

/// The samples of an epoch, by where their data was.
fn placed(report: &EpochReport) -> Placed {
    match report.seen_by {
        Some(ProfilingMethod::TraceSamples) => Placed {
            samples: report.accesses,
            fast: report.accesses_fast,
        },
        _ => Placed::default(),
    }
}

/// Creates the decision step by the configuration. With `modelled` the executor moves nothing, and the step counts the
/// moves as made.
pub(super) fn step(modelled: bool, config: &Config, places: &MachineTiers) -> UnitStep {
    let costs = places.costs(config.memory.unit.0);
    let policy = config.policy.clone();
    let new_policy = move || of_run(&policy, costs);
    let settings = UnitStepConfig {
        unit: config.memory.unit.0,
        page: Bytes(rustix::param::page_size() as u64),
        fast_nodes: places.fast.clone(),
        slow_nodes: places.slow.clone(),
        combine: config.sources.combine,
        splits: splits(config, places),
        modelled,
    };
    UnitStep::new(settings, Box::new(new_policy))
}

/// True where units of which little is hot are placed part by part. A unit of a huge page or more is never moved in part otherwise.
fn splits(config: &Config, places: &MachineTiers) -> bool {
    let has_nodes = matches!(places.place, TierPlace::Nodes | TierPlace::Imagined);
    config.moves.split && has_nodes && config.memory.unit.0.0 >= HUGE_BYTES
}
