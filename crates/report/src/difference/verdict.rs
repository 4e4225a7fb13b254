//! [`ProfileDifference::judged`] evaluates the conditions of `isotherm diff --fail-if`: whether each holds, and the values that decided
//! it, or why the profiles cannot tell. A change of the heat of a site counts only beyond the noise; all else is compared as it is.

use isotherm_model::units::{Bytes, Nanos};

use super::{ConditionResult, ProfileDifference, SiteDifference, SiteFigures, heat_in_words};
use crate::fail_condition::{ConditionLimit, ConditionSubject, DifferenceMeasure, FailCondition};
use crate::noise::{SampledAmount, differ};
use crate::words::{counted, grouped, percent};

/// A measure of both runs, before and after. Heat has samples.
type MeasuredPair = [SampledAmount; 2];

impl ProfileDifference {
    /// Evaluates the conditions; [`Self::conditions`] has the results.
    #[must_use]
    pub fn judged(mut self, conditions: &[FailCondition]) -> Self {
        let results = conditions.iter().map(|condition| self.result(condition));
        self.conditions = results.collect();
        self
    }

    fn result(&self, condition: &FailCondition) -> ConditionResult {
        let (holds, reason) = match self.undecidable(condition) {
            Some(why) => (None, why),
            None => match &condition.subject {
                ConditionSubject::Program => {
                    let [before, after] = self.of_program(condition.measure);
                    let holds = condition.holds(before.amount, after.amount);
                    (Some(holds), self.values(condition.measure, [before, after]))
                }
                ConditionSubject::AnySite => self.of_sites(condition, &|_| true),
                ConditionSubject::Sites(text) => {
                    self.of_sites(condition, &|site| is_named(site, text))
                }
            },
        };
        ConditionResult {
            condition: condition.text.clone(),
            holds,
            reason,
        }
    }

    /// Why the profiles cannot tell whether a condition holds.
    fn undecidable(&self, condition: &FailCondition) -> Option<String> {
        let is_amount = !matches!(condition.limit, ConditionLimit::Share(_));
        if condition.measure == DifferenceMeasure::Heat {
            let Some(unit) = self.heat_unit else {
                return Some(
                    "the heat of these profiles has no unit in common; record both with the same source"
                        .to_owned(),
                );
            };
            if is_amount && condition.is_time != (unit == "ns") {
                let (has, wanted) = match condition.is_time {
                    true => (unit, "a number such as 1000"),
                    false => ("time waiting for memory", "a time such as 10ms"),
                };
                return Some(format!(
                    "the heat of these profiles is {has}; give {wanted}"
                ));
            }
        }
        match &condition.subject {
            ConditionSubject::Sites(text)
                if !self.sites.iter().any(|site| is_named(site, text)) =>
            {
                Some(format!(
                    "no site of the profiles has \"{text}\" in its location or callers; `isotherm diff --json` lists all"
                ))
            }
            _ => None,
        }
    }

    /// The result for the sites that are meant: whether the condition holds for any, and for which, the largest change first. The heat of
    /// a site changes only beyond the noise.
    fn of_sites(
        &self,
        condition: &FailCondition,
        is_meant: &dyn Fn(&SiteDifference) -> bool,
    ) -> (Option<bool>, String) {
        let measure = condition.measure;
        let holds = |site: &&SiteDifference| {
            let [before, after] = of_site(site, measure);
            let is_change = !matches!(condition.limit, ConditionLimit::Value(_));
            let is_noise =
                measure == DifferenceMeasure::Heat && is_change && !differ(before, after);
            condition.holds(before.amount, after.amount) && !is_noise
        };
        let meant: Vec<&SiteDifference> = self.sites.iter().filter(|site| is_meant(site)).collect();
        let held: Vec<&SiteDifference> = meant.iter().copied().filter(holds).collect();
        let named = |site: &SiteDifference| {
            let values = self.values(measure, of_site(site, measure));
            format!("{}: {values}", site.location)
        };
        let reason = match (held.as_slice(), meant.as_slice()) {
            ([first], _) => named(first),
            ([first, more @ ..], _) => {
                let more = counted(more.len(), "other site");
                format!("{}; and {more}", named(first))
            }
            ([], [one]) => named(one),
            ([], sites) => format!("of none of {}", counted(sites.len(), "site")),
        };
        (Some(!held.is_empty()), reason)
    }

