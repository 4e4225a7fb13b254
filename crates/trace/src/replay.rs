//! [`Replay`] turns another tool's recording (a [`Trace`]: single accesses, or sums by epoch and chunk) into what the daemon would have
//! observed, one [`Observation`] an epoch, for `isotherm daemon --replay`.
//!
//! A recording holds accesses, not residency: a unit counts as fully resident from its first access
//! on. All units are in slow memory at first, as in a dry run on a machine with one kind of memory.
//! Epochs without accesses count.
//!
//! ```text
//! accesses   |x  x   |  x     |        | x    x |     trace samples, each of an address
//! DAMON      | 0 | 7 |        | 9      |        |     accessed bits, each of a range
//! epochs     0        1        2        3
//! ```

use std::collections::{BTreeMap, BTreeSet};

use isotherm_model::batch::ObservedAccess;
use isotherm_model::batch::{Epoch, Process, SourceReport};
use isotherm_model::profile::Profile;
use isotherm_model::source_kind::SourceKind;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::watch::{Observation, Unit, UnitResidency, Watched};

use crate::Trace;
use crate::accesses::Accesses;
use crate::error::{Error, Fault, Place};

/// Most epochs of a recording: a quarter of an hour of milliseconds, twelve days of seconds.
const EPOCHS: u64 = 1 << 20;

/// Most units of a recording: 8 TiB in units of 2 MiB.
const UNITS: usize = 1 << 22;

/// The division of a recording into units and epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Bytes of a unit, a power of two.
    pub unit: Bytes,
    /// Length of an epoch, above zero.
    pub epoch: Nanos,
    /// Fast memory that may be used.
    pub capacity: Bytes,
}

/// The observations of a recording, in order. It ends after the first error.
#[derive(Debug)]
pub struct Replay {
    recording: Recording,
    cut: Cut,
    name: String,
    units: BTreeSet<Unit>,
    next: u32,
    report: SourceReport,
    ended: bool,
}

/// The recorded data.
#[derive(Debug)]
enum Recording {
    Accesses {
        accesses: Accesses,
        /// The first access of the next epoch with any, if it is already read.
        ahead: Option<SeenChunk>,
    },
    /// Sums; those of epochs that were already returned are skipped.
    Sums { profile: Box<Profile>, told: usize },
}

/// An access of a process, with its time.
#[derive(Clone, Copy, Debug)]
struct SeenChunk {
    epoch: u64,
    process: Process,
    address: u64,
}

/// Hits of an epoch, by process and first address of a range.
type Hits = BTreeMap<(Process, u64), u64>;

impl Replay {
    /// The observations of a file's content. `name` is for messages.
    #[must_use]
    pub fn new(trace: Trace, name: &str, cut: Cut) -> Self {
        let recording = match trace {
            Trace::Accesses(accesses) => Recording::Accesses {
                accesses,
                ahead: None,
            },
            Trace::Profile(profile) => Recording::Sums { profile, told: 0 },
        };
        let report = SourceReport {
            name: "replay".to_owned(),
            cost_note: "a recording costs the programs nothing".to_owned(),
            ..SourceReport::default()
        };
        Self {
            recording,
            cut,
            name: name.to_owned(),
            units: BTreeSet::new(),
            next: 0,
            report,
            ended: false,
        }
    }

    /// Bytes of all units that were accessed so far.
    #[must_use]
    pub fn footprint(&self) -> Bytes {
        Bytes((self.units.len() as u64).saturating_mul(self.cut.unit.0))
    }

