//! [`KernelMover`] lets the kernel promote at the touch, at a pace that the daemon sets each epoch: with `moves.mover = "kernel"`, or
//! `"auto"` where the daemon may set the kernel's promotion and no other program uses it. [`restore_left`] and [`restore_now`] put back the
//! settings that a killed daemon left changed.
//!
//! ```text
//! start      record on disk --> knobs               numa_balancing = 2, demotion, pace
//! epoch      vmstat, samples --> PromotionControl --> knobs that differ
//! end        knobs as they were --> record removed  after a kill: the next start, or `isotherm daemon --restore`
//! ```
//!
//! Floors, caps and the policy's own promotions and demotions are as without it. The watcher leaves the fast nodes room above the kernel's
//! high watermark, because below it the kernel promotes nothing. If another program changes a knob, the daemon releases all of them
//! permanently: two owners would undo each other's work.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use isotherm_act::promotion_knobs::{Knob, KnobError, KnobRecord, PromotionKnobs, restore};
use isotherm_act::sysfs::{Sysfs, SysfsFiles};
use isotherm_console::Console;
use isotherm_model::source_kind::ProfilingMethod;
use isotherm_model::units::Bytes;
use isotherm_observe::promotion_counts::PromotionCounts;
use isotherm_pipeline::EpochReport;
use isotherm_policy::{PromotionControl, PromotionEpoch, PromotionPace};
use isotherm_report::watch_status::KernelPromotionStatus;

use crate::config::{Config, MoverName};
use crate::rights;

/// Megabytes of a part of a round: the kernel's default.
const PART_MB: u64 = 256;

/// Least milliseconds for which the kernel scans no new program and no new mapping: a fifth of its default. The kernel derives a second
/// time from this delay: after four times as long it forgets which threads access a mapping, and it scans no mapping without such threads.
/// It learns the threads from hint faults, every second or third round, so the delay must not be shorter than the period of the rounds.
const DELAY_MS: u64 = 200;

/// Puts back the kernel settings that a killed daemon left changed. Called before rights are given up.
///
/// # Errors
/// The record is damaged.
pub(crate) fn restore_left(config: &Config, dry_run: bool, console: Console) -> Result<()> {
    if dry_run || UnixStream::connect(&config.serve.socket).is_ok() {
        return Ok(());
    }
    let record = KnobRecord::within(&config.serve.state);
    if let Some(put) = restore(&record, &mut SysfsFiles::below(Path::new("/")))? {
        console.info(&format!("an earlier daemon did not end well: {put}"));
    }
    Ok(())
}

/// Puts back the same settings for `isotherm daemon --restore`, and reports them.
///
/// # Errors
/// A daemon runs, the record is damaged, or a setting cannot be put back.
pub(crate) fn restore_now(config: &Config, console: Console) -> Result<()> {
    let socket = &config.serve.socket;
    if UnixStream::connect(socket).is_ok() {
        bail!(
            "{}: a daemon answers there, and puts everything back when it ends; stop it (systemctl stop isotherm)",
            socket.display()
        );
    }
    let record = KnobRecord::within(&config.serve.state);
    match restore(&record, &mut SysfsFiles::below(Path::new("/")))? {
        None => console.info(&format!(
            "{}: no daemon left settings of the kernel's promotion changed",
            config.serve.state.display()
        )),
        Some(put) if put.failed.is_empty() => console.info(&put.to_string()),
        Some(put) => bail!("{put}; the record stays for another try, as root"),
    }
    Ok(())
}

/// The kernel's promotion under our settings. Dropping it puts them back.
#[derive(Debug)]
pub(crate) struct KernelMover<S: Sysfs> {
    root: PathBuf,
    /// `None` after they were released.
    knobs: Option<PromotionKnobs<S>>,
    control: PromotionControl,
    counts: PromotionCounts,
    status: KernelPromotionStatus,
    console: Console,
}

