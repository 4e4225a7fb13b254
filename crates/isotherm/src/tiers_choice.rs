//! `resolve` makes tiers of `--tiers`, `--fast` and the flags of the emulated pair, and `for_run` those of a run without a plan. Where the
//! kernel refuses the samples by which a pair is slowed by time, the page trap takes its place if the flags name neither costs nor a limit
//! of bandwidth; `for_run` replaces named costs too (not those of a file), and refuses a limit. `problem` says why tiers cannot work here,
//! `cache` checks `--cache`, and the others say what the flags name, and how much memory there is and can be fast.

use std::path::Path;

use anyhow::{Result, bail};
use isotherm_model::emulation::{Emulation, TimeCosts};
use isotherm_model::footprint::Footprint;
use isotherm_model::tier::Tiers;
use isotherm_model::units::{Bytes, Capacity};
use isotherm_observe::doctor::{self, FeatureState};
use isotherm_observe::probe::{KernelProbe, Probe};

use isotherm_model::words::percent;

use crate::cli_tiers::TiersChoice;
use crate::emulation_words;
use isotherm_console::Console;

/// Default share of the footprint that is fast: the middle one of MemBrain's three
/// (1/8, 1/4, 1/2, section V).
const DEFAULT_SHARE: f64 = 0.25;

/// The word for memory of which the cold part is paged out.
const PAGED: &str = "compressed";

/// True where `--tiers` names compressed memory.
pub(crate) fn is_paged(choice: &TiersChoice) -> bool {
    choice.tiers == PAGED
}

/// What a share in `--fast` is of, in a run without a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShareBase {
    /// This machine's memory.
    Machine,
    /// This machine's memory until `--optimize-after` decides, and the program's resident data from then on.
    DataOnceKnown,
}

/// The tiers that the flags select. A share is of `footprint`: the profile's, if there
/// is one, else the machine's memory.
///
/// # Errors
/// An unknown name, a bad tiers file, a fast tier larger than the machine.
pub(crate) fn resolve(
    choice: &TiersChoice,
    footprint: Option<Footprint>,
    console: Console,
) -> Result<Tiers> {
    if footprint.is_none() {
        say_share(choice, ShareBase::Machine, console);
    }
    chosen(choice, footprint, console)
}

/// Prints what a share in `--fast` is of where there is no profile.
fn say_share(choice: &TiersChoice, base: ShareBase, console: Console) {
    if let Some(Capacity::Share(share)) = choice.fast {
        console.info(&share_words(share, memory(), base));
    }
}

fn share_words(share: f64, memory: Bytes, base: ShareBase) -> String {
    let until = match base {
        ShareBase::Machine => "",
        ShareBase::DataOnceKnown => {
            ", until the decision, and of the program's resident data from then on"
        }
    };
    format!(
        "without a profile there is no footprint, so --fast takes {} of this machine's memory, {} of {memory}{until}",
        percent(share),
        Capacity::Share(share).of(memory)
    )
}

fn chosen(choice: &TiersChoice, footprint: Option<Footprint>, console: Console) -> Result<Tiers> {
    let footprint = footprint.map(|Footprint(bytes)| bytes);
    let tiers = match choice.tiers.split_once(':').unwrap_or((&choice.tiers, "")) {
        ("emulated", text) => emulated(choice, text, footprint, console)?,
        ("detect", "") => detected(choice, footprint, console)?,
        (PAGED, "") => bail!(
            "--tiers {PAGED}: memory is paged out while a program runs, by `isotherm run` without a plan; `isotherm tiers --measure` shows its costs"
        ),
        _ => {
            let tiers = from_file(Path::new(&choice.tiers))?;
            limited(choice, tiers, footprint, &choice.tiers)?
        }
    };
    check_capacity(choice, &tiers)?;
    Ok(tiers)
}

/// The tiers of a run without a plan. Where the emulation by time that `--tiers` names cannot work, the page trap takes its place, with
/// a warning; where none can, there is only a warning.
///
/// # Errors
/// As [`resolve`], and an emulated machine with a limit, which the page trap cannot keep.
pub(crate) fn for_run(choice: &TiersChoice, base: ShareBase, console: Console) -> Result<Tiers> {
    say_share(choice, base, console);
    let tiers = chosen(choice, None, console)?;
    let tiers = stand_in(choice, tiers, &KernelProbe, console)?;
    if let Some(why) = problem(&tiers, &KernelProbe) {
        console.warn(&why);
    }
    Ok(tiers)
}

