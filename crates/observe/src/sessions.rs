//! [`Sessions`] finds and follows all session files of a live run, one for each process image (a process from one exec to the next): it
//! gives their sites, extents with resident bytes, data objects, counted and trapped accesses, page tiers and counters. It also tells which
//! image's memory a process used at a given time: its own or, in a forked child without a file of its own, that of its parent.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use isotherm_abi::session::SessionCounter;
use isotherm_model::batch::{AllocatedObject, Count, Process};
use isotherm_model::site::{Site, SiteId};
use isotherm_session::{PageTiers, SessionError, SessionFile, StaticTiers, file_name, parse_name};

use crate::processes::{Processes, has_memory};
use crate::resident::Span;
use crate::sites::SiteLedger;
use crate::tracked::{EpochExtents, TrackedImage};

/// Most images followed in one run; each keeps a descriptor while it lives.
const IMAGES_AT_MOST: usize = 1 << 16;

/// Accesses to one page that were counted in software.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedAccesses {
    /// Samples taken.
    pub samples: u64,
    /// Accesses for which the samples stand.
    pub accesses: u64,
}

/// The session files of a run.
#[derive(Debug, Default)]
pub struct Sessions {
    /// `None` where no process has the runtime.
    directory: Option<PathBuf>,
    /// The followed processes, each with its first followed image; empty where all are followed.
    only: BTreeMap<u32, u32>,
    proc_root: PathBuf,
    tracked: BTreeMap<Process, TrackedImage>,
    refused: BTreeMap<String, String>,
    ledger: SiteLedger,
    /// Sites that own memory and were already returned by [`Self::take_owners`].
    told_owners: BTreeSet<SiteId>,
}

impl Sessions {
    /// Follows the files in this directory; processes are looked up under `proc_root` (`/proc`).
    #[must_use]
    pub fn new(directory: &Path, proc_root: &Path) -> Self {
        Self {
            directory: Some(directory.to_owned()),
            ..Self::none(proc_root)
        }
    }

    /// No files: no process has the runtime.
    #[must_use]
    pub fn none(proc_root: &Path) -> Self {
        Self {
            proc_root: proc_root.to_owned(),
            ..Self::default()
        }
    }

    /// Follows this image of a process and later ones only, and no other files in the directory.
    pub fn follow_only(&mut self, process: Process) {
        self.only.insert(process.pid, process.image);
    }

    /// Follows these processes, too, with all their images.
    pub fn follow_later(&mut self, pids: impl Iterator<Item = u32>) {
        for pid in pids {
            self.only.entry(pid).or_insert(0);
        }
    }

