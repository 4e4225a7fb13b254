//! [`RecordedFuture`] predicts the accesses of a running program for the oracle policy, from a recorded run of the same program: it finds
//! the time in the run by processor time, and the data by its site.
//!
//! ```text
//! recorded   |--- epoch 0 ---|--- epoch 1 ---|--- epoch 2 ---|      by processor time
//! this run            worked so far ^---- next epoch ---^           1/2 of epoch 1, 3/4 of epoch 2
//! ```
//!
//! Two runs of a program differ in their addresses and in their speed. Data is found by its site and its distance from the site's first
//! address, where addresses that were not the site's do not count. Time is measured by work: processor time without the delays of slow
//! memory. So the prediction holds as far as the program does the same again.

use std::collections::BTreeMap;
use std::ops::Range;

use isotherm_model::batch::{Extent, ObservedAccess, Process};
use isotherm_model::count_unit::CountUnit;
use isotherm_model::profile::{Heat, Profile};
use isotherm_model::site::SiteId;
use isotherm_model::source_kind::SourceKind;
use isotherm_model::spans;
use isotherm_model::sums::sums;
use isotherm_model::units::{Bytes, Nanos, portion};

/// An access is counted as this number of parts, because an epoch of a run may have a part of a recorded one.
const PARTS: u64 = 1024;

/// Why a profile tells no future.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoFuture {
    /// The recorded run was on an emulated machine, whose delays are a part of its time.
    #[error(
        "was recorded on an emulated machine, whose delays are a part of its time; record the program with `isotherm record`"
    )]
    Emulated,
    /// Several processes made accesses (their number), none more than half of them, and which process is which in another run is not known.
    #[error(
        "has accesses of {0} processes, none of which made more than half of them, and which is which in another run is not known; record \
         a program that works in one process"
    )]
    Processes(usize),
    /// The profile has no accesses, or no processor time.
    #[error(
        "has no accesses or no processor time; record for longer, or with more samples (--frequency)"
    )]
    Empty,
}

/// The memory of each site in one process: every address that was the site's in the run so far.
#[derive(Clone, Debug, Default)]
struct SiteSpans(BTreeMap<SiteId, Vec<Range<u64>>>);

impl SiteSpans {
    fn add<'a>(&mut self, extents: impl Iterator<Item = &'a Extent>) {
        for extent in extents {
            let span = extent.range().span();
            let spans = self.0.entry(extent.site).or_default();
            let is_known = spans::within(spans, span.clone()).any(|known| known == span);
            if !is_known {
                spans.push(span);
                *spans = spans::joined(std::mem::take(spans));
            }
        }
    }

    /// The distance of an address from the site's first one.
    fn place(&self, site: SiteId, address: u64) -> Option<u64> {
        let mut before = 0;
        for span in self.0.get(&site)? {
            if span.contains(&address) {
                return Some(before + (address - span.start));
            }
            before += span.end - span.start;
        }
        None
    }

    /// The address at this distance from the site's first one.
    fn address(&self, site: SiteId, place: u64) -> Option<u64> {
        let mut left = place;
        for span in self.0.get(&site)? {
            let bytes = span.end - span.start;
            if left < bytes {
                return Some(span.start + left);
            }
            left -= bytes;
        }
        None
    }
}

/// Accesses to a part of a site's memory.
#[derive(Clone, Copy, Debug)]
struct RecordedAccess {
    site: SiteId,
    place: u64,
    bytes: Bytes,
    count: u64,
}

/// An epoch of the recorded run.
#[derive(Clone, Debug)]
struct RecordedEpoch {
    /// Processor time of the program at its begin and at its end, in nanoseconds.
    work: Range<u64>,
    accesses: Vec<RecordedAccess>,
    /// Accesses of other processes, and accesses to memory that was no site's any more.
    elsewhere: u64,
}

