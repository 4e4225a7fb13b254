//! `Isolating` declares the flags of `isotherm record --isolate`, which measures the bandwidth of single sites.

use clap::Args;

use crate::input;

/// What is measured of sites that are alone in a tier.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Isolating {
    /// Then measure the bandwidth of each of the hottest `sites` by a run with that site alone in one tier and all other data in the
    /// other, for `isotherm plan --value bandwidth`; the sites that are left are measured together. A profile of the program that is
    /// there already is not recorded again: what it lacks is added to it
    #[arg(long, value_name = "WHAT", value_parser = ["sites"], hide_possible_values = true)]
    pub isolate: Option<String>,
    /// Most sites with a run of their own
    #[arg(long, value_name = "N", default_value_t = 16, requires = "isolate", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub isolate_top: u32,
    /// Share of the accesses to all sites from which a site has a run of its own
    #[arg(long, value_name = "SHARE", default_value = "1%", requires = "isolate", value_parser = input::share)]
    pub isolate_from: f64,
}
