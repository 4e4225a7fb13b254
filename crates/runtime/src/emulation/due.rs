//! [`DueQueue`] holds the accesses that wait for the end of their delay, soonest first. The service thread, which serves the page faults of
//! the emulation, fills and drains it.
//!
//! A bounded binary heap in place: the service thread may not allocate. Delays of different threads overlap, as
//! they do on real memory; an access that finds the queue full continues at once, so the bound costs accuracy
//! and never progress.

/// Most accesses that wait at a time. Each is a page with at least one blocked thread, so 1,024 is
/// more than the processors of most machines can be stuck on.
pub(crate) const MOST_WAITING: usize = 1024;

/// A waiting access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// The time at which it may continue, in nanoseconds of [`crate::clock::now_ns`].
    pub(crate) due_ns: u64,
    /// The time at which the access is assumed to have begun.
    pub(crate) seen_ns: u64,
    /// Number of the accessed page.
    pub(crate) page: u32,
}

/// The queue.
pub(crate) struct DueQueue {
    heap: [Waiting; MOST_WAITING],
    length: usize,
}

impl DueQueue {
    pub(crate) fn new() -> Self {
        Self {
            heap: [Waiting::default(); MOST_WAITING],
            length: 0,
        }
    }

    /// Adds an access; `false` where the queue is full.
    pub(crate) fn push(&mut self, waiting: Waiting) -> bool {
        if self.length == MOST_WAITING {
            return false;
        }
        let mut child = self.length;
        self.heap[child] = waiting;
        self.length += 1;
        while child > 0 {
            let parent = (child - 1) / 2;
            if self.heap[parent].due_ns <= self.heap[child].due_ns {
                break;
            }
            self.heap.swap(parent, child);
            child = parent;
        }
        true
    }

    /// The time at which the first access is due.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        (self.length > 0).then(|| self.heap[0].due_ns)
    }

    /// Takes the first access if it is due by `now_ns`.
    pub(crate) fn pop(&mut self, now_ns: u64) -> Option<Waiting> {
        if self.length == 0 || self.heap[0].due_ns > now_ns {
            return None;
        }
        let first = self.heap[0];
        self.length -= 1;
        self.heap[0] = self.heap[self.length];
        let mut parent = 0;
        loop {
            let left = 2 * parent + 1;
            let right = left + 1;
            let mut least = parent;
            for child in [left, right] {
                if child < self.length && self.heap[child].due_ns < self.heap[least].due_ns {
                    least = child;
                }
            }
            if least == parent {
                return Some(first);
            }
            self.heap.swap(parent, least);
            parent = least;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.length = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{DueQueue, MOST_WAITING, Waiting};

    fn at(due_ns: u64) -> Waiting {
        Waiting {
            due_ns,
            seen_ns: 0,
            page: 0,
        }
    }

    #[test]
    fn accesses_come_out_by_due_time_and_not_before() {
        let mut queue = DueQueue::new();
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..500 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            assert!(queue.push(at(state % 1000 + 1)));
        }
        assert_eq!(queue.pop(0), None);
        let (mut last, mut count) = (0, 0);
        while let Some(next) = queue.pop(u64::MAX) {
            assert!(next.due_ns >= last);
            last = next.due_ns;
            count += 1;
        }
        assert_eq!(count, 500);
        assert_eq!(queue.next_ns(), None);
    }

    #[test]
    fn a_full_queue_refuses_and_keeps_what_it_has() {
        let mut queue = DueQueue::new();
        for due in 0..MOST_WAITING as u64 {
            assert!(queue.push(at(due)));
        }
        assert!(!queue.push(at(0)));
        assert_eq!(queue.next_ns(), Some(0));
        queue.clear();
        assert!(queue.push(at(7)));
        assert_eq!(queue.pop(7), Some(at(7)));
    }
}
