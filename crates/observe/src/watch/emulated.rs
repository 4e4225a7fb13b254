//! `EmulatedProcesses` reads the session files of watched processes on emulated machines, for the daemon: the resident and fast bytes of
//! each unit, the tiers of samples, and the capacity and the use of these machines.
//!
//! `isotherm run --policy none --tiers emulated` starts such programs. Each process has its session file mapped, which is
//! how it is found; only those of the daemon's own user are opened. The processes of one run are on one machine, whose
//! directory they share.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use isotherm_abi::session::SessionCounter;
use isotherm_model::batch::{ObservedAccess, Process};
use isotherm_model::tier_loads::EmulatedUse;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::watch::{Placed, UnitResidency};
use isotherm_session::{SessionFile, session_of};

use crate::page_units;
use crate::process_usage::ProcessStat;

/// The watched processes on emulated machines.
#[derive(Debug, Default)]
pub(super) struct EmulatedProcesses {
    proc_root: PathBuf,
    /// The session of each process; None where it has none, or one without tiers.
    sessions: BTreeMap<Process, Option<SessionFile>>,
    /// Fast memory of each machine, by its directory, as its processes reported in this epoch.
    machines: BTreeMap<PathBuf, Bytes>,
    /// The use of its machine by each process, up to the last call of `take_used`.
    used: BTreeMap<Process, EmulatedUse>,
}

impl EmulatedProcesses {
    pub(super) fn new(proc_root: &Path) -> Self {
        Self {
            proc_root: proc_root.to_owned(),
            ..Self::default()
        }
    }

    /// Whether a process runs on an emulated machine. A process that has just started is asked again, because its runtime may
    /// not have begun.
    pub(super) fn has(&mut self, process: Process) -> bool {
        let session = self.sessions.entry(process).or_default();
        if session.is_none() {
            let path = session_of(&self.proc_root, process.pid);
            let file = path.and_then(|path| SessionFile::open(&path).ok());
            *session = file.filter(SessionFile::has_page_tiers);
        }
        session.is_some()
    }

    /// Drops the sessions of processes that are watched no more.
    pub(super) fn retain(&mut self, is_watched: impl Fn(&Process) -> bool) {
        self.sessions.retain(|process, _| is_watched(process));
        self.used.retain(|process, _| is_watched(process));
    }

    /// Forgets the machines of the last epoch.
    pub(super) fn begin(&mut self) {
        self.machines.clear();
    }

    /// The memory of a process in units.
    ///
    /// # Errors
    /// Its session file was cut short.
    pub(super) fn held(&mut self, process: Process, unit: Bytes) -> io::Result<Vec<UnitResidency>> {
        let Some(Some(session)) = self.sessions.get(&process) else {
            return Ok(Vec::new());
        };
        let pages = session.page_tiers().map_err(io::Error::other)?;
        let statics = session.static_tiers().map_err(io::Error::other)?;
        let machine = session.path().parent().unwrap_or(Path::new("/"));
        let fast = self.machines.entry(machine.to_owned()).or_default();
        let of_statics = page_units::fast_statics(&statics);
        *fast = (*fast).max(pages.fast_capacity.saturating_add(of_statics));
        Ok(page_units::units(process, &pages, &statics, unit))
    }

    /// Fast memory of all machines with a process whose memory was read in this epoch.
    pub(super) fn capacity(&self) -> Bytes {
        self.machines.values().copied().sum()
    }

    /// The use of machines by the processes since the last call; nothing for processes that are new since then.
    pub(super) fn take_used(&mut self) -> EmulatedUse {
        let mut sum = EmulatedUse::default();
        for (process, session) in &self.sessions {
            let now = session.as_ref().and_then(|session| {
                let counters = session.progress().ok()?.counters;
                let counter = |counter: SessionCounter| counters[counter as usize];
                Some(EmulatedUse {
                    served: [
                        Bytes(counter(SessionCounter::FastTrafficBytes)),
                        Bytes(counter(SessionCounter::SlowTrafficBytes)),
                    ],
                    used: ProcessStat::read(&self.proc_root, process.pid)?.cpu_time,
                    delayed: Nanos(counter(SessionCounter::DelayNanos)),
                })
            });
            let before = now.and_then(|now| self.used.insert(*process, now));
            if let (Some(now), Some(before)) = (now, before) {
                sum = sum.and(now.since(before));
            }
        }
        sum
    }

    /// The number of samples of a process whose data has a tier now, and of those in the fast tier.
    pub(super) fn placed(&self, process: Process, samples: &[ObservedAccess]) -> Placed {
        let own = samples.iter().filter(|one| one.process == process);
        let session = self.sessions.get(&process).and_then(Option::as_ref);
        let tiers = session.and_then(|it| it.page_tiers().ok().zip(it.static_tiers().ok()));
        tiers.map_or_else(Placed::default, |(pages, statics)| {
            page_units::placed(&pages, &statics, own)
        })
    }
}
