//! `isotherm explain PLAN SITE` reads a plan, and prints why it assigns one site to its tier and what would change that.
//! Crate `report` computes the explanation; its tests are here, because they read plans from text, and `report` does not depend on
//! `plan-text`.

use std::path::Path;

use anyhow::{Context, Result};
use isotherm_report::explanation::Explanation;

use isotherm_console::print;

/// Prints the explanation.
///
/// # Errors
/// The plan cannot be read; no site, or more than one, matches the id or label.
pub(crate) fn run(path: &Path, site: &str) -> Result<()> {
    let plan = super::read_plan(path)?;
    let explanation = Explanation::new(&plan, site);
    let explanation = explanation.with_context(|| path.display().to_string())?;
    print(&explanation.to_string())
}

#[cfg(test)]
mod tests {
    use isotherm_model::plan::Plan;
    use isotherm_plan_text::read;
    use isotherm_report::explanation::{ExplainError, Explanation};

    const PLAN: &str = "isotherm-plan 1
policy thermos
value accesses
counted accesses
weight peak-rss
depth 4
command \"./bfs\"
tier fast emulated-fast capacity 4KiB placement preferred
tier slow emulated-slow capacity 1GiB placement preferred period 1s access 10us hot 13us migrate 50us
default slow
standing planned 90 first-touch 10 bound 95 total 100
site 0000000000000010 fast value 90 weight 3KiB # main (bfs.cc:7) -- taken: it fits
site 0000000000000020 slow value 9 weight 2KiB # load (bfs.cc:9) -- refused: too little
site 0000000000000030 slow value 1 weight 2KiB # main (bfs.cc:11)
";

    fn explain(plan: &Plan, text: &str) -> Result<String, ExplainError> {
        Explanation::new(plan, text).map(|explanation| explanation.to_string())
    }

    /// The id of the site that matches a text.
    fn found(plan: &Plan, text: &str) -> Result<String, ExplainError> {
        explain(plan, text).map(|text| text.split(' ').next().unwrap_or_default().to_owned())
    }

    #[test]
    fn the_explanation_has_rank_share_hotter_sites_and_what_would_change_the_tier() {
        let plan = read(PLAN).unwrap();
        let text = explain(&plan, "load").unwrap();
        for part in [
            "slow (emulated)",
            "refused: too little (thermos)",
            "9 accesses, 9.0 % of all 100",
            "2 KiB (peak-rss), 29 % of all 7 KiB",
            "rank 2 of 3",
            "fast holds 1 of 1 hotter sites, 3 KiB of its 4 KiB; 1 KiB left",
            "fast of 5 KiB would hold it",
            "hotter than 0000000000000010 (30720.000 a MiB)",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        let hottest = explain(&plan, "10").unwrap();
        assert!(hottest.contains("it is the hottest in fast"), "{hottest}");
    }

    #[test]
    fn the_value_has_the_unit_of_the_profile() {
        for (headers, expected) in [
            (
                "counted time",
                "9 samples of time waiting for memory, 9.0 % of all 100",
            ),
            ("counted misses", "9 misses, 9.0 % of all 100"),
            ("", "9 samples, 9.0 % of all 100"),
        ] {
            let plan = read(&PLAN.replace("counted accesses", headers)).unwrap();
            let text = explain(&plan, "20").unwrap();
            assert!(text.contains(expected), "{text}");
        }
        let bandwidth = read(&PLAN.replace("value accesses", "value bandwidth")).unwrap();
        let text = explain(&bandwidth, "20").unwrap();
        assert!(text.contains("9 accesses a second"), "{text}");
    }

    #[test]
    fn the_beginning_of_an_id_is_enough_where_no_other_begins_so() {
        let plan = PLAN
            .replace("0000000000000010", "1cde455c00000010")
            .replace("0000000000000020", "1cde455d00000020");
        let plan = read(&plan).unwrap();
        for text in ["1cde455c", "1CDE455C", "1cde455c00000010"] {
            assert_eq!(
                found(&plan, text).as_deref(),
                Ok("1cde455c00000010"),
                "{text}"
            );
        }
        // Site 1 is the shared arena, and the other ids begin with `1`.
        let shared = PLAN
            .replace("0000000000000010", "1cde455c00000010")
            .replace("0000000000000020", "shared");
        let shared = read(&shared).unwrap();
        assert!(explain(&shared, "1").is_err());
        assert!(explain(&shared, "shared").is_ok());
        let error = found(&plan, "1cde455").unwrap_err().to_string();
        for part in ["fits 2 sites", "1cde455c00000010", "1cde455d00000020"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_small_site_is_explained_by_the_arena_that_small_sites_share() {
        let small = "site shared slow value 0 weight 4KiB\n\
                     small none 1cde455c00000010 1cde455d00000010\n";
        let plan = read(&format!(
            "{}{small}",
            PLAN.replace("default slow", "default fast")
        ))
        .unwrap();
        let text = explain(&plan, "1CDE455C").unwrap();
        for part in [
            "1cde455c00000010",
            "tier     slow (emulated)",
            "the arena that small sites share",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        let error = explain(&plan, "1cde455").unwrap_err().to_string();
        assert!(error.contains("fits 2 sites"), "{error}");
        assert!(explain(&plan, "2cde").is_err());
    }

    #[test]
    fn a_text_that_fits_several_labels_lists_them_and_one_that_fits_none_says_so() {
        let plan = read(PLAN).unwrap();
        let error = explain(&plan, "main").unwrap_err();
        assert!(error.to_string().contains("fits 2 sites"), "{error}");
        assert!(
            error
                .to_string()
                .contains("0000000000000030  main (bfs.cc:11)")
        );
        for text in ["nowhere", "", "unattributed"] {
            assert!(
                matches!(explain(&plan, text), Err(ExplainError::Unknown { .. })),
                "{text}"
            );
        }
        assert_eq!(found(&plan, "20").as_deref(), Ok("0000000000000020"));
    }

    #[test]
    fn a_text_of_the_plan_cannot_imitate_a_line() {
        let hostile = PLAN
            .replace("load", "load\\u{a}  tier     fast")
            .replace(" slow ", " \"slow\\u{a}x\" ")
            .replace("default slow", "default fast");
        let plan = read(&hostile).unwrap();
        let text = explain(&plan, "20").unwrap();
        assert!(text.starts_with("0000000000000020  load?  tier"), "{text}");
        assert!(text.contains("  tier     slow?x (emulated)\n"), "{text}");
    }
}
