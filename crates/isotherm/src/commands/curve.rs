//! `isotherm curve`: how many accesses how much fast memory would serve.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail};
use isotherm_model::batch::Process;
use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_model::units::{Accesses, Bytes};
use isotherm_report::capacity_curve::{self, CapacityCurve, Piece};

use crate::cli::CurveArgs;
use crate::hint;
use crate::input::{self, Input};
use crate::notes::{Notes, print};

/// Page of a trace where none is asked for.
const PAGE: Bytes = Bytes(4096);

/// Prints the curves.
///
/// # Errors
/// The input cannot be read, or holds no access that could be placed.
pub(crate) fn run(args: &CurveArgs, notes: Notes) -> Result<()> {
    let path = &args.input;
    let curves = match input::open(path, &args.reading, notes)? {
        Input::Profile(profile) => of_profile(&profile),
        Input::Accesses(accesses) => {
            let page = args.reading.page.unwrap_or(PAGE);
            vec![("pages", of_accesses(path, accesses, page, notes)?)]
        }
    };
    if curves[0].1.accesses() == Accesses::ZERO {
        bail!(
            "{}: holds no access to memory that could be placed; record longer, or see `isotherm \
             doctor` for the sources this machine has",
            path.display()
        );
    }
    if args.json {
        print(&capacity_curve::json(&curves))?;
    } else {
        print(&capacity_curve::text(&curves, super::terminal_width()))?;
    }
    let options = args.reading.options();
    notes.next(&format!(
        "isotherm simulate {}{options} --sweep",
        hint::file(path)
    ));
    Ok(())
}

/// By chunk, which is as fine as the profile knows, and by site, which is what a plan places.
fn of_profile(profile: &Profile) -> Vec<(&'static str, CapacityCurve)> {
    let mut chunks = BTreeMap::<(Process, u64, SiteId), Accesses>::new();
    let placeable = |site: SiteId| site != SiteId::UNATTRIBUTED;
    for heat in profile.heat.iter().filter(|heat| placeable(heat.site)) {
        *chunks
            .entry((heat.process, heat.address, heat.site))
            .or_default() += heat.accesses;
    }
    let chunks = chunks.into_values().map(|accesses| Piece {
        accesses,
        bytes: profile.meta.chunk,
    });
    let by_site = profile.accesses_by_site();
    let sites = profile.sites.iter().filter(|site| placeable(site.id));
    let sites = sites.map(|site| Piece {
        accesses: by_site.get(&site.id).copied().unwrap_or_default(),
        bytes: site.peak_rss,
    });
    vec![
        ("chunks", CapacityCurve::new(chunks.collect())),
        ("sites", CapacityCurve::new(sites.collect())),
    ]
}

fn of_accesses(
    path: &Path,
    mut accesses: isotherm_trace::Accesses,
    page: Bytes,
    notes: Notes,
) -> Result<CapacityCurve> {
    let mut pages = BTreeMap::<u64, Accesses>::new();
    for access in accesses.by_ref() {
        *pages.entry(access?.address / page.0).or_default() += Accesses(1);
    }
    input::warn_of(path, &accesses, notes);
    let pieces = pages.into_values().map(|accesses| Piece {
        accesses,
        bytes: page,
    });
    Ok(CapacityCurve::new(pieces.collect()))
}
