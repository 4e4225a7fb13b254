//! `isotherm record --isolate sites` records the program unless its profile is there, and measures the bandwidth of each of the hottest
//! sites by a run with that site alone in one tier and all other data in the other, and that of the rest together (MemBrain, section IV-C).
//!
//! ```text
//! no profile yet   --> record
//! profile          --> the hottest sites without a run --> for each: run, count, add to the profile --> the rest together
//! ```
//!
//! Each run is added to the profile as it ends, so that a second call goes on where the first was interrupted.

mod meter;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::process::{ExitStatus, Stdio};

use anyhow::{Result, bail};
use isotherm_console::{Console, shell_quoting};
use isotherm_model::isolation_runs::{BandwidthCounter, IsolatedData, IsolationRun, IsolationRuns};
use isotherm_model::profile::{Ending, Profile};
use isotherm_model::sensitivity_runs::TierPair;
use isotherm_model::site::SiteId;
use isotherm_model::tier::TierIndex;
use isotherm_model::units::Bytes;
use isotherm_model::words::{counted, percent};

use super::record::record;
use super::selected_placement::SelectedPlacement;
use crate::cli::RecordArgs;
use crate::launch::{self, EndedProgram};
use crate::timed_runs::{DifferingOutput, TimedPlacement, TimedRuns, without_limit};
use meter::{Bench, Meter};

/// Records where there is no profile yet, then measures. Returns the exit status of the recorded program if it failed, or the one for the
/// signal that interrupted a run, else success.
///
/// # Errors
/// As [`record`]; a profile of another program is at the path, nothing here counts the bytes of a tier, a program that fails.
pub(crate) fn run(args: &RecordArgs, console: Console) -> Result<ExitStatus> {
    if args.force || !isotherm_profile::is_profile(&args.output) {
        let recorded = record(args, (Stdio::inherit(), None), console)?;
        if !recorded.status.success() || recorded.interrupted.is_some() {
            return Ok(recorded.status);
        }
    }
    let (profile, _) = super::read_profile(&args.output, console)?;
    check(args, &profile)?;
    let bench = Bench::of_machine(&profile, console)?;
    let hottest = isotherm_pipeline::hottest_sites(
        &profile,
        args.isolating.isolate_top as usize,
        args.isolating.isolate_from,
    );
    if hottest.is_empty() {
        bail!(
            "{}: has no access to any site, so none can be chosen; record longer, or see `isotherm doctor` for the sources this machine has",
            args.output.display()
        );
    }
    let measured = (TierPair::of(&bench.tiers), bench.meter.counter());
    let runs = begun(&profile, measured, console);
    let missing = missing(&profile, &hottest, &runs);
    if missing.is_empty() {
        console.info(
            "each of these sites has its bandwidth already; --force records and measures anew",
        );
    }
    let interrupted = Isolation::new(args, &profile, (&bench, &runs), &missing)?.measure(
        runs,
        bench.meter,
        console,
    )?;
    if let Some(signal) = interrupted {
        return Ok(signal);
    }
    let profile = shell_quoting::file(&args.output);
    console.next(&format!("isotherm plan {profile} --value bandwidth"));
    Ok(ExitStatus::default())
}

/// Checks that a profile is one to which the runs of the program can be added.
///
/// # Errors
/// It is of another program, or was cut short.
fn check(args: &RecordArgs, profile: &Profile) -> Result<()> {
    let shown = args.output.display();
    let words = shell_quoting::as_text(&args.words);
    if profile.meta.command != words {
        bail!(
            "{shown}: is a profile of `{}`, to which runs of `{}` cannot be added; name another one with --output, or replace it with --force",
            profile.meta.command.join(" "),
            words.join(" ")
        );
    }
    // A profile that is still being recorded has no ending either.
    isotherm_profile::check_addition(&args.output)?;
    if profile.ending == Ending::Unknown {
        bail!("{shown}: its recording was cut short; record anew with --force");
    }
    if profile.ending == Ending::Detached {
        bail!(
            "{shown}: is of a process that ran already, whose mappings no run can place; record anew with --force"
        );
    }
    Ok(())
}

/// The runs that a profile has, if they were made as those that are added now.
fn begun(
    profile: &Profile,
    (tiers, counter): (TierPair, BandwidthCounter),
    console: Console,
) -> IsolationRuns {
    match &profile.isolation {
        Some(runs) if runs.tiers == tiers && runs.counter == counter => return runs.clone(),
        Some(runs) => console.warn(&format!(
            "the runs that the profile has were counted by {} on {}; they are made anew by {} on {tiers}",
            runs.counter.word(),
            runs.tiers,
            counter.word()
        )),
        None => {}
    }
    IsolationRuns {
        tiers,
        counter,
        runs: Vec::new(),
    }
}

