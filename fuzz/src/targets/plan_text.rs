//! Plans as text, and what a guided run makes of them.

use isotherm_act::configuration::Configuration;
use isotherm_model::plan::Plan;
use isotherm_report::explanation::Explanation;

use super::runtime_config;

/// Sites of a plan that are explained; each explanation orders all of them.
const EXPLAINED: usize = 4;

pub(crate) fn check(data: &[u8]) -> bool {
    let Some(plan) = str::from_utf8(data)
        .ok()
        .and_then(|text| isotherm_plan_text::read(text).ok())
    else {
        return false;
    };
    let text = isotherm_plan_text::write(&plan);
    assert_eq!(
        isotherm_plan_text::read(&text).as_ref(),
        Ok(&plan),
        "written as {text}"
    );
    for site in plan.assignments.iter().take(EXPLAINED) {
        let words = Explanation::new(&plan, &site.site.to_string());
        assert!(
            words.is_ok_and(|words| !words.to_string().is_empty()),
            "site {}",
            site.site
        );
    }
    configures(&plan);
    true
}

/// What the command line writes of a plan, the runtime takes; what it cannot write it refuses.
fn configures(plan: &Plan) {
    if let Ok(bytes) = Configuration::guided(plan).to_bytes() {
        assert!(
            runtime_config::is_taken(&bytes),
            "the runtime refuses the configuration of\n{}",
            isotherm_plan_text::write(plan)
        );
    }
}
