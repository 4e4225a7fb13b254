//! [`TrackedImage`] follows one process image (a process from one exec to the next) through its session file: its sites, the counters of
//! its runtime, and in each epoch its extents, with their resident bytes, and new data objects.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use isotherm_abi::session::{SessionCounter, SessionState};
use isotherm_model::batch::{
    AllocatedObject, Count, Extent, OBJECT_AT_LEAST, OBJECTS_LOST, Process,
};
use isotherm_model::movement::AddressRange;
use isotherm_model::site::SiteId;
use isotherm_model::spans;
use isotherm_model::tier::TierIndex;
use isotherm_model::units::Bytes;
use isotherm_session::{Module, Owned, Owner, Progress, SessionError, SessionFile, TextArea};
use isotherm_sys::memory::PAGE_BYTES;

use crate::pending_objects::PendingObjects;
use crate::resident::{PageTables, Span};
use crate::sites::SiteLedger;

/// Resident bytes of an extent.
#[derive(Clone, Copy, Debug, Default)]
struct Measured {
    /// The highest measurement in one epoch.
    bytes: u64,
    /// The measurement is from the current epoch; otherwise the next one replaces it.
    fresh: bool,
}

/// The most bytes that a site had resident at one time, from the runtime.
#[derive(Clone, Copy, Debug, Default)]
struct Peak {
    /// The peak that the program measured itself; zero where it did not.
    measured: u64,
    /// Most bytes requested at one time, in whole pages; zero where unknown.
    requested: u64,
}

impl Peak {
    /// The peak resident bytes of `bytes` mapped ones. Where the program measured all its memory at its end, a measured peak of zero is
    /// known, too. Where no peak is known, all bytes count.
    fn of_mapped(self, bytes: u64, has_measured_all: bool) -> u64 {
        if has_measured_all {
            return self.measured.min(bytes);
        }
        let known = [self.measured, self.requested];
        let most = known.into_iter().find(|known| *known > 0);
        most.map_or(bytes, |most| most.min(bytes))
    }
}

/// The extents of an epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpochExtents {
    /// The extents that exist at its end.
    pub live: Vec<Extent>,
    /// The extents that were freed during the epoch.
    pub departed: Vec<Extent>,
}

/// A process image and the data read from its session file so far.
#[derive(Debug, Default)]
pub struct TrackedImage {
    /// The process image.
    pub process: Process,
    /// When it started, `CLOCK_MONOTONIC` in nanoseconds.
    pub start_ns: u64,
    /// None once the file is read to its end: a descriptor for each process that ever ran would be
    /// too many.
    pub(crate) file: Option<SessionFile>,
    modules: Vec<Module>,
    text: TextArea,
    /// The counts and state of the runtime at the last read.
    pub(crate) progress: Progress,
    /// Site of each number in its site table, and the peak resident bytes.
    sites: Vec<(SiteId, Peak)>,
    /// The peak of the memory that the other sites share.
    shared_peak: Peak,
    /// The ranges owned now, by address.
    owned: Vec<Owned>,
    /// Ranges that were owned earlier in this epoch and no longer are: samples may still point
    /// there.
    departed: Vec<Owned>,
    /// Data objects that were read and not yet passed on.
    objects: PendingObjects,
    /// Data objects that were overwritten before they were read.
    objects_lost: u64,
    /// The mappings of now that were taken up as data objects, by address and length.
    mapped: HashSet<(u64, u64)>,
    /// Measurements, by address and length of the extent.
    resident: HashMap<(u64, u64), Measured>,
    /// The image has ended: its process ended or runs another program, or its file cannot be read.
    pub over: bool,
    /// The image has ended, and its extents were passed on for the last time.
    pub told: bool,
}

impl TrackedImage {
    /// Follows the image of an open file.
    #[must_use]
    pub fn new(process: Process, file: SessionFile) -> Self {
        Self {
            process,
            start_ns: file.header().start_ns,
            file: Some(file),
            ..Self::default()
        }
    }

    /// True once the runtime has recorded that the program called exit.
    #[must_use]
    pub const fn exited(&self) -> bool {
        self.progress.state == SessionState::Exited as u32
    }

