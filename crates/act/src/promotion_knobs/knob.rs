//! [`Knob`] is a file by which the kernel's promotion is set: it reads the value, and writes another one and checks that the kernel took
//! it. [`TakenKnob`] keeps the former value of a knob that was taken over, and the value set since.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::record_file::RecordError;
use crate::sysfs::Sysfs;

isotherm_model::variant_words! {
    /// A file by which the kernel's promotion is set, in the order in which they are taken over: the switch is the last one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Knob {
        /// Whether reclaim demotes pages of fast nodes instead of dropping or swapping them: 0 or 1.
        Demotion = "sys/kernel/mm/numa/demotion_enabled",
        /// Most megabytes promoted to a node in a second.
        RateLimit = "proc/sys/kernel/numa_balancing_promote_rate_limit_MBps",
        /// The hot threshold, in milliseconds: a page that is touched within this time after its unmapping is hot.
        HotThreshold = "sys/kernel/debug/sched/numa_balancing/hot_threshold_ms",
        /// Milliseconds from the start of a program to its first scan round.
        ScanDelay = "sys/kernel/debug/sched/numa_balancing/scan_delay_ms",
        /// Minimum time between two parts of a round, in milliseconds.
        ScanPeriodMin = "sys/kernel/debug/sched/numa_balancing/scan_period_min_ms",
        /// Maximum time between two parts of a round, in milliseconds.
        ScanPeriodMax = "sys/kernel/debug/sched/numa_balancing/scan_period_max_ms",
        /// Size of one part of a round, in megabytes.
        ScanSize = "sys/kernel/debug/sched/numa_balancing/scan_size_mb",
        /// The switch: 0 for off, 1 for balancing among nodes with processors, 2 for promotion.
        Balancing = "proc/sys/kernel/numa_balancing",
    }
}

impl Knob {
    /// Its file, from the root.
    #[must_use]
    pub const fn file(self) -> &'static str {
        self.word()
    }

    /// Its name: the name of its file.
    #[must_use]
    pub fn name(self) -> &'static str {
        let file = self.file();
        file.rsplit('/').next().unwrap_or(file)
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|knob| knob.name() == name)
    }

    /// Its present value.
    ///
    /// # Errors
    /// The file cannot be read, or is no number.
    pub fn read(self, sysfs: &impl Sysfs) -> Result<u64, KnobError> {
        let error = |why: String| KnobError::Unread {
            file: self.file(),
            why,
        };
        let text = sysfs
            .read(Path::new(self.file()))
            .map_err(|it| error(it.to_string()))?;
        match text.as_str() {
            "true" => Ok(1),
            "false" => Ok(0),
            number => number
                .parse()
                .map_err(|_| error(format!("\"{number}\" is no number"))),
        }
    }

    /// Writes a value, and checks that the kernel took it.
    pub(super) fn write(self, sysfs: &mut impl Sysfs, value: u64) -> Result<(), KnobError> {
        let error = |why: String| KnobError::Refused {
            file: self.file(),
            value,
            why,
        };
        let written = sysfs.write(Path::new(self.file()), &value.to_string());
        written.map_err(|it| error(refusal(&it)))?;
        match self.read(sysfs)? {
            now if now == value => Ok(()),
            now => Err(error(format!("it is {now} after the write"))),
        }
    }
}

fn refusal(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("{error}: only root with CAP_SYS_ADMIN may change it")
        }
        _ => error.to_string(),
    }
}

/// The reason why the kernel does not promote by our values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KnobError {
    /// A file is absent or has no number.
    #[error(
        "/{file}: {why}; promotion by the kernel needs Linux 6.1 with CONFIG_NUMA_BALANCING, and debugfs mounted \
         (mount -t debugfs debugfs /sys/kernel/debug)"
    )]
    Unread {
        /// The file, from the root.
        file: &'static str,
        /// The cause.
        why: String,
    },
    /// The kernel refused a value.
    #[error("/{file}: {value} was not taken: {why}")]
    Refused {
        /// The file, from the root.
        file: &'static str,
        /// The value.
        value: u64,
        /// The cause.
        why: String,
    },
    /// Another program has changed a knob since.
    #[error("/{file} was set to {set} and is {now}: somebody else sets it, so it is theirs")]
    OtherOwner {
        /// The file, from the root.
        file: &'static str,
        /// Our value.
        set: u64,
        /// Its present value.
        now: u64,
    },
    /// The record on disk cannot be used.
    #[error("{0}; without a record the kernel's settings could not be put back after a kill")]
    Record(#[from] RecordError),
}

/// A knob that was taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenKnob {
    /// Its value before.
    pub was: u64,
    /// The value that was set last; while a change is made, also the value to be set.
    pub set: Vec<u64>,
}

impl TakenKnob {
    pub(super) fn is_ours(&self, now: u64) -> bool {
        self.set.contains(&now)
    }
}

/// Knobs that were taken over, by knob.
pub type TakenKnobs = BTreeMap<Knob, TakenKnob>;
