//! [`SiteLedger`] adds up the numbers of each site in the session files of a live run (allocations, bytes) over all processes, except that
//! it takes the highest of their peaks of resident bytes, and returns the sites that are new or have changed since the last call.

use std::collections::{BTreeSet, HashMap};

use isotherm_model::batch::Process;
use isotherm_model::site::{Site, SiteId};
use isotherm_model::units::Bytes;
use isotherm_session::{Module, SessionSite, SiteNumbers, TextArea};

/// Sites by name, and the contribution of each process.
#[derive(Debug, Default)]
pub struct SiteLedger {
    sites: HashMap<SiteId, Site>,
    /// Position of each site in the order of creation, which is that of the session tables.
    created: HashMap<SiteId, usize>,
    contributed: HashMap<Process, HashMap<SiteId, SiteNumbers>>,
    changed: BTreeSet<SiteId>,
}

impl SiteLedger {
    /// Records a site of a process, with the modules and the text that its frames refer to; the numbers replace the earlier ones of this
    /// process.
    pub fn note(
        &mut self,
        process: Process,
        row: SessionSite,
        (modules, text): (&[Module], &TextArea),
    ) {
        let before = self
            .contributed
            .entry(process)
            .or_default()
            .insert(row.id, row.numbers)
            .unwrap_or_default();
        let fresh = !self.sites.contains_key(&row.id);
        if !fresh && before == row.numbers {
            return;
        }
        let count = self.created.len();
        self.created.entry(row.id).or_insert(count);
        let site = self.sites.entry(row.id).or_insert_with(|| Site {
            frames: row.frames_in(modules, text).into(),
            ..Site::new(row.id, row.kind)
        });
        let now = row.numbers;
        let add = |sum: u64, old: u64, new: u64| sum.saturating_sub(old).saturating_add(new);
        site.allocations = add(site.allocations, before.allocations, now.allocations);
        site.requested = Bytes(add(
            site.requested.0,
            before.requested_bytes,
            now.requested_bytes,
        ));
        site.peak_requested = Bytes(add(
            site.peak_requested.0,
            before.peak_bytes,
            now.peak_bytes,
        ));
        site.peak_rss = site.peak_rss.max(Bytes(now.peak_resident_bytes));
        self.changed.insert(row.id);
    }

    /// Records the peak resident bytes of the small sites of a process.
    pub fn note_shared_peak(&mut self, peak: Bytes) {
        if peak > Bytes::ZERO {
            self.note_special(SiteId::SHARED);
        }
        if let Some(site) = self.sites.get_mut(&SiteId::SHARED)
            && peak > site.peak_rss
        {
            site.peak_rss = peak;
            self.changed.insert(SiteId::SHARED);
        }
    }

    /// Records one of the two special owners that are no sites, the first time its memory appears.
    pub fn note_special(&mut self, id: SiteId) {
        if let std::collections::hash_map::Entry::Vacant(vacant) = self.sites.entry(id) {
            vacant.insert(Site::nameless(id));
            self.created.insert(id, self.created.len());
            self.changed.insert(id);
        }
    }

    /// The numbers of a process are final: its share stays in the sums.
    pub fn close(&mut self, process: Process) {
        self.contributed.remove(&process);
    }

    /// The site with this id, with its sums so far.
    #[must_use]
    pub fn get(&self, id: SiteId) -> Option<&Site> {
        self.sites.get(&id)
    }

    /// The sites that are new or whose numbers changed since the last call, in the order in which they
    /// were created: that of first touch.
    pub fn take_changed(&mut self) -> Vec<Site> {
        let mut changed: Vec<SiteId> = std::mem::take(&mut self.changed).into_iter().collect();
        changed.sort_by_cached_key(|id| self.created.get(id));
        changed
            .iter()
            .filter_map(|id| self.sites.get(id).cloned())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::SiteLedger;
    use isotherm_model::batch::Process;
    use isotherm_model::site::{SiteId, SiteKind};
    use isotherm_model::units::Bytes;
    use isotherm_session::{SessionSite, SiteNumbers, TextArea};

    fn note(ledger: &mut SiteLedger, process: Process, row: SessionSite) {
        ledger.note(process, row, (&[], &TextArea::default()));
    }

    #[test]
    fn sites_come_in_the_order_in_which_they_were_created_and_not_by_name() {
        let row = |id| SessionSite {
            id: SiteId(id),
            kind: SiteKind::Heap,
            name: None,
            frames: vec![],
            numbers: SiteNumbers {
                allocations: 1,
                ..SiteNumbers::default()
            },
        };
        let process = Process { pid: 1, image: 0 };
        let mut ledger = SiteLedger::default();
        for id in [9, 4, 7] {
            note(&mut ledger, process, row(id));
        }
        ledger.note_special(SiteId::SHARED);
        let order: Vec<u64> = ledger.take_changed().iter().map(|site| site.id.0).collect();
        assert_eq!(order, [9, 4, 7, 1]);
    }

    #[test]
    fn numbers_of_all_processes_are_summed_and_only_changes_come_again() {
        let row = |allocations| SessionSite {
            id: SiteId(7),
            kind: SiteKind::Heap,
            name: None,
            frames: vec![],
            numbers: SiteNumbers {
                allocations,
                requested_bytes: allocations * 10,
                peak_bytes: 10,
                peak_resident_bytes: 4096 * allocations,
            },
        };
        let process = |pid| Process { pid, image: 0 };
        let mut ledger = SiteLedger::default();
        note(&mut ledger, process(1), row(5));
        note(&mut ledger, process(2), row(3));
        note(&mut ledger, process(1), row(6));
        let sites = ledger.take_changed();
        assert_eq!((sites[0].allocations, sites[0].requested), (9, Bytes(90)));
        // Peaks of two processes need not coincide.
        assert_eq!(sites[0].peak_rss, Bytes(6 * 4096));
        ledger.close(process(1));
        note(&mut ledger, process(2), row(3));
        assert_eq!(ledger.take_changed(), []);
        note(&mut ledger, process(2), row(4));
        assert_eq!(ledger.take_changed()[0].allocations, 10);
    }
}
