//! Suggests in a report what to run next, as commands that can be copied.

use crate::shell;
use crate::sites::by_share;
use crate::summary::{HOT_SHARE, Next, Summary};

/// The commands that follow for a profile and a plan at these paths.
pub(crate) fn commands(summary: &Summary, profile: &str, plan: Option<&str>) -> Vec<Next> {
    let next = |what: &str, command: String| Next {
        what: what.to_owned(),
        command,
    };
    let plan_path = plan.map_or_else(
        || {
            format!(
                "{}.plan",
                profile.trim_end_matches('/').trim_end_matches(".iso")
            )
        },
        str::to_owned,
    );
    let mut list = Vec::new();
    if summary.totals.accesses == 0 {
        // Where accesses were seen and none fell on a site, no source is to blame.
        if summary.totals.unattributed_accesses == 0 {
            list.push(next(
                "See why nothing was seen",
                "isotherm doctor".to_owned(),
            ));
        }
        return list;
    }
    if summary.plan.is_none() {
        list.push(next(
            "Decide what goes into a quarter of the footprint",
            format!(
                "isotherm plan {} --fast {}% --policy thermos -o {}",
                shell::word(profile),
                HOT_SHARE * 100.0,
                shell::word(&plan_path)
            ),
        ));
        list.push(next(
            "See the plan beside first touch and the bound",
            format!(
                "isotherm report {} --plan {}",
                shell::word(profile),
                shell::word(&plan_path)
            ),
        ));
    }
    if !summary.run.command.is_empty() {
        list.push(next(
            "Run the program with its data placed by the plan",
            format!(
                "isotherm run --plan {} -- {}",
                shell::word(&plan_path),
                summary.run.command_line()
            ),
        ));
    }
    let mut rows = by_share(&summary.sites).into_iter();
    if let Some(site) = rows.find(|site| !site.below_noise) {
        list.push(next(
            "Ask why the site with the largest share is where it is",
            format!("isotherm explain {} {}", shell::word(&plan_path), site.site),
        ));
    }
    list
}
