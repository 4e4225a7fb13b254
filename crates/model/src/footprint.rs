//! [`Footprint`] is the size of a program or a trace, of which `--fast 25%` is a share: the most bytes of all sites together (without
//! unattributed memory) that were resident in one epoch, which [`ResidentSums`] finds; without residency, all chunks or pages that were
//! accessed. A run without a profile has none, and the share is of the machine's memory, of the program's resident data once an
//! optimization decides, or, in a run that pages out, of the memory that the program has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::batch::Epoch;
use crate::profile::{Profile, Resident};
use crate::site::Site;
use crate::units::Bytes;

/// The most bytes of all placeable sites together that were resident in one epoch.
///
/// It has a type of its own so that the compiler rejects any other sum of bytes in its place. The
/// memory in which a sample fell is less; the sum of the sites' peaks is more where they peak at
/// different times. A profile has one footprint ([`Profile::footprint`]). For a profile or trace
/// without residency it is the bytes of all pages that were accessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Footprint(pub Bytes);

impl fmt::Display for Footprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Sums of resident bytes, one for each epoch.
#[derive(Clone, Debug, Default)]
pub struct ResidentSums(BTreeMap<Epoch, Bytes>);

impl ResidentSums {
    /// Adds rows of any epochs, in any order.
    pub fn add<'a>(&mut self, rows: impl IntoIterator<Item = &'a Resident>) {
        for row in rows.into_iter().filter(|row| row.site.is_placeable()) {
            *self.0.entry(row.epoch).or_default() += row.bytes;
        }
    }

    /// The bytes of one epoch.
    #[must_use]
    pub fn of(&self, epoch: Epoch) -> Bytes {
        self.0.get(&epoch).copied().unwrap_or_default()
    }

    /// The footprint of all added rows, for a program with these sites. A site's peak may fall
    /// within an epoch, where no row holds it.
    #[must_use]
    pub fn footprint(&self, sites: &[Site]) -> Footprint {
        let placeable = sites.iter().filter(|site| site.id.is_placeable());
        let peaks = placeable.map(|site| site.peak_rss);
        let most = self.0.values().copied().chain(peaks).max();
        Footprint(most.unwrap_or_default())
    }
}

impl Profile {
    /// The footprint of the recorded program, of which `--fast 25%` is a share.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        match self.resident_sums().footprint(&self.sites) {
            Footprint(Bytes::ZERO) => self.accessed(),
            footprint => footprint,
        }
    }

    /// The bytes of all accessed chunks that can be placed.
    fn accessed(&self) -> Footprint {
        let placeable = self.heat.iter().filter(|heat| heat.site.is_placeable());
        let chunks: BTreeSet<_> = placeable
            .map(|heat| (heat.process, heat.address, heat.site))
            .collect();
        Footprint(Bytes(self.meta.chunk.0.saturating_mul(chunks.len() as u64)))
    }

    /// The resident bytes of each epoch.
    #[must_use]
    pub fn resident_sums(&self) -> ResidentSums {
        let mut sums = ResidentSums::default();
        sums.add(&self.resident);
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::{Footprint, ResidentSums};
    use crate::batch::{Epoch, Process};
    use crate::profile::{Heat, Meta, Profile, Resident};
    use crate::site::{Site, SiteId, SiteKind};
    use crate::units::{Accesses, Bytes};

    fn resident(epoch: u32, site: u64, bytes: u64) -> Resident {
        Resident {
            epoch: Epoch(epoch),
            site: SiteId(site),
            bytes: Bytes(bytes),
        }
    }

    fn site(id: u64, peak: u64) -> Site {
        Site {
            peak_rss: Bytes(peak),
            ..Site::new(SiteId(id), SiteKind::Heap)
        }
    }

    #[test]
    fn it_is_the_fullest_epoch_of_what_can_be_placed_and_no_less_than_the_biggest_site() {
        let rows = [
            resident(0, 5, 40),
            resident(0, 6, 30),
            resident(1, 5, 60),
            resident(1, 0, 900),
        ];
        let mut sums = ResidentSums::default();
        sums.add(&rows);
        let sites = [site(0, 900), site(5, 60), site(6, 30)];
        assert_eq!(sums.footprint(&sites), Footprint(Bytes(70)));
        assert_eq!(sums.of(Epoch(1)), Bytes(60));
        let brief = [site(7, 80)];
        assert_eq!(sums.footprint(&brief), Footprint(Bytes(80)));
    }

    #[test]
    fn where_no_residency_is_known_it_is_what_was_accessed() {
        let mut profile = Profile::new(Meta {
            chunk: Bytes(4096),
            ..Meta::default()
        });
        assert_eq!(profile.footprint(), Footprint(Bytes(0)));
        for (site, address) in [(5, 0), (5, 4096), (5, 0), (0, 8192)] {
            profile.heat.push(Heat {
                epoch: Epoch(0),
                process: Process::default(),
                site: SiteId(site),
                address,
                object: None,
                accesses: Accesses(1),
                streamed: Accesses::ZERO,
                served: Accesses::ZERO,
            });
        }
        assert_eq!(profile.footprint(), Footprint(Bytes(8192)));
    }
}
