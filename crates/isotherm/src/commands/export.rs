//! `isotherm report --export` writes stacks of a profile in formats of other tools: folded stacks, speedscope and pprof.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use isotherm_report::Report;
use isotherm_report::stacks::{StackKind, StackWeight, folded, pprof, speedscope, stacks};

use crate::cli::ReportArgs;
use crate::cli_export::ExportFormat;
use isotherm_console::Console;

/// Writes the stacks of a report.
///
/// # Errors
/// There is nothing to export, or the file cannot be written.
pub(super) fn run(
    args: &ReportArgs,
    format: ExportFormat,
    report: &Report,
    console: Console,
) -> Result<()> {
    let summary = report.summary();
    let of = |kind| stacks(&summary.sites, kind);
    let kind = args.exporting.stacks.unwrap_or(StackKind::Allocation);
    let width = args.exporting.width.unwrap_or(StackWeight::Heat);
    if kind == StackKind::Code && width == StackWeight::Bytes {
        bail!("--width bytes: code has heat only; leave it out, or take --stacks allocation");
    }
    let chosen = of(kind);
    if chosen.is_empty() {
        bail!("{}: {}", args.profile.display(), nothing(kind));
    }
    let counted = summary.totals.counted;
    let target = target(args, format);
    match format {
        ExportFormat::Folded => super::write_text(&target, &folded(&chosen, width))?,
        ExportFormat::Speedscope => {
            let (allocation, code) = (of(StackKind::Allocation), of(StackKind::Code));
            let by_heat = |title, stacks| {
                let title = format!("{title}, by {}", counted.noun());
                (title, "none", StackWeight::Heat, stacks)
            };
            let title = "allocated in, by peak resident bytes".to_owned();
            let mut groups = vec![
                by_heat("allocated in", allocation.as_slice()),
                (title, "bytes", StackWeight::Bytes, &allocation),
            ];
            if !code.is_empty() {
                groups.push(by_heat("accessed by", &code));
            }
            super::write_text(&target, &speedscope(&summary.run.program, &groups))?;
        }
        ExportFormat::Pprof => {
            if super::is_standard_output(&target) {
                bail!("--export pprof: is no text; name a file with --output");
            }
            let heat = (counted.word(), "count", StackWeight::Heat);
            let bytes = ("peak_rss", "bytes", StackWeight::Bytes);
            let kinds = match kind {
                StackKind::Allocation => vec![heat, bytes],
                StackKind::Code => vec![heat],
            };
            let file = pprof(&chosen, &kinds, summary.run.span_ns);
            crate::output::write(&target, &file)?;
        }
    }
    if !super::is_standard_output(&target) {
        console.info(&format!("wrote {}", target.display()));
    }
    Ok(())
}

fn nothing(kind: StackKind) -> &'static str {
    match kind {
        StackKind::Allocation => {
            "no access and no resident memory was seen of any site, so there are no stacks to export"
        }
        StackKind::Code => {
            "no instruction is known, so there are no stacks of code; record with a source that samples instructions (timer, pebs, ibs \
             or spe), by this version"
        }
    }
}

fn target(args: &ReportArgs, format: ExportFormat) -> PathBuf {
    let ending = match format {
        ExportFormat::Folded => {
            return args.output.clone().unwrap_or_else(|| Path::new("-").into());
        }
        ExportFormat::Speedscope => "speedscope.json",
        ExportFormat::Pprof => "pb",
    };
    let beside = || super::beside(&args.profile, ending);
    args.output.clone().unwrap_or_else(beside)
}