/// The tiers themselves, or the page trap where `--tiers` names an emulation by time that cannot work.
///
/// # Errors
/// The machine has a limit of the bandwidth.
fn stand_in(
    choice: &TiersChoice,
    tiers: Tiers,
    probe: &dyn Probe,
    console: Console,
) -> Result<Tiers> {
    let by_time = file(choice).is_none().then(|| by_time(&tiers)).flatten();
    let (Some(costs), FeatureState::Missing { why, .. }) = (by_time, doctor::timer(probe)) else {
        return Ok(tiers);
    };
    if costs.shared.is_some() {
        bail!(
            "--tiers {}: a limit of the bandwidth needs samples of the program's threads, and the page trap has no bandwidth: {why}",
            choice.tiers
        );
    }
    console.warn(&format!(
        "the page trap takes the place of {}, so each slow page costs the same at its first access in a period, whatever the factors: \
         {CANNOT_SAMPLE}: {why}",
        choice.tiers
    ));
    let (fast, slow) = (tiers.all()[0].capacity, tiers.all()[1].capacity);
    Ok(Tiers::emulated(fast, slow, Emulation::TMP))
}

/// The costs of the pair by time; `None` for other tiers.
fn by_time(tiers: &Tiers) -> Option<TimeCosts> {
    match tiers.emulation()? {
        Emulation::Time(costs) => Some(costs),
        Emulation::PageTrap(_) => None,
    }
}

/// The size of the caches for runs that are placed on these tiers, as `--cache` gives it; `None` for that of this machine.
///
/// # Errors
/// A size is given, and the tiers are not emulated by time: then no caches are assumed.
pub(crate) fn cache(size: Option<Bytes>, tiers: &Tiers) -> Result<Option<Bytes>> {
    if size.is_some() && by_time(tiers).is_none() {
        bail!(
            "--cache: is the cache that a machine emulated by time takes the program to have, and these tiers are of another kind; \
             leave it out"
        );
    }
    Ok(size)
}

/// The reason why these tiers cannot work on this machine, with the remedy: the emulated pair samples threads or traps pages.
pub(crate) fn problem(tiers: &Tiers, probe: &dyn Probe) -> Option<String> {
    let needs = match tiers.emulation()? {
        Emulation::Time(_) => doctor::timer(probe),
        Emulation::PageTrap(_) => doctor::userfaultfd(probe),
    };
    match needs {
        FeatureState::Available(_) | FeatureState::Degraded { .. } => None,
        FeatureState::Missing { why, remedy } => Some(format!(
            "the emulated pair cannot work here: {why}; {remedy}"
        )),
    }
}

/// The file that the flags name, if they name one.
pub(crate) fn file(choice: &TiersChoice) -> Option<&Path> {
    let word = choice.tiers.split(':').next().unwrap_or_default();
    (word != "emulated" && choice.tiers != "detect" && !is_paged(choice))
        .then(|| Path::new(&choice.tiers))
}

/// This machine's memory.
pub(crate) fn memory() -> Bytes {
    let info = rustix::system::sysinfo();
    Bytes(info.totalram as u64 * u64::from(info.mem_unit))
}

fn fast_bytes(choice: &TiersChoice, footprint: Option<Bytes>) -> Bytes {
    let fast = choice.fast.unwrap_or(Capacity::Share(DEFAULT_SHARE));
    fast.of(footprint.unwrap_or_else(memory))
}

const CANNOT_SAMPLE: &str = "threads cannot be sampled";

/// The pair by time, or by page trap where the kernel refuses samples of a program's own threads.
fn default_costs(console: Console) -> Emulation {
    let FeatureState::Missing { why, .. } = doctor::timer(&KernelProbe) else {
        return Emulation::Time(TimeCosts::CXL);
    };
    console.warn(&format!(
        "the emulated pair delays the first access to each slow page in a period (emulated:tmp), because {CANNOT_SAMPLE}: {why}"
    ));
    Emulation::TMP
}

