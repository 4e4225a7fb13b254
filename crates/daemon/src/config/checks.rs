//! [`Config::checked`] makes the configuration from a table that has every key, and rejects values that have the wrong type, are invalid,
//! or contradict each other; the message about the latter two names the key and what would be valid.

use anyhow::{Result, bail};
use isotherm_model::units::{Bytes, Capacity, Nanos};
use isotherm_observe::source::process_samples::TIMER_HZ_MAX;
use isotherm_policy::epoch::{LoadBalance, MoveCosts, by_name};

use super::keys::{BitsName, Config, MoverName, SamplesName};

/// Shortest and longest useful epochs: below, scanning memory takes longer than the epoch; above,
/// no page is hot any more.
const EPOCHS: [Nanos; 2] = [Nanos(100_000_000), Nanos(3_600_000_000_000)];

/// The highest PMU rate, as a multiple of the default: one sample in 4,096 operations.
const PMU_RATE_MAX: u32 = 64;

/// Largest unit, as that of `isotherm run --unit`: larger ones hold hot and cold data alike.
const UNIT_MAX: Bytes = Bytes(1 << 30);

/// Largest size of fast memory: the addresses that a program has on x86-64 and on most of arm64.
const FAST_MAX: Bytes = Bytes(1 << 47);

const SECOND: Nanos = Nanos(1_000_000_000);

/// Why a configuration was rejected.
pub(super) enum Refusal {
    /// A value has the wrong type: the message of the parser, which does not name the key.
    Unread(String),
    /// A value is invalid, or conflicts with another; the message names the key.
    Unfit(String),
}

impl Config {
    /// Reads a table that has every key.
    pub(super) fn checked(whole: toml::Table) -> Result<Self, Refusal> {
        let config: Self = whole
            .try_into()
            .map_err(|error: toml::de::Error| Refusal::Unread(error.message().to_owned()))?;
        let checked = config.check();
        checked.map_err(|error| Refusal::Unfit(format!("{error:#}")))?;
        Ok(config)
    }

    fn check(&self) -> Result<()> {
        let epoch = self.epoch.0;
        if epoch < EPOCHS[0] || epoch > EPOCHS[1] {
            bail!(
                "epoch = \"{}\": an epoch is from {} to {}",
                epoch.exact(),
                EPOCHS[0],
                EPOCHS[1]
            );
        }
        if !self.balances() && by_name(&self.policy, MoveCosts::TYPICAL).is_none() {
            bail!(
                "policy = \"{}\": there is no such policy; there are {}",
                self.policy,
                isotherm_policy::epoch::names()
                    .chain([LoadBalance::NAME])
                    .collect::<Vec<_>>()
                    .join(", ")
            );
        }
        if self.balances() && self.moves.mover == MoverName::Kernel {
            bail!(
                "policy = \"balance\": the kernel promotes whatever the load of fast memory is; leave out moves.mover = \"kernel\""
            );
        }
        if self.foresees() && !self.groups.is_empty() {
            bail!("policy = \"oracle\": it knows nothing of [groups]; leave one of them out");
        }
        self.check_memory()?;
        self.check_processes()?;
        self.check_sources()?;
        self.check_moves()?;
        self.check_energy()?;
        self.check_compressed()?;
        for (key, path) in [("socket", &self.serve.socket), ("state", &self.serve.state)] {
            if path.as_os_str().is_empty() {
                bail!("serve.{key} = \"\": names no path; leave the key out for the usual one");
            }
        }
        self.metrics()?;
        self.selection()?;
        self.groups()?;
        Ok(())
    }

    fn check_compressed(&self) -> Result<()> {
        let Capacity::Share(share) = self.compressed.slowdown.0 else {
            bail!(
                "compressed.slowdown = \"{}\": is a share of the time, such as 2%",
                self.compressed.slowdown.0
            );
        };
        if share >= 1.0 && self.compressed.keep.0 == Capacity::Bytes(Bytes::ZERO) {
            bail!(
                "compressed.slowdown = \"100%\": all memory might leave; give compressed.keep what stays"
            );
        }
        Ok(())
    }