    /// Reads the owners of memory; ranges that lost their owner are kept for this epoch.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn refresh(&mut self) -> Result<(), SessionError> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        self.progress = file.progress()?;
        let owned = file.read_owned(&self.progress)?;
        self.mapped.retain(|(address, _)| covers(&owned, *address));
        let gone = self
            .owned
            .iter()
            .filter(|old| !covers(&owned, old.address))
            .copied();
        self.departed.extend(gone);
        self.owned = owned;
        Ok(())
    }

    /// Reads the sites and their numbers into the ledger of the run.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn read_sites(&mut self, ledger: &mut SiteLedger) -> Result<(), SessionError> {
        self.read_sites_from(0, ledger)
    }

    /// Reads only the sites that are new since the last call of this or of [`Self::read_sites`]: a large program has ten thousand,
    /// and reading all of them only at its end would take long.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn read_new_sites(&mut self, ledger: &mut SiteLedger) -> Result<(), SessionError> {
        let first = self.sites.len() as u64;
        match first < self.progress.sites {
            true => self.read_sites_from(first, ledger),
            false => Ok(()),
        }
    }

    fn read_sites_from(&mut self, first: u64, ledger: &mut SiteLedger) -> Result<(), SessionError> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        file.read_modules(&self.progress, &mut self.modules)?;
        file.read_text_area(&self.progress, &mut self.text)?;
        let (process, tables) = (self.process, (&*self.modules, &self.text));
        let sites = &mut self.sites;
        file.read_sites(first, &self.progress, |number, row| {
            let number = number as usize;
            if sites.len() <= number {
                sites.resize(number + 1, (SiteId::UNATTRIBUTED, Peak::default()));
            }
            let peak = Peak {
                measured: row.numbers.peak_resident_bytes,
                requested: whole_pages(row.numbers.peak_bytes),
            };
            sites[number] = (row.id, peak);
            ledger.note(process, row, tables);
        })?;
        self.shared_peak.measured = file.shared_peak_resident(&self.progress)?;
        ledger.note_shared_peak(Bytes(self.shared_peak.measured));
        Ok(())
    }

    /// Reads the data objects that are new since the last call. The sites must have been read.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn read_objects(&mut self) -> Result<(), SessionError> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let (process, sites, objects) = (self.process, &self.sites, &mut self.objects);
        let mut add = |address, bytes, site: u32| {
            let site = sites.get(site as usize).map(|(site, _)| *site);
            let Some(site) = site else { return };
            objects.push(AllocatedObject {
                process,
                site,
                range: AddressRange {
                    start: address,
                    bytes: Bytes(bytes),
                },
            });
        };
        let mapped: HashSet<(u64, u64)> = self
            .owned
            .iter()
            .filter(|range| range.is_object)
            .map(|range| (range.address, range.bytes))
            .collect();
        self.mapped.retain(|mapping| mapped.contains(mapping));
        for range in self.owned.iter().filter(|range| range.is_object) {
            let is_new = self.mapped.insert((range.address, range.bytes));
            if let (true, Owner::Site(site)) =
                (is_new && range.bytes >= OBJECT_AT_LEAST.0, range.owner)
            {
                add(range.address, range.bytes, site);
            }
        }
        self.objects_lost += file.read_objects(&self.progress, |one| {
            add(one.address, one.bytes, one.site);
        })?;
        Ok(())
    }

    /// The data objects that were read since the last call.
    pub fn take_objects(&mut self) -> Vec<AllocatedObject> {
        self.objects.take()
    }

    /// The sites that own memory now.
    pub fn owners(&self) -> impl Iterator<Item = SiteId> {
        let numbers = self.owned.iter().filter_map(|range| match range.owner {
            Owner::Site(number) => Some(number as usize),
            Owner::Shared => None,
        });
        numbers.filter_map(|number| self.sites.get(number).map(|(site, _)| *site))
    }

    /// The owned ranges, sorted. The first of two overlapping ranges, an error in the file, is
    /// kept.
    #[must_use]
    pub fn ranges(&self) -> Vec<Span> {
        let ranges = self.owned.iter();
        let ranges = ranges.map(|range| range.address..range.address + range.bytes);
        let mut ranges: Vec<Span> = ranges.collect();
        spans::keep_apart(&mut ranges, |range| range);
        ranges
    }

    /// Measures the resident pages of each extent; the highest value of the epoch is kept.
    ///
    /// # Errors
    /// The process has ended or its page tables may not be read.
    pub fn measure(&mut self, proc_root: &Path) -> std::io::Result<()> {
        let tables = PageTables::open(proc_root, self.process.pid)?;
        let ranges = self.ranges();
        let bytes = tables.resident(&ranges, self.progress.shadow_offset)?;
        for (range, bytes) in ranges.iter().zip(bytes) {
            let length = range.end - range.start;
            let known = self.resident.entry((range.start, length)).or_default();
            let before = if known.fresh { known.bytes } else { 0 };
            *known = Measured {
                bytes: before.max(bytes),
                fresh: true,
            };
        }
        Ok(())
    }

    /// The extents of this epoch, with their resident bytes. Where an extent was not measured, its resident bytes are
    /// its share, by size, of the peak of its site; where no peak is known, all its bytes. After the program's exit
    /// that share counts wherever it exceeds the measurement. An extent that was freed during the epoch and not
    /// measured has none.
    pub fn extents(&mut self) -> EpochExtents {
        let mut departed = std::mem::take(&mut self.departed);
        departed.sort_unstable_by_key(|range| range.address);
        departed.dedup_by_key(|range| range.address);
        let mut mapped = HashMap::<Owner, u64>::new();
        for range in &self.owned {
            let all = mapped.entry(range.owner).or_default();
            *all = all.saturating_add(range.bytes);
        }
        let has_ended = self.over && self.exited();
        let counters = &self.progress.counters;
        let has_measured_all = has_ended && counters[SessionCounter::MeasuredAtEnd as usize] > 0;
        let at_most = |range: &Owned| {
            let all = mapped.get(&range.owner).copied().unwrap_or(range.bytes);
            let peak = self.peak_of(range.owner);
            let peak = u128::from(peak.of_mapped(all, has_measured_all));
            (peak * u128::from(range.bytes) / u128::from(all.max(1))) as u64
        };
        let now = self.owned.iter().map(|range| {
            let extent = self.extent(range, at_most(range));
            match has_ended {
                true => Extent {
                    resident: extent.resident.max(Bytes(at_most(range))),
                    ..extent
                },
                false => extent,
            }
        });
        let before = departed.iter().map(|range| self.extent(range, 0));
        let extents = EpochExtents {
            live: now.collect(),
            departed: before.collect(),
        };
        let owned = &self.owned;
        // The next epoch starts from the current extents; freed ones are dropped.
        self.resident.retain(|(address, bytes), measured| {
            measured.fresh = false;
            let at = owned.binary_search_by_key(address, |range| range.address);
            at.is_ok_and(|at| owned[at].bytes == *bytes)
        });
        extents
    }

    fn peak_of(&self, owner: Owner) -> Peak {
        match owner {
            Owner::Shared => self.shared_peak,
            Owner::Site(number) => self
                .sites
                .get(number as usize)
                .map_or(Peak::default(), |(_, peak)| *peak),
        }
    }

    /// Whether the runtime measured the resident pages.
    #[must_use]
    pub fn measured_itself(&self) -> bool {
        self.shared_peak.measured > 0 || self.sites.iter().any(|(_, peak)| peak.measured > 0)
    }

    fn extent(&self, range: &Owned, unmeasured: u64) -> Extent {
        let known = self.resident.get(&(range.address, range.bytes));
        Extent {
            process: self.process,
            site: match range.owner {
                Owner::Shared => SiteId::SHARED,
                Owner::Site(number) => self
                    .sites
                    .get(number as usize)
                    .map_or(SiteId::UNATTRIBUTED, |(id, _)| *id),
            },
            address: range.address,
            bytes: Bytes(range.bytes),
            resident: Bytes(known.map_or(unmeasured, |measured| measured.bytes)),
            tier: range.tier.map(TierIndex),
        }
    }

    /// The counters of `COUNTER_NAMES`, and the number of data objects that were overwritten or dropped before they were passed on. Counts
    /// of zero are left out.
    #[must_use]
    pub fn counts(&self) -> Vec<Count> {
        let of_runtime = COUNTER_NAMES.iter();
        let of_runtime =
            of_runtime.map(|(counter, name)| (*name, self.progress.counters[*counter as usize]));
        let lost = self.objects_lost.saturating_add(self.objects.dropped());
        of_runtime
            .chain([(OBJECTS_LOST, lost)])
            .filter(|(_, value)| *value != 0)
            .map(|(name, value)| Count {
                process: Some(self.process),
                name: name.to_owned(),
                value,
            })
            .collect()
    }

    /// Releases the data that only a live image needs, its open file first.
    pub fn close(&mut self) {
        self.file = None;
        self.modules = Vec::new();
        self.text = TextArea::default();
    }
}

