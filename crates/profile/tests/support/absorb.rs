//! `absorb` adds an epoch to a profile in memory, as the tables of a recording show it: the profile that the tests of other crates expect.

use isotherm_model::batch::Extent;
use isotherm_model::profile::{Profile, Segment};
use isotherm_model::site::Site;

/// Adds an epoch. Known sites and extents are replaced (a site keeps its higher peak RSS). Counters and reports are cumulative, so they are
/// replaced as a whole where present.
pub(crate) fn absorb(profile: &mut Profile, segment: Segment) {
    profile.epochs.push(segment.epoch);
    for site in segment.sites {
        let known = profile.sites.binary_search_by_key(&site.id, |it| it.id);
        match known {
            Ok(at) => {
                let peak_rss = profile.sites[at].peak_rss.max(site.peak_rss);
                profile.sites[at] = Site { peak_rss, ..site };
            }
            Err(at) => profile.sites.insert(at, site),
        }
    }
    for extent in segment.extents {
        let known = profile
            .extents
            .binary_search_by_key(&extent.key(), Extent::key);
        match known {
            Ok(at) => profile.extents[at] = extent,
            Err(at) => profile.extents.insert(at, extent),
        }
    }
    profile.heat.extend(segment.heat);
    profile.resident.extend(segment.resident);
    for row in segment.code {
        let known = profile.code.binary_search_by(|it| it.key().cmp(&row.key()));
        match known {
            Ok(at) => profile.code[at] = row,
            Err(at) => profile.code.insert(at, row),
        }
    }
    if !segment.counts.is_empty() {
        profile.counts = segment.counts;
    }
    if !segment.sources.is_empty() {
        profile.sources = segment.sources;
    }
}
