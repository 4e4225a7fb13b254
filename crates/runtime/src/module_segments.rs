//! [`Segments`] holds the ranges of the segments of a loaded module, by which [`crate::module`] finds the module of an address: addresses
//! between two segments may belong to another module.

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Most segments that are known one by one; linkers make four or five. The last one extends over all further ones.
const SEGMENTS_MAX: usize = 8;

/// Where a module is mapped. Written under the lock of [`crate::module`] before the module is published, and
/// cleared where the module is unloaded.
pub(crate) struct Segments([Segment; SEGMENTS_MAX]);

struct Segment {
    /// 0 for none.
    start: AtomicUsize,
    end: AtomicUsize,
}

impl Segments {
    /// No segments: the module holds no address.
    pub(crate) const fn none() -> Self {
        Self(
            [const {
                Segment {
                    start: AtomicUsize::new(0),
                    end: AtomicUsize::new(0),
                }
            }; SEGMENTS_MAX],
        )
    }

    /// Stores the segments, in the order of their addresses as in a program header.
    pub(crate) fn set(&self, segments: impl Iterator<Item = Range<usize>>) {
        for (index, segment) in segments.enumerate() {
            let slot = &self.0[index.min(SEGMENTS_MAX - 1)];
            if index < SEGMENTS_MAX {
                slot.start.store(segment.start, Ordering::Relaxed);
            }
            slot.end.store(segment.end, Ordering::Relaxed);
        }
    }

    /// First address; 0 without segments.
    pub(crate) fn start(&self) -> usize {
        self.0[0].start.load(Ordering::Relaxed)
    }

    /// Forgets the segments of a module that was unloaded.
    pub(crate) fn clear(&self) {
        for segment in &self.0 {
            segment.start.store(0, Ordering::Relaxed);
        }
    }

    /// Whether a segment holds the address.
    pub(crate) fn hold(&self, address: usize) -> bool {
        self.0
            .iter()
            .map(|segment| (segment, segment.start.load(Ordering::Relaxed)))
            .take_while(|&(_, start)| start != 0 && start <= address)
            .any(|(segment, _)| address < segment.end.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::{SEGMENTS_MAX, Segments};

    #[test]
    fn the_last_known_segment_extends_over_all_further_ones() {
        let segments = Segments::none();
        let count = SEGMENTS_MAX + 2;
        segments.set((1..=count).map(|number| 100 * number..100 * number + 10));
        assert_eq!(segments.start(), 100);
        let held = [100, 109, 110, 800, 850, 1009, 1010].map(|address| segments.hold(address));
        assert_eq!(held, [true, true, false, true, true, true, false]);
        segments.clear();
        assert_eq!((segments.hold(100), segments.start()), (false, 0));
    }
}
