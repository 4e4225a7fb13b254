//! [`ResidentSeries`] holds for a report the resident bytes over time, in bounded size: of the largest sites and of all others together.

use std::collections::HashMap;

use isotherm_model::batch::Epoch;
use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_model::units::Bytes;
use serde::Serialize;

use crate::heat::Columns;
use crate::sites::SiteRow;

/// Points in time at most.
const POINTS: usize = 200;
/// Sites with a series of their own; the rest is one series.
const SITES: usize = 8;

/// Resident bytes by time and site. Where several epochs share a point, it shows the one with most
/// bytes resident, so that the highest point is the footprint.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ResidentSeries {
    /// Epoch of each point.
    pub epochs: Vec<u32>,
    /// Time of each point since the start of the run: the end of its epoch.
    pub times_ns: Vec<u64>,
    /// The biggest sites, then all others.
    pub series: Vec<SiteSeries>,
}

/// Resident bytes of one site.
#[derive(Clone, Debug, Serialize)]
pub struct SiteSeries {
    /// Its id; empty for all other sites.
    pub site: String,
    /// Where it is allocated.
    pub location: String,
    /// Bytes at each point.
    pub bytes: Vec<u64>,
}

impl ResidentSeries {
    pub(crate) fn new(profile: &Profile, sites: &[SiteRow]) -> Self {
        let chosen = fullest_epochs(profile);
        let point_of: HashMap<Epoch, usize> = chosen.iter().copied().zip(0..).collect();
        let mut biggest: Vec<&SiteRow> = sites.iter().collect();
        biggest.sort_by_key(|site| std::cmp::Reverse(site.peak_rss_bytes));
        biggest.truncate(SITES);
        let others = sites.len() - biggest.len();
        let empty = |site: &str, location: &str| SiteSeries {
            site: site.to_owned(),
            location: location.to_owned(),
            bytes: vec![0; chosen.len()],
        };
        let own = biggest.iter().map(|row| empty(&row.site, &row.location));
        let mut series: Vec<SiteSeries> = own.collect();
        let index: HashMap<SiteId, usize> = biggest.iter().map(|site| site.id).zip(0..).collect();
        if others > 0 {
            series.push(empty("", &crate::words::counted(others, "other site")));
        }
        let rows = profile.resident.iter();
        for row in rows.filter(|row| row.site.is_placeable()) {
            let at = index.get(&row.site).copied().unwrap_or(SITES);
            if let Some(point) = point_of.get(&row.epoch)
                && let Some(series) = series.get_mut(at)
            {
                series.bytes[*point] = series.bytes[*point].saturating_add(row.bytes.0);
            }
        }
        let ends = ends(profile);
        Self {
            times_ns: chosen.iter().map(|epoch| ends[epoch]).collect(),
            epochs: chosen.into_iter().map(|epoch| epoch.0).collect(),
            series,
        }
    }
}

/// The epoch with most bytes resident of each column of epochs.
fn fullest_epochs(profile: &Profile) -> Vec<Epoch> {
    let totals = profile.resident_sums();
    let columns = Columns::new(profile, POINTS);
    let mut fullest: Vec<Option<(Bytes, Epoch)>> = vec![None; columns.columns.len()];
    for span in &profile.epochs {
        let total = totals.of(span.epoch);
        if let Some(best) = columns.of(span.epoch).map(|column| &mut fullest[column])
            && best.is_none_or(|(most, _)| total > most)
        {
            *best = Some((total, span.epoch));
        }
    }
    let fullest = fullest.into_iter().flatten();
    fullest.map(|(_, epoch)| epoch).collect()
}

/// When each epoch ended, since the start of the run.
fn ends(profile: &Profile) -> HashMap<Epoch, u64> {
    let mut now = 0_u64;
    let ends = profile.epochs.iter().map(|span| {
        now = now.saturating_add(span.span.0);
        (span.epoch, now)
    });
    ends.collect()
}
