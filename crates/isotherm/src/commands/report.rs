//! `isotherm report` shows a profile as a page, as text or as JSON, on request with a plan and modelled energy, or exports its stacks.

use anyhow::{Context, Result};
use isotherm_model::plan::Plan;
use isotherm_model::profile::Profile;

use isotherm_pipeline::site_bandwidths;
use isotherm_report::Report;
use isotherm_report::energy::{EnergyKind, EnergyRow, ModelledEnergy};
use isotherm_sim::{TierJoules, profile_energy};

use crate::cli::ReportArgs;
use crate::power_models::PowerModels;
use isotherm_console::{Console, print};

/// Writes the page, or prints text or JSON; a named file receives these instead.
///
/// # Errors
/// A flag is of another export format, the profile or plan cannot be read, the file cannot be written.
pub(crate) fn run(args: &ReportArgs, console: Console) -> Result<()> {
    args.exporting.check()?;
    if let Some(output) = &args.output {
        let inputs = std::iter::once(&args.profile).chain(&args.plan);
        super::keep_inputs(inputs, output, "--output")?;
    }
    let (profile, warnings) = super::read_profile(&args.profile, console)?;
    let plan = args.plan.as_deref().map(super::read_plan).transpose()?;
    let plan_name = args.plan.as_ref().map(|path| path.display().to_string());
    let mut report = Report::new(&profile, plan.as_ref())
        .named(&args.profile.display().to_string(), plan_name.as_deref())
        .with_bandwidths(&site_bandwidths(&profile))
        .with_notes(warnings);
    if let Some(names) = &args.power {
        let modelled = modelled(&profile, plan.as_ref(), names);
        report = report.with_energy(modelled.with_context(|| args.profile.display().to_string())?);
    }
    if let Some(format) = args.exporting.export {
        return super::export::run(args, format, &report, console);
    }
    if args.text || args.json {
        let text = if args.json {
            report.json()
        } else {
            report.text(isotherm_console::terminal_width())
        };
        let text = format!("{}\n", text.trim_end());
        return match &args.output {
            Some(target) => super::write_text(target, &text),
            None => print(&text),
        };
    }
    let target = args
        .output
        .clone()
        .unwrap_or_else(|| super::beside(&args.profile, "html"));
    super::write_text(&target, &report.html())?;
    if !super::is_standard_output(&target) {
        console.info(&format!("open {} in a browser", target.display()));
    }
    if plan.is_none() {
        super::next_is_plan(&profile, &args.profile, console);
    }
    Ok(())
}

/// The energy of the run by these models, of the fast tier and of all others.
///
/// # Errors
/// The counts of the profile tell no bytes.
fn modelled(profile: &Profile, plan: Option<&Plan>, names: &PowerModels) -> Result<ModelledEnergy> {
    let models = names.pair();
    let energy = profile_energy(profile, plan, &models).with_context(|| {
        format!(
            "--power {names} needs the bytes that the program moved, and this profile holds {}, which tell none: record with source `timer`, \
             or one that counts accesses or misses",
            profile.counted().units()
        )
    })?;
    let row = |(tier, index): (TierJoules, usize)| EnergyRow {
        of: tier.name,
        kind: EnergyKind::Modelled,
        source: match index {
            0 => models.fast.words(),
            _ => models.slow.words(),
        },
        joules: tier.idle + tier.accesses,
        idle_joules: Some(tier.idle),
        free_joules: Some(tier.free),
    };
    Ok(ModelledEnergy {
        tiers: energy.tiers.into_iter().zip(0..).map(row).collect(),
        sites: energy.sites,
    })
}