    fn of_program(&self, measure: DifferenceMeasure) -> MeasuredPair {
        let of = |run: &super::DifferenceRun| match measure {
            DifferenceMeasure::Time => exact(run.time_ns),
            DifferenceMeasure::Footprint => exact(run.footprint_bytes),
            DifferenceMeasure::Allocations => exact(run.allocations),
            DifferenceMeasure::Requested => exact(run.requested_bytes),
            DifferenceMeasure::Heat => SampledAmount {
                amount: run.heat.unwrap_or(0) as f64,
                samples: run.samples,
            },
        };
        [&self.before, &self.after].map(of)
    }

    /// `512 MiB before, 600 MiB after (+17 %)`.
    fn values(&self, measure: DifferenceMeasure, measured: MeasuredPair) -> String {
        let words = |amount: f64| {
            let amount = amount as u64;
            match measure {
                DifferenceMeasure::Time => Nanos(amount).to_string(),
                DifferenceMeasure::Footprint | DifferenceMeasure::Requested => {
                    Bytes(amount).to_string()
                }
                DifferenceMeasure::Allocations => grouped(amount),
                DifferenceMeasure::Heat => heat_in_words(Some(amount), self.heat_unit),
            }
        };
        let [before, after] = measured.map(|it| it.amount);
        let change = growth(before, after);
        let [before, after] = [before, after].map(words);
        format!("{before} before, {after} after ({change})")
    }
}

/// A change as a share of the earlier value: `+17 %`, `-5.0 %`; `new` of a growth from nothing.
pub(super) fn growth(before: f64, after: f64) -> String {
    match before > 0.0 {
        true if after > before => format!("+{}", percent(after / before - 1.0)),
        true => percent(after / before - 1.0),
        false if after > 0.0 => "new".to_owned(),
        false => percent(0.0),
    }
}

fn exact(value: u64) -> SampledAmount {
    SampledAmount {
        amount: value as f64,
        samples: None,
    }
}

fn of_site(site: &SiteDifference, measure: DifferenceMeasure) -> MeasuredPair {
    // A site without samples in one profile was sampled none there.
    let mut figures = [&site.before, &site.after].into_iter().flatten();
    let is_sampled = figures.any(|figures| figures.samples.is_some());
    let of = |figures: &Option<SiteFigures>| {
        let value = |value: fn(&SiteFigures) -> u64| exact(figures.as_ref().map_or(0, value));
        match measure {
            DifferenceMeasure::Time => exact(0),
            DifferenceMeasure::Footprint => value(|site| site.peak_rss_bytes),
            DifferenceMeasure::Allocations => value(|site| site.allocations),
            DifferenceMeasure::Requested => value(|site| site.requested_bytes),
            DifferenceMeasure::Heat => match figures {
                Some(figures) => figures.sampled(),
                None => SampledAmount {
                    amount: 0.0,
                    samples: is_sampled.then_some(0),
                },
            },
        }
    };
    [&site.before, &site.after].map(of)
}

/// True for a site with this text in its location or its callers, or at the beginning of an id.
fn is_named(site: &SiteDifference, text: &str) -> bool {
    let figures = [&site.before, &site.after].into_iter().flatten();
    let mut ids = figures.flat_map(|figures| &figures.sites);
    let lower = text.to_ascii_lowercase();
    !text.is_empty()
        && (site.location.contains(text)
            || site.callers.iter().any(|caller| caller.contains(text))
            || ids.any(|id| id.starts_with(&lower)))
}
