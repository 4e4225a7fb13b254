//! `ObjectNames` names the objects (sites or chunks of them) of the programs of `isotherm colocate` by the locations of their sites, as
//! reports do. The reason in a plan why data is fast or slow names an object of another program that has fast memory or lacks it.

use std::collections::BTreeMap;

use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_pipeline::site_of_object;
use isotherm_policy::sharing::Rival;
use isotherm_report::Report;

/// The locations of the sites of every program, by program and site.
pub(super) struct ObjectNames(BTreeMap<String, BTreeMap<SiteId, String>>);

impl ObjectNames {
    /// The names of the sites in the profiles of these programs.
    pub(super) fn new<'a>(programs: impl Iterator<Item = (&'a String, &'a Profile)>) -> Self {
        let of_program = |(name, profile): (&String, &Profile)| {
            let report = Report::new(profile, None);
            let sites = report.summary().sites.iter();
            let sites = sites.map(|row| (row.id, row.location.clone()));
            (name.clone(), sites.collect())
        };
        Self(programs.map(of_program).collect())
    }

    /// The name of the object of a rival: the location of its site, or the site's number where it has none.
    pub(super) fn of(&self, rival: &Rival) -> String {
        let Some(site) = site_of_object(&rival.object) else {
            return rival.object.clone();
        };
        let number = site.to_string();
        let sites = self.0.get(&rival.program);
        let location = sites.and_then(|sites| sites.get(&site));
        let location = location.filter(|location| !location.is_empty());
        let name = location.unwrap_or(&number);
        match number == rival.object {
            true => name.clone(),
            false => format!("a part of {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use isotherm_model::profile::{Meta, Profile};
    use isotherm_policy::sharing::Rival;

    use super::ObjectNames;

    #[test]
    fn a_chunk_is_a_part_and_a_site_without_a_location_has_its_number() {
        let names =
            ObjectNames::new([(&"a".to_owned(), &Profile::new(Meta::default()))].into_iter());
        let of = |object: &str| {
            names.of(&Rival {
                program: "a".to_owned(),
                object: object.to_owned(),
                comes_before: true,
            })
        };
        assert_eq!(of("00000000000000ff"), "00000000000000ff");
        assert_eq!(
            of("00000000000000ff+000000200000"),
            "a part of 00000000000000ff"
        );
    }
}
