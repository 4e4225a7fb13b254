//! [`IsolationRuns`] holds the runs that measure the bandwidth of sites (memory bandwidth isolation of MemBrain, section IV-C): alone in
//! the tier whose bytes are counted is one site, the rest of the sites, or nothing, and all other data is in the other tier.

use std::collections::BTreeSet;

use crate::sensitivity_runs::TierPair;
use crate::site::SiteId;
use crate::units::{Bytes, Nanos};

variant_words! {
    /// The counter of the bytes of a tier.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum BandwidthCounter {
        /// The emulated machine's own account: bytes of streams and of accesses at random beyond the caches, by estimate.
        EmulatedAccount = "emulated-account",
        /// The memory controllers of the tier, for all programs of the machine.
        Controllers = "controllers",
    }
}

impl BandwidthCounter {
    /// Whether it counts the accesses of the program and of no other.
    #[must_use]
    pub const fn is_of_program(self) -> bool {
        matches!(self, Self::EmulatedAccount)
    }
}

/// The data that is alone in the tier whose bytes are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IsolatedData {
    /// No site's data: the bytes are of other programs, and of memory that no site made.
    Nothing,
    /// The data of one site.
    Site(SiteId),
    /// The data of all sites without a run of their own.
    Rest,
}

/// One run with its counted bytes and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsolationRun {
    /// The data alone in its tier.
    pub isolated: IsolatedData,
    /// Bytes of that tier, read and written.
    pub bytes: Bytes,
    /// How long the whole program took.
    pub time: Nanos,
}

impl IsolationRun {
    /// Bytes a second of the run.
    #[must_use]
    pub fn bytes_per_second(&self) -> u64 {
        let time = u128::from(self.time.0.max(1));
        let rate = (u128::from(self.bytes.0) * 1_000_000_000 + time / 2) / time;
        u64::try_from(rate).unwrap_or(u64::MAX)
    }
}

/// The runs of a program, on one pair of tiers and by one counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsolationRuns {
    /// The tiers.
    pub tiers: TierPair,
    /// The counter of the bytes.
    pub counter: BandwidthCounter,
    /// The runs, in the order in which they were made. Each data has at most one run, but there may be several with nothing alone, each for
    /// the runs after it.
    pub runs: Vec<IsolationRun>,
}

impl IsolationRuns {
    /// The run with this data alone.
    #[must_use]
    pub fn of(&self, isolated: IsolatedData) -> Option<&IsolationRun> {
        self.runs.iter().find(|run| run.isolated == isolated)
    }

    /// The sites with runs of their own.
    #[must_use]
    pub fn sites(&self) -> BTreeSet<SiteId> {
        let runs = self.runs.iter();
        let site = |run: &IsolationRun| match run.isolated {
            IsolatedData::Site(site) => Some(site),
            IsolatedData::Nothing | IsolatedData::Rest => None,
        };
        runs.filter_map(site).collect()
    }

    /// The run with this data alone, and the last run before it with nothing alone.
    #[must_use]
    pub fn with_background(
        &self,
        isolated: IsolatedData,
    ) -> Option<(&IsolationRun, Option<&IsolationRun>)> {
        let at = self.runs.iter().position(|run| run.isolated == isolated)?;
        let mut before = self.runs[..at].iter().rev();
        let background = before.find(|run| run.isolated == IsolatedData::Nothing);
        Some((&self.runs[at], background))
    }

    /// Adds a run in place of one with the same data. A run with nothing alone replaces only one that no other run follows. A run of a site
    /// drops the run of the rest, whose data is another then.
    pub fn add(&mut self, run: IsolationRun) {
        match run.isolated {
            IsolatedData::Nothing => {}
            IsolatedData::Rest => self.remove(IsolatedData::Rest),
            site @ IsolatedData::Site(_) => {
                self.remove(IsolatedData::Rest);
                self.remove(site);
            }
        }
        self.runs.push(run);
        self.runs.dedup_by(|later, earlier| {
            let are_nothing = [&*later, &*earlier].map(|run| run.isolated == IsolatedData::Nothing);
            let is_unused = are_nothing == [true, true];
            if is_unused {
                *earlier = *later;
            }
            is_unused
        });
    }

    fn remove(&mut self, isolated: IsolatedData) {
        self.runs.retain(|known| known.isolated != isolated);
    }
}

#[cfg(test)]
mod tests {
    use super::{BandwidthCounter, IsolatedData, IsolationRun, IsolationRuns};
    use crate::sensitivity_runs::TierPair;
    use crate::site::SiteId;
    use crate::units::{Bytes, Nanos};

    #[test]
    fn the_load_of_other_programs_is_that_of_the_run_of_nothing_before() {
        let mut runs = IsolationRuns {
            tiers: TierPair::from_text(String::new()),
            counter: BandwidthCounter::Controllers,
            runs: Vec::new(),
        };
        let site = |id| IsolatedData::Site(SiteId(id));
        let (nothing, rest) = (IsolatedData::Nothing, IsolatedData::Rest);
        // The second call was interrupted after the run of nothing.
        let order = [nothing, site(7), rest, nothing, nothing, site(8), rest];
        for (isolated, number) in order.into_iter().zip(0..) {
            runs.add(IsolationRun {
                isolated,
                bytes: Bytes(number),
                time: Nanos(1),
            });
        }
        let numbers: Vec<_> = runs.runs.iter().map(|run| run.bytes.0).collect();
        assert_eq!(numbers, [0, 1, 4, 5, 6]);
        let background = |isolated| {
            let (_, background) = runs.with_background(isolated)?;
            background.map(|run| run.bytes.0)
        };
        assert_eq!(
            [site(7), site(8), rest, site(9)].map(background),
            [Some(0), Some(4), Some(4), None]
        );
    }

    #[test]
    fn a_further_site_takes_its_bytes_out_of_the_rest() {
        let run = |isolated, bytes| IsolationRun {
            isolated,
            bytes: Bytes(bytes),
            time: Nanos(2_000_000_000),
        };
        let site = |id| IsolatedData::Site(SiteId(id));
        let mut runs = IsolationRuns {
            tiers: TierPair::from_text(String::new()),
            counter: BandwidthCounter::EmulatedAccount,
            runs: vec![run(IsolatedData::Nothing, 1)],
        };
        runs.add(run(site(7), 10));
        runs.add(run(IsolatedData::Rest, 20));
        runs.add(run(site(7), 11));
        assert_eq!(runs.of(IsolatedData::Rest), None);
        runs.add(run(IsolatedData::Rest, 21));
        assert_eq!(
            runs.of(IsolatedData::Rest).map(|it| it.bytes),
            Some(Bytes(21))
        );
        runs.add(run(site(8), 5));
        let all: Vec<_> = runs
            .runs
            .iter()
            .map(|it| (it.isolated, it.bytes.0))
            .collect();
        let expected = [(IsolatedData::Nothing, 1), (site(7), 11), (site(8), 5)];
        assert_eq!(all, expected);
        assert_eq!(
            runs.sites().into_iter().collect::<Vec<_>>(),
            [SiteId(7), SiteId(8)]
        );
        assert_eq!(runs.runs[2].bytes_per_second(), 3, "rounded");
        assert_eq!(run(site(1), u64::MAX).bytes_per_second(), u64::MAX / 2 + 1);
    }
}
