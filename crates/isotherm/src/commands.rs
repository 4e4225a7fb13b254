//! Declares the modules of the commands, and has the functions that several commands share: they read plans and profiles, leave out data
//! that no run can place, print reports, write profiles and texts, refuse an output that is also an input, and name the next command.

pub(crate) mod colocate;
pub(crate) mod compare;
mod contexts;
pub(crate) mod curve;
pub(crate) mod daemon;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod explain;
mod export;
pub(crate) mod fit_bandwidth;
pub(crate) mod handbook;
pub(crate) mod import;
pub(crate) mod isolation;
pub(crate) mod merge;
pub(crate) mod plan;
pub(crate) mod record;
pub(crate) mod record_running;
pub(crate) mod report;
pub(crate) mod run;
mod selected_placement;
pub(crate) mod sensitivity;
pub(crate) mod simulate;
pub(crate) mod sites;
pub(crate) mod status;
pub(crate) mod tiers;
pub(crate) mod top;

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use isotherm_model::batch::Epoch;
use isotherm_model::plan::Plan;
use isotherm_model::port::Recorder;
use isotherm_model::profile::{Heat, Meta, Profile, Segment};
use isotherm_model::site::{SiteId, SiteKind};
use isotherm_model::units::Bytes;
use isotherm_model::words::{counted, percent};
use isotherm_profile::{Existing, FinishOutcome, META_FILE, Writer};
use isotherm_sys::files::read_input_text;
use serde::Serialize;

use isotherm_console::shell_quoting;
use isotherm_console::{Console, print};

/// Largest plan that is read: a site takes about 300 bytes, and the largest programs have some hundred thousand.
const PLAN_BYTES: u64 = 256 << 20;

fn read_plan(path: &Path) -> Result<Plan> {
    let (shown, word) = (path.display(), shell_quoting::file(path));
    let text = match read_input_text(path, PLAN_BYTES) {
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(
            "there is no plan at {shown}: no such file; make one with `isotherm plan PROFILE -o {word}`"
        ),
        Err(_) if path.is_dir() => bail!(
            "{shown} is not a plan: it is a directory; if it is a profile, `isotherm plan {word}` makes a \
             plan of it"
        ),
        Err(error) if error.kind() == ErrorKind::InvalidData => bail!(
            "{shown} is not a plan: it is no text; a plan is the file that `isotherm plan` writes"
        ),
        text => text.with_context(|| format!("{shown}: cannot be read"))?,
    };
    let plan = isotherm_plan_text::read(&text).with_context(|| shown.to_string())?;
    let has_parts = plan.assignments.iter().any(|site| !site.parts.is_empty());
    if has_parts && !crate::split::is_possible(&plan.tiers) {
        bail!(
            "{shown}: it has `part` lines, and the page trap places whole sites; plan for `--tiers emulated`, \
             or with `--split never`"
        );
    }
    Ok(plan)
}

/// Prints a report as JSON or as text.
fn print_report(json: bool, report: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
    print(&match json {
        true => isotherm_report::json(report),
        false => text(),
    })
}

/// Reads a profile and warns of the parts that could not be read.
pub(crate) fn read_profile(path: &Path, console: Console) -> Result<(Profile, Vec<String>)> {
    let (profile, warnings) = read(path, console)?;
    Ok((profile, say_all(&warnings, console)))
}

/// Reads a profile as [`read_profile`] does, for commands that need the size of the chunks, which only the metadata contains.
pub(crate) fn read_placeable(path: &Path, console: Console) -> Result<Profile> {
    let (profile, warnings) = read(path, console)?;
    if profile.meta.chunk == Bytes::ZERO {
        let meta = warnings.iter().find(|warning| warning.file == META_FILE);
        let why = meta.and_then(|meta| meta.what.split(';').next());
        bail!(
            "{}: {}, and without it the size of the chunks in which heat was kept is not \
             known; put the file back, make it readable, or record again; `isotherm report {}` shows the rest",
            path.join(META_FILE).display(),
            why.unwrap_or("it does not contain the size of the chunks"),
            path.display()
        );
    }
    say_all(&warnings, console);
    Ok(profile)
}

/// The part of a profile that a run can place: without the mappings of a process that ran already, about which it warns.
///
/// # Errors
/// Nothing is left.
pub(crate) fn placeable(profile: Profile, path: &Path, console: Console) -> Result<Profile> {
    let Some(left) = isotherm_pipeline::without_regions(&profile) else {
        return Ok(profile);
    };
    let shown = path.display();
    if left.profile.placeable_sites().next().is_none() {
        bail!(
            "{shown}: is of a process that ran without allocation sites and has no static data of 256 KiB, so there is nothing to plan: record \
             the program by `isotherm record -- PROGRAM`, or have `isotherm daemon` place the pages of the process"
        );
    }
    console.warn(&format!(
        "{shown}: {} with {} of the accesses have no allocation site, because the process ran already, and no run can place them: the plan is for \
         the rest; `isotherm record -- PROGRAM` records the sites, `isotherm daemon` places pages",
        counted(left.regions, "mapping"),
        percent(left.share)
    ));
    Ok(left.profile)
}