/// The accesses of an epoch that begins.
#[derive(Clone, Debug, Default)]
pub struct NextAccesses {
    /// The accesses whose data was found, in 1,024ths of a recorded access.
    pub accesses: Vec<ObservedAccess>,
    /// The sum of the accesses that were found.
    pub found: u64,
    /// The sum of all recorded accesses.
    pub recorded: u64,
}

/// The accesses of a recorded run, by processor time and by place.
#[derive(Clone, Debug)]
pub struct RecordedFuture {
    epochs: Vec<RecordedEpoch>,
    /// Processor time in a nanosecond of the recorded run, on average.
    rate: f64,
    processes: BTreeMap<Process, SiteSpans>,
}

impl RecordedFuture {
    /// Reads the epochs of a profile.
    ///
    /// # Errors
    /// The profile tells no future: see [`NoFuture`].
    pub fn new(profile: &Profile) -> Result<Self, NoFuture> {
        if profile.meta.emulated {
            return Err(NoFuture::Emulated);
        }
        let process = main_process(&profile.heat)?;
        let worked = profile.counts.iter().find(|count| count.name == "cpu_ns");
        let took: u64 = profile.epochs.iter().map(|epoch| epoch.span.0).sum();
        let worked = worked.map_or(0, |count| count.value);
        if worked == 0 || took == 0 {
            return Err(NoFuture::Empty);
        }
        let rate = worked as f64 / took as f64;
        let mut spans = SiteSpans::default();
        let own = profile.extents.iter();
        spans.add(own.filter(|extent| extent.process == process));
        Ok(Self {
            epochs: epochs(profile, (process, &spans), rate),
            rate,
            processes: BTreeMap::new(),
        })
    }

    /// Follows the memory of a run's processes: their extents at the end of an epoch.
    pub fn follow(&mut self, extents: &[Extent]) {
        for own in extents.chunk_by(|a, b| a.process == b.process) {
            if let Some(first) = own.first() {
                let spans = self.processes.entry(first.process).or_default();
                spans.add(own.iter());
            }
        }
    }

    /// The accesses of the next epoch, which has this length, of a program that has used this much processor time. The program is assumed
    /// to work as fast as the recorded run did.
    #[must_use]
    pub fn next(&self, worked: Nanos, epoch: Nanos) -> NextAccesses {
        let next = (epoch.0 as f64 * self.rate) as u64;
        let work = worked.0..worked.0.saturating_add(next.max(1));
        let mut found = NextAccesses::default();
        for recorded in &self.epochs {
            let parts = overlap(&recorded.work, &work);
            found.recorded = found
                .recorded
                .saturating_add(recorded.elsewhere.saturating_mul(parts));
            for access in recorded.accesses.iter().filter(|_| parts > 0) {
                self.add(access, access.count.saturating_mul(parts), &mut found);
            }
        }
        found
    }

    /// Adds `count` accesses to a part of a site's memory, for each process that has it.
    fn add(&self, access: &RecordedAccess, count: u64, next: &mut NextAccesses) {
        let places = self.processes.iter().filter_map(|(process, spans)| {
            let address = spans.address(access.site, access.place)?;
            Some((*process, address))
        });
        let unit = (count, CountUnit::Time);
        let before = next.accesses.len();
        next.accesses.extend(places.map(|place| ObservedAccess {
            bytes: access.bytes,
            ..ObservedAccess::at(place, SourceKind::Timer, unit)
        }));
        next.recorded = next.recorded.saturating_add(count);
        if next.accesses.len() > before {
            next.found = next.found.saturating_add(count);
        }
    }
}

/// The process that made most accesses; the accesses of its helper processes are not found.
fn main_process(heat: &[Heat]) -> Result<Process, NoFuture> {
    let sums = sums(heat.iter().map(|heat| (heat.process, heat.accesses)));
    let all: u128 = sums.values().map(|sum| u128::from(sum.0)).sum();
    let most = sums.iter().max_by_key(|(_, sum)| **sum);
    match most.filter(|_| all > 0) {
        None => Err(NoFuture::Empty),
        Some((process, sum)) if u128::from(sum.0) * 2 > all => Ok(*process),
        Some(_) => Err(NoFuture::Processes(sums.len())),
    }
}

