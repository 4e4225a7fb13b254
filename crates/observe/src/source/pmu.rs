//! [`Pmu`], a kind of hardware sampling that reports data addresses (PEBS, IBS, SPE), makes its perf event from the files under
//! `/sys/bus/event_source/devices`, with a default period of its own, for [`super::sampled_event`] and `doctor`. Helpers read that
//! directory for the counters of memory controllers, too.

use std::path::{Path, PathBuf};

use isotherm_sys::perf::PerfEventAttributes;

/// A kind of hardware sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pmu {
    /// Intel: `mem-loads`, by PEBS.
    Pebs,
    /// AMD: instruction-based sampling of micro-operations.
    Ibs,
    /// Arm: the statistical profiling extension.
    Spe,
}

/// Loads that take fewer cycles are not sampled: they hit the first two levels of cache.
const LOAD_LATENCY_CYCLES: u64 = 30;

/// Sample period in loads, or stores; prime, so that no loop of the program runs in step with it.
const PEBS_PERIOD: u64 = 10_007;

/// Sample period in operations (TMP's default), or cycles; IBS wants a multiple of 16. About 10,000
/// samples a second, of which the loads and stores have an address.
const IBS_PERIOD: u64 = 1 << 18;

/// IBS ignores the lowest four bits of a period.
const IBS_STEP: u64 = 16;

impl Pmu {
    /// The event to open, as this machine's sysfs describes it.
    ///
    /// # Errors
    /// Why there is none, in one sentence.
    pub fn event(self, root: &Path) -> Result<PerfEventAttributes, String> {
        match self {
            Self::Pebs => pebs(root),
            Self::Ibs => ibs(root),
            Self::Spe => spe(root),
        }
    }

    /// The event that samples the accesses which the first one omits: stores by PEBS. None where there
    /// is no such event, or the first covers them too.
    #[must_use]
    pub fn beside(self, root: &Path) -> Option<PerfEventAttributes> {
        let unit = self.directory(root).filter(|_| self == Self::Pebs)?;
        let terms = read(&unit.join("events/mem-stores")).ok()?;
        let configs = configs(&unit, &terms).ok()?;
        Some(PerfEventAttributes {
            tasks: false,
            ..PerfEventAttributes::precise(kind(&unit).ok()?, configs, PEBS_PERIOD, 2)
        })
    }

    /// Bits of `config` that add physical addresses to the event; None where it has no such bits.
    #[must_use]
    pub fn physical(self, root: &Path) -> Option<u64> {
        match self {
            Self::Pebs | Self::Ibs => Some(0),
            Self::Spe => {
                let mut configs = [0; 3];
                set(&mut configs, &self.directory(root)?, "pa_enable", 1).ok()?;
                Some(configs[0])
            }
        }
    }

    /// The period nearest to a wanted one that the unit can sample at: IBS counts in steps of 16, and SPE has a smallest
    /// interval.
    #[must_use]
    pub fn nearest_period(self, root: &Path, wanted: u64) -> u64 {
        match self {
            Self::Pebs => wanted.max(1),
            Self::Ibs => wanted.max(IBS_STEP).next_multiple_of(IBS_STEP),
            Self::Spe => {
                let unit = self.directory(root);
                wanted
                    .max(unit.map_or(0, |unit| least_interval(&unit)))
                    .max(1)
            }
        }
    }

    /// The sysfs directory of the unit, if the machine has it.
    #[must_use]
    pub fn directory(self, root: &Path) -> Option<PathBuf> {
        let devices = devices(root);
        match self {
            Self::Pebs => ["cpu", "cpu_core"]
                .iter()
                .map(|name| devices.join(name))
                .find(|path| path.join("events/mem-loads").exists()),
            Self::Ibs => Some(devices.join("ibs_op")).filter(|path| path.exists()),
            Self::Spe => Some(devices.join("arm_spe_0")).filter(|path| path.exists()),
        }
    }
}

/// The sysfs directory of all units, below this root.
pub(crate) fn devices(root: &Path) -> PathBuf {
    root.join("sys/bus/event_source/devices")
}

fn pebs(root: &Path) -> Result<PerfEventAttributes, String> {
    let unit = Pmu::Pebs
        .directory(root)
        .ok_or("no processor of this machine has the event mem-loads")?;
    let path = unit.join("events/mem-loads");
    let terms = read(&path)?;
    let mut configs = configs(&unit, &terms)?;
    // The kernel's own default counts every load from three cycles on.
    set(&mut configs, &unit, "ldlat", LOAD_LATENCY_CYCLES)?;
    let event = PerfEventAttributes::precise(kind(&unit)?, configs, PEBS_PERIOD, 2);
    // From Sapphire Rapids on the kernel gives the data source only with an auxiliary event beside
    // it.
    let leader = read(&unit.join("events/mem-loads-aux")).ok();
    let leader = leader
        .map(|terms| self::configs(&unit, &terms))
        .transpose()?;
    Ok(PerfEventAttributes {
        leader: leader.map(|configs| configs[0]),
        ..event
    })
}

