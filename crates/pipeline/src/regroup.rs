//! [`regroup`] gives the sites of an imported profile of another tool new ids and frames, where `isotherm import` found them for their code
//! addresses in the program, so that a plan can name them, and adds up the numbers of sites that get the same id.

use std::collections::BTreeMap;

use isotherm_model::profile::Profile;
use isotherm_model::site::{Site, SiteId};

use crate::merge::merged_code;

/// The profile with each site renamed by `names`, which is indexed by the old name; sites that it
/// lacks keep theirs. The numbers of sites with one new name are added, also the peaks, because
/// their times are not known.
#[must_use]
pub fn regroup(mut profile: Profile, names: &BTreeMap<SiteId, Site>) -> Profile {
    let renamed = |id: SiteId| names.get(&id).map_or(id, |site| site.id);
    let mut sites = BTreeMap::<SiteId, Site>::new();
    for old in profile.sites {
        let words = names.get(&old.id).unwrap_or(&old);
        let sum = sites.entry(words.id).or_insert_with(|| Site {
            frames: words.frames.clone(),
            first_seen: old.first_seen,
            ..Site::new(words.id, words.kind)
        });
        sum.allocations = sum.allocations.saturating_add(old.allocations);
        sum.requested += old.requested;
        sum.peak_requested += old.peak_requested;
        sum.peak_rss += old.peak_rss;
        sum.first_seen = sum.first_seen.min(old.first_seen);
    }
    profile.sites = sites.into_values().collect();
    profile.reassign_sites(renamed);
    profile.code = merged_code(profile.code);
    profile
}

#[cfg(test)]
mod tests {
    use super::regroup;
    use isotherm_model::batch::{Epoch, Process};
    use isotherm_model::profile::{Heat, Meta, Profile, Resident};
    use isotherm_model::site::{Site, SiteId, SiteKind};
    use isotherm_model::units::{Accesses, Bytes};
    use std::collections::BTreeMap;

    fn profile() -> Profile {
        let mut profile = Profile::new(Meta::default());
        for (id, accesses) in [(5, 10), (6, 20), (7, 40)] {
            profile.sites.push(Site {
                allocations: 1,
                peak_rss: Bytes(4096),
                ..Site::new(SiteId(id), SiteKind::Heap)
            });
            profile.heat.push(Heat {
                epoch: Epoch(0),
                process: Process::default(),
                site: SiteId(id),
                address: id << 16,
                object: None,
                accesses: Accesses(accesses),
                streamed: Accesses::ZERO,
                served: Accesses::ZERO,
            });
            profile.resident.push(Resident {
                epoch: Epoch(0),
                site: SiteId(id),
                bytes: Bytes(4096),
            });
        }
        profile
    }

    #[test]
    fn stacks_of_one_site_become_it_and_others_keep_their_names() {
        let site = Site::new(SiteId(9), SiteKind::Described);
        let names = BTreeMap::from([(SiteId(5), site.clone()), (SiteId(7), site)]);
        let together = regroup(profile(), &names);
        let sites: Vec<_> = together
            .sites
            .iter()
            .map(|site| (site.id.0, site.allocations))
            .collect();
        assert_eq!(sites, [(6, 1), (9, 2)]);
        assert_eq!(together.sites[1].kind, SiteKind::Described);
        assert_eq!(together.accesses_by_site()[&SiteId(9)], Accesses(50));
        assert_eq!(together.footprint(), profile().footprint());
        assert_eq!(together.resident.len(), 2);
        assert_eq!(together.sites[1].peak_rss, Bytes(8192));
    }

    #[test]
    fn without_names_nothing_changes() {
        assert_eq!(regroup(profile(), &BTreeMap::new()), profile());
    }
}