impl KernelMover<SysfsFiles> {
    /// Takes over the knobs of this machine, for a fast tier of `fast_nodes` nodes. Returns None, with the reason on the console, if the
    /// kernel lacks them or refuses, or if the configuration leaves the choice to the daemon and it decides against it. Returns None as
    /// well if another daemon answers on the socket, because this one then cannot start.
    ///
    /// # Errors
    /// The state directory cannot be made.
    pub(crate) fn start(
        config: &Config,
        fast_nodes: usize,
        console: Console,
    ) -> Result<Option<Self>> {
        if UnixStream::connect(&config.serve.socket).is_ok() {
            return Ok(None);
        }
        let root = Path::new("/");
        let is_auto = config.moves.mover == MoverName::Auto;
        if is_auto && let Err(why) = may_take(&SysfsFiles::below(root), fast_nodes) {
            console.info(&format!("the daemon alone promotes: {why}"));
            return Ok(None);
        }
        config.make_state()?;
        let record = KnobRecord::within(&config.serve.state);
        match Self::take(root, SysfsFiles::below(root), record, config, console) {
            Ok(mover) => Ok(Some(mover)),
            Err(error) if is_auto => {
                console.info(&format!("the daemon alone promotes: {error}"));
                Ok(None)
            }
            Err(error) => {
                console.warn(&format!(
                    "moves.mover = \"kernel\": {error}; the daemon moves pages by itself"
                ));
                Ok(None)
            }
        }
    }
}

/// Checks whether the daemon may take over the kernel's promotion when the configuration does not require it; the error is the reason.
fn may_take(sysfs: &impl Sysfs, fast_nodes: usize) -> Result<(), String> {
    if !rights::may_administer() {
        return Err("it has no CAP_SYS_ADMIN to set the kernel's promotion with".to_owned());
    }
    let mode = Knob::Balancing.read(sysfs);
    is_unused(mode.map_err(|error| error.to_string())?, fast_nodes)
}

/// Checks that this mode of `kernel.numa_balancing` is not in use; the error says what uses it. Mode 1, the default of most distributions, keeps data near its
/// processors, which says nothing where one node has all of them.
fn is_unused(mode: u64, fast_nodes: usize) -> Result<(), String> {
    match mode {
        0 => Ok(()),
        1 if fast_nodes < 2 => Ok(()),
        1 => Err(format!(
            "kernel.numa_balancing is 1, which keeps data near its processors on {fast_nodes} fast nodes; moves.mover = \"kernel\" sets 2 all the same"
        )),
        mode => Err(format!(
            "kernel.numa_balancing is {mode} already, set by somebody else; moves.mover = \"kernel\" takes it over"
        )),
    }
}

impl<S: Sysfs> KernelMover<S> {
    fn take(
        root: &Path,
        sysfs: S,
        record: KnobRecord,
        config: &Config,
        console: Console,
    ) -> Result<Self, KnobError> {
        let control = PromotionControl::default();
        let values = values(control.pace(), config.moves.rate.0);
        // Before the knobs: the kernel promotes as soon as they are set.
        let counts = counts(root);
        let knobs = PromotionKnobs::take(sysfs, record, &values)?;
        let status = KernelPromotionStatus {
            active: true,
            period_ms: control.pace().period_ms,
            threshold_ms: control.pace().threshold_ms,
            ..KernelPromotionStatus::default()
        };
        Ok(Self {
            root: root.to_owned(),
            knobs: Some(knobs),
            control,
            counts,
            status,
            console,
        })
    }

    /// Counts the kernel's moves of an epoch, and sets the pace of the next one.
    pub(crate) fn follow(&mut self, report: &EpochReport, config: &Config) {
        let now = counts(&self.root);
        let since = now.since(std::mem::replace(&mut self.counts, now));
        let status = &mut self.status;
        status.hint_faults = status.hint_faults.saturating_add(since.hint_faults);
        status.promoted_bytes = status.promoted_bytes.saturating_add(since.promoted.0);
        status.demoted_bytes = status.demoted_bytes.saturating_add(since.demoted.0);
        let Some(knobs) = &mut self.knobs else {
            return;
        };
        let is_sampled = report.seen_by == Some(ProfilingMethod::TraceSamples);
        let accesses = if is_sampled { report.accesses } else { 0 };
        let pace = self.control.follow(&PromotionEpoch {
            span: report.span,
            accesses,
            slow: accesses.saturating_sub(report.accesses_fast),
            faults: since.hint_faults,
            promoted: since.promoted,
            demoted: Bytes(since.demoted.0.saturating_add(report.moves.demoted.0)),
            fast: report.capacity,
            budget_ppm: config.budget_ppm(),
        });
        (status.period_ms, status.threshold_ms) = (pace.period_ms, pace.threshold_ms);
        if let Err(error) = knobs.set(&values(pace, config.moves.rate.0)) {
            self.let_go(&error);
        }
    }

    /// Releases the knobs for the rest of the run.
    fn let_go(&mut self, why: &KnobError) {
        let put = self.knobs.take().map(|mut knobs| knobs.release());
        let put = put.unwrap_or_default();
        let said = format!("the kernel's promotion is let go: {why}; {put}");
        self.console.warn(&said);
        (self.status.active, self.status.why) = (false, why.to_string());
    }

