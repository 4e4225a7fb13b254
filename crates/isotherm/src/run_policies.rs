//! Lists the names for `isotherm run --policy`: the policies that move pages each epoch, `none`, which leaves the moves to the daemon, and
//! those that choose data once. `check` accepts the first kind and `none`, and says which flag the others need: `--optimize-after`, or
//! `--tiers compressed` for TMO's rule of what to page out.

use anyhow::{Result, bail};
use isotherm_policy::ATMEM;
use isotherm_policy::epoch::{self, FIRST_COME, LoadBalance};

/// The policy that moves nothing and observes nothing.
pub(crate) const NONE: &str = "none";

/// The policy that needs the future, which only a recording of the program has.
pub(crate) const ORACLE: &str = "oracle";

/// TMO's rule, of runs with compressed memory only.
pub(crate) const TMO: &str = "tmo";

/// The names of the policies that move pages each epoch, and of `none`.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    epoch::names().chain([LoadBalance::NAME, FIRST_COME, NONE])
}

/// These names, and those of the policies that choose once.
pub(crate) fn all_names() -> impl Iterator<Item = &'static str> {
    let sites = isotherm_policy::POLICIES.iter();
    // A run does not measure the bandwidth of its sites; by its tiers it balances each epoch.
    let sites = sites.filter(|policy| !policy.balances());
    names()
        .chain([ATMEM])
        .chain(sites.map(|policy| policy.name()))
}

/// Checks a name.
///
/// # Errors
/// There is no such policy for a run that moves pages each epoch.
pub(crate) fn check(name: &str) -> Result<()> {
    if names().any(|known| known == name) {
        return Ok(());
    }
    if name == TMO {
        bail!(
            "--policy {TMO}: is a rule of --tiers compressed; add that, or name one of {}",
            list()
        );
    }
    if all_names().any(|known| Some(known) == name.split('=').next()) {
        bail!(
            "--policy {name}: chooses once; add --optimize-after 2s, or name one of {}",
            list()
        );
    }
    bail!(
        "--policy: there is no policy \"{name}\"; there are {}",
        list()
    )
}

fn list() -> String {
    names().collect::<Vec<_>>().join(", ")
}