    /// True if the records are samples, which represent an unknown number of accesses.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        match &self.recording {
            Recording::Accesses { accesses, .. } => accesses.tally().sampled,
            Recording::Sums { .. } => false,
        }
    }

    fn too_long(&self) -> Error {
        let found = format!("it has more than {EPOCHS} epochs of {}", self.cut.epoch);
        self.fault(found, "longer epochs")
    }

    fn fault(&self, found: String, expected: &str) -> Error {
        Fault::new(found, expected).at(&self.name, Place::Whole)
    }

    /// The hits of the next epoch, by address, and the bytes that each hit covers; `None` at the
    /// end.
    fn hits(&mut self) -> Result<Option<(Hits, u64)>, Error> {
        let epoch = u64::from(self.next);
        match &mut self.recording {
            Recording::Sums { profile, told } => {
                if self.next as usize >= profile.epochs.len() {
                    return Ok(None);
                }
                let number = profile.epochs[self.next as usize].epoch;
                let rest = profile.heat[*told..].iter();
                let now: Vec<_> = rest.take_while(|heat| heat.epoch <= number).collect();
                *told += now.len();
                let chunk = profile.meta.chunk.0.max(1);
                let mut hits = Hits::new();
                for heat in now {
                    *hits.entry((heat.process, heat.address)).or_default() += heat.accesses.0;
                }
                Ok(Some((hits, chunk)))
            }
            Recording::Accesses { accesses, ahead } => {
                let mut hits = Hits::new();
                let mut read_any = false;
                while let Some(seen) = match ahead.take() {
                    None => next_seen(accesses, self.cut.epoch)?,
                    known => known,
                } {
                    read_any = true;
                    if seen.epoch >= EPOCHS {
                        return Err(self.too_long());
                    }
                    if seen.epoch > epoch {
                        *ahead = Some(seen);
                        break;
                    }
                    // Only the sum of a unit counts, at the unit's first address.
                    let start = seen.address & !(self.cut.unit.0 - 1);
                    *hits.entry((seen.process, start)).or_default() += 1;
                }
                Ok(read_any.then_some((hits, 1)))
            }
        }
    }

    fn observation(&mut self) -> Result<Option<Observation>, Error> {
        if u64::from(self.next) >= EPOCHS {
            return Err(self.too_long());
        }
        let Some((hits, bytes)) = self.hits()? else {
            return Ok(None);
        };
        for (process, address) in hits.keys() {
            let last = address.saturating_add(bytes - 1);
            let unit = self.cut.unit.0;
            let units = (address / unit..=last / unit).map(|number| Unit {
                process: *process,
                start: number * unit,
            });
            // A range may be as large as the address space: what is too much is known before all of it is taken.
            self.units.extend(units.take(UNITS + 1));
            if self.units.len() > UNITS {
                let found = format!("more than {UNITS} units of {unit} bytes were accessed");
                return Err(self.fault(found, "larger units"));
            }
        }
        let sum = hits.values().copied().fold(0, u64::saturating_add);
        self.report.taken = self.report.taken.saturating_add(sum);
        self.report.usable = self.report.taken;
        let number = self.next;
        self.next += 1;
        Ok(Some(Observation {
            epoch: Epoch(number),
            span: self.cut.epoch,
            processes: self.processes(),
            residency: self.units.iter().map(|unit| self.held(*unit)).collect(),
            accesses: self.accesses(&hits, bytes),
            placed: BTreeMap::new(),
            capacity: self.cut.capacity,
            sources: vec![self.report.clone()],
        }))
    }

    fn processes(&self) -> Vec<Watched> {
        let mut processes: Vec<Process> = self.units.iter().map(|unit| unit.process).collect();
        processes.dedup();
        let watched = |process| Watched {
            process,
            name: self.name.clone(),
            control_group: String::new(),
            warning: String::new(),
        };
        processes.into_iter().map(watched).collect()
    }

    const fn held(&self, unit: Unit) -> UnitResidency {
        UnitResidency {
            unit,
            resident: self.cut.unit,
            fast: Bytes::ZERO,
            grain: self.cut.unit,
        }
    }

    fn accesses(&self, hits: &Hits, bytes: u64) -> Vec<ObservedAccess> {
        let source = match &self.recording {
            Recording::Accesses { .. } => SourceKind::Trace,
            Recording::Sums { profile, .. } => source_of(profile),
        };
        let access = |((process, start), hits): (&(Process, u64), &u64)| ObservedAccess {
            bytes: Bytes(bytes),
            ..ObservedAccess::at((*process, *start), source, (*hits, source.unit(false)))
        };
        hits.iter().map(access).collect()
    }
}

