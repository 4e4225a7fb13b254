//! `ExtentChanges` finds the extents of a live run that are new, changed or gone since the last batch (the observations of one epoch): a
//! batch holds only these.

use isotherm_model::batch::{Extent, ExtentKey};

/// The extents as last reported.
#[derive(Debug, Default)]
pub(crate) struct ExtentChanges {
    /// The extents, sorted by key.
    known: Vec<Extent>,
}

impl ExtentChanges {
    /// Compares with the current extents: returns the extents that are new or differ, and the keys of the extents that
    /// are gone, both by key.
    pub(crate) fn since(&mut self, mut now: Vec<Extent>) -> (Vec<Extent>, Vec<ExtentKey>) {
        now.sort_unstable_by_key(Extent::key);
        let at = |extents: &[Extent], key| extents.binary_search_by_key(&key, Extent::key);
        let is_known = |extent: &Extent| {
            at(&self.known, extent.key()).is_ok_and(|at| self.known[at] == *extent)
        };
        let changed = now.iter().filter(|extent| !is_known(extent)).copied();
        let changed = changed.collect();
        let gone = self.known.iter().map(Extent::key);
        let gone = gone.filter(|key| at(&now, *key).is_err()).collect();
        self.known = now;
        (changed, gone)
    }
}

#[cfg(test)]
mod tests {
    use super::ExtentChanges;
    use isotherm_model::batch::{Extent, Process};
    use isotherm_model::site::SiteId;
    use isotherm_model::units::Bytes;

    fn extent(address: u64, resident: u64) -> Extent {
        Extent {
            process: Process::default(),
            site: SiteId(7),
            address,
            bytes: Bytes(100),
            resident: Bytes(resident),
            tier: None,
        }
    }

    #[test]
    fn only_what_is_new_or_differs_is_reported_and_what_is_gone_once() {
        let mut changes = ExtentChanges::default();
        let (a, b) = (extent(0, 10), extent(500, 20));
        assert_eq!(changes.since(vec![b, a]), (vec![a, b], vec![]));
        let larger = extent(500, 30);
        assert_eq!(changes.since(vec![a, larger]), (vec![larger], vec![]));
        assert_eq!(changes.since(vec![larger]), (vec![], vec![a.key()]));
        assert_eq!(changes.since(vec![larger]), (vec![], vec![]));
        assert_eq!(changes.since(vec![larger, a]), (vec![a], vec![]));
    }
}
