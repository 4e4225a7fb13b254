//! The data objects of the observed processes, by address: which one holds an address?
//!
//! ```text
//! published      |---- A ----|   |-- B --|
//! then                 |-- C --|              C takes the place of A, which it overlaps
//! address                 x                   in C, at 3
//! ```
//!
//! The end of an object is not observed: an address that holds nothing is not accessed, and what is allocated there later takes its place.

use std::collections::BTreeMap;

use isotherm_model::batch::ObjectRange;
use isotherm_model::batch::{AllocatedObject, Process};
use isotherm_model::site::SiteId;
use isotherm_model::units::Bytes;

/// The data objects that no later one has replaced: length and site, by process and first address.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveObjects(BTreeMap<(Process, u64), (Bytes, SiteId)>);

impl LiveObjects {
    /// Adds an object in place of all that it overlaps.
    pub(crate) fn add(&mut self, object: AllocatedObject) {
        let ObjectRange { address, bytes } = object.range;
        let (first, end) = ((object.process, address), address.saturating_add(bytes.0));
        let inside = self.0.range(first..(object.process, end));
        let mut replaced: Vec<_> = inside.map(|(key, _)| *key).collect();
        let below = self.0.range(..first).next_back();
        let reaches = |((process, start), (bytes, _)): &(&(Process, u64), &(Bytes, SiteId))| {
            *process == object.process && start.saturating_add(bytes.0) > address
        };
        replaced.extend(below.filter(reaches).map(|(key, _)| *key));
        for key in replaced {
            self.0.remove(&key);
        }
        self.0.insert(first, (bytes, object.site));
    }

    /// All of them, by process and address.
    pub(crate) fn all(&self) -> impl Iterator<Item = AllocatedObject> + '_ {
        self.0
            .iter()
            .map(|((process, address), (bytes, site))| AllocatedObject {
                process: *process,
                site: *site,
                range: ObjectRange {
                    address: *address,
                    bytes: *bytes,
                },
            })
    }

    /// The object of this site that holds an address.
    pub(crate) fn holding(
        &self,
        (process, address): (Process, u64),
        site: SiteId,
    ) -> Option<ObjectRange> {
        let (key, (bytes, owner)) = self.0.range(..=(process, address)).next_back()?;
        let range = ObjectRange {
            address: key.1,
            bytes: *bytes,
        };
        let is_inside = key.0 == process && address - key.1 < bytes.0;
        (is_inside && *owner == site).then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::LiveObjects;
    use isotherm_model::batch::ObjectRange;
    use isotherm_model::batch::{AllocatedObject, Process};
    use isotherm_model::site::SiteId;
    use isotherm_model::units::Bytes;

    #[test]
    fn an_address_belongs_to_the_last_object_that_was_allocated_there() {
        let process = Process { pid: 7, image: 0 };
        let range = |address, bytes| ObjectRange {
            address,
            bytes: Bytes(bytes),
        };
        let mut objects = LiveObjects::default();
        for (site, range) in [
            (5, range(100, 100)),
            (6, range(300, 50)),
            (5, range(150, 100)),
        ] {
            let site = SiteId(site);
            objects.add(AllocatedObject {
                process,
                site,
                range,
            });
        }
        let at = |address, site| objects.holding((process, address), SiteId(site));
        assert_eq!(at(120, 5), None, "replaced as a whole");
        let last = Some(range(150, 100));
        assert_eq!((at(150, 5), at(249, 5), at(250, 5)), (last, last, None));
        assert_eq!((at(310, 6), at(350, 6)), (Some(range(300, 50)), None));
        assert_eq!(at(310, 5), None, "another site");
        let other = Process { pid: 8, image: 0 };
        assert_eq!(objects.holding((other, 160), SiteId(5)), None);
    }
}