/// Bytes of the ring that SPE writes, for each processor and thread: one second of records of a busy
/// one, of at most 64 bytes. Records beyond a full ring are lost until it is read.
const SPE_BYTES: usize = 256 << 10;

/// Sample period in operations, where the processor supports it; TMP's default.
const SPE_PERIOD: u64 = 1 << 18;

fn spe(root: &Path) -> Result<PerfEventAttributes, String> {
    let unit = Pmu::Spe
        .directory(root)
        .ok_or("no processor of this machine has Arm SPE")?;
    let mut configs = [0; 3];
    // Branches have no data address; jitter keeps loops of the program from running in step with
    // the period.
    for name in ["load_filter", "store_filter", "jitter"] {
        set(&mut configs, &unit, name, 1)?;
    }
    let period = SPE_PERIOD.max(least_interval(&unit));
    Ok(PerfEventAttributes::traced(
        kind(&unit)?,
        configs,
        period,
        SPE_BYTES,
    ))
}

/// The smallest interval that the processor supports; old kernels have other files with no number.
fn least_interval(unit: &Path) -> u64 {
    let least = read(&unit.join("caps/min_interval")).ok();
    least.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn ibs(root: &Path) -> Result<PerfEventAttributes, String> {
    let unit = Pmu::Ibs
        .directory(root)
        .ok_or("no processor of this machine has AMD IBS")?;
    let mut configs = [0; 3];
    // Operations rather than cycles, where the processor can: cycles would sample slow operations
    // more often.
    if unit.join("format/cnt_ctl").exists() {
        set(&mut configs, &unit, "cnt_ctl", 1)?;
    }
    let event = PerfEventAttributes::precise(kind(&unit)?, configs, IBS_PERIOD, 2);
    // Most kernels cannot exclude the kernel for IBS; samples of the kernel are dropped by their
    // address.
    Ok(PerfEventAttributes {
        exclude_kernel: false,
        precise: 0,
        ..event
    })
}

/// The text of a file without surrounding blanks.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path)
        .map(|text| text.trim().to_owned())
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// The number of a unit for `perf_event_open`.
pub(crate) fn kind(unit: &Path) -> Result<u32, String> {
    let path = unit.join("type");
    let text = read(&path)?;
    text.parse()
        .map_err(|_| format!("{}: \"{text}\" is not a number", path.display()))
}

/// Turns `event=0xcd,umask=0x1,ldlat=3` into config, config1 and config2.
pub(crate) fn configs(unit: &Path, terms: &str) -> Result<[u64; 3], String> {
    let mut configs = [0; 3];
    for term in terms.split(',').filter(|term| !term.is_empty()) {
        let (name, value) = term.split_once('=').unwrap_or((term, "1"));
        let value = value
            .strip_prefix("0x")
            .map_or_else(|| value.parse(), |digits| u64::from_str_radix(digits, 16))
            .map_err(|_| format!("{}: \"{term}\" has no number", unit.display()))?;
        set(&mut configs, unit, name, value)?;
    }
    Ok(configs)
}

/// Puts a value into the bits that the unit's `format` file names, such as `config1:0-15` or
/// `config:0-7,32-35`, lowest bits first.
fn set(configs: &mut [u64; 3], unit: &Path, name: &str, mut value: u64) -> Result<(), String> {
    let path = unit.join("format").join(name);
    let text = read(&path)?;
    let wrong = || format!("{}: \"{text}\" is not a place for a value", path.display());
    let (word, ranges) = text.split_once(':').ok_or_else(wrong)?;
    let config = match word {
        "config" => &mut configs[0],
        "config1" => &mut configs[1],
        "config2" => &mut configs[2],
        _ => return Err(wrong()),
    };
    for range in ranges.split(',') {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let low: u32 = low.parse().map_err(|_| wrong())?;
        let high: u32 = high.parse().map_err(|_| wrong())?;
        if low > high || high > 63 {
            return Err(wrong());
        }
        let width = high - low + 1;
        let mask = u64::MAX >> (64 - width);
        *config = *config & !(mask << low) | (value & mask) << low;
        value = value.checked_shr(width).unwrap_or(0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Pmu;
    use std::path::Path;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join("sys/bus/event_source/devices").join(name);
            std::fs::create_dir_all(path.parent().expect("has one")).expect("makes");
            std::fs::write(path, text).expect("writes");
        }
    }

    #[test]
    fn the_terms_of_an_event_go_where_the_format_files_say() {
        let root = tempfile::tempdir().expect("a directory");
        let files = [
            ("cpu/type", "4\n"),
            ("cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n"),
            ("cpu/format/event", "config:0-7\n"),
            ("cpu/format/umask", "config:8-15\n"),
            ("cpu/format/ldlat", "config1:0-15\n"),
        ];
        write(root.path(), &files);
        let event = Pmu::Pebs.event(root.path()).expect("an event");
        assert_eq!((event.kind, event.config, event.config1), (4, 0x1cd, 30));
        assert!(event.precise > 0 && event.address && event.weight);
        assert_eq!(event.leader, None);
        write(
            root.path(),
            &[("cpu/events/mem-loads-aux", "event=0x03,umask=0x82\n")],
        );
        let event = Pmu::Pebs.event(root.path()).expect("an event");
        assert_eq!(
            event.leader,
            Some(0x8203),
            "its data source needs another one"
        );
    }

    #[test]
    fn stores_are_sampled_by_an_event_of_their_own_where_there_is_one() {
        let root = tempfile::tempdir().expect("a directory");
        let files = [
            ("cpu/type", "4\n"),
            ("cpu/events/mem-loads", "event=0xcd\n"),
            ("cpu/format/event", "config:0-7\n"),
            ("cpu/format/umask", "config:8-15\n"),
        ];
        write(root.path(), &files);
        assert_eq!(Pmu::Pebs.beside(root.path()), None);
        write(
            root.path(),
            &[("cpu/events/mem-stores", "event=0xd0,umask=0x82\n")],
        );
        let stores = Pmu::Pebs.beside(root.path()).expect("an event");
        assert_eq!((stores.kind, stores.config), (4, 0x82d0));
        assert!(stores.address && stores.weight && !stores.tasks);
        assert_eq!(Pmu::Ibs.beside(root.path()), None);
    }

    #[test]
    fn samples_of_operations_are_asked_for_as_the_unit_describes_itself() {
        let root = tempfile::tempdir().expect("a directory");
        let files = [
            ("ibs_op/type", "9\n"),
            ("ibs_op/format/cnt_ctl", "config:19\n"),
            ("arm_spe_0/type", "8\n"),
            ("arm_spe_0/caps/min_interval", "256\n"),
            ("arm_spe_0/format/jitter", "config:16\n"),
            ("arm_spe_0/format/load_filter", "config:33\n"),
            ("arm_spe_0/format/store_filter", "config:34\n"),
        ];
        write(root.path(), &files);
        let event = Pmu::Ibs.event(root.path()).expect("an event");
        assert_eq!(
            (event.kind, event.config, event.period),
            (9, 1 << 19, 1 << 18)
        );
        assert!(event.address && event.weight && event.precise == 0);
        let event = Pmu::Spe.event(root.path()).expect("an event");
        assert_eq!((event.kind, event.config), (8, 1 << 16 | 1 << 33 | 1 << 34));
        assert_eq!(event.period, 1 << 18);
        assert!(event.aux_bytes > 0 && event.exclude_kernel && !event.address);
        assert_eq!(Pmu::Ibs.physical(root.path()), Some(0));
        assert_eq!(Pmu::Spe.physical(root.path()), None);
        write(root.path(), &[("arm_spe_0/format/pa_enable", "config:1\n")]);
        assert_eq!(Pmu::Spe.physical(root.path()), Some(1 << 1));
        write(root.path(), &[("arm_spe_0/caps/min_interval", "1048576\n")]);
        let near = |pmu: Pmu, wanted| pmu.nearest_period(root.path(), wanted);
        assert_eq!((near(Pmu::Ibs, 128), near(Pmu::Ibs, 1000)), (128, 1008));
        assert_eq!(
            (near(Pmu::Pebs, 8191), near(Pmu::Spe, 128)),
            (8191, 1 << 20)
        );
        let event = Pmu::Spe.event(root.path()).expect("an event");
        assert_eq!(
            event.period,
            1 << 20,
            "not less than the processor is built for"
        );
    }

    #[test]
    fn what_is_missing_or_broken_is_said() {
        let root = tempfile::tempdir().expect("a directory");
        for pmu in [Pmu::Pebs, Pmu::Ibs, Pmu::Spe] {
            assert!(
                pmu.event(root.path())
                    .expect_err("nothing there")
                    .contains("no processor")
            );
        }
        write(root.path(), &[("ibs_op/type", "eleven")]);
        let error = Pmu::Ibs.event(root.path()).expect_err("no number");
        assert!(
            error.contains("ibs_op/type") && error.contains("eleven"),
            "{error}"
        );
        write(
            root.path(),
            &[
                ("cpu/events/mem-loads", "event=0xcd"),
                ("cpu/format/event", "config:9-1"),
                ("cpu/type", "4"),
            ],
        );
        assert!(Pmu::Pebs.event(root.path()).is_err());
    }
}