/// The runs still to be made, in order: one with no site alone, where the counter sees other programs; each site; the rest together. Other
/// programs load the memory differently each time, so the run with no site alone is made again for further runs.
fn missing(profile: &Profile, hottest: &[SiteId], runs: &IsolationRuns) -> Vec<IsolatedData> {
    let known = runs.sites();
    let sites = hottest.iter().filter(|site| !known.contains(site));
    let sites: Vec<_> = sites.map(|site| IsolatedData::Site(*site)).collect();
    let accesses = profile.accesses_by_site();
    let has_access = |id| accesses.get(&id).is_some_and(|it| it.0 > 0);
    let is_measured = |site: SiteId| known.contains(&site) || hottest.contains(&site);
    let mut others = profile
        .placeable_sites()
        .filter(|site| site.peak_rss > Bytes::ZERO || has_access(site.id));
    let needs_rest = others.any(|site| !is_measured(site.id))
        && (!sites.is_empty() || runs.of(IsolatedData::Rest).is_none());
    let needs_nothing = !runs.counter.is_of_program() && (!sites.is_empty() || needs_rest);
    let nothing = needs_nothing.then_some(IsolatedData::Nothing);
    let rest = needs_rest.then_some(IsolatedData::Rest);
    nothing.into_iter().chain(sites).chain(rest).collect()
}

/// The runs to make.
struct Isolation<'a> {
    args: &'a RecordArgs,
    profile: &'a Profile,
    of_data: Vec<(IsolatedData, SelectedPlacement)>,
    timed: Vec<TimedPlacement>,
}

impl<'a> Isolation<'a> {
    fn new(
        args: &'a RecordArgs,
        profile: &'a Profile,
        (bench, runs): (&Bench, &IsolationRuns),
        missing: &[IsolatedData],
    ) -> Result<Self> {
        let program = launch::program(&args.words)?;
        let tiers = without_limit(&bench.tiers);
        let alone = with_own_run(runs, missing);
        let (mut of_data, mut timed) = (Vec::new(), Vec::new());
        for data in missing {
            let is_isolated = |site: SiteId| match data {
                IsolatedData::Nothing => false,
                IsolatedData::Site(isolated) => site == *isolated,
                IsolatedData::Rest => !alone.contains(&site),
            };
            let is_first = bench.counted == TierIndex::FASTEST;
            // Data that the profile does not know belongs to the rest.
            let is_rest_fast = is_first == (*data == IsolatedData::Rest);
            let default_tier = match is_rest_fast {
                true => TierIndex::FASTEST,
                false => tiers.slowest(),
            };
            let is_fast = |site| is_isolated(site) == is_first;
            let placed = (&tiers, default_tier);
            let placement = SelectedPlacement::new(profile, placed, "isolation", &program, is_fast);
            timed.push(TimedPlacement {
                name: name(profile, *data),
                configuration: placement.configuration(&program, args.observing.cache),
                is_bound: false,
            });
            of_data.push((*data, placement));
        }
        Ok(Self {
            args,
            profile,
            of_data,
            timed,
        })
    }

    /// Makes the runs, and adds each to the profile. Returns the exit status for the signal that ended them early, if any.
    fn measure(
        &self,
        mut runs: IsolationRuns,
        meter: Meter,
        console: Console,
    ) -> Result<Option<ExitStatus>> {
        if let Some((_, first)) = self.of_data.first() {
            first.fitted.say(console);
        }
        let timed = TimedRuns {
            words: &self.args.words,
            placements: &self.timed,
            rounds: 1,
            differing: DifferingOutput::Accepted,
            limit: None,
        };
        let meter = RefCell::new(meter);
        let begin = || meter.borrow_mut().begin();
        let results = timed.run_observed(console, begin, |number, ended| {
            let run = self.counted(number, ended, &mut meter.borrow_mut())?;
            runs.add(run);
            isotherm_profile::add_isolation(&self.args.output, self.profile, &runs)?;
            console.info(&format!(
                "{}: {}/s, {} in {}",
                self.timed[number].name,
                Bytes(run.bytes_per_second()),
                run.bytes,
                run.time
            ));
            if let Some(doubt) = meter.borrow().doubt(ended) {
                console.warn(&format!("{}: {doubt}", self.timed[number].name));
            }
            Ok(())
        })?;
        if results.interrupted.is_some() {
            let done = results
                .times
                .iter()
                .filter(|times| !times.is_empty())
                .count();
            console.warn(&format!(
                "interrupted after {done} of {}; the same command goes on",
                counted(self.timed.len(), "run")
            ));
        }
        Ok(results.interrupted)
    }

