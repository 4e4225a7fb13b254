//! [`MachineTiers`] finds the tiers between which the daemon moves memory, as `memory.tiers` names them; those of a replay, and of a dry
//! run on a machine with one kind of memory, are imagined. From their latencies it estimates the time that an access to fast memory saves
//! and how many accesses a timer sample stands for; a move has a fixed cost for each 4 KiB.

use std::path::Path;

use anyhow::{Context, Result, bail};
use isotherm_model::emulation::{Emulation, TimeCosts};
use isotherm_model::movement::NodeId;
use isotherm_model::paged::{IN_MEMORY, PAGED_OUT};
use isotherm_model::tier::Tiers;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_observe::source::process_samples::SampleWorth;
use isotherm_policy::epoch::MoveCosts;

use crate::config::Config;
use crate::dry_run::Target;
use crate::paged::{self, COMPRESSED};

/// Latency of a load from slow memory where the tiers have none: a published figure for CXL memory.
const SLOW_LATENCY: Nanos = Nanos(300);

/// Time to move a page of 4 KiB, as in [`MoveCosts::TYPICAL`].
const MOVE_NS_A_PAGE: u64 = 2_000;

/// Node numbers of tiers that have no nodes, imagined or emulated. No system call receives them; requests to emulated machines contain
/// them.
pub(crate) const NO_NODE_FAST: NodeId = NodeId(0);
const NO_NODE_SLOW: NodeId = NodeId(1);

/// The value of `memory.tiers` for emulated machines.
const EMULATED: &str = "emulated";

/// The kind of the tiers, by where their memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TierPlace {
    /// Memory nodes.
    Nodes,
    /// In the daemon's accounts only: for a dry run on a machine with one kind of memory, and for the replay of a recording.
    Imagined,
    /// In memory and in swap.
    Paged,
    /// In the emulated machines of programs that run under the runtime.
    Emulated,
}

/// The tiers between which the daemon moves memory: the first two, fastest first. Further ones are not used.
#[derive(Debug)]
pub(crate) struct MachineTiers {
    /// All tiers of the machine, fastest first.
    pub(crate) tiers: Tiers,
    pub(crate) fast: Vec<NodeId>,
    pub(crate) slow: Vec<NodeId>,
    pub(crate) place: TierPlace,
}

/// The error message for a value of `memory.tiers` that is not valid.
const NO_TIERS: &str = "is neither detect nor emulated nor compressed nor a tiers file that can be read; `isotherm tiers -o FILE` \
                        writes one";

impl MachineTiers {
    pub(crate) fn find(config: &Config, dry_run: bool) -> Result<Self> {
        let tiers = match config.memory.tiers.as_str() {
            "detect" => isotherm_topology::detect(Path::new("/"))?,
            EMULATED => return Ok(Self::emulated()),
            COMPRESSED => {
                return Ok(Self {
                    fast: vec![IN_MEMORY],
                    slow: vec![PAGED_OUT],
                    tiers: paged::tiers(dry_run)?,
                    place: TierPlace::Paged,
                });
            }
            file => {
                let read = isotherm_topology::read_file(Path::new(file));
                let key = || format!("memory.tiers = \"{file}\": {NO_TIERS}");
                read.with_context(key)?.tiers
            }
        };
        if tiers.emulates() && !dry_run {
            return Ok(Self {
                place: TierPlace::Emulated,
                ..Self::imagined(tiers)
            });
        }
        let imagined = tiers.emulates() || tiers.all().len() == 1;
        if imagined && !dry_run {
            bail!(
                "this machine has one kind of memory, so there is nothing to move between; `isotherm \
                 daemon --dry-run` shows what would be kept in a fast tier of memory.fast, and with \
                 memory.tiers = \"emulated\" it moves memory of programs that `isotherm run --policy none` started"
            );
        }
        if imagined {
            return Ok(Self::imagined(tiers));
        }
        let nodes = |at: usize| NodeId::of(&tiers.all()[at]).collect();
        Ok(Self {
            fast: nodes(0),
            slow: nodes(1),
            tiers,
            place: TierPlace::Nodes,
        })
    }

    /// The tiers of emulated machines. Each machine has a size of its own, at most that of this machine's memory.
    pub(crate) fn emulated() -> Self {
        let info = rustix::system::sysinfo();
        let memory = Bytes(info.totalram as u64 * u64::from(info.mem_unit));
        let costs = Emulation::Time(TimeCosts::CXL);
        Self {
            place: TierPlace::Emulated,
            ..Self::imagined(Tiers::emulated(memory, memory, costs))
        }
    }

    /// These tiers as imagined ones, for a dry run or the replay of a recording.
    pub(crate) fn imagined(tiers: Tiers) -> Self {
        Self {
            tiers,
            fast: vec![NO_NODE_FAST],
            slow: vec![NO_NODE_SLOW],
            place: TierPlace::Imagined,
        }
    }

    /// The tiers for which a dry run prints moves.
    pub(crate) fn dry_target(&self) -> Target<'_> {
        match self.place {
            TierPlace::Imagined | TierPlace::Emulated | TierPlace::Paged => {
                Target::Imagined(NO_NODE_FAST)
            }
            TierPlace::Nodes => Target::Machine(&self.fast),
        }
    }

    /// Bytes of the fast tier that watched processes may use, by `memory.fast`.
    pub(crate) fn fast_limit(&self, config: &Config) -> Bytes {
        config.memory.fast.0.of(self.tiers.all()[0].capacity)
    }

    /// Time saved by an access to fast instead of slow memory, and the time that moving a unit takes.
    pub(crate) fn costs(&self, unit: Bytes) -> MoveCosts {
        let latency = |at: usize| self.tiers.all().get(at)?.latency;
        let saved = latency(1)
            .zip(latency(0))
            .map(|(slow, fast)| slow.saturating_sub(fast));
        MoveCosts {
            saved: saved.unwrap_or(MoveCosts::TYPICAL.saved),
            moved_page: Nanos((unit.0 / 4096).max(1).saturating_mul(MOVE_NS_A_PAGE)),
        }
    }

    /// Number of accesses that one sample represents: for a timer sample, the loads that slow memory serves one after
    /// the other within the sampling period; for a PMU sample, its period; 1 without a source of samples.
    pub(crate) fn accesses_per_sample(&self, worth: Option<SampleWorth>) -> u64 {
        let slow = self.tiers.all().get(1).and_then(|tier| tier.latency);
        let slow = slow.unwrap_or(SLOW_LATENCY).0.max(1);
        match worth {
            None => 1,
            Some(SampleWorth::Time(between)) => (between.0 / slow).max(1),
            Some(SampleWorth::Accesses(accesses)) => accesses,
        }
    }
}
