//! One command a file.

pub(crate) mod compare;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod handbook;
pub(crate) mod plan;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod tiers;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use isotherm_model::plan::Plan;
use isotherm_model::plan_text;
use isotherm_model::profile::Profile;

use crate::notes::Notes;

/// Reads a plan.
fn read_plan(path: &Path) -> Result<Plan> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("{shown}: cannot be read"))?;
    plan_text::read(&text).with_context(|| shown.to_string())
}

/// Reads a profile and passes its warnings on.
fn read_profile(path: &Path, notes: Notes) -> Result<Profile> {
    let progress = notes.progress("reading the profile");
    let (profile, warnings) = isotherm_profile::read(path)?;
    progress.finish_and_clear();
    for warning in warnings {
        notes.warn(&warning.to_string());
    }
    Ok(profile)
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
