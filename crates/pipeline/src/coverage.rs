//! [`coverage`] compares the sites that a plan names with those that a run made ([`Coverage`]): the share of the plan's value that is in
//! sites of the run shows whether the plan is for this program and version.

use std::collections::BTreeSet;

use isotherm_model::plan::Plan;
use isotherm_model::site::SiteId;

/// Sites of a plan and of a run, compared. The shared arena exists in every run and is left out, and so are the small sites
/// that the plan lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Sites in both.
    pub matched: Vec<SiteId>,
    /// Sites that the plan names and the run never created.
    pub only_in_plan: Vec<SiteId>,
    /// Sites that the run made and the plan does not know; they get the default tier.
    pub only_in_run: Vec<SiteId>,
    /// Value of the plan's matched sites.
    pub matched_value: u64,
    /// Value of all sites of the plan.
    pub planned_value: u64,
}

/// Compares a plan with the sites of a run or profile.
#[must_use]
pub fn coverage(plan: &Plan, run: impl IntoIterator<Item = SiteId>) -> Coverage {
    let is_site = |site: &SiteId| ![SiteId::SHARED, SiteId::UNATTRIBUTED].contains(site);
    let run: BTreeSet<SiteId> = run.into_iter().filter(is_site).collect();
    let mut seen = Coverage::default();
    let mut planned = BTreeSet::new();
    for site in plan.assignments.iter().filter(|a| is_site(&a.site)) {
        planned.insert(site.site);
        seen.planned_value = seen.planned_value.saturating_add(site.value);
        if run.contains(&site.site) {
            seen.matched_value = seen.matched_value.saturating_add(site.value);
            seen.matched.push(site.site);
        } else {
            seen.only_in_plan.push(site.site);
        }
    }
    let unknown = run.difference(&planned).copied();
    seen.only_in_run = unknown
        .filter(|site| !plan.small.contains_key(site))
        .collect();
    seen
}

impl Coverage {
    /// Share of the plan's value in sites of the run; 1 for a plan without value.
    #[must_use]
    pub fn value_share(&self) -> f64 {
        if self.planned_value == 0 {
            1.0
        } else {
            self.matched_value as f64 / self.planned_value as f64
        }
    }

    /// True where the plan names sites and the run has none of these: another program or version.
    #[must_use]
    pub const fn is_foreign(&self) -> bool {
        self.matched.is_empty() && !self.only_in_plan.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::coverage;
    use isotherm_model::emulation::Emulation;
    use isotherm_model::plan::{Caller, Item, Plan};
    use isotherm_model::site::SiteId;
    use isotherm_model::tier::Tiers;
    use isotherm_model::units::Bytes;
    use isotherm_policy::{AllSlow, PlanRequest, plan};

    fn of_sites(values: &[(u64, u64)]) -> Plan {
        let item = |&(site, value): &(u64, u64)| Item {
            site: SiteId(site),
            value,
            weight: Bytes(1),
            order: 0,
        };
        let items: Vec<Item> = values.iter().map(item).collect();
        let tiers = Tiers::emulated(Bytes(1), Bytes(1), Emulation::TMP);
        plan(&PlanRequest::new(&AllSlow, &items, &tiers))
    }

    #[test]
    fn matched_missing_and_unplanned_sites_are_told_apart() {
        let plan = of_sites(&[(1, 50), (10, 30), (11, 10)]);
        let seen = coverage(&plan, [0, 1, 10, 12].map(SiteId));
        assert_eq!(seen.matched, [SiteId(10)]);
        assert_eq!(seen.only_in_plan, [SiteId(11)]);
        assert_eq!(seen.only_in_run, [SiteId(12)]);
        assert!((seen.value_share() - 0.75).abs() < 1e-12);
        assert!(!seen.is_foreign());
    }

    #[test]
    fn a_small_site_that_the_plan_lists_is_not_one_of_the_run_alone() {
        let mut plan = of_sites(&[(10, 30)]);
        plan.small = [(SiteId(12), Caller::None)].into();
        let seen = coverage(&plan, [10, 12, 13].map(SiteId));
        assert_eq!(seen.matched, [SiteId(10)]);
        assert_eq!(seen.only_in_run, [SiteId(13)]);
    }

    #[test]
    fn a_plan_of_another_program_is_called_so_and_an_empty_plan_is_not() {
        let foreign = coverage(&of_sites(&[(10, 30)]), [SiteId(12)]);
        assert!(foreign.is_foreign());
        assert!(!coverage(&of_sites(&[]), [SiteId(12)]).is_foreign());
    }
}