/// A number of bytes rounded up to pages. A file may hold any number.
fn whole_pages(bytes: u64) -> u64 {
    bytes
        .checked_next_multiple_of(PAGE_BYTES as u64)
        .unwrap_or(u64::MAX)
}

/// True where a range holds this address.
fn covers(owned: &[Owned], address: u64) -> bool {
    let next = owned.partition_point(|range| range.address <= address);
    next.checked_sub(1)
        .is_some_and(|at| address - owned[at].address < owned[at].bytes)
}

/// The counters of the runtime that a profile records, with their names there.
const COUNTER_NAMES: [(SessionCounter, &str); 22] = [
    (SessionCounter::Allocations, "allocations"),
    (SessionCounter::ContextMisses, "context_misses"),
    (SessionCounter::ContextChecks, "context_checks"),
    (SessionCounter::ContextMismatches, "context_mismatches"),
    (SessionCounter::SitesLost, "sites_lost"),
    (SessionCounter::ArenasLost, "arenas_lost"),
    (SessionCounter::SlowAccesses, "slow_accesses"),
    (SessionCounter::HotSlowAccesses, "hot_slow_accesses"),
    (SessionCounter::DelayNanos, "delay_ns"),
    (SessionCounter::PagesPromoted, "promoted_pages"),
    (SessionCounter::PagesDemoted, "demoted_pages"),
    (SessionCounter::FastBytes, "fast_bytes"),
    (SessionCounter::Spilled, "spilled_first_touches"),
    (SessionCounter::TouchesLost, "touches_lost"),
    (SessionCounter::ServiceNanos, "service_ns"),
    (SessionCounter::SlowBytes, "slow_bytes"),
    (SessionCounter::FirstTouches, "first_touches"),
    (SessionCounter::Unslowed, "unslowed_pages"),
    (SessionCounter::MappingsLost, "mappings_lost"),
    (SessionCounter::AccessesLost, "accesses_lost"),
    (SessionCounter::FastTrafficBytes, "bytes_served_fast"),
    (SessionCounter::SlowTrafficBytes, "bytes_served_slow"),
];
