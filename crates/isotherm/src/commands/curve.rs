//! `isotherm curve` draws the share of accesses that fast memory of each size would serve if it held the hottest data: chunks and sites of
//! a profile, or pages of a trace.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail};
use isotherm_model::footprint::Footprint;
use isotherm_model::units::{Accesses, Bytes};
use isotherm_report::capacity_curve::{CapacityCurve, Piece};
use isotherm_report::capacity_table::CapacityCurves;

use crate::cli::CurveArgs;
use crate::input::{self, Input, PAGE};
use isotherm_console::shell_quoting;
use isotherm_console::{Console, print};

/// Prints the curves.
///
/// # Errors
/// The input cannot be read, or has no access to memory that could be placed.
pub(crate) fn run(args: &CurveArgs, console: Console) -> Result<()> {
    let path = &args.input;
    let curves = match input::open(path, &args.reading, console)? {
        Input::Profile(profile) => CapacityCurves::of_profile(&profile),
        Input::Accesses(accesses) => {
            let page = args.reading.page.unwrap_or(PAGE);
            of_accesses(path, accesses, page, console)?
        }
    };
    if curves.is_empty() {
        bail!(
            "{}: has no access to memory that could be placed; record longer, or see `isotherm \
             doctor` for the sources this machine has",
            path.display()
        );
    }
    print(&match args.json {
        true => curves.json(),
        false => curves.text(isotherm_console::terminal_width()),
    })?;
    let options = args.reading.options();
    console.next(&format!(
        "isotherm simulate {}{options} --sweep",
        shell_quoting::file(path)
    ));
    Ok(())
}

fn of_accesses(
    path: &Path,
    mut accesses: isotherm_trace::Accesses,
    page: Bytes,
    console: Console,
) -> Result<CapacityCurves> {
    let mut pages = BTreeMap::<u64, Accesses>::new();
    for access in accesses.by_ref() {
        *pages.entry(access?.address / page.0).or_default() += Accesses(1);
    }
    input::warn_of(path, &accesses, console);
    let pieces = pages.into_values().map(|accesses| Piece {
        accesses,
        bytes: page,
    });
    let curve = CapacityCurve::new(pieces.collect());
    Ok(CapacityCurves {
        counted: input::counted(&accesses),
        footprint: Footprint(curve.bytes()),
        curves: vec![("pages", curve)],
    })
}
