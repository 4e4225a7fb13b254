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
    let stem = profile.trim_end_matches('/').trim_end_matches(".iso");
    let plan = plan.map_or_else(|| format!("{stem}.plan"), str::to_owned);
    let (profile, plan) = (shell::word(profile), shell::word(&plan));
    let mut list = Vec::new();
    if summary.totals.accesses == 0 {
        // Where accesses were seen and none fell on a site, no source is to blame.
        if summary.totals.unattributed_accesses == 0 {
            let doctor = "isotherm doctor".to_owned();
            list.push(next("See why nothing was seen", doctor));
        }
        return list;
    }
    if summary.plan.is_none() {
        let fast = HOT_SHARE * 100.0;
        list.push(next(
            "Decide what goes into a quarter of the footprint",
            format!("isotherm plan {profile} --fast {fast}% --policy thermos -o {plan}"),
        ));
        list.push(next(
            "See the plan beside first touch and the bound",
            format!("isotherm report {profile} --plan {plan}"),
        ));
    }
    if !summary.run.command.is_empty() {
        let command = summary.run.command_line();
        list.push(next(
            "Run the program with its data placed by the plan",
            format!("isotherm run --plan {plan} -- {command}"),
        ));
    }
    let mut rows = by_share(&summary.sites).into_iter();
    if let Some(site) = rows.find(|site| !site.below_noise) {
        list.push(next(
            "Ask why the site with the largest share is where it is",
            format!("isotherm explain {plan} {}", site.site),
        ));
    }
    list
}