/// The epochs of a process, by the processor time of a program that works at this rate all the time.
fn epochs(
    profile: &Profile,
    (process, spans): (Process, &SiteSpans),
    rate: f64,
) -> Vec<RecordedEpoch> {
    let mut heat = profile.heat.iter().peekable();
    let mut end = 0.0;
    let epoch = |span: &isotherm_model::profile::EpochSpan| {
        let begin = end;
        end += span.span.0 as f64 * rate;
        let (mut accesses, mut elsewhere) = (Vec::new(), 0_u64);
        while let Some(heat) = heat.next_if(|heat| heat.epoch <= span.epoch) {
            let is_own = heat.process == process;
            let access = is_own.then(|| recorded_access(heat, profile.meta.chunk, spans));
            match access.flatten() {
                Some(access) => accesses.push(access),
                None => elsewhere = elsewhere.saturating_add(heat.accesses.0),
            }
        }
        RecordedEpoch {
            work: begin as u64..end as u64,
            accesses,
            elsewhere,
        }
    };
    profile.epochs.iter().map(epoch).collect()
}

/// The accesses of one row of heat: of a bin of a data object, or of a chunk.
fn recorded_access(heat: &Heat, chunk: Bytes, spans: &SiteSpans) -> Option<RecordedAccess> {
    let bin = heat.object.and_then(|object| {
        let bin = object.bin?;
        let address = object.range.start.checked_add(bin.start.0)?;
        Some((address, bin.bytes))
    });
    let (address, bytes) = bin.unwrap_or((heat.address, chunk));
    // A chunk may begin before the memory of its site.
    let inside = (address..address.saturating_add(bytes.0)).step_by(4096);
    let (address, place) = inside
        .filter_map(|address| Some((address, spans.place(heat.site, address)?)))
        .next()?;
    let skipped = Bytes(address - bin.unwrap_or((heat.address, chunk)).0);
    Some(RecordedAccess {
        site: heat.site,
        place,
        bytes: Bytes(bytes.0 - skipped.0),
        count: heat.accesses.0,
    })
}

/// The part of the first range, in [`PARTS`], that lies within the second.
fn overlap(of: &Range<u64>, within: &Range<u64>) -> u64 {
    let (start, end) = (of.start.max(within.start), of.end.min(within.end));
    portion(end.saturating_sub(start), PARTS, of.end - of.start)
}

#[cfg(test)]
mod tests {
    use isotherm_model::batch::{Count, Epoch, Extent, Process};
    use isotherm_model::profile::{EpochSpan, Heat, Meta, Profile};
    use isotherm_model::site::SiteId;
    use isotherm_model::units::{Accesses, Bytes, Nanos};

    use super::{NoFuture, PARTS, RecordedFuture};

    const CHUNK: u64 = 64 << 10;
    const SECOND: u64 = 1_000_000_000;

    fn process(pid: u32) -> Process {
        Process { pid, image: 0 }
    }

    fn extent(pid: u32, site: u64, chunk: u64, chunks: u64) -> Extent {
        Extent {
            process: process(pid),
            site: SiteId(site),
            address: chunk * CHUNK,
            bytes: Bytes(chunks * CHUNK),
            resident: Bytes(chunks * CHUNK),
            tier: None,
        }
    }

    fn heat(epoch: u32, site: u64, chunk: u64, accesses: u64) -> Heat {
        Heat {
            epoch: Epoch(epoch),
            process: process(1),
            site: SiteId(site),
            address: chunk * CHUNK,
            object: None,
            accesses: Accesses(accesses),
            streamed: Accesses::ZERO,
            served: Accesses::ZERO,
        }
    }

