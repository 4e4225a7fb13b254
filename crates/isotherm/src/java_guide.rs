//! `guide_of` has the guide file of a plan made for `plan --guide` and `run --java` (docs/java-heap.md), and refuses a plan without Java
//! sites or with another number of tiers than a heap can have colours. `in_words` describes the guide file in sentences.

use anyhow::{Result, bail};
use isotherm_act::heap_guide::{self, COLOURS_AT_MOST, HeapGuide};
use isotherm_model::plan::Plan;
use isotherm_model::words::counted;

/// The guide file of a plan.
///
/// # Errors
/// The plan has no Java sites, or not as many tiers as a heap has colours.
pub(crate) fn guide_of(plan: &Plan) -> Result<HeapGuide> {
    let guide = heap_guide::guide(plan);
    let tiers = plan.tiers.all().len();
    if guide.java_sites == 0 {
        bail!(
            "the plan has no Java site, so no object has a colour; record a Java program with its agent, by isotherm record -- java ..., and \
             plan again"
        );
    }
    if !(2..=COLOURS_AT_MOST).contains(&tiers) {
        bail!(
            "a heap has 2 to {COLOURS_AT_MOST} colours, one for each tier, and the plan has {}",
            counted(tiers, "tier")
        );
    }
    Ok(guide)
}

/// What a guide file has of its plan, in sentences.
pub(crate) fn in_words(guide: &HeapGuide) -> Vec<String> {
    let all = match guide.java_sites {
        1 => "1 Java site is".to_owned(),
        sites => format!("{} are", counted(sites, "Java site")),
    };
    let places = counted(guide.entries, "place");
    let mut said = vec![format!(
        "{} of the plan's {all} cold: objects from {places} of its code are kept apart",
        guide.cold_sites
    )];
    let shared = (guide.in_hotter_places > 0).then(|| {
        format!(
            "{} in the same place of a method as a hotter one (a profile of `isotherm record --depth 1` has one site for each place)",
            guide.in_hotter_places
        )
    });
    let unnamed = (guide.unnamed > 0).then(|| {
        format!(
            "{} in native code or in a class without a lasting name",
            guide.unnamed
        )
    });
    let kept: Vec<String> = shared.into_iter().chain(unnamed).collect();
    if !kept.is_empty() {
        said.push(format!(
            "of the cold sites these are stored as hot ones, because the heap knows a site by its method and bytecode index: {}",
            kept.join("; ")
        ));
    }
    said
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{guide_of, in_words};
    use isotherm_model::plan::Plan;
    use isotherm_model::tier::{Tier, TierKind, Tiers};
    use isotherm_model::units::Bytes;

    const PLAN: &str = "isotherm-plan 1
policy cold-set=5%
value accesses
counted time
weight peak-rss
depth 4
command \"java\" \"-jar\" \"app.jar\"
tier fast emulated-fast capacity 64MiB placement preferred
tier slow emulated-slow capacity 1GiB placement preferred latency-factor 2 bandwidth-factor 2 migrate 1us
default fast
standing planned 1 first-touch 1 bound 1 total 1
site 00000000000000a1 fast value 9 weight 8MiB caller none
site 00000000000000a2 slow value 1 weight 32MiB caller none
site 00000000000000a3 slow value 1 weight 4MiB caller none
site 00000000000000a4 fast value 3 weight 16MiB
code 0 \"\"
code 1 /jdk/lib/server/libjvm.so
frame 00000000000000a1 0 0x11 function app.Index.grow variable \"new app.Item\"
frame 00000000000000a2 0 0x4 function app.Index.load variable \"new app.Item\"
frame 00000000000000a3 0 0x11 function app.Index.grow variable \"new app.Other\"
frame 00000000000000a4 1 0x11 function os::malloc
";

    /// A plan with Java sites of three places and a site of the virtual machine.
    pub(crate) fn plan() -> Plan {
        isotherm_plan_text::read(PLAN).expect("a plan")
    }

    #[test]
    fn plans_without_java_sites_or_with_one_tier_have_no_guide() {
        let mut plan = plan();
        let node = Tier::unmeasured("dram", TierKind::Nodes(vec![0]), Bytes(1 << 30), "");
        plan.tiers = Tiers::new(vec![node]).expect("one tier");
        let refused = guide_of(&plan).expect_err("one tier").to_string();
        assert!(refused.contains("the plan has 1 tier"), "{refused}");
        plan.frames.clear();
        let refused = guide_of(&plan).expect_err("no Java site").to_string();
        assert!(refused.contains("no Java site"), "{refused}");
    }

    #[test]
    fn the_sentences_say_what_is_cold_and_what_stays_hot() {
        let guide = guide_of(&plan()).expect("a guide");
        let said = in_words(&guide);
        assert_eq!(
            said[0],
            "2 of the plan's 3 Java sites are cold: objects from 1 place of its code are kept apart"
        );
        assert!(
            said[1].contains(": 1 in the same place of a method as a hotter one"),
            "{said:?}"
        );
        assert_eq!(said.len(), 2);
    }
}