/// Names the plan of this profile as the next command, if one can be made: sites that a run can place have accesses.
fn next_is_plan(profile: &Profile, path: &Path, console: Console) {
    let sites = profile.placeable_sites();
    let sites = sites.filter(|site| site.kind != SiteKind::Region);
    let sites: BTreeSet<SiteId> = sites.map(|site| site.id).collect();
    let is_ranked = |heat: &Heat| sites.contains(&heat.site) && heat.accesses.0 + heat.served.0 > 0;
    if profile.heat.iter().any(is_ranked) {
        let profile = shell_quoting::file(path);
        console.next(&format!("isotherm plan {profile} --fast 25%"));
    }
}

/// Warns of a profile whose times no longer are those of fast memory, for commands that predict from them.
pub(crate) fn warn_of_emulation(path: &Path, profile: &Profile, console: Console) {
    if profile.meta.emulated {
        console.warn(&format!(
            "{}: was recorded on emulated tiers, so its time waiting for memory is too long, and its slow-downs are, too; record \
             the program by `isotherm record`",
            path.display()
        ));
    }
}

fn read(path: &Path, console: Console) -> Result<(Profile, Vec<isotherm_profile::Warning>)> {
    let progress = console.progress("reading the profile");
    let read = isotherm_profile::read(path)?;
    progress.finish_and_clear();
    Ok(read)
}

fn say_all(warnings: &[isotherm_profile::Warning], console: Console) -> Vec<String> {
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    for warning in &warnings {
        console.warn(warning);
    }
    warnings
}

/// Begins a profile; an existing one is replaced only with `--force`.
fn create_profile(path: &Path, meta: &Meta, force: bool) -> Result<Writer> {
    let existing = match force {
        true => Existing::Overwrite,
        false => Existing::Refuse,
    };
    create(path, meta, existing)
}

fn create(path: &Path, meta: &Meta, existing: Existing) -> Result<Writer> {
    Writer::create(path, meta, existing).map_err(|error| match error {
        isotherm_profile::Error::Exists(path) => anyhow!(
            "there is a profile at {} already; choose another path, or replace it with --force",
            path.display()
        ),
        other => other.into(),
    })
}

/// Writes a profile that is already complete.
fn write_profile(path: &Path, profile: &Profile, force: bool, console: Console) -> Result<()> {
    let existing = match force {
        true => Existing::OverwriteAtEnd,
        false => Existing::Refuse,
    };
    let mut writer = create(path, &profile.meta, existing)?;
    let progress = console.progress("writing the profile");
    for segment in segments(profile) {
        writer.record(&segment)?;
    }
    let kept = writer.finish(profile.ending, &profile.sites)?;
    progress.finish_and_clear();
    match kept {
        FinishOutcome::New => Ok(()),
        FinishOutcome::Former => bail!(
            "{}: is left unchanged, because the new profile is empty",
            path.display()
        ),
    }
}

/// Cuts a profile into the segments in which it is written, one for each epoch; what belongs to the whole run is in the first.
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
        first.code.clone_from(&profile.code);
        first.counts.clone_from(&profile.counts);
        first.sources.clone_from(&profile.sources);
    }
    segments.into_values()
}

/// True where both paths name the same existing file.
fn is_same_file(a: &Path, b: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().ok();
    whole(a).is_some_and(|a| whole(b) == Some(a))
}

/// Refuses an output that this flag names if it is one of the inputs, or a file in one of them: it would take the input's place.
///
/// # Errors
/// The output is one of the inputs, or in one.
fn keep_inputs<'a>(
    inputs: impl IntoIterator<Item = &'a PathBuf>,
    output: &Path,
    flag: &str,
) -> Result<()> {
    let Some(whole) = resolved(output) else {
        return Ok(());
    };
    for input in inputs {
        // A pipe is no file whose content is lost.
        let is_kept = input.is_dir() || input.is_file();
        let Some(read) = input.canonicalize().ok().filter(|_| is_kept) else {
            continue;
        };
        if whole.starts_with(&read) {
            bail!(
                "{}: is both read and written; name another file with {flag}",
                input.display()
            );
        }
    }
    Ok(())
}

/// The path of a file with all links resolved; the file need not exist.
fn resolved(path: &Path) -> Option<PathBuf> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let new = || Some(parent.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(new)
}

/// True for `-`, which names standard output.
fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// Writes a text to the file that was named for it, or to standard output.
fn write_text(path: &Path, text: &str) -> Result<()> {
    if is_standard_output(path) {
        return print(text);
    }
    crate::output::write(path, text.as_bytes())
}

/// `app.iso` with another ending: `app.plan`, `app.html`.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let trimmed: PathBuf = path.components().collect();
    trimmed.with_extension(ending)
}

#[cfg(test)]
mod tests {
    use super::beside;
    use std::path::{Path, PathBuf};

    #[test]
    fn an_ending_is_changed_even_behind_a_closing_slash() {
        assert_eq!(
            beside(Path::new("runs/app.iso/"), "plan"),
            PathBuf::from("runs/app.plan")
        );
        assert_eq!(beside(Path::new("app"), "html"), PathBuf::from("app.html"));
    }
}