fn emulated(
    choice: &TiersChoice,
    text: &str,
    footprint: Option<Bytes>,
    console: Console,
) -> Result<Tiers> {
    let mut emulation = emulation_words::read(text, || default_costs(console))?;
    match &mut emulation {
        Emulation::PageTrap(costs) => {
            costs.period = choice.slow_period.unwrap_or(costs.period);
            costs.access = choice.slow_access.unwrap_or(costs.access);
            if costs.period.0 == 0 {
                bail!(
                    "--slow-period 0: the slow tier would never be slowed; give a time above zero"
                );
            }
        }
        Emulation::Time(_) if choice.slow_period.is_some() || choice.slow_access.is_some() => {
            bail!(
                "--slow-period and --slow-access are of the page trap; add --tiers emulated:tmp, or give factors, as in --tiers emulated:B:2,L:3"
            )
        }
        Emulation::Time(_) => {}
    }
    if let Some((name, number, most)) = emulation.out_of_range() {
        bail!("--slow-{name} {number}: is out of range; give at most {most}");
    }
    Ok(Tiers::emulated(
        fast_bytes(choice, footprint),
        memory(),
        emulation,
    ))
}

fn detected(choice: &TiersChoice, footprint: Option<Bytes>, console: Console) -> Result<Tiers> {
    let tiers = isotherm_topology::detect(Path::new("/"))?;
    if tiers.all().len() == 1 {
        console.info(
            "this machine has one kind of memory, so the emulated pair stands in for two \
             (results are emulated)",
        );
        return emulated(choice, "", footprint, console);
    }
    limited(choice, tiers, footprint, "this machine")
}

/// The tiers with as much fast memory as `--fast` says, where it does. `whose` is where they come from.
///
/// # Errors
/// The fast tier does not hold as much.
fn limited(
    choice: &TiersChoice,
    tiers: Tiers,
    footprint: Option<Bytes>,
    whose: &str,
) -> Result<Tiers> {
    let Some(fast) = choice.fast else {
        return Ok(tiers);
    };
    let bytes = fast.of(footprint.unwrap_or_else(memory));
    let held = &tiers.all()[0];
    if bytes > held.capacity {
        bail!(
            "--fast {fast}: the fast tier \"{}\" of {whose} holds {}",
            held.name,
            held.capacity
        );
    }
    Ok(tiers.with_fast_capacity(bytes))
}

/// The most that `--fast` can be for these tiers: what the fast one holds, and of a pair that is emulated without a file this machine's
/// memory.
pub(crate) fn most_fast(choice: &TiersChoice, tiers: &Tiers) -> Bytes {
    match tiers.emulates() && file(choice).is_none() {
        true => memory(),
        false => tiers.all()[0].capacity,
    }
}

fn from_file(path: &Path) -> Result<Tiers> {
    if !path.exists() {
        bail!(
            "--tiers {}: is neither `detect`, `emulated`, `emulated:PRESET`, `compressed` nor a file that exists",
            path.display()
        );
    }
    Ok(isotherm_topology::read_file(path)?.tiers)
}

fn check_capacity(choice: &TiersChoice, tiers: &Tiers) -> Result<()> {
    let (fast, memory) = (&tiers.all()[0], memory());
    if fast.is_emulated() && fast.capacity > memory {
        let asked = choice
            .fast
            .map_or_else(|| fast.capacity.to_string(), |fast| fast.to_string());
        bail!("a fast tier of {asked} is larger than this machine's memory ({memory})");
    }
    if fast.capacity == Bytes::ZERO {
        bail!("a fast tier of zero bytes holds nothing; give --fast a size or a larger share");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{ShareBase, share_words};
    use isotherm_model::units::Bytes;

    #[test]
    fn a_share_without_a_profile_is_told_with_its_bytes_and_for_how_long_it_holds() {
        let said = |base| share_words(0.25, Bytes(24 << 30), base);
        let whole = "without a profile there is no footprint, so --fast takes 25 % of this machine's memory, 6 GiB of 24 GiB";
        assert_eq!(said(ShareBase::Machine), whole);
        let until = "until the decision, and of the program's resident data from then on";
        assert_eq!(said(ShareBase::DataOnceKnown), format!("{whole}, {until}"));
    }
}