    /// True until the knobs are released.
    pub(crate) const fn is_active(&self) -> bool {
        self.status.active
    }

    /// The kernel's moves and the pace, for the status.
    pub(crate) fn status(&self) -> KernelPromotionStatus {
        self.status.clone()
    }
}

impl<S: Sysfs> Drop for KernelMover<S> {
    fn drop(&mut self) {
        if let Some(mut knobs) = self.knobs.take() {
            let put = knobs.release();
            match put.failed.is_empty() && put.left.is_empty() {
                true => self.console.info(&put.to_string()),
                false => self.console.warn(&put.to_string()),
            }
        }
    }
}

fn counts(root: &Path) -> PromotionCounts {
    PromotionCounts::read(root, Bytes(rustix::param::page_size() as u64))
}

/// The knobs of a pace, with at most `rate` promoted in a second.
fn values(pace: PromotionPace, rate: Bytes) -> BTreeMap<Knob, u64> {
    let megabytes = (rate.0 >> 20) / pace.rate_divisor.max(1);
    BTreeMap::from([
        (Knob::Demotion, 1),
        (Knob::RateLimit, megabytes.clamp(1, u64::from(u32::MAX))),
        (Knob::HotThreshold, pace.threshold_ms),
        (Knob::ScanDelay, DELAY_MS.max(pace.period_ms)),
        (Knob::ScanPeriodMin, pace.period_ms),
        // The kernel lets a program's own period drift towards the longest one while its pages are where it works.
        (Knob::ScanPeriodMax, pace.period_ms),
        (Knob::ScanSize, PART_MB),
        (Knob::Balancing, 2),
    ])
}

#[cfg(test)]
mod tests {
    use super::{KernelMover, is_unused};
    use crate::config::Config;
    use isotherm_act::promotion_knobs::{Knob, KnobRecord};
    use isotherm_act::sysfs::{Sysfs, SysfsFiles};
    use isotherm_console::Console;
    use isotherm_model::source_kind::ProfilingMethod;
    use isotherm_model::units::{Bytes, Nanos};
    use isotherm_observe::doctor::PROMOTION_FILES;
    use isotherm_pipeline::EpochReport;
    use std::io;
    use std::path::{Path, PathBuf};
    use tempfile::TempDir;

    /// The settings of the kernel as shipped.
    const SHIPPED: [(Knob, u64); 8] = [
        (Knob::Demotion, 0),
        (Knob::RateLimit, 65_536),
        (Knob::HotThreshold, 1_000),
        (Knob::ScanDelay, 1_000),
        (Knob::ScanPeriodMin, 1_000),
        (Knob::ScanPeriodMax, 60_000),
        (Knob::ScanSize, 256),
        (Knob::Balancing, 1),
    ];

    /// The files of a machine; a write replaces the text, as in the kernel's files. `numa_balancing` = 2 promotes one page at once.
    #[derive(Debug)]
    struct Kernel(PathBuf);

    impl Sysfs for Kernel {
        fn names(&self, directory: &Path) -> io::Result<Vec<String>> {
            SysfsFiles::below(&self.0).names(directory)
        }

        fn read(&self, file: &Path) -> io::Result<String> {
            SysfsFiles::below(&self.0).read(file)
        }

        fn write(&mut self, file: &Path, word: &str) -> io::Result<()> {
            std::fs::write(self.0.join(file), format!("{word}\n"))?;
            match (file == Path::new(Knob::Balancing.file()), word) {
                (true, "2") => std::fs::write(self.0.join("proc/vmstat"), vmstat(1, 1)),
                _ => Ok(()),
            }
        }
    }

    fn vmstat(faults: u64, promoted: u64) -> String {
        format!("numa_hint_faults {faults}\npgpromote_success {promoted}\n")
    }

    struct Machine {
        root: TempDir,
        config: Config,
    }

    impl Machine {
        fn new() -> Self {
            let machine = Self {
                root: tempfile::tempdir().expect("a directory"),
                config: Config::read(None).expect("the defaults"),
            };
            for (knob, value) in SHIPPED {
                machine.write(knob.file(), &value.to_string());
            }
            machine.vmstat(0, 0);
            machine
        }

        fn write(&self, file: &str, text: &str) {
            let path = self.root.path().join(file);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            std::fs::write(path, format!("{text}\n")).expect("written");
        }

