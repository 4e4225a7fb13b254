//! Tests that all names of one site in a rebuilt program share its leading memory.

use std::collections::BTreeMap;

use super::Fitted;
use isotherm_act::configuration::Configuration;
use isotherm_model::calls::MatchedBy;
use isotherm_model::plan::Plan;
use isotherm_model::site::SiteId;

#[test]
fn the_names_of_a_site_in_a_rebuilt_program_share_its_leading_memory() {
    let original = isotherm_plan_text::read(
        "isotherm-plan 1\npolicy thermos\nvalue accesses\nweight peak-rss\ndepth 4\ncommand \"./app\"\n\
         tier near nodes 0 capacity 1GiB placement preferred\ntier far nodes 1 capacity 64GiB placement bind\n\
         default far\nstanding planned 0 first-touch 0 bound 0 total 0\n\
         site 00000000000000ab far value 9 weight 256MiB\nleading ab near bytes 64MiB value 3\n",
    );
    let original = original.expect("a plan");
    let mut fitted = Fitted {
        plan: Plan {
            assignments: Vec::new(),
            ..original.clone()
        },
        original,
        former: BTreeMap::new(),
        found: BTreeMap::new(),
        changed: Vec::new(),
        unknown: Vec::new(),
        java_sites: 0,
    };
    let site = fitted.original.assignments[0].clone();
    let names = [(SiteId(7), None), (SiteId(8), None)];
    fitted.add(&site, names.into(), MatchedBy::Line);
    let configuration = Configuration::guided(&fitted.plan);
    let [(record, sites)] = configuration.leading.as_slice() else {
        panic!("{:?}", configuration.leading);
    };
    assert_eq!(record.bytes, 64 << 20);
    assert_eq!(sites, &[SiteId(7), SiteId(8)]);
}
