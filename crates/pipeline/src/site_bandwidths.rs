//! [`site_bandwidths`] computes the bandwidth of each site from the runs in which it, or the rest of the sites together, was alone in a
//! tier (MemBrain, section IV-C). [`hottest_sites`] chooses sites for such runs, and [`sites_without_bandwidth`] finds those without one.
//!
//! ```text
//! a site with a run of its own     the bytes of that run
//! the others                       those of the run of the rest, divided by the accesses that were observed of each
//! each                             less what the last run before counted with no site in the tier, over the median time of the runs
//! ```
//!
//! Every run does the same work, so the bytes that memory controllers count are the same however long it takes; times of single runs would
//! bring their noise into the order of the sites. The account of an emulated machine is an estimate from samples: it takes its accesses at
//! random from the time that the program waited for them, which changes with the run.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use isotherm_model::isolation_runs::{IsolatedData, IsolationRun, IsolationRuns};
use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_model::units::{Bytes, Nanos, portion};

/// Bytes a second of each site; empty where the profile has no such runs. A site of the rest without an observed access is not in it.
#[must_use]
pub fn site_bandwidths(profile: &Profile) -> BTreeMap<SiteId, u64> {
    let Some(runs) = &profile.isolation else {
        return BTreeMap::new();
    };
    let times: Vec<Nanos> = runs.runs.iter().map(|run| run.time).collect();
    let time = Nanos::median(&times).unwrap_or_default();
    let rate = |isolated| {
        let (run, background) = runs.with_background(isolated)?;
        let others = background.map_or(0, IsolationRun::bytes_per_second);
        let of_others = Bytes(portion(others, run.time.0, 1_000_000_000));
        let own = IsolationRun {
            bytes: run.bytes.saturating_sub(of_others),
            time,
            ..*run
        };
        Some(own.bytes_per_second())
    };
    let own = |site| Some((site, rate(IsolatedData::Site(site))?));
    let sites = runs.sites();
    let mut found: BTreeMap<SiteId, u64> = sites.iter().copied().filter_map(own).collect();
    let rest = rate(IsolatedData::Rest).unwrap_or_default();
    let mut accesses = profile.accesses_by_site();
    accesses
        .retain(|site, accesses| site.is_placeable() && !sites.contains(site) && accesses.0 > 0);
    let all: u128 = accesses.values().map(|it| u128::from(it.0)).sum();
    let share = |accesses: u64| u128::from(rest) * u128::from(accesses) / all.max(1);
    found.extend(accesses.iter().map(|(site, accesses)| {
        // A share is at most the whole.
        (*site, share(accesses.0) as u64)
    }));
    found
}

/// The sites with accesses that have no run of their own, where no run has the rest either: their bandwidth is not known. An interrupted
/// measurement leaves them out.
#[must_use]
pub fn sites_without_bandwidth(profile: &Profile, runs: &IsolationRuns) -> Vec<SiteId> {
    if runs.of(IsolatedData::Rest).is_some() {
        return Vec::new();
    }
    let measured = runs.sites();
    let accesses = profile.accesses_by_site();
    let is_missing = |site: &SiteId| {
        let accesses = accesses.get(site).copied().unwrap_or_default();
        accesses.0 > 0 && !measured.contains(site)
    };
    let sites = profile.placeable_sites().map(|site| site.id);
    sites.filter(is_missing).collect()
}