        fn vmstat(&self, faults: u64, promoted: u64) {
            self.write("proc/vmstat", &vmstat(faults, promoted));
        }

        fn value(&self, knob: Knob) -> u64 {
            let text = std::fs::read_to_string(self.root.path().join(knob.file()));
            text.expect("a file").trim().parse().expect("a number")
        }

        fn is_as_shipped(&self) -> bool {
            let same = |(knob, value): &(Knob, u64)| self.value(*knob) == *value;
            SHIPPED.iter().all(same) && !self.root.path().join("kernel-promotion").exists()
        }

        fn mover(&self) -> KernelMover<Kernel> {
            let root = self.root.path();
            let (sysfs, record) = (Kernel(root.to_owned()), KnobRecord::within(root));
            KernelMover::take(root, sysfs, record, &self.config, Console::new(true)).expect("taken")
        }
    }

    fn epoch(accesses: u64, fast: u64) -> EpochReport {
        EpochReport {
            span: Nanos(1_000_000_000),
            seen_by: Some(ProfilingMethod::TraceSamples),
            accesses,
            accesses_fast: fast,
            capacity: Bytes(160 << 20),
            ..EpochReport::default()
        }
    }

    #[test]
    fn the_doctor_looks_for_the_files_that_are_set() {
        let mut files = PROMOTION_FILES.to_vec();
        let mut knobs: Vec<&str> = Knob::ALL.iter().map(|knob| knob.file()).collect();
        files.sort_unstable();
        knobs.sort_unstable();
        assert_eq!(files, knobs);
    }

    #[test]
    fn a_mode_that_somebody_may_depend_on_is_left_to_them() {
        assert!(is_unused(0, 1).is_ok() && is_unused(0, 4).is_ok());
        assert!(is_unused(1, 1).is_ok());
        let near = is_unused(1, 2).expect_err("two nodes with processors");
        assert!(near.contains("on 2 fast nodes"), "{near}");
        let other = is_unused(2, 1).expect_err("an operator has set it");
        assert!(other.contains("is 2 already"), "{other}");
    }

    #[test]
    fn the_pace_follows_the_epochs_and_the_end_puts_everything_back() {
        let machine = Machine::new();
        let mut mover = machine.mover();
        assert_eq!(machine.value(Knob::Balancing), 2);
        assert_eq!(machine.value(Knob::RateLimit), 256);
        let first = (
            machine.value(Knob::ScanPeriodMin),
            machine.value(Knob::HotThreshold),
        );
        // Half of the accesses are slow, and nothing is promoted.
        mover.follow(&epoch(100, 50), &machine.config);
        assert_eq!(machine.value(Knob::HotThreshold), 2 * first.1);
        // All is fast.
        machine.vmstat(10, 512);
        mover.follow(&epoch(100, 100), &machine.config);
        assert_eq!(machine.value(Knob::ScanPeriodMin), 2 * first.0);
        let status = mover.status();
        assert!(status.active && status.why.is_empty());
        assert_eq!(status.hint_faults, 10);
        assert_eq!(
            status.promoted_bytes,
            512 * rustix::param::page_size() as u64
        );
        assert_eq!(status.period_ms, 2 * first.0);
        drop(mover);
        assert!(machine.is_as_shipped());
    }

    #[test]
    fn accessed_bits_are_no_share_of_accesses() {
        let machine = Machine::new();
        let mut mover = machine.mover();
        let before = machine.value(Knob::HotThreshold);
        let report = EpochReport {
            seen_by: Some(ProfilingMethod::AccessedBits),
            ..epoch(100, 0)
        };
        mover.follow(&report, &machine.config);
        assert_eq!(machine.value(Knob::HotThreshold), before);
    }

    #[test]
    fn another_owner_of_a_knob_keeps_it_and_nothing_is_set_any_more() {
        let machine = Machine::new();
        let mut mover = machine.mover();
        machine.write(Knob::Balancing.file(), "0");
        mover.follow(&epoch(100, 50), &machine.config);
        let status = mover.status();
        assert!(!status.active && !mover.is_active());
        assert!(status.why.contains("numa_balancing"), "{}", status.why);
        assert_eq!(machine.value(Knob::Balancing), 0);
        assert_eq!(machine.value(Knob::ScanPeriodMin), 1_000);
        machine.write(Knob::Balancing.file(), "2");
        mover.follow(&epoch(100, 50), &machine.config);
        drop(mover);
        assert_eq!(machine.value(Knob::Balancing), 2, "theirs");
    }
}
