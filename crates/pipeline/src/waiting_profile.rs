//! `waiting_profile` makes a profile of two sites whose times waiting for memory are known, for the tests of expected, predicted and
//! measured run times.

use isotherm_model::batch::{Epoch, Process, SourceReport};
use isotherm_model::profile::{Heat, Meta, Profile};
use isotherm_model::site::{Site, SiteId, SiteKind};
use isotherm_model::units::{Accesses, Bytes, Nanos};

/// A run of a second in 1,000 samples, with two sites of 1 MiB. The run waits a tenth of its time for the streams of site 11, which
/// allocates first, and four tenths for the latency of site 12.
pub(crate) fn waiting_profile() -> Profile {
    let mut profile = Profile::new(Meta {
        sample_interval: Some(Nanos(1_000_000)),
        ..Meta::default()
    });
    let site = |id| Site {
        first_seen: id,
        peak_rss: Bytes(1 << 20),
        ..Site::new(SiteId(id.into()), SiteKind::Heap)
    };
    profile.sites = vec![site(11), site(12)];
    let heat = |site, accesses, streamed| Heat {
        epoch: Epoch(0),
        process: Process::default(),
        site: SiteId(site),
        address: 0,
        object: None,
        accesses: Accesses(accesses),
        streamed: Accesses(streamed),
        served: Accesses(100),
    };
    profile.heat = vec![heat(11, 100, 100), heat(12, 400, 0)];
    profile.sources = vec![SourceReport {
        taken: 1000,
        usable: 700,
        ..SourceReport::new("timer", "")
    }];
    profile
}
