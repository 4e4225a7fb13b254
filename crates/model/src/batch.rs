//! [`Batch`] is what an observer delivers for one epoch of a run: the accesses and their instructions, the sites, extents and data objects
//! that are new, changed or gone, and the counters and reports of the sources since the run's start. The profile is made of it, and
//! policies that decide within a run use it. The daemon uses its parts too, such as [`Process`], [`ObservedAccess`] and [`SourceReport`].
//!
//! An *epoch* is one sampling and decision interval. In a *batch* accesses are at addresses of processes, not yet attributed to sites.

use crate::code_access::{InstructionId, SampledInstruction};
use crate::count_unit::CountUnit;
use crate::site::{Site, SiteId};
use crate::source_kind::SourceKind;
use crate::spans::AddressRange;
use crate::tier::TierIndex;
use crate::units::{Bytes, Nanos};

/// Number of an epoch, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

/// A process: its pid, and the image it runs (0, then one more for each exec). The image keeps the
/// data of a pid before an exec apart from its data after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Number of the image in that process.
    pub image: u32,
}

/// Accesses that a source observed in a range of a process: the one type that every source delivers, for a recorded
/// run and for the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedAccess {
    /// Process that owns the memory.
    pub process: Process,
    /// First address of the range.
    pub address: u64,
    /// Length of the range, whose parts the source cannot distinguish; 1 for a sample.
    pub bytes: Bytes,
    /// Number of counts in the whole range; from a source that cannot see the caches, only counts that waited beyond them.
    pub count: u64,
    /// Counts that follow a stream, and so wait for the bandwidth of the memory and not for its latency, where the source can tell.
    pub streamed: u64,
    /// Counts beside `count` that the caches served, by an estimate: such memory is no faster in another tier.
    pub served: u64,
    /// The unit of the count.
    pub unit: CountUnit,
    /// The source.
    pub source: SourceKind,
    /// Physical address of the access, where the source reports it.
    pub physical: Option<u64>,
    /// Samples a second of processor time at which it was taken, for a timer whose rate can change; else 0.
    pub sampled_hz: u32,
    /// The thread that made the access, where the source knows it; else 0.
    pub thread: u32,
    /// The instruction that made it, where the source knows it.
    pub instruction: Option<InstructionId>,
}

impl ObservedAccess {
    /// An access to one address.
    #[must_use]
    pub const fn at(
        (process, address): (Process, u64),
        source: SourceKind,
        (count, unit): (u64, CountUnit),
    ) -> Self {
        Self {
            process,
            address,
            bytes: Bytes(1),
            count,
            streamed: 0,
            served: 0,
            unit,
            source,
            physical: None,
            sampled_hz: 0,
            thread: 0,
            instruction: None,
        }
    }

    /// The first address past the range, or the last address of the address space.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.address.saturating_add(self.bytes.0)
    }
}

/// A contiguous range of memory that one site allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Process that owns the address space.
    pub process: Process,
    /// Site that allocated it.
    pub site: SiteId,
    /// First address.
    pub address: u64,
    /// Length.
    pub bytes: Bytes,
    /// Resident bytes of the range.
    pub resident: Bytes,
    /// Target tier, where the runtime places the range.
    pub tier: Option<TierIndex>,
}

/// Smallest allocation that is a data object of its own; smaller ones are placed as a whole.
pub const OBJECT_AT_LEAST: Bytes = Bytes(64 << 10);

/// Name of the counter of data objects that have no place of their own in a profile, because there were too many at a time.
pub const OBJECTS_FOLDED: &str = "data_objects_folded";
/// Name of the counter of data objects that were allocated faster than they could be read; accesses to them have no place either.
pub const OBJECTS_LOST: &str = "data_objects_lost";

/// A data object of a process: one large allocation, mapping or variable of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocatedObject {
    /// Process that owns the address space.
    pub process: Process,
    /// Site that allocated it.
    pub site: SiteId,
    /// Its addresses, at least one.
    pub range: AddressRange,
}

/// Identifies an extent at one time: its process, and its first address.
pub type ExtentKey = (Process, u64);

impl Extent {
    /// The key of the extent.
    #[must_use]
    pub const fn key(&self) -> ExtentKey {
        (self.process, self.address)
    }

    /// Its addresses.
    #[must_use]
    pub const fn range(&self) -> AddressRange {
        AddressRange {
            start: self.address,
            bytes: self.bytes,
        }
    }
}

/// A named counter of the runtime, the kernel or a source, since the start of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// Process that is counted; `None` for the whole run.
    pub process: Option<Process>,
    /// Name: words joined by `_`, unit last: `delay_ns`, `context_misses`.
    pub name: String,
    /// Value so far.
    pub value: u64,
}

impl Count {
    /// A count of the whole run.
    #[must_use]
    pub fn of_run(name: impl Into<String>, value: u64) -> Self {
        Self {
            process: None,
            name: name.into(),
            value,
        }
    }

    /// The sum of the counts of one name.
    #[must_use]
    pub fn total(counts: &[Self], name: &str) -> u64 {
        let named = counts.iter().filter(|count| count.name == name);
        named.fold(0, |sum, count| sum.saturating_add(count.value))
    }
}

