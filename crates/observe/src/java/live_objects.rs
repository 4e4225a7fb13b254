//! `LiveObjects` finds the site of the Java object at an address, for the samples of accesses in a heap: by the object that holds it where
//! the agent sampled its allocation, else by the nearest object of the same class, given by the caller, that it sampled.
//!
//! ```text
//! heap        |  a  b  [A]  b  a  b  [B]  a  |      [A] [B] sampled objects of classes a and b
//!                            x                      an access to an object of class b
//!                               ------^             the nearest sampled one of its class: the site is that of [B]
//! ```
//!
//! An access within a sampled object is exact: every object of several sampling intervals is sampled, small ones rarely.
//! Otherwise the object's own header tells its class, and the nearest sampled object of this class stands for it. Where all objects
//! of a class are of one site, that is exact too; else it is an estimate, right where neighbours in the heap are of one site, and right
//! in proportion where the sites of a class are mixed.

use isotherm_abi::java::JavaObjectRecord;

/// The sampled objects between two collections.
#[derive(Debug, Default)]
pub(super) struct LiveObjects {
    /// The objects, sorted by address.
    by_address: Vec<JavaObjectRecord>,
    /// Class, address and site of each object, sorted.
    by_class: Vec<(u32, u64, u32)>,
}

/// The site of an object, and how it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoundSite {
    /// The object itself was sampled.
    Sampled(u32),
    /// The nearest sampled object of its class is of this site.
    OfClass(u32),
}

impl LiveObjects {
    /// Indexes these objects, given in any order.
    pub(super) fn new(mut objects: Vec<JavaObjectRecord>) -> Self {
        objects.sort_unstable_by_key(|object| object.address);
        let key = |object: &JavaObjectRecord| (object.class, object.address, object.site);
        let mut by_class: Vec<_> = objects.iter().map(key).collect();
        by_class.sort_unstable();
        Self {
            by_address: objects,
            by_class,
        }
    }

    /// The sampled object that holds an address.
    pub(super) fn holding(&self, address: u64) -> Option<FoundSite> {
        let after = self.by_address.partition_point(|it| it.address <= address);
        let object = self.by_address[..after].last()?;
        (address - object.address < object.bytes).then_some(FoundSite::Sampled(object.site))
    }

    /// The site of the sampled object of a class that is nearest to an address.
    pub(super) fn nearest(&self, class: u32, address: u64) -> Option<FoundSite> {
        let at = self
            .by_class
            .partition_point(|(other, place, _)| (*other, *place) < (class, address));
        let before = at.checked_sub(1).map(|before| self.by_class[before]);
        let neighbours = [before, self.by_class.get(at).copied()];
        let of_class = neighbours
            .into_iter()
            .flatten()
            .filter(|(other, _, _)| *other == class);
        of_class
            .min_by_key(|(_, place, _)| place.abs_diff(address))
            .map(|(_, _, site)| FoundSite::OfClass(site))
    }
}

#[cfg(test)]
mod tests {
    use super::{FoundSite, LiveObjects};
    use isotherm_abi::java::JavaObjectRecord;
    use proptest::prelude::*;

    fn object(address: u64, bytes: u64, (class, site): (u32, u32)) -> JavaObjectRecord {
        JavaObjectRecord {
            address,
            bytes,
            site,
            class,
        }
    }

    #[test]
    fn an_address_within_a_sampled_object_is_of_its_site() {
        let objects = LiveObjects::new(vec![object(96, 32, (1, 8)), object(16, 16, (1, 7))]);
        let sites = [0, 15, 16, 31, 32, 95, 96, 127, 128].map(|address| objects.holding(address));
        let (a, b) = (Some(FoundSite::Sampled(7)), Some(FoundSite::Sampled(8)));
        assert_eq!(sites, [None, None, a, a, None, None, b, b, None]);
    }

    #[test]
    fn another_address_is_of_the_site_of_its_nearest_neighbour_of_the_class() {
        let objects = LiveObjects::new(vec![
            object(100, 16, (1, 7)),
            object(200, 16, (2, 8)),
            object(300, 16, (1, 9)),
        ]);
        let of = |class, address| objects.nearest(class, address);
        assert_eq!(of(1, 0), Some(FoundSite::OfClass(7)));
        assert_eq!(of(1, 199), Some(FoundSite::OfClass(7)));
        assert_eq!(of(1, 201), Some(FoundSite::OfClass(9)));
        assert_eq!(of(2, 9000), Some(FoundSite::OfClass(8)));
        assert_eq!(of(3, 200), None);
        assert_eq!(LiveObjects::default().nearest(1, 0), None);
    }

    proptest! {
        #[test]
        fn the_nearest_is_that_of_the_slow_search(
            places in prop::collection::btree_map(0_u64..500, 0_u32..3, 0..40),
            class in 0_u32..4,
            address in 0_u64..600
        ) {
            let all: Vec<_> = places
                .iter()
                .zip(0..)
                .map(|((place, class), site)| object(*place, 1, (*class, site)))
                .collect();
            let of_class = || all.iter().filter(|it| it.class == class);
            let least = of_class().map(|it| it.address.abs_diff(address)).min();
            let found = LiveObjects::new(all.clone()).nearest(class, address);
            let distance = found.map(|found| match found {
                FoundSite::OfClass(site) => all[site as usize].address.abs_diff(address),
                FoundSite::Sampled(_) => u64::MAX,
            });
            prop_assert_eq!(distance, least);
        }
    }
}
