//! `DiffArgs` declares the flags of `isotherm diff`, which compares two profiles.

use std::path::PathBuf;

use clap::Args;
use isotherm_report::fail_condition::FailCondition;

/// Flags of `isotherm diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The earlier profile
    #[arg(value_name = "BEFORE")]
    pub before: PathBuf,
    /// The later profile, of the same program or of another build of it
    #[arg(value_name = "AFTER")]
    pub after: PathBuf,
    /// End with status 3 if this holds: `footprint > +5%`, `time > +0.5s`, `heat of any > +20%`, `footprint of load_graph > 1GiB`. The
    /// measures are time, footprint, heat, allocations and requested; all but the first also of a site (a part of its location or callers)
    /// or of any site. A limit with a sign is a change. May be given several times
    #[arg(long = "fail-if", value_name = "CONDITION")]
    pub fail_if: Vec<FailCondition>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
