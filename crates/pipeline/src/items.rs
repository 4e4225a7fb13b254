//! [`items`] turns a profile into the input of a site policy: an [`Item`] for each site that can be placed, with its value and weight by
//! the chosen measures. [`labels`] gives the labels of the sites, for plans.

use std::collections::BTreeMap;

use isotherm_model::count_unit::CountUnit;
use isotherm_model::plan::{Item, Value, Weight};
use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_model::units::Bytes;

use crate::sampled_bandwidths::sampled_bandwidths;
use crate::site_bandwidths::site_bandwidths;

/// One item for each site of the profile with value or weight, in the order of first allocation. The shared arena is one of them;
/// unattributed memory is not, because it cannot be placed. Every value is zero by [`Value::Latency`] where no latency was measured, by
/// [`Value::Bandwidth`] where no site was alone in a tier, and by [`Value::SampledBandwidth`] where the counts do not tell bytes.
#[must_use]
pub fn items(profile: &Profile, value: Value, weight: Weight) -> Vec<Item> {
    let accesses = profile.accesses_by_site();
    let bandwidths = match value {
        Value::Accesses | Value::Latency => BTreeMap::new(),
        Value::Bandwidth => site_bandwidths(profile),
        Value::SampledBandwidth => sampled_bandwidths(profile).unwrap_or_default(),
    };
    let knows_latency = profile.counted() == CountUnit::Latency;
    let mut sites: Vec<_> = profile.placeable_sites().collect();
    sites.sort_unstable_by_key(|site| (site.first_seen, site.id));
    sites
        .into_iter()
        .zip(0..)
        .map(|(site, order)| {
            let accesses = accesses.get(&site.id).copied().unwrap_or_default();
            Item {
                site: site.id,
                value: match value {
                    Value::Accesses => accesses.0,
                    Value::Latency if knows_latency => accesses.0,
                    Value::Latency => 0,
                    Value::Bandwidth | Value::SampledBandwidth => {
                        bandwidths.get(&site.id).copied().unwrap_or_default()
                    }
                },
                weight: match weight {
                    Weight::PeakRss => site.peak_rss,
                    Weight::PeakRequested => site.peak_requested,
                },
                order,
            }
        })
        .filter(|item| item.value > 0 || item.weight > Bytes::ZERO)
        .collect()
}

/// Labels of every site of the profile, for plans and reports.
#[must_use]
pub fn labels(profile: &Profile) -> BTreeMap<SiteId, String> {
    profile
        .sites
        .iter()
        .map(|site| (site.id, site.label()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{items, labels};
    use isotherm_model::batch::{Epoch, Process, SourceReport};
    use isotherm_model::isolation_runs::{
        BandwidthCounter, IsolatedData, IsolationRun, IsolationRuns,
    };
    use isotherm_model::plan::{Value, Weight};
    use isotherm_model::profile::{EpochSpan, Heat, Meta, Profile, Resident};
    use isotherm_model::sensitivity_runs::TierPair;
    use isotherm_model::site::{Site, SiteId, SiteKind};
    use isotherm_model::units::{Accesses, Bytes, Nanos};

    fn profile() -> Profile {
        let mut profile = Profile::new(Meta::default());
        profile.epochs = (0..4)
            .map(|epoch| EpochSpan {
                epoch: Epoch(epoch),
                span: Nanos(500_000_000),
            })
            .collect();
        let site = |id, first_seen, peak| Site {
            first_seen,
            peak_rss: Bytes(peak),
            peak_requested: Bytes(peak / 2),
            ..Site::new(SiteId(id), SiteKind::Heap)
        };
        profile.sites = vec![
            Site::new(SiteId::UNATTRIBUTED, SiteKind::Unattributed),
            site(1, 3, 40),
            site(5, 1, 100),
            site(6, 2, 0),
            site(7, 0, 10),
        ];
        let heat = |epoch, site, accesses| Heat {
            epoch: Epoch(epoch),
            process: Process::default(),
            site: SiteId(site),
            address: 0,
            object: None,
            accesses: Accesses(accesses),
            streamed: Accesses::ZERO,
            served: Accesses::ZERO,
        };
        profile.heat = vec![
            heat(0, 0, 50),
            heat(1, 5, 30),
            heat(2, 5, 10),
            heat(2, 7, 1),
        ];
        let resident = |epoch, site| Resident {
            epoch: Epoch(epoch),
            site: SiteId(site),
            bytes: Bytes(10),
        };
        profile.resident = vec![resident(0, 7), resident(1, 5), resident(2, 5)];
        profile
    }

    #[test]
    fn sites_come_in_the_order_of_first_allocation_without_the_empty_and_the_unplaceable() {
        let items = items(&profile(), Value::Accesses, Weight::PeakRss);
        let facts: Vec<_> = items
            .iter()
            .map(|i| (i.site.0, i.value, i.weight.0))
            .collect();
        assert_eq!(facts, [(7, 1, 10), (5, 40, 100), (1, 0, 40)]);
        assert!(items.is_sorted_by_key(|item| item.order));
    }

    #[test]
    fn bandwidth_is_that_of_the_runs_in_which_the_site_was_alone_and_else_nothing() {
        let values = |profile: &Profile| {
            let items = items(profile, Value::Bandwidth, Weight::PeakRequested).into_iter();
            items
                .map(|item| (item.site.0, item.value))
                .collect::<Vec<_>>()
        };
        let mut profile = profile();
        assert_eq!(values(&profile), [(7, 0), (5, 0), (1, 0)]);
        profile.isolation = Some(IsolationRuns {
            tiers: TierPair::from_text(String::new()),
            counter: BandwidthCounter::EmulatedAccount,
            runs: vec![IsolationRun {
                isolated: IsolatedData::Site(SiteId(5)),
                bytes: Bytes(800),
                time: Nanos(2_000_000_000),
            }],
        });
        assert_eq!(values(&profile), [(7, 0), (5, 400), (1, 0)]);
    }

    #[test]
    fn latency_is_what_the_processor_measured_and_nothing_where_it_did_not() {
        let by = |source: &str| {
            let source = SourceReport {
                name: source.to_owned(),
                taken: 41,
                usable: 41,
                lost: 0,
                cost: Nanos(0),
                cost_note: String::new(),
                warning: String::new(),
            };
            let profile = Profile {
                sources: vec![source],
                ..profile()
            };
            let items = items(&profile, Value::Latency, Weight::PeakRss).into_iter();
            items.map(|item| item.value).collect::<Vec<_>>()
        };
        assert_eq!(by("pebs"), [1, 40, 0]);
        for source in ["timer", "trapped-pages", "instrumented"] {
            assert_eq!(by(source), [0, 0, 0], "{source}");
        }
    }

    #[test]
    fn every_site_has_a_label() {
        assert_eq!(labels(&profile()).len(), 5);
    }
}
