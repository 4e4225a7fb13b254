//! Turns a profile into the items and labels that a site policy takes.

use std::collections::{BTreeMap, BTreeSet};

use isotherm_model::batch::Epoch;
use isotherm_model::count_unit::CountUnit;
use isotherm_model::plan::{Item, Value, Weight};
use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_model::units::{Accesses, Bytes, Nanos};

/// One item for each site of the profile with value or weight, in the order of first allocation.
/// The shared arena is one of them; unattributed memory is not, because it cannot be placed. By
/// [`Value::Latency`] every value is zero where no latency was measured.
#[must_use]
pub fn items(profile: &Profile, value: Value, weight: Weight) -> Vec<Item> {
    let accesses = profile.accesses_by_site();
    let lives = match value {
        Value::Accesses | Value::Latency => BTreeMap::new(),
        Value::Bandwidth => lives(profile),
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
                    Value::Bandwidth => {
                        let life = lives.get(&site.id).copied();
                        per_second(accesses, life.unwrap_or_else(|| profile.span()))
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

/// The lifetime of each site: the length of the epochs in which it was resident or accessed.
fn lives(profile: &Profile) -> BTreeMap<SiteId, Nanos> {
    let spans: BTreeMap<Epoch, Nanos> = profile.epochs.iter().map(|e| (e.epoch, e.span)).collect();
    let resident = profile
        .resident
        .iter()
        .filter(|resident| resident.bytes > Bytes::ZERO)
        .map(|resident| (resident.site, resident.epoch));
    let heat = profile.heat.iter().map(|heat| (heat.site, heat.epoch));
    let epochs: BTreeSet<(SiteId, Epoch)> = resident.chain(heat).collect();
    let mut lives = BTreeMap::<SiteId, Nanos>::new();
    for (site, epoch) in epochs {
        *lives.entry(site).or_default() += spans.get(&epoch).copied().unwrap_or_default();
    }
    lives
}

/// Accesses a second, rounded to nearest; at least one if there is any, so that a rare site does
/// not look untouched. In 128 bits: accesses times 10^9 stay below 2^94.
fn per_second(accesses: Accesses, life: Nanos) -> u64 {
    if accesses == Accesses::ZERO {
        return 0;
    }
    let life = u128::from(life.0.max(1));
    let rate = (u128::from(accesses.0) * 1_000_000_000 + life / 2) / life;
    u64::try_from(rate).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::{items, labels};
    use isotherm_model::batch::{Epoch, Process, SourceReport};
    use isotherm_model::plan::{Value, Weight};
    use isotherm_model::profile::{EpochSpan, Heat, Meta, Profile, Resident};
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
    fn bandwidth_is_over_the_epochs_in_which_the_site_lived() {
        let items = items(&profile(), Value::Bandwidth, Weight::PeakRequested);
        // Site 5: 40 accesses in its two half seconds. Site 7: one in two epochs.
        let facts: Vec<_> = items
            .iter()
            .map(|i| (i.site.0, i.value, i.weight.0))
            .collect();
        assert_eq!(facts, [(7, 1, 5), (5, 40, 50), (1, 0, 20)]);
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
