//! `isotherm merge`: the profiles of a parallel program's ranks as one.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use isotherm_model::batch::Epoch;
use isotherm_model::port::Recorder;
use isotherm_model::profile::{Profile, Segment};

use crate::cli::MergeArgs;
use crate::notes::Notes;

/// Reads, merges and writes.
///
/// # Errors
/// A profile cannot be read or was recorded otherwise than the first, the output cannot be written.
pub(crate) fn run(args: &MergeArgs, notes: Notes) -> Result<()> {
    // Before it is written: with --force the output would be emptied first.
    if let Some(path) = args.profiles.iter().find(|path| same(path, &args.output)) {
        bail!(
            "{}: is both read and written; name another file with --output",
            path.display()
        );
    }
    let read = |path| super::read_profile(path, notes).map(|(profile, _)| profile);
    let profiles = args.profiles.iter().map(|path| read(path));
    let profiles = profiles.collect::<Result<Vec<Profile>>>()?;
    let merged = isotherm_pipeline::merge(&profiles).with_context(|| {
        let names = args.profiles.iter().map(|path| path.display().to_string());
        names.collect::<Vec<_>>().join(" ")
    })?;
    drop(profiles);
    let mut writer = super::create_profile(&args.output, &merged.meta, args.force)?;
    let progress = notes.progress("writing the profile");
    for segment in segments(&merged) {
        writer.record(&segment)?;
    }
    writer.finish(merged.ending, &merged.sites)?;
    progress.finish_and_clear();
    let shown = args.output.display();
    notes.say(&format!(
        "merged {} profiles into {shown}: {} sites, {} accesses",
        args.profiles.len(),
        merged.sites.len(),
        merged.heat.iter().map(|heat| heat.accesses.0).sum::<u64>()
    ));
    notes.next(&format!("isotherm plan {shown} --fast 25%"));
    Ok(())
}

fn same(a: &std::path::Path, b: &std::path::Path) -> bool {
    let whole = |path: &std::path::Path| path.canonicalize().ok();
    whole(a).is_some_and(|a| whole(b) == Some(a))
}

/// A profile in the pieces in which one is written: what is known of the whole run comes first.
fn segments(profile: &Profile) -> impl Iterator<Item = Segment> {
    let mut segments = BTreeMap::<Epoch, Segment>::new();
    for epoch in &profile.epochs {
        segments.entry(epoch.epoch).or_default().epoch = *epoch;
    }
    for heat in &profile.heat {
        if let Some(segment) = segments.get_mut(&heat.epoch) {
            segment.heat.push(*heat);
        }
    }
    for resident in &profile.resident {
        if let Some(segment) = segments.get_mut(&resident.epoch) {
            segment.resident.push(*resident);
        }
    }
    if let Some(mut first) = segments.first_entry() {
        let first = first.get_mut();
        first.sites.clone_from(&profile.sites);
        first.extents.clone_from(&profile.extents);
        first.counts.clone_from(&profile.counts);
        first.sources.clone_from(&profile.sources);
    }
    segments.into_values()
}