    fn check_memory(&self) -> Result<()> {
        let unit = self.memory.unit.0;
        let page = Bytes(rustix::param::page_size() as u64);
        if !unit.0.is_power_of_two() || !(page..=UNIT_MAX).contains(&unit) {
            bail!(
                "memory.unit = \"{}\": a unit is a power of two from {} to {}",
                unit.exact(),
                page.exact(),
                UNIT_MAX.exact()
            );
        }
        match self.memory.fast.0 {
            Capacity::Bytes(Bytes::ZERO) => bail!(
                "memory.fast = \"0B\": a fast tier of zero bytes holds nothing; give a size, or a share of \
                 the fast tier such as 50%"
            ),
            Capacity::Bytes(fast) if fast > FAST_MAX => bail!(
                "memory.fast = \"{}\": a program has at most {} of addresses; give a smaller size, or a \
                 share of the fast tier such as 50%",
                fast.exact(),
                FAST_MAX.exact()
            ),
            Capacity::Bytes(_) | Capacity::Share(_) => Ok(()),
        }
    }

    /// Refuses what selects no process: with it alone the daemon would run and watch nothing.
    fn check_processes(&self) -> Result<()> {
        let processes = &self.processes;
        if processes.pids.contains(&0) {
            bail!(
                "processes.pids: 0: no process has this number; give those of processes, or leave the key out for all"
            );
        }
        if processes.programs.iter().any(String::is_empty) {
            bail!(
                "processes.programs: \"\": names no program; give a name or a path such as redis-server or \
                 /opt/*, or leave the key out for all"
            );
        }
        let groups = &mut processes.control_groups.iter();
        if let Some(name) = groups.find(|name| !name.starts_with('/')) {
            bail!(
                "processes.control_groups: \"{name}\": the name of a control group begins with /, as in /system.slice"
            );
        }
        Ok(())
    }

    fn check_sources(&self) -> Result<()> {
        let hz = self.sources.sample_hz;
        if hz == 0 || hz > TIMER_HZ_MAX {
            bail!(
                "sources.sample_hz = {hz}: a number from 1 to {TIMER_HZ_MAX} is wanted; trace_samples = \
                 \"off\" takes no samples"
            );
        }
        let pmu = self.sources.pmu_rate;
        if !pmu.is_power_of_two() || pmu > PMU_RATE_MAX {
            bail!("sources.pmu_rate = {pmu}: a power of two from 1 to {PMU_RATE_MAX} is wanted");
        }
        let (bits, samples) = (self.sources.accessed_bits, self.sources.trace_samples);
        if bits == BitsName::HintFaults && samples == SamplesName::Off {
            bail!(
                "sources.accessed_bits = \"hint-faults\": they show slow memory only, so what is fast needs trace samples; \
                 leave trace_samples out"
            );
        }
        if let Capacity::Bytes(_) = self.sources.budget.0 {
            bail!("sources.budget: a share of one processor such as 1% is wanted");
        }
        Ok(())
    }

    fn check_energy(&self) -> Result<()> {
        if let Capacity::Share(share) = self.energy.reserve.0
            && share >= 1.0
        {
            bail!(
                "energy.reserve = \"100%\": with all memory free no node could ever be empty; give less, such as 20%"
            );
        }
        if self.energy.offline.contains(&0) {
            bail!(
                "energy.offline: node 0 has data of the kernel, which cannot be moved; name other nodes"
            );
        }
        Ok(())
    }

    fn check_moves(&self) -> Result<()> {
        let (rate, time) = (self.moves.rate.0, self.moves.time.0);
        for (key, value, is_nothing) in [
            ("rate", rate.exact(), rate == Bytes::ZERO),
            ("time", time.exact(), time == Nanos::ZERO),
        ] {
            if is_nothing {
                bail!(
                    "moves.{key} = \"{value}\": nothing would ever be moved; `isotherm daemon --dry-run` is \
                     for that"
                );
            }
        }
        if time > SECOND {
            bail!(
                "moves.time = \"{}\": it is the time of every second, so at most 1s",
                time.exact()
            );
        }
        Ok(())
    }
}