/// Activity of one source in the run so far. A source that delivers nothing must be reported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceReport {
    /// Name of a [`SourceKind`], or of a reader of sizes that observes no accesses: `resident-set`.
    pub name: String,
    /// Samples taken.
    pub taken: u64,
    /// Samples that yielded a data address.
    pub usable: u64,
    /// Samples that the kernel or a full buffer dropped.
    pub lost: u64,
    /// Time that the source used: in our processes and, for accessed bits, in the program, which sets them again.
    pub cost: Nanos,
    /// The known cost of the source to the program, in words, with the origin of the number.
    pub cost_note: String,
    /// Why the source is off or weaker than it could be; empty if it works fully.
    pub warning: String,
}

impl SourceReport {
    /// A report without any activity.
    #[must_use]
    pub fn new(name: &str, cost_note: &str) -> Self {
        Self {
            name: name.to_owned(),
            cost_note: cost_note.to_owned(),
            ..Self::default()
        }
    }

    /// The unit of the source's counts in a profile; `None` for a reader of sizes. `filtered` is true where the program's own counts are
    /// cache misses.
    #[must_use]
    pub fn unit(&self, filtered: bool) -> Option<CountUnit> {
        match SourceKind::from_word(&self.name) {
            Some(source) => Some(source.unit(filtered)),
            None if matches!(
                self.name.as_str(),
                "resident-set" | "session-files" | JAVA_HEAP | MEMORY_MAPS
            ) =>
            {
                None
            }
            None => Some(CountUnit::Unknown),
        }
    }

    /// The unit that all sources with usable samples share.
    #[must_use]
    pub fn common_unit(reports: &[Self], filtered: bool) -> CountUnit {
        let usable = reports.iter().filter(|report| report.usable > 0);
        let mut units = usable.filter_map(|report| report.unit(filtered));
        let Some(first) = units.next() else {
            return CountUnit::Unknown;
        };
        match units.all(|unit| unit == first) {
            true => first,
            false => CountUnit::Unknown,
        }
    }
}

/// Name of the report on the objects that agents in Java virtual machines sampled.
pub const JAVA_HEAP: &str = "java-heap";

/// Name of the report on the readings of what a process that ran already has mapped.
pub const MEMORY_MAPS: &str = "memory-maps";

/// All observations of one epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Number of the epoch.
    pub epoch: Epoch,
    /// Length of the epoch.
    pub span: Nanos,
    /// Every known site whose numbers changed, with cumulative numbers. `peak_rss` follows from the
    /// extents; it is zero here unless the program itself measured more.
    pub sites: Vec<Site>,
    /// The extents of live processes that are new or differ from the last batch.
    pub extents: Vec<Extent>,
    /// The extents of earlier batches that are no longer there, by their keys.
    pub freed: Vec<ExtentKey>,
    /// The extents that were freed during the epoch. Their memory, and accesses to it, count in this epoch; another
    /// extent may have their addresses by now.
    pub departed: Vec<Extent>,
    /// The data objects that the runtime published since the last batch, in the order of their allocation. A later one replaces all that it
    /// overlaps.
    pub objects: Vec<AllocatedObject>,
    /// Observed accesses. The accesses of one thread are in the order of time.
    pub accesses: Vec<ObservedAccess>,
    /// The instructions of accesses that are new since the last batch.
    pub instructions: Vec<SampledInstruction>,
    /// Counters, cumulative.
    pub counts: Vec<Count>,
    /// Reports of the sources, cumulative.
    pub sources: Vec<SourceReport>,
}

#[cfg(test)]
mod tests {
    use super::SourceReport;
    use crate::count_unit::CountUnit;

    /// The unit of sources with the given numbers of usable samples.
    fn unit(sources: &[(&str, u64)], filtered: bool) -> CountUnit {
        let report = |&(name, usable): &(&str, u64)| SourceReport {
            name: name.to_owned(),
            taken: usable,
            usable,
            ..SourceReport::default()
        };
        let reports: Vec<_> = sources.iter().map(report).collect();
        SourceReport::common_unit(&reports, filtered)
    }

    #[test]
    fn sources_of_one_kind_share_a_unit_and_silent_ones_have_no_say() {
        let unit = |sources| unit(sources, false);
        assert_eq!(unit(&[("timer", 9)]), CountUnit::Time);
        assert_eq!(
            unit(&[
                ("pebs", 9),
                ("spe", 1),
                ("resident-set", 100),
                ("memory-maps", 9)
            ]),
            CountUnit::Latency
        );
        assert_eq!(unit(&[("memprof", 3), ("timer", 0)]), CountUnit::Accesses);
        assert_eq!(unit(&[("instrumented", 3)]), CountUnit::Accesses);
        assert_eq!(unit(&[("damon", 3)]), CountUnit::Touches);
    }

    #[test]
    fn a_mixture_an_unknown_source_and_no_samples_have_no_unit() {
        let sources: [&[(&str, u64)]; 5] = [
            &[("tea-leaves", 3)],
            &[("timer", 9), ("trapped-pages", 1)],
            &[("timer", 9), ("memprof", 1)],
            &[("timer", 0), ("session-files", 4)],
            &[],
        ];
        for sources in sources {
            assert_eq!(unit(sources, false), CountUnit::Unknown, "{sources:?}");
        }
    }

    #[test]
    fn counts_behind_a_cache_filter_are_misses() {
        assert_eq!(unit(&[("instrumented", 3)], true), CountUnit::Misses);
        assert_eq!(unit(&[("timer", 3)], true), CountUnit::Time);
    }
}