impl Iterator for Replay {
    type Item = Result<Observation, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.observation().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// The source of a profile that was read from one file.
fn source_of(profile: &Profile) -> SourceKind {
    let mut names = profile.sources.iter().map(|source| &source.name);
    names
        .find_map(|name| SourceKind::from_word(name))
        .unwrap_or(SourceKind::Damon)
}

fn next_seen(accesses: &mut Accesses, epoch: Nanos) -> Result<Option<SeenChunk>, Error> {
    let Some(access) = accesses.next().transpose()? else {
        return Ok(None);
    };
    Ok(Some(SeenChunk {
        epoch: access.time.0 / epoch.0.max(1),
        process: Process {
            pid: accesses.process(),
            image: 0,
        },
        address: access.address,
    }))
}

#[cfg(test)]
mod tests {
    use super::{Cut, Replay};
    use crate::{Format, Grain, Trace, accesses, profile};
    use isotherm_model::batch::{Epoch, Process, SourceReport};
    use isotherm_model::profile::{EpochSpan, Heat, Meta, Profile};
    use isotherm_model::site::SiteId;
    use isotherm_model::source_kind::{ProfilingMethod, SourceKind};
    use isotherm_model::units::{Accesses, Bytes, Nanos};
    use isotherm_model::watch::Observation;
    use std::io::Cursor;

    const CUT: Cut = Cut {
        unit: Bytes(1 << 20),
        epoch: Nanos(1000),
        capacity: Bytes(5 << 20),
    };

    fn of_text(text: &'static str) -> Replay {
        let read = accesses(Format::Text, "a.csv", Cursor::new(text)).expect("a header");
        Replay::new(Trace::Accesses(read), "a.csv", CUT)
    }

    fn all(replay: &mut Replay) -> Vec<Observation> {
        replay.by_ref().map(|one| one.expect("is sound")).collect()
    }

    #[test]
    fn accesses_become_an_observation_an_epoch_and_empty_epochs_count() {
        let mut replay = of_text(
            "time_ns,address,access\n0,0x100000,r\n10,0x100040,w\n999,0x300000,r\n3000,0x1fffff,r\n",
        );
        let seen = all(&mut replay);
        let hits = |one: &Observation| -> Vec<(u64, u64)> {
            one.accesses
                .iter()
                .map(|it| (it.address, it.count))
                .collect()
        };
        assert_eq!(
            seen.iter().map(hits).collect::<Vec<_>>(),
            [
                vec![(0x10_0000, 2), (0x30_0000, 1)],
                vec![],
                vec![],
                vec![(0x10_0000, 1)]
            ]
        );
        assert!(
            seen.iter()
                .all(|one| one.residency.len() == 2 && one.capacity == CUT.capacity)
        );
        assert!(
            seen.iter()
                .all(|one| one.residency.iter().all(|held| held.fast == Bytes(0)))
        );
        assert_eq!(
            seen[0].accesses[0].source.method(),
            ProfilingMethod::TraceSamples
        );
        assert_eq!((seen[3].epoch.0, seen[3].sources[0].taken), (3, 4));
        assert_eq!(replay.footprint(), Bytes(2 << 20));
        assert!(!replay.is_sampled());
    }

    #[test]
    fn processes_of_a_recording_are_told_apart() {
        let sample = |pid: u32| {
            format!(
                " app {pid}/72 [003] 100.000001: 10  cpu/mem-loads,ldlat=30/P:  7f0000001000  10268100142 \
                 |OP LOAD|LVL L1 hit  5555555551f3 scan+0x23 (/bin/app)\n"
            )
        };
        let script = sample(71) + &sample(81);
        let read = accesses(Format::PerfScript, "s", Cursor::new(script)).expect("opens");
        let mut replay = Replay::new(Trace::Accesses(read), "s", CUT);
        let seen = all(&mut replay);
        let pids: Vec<u32> = seen[0]
            .processes
            .iter()
            .map(|one| one.process.pid)
            .collect();
        assert_eq!(
            (pids, seen[0].residency.len(), replay.is_sampled()),
            (vec![71, 81], 2, true)
        );
    }

