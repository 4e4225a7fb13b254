//! [`Profile`] holds the recording of a run: program and settings, sites and extents, by epoch the accesses to chunks (here aligned pieces
//! of the address space, of one size) and bins, and the resident bytes of sites; the accessing code, counters, reports of the sources, and
//! the runs that later commands added. It sums accesses and time waiting for memory by site. A run is recorded as [`Segment`]s, one for
//! each epoch.

use crate::batch::{Count, Epoch, Extent, Process, SourceReport};
use crate::code_access::CodeAccess;
use crate::count_unit::CountUnit;
use crate::isolation_runs::IsolationRuns;
use crate::sensitivity_runs::SensitivityRuns;
use crate::site::{Site, SiteId};
use crate::spans::AddressRange;
use crate::sums::sums;
use crate::units::{Accesses, Bytes, Nanos};

/// Program, machine and settings of a recorded run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// Version of Isotherm that recorded it.
    pub isotherm: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Start of the run, RFC 3339 in UTC.
    pub started: String,
    /// Kernel release, processor, logical processors, bytes of memory: (name, value) pairs.
    pub machine: Vec<(String, String)>,
    /// Callers in a calling context.
    pub depth: u32,
    /// Length of an epoch as requested.
    pub epoch_length: Nanos,
    /// Size of a chunk of [`Heat`].
    pub chunk: Bytes,
    /// Processor time from one sample to the next of a source that samples by time.
    pub sample_interval: Option<Nanos>,
    /// Size of the cache whose misses were counted by a program that counts its own accesses;
    /// `None` where it counted each access.
    pub cache_filter: Option<Bytes>,
    /// Bytes of cache that the estimate of served accesses assumed; `None` where no source needed one.
    pub cache: Option<Bytes>,
    /// True where the run's tiers were emulated.
    pub emulated: bool,
}

/// How a recorded run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// The program exited with this status.
    Exited(i32),
    /// The program died of this signal.
    Signalled(i32),
    /// The recording of a process that ran already ended as intended: by its time, by a signal, or with the process, whose exit status is
    /// not known.
    Detached,
    /// The recording was cut short; its data is valid.
    #[default]
    Unknown,
}

/// Accesses to one chunk in one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heat {
    /// Epoch of the accesses.
    pub epoch: Epoch,
    /// Process that owns the address space.
    pub process: Process,
    /// Site that allocated the data.
    pub site: SiteId,
    /// First address of the chunk, a multiple of [`Meta::chunk`].
    pub address: u64,
    /// The data object that was accessed, where one is known. It may begin inside the chunk.
    pub object: Option<HeatObject>,
    /// Number of accesses, weighted by the source; from a source that cannot see the caches, only accesses that waited beyond them.
    pub accesses: Accesses,
    /// Accesses that follow a stream, and so wait for the bandwidth of the memory, where the source can tell.
    pub streamed: Accesses,
    /// Accesses beside `accesses` that the caches served, by an estimate.
    pub served: Accesses,
}

/// A data object that was accessed, and the accessed place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeatObject {
    /// Its addresses.
    pub range: AddressRange,
    /// The bin that was accessed; `None` where only the chunk is known.
    pub bin: Option<HeatBin>,
}

/// A bin of a data object: a range that is finer than the chunk and begins at a multiple of its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeatBin {
    /// First byte from the object's start.
    pub start: Bytes,
    /// Length; the last bin may reach beyond the object's end.
    pub bytes: Bytes,
}

impl HeatBin {
    /// Smallest bin: a page.
    pub const LEAST: Bytes = Bytes(4096);

    /// The bin that begins at this byte of an object. `None` for numbers that are no bin: a length that is no power of two or less than a
    /// page, a start that is no multiple of it or is behind the object's end.
    #[must_use]
    pub const fn new(start: Bytes, bytes: Bytes, object: &AddressRange) -> Option<Self> {
        let is_bin = bytes.0.is_power_of_two()
            && bytes.0 >= Self::LEAST.0
            && start.0.is_multiple_of(bytes.0)
            && start.0 < object.bytes.0;
        if is_bin {
            Some(Self { start, bytes })
        } else {
            None
        }
    }
}

impl From<AddressRange> for HeatObject {
    fn from(range: AddressRange) -> Self {
        Self { range, bin: None }
    }
}

