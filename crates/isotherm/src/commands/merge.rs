//! `isotherm merge` makes one profile of those of a parallel program's processes (ranks), without the times of `isotherm sensitivity` and
//! the bandwidths of `isotherm record --isolate`.

use anyhow::{Context, Result};
use isotherm_model::profile::Profile;
use isotherm_model::words::counted;

use crate::cli::MergeArgs;
use isotherm_console::Console;

/// Reads, merges and writes.
///
/// # Errors
/// A profile cannot be read or was recorded with other settings than the first, the output cannot be written.
pub(crate) fn run(args: &MergeArgs, console: Console) -> Result<()> {
    // Checked before the output is written: with --force it is put aside first.
    super::keep_inputs(&args.profiles, &args.output, "--output")?;
    let read = |path| super::read_profile(path, console).map(|(profile, _)| profile);
    let profiles = args.profiles.iter().map(|path| read(path));
    let profiles = profiles.collect::<Result<Vec<Profile>>>()?;
    let merged = isotherm_pipeline::merge(&profiles).with_context(|| {
        let names = args.profiles.iter().map(|path| path.display().to_string());
        names.collect::<Vec<_>>().join(" ")
    })?;
    if profiles.iter().any(|profile| profile.sensitivity.is_some()) {
        console.info(
            "the times that `isotherm sensitivity` measured are left out: they are of one program, and not of the merged ones together",
        );
    }
    if profiles.iter().any(|profile| profile.isolation.is_some()) {
        console.info("the bandwidths that `isotherm record --isolate` measured are left out for the same reason");
    }
    drop(profiles);
    super::write_profile(&args.output, &merged, args.force, console)?;
    let shown = args.output.display();
    let of_sites = merged.heat.iter().filter(|heat| heat.site.is_placeable());
    let on_sites = of_sites.map(|heat| heat.accesses.0).sum();
    console.info(&format!(
        "merged {} into {shown}: {}, {} on them",
        counted(args.profiles.len(), "profile"),
        counted(merged.placeable_sites().count(), "site"),
        merged.counted().counted(on_sites)
    ));
    super::next_is_plan(&merged, &args.output, console);
    Ok(())
}