    /// Two epochs of a second each, in which the program worked for half of the time. A site has the chunks 10 to 13 and 20 to 23, with
    /// those of another between them.
    fn profile() -> Profile {
        let mut profile = Profile::new(Meta {
            chunk: Bytes(CHUNK),
            ..Meta::default()
        });
        profile.epochs = [0, 1]
            .map(|epoch| EpochSpan {
                epoch: Epoch(epoch),
                span: Nanos(SECOND),
            })
            .to_vec();
        profile.extents = vec![
            extent(1, 7, 10, 4),
            extent(1, 8, 14, 6),
            extent(1, 7, 20, 4),
        ];
        profile.heat = vec![heat(0, 7, 11, 30), heat(1, 7, 21, 90), heat(1, 8, 15, 10)];
        profile.counts = vec![Count::of_run("cpu_ns", SECOND)];
        profile
    }

    /// Accesses by chunk, in whole recorded ones, and the sums.
    fn next(future: &RecordedFuture, worked: u64, epoch: u64) -> (Vec<(u64, u64)>, u64, u64) {
        let next = future.next(Nanos(worked), Nanos(epoch));
        let of = |access: &isotherm_model::batch::ObservedAccess| {
            (access.address / CHUNK, access.count / PARTS)
        };
        let accesses = next.accesses.iter().map(of).collect();
        (accesses, next.found / PARTS, next.recorded / PARTS)
    }

    #[test]
    fn data_is_found_by_its_place_in_its_site_and_time_by_the_work_done() {
        let mut future = RecordedFuture::new(&profile()).expect("a future");
        // This run has the site in one piece, and none of the other.
        future.follow(&[extent(5, 7, 100, 8)]);
        let half = SECOND / 2;
        assert_eq!(next(&future, 0, SECOND), (vec![(101, 30)], 30, 30));
        assert_eq!(next(&future, half, SECOND), (vec![(105, 90)], 90, 100));
        // Half of each recorded epoch.
        let both = vec![(101, 15), (105, 45)];
        assert_eq!(next(&future, half / 2, SECOND), (both, 60, 65));
        assert_eq!(next(&future, 2 * half, SECOND), (vec![], 0, 0));
    }

    #[test]
    fn memory_that_was_a_sites_keeps_its_place_after_it_was_freed() {
        let mut future = RecordedFuture::new(&profile()).expect("a future");
        future.follow(&[extent(5, 7, 100, 4), extent(5, 7, 200, 4)]);
        future.follow(&[extent(5, 7, 200, 4)]);
        assert_eq!(next(&future, SECOND / 2, SECOND).0, [(201, 90)]);
    }

    #[test]
    fn what_another_process_accessed_counts_as_not_found() {
        let mut with_helper = profile();
        let helper = Heat {
            process: process(2),
            ..heat(0, 7, 12, 10)
        };
        with_helper.heat.insert(1, helper);
        let mut future = RecordedFuture::new(&with_helper).expect("a future");
        future.follow(&[extent(5, 7, 100, 8)]);
        assert_eq!(next(&future, 0, SECOND), (vec![(101, 30)], 30, 40));
    }

    #[test]
    fn profiles_without_a_future_are_refused() {
        let mut emulated = profile();
        emulated.meta.emulated = true;
        let mut two = profile();
        two.heat = vec![heat(0, 7, 11, 30), heat(1, 7, 21, 30)];
        two.heat[1].process = process(2);
        let mut idle = profile();
        idle.counts.clear();
        let mut empty = profile();
        empty.heat.clear();
        for (profile, why) in [
            (emulated, NoFuture::Emulated),
            (two, NoFuture::Processes(2)),
            (idle, NoFuture::Empty),
            (empty, NoFuture::Empty),
        ] {
            assert_eq!(RecordedFuture::new(&profile).err(), Some(why));
        }
    }
}