    /// The result of a run: the bytes that its tier served, and its time.
    ///
    /// # Errors
    /// The run did not make the site, or the counter cannot be read.
    fn counted(
        &self,
        number: usize,
        ended: &EndedProgram,
        meter: &mut Meter,
    ) -> Result<IsolationRun> {
        let bytes = meter.bytes(ended)?;
        let (isolated, placement) = &self.of_data[number];
        if let Some(site) = site_of(*isolated)
            && !placement.was_made(site, ended)
        {
            bail!(
                "{}: site {site} was not made by this run, so its bandwidth cannot be measured; the profile is of `{}`, or of another \
                 build: record anew with --force",
                self.timed[number].name,
                placement.recorded_command()
            );
        }
        Ok(IsolationRun {
            isolated: *isolated,
            bytes,
            time: ended.took,
        })
    }
}

/// The sites that have runs of their own once the missing runs are made.
fn with_own_run(runs: &IsolationRuns, missing: &[IsolatedData]) -> BTreeSet<SiteId> {
    let further = missing.iter().filter_map(|data| site_of(*data));
    runs.sites().into_iter().chain(further).collect()
}

const fn site_of(data: IsolatedData) -> Option<SiteId> {
    match data {
        IsolatedData::Site(site) => Some(site),
        IsolatedData::Nothing | IsolatedData::Rest => None,
    }
}

/// The name of a run in messages.
fn name(profile: &Profile, data: IsolatedData) -> String {
    match data {
        IsolatedData::Nothing => "no site alone".to_owned(),
        IsolatedData::Rest => "all other sites together".to_owned(),
        IsolatedData::Site(site) => {
            let known = profile.sites.iter().find(|known| known.id == site);
            let label = known.map_or_else(|| site.to_string(), isotherm_model::site::Site::label);
            format!("{label} alone, {} of the accesses", share(profile, site))
        }
    }
}

/// The share of the accesses to all sites that a site has, in words.
fn share(profile: &Profile, site: SiteId) -> String {
    let mut accesses = profile.accesses_by_site();
    accesses.retain(|site, _| site.is_placeable());
    let all: f64 = accesses.values().map(|it| it.0 as f64).sum();
    let own = accesses.get(&site).map_or(0.0, |it| it.0 as f64);
    percent(own / all.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::{begun, missing, with_own_run};
    use isotherm_console::Console;
    use isotherm_model::batch::{Epoch, Process};
    use isotherm_model::isolation_runs::{
        BandwidthCounter, IsolatedData, IsolationRun, IsolationRuns,
    };
    use isotherm_model::profile::{Heat, Meta, Profile};
    use isotherm_model::sensitivity_runs::TierPair;
    use isotherm_model::site::{Site, SiteId, SiteKind};
    use isotherm_model::units::{Accesses, Bytes, Nanos};

    const SITES: [SiteId; 3] = [SiteId(11), SiteId(12), SiteId(13)];

    fn runs(of: &[IsolatedData]) -> IsolationRuns {
        let run = |isolated: &IsolatedData| IsolationRun {
            isolated: *isolated,
            bytes: Bytes(1),
            time: Nanos(1),
        };
        IsolationRuns {
            tiers: TierPair::from_text("nodes 0 and nodes 1".to_owned()),
            counter: BandwidthCounter::Controllers,
            runs: of.iter().map(run).collect(),
        }
    }

    fn profile(isolation: Option<IsolationRuns>) -> Profile {
        let mut profile = Profile::new(Meta::default());
        profile.sites = SITES.map(|id| Site::new(id, SiteKind::Heap)).to_vec();
        let heat = |site| Heat {
            epoch: Epoch(0),
            process: Process::default(),
            site,
            address: 0,
            object: None,
            accesses: Accesses(1),
            streamed: Accesses::ZERO,
            served: Accesses::ZERO,
        };
        profile.heat = SITES.map(heat).to_vec();
        profile.isolation = isolation;
        profile
    }

    #[test]
    fn sites_of_runs_that_are_made_anew_belong_to_the_rest_again() {
        let of = SITES.map(IsolatedData::Site);
        let profile = profile(Some(runs(&of)));
        let other = (
            TierPair::from_text("emulated".to_owned()),
            BandwidthCounter::EmulatedAccount,
        );
        let anew = begun(&profile, other, Console::new(true));
        let missing = missing(&profile, &SITES[..1], &anew);
        assert_eq!(missing, [of[0], IsolatedData::Rest]);
        let alone: Vec<_> = with_own_run(&anew, &missing).into_iter().collect();
        assert_eq!(alone, [SITES[0]]);
    }

    #[test]
    fn the_load_of_other_programs_is_measured_again_with_further_runs() {
        let of = SITES.map(IsolatedData::Site);
        let known = runs(&[IsolatedData::Nothing, of[0], IsolatedData::Rest]);
        let profile = profile(None);
        assert_eq!(missing(&profile, &SITES[..1], &known), []);
        assert_eq!(
            missing(&profile, &SITES[..2], &known),
            [IsolatedData::Nothing, of[1], IsolatedData::Rest]
        );
    }
}
