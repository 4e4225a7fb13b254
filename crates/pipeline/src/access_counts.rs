//! [`AccessCounts`] adds up the observed accesses beyond the caches by process and page: an optimization within a run chooses by these
//! counts, and [`Settling`](crate::Settling) compares them.

use std::collections::BTreeMap;

use isotherm_model::batch::{ObservedAccess, Process};
use isotherm_model::spans;
use isotherm_model::units::portion;
use isotherm_policy::PAGE;

use crate::division::Division;

/// Most pages over which the count of one range is divided, evenly spread over the range: a source of accessed bits may report a gibibyte.
const PAGES_AT_MOST: u64 = 4096;

/// Counts by process and page. A count is kept for each page that was sampled, so that memory is bounded by the samples.
#[derive(Clone, Debug, Default)]
pub struct AccessCounts {
    pages: BTreeMap<Process, BTreeMap<u64, u64>>,
    /// The sum of the counts of each process: an optimization compares each region of a process with it.
    totals: BTreeMap<Process, u64>,
    samples: BTreeMap<Process, u64>,
}

impl AccessCounts {
    /// Adds accesses that waited for memory. Accesses that the caches served do not count.
    pub fn add(&mut self, accesses: &[ObservedAccess]) {
        for access in accesses.iter().filter(|access| access.count > 0) {
            *self.samples.entry(access.process).or_default() += 1;
            let pages = self.pages.entry(access.process).or_default();
            let total = self.totals.entry(access.process).or_default();
            *total = total.saturating_add(access.count);
            let first = access.address / PAGE * PAGE;
            let count = access.end().saturating_sub(first).div_ceil(PAGE).max(1);
            let parts = count.min(PAGES_AT_MOST);
            let mut division = Division::new(access.count, parts);
            for part in 0..parts {
                // Below `count`, which fits 64 bits.
                let number = u128::from(part) * u128::from(count) / u128::from(parts);
                let page = first.saturating_add(number as u64 * PAGE);
                match division.next(1) {
                    0 => {}
                    share => {
                        let sum = pages.entry(page).or_default();
                        *sum = sum.saturating_add(share);
                    }
                }
            }
        }
    }

    /// Forgets the accesses of a process: another profile of it begins.
    pub fn forget(&mut self, process: Process) {
        self.pages.remove(&process);
        self.totals.remove(&process);
        self.samples.remove(&process);
    }

    /// Drops the counts of these pages of a process; the number of its samples remains.
    pub(crate) fn leave_out(&mut self, process: Process, ranges: &[std::ops::Range<u64>]) {
        if let Some(pages) = self.pages.get_mut(&process) {
            let mut left = 0_u64;
            pages.retain(|page, count| {
                let stays = spans::within(ranges, *page..page + 1).next().is_none();
                left = left.saturating_add(if stays { *count } else { 0 });
                stays
            });
            self.totals.insert(process, left);
        }
    }

    /// Number of samples of a process.
    #[must_use]
    pub fn samples(&self, process: Process) -> u64 {
        self.samples.get(&process).copied().unwrap_or(0)
    }

    /// Number of samples that the counts within a range of a process represent.
    pub(crate) fn samples_within(&self, process: Process, range: std::ops::Range<u64>) -> u64 {
        let counted = self.within(process, range);
        let count = counted.fold(0, |sum: u64, (_, count)| sum.saturating_add(count));
        portion(self.samples(process), count, self.total(process))
    }

    /// Accesses that one sample represents, on average, at least 1.
    #[must_use]
    pub fn period(&self) -> u64 {
        let counts = self.totals.values().copied().fold(0, u64::saturating_add);
        (counts / self.all_samples().max(1)).max(1)
    }

    /// Number of samples of all processes.
    #[must_use]
    pub fn all_samples(&self) -> u64 {
        self.samples.values().sum()
    }

    /// Each page and its count, by address, within a range of a process.
    pub(crate) fn within(
        &self,
        process: Process,
        range: std::ops::Range<u64>,
    ) -> impl Iterator<Item = (u64, u64)> {
        let pages = self.pages.get(&process).into_iter();
        pages
            .flat_map(move |pages| pages.range(range.clone()))
            .map(|(page, count)| (*page, *count))
    }

    /// Every process, page and count.
    pub(crate) fn all(&self) -> impl Iterator<Item = ((Process, u64), u64)> {
        let processes = self.pages.iter();
        processes.flat_map(|(process, pages)| {
            pages
                .iter()
                .map(|(page, count)| ((*process, *page), *count))
        })
    }

    /// The sum of all counts of a process.
    pub(crate) fn total(&self, process: Process) -> u64 {
        self.totals.get(&process).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::{AccessCounts, PAGE};
    use isotherm_model::batch::{ObservedAccess, Process};
    use isotherm_model::source_kind::SourceKind;
    use isotherm_model::units::Bytes;

    const PROCESS: Process = Process { pid: 7, image: 0 };

    fn access(address: u64, bytes: u64, count: u64) -> ObservedAccess {
        let source = SourceKind::Timer;
        ObservedAccess {
            bytes: Bytes(bytes),
            ..ObservedAccess::at((PROCESS, address), source, (count, source.unit(false)))
        }
    }

    #[test]
    fn a_sample_counts_for_its_page_and_a_range_for_all_of_its_pages() {
        let mut counts = AccessCounts::default();
        let served = ObservedAccess {
            served: 3,
            ..access(9 * PAGE, 1, 0)
        };
        counts.add(&[access(PAGE + 5, 1, 2), access(PAGE, 3 * PAGE, 7), served]);
        let found: Vec<_> = counts.within(PROCESS, 0..u64::MAX).collect();
        assert_eq!(found, [(PAGE, 4), (2 * PAGE, 2), (3 * PAGE, 3)]);
        assert_eq!((counts.samples(PROCESS), counts.total(PROCESS)), (2, 9));
        let third = 2 * PAGE..3 * PAGE;
        counts.leave_out(PROCESS, std::slice::from_ref(&third));
        assert_eq!((counts.samples(PROCESS), counts.total(PROCESS)), (2, 7));
        assert_eq!(counts.all().map(|(_, count)| count).sum::<u64>(), 7);
        counts.add(&[access(2 * PAGE, 1, 5)]);
        assert_eq!(counts.total(PROCESS), 12);
        counts.forget(PROCESS);
        assert_eq!((counts.samples(PROCESS), counts.all().count()), (0, 0));
        assert_eq!(counts.total(PROCESS), 0);
    }

    #[test]
    fn no_count_of_a_huge_range_is_lost_and_few_pages_are_kept() {
        let mut counts = AccessCounts::default();
        counts.add(&[access(0, 1 << 40, 100_000)]);
        assert_eq!(counts.total(PROCESS), 100_000);
        assert!(counts.all().count() <= 4096);
    }
}