    #[test]
    fn regions_of_damon_become_accessed_bits_of_the_units_in_them() {
        let text = "\
 k 1 [0] 100.100000: damon:damon_aggregated: target_id=1 nr_regions=1 1048576-3145728: 2 0\n\
 k 1 [0] 102.100000: damon:damon_aggregated: target_id=1 nr_regions=1 1048576-3145728: 3 0\n";
        let grain = Grain {
            epoch: Nanos(1_000_000_000),
            chunk: CUT.unit,
        };
        let read = profile(Format::DamonTrace, "d", Cursor::new(text), grain).expect("is sound");
        let cut = Cut {
            epoch: grain.epoch,
            ..CUT
        };
        let mut replay = Replay::new(Trace::Profile(Box::new(read)), "d", cut);
        let seen = all(&mut replay);
        let hits: Vec<u64> = seen
            .iter()
            .map(|one| one.accesses.iter().map(|it| it.count).sum())
            .collect();
        assert_eq!(
            hits.iter().sum::<u64>(),
            (2 + 3) * 512,
            "a page and look each"
        );
        assert_eq!(
            seen[0].accesses[0].source.method(),
            ProfilingMethod::AccessedBits
        );
        assert_eq!(replay.footprint(), Bytes(2 << 20));
    }

    /// The replay of a profile with one access of this source to a range as large as the profile's chunks.
    fn of_one_access(source: &str, chunk: Bytes) -> Replay {
        let mut profile = Profile::new(Meta {
            chunk,
            ..Meta::default()
        });
        profile.sources = vec![SourceReport {
            name: source.to_owned(),
            ..SourceReport::default()
        }];
        profile.epochs = vec![EpochSpan {
            epoch: Epoch(0),
            span: CUT.epoch,
        }];
        profile.heat = vec![Heat {
            epoch: Epoch(0),
            process: Process { pid: 7, image: 0 },
            site: SiteId(9),
            address: 0,
            object: None,
            accesses: Accesses(3),
            streamed: Accesses(0),
            served: Accesses(0),
        }];
        Replay::new(Trace::Profile(Box::new(profile)), "m", CUT)
    }

    #[test]
    fn sums_keep_the_source_that_counted_them() {
        for source in [SourceKind::MemProf, SourceKind::Damon] {
            let seen = all(&mut of_one_access(source.word(), CUT.unit));
            let access = seen[0].accesses[0];
            assert_eq!((access.source, access.unit), (source, source.unit(false)));
        }
    }

    #[test]
    fn a_range_as_large_as_the_address_space_ends_with_a_sentence() {
        let mut replay = of_one_access("memprof", Bytes(1 << 57));
        let error = replay.next().expect("one").expect_err("too large");
        assert!(error.to_string().contains("larger units"), "{error}");
    }

    #[test]
    fn what_has_too_many_epochs_or_is_broken_ends_with_a_sentence() {
        let mut far = of_text("time_ns,address\n0,1\n18446744073709551615,2\n");
        let last = far.by_ref().last().expect("ends").expect_err("too far");
        assert!(last.to_string().contains("longer epochs"), "{last}");
        assert!(far.next().is_none());
        let mut broken = of_text("time_ns,address\n0,1\n5,nonsense\n");
        let error = broken.next().expect("one").expect_err("nonsense");
        assert!(error.to_string().contains("a.csv"), "{error}");
        let mut end = of_text("time_ns,address\n0,0xffffffffffffffff\n");
        assert_eq!(all(&mut end).len(), 1);
    }
}