    /// Opens new files. One that cannot be used is recorded and not tried again.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn discover(&mut self) -> std::io::Result<()> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        for entry in std::fs::read_dir(directory)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let Some(process) = parse_name(&name) else {
                continue;
            };
            let least = self.only.get(&process.pid);
            let is_wanted = least.is_some_and(|least| process.image >= *least);
            if !self.only.is_empty() && !is_wanted {
                continue;
            }
            let full = self.tracked.len() >= IMAGES_AT_MOST;
            if full || self.tracked.contains_key(&process) || self.refused.contains_key(&name) {
                continue;
            }
            match SessionFile::open(&directory.join(&name)) {
                Ok(file) => {
                    self.tracked
                        .insert(process, TrackedImage::new(process, file));
                }
                Err(SessionError::NotYet) => {}
                Err(error) => {
                    self.refused.insert(name, error.to_string());
                }
            }
        }
        Ok(())
    }

    /// Reads the owners of memory of each live image, and the final state of each image that ended.
    pub fn refresh(&mut self, processes: &Processes) {
        let keys: Vec<Process> = self.tracked.keys().copied().collect();
        for process in keys {
            let newer = Process {
                image: process.image.saturating_add(1),
                ..process
            };
            let replaced = self.tracked.contains_key(&newer);
            let Some(tracked) = self.tracked.get_mut(&process) else {
                continue;
            };
            if tracked.over {
                continue;
            }
            let ran_another = processes
                .last_exec(process.pid, u64::MAX)
                .is_some_and(|exec| exec > tracked.start_ns);
            let over = replaced || ran_another || !has_memory(&self.proc_root, process.pid);
            let read = tracked.refresh().and_then(|()| match over {
                // Its sites are read at once: they can no longer change.
                true => tracked.read_sites(&mut self.ledger),
                false => tracked.read_new_sites(&mut self.ledger),
            });
            let read = read.and_then(|()| tracked.read_objects());
            if let Err(error) = read {
                self.refused.insert(file_name(process), error.to_string());
                tracked.over = true;
            }
            tracked.over |= over;
            if tracked.over {
                self.ledger.close(process);
            }
        }
    }

    /// Measures the resident pages of each live image.
    pub fn measure(&mut self) -> usize {
        let live = self.tracked.values_mut().filter(|tracked| !tracked.over);
        live.filter_map(|tracked| tracked.measure(&self.proc_root).ok())
            .count()
    }

    /// Passes the trapped accesses of all images since the last call to `take`, as (process,
    /// address, time). Returns the number of lost ones.
    pub fn read_touches(&mut self, mut take: impl FnMut(Process, u64, u64)) -> u64 {
        let mut lost = 0;
        for tracked in self.tracked.values_mut().filter(|tracked| !tracked.told) {
            let process = tracked.process;
            if let Some(file) = &mut tracked.file {
                let take = |address, time| take(process, address, time);
                // `refresh` records a truncated file.
                lost += file.read_touches(&tracked.progress, take).unwrap_or(0);
            }
        }
        lost
    }

    /// Passes the access counts of all images since the last call to `take`, as (process, address
    /// of a page, counts).
    pub fn read_accesses(&mut self, mut take: impl FnMut(Process, u64, CountedAccesses)) {
        for tracked in self.tracked.values_mut().filter(|tracked| !tracked.told) {
            let process = tracked.process;
            if let Some(file) = &mut tracked.file {
                let period = file.header().access_period;
                // `refresh` records a truncated file.
                let _ = file.read_accesses(|address, samples| {
                    let accesses = samples.saturating_mul(period);
                    take(process, address, CountedAccesses { samples, accesses });
                });
            }
        }
    }

    /// Sampled accesses of all images for which a count had no room.
    #[must_use]
    pub fn accesses_lost(&self) -> u64 {
        let lost = |tracked: &TrackedImage| {
            tracked.progress.counters[SessionCounter::AccessesLost as usize]
        };
        self.tracked.values().map(lost).fold(0, u64::saturating_add)
    }

    /// True where this process image has a session file.
    #[must_use]
    pub fn has(&self, process: Process) -> bool {
        self.tracked.contains_key(&process)
    }

    /// The image whose memory a process uses at a time: its own, or that of its parent before the
    /// fork. Without any, a number that no file has.
    #[must_use]
    pub fn image_at(&self, processes: &Processes, pid: u32, time_ns: u64) -> Process {
        processes
            .lineage(pid, time_ns)
            .find_map(|pid| self.own_image_at(processes, pid, time_ns))
            .unwrap_or(Process { pid, image: 0 })
    }

    fn own_image_at(&self, processes: &Processes, pid: u32, time_ns: u64) -> Option<Process> {
        let all = Process { pid, image: 0 }..=Process {
            pid,
            image: u32::MAX,
        };
        let (process, tracked) = self
            .tracked
            .range(all.clone())
            .rev()
            .find(|(_, tracked)| tracked.start_ns <= time_ns)
            // Before its runtime starts (while the dynamic loader works) a new image counts as
            // itself; a forked child counts as its parent until it has a file.
            .or_else(|| {
                processes
                    .parent_of_memory(pid, time_ns)
                    .is_none()
                    .then(|| self.tracked.range(all).next())
                    .flatten()
            })?;
        let exec = processes.last_exec(pid, time_ns);
        let ran_another =
            exec.is_some_and(|exec| exec > tracked.start_ns && tracked.start_ns <= time_ns);
        Some(Process {
            image: process.image + u32::from(ran_another),
            ..*process
        })
    }

    /// The extents of all live images, and once more of those that ended since the last call or to
    /// which samples of this epoch point.
    pub fn extents(&mut self, sampled: &BTreeSet<Process>) -> EpochExtents {
        let mut extents = EpochExtents::default();
        for (process, tracked) in &mut self.tracked {
            if tracked.told && !sampled.contains(process) {
                continue;
            }
            let of_image = tracked.extents();
            extents.live.extend(of_image.live);
            extents.departed.extend(of_image.departed);
            tracked.told = tracked.over;
            if tracked.told {
                tracked.close();
            }
        }
        for extent in extents.live.iter().chain(&extents.departed) {
            if matches!(extent.site, SiteId::SHARED | SiteId::UNATTRIBUTED) {
                self.ledger.note_special(extent.site);
            }
        }
        extents
    }

    /// Reads the sites of all live images.
    pub fn read_sites(&mut self) {
        for tracked in self.tracked.values_mut().filter(|tracked| !tracked.over) {
            // `refresh` records a truncated file.
            let _ = tracked.read_sites(&mut self.ledger);
        }
    }

    /// The data objects of all images that are new since the last call, in the order of their allocation within each.
    pub fn take_objects(&mut self) -> Vec<AllocatedObject> {
        let tracked = self.tracked.values_mut();
        tracked.flat_map(TrackedImage::take_objects).collect()
    }

    /// Sites that own memory and did not at the last call: a profile will name them.
    pub fn take_owners(&mut self) -> Vec<Site> {
        let live = self.tracked.values().filter(|tracked| !tracked.told);
        let owners = live.flat_map(TrackedImage::owners);
        let told = &mut self.told_owners;
        let new = owners.filter(|id| told.insert(*id));
        new.filter_map(|id| self.ledger.get(id).cloned()).collect()
    }

    /// Sites that are new or whose numbers changed since the last call.
    pub fn take_changed_sites(&mut self) -> Vec<Site> {
        self.ledger.take_changed()
    }

    /// Counters of the live images, and the sums of the ended ones under no process: all counts of
    /// one name add up to the whole run, and once all images have ended, there is one count for
    /// each name. Gauges (`*_bytes`) of ended images are omitted.
    #[must_use]
    pub fn counts(&self) -> Vec<Count> {
        let (ended, live): (Vec<_>, Vec<_>) = self.tracked.values().partition(|it| it.told);
        let mut sums = BTreeMap::<String, u64>::new();
        for count in ended.into_iter().flat_map(TrackedImage::counts) {
            if !count.name.ends_with("_bytes") {
                let sum = sums.entry(count.name).or_default();
                *sum = sum.saturating_add(count.value);
            }
        }
        let sums = sums
            .into_iter()
            .map(|(name, value)| Count::of_run(name, value));
        live.into_iter()
            .flat_map(TrackedImage::counts)
            .chain(sums)
            .collect()
    }

    /// The ranges that an image owns, sorted, without overlap.
    #[must_use]
    pub fn ranges(&self, process: Process) -> Vec<Span> {
        self.tracked
            .get(&process)
            .map(TrackedImage::ranges)
            .unwrap_or_default()
    }

    /// The tiers of the pages of each live image on an emulated machine.
    pub fn page_tiers(&self) -> impl Iterator<Item = (Process, PageTiers)> {
        let live = self.tracked.iter().filter(|(_, tracked)| !tracked.over);
        let files = live.filter_map(|(process, tracked)| Some((process, tracked.file.as_ref()?)));
        // `refresh` records a truncated file.
        files
            .filter(|(_, file)| file.has_page_tiers())
            .filter_map(|(process, file)| Some((*process, file.page_tiers().ok()?)))
    }

    /// The tiers of the static data of an image on a machine that is emulated by time.
    #[must_use]
    pub fn static_tiers(&self, process: Process) -> Vec<StaticTiers> {
        let file = self.tracked.get(&process).and_then(|it| it.file.as_ref());
        // `refresh` records a truncated file.
        let tiers = file.and_then(|file| file.static_tiers().ok());
        tiers.unwrap_or_default()
    }

    /// The live images.
    pub fn live(&self) -> impl Iterator<Item = Process> {
        self.tracked
            .iter()
            .filter(|(_, tracked)| !tracked.over)
            .map(|(process, _)| *process)
    }

    /// Whether every ended image measured its resident pages itself.
    #[must_use]
    pub fn have_measured_themselves(&self) -> bool {
        let mut ended = self.tracked.values().filter(|tracked| tracked.over);
        ended.all(TrackedImage::measured_itself)
    }

    /// Number of images so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tracked.len()
    }

    /// True before the first image.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tracked.is_empty()
    }

    /// Files that could not be used, with the reason.
    #[must_use]
    pub const fn refused(&self) -> &BTreeMap<String, String> {
        &self.refused
    }
}