/// Shares of a program's processor time in which it waited for the data of a site, 0 to 1. A run whose memory is slower by
/// a factor takes longer by the share times (factor - 1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WaitingShare {
    /// Share of time waiting for the latency of the memory.
    pub latency: f64,
    /// Share of time waiting for its bandwidth, in streams.
    pub bandwidth: f64,
}

/// Resident bytes of a site in one epoch, all processes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    /// Epoch of the measurement.
    pub epoch: Epoch,
    /// Site that allocated the data.
    pub site: SiteId,
    /// Resident bytes.
    pub bytes: Bytes,
}

impl Resident {
    /// One row for each epoch and site of these rows, in order.
    #[must_use]
    pub fn summed(rows: impl Iterator<Item = Self>) -> Vec<Self> {
        let sums = sums(rows.map(|row| ((row.epoch, row.site), row.bytes)));
        let row = |((epoch, site), bytes)| Self { epoch, site, bytes };
        sums.into_iter().map(row).collect()
    }
}

/// One epoch of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EpochSpan {
    /// Number of the epoch.
    pub epoch: Epoch,
    /// Length of the epoch.
    pub span: Nanos,
}

/// The addition of one epoch to a profile. Profiles are written in segments, so that a kill loses
/// at most the current epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Segment {
    /// The epoch and its length.
    pub epoch: EpochSpan,
    /// Sites that are new or whose numbers changed, with cumulative numbers.
    pub sites: Vec<Site>,
    /// Extents that are new or changed.
    pub extents: Vec<Extent>,
    /// Heat of this epoch, ordered by process and address.
    pub heat: Vec<Heat>,
    /// RSS in this epoch.
    pub resident: Vec<Resident>,
    /// The code that accessed data, rows that are new or changed, with cumulative numbers.
    pub code: Vec<CodeAccess>,
    /// Counters, cumulative.
    pub counts: Vec<Count>,
    /// Reports of the sources, cumulative.
    pub sources: Vec<SourceReport>,
}

/// A whole profile in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// Program, machine and settings.
    pub meta: Meta,
    /// How the run ended.
    pub ending: Ending,
    /// Epochs in order.
    pub epochs: Vec<EpochSpan>,
    /// Sites by id, with totals of the run and their peak RSS.
    pub sites: Vec<Site>,
    /// Extents in their last observed state, including those that were freed.
    pub extents: Vec<Extent>,
    /// Heat, ordered by epoch, process, address.
    pub heat: Vec<Heat>,
    /// RSS by epoch and site.
    pub resident: Vec<Resident>,
    /// The code that accessed data, by [`CodeAccess::key`].
    pub code: Vec<CodeAccess>,
    /// Counters at the end.
    pub counts: Vec<Count>,
    /// Report of each source.
    pub sources: Vec<SourceReport>,
    /// The timed runs of the program, where they were added to the profile.
    pub sensitivity: Option<SensitivityRuns>,
    /// The runs in which sites were alone in a tier, where they were added to the profile.
    pub isolation: Option<IsolationRuns>,
}

impl Profile {
    /// A profile that holds only the meta data.
    #[must_use]
    pub fn new(meta: Meta) -> Self {
        Self {
            meta,
            ..Self::default()
        }
    }

    /// Gives all data and code of each site to another one, and adds up the RSS of those that become one. The list of sites stays.
    pub fn reassign_sites(&mut self, owner: impl Fn(SiteId) -> SiteId) {
        let heat = self.heat.iter_mut().map(|row| &mut row.site);
        let extents = self.extents.iter_mut().map(|row| &mut row.site);
        let code = self.code.iter_mut().map(|row| &mut row.site);
        let resident = self.resident.iter_mut().map(|row| &mut row.site);
        for site in heat.chain(extents).chain(code).chain(resident) {
            *site = owner(*site);
        }
        self.resident = Resident::summed(std::mem::take(&mut self.resident).into_iter());
    }

    /// Accesses of each site over the whole run, ordered by site.
    #[must_use]
    pub fn accesses_by_site(&self) -> std::collections::BTreeMap<SiteId, Accesses> {
        self.sum_by_site(|heat| heat.accesses)
    }

    /// Accesses of each site that the caches served, beside [`Self::accesses_by_site`].
    #[must_use]
    pub fn served_by_site(&self) -> std::collections::BTreeMap<SiteId, Accesses> {
        self.sum_by_site(|heat| heat.served)
    }

