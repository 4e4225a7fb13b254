//! `PendingObjects` queues the data objects of a process for the next batch of a live run; a full queue drops replaced and small ones.
//!
//! They are passed on once an epoch, which may take hours, and a program may allocate hundreds of thousands a second.

use std::collections::HashSet;

use isotherm_model::batch::AllocatedObject;
use isotherm_model::units::Bytes;

/// Most objects of a process that wait: 12 MB.
const PENDING_AT_MOST: usize = 1 << 18;

/// Objects of one process, in the order of their allocation.
#[derive(Debug)]
pub(crate) struct PendingObjects {
    objects: Vec<AllocatedObject>,
    dropped: u64,
    most: usize,
}

impl Default for PendingObjects {
    fn default() -> Self {
        Self::of_at_most(PENDING_AT_MOST)
    }
}

impl PendingObjects {
    const fn of_at_most(most: usize) -> Self {
        Self {
            objects: Vec::new(),
            dropped: 0,
            most,
        }
    }

    /// Adds an object. A full queue first drops the objects whose address was allocated again, and then the smallest ones, until half
    /// of it is free.
    pub(crate) fn push(&mut self, object: AllocatedObject) {
        if self.objects.len() >= self.most {
            self.drop_replaced();
            self.drop_smallest();
        }
        self.objects.push(object);
    }

    fn drop_replaced(&mut self) {
        let mut later = HashSet::new();
        self.objects.reverse();
        self.objects
            .retain(|object| later.insert(object.range.start));
        self.objects.reverse();
    }

    /// Drops the smallest and of equal ones the oldest, so that half of the queue is free.
    fn drop_smallest(&mut self) {
        let mut excess = self.objects.len().saturating_sub(self.most / 2);
        if excess == 0 {
            return;
        }
        let mut sizes: Vec<Bytes> = self
            .objects
            .iter()
            .map(|object| object.range.bytes)
            .collect();
        sizes.sort_unstable();
        let largest_dropped = sizes[excess - 1];
        self.dropped += excess as u64;
        let smaller = sizes.partition_point(|bytes| *bytes < largest_dropped);
        // Of the objects of this size only `excess` are dropped.
        excess -= smaller;
        self.objects
            .retain(|object| match object.range.bytes.cmp(&largest_dropped) {
                std::cmp::Ordering::Less => false,
                std::cmp::Ordering::Greater => true,
                std::cmp::Ordering::Equal => match excess.checked_sub(1) {
                    Some(left) => {
                        excess = left;
                        false
                    }
                    None => true,
                },
            });
    }

    /// Empties the queue, and returns its objects.
    pub(crate) fn take(&mut self) -> Vec<AllocatedObject> {
        std::mem::take(&mut self.objects)
    }

    /// Number of objects dropped so far, without those whose address was allocated again.
    pub(crate) const fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::PendingObjects;
    use isotherm_model::batch::{AllocatedObject, Process};
    use isotherm_model::movement::AddressRange;
    use isotherm_model::site::SiteId;
    use isotherm_model::units::Bytes;

    /// What a queue of four holds and has dropped after these (address, length).
    fn after(objects: &[(u64, u64)]) -> (Vec<(u64, u64)>, u64) {
        let mut pending = PendingObjects::of_at_most(4);
        for (address, bytes) in objects {
            pending.push(AllocatedObject {
                process: Process::default(),
                site: SiteId(5),
                range: AddressRange {
                    start: *address,
                    bytes: Bytes(*bytes),
                },
            });
            assert!(pending.objects.len() <= 4);
        }
        let kept = pending.take().into_iter();
        let kept = kept.map(|object| (object.range.start, object.range.bytes.0));
        (kept.collect(), pending.dropped())
    }

    #[test]
    fn what_was_allocated_again_goes_first() {
        let objects = [(1, 9), (2, 5), (1, 7), (2, 6), (3, 1)];
        assert_eq!(after(&objects), (vec![(1, 7), (2, 6), (3, 1)], 0));
    }

    #[test]
    fn then_the_smallest_and_of_equal_ones_the_oldest() {
        let objects = [(1, 9), (2, 5), (3, 5), (4, 5), (5, 1)];
        assert_eq!(after(&objects), (vec![(1, 9), (4, 5), (5, 1)], 2));
        let few = [(1, 9), (2, 5)];
        assert_eq!(after(&few), (few.to_vec(), 0));
    }

    #[test]
    fn many_objects_leave_the_largest() {
        let objects: Vec<_> = (0..1000).map(|number| (number, number % 100)).collect();
        let (kept, dropped) = after(&objects);
        assert!(kept.contains(&(999, 99)), "{kept:?}");
        assert_eq!(kept.len() as u64 + dropped, 1000);
    }
}
