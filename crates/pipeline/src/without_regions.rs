//! [`without_regions`] takes the regions out of a profile: mappings of a process without the runtime, which no run can place.

use std::collections::BTreeSet;

use isotherm_model::profile::Profile;
use isotherm_model::site::{Site, SiteId, SiteKind};
use isotherm_model::units::Accesses;

/// A profile without the mappings that no run can place.
#[derive(Clone, Debug)]
pub struct WithoutRegions {
    /// The profile, in which the data of the regions belongs to no site.
    pub profile: Profile,
    /// Number of the regions.
    pub regions: usize,
    /// Their share of the accesses to all sites, from 0 to 1.
    pub share: f64,
}

/// Takes the regions ([`SiteKind::Region`]) out of a profile: their accesses and resident bytes count as those of no site. `None` where it has none.
#[must_use]
pub fn without_regions(profile: &Profile) -> Option<WithoutRegions> {
    let is_region = |site: &&Site| site.kind == SiteKind::Region;
    let regions: BTreeSet<SiteId> = profile
        .sites
        .iter()
        .filter(is_region)
        .map(|site| site.id)
        .collect();
    if regions.is_empty() {
        return None;
    }
    let owner = |site: SiteId| match regions.contains(&site) {
        true => SiteId::UNATTRIBUTED,
        false => site,
    };
    let mut left = profile.clone();
    left.sites.retain(|site| !regions.contains(&site.id));
    if !left.sites.iter().any(|site| !site.id.is_placeable()) {
        left.sites
            .push(Site::new(SiteId::UNATTRIBUTED, SiteKind::Unattributed));
    }
    left.code.retain(|row| !regions.contains(&row.site));
    left.reassign_sites(owner);
    Some(WithoutRegions {
        share: share(profile, &regions),
        regions: regions.len(),
        profile: left,
    })
}

fn share(profile: &Profile, of: &BTreeSet<SiteId>) -> f64 {
    let accesses = profile.accesses_by_site();
    let placeable = accesses.iter().filter(|(site, _)| site.is_placeable());
    let (mut all, mut own) = (0_u64, 0_u64);
    for (site, Accesses(count)) in placeable {
        all = all.saturating_add(*count);
        own = own.saturating_add(if of.contains(site) { *count } else { 0 });
    }
    own as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::without_regions;
    use isotherm_model::batch::{Epoch, Process};
    use isotherm_model::profile::{Heat, Meta, Profile, Resident};
    use isotherm_model::site::{Site, SiteId, SiteKind};
    use isotherm_model::units::{Accesses, Bytes};

    fn profile(kinds: &[(u64, SiteKind)]) -> Profile {
        let mut profile = Profile::new(Meta::default());
        for (id, kind) in kinds {
            profile.sites.push(Site::new(SiteId(*id), *kind));
            profile.heat.push(Heat {
                epoch: Epoch(0),
                process: Process::default(),
                site: SiteId(*id),
                address: id << 20,
                object: None,
                accesses: Accesses(10 * id),
                streamed: Accesses::ZERO,
                served: Accesses::ZERO,
            });
            profile.resident.push(Resident {
                epoch: Epoch(0),
                site: SiteId(*id),
                bytes: Bytes(*id),
            });
        }
        profile
    }

    #[test]
    fn regions_belong_to_no_site_and_what_else_there_is_stays() {
        let whole = profile(&[
            (2, SiteKind::Static),
            (3, SiteKind::Region),
            (5, SiteKind::Region),
        ]);
        let left = without_regions(&whole).expect("has regions");
        assert_eq!((left.regions, left.share), (2, 0.8));
        let placeable: Vec<_> = left.profile.placeable_sites().map(|it| it.id.0).collect();
        assert_eq!(placeable, [2]);
        assert_eq!(left.profile.footprint().0, Bytes(2));
        let accesses = left.profile.accesses_by_site();
        let accesses: Vec<_> = accesses.iter().map(|(site, it)| (site.0, it.0)).collect();
        assert_eq!(accesses, [(0, 80), (2, 20)]);
        let resident: Vec<_> = left.profile.resident.iter().map(|it| it.bytes.0).collect();
        assert_eq!(resident, [8, 2]);
    }

    #[test]
    fn a_profile_of_a_run_has_none() {
        assert!(without_regions(&profile(&[(2, SiteKind::Heap)])).is_none());
    }
}