    fn sum_by_site(
        &self,
        of: impl Fn(&Heat) -> Accesses,
    ) -> std::collections::BTreeMap<SiteId, Accesses> {
        sums(self.heat.iter().map(|heat| (heat.site, of(heat))))
    }

    /// The share of the program's processor time in which it waited beyond the caches for data of each site: the timer's samples that
    /// waited, over all that it took, also those without a data address. `None` if another source than the timer sampled.
    #[must_use]
    pub fn waiting_by_site(&self) -> Option<std::collections::BTreeMap<SiteId, WaitingShare>> {
        if self.counted() != CountUnit::Time {
            return None;
        }
        let sources = self.sources.iter().filter(|source| source.usable > 0);
        let timers = sources.filter(|source| source.unit(false) == Some(CountUnit::Time));
        let taken = timers.fold(0, |sum: u64, timer| sum.saturating_add(timer.taken));
        let streamed = self.sum_by_site(|heat| heat.streamed);
        let share = |accesses: u64| accesses as f64 / taken.max(1) as f64;
        let waiting = |(site, accesses): (SiteId, Accesses)| {
            let streamed = streamed.get(&site).map_or(0, |streamed| streamed.0);
            let latency = share(accesses.0.saturating_sub(streamed));
            let bandwidth = share(streamed);
            (site, WaitingShare { latency, bandwidth })
        };
        Some(self.accesses_by_site().into_iter().map(waiting).collect())
    }

    /// The sites that can be placed, by id: the sites that every output counts.
    pub fn placeable_sites(&self) -> impl Iterator<Item = &Site> {
        self.sites.iter().filter(|site| site.id.is_placeable())
    }

    /// The unit of the counts.
    #[must_use]
    pub fn counted(&self) -> CountUnit {
        SourceReport::common_unit(&self.sources, self.meta.cache_filter.is_some())
    }

    /// Length of the run.
    #[must_use]
    pub fn span(&self) -> Nanos {
        self.epochs.iter().map(|epoch| epoch.span).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{Heat, HeatBin, Meta, Profile};
    use crate::batch::{Epoch, Process, SourceReport};
    use crate::site::SiteId;
    use crate::spans::AddressRange;
    use crate::units::{Accesses, Bytes};

    #[test]
    fn numbers_that_are_no_bin_of_an_object_make_none() {
        let object = AddressRange {
            start: 100,
            bytes: Bytes(20_000),
        };
        let bin = |start, bytes| HeatBin::new(Bytes(start), Bytes(bytes), &object);
        assert!(bin(0, 4096).is_some() && bin(16_384, 16_384).is_some());
        for (start, bytes) in [
            (0, 0),
            (0, 2048),
            (0, 12_288),
            (4096, 8192),
            (20_480, 4096),
            (1 << 63, 1 << 63),
        ] {
            assert_eq!(bin(start, bytes), None, "{start} {bytes}");
        }
    }

    #[test]
    fn what_waits_for_a_site_is_a_share_of_all_samples_and_only_beyond_the_caches() {
        let mut profile = Profile::new(Meta::default());
        let heat = |epoch, site, accesses, served| Heat {
            epoch: Epoch(epoch),
            process: Process::default(),
            site: SiteId(site),
            address: 0,
            object: None,
            accesses: Accesses(accesses),
            streamed: Accesses(accesses / 2),
            served: Accesses(served),
        };
        profile.heat = vec![heat(0, 5, 100, 200), heat(1, 5, 20, 0), heat(1, 6, 0, 80)];
        let report = |name: &str, taken, usable| SourceReport {
            taken,
            usable,
            ..SourceReport::new(name, "")
        };
        profile.sources = vec![report("timer", 600, 400), report("resident-set", 9, 9)];
        let shares = profile.waiting_by_site().expect("a timer alone");
        let served = profile.served_by_site();
        let share = |id: u64| (shares[&SiteId(id)].latency, shares[&SiteId(id)].bandwidth);
        assert_eq!((share(5), share(6)), ((0.1, 0.1), (0.0, 0.0)));
        assert_eq!((served[&SiteId(5)].0, served[&SiteId(6)].0), (200, 80));
        profile.sources.push(report("pebs", 1, 1));
        assert_eq!(profile.waiting_by_site(), None, "a mixture has no unit");
    }
}
