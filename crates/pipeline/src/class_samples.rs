//! [`class_samples`] sums up the accesses and resident bytes of an epoch by Java class, for the choice of the classes that are hot.
//!
//! The class of a site is in the variable of one of its frames, the one that asks for the object: `new com.example.Record`.

use std::collections::BTreeMap;

use isotherm_model::batch::Extent;
use isotherm_model::profile::Segment;
use isotherm_model::site::{Site, SiteId, SiteKind};
use isotherm_model::units::{Accesses, Bytes};
use isotherm_policy::ClassSample;

/// The accesses and bytes of each class in an epoch, sorted by name, also if both are 0. `extents` are those at its end.
#[must_use]
pub fn class_samples(
    sites: &BTreeMap<SiteId, Site>,
    segment: &Segment,
    extents: &[Extent],
) -> Vec<ClassSample> {
    let mut by_site = BTreeMap::<SiteId, (Accesses, Bytes)>::new();
    for heat in &segment.heat {
        by_site.entry(heat.site).or_default().0 += heat.accesses;
    }
    for extent in extents {
        by_site.entry(extent.site).or_default().1 += extent.resident;
    }
    let mut classes = BTreeMap::<&str, (Accesses, Bytes)>::new();
    for site in sites.values() {
        let Some(class) = class_of(site) else {
            continue;
        };
        let (accesses, live) = by_site.get(&site.id).copied().unwrap_or_default();
        let sums = classes.entry(class).or_default();
        sums.0 += accesses;
        sums.1 += live;
    }
    let classes = classes.into_iter();
    classes
        .map(|(class, (accesses, live))| ClassSample {
            class: class.to_owned(),
            accesses,
            live,
        })
        .collect()
}

/// The class that a site of a Java heap allocates; `None` for other sites.
fn class_of(site: &Site) -> Option<&str> {
    let mut variables = site.frames.iter().filter_map(|it| it.variable.as_deref());
    let class = variables.find_map(|variable| variable.strip_prefix("new "));
    class.filter(|_| site.kind == SiteKind::Java)
}

#[cfg(test)]
mod tests {
    use super::class_samples;
    use isotherm_model::batch::{Epoch, Extent, Process};
    use isotherm_model::profile::{Heat, Segment};
    use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
    use isotherm_model::units::{Accesses, Bytes};
    use isotherm_policy::ClassSample;
    use std::collections::BTreeMap;

    fn site(id: u64, kind: SiteKind, variable: Option<&str>) -> (SiteId, Site) {
        let caller = Frame {
            variable: variable.map(str::to_owned),
            ..Frame::default()
        };
        let site = Site {
            frames: [Frame::default(), caller].into(),
            ..Site::new(SiteId(id), kind)
        };
        (SiteId(id), site)
    }

    fn extent(site: u64, resident: u64) -> Extent {
        Extent {
            process: Process { pid: 1, image: 0 },
            site: SiteId(site),
            address: site << 40,
            bytes: Bytes(1 << 20),
            resident: Bytes(resident),
            tier: None,
        }
    }

    fn heat(site: u64, accesses: u64) -> Heat {
        Heat {
            epoch: Epoch(0),
            process: Process { pid: 1, image: 0 },
            site: SiteId(site),
            address: 0,
            object: None,
            accesses: Accesses(accesses),
            streamed: Accesses(0),
            served: Accesses(100),
        }
    }

    #[test]
    fn the_sites_of_a_class_are_added_and_other_sites_left_out() {
        let sites = BTreeMap::from([
            site(11, SiteKind::Java, Some("new B")),
            site(12, SiteKind::Java, Some("new A[]")),
            site(13, SiteKind::Java, Some("new B")),
            site(14, SiteKind::Java, None),
            site(15, SiteKind::Heap, Some("new B")),
            site(16, SiteKind::Java, Some("new C")),
        ]);
        let segment = Segment {
            heat: [(11, 3), (13, 4), (13, 5), (14, 6), (15, 7)]
                .map(|(site, accesses)| heat(site, accesses))
                .to_vec(),
            ..Segment::default()
        };
        let extents = [(11, 10), (11, 20), (12, 30), (13, 40), (14, 50), (15, 60)];
        let extents = extents.map(|(site, resident)| extent(site, resident));
        let expected = [("A[]", 0, 30), ("B", 12, 70), ("C", 0, 0)];
        let expected = expected.map(|(class, accesses, live)| ClassSample {
            class: class.to_owned(),
            accesses: Accesses(accesses),
            live: Bytes(live),
        });
        assert_eq!(class_samples(&sites, &segment, &extents), expected);
    }
}
