//! `LiveObjects` keeps the data objects of the observed processes, a limited number, and finds the one that holds an address.
//!
//! ```text
//! published      |---- A ----|   |-- B --|
//! then                 |-- C --|              C takes the place of A, which it overlaps
//! address                 x                   in C, at 3
//! ```
//!
//! The end of an object is not observed: freed addresses are not accessed, and what is allocated there later replaces the object.
//!
//! At most [`OBJECTS_AT_MOST`] are kept. Beyond that the smallest object is *folded* into its site: accesses to it count for the site,
//! without their place. Of equal objects the oldest is folded, as the likeliest to be freed. The largest are kept, as plans divide these.

use std::collections::{BTreeMap, BTreeSet};

use isotherm_model::batch::{AllocatedObject, Process};
use isotherm_model::movement::AddressRange;
use isotherm_model::site::SiteId;
use isotherm_model::units::Bytes;

/// Most objects that are kept apart, of all processes together: a profile of them takes some hundred megabytes of the observer's memory.
const OBJECTS_AT_MOST: usize = 1 << 18;

/// First address of an object in its process.
type Place = (Process, u64);

/// The data objects that no later one has replaced.
#[derive(Clone, Debug)]
pub(crate) struct LiveObjects {
    by_place: BTreeMap<Place, LiveObject>,
    /// The size, number and place of each object: the smallest first, then the oldest.
    by_size: BTreeSet<(Bytes, u64, Place)>,
    /// Number of objects that were added.
    added: u64,
    folded: u64,
    most: usize,
}

#[derive(Clone, Copy, Debug)]
struct LiveObject {
    bytes: Bytes,
    site: SiteId,
    /// Number of objects that were added before it.
    number: u64,
}

impl Default for LiveObjects {
    fn default() -> Self {
        Self::of_at_most(OBJECTS_AT_MOST)
    }
}

impl LiveObjects {
    const fn of_at_most(most: usize) -> Self {
        Self {
            by_place: BTreeMap::new(),
            by_size: BTreeSet::new(),
            added: 0,
            folded: 0,
            most,
        }
    }

    /// Adds an object in place of all that it overlaps.
    pub(crate) fn add(&mut self, object: AllocatedObject) {
        let AddressRange {
            start: address,
            bytes,
        } = object.range;
        let (first, end) = ((object.process, address), address.saturating_add(bytes.0));
        let inside = self.by_place.range(first..(object.process, end));
        let mut replaced: Vec<Place> = inside.map(|(place, _)| *place).collect();
        let below = self.by_place.range(..first).next_back();
        let reaches = |((process, start), live): &(&Place, &LiveObject)| {
            *process == object.process && start.saturating_add(live.bytes.0) > address
        };
        replaced.extend(below.filter(reaches).map(|(place, _)| *place));
        for place in replaced {
            self.remove(place);
        }
        let (site, number) = (object.site, self.added);
        self.added += 1;
        self.by_place.insert(
            first,
            LiveObject {
                bytes,
                site,
                number,
            },
        );
        self.by_size.insert((bytes, number, first));
        if self.by_place.len() > self.most
            && let Some((_, _, smallest)) = self.by_size.first().copied()
        {
            self.remove(smallest);
            self.folded += 1;
        }
    }

    fn remove(&mut self, place: Place) {
        if let Some(live) = self.by_place.remove(&place) {
            self.by_size.remove(&(live.bytes, live.number, place));
        }
    }

    /// How many objects were folded into their sites so far.
    pub(crate) const fn folded(&self) -> u64 {
        self.folded
    }

    /// All kept objects, by process and address.
    pub(crate) fn all(&self) -> impl Iterator<Item = AllocatedObject> + '_ {
        self.by_place
            .iter()
            .map(|((process, address), live)| AllocatedObject {
                process: *process,
                site: live.site,
                range: AddressRange {
                    start: *address,
                    bytes: live.bytes,
                },
            })
    }

    /// The object of this site that holds an address.
    pub(crate) fn holding(
        &self,
        (process, address): (Process, u64),
        site: SiteId,
    ) -> Option<AddressRange> {
        let (place, live) = self.by_place.range(..=(process, address)).next_back()?;
        let range = AddressRange {
            start: place.1,
            bytes: live.bytes,
        };
        let is_inside = place.0 == process && address - place.1 < live.bytes.0;
        (is_inside && live.site == site).then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::LiveObjects;
    use isotherm_model::batch::{AllocatedObject, Process};
    use isotherm_model::movement::AddressRange;
    use isotherm_model::site::SiteId;
    use isotherm_model::units::Bytes;

    #[test]
    fn an_address_belongs_to_the_last_object_that_was_allocated_there() {
        let process = Process { pid: 7, image: 0 };
        let range = |address, bytes| AddressRange {
            start: address,
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

    /// Objects of these bytes, side by side, and how many live and are folded at the end.
    fn side_by_side(most: usize, sizes: impl Iterator<Item = u64>) -> LiveObjects {
        let process = Process { pid: 7, image: 0 };
        let mut objects = LiveObjects::of_at_most(most);
        let mut address = 0;
        for bytes in sizes {
            let bytes = Bytes(bytes);
            objects.add(AllocatedObject {
                process,
                site: SiteId(5),
                range: AddressRange {
                    start: address,
                    bytes,
                },
            });
            address += bytes.0;
        }
        objects
    }

    #[test]
    fn beyond_the_limit_the_smallest_are_folded_and_of_equal_ones_the_oldest() {
        let objects = side_by_side(3, [900, 10, 20, 10, 30].into_iter());
        let lengths: Vec<u64> = objects.all().map(|object| object.range.bytes.0).collect();
        assert_eq!(lengths, [900, 20, 30]);
        assert_eq!(objects.folded(), 2);
        let process = Process { pid: 7, image: 0 };
        assert_eq!(objects.holding((process, 905), SiteId(5)), None, "folded");
        let equal = side_by_side(2, [10; 5].into_iter());
        let starts: Vec<u64> = equal.all().map(|object| object.range.start).collect();
        assert_eq!(starts, [30, 40]);
    }

    #[test]
    fn a_replaced_object_leaves_room_for_another() {
        let mut objects = side_by_side(2, [10; 2].into_iter());
        let process = Process { pid: 7, image: 0 };
        let mut again = |address, bytes| {
            objects.add(AllocatedObject {
                process,
                site: SiteId(5),
                range: AddressRange {
                    start: address,
                    bytes: Bytes(bytes),
                },
            });
            (
                objects.by_place.len(),
                objects.by_size.len(),
                objects.folded(),
            )
        };
        assert_eq!(again(0, 20), (1, 1, 0), "in place of both");
        assert_eq!(again(20, 10), (2, 2, 0));
        assert_eq!(again(30, 10), (2, 2, 1));
    }

    #[test]
    fn a_million_objects_take_the_memory_of_the_limit() {
        let objects = side_by_side(1000, (0..1_000_000).map(|number| 64 + number % 7));
        assert_eq!(
            (objects.by_place.len(), objects.by_size.len()),
            (1000, 1000)
        );
        assert_eq!(objects.folded(), 999_000);
        assert_eq!(super::LiveObjects::default().most, 262_144);
    }
}