/// The hottest sites, at most `most`, each with at least `least_share` of the accesses to all sites; those with most accesses first.
#[must_use]
pub fn hottest_sites(profile: &Profile, most: usize, least_share: f64) -> Vec<SiteId> {
    let accesses = profile.accesses_by_site().into_iter();
    let sites = accesses.filter(|(site, accesses)| site.is_placeable() && accesses.0 > 0);
    let mut sites: Vec<_> = sites.collect();
    let all: f64 = sites.iter().map(|(_, accesses)| accesses.0 as f64).sum();
    sites.retain(|(_, accesses)| accesses.0 as f64 >= least_share * all);
    sites.sort_by_key(|(site, accesses)| (Reverse(*accesses), *site));
    sites.into_iter().map(|(site, _)| site).take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::{hottest_sites, site_bandwidths, sites_without_bandwidth};
    use isotherm_model::batch::{Epoch, Process};
    use isotherm_model::isolation_runs::{
        BandwidthCounter, IsolatedData, IsolationRun, IsolationRuns,
    };
    use isotherm_model::profile::{Heat, Meta, Profile};
    use isotherm_model::sensitivity_runs::TierPair;
    use isotherm_model::site::{Site, SiteId, SiteKind};
    use isotherm_model::units::{Accesses, Bytes, Nanos};

    fn heat(site: u64, accesses: u64) -> Heat {
        Heat {
            epoch: Epoch(0),
            process: Process::default(),
            site: SiteId(site),
            address: 0,
            object: None,
            accesses: Accesses(accesses),
            streamed: Accesses::ZERO,
            served: Accesses::ZERO,
        }
    }

    #[test]
    fn the_hottest_sites_are_those_with_a_share_of_the_accesses_to_sites() {
        let mut profile = Profile::new(Meta::default());
        profile.heat = vec![
            heat(SiteId::UNATTRIBUTED.0, 9_000),
            heat(20, 10),
            heat(21, 50),
            heat(22, 39),
            heat(23, 1),
            heat(24, 0),
        ];
        let hottest = |most, share| {
            let sites = hottest_sites(&profile, most, share).into_iter();
            sites.map(|site| site.0).collect::<Vec<_>>()
        };
        assert_eq!(hottest(9, 0.02), [21, 22, 20]);
        assert_eq!(hottest(2, 0.02), [21, 22]);
        assert_eq!(hottest(9, 0.0), [21, 22, 20, 23]);
    }

    #[test]
    fn without_a_run_of_the_rest_a_site_with_accesses_needs_its_own() {
        let mut profile = Profile::new(Meta::default());
        let sites = [20, 21, 22].map(|id| Site::new(SiteId(id), SiteKind::Heap));
        profile.sites = sites.to_vec();
        profile.heat = vec![
            heat(SiteId::UNATTRIBUTED.0, 9),
            heat(20, 5),
            heat(21, 3),
            heat(22, 0),
        ];
        let mut runs = IsolationRuns {
            tiers: TierPair::from_text(String::new()),
            counter: BandwidthCounter::EmulatedAccount,
            runs: Vec::new(),
        };
        let mut missing_after = |isolated| {
            runs.add(IsolationRun {
                isolated,
                bytes: Bytes(1),
                time: Nanos(1),
            });
            sites_without_bandwidth(&profile, &runs)
        };
        assert_eq!(missing_after(IsolatedData::Nothing), [20, 21].map(SiteId));
        assert_eq!(missing_after(IsolatedData::Rest), []);
        // A further site drops the run of the rest.
        let first = IsolatedData::Site(SiteId(20));
        assert_eq!(missing_after(first), [SiteId(21)]);
        assert_eq!(missing_after(IsolatedData::Site(SiteId(21))), []);
    }

    #[test]
    fn the_rest_is_divided_by_accesses_and_what_belongs_to_no_site_is_taken_off() {
        let run = |isolated, bytes, seconds: u64| IsolationRun {
            isolated,
            bytes: Bytes(bytes),
            time: Nanos(seconds * 1_000_000_000),
        };
        let mut profile = Profile::new(Meta::default());
        profile.heat = vec![
            heat(SiteId::UNATTRIBUTED.0, 900),
            heat(20, 50),
            heat(21, 3),
            heat(22, 1),
            heat(23, 0),
        ];
        assert!(site_bandwidths(&profile).is_empty());
        profile.isolation = Some(IsolationRuns {
            tiers: TierPair::from_text(String::new()),
            counter: BandwidthCounter::Controllers,
            runs: vec![
                run(IsolatedData::Nothing, 100, 1),
                run(IsolatedData::Site(SiteId(20)), 5_100, 2),
                run(IsolatedData::Site(SiteId(24)), 60, 1),
                run(IsolatedData::Rest, 900, 1),
            ],
        });
        let found: Vec<_> = site_bandwidths(&profile).into_iter().collect();
        let expected = [(20, 4_900), (21, 600), (22, 200), (24, 0)];
        assert_eq!(found, expected.map(|(site, rate)| (SiteId(site), rate)));
    }
}
