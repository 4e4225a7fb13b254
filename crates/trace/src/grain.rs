//! [`Grain`] is the resolution of profiles that are read from aggregated formats: the size of chunks, which is doubled for MemProf's where
//! there would be too many, and the length of epochs for DAMON's (MemProf's have one epoch). `meta` and `add_site` make what all these
//! profiles have: the name of the tool, and sites of one range each.

use isotherm_model::batch::{Extent, Process};
use isotherm_model::profile::{EpochSpan, Meta, Profile, Resident};
use isotherm_model::site::Site;
use isotherm_model::units::{Bytes, Nanos};

/// Length of epochs and size of chunks for a profile from a file that has neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grain {
    /// Epoch length: snapshots within one epoch are added. At least a nanosecond.
    pub epoch: Nanos,
    /// Chunk size: ranges are divided into chunks of it. At least a page of 4 KiB.
    pub chunk: Bytes,
}

impl Default for Grain {
    /// The defaults of `isotherm record`: one second, 64 KiB.
    fn default() -> Self {
        Self {
            epoch: Nanos(1_000_000_000),
            chunk: Bytes(64 << 10),
        }
    }
}

/// The meta data of a run that another tool recorded: only the tool is known.
pub(crate) fn meta(source: &str) -> Meta {
    Meta {
        isotherm: env!("CARGO_PKG_VERSION").to_owned(),
        machine: vec![("imported_from".to_owned(), source.to_owned())],
        ..Meta::default()
    }
}

/// Adds a site whose memory is one range, which begins at this address and is resident in every epoch.
pub(crate) fn add_site(profile: &mut Profile, mut site: Site, process: Process, address: u64) {
    site.first_seen = u32::try_from(profile.sites.len()).unwrap_or(u32::MAX);
    let (id, bytes) = (site.id, site.peak_rss);
    profile.sites.push(site);
    profile.extents.push(Extent {
        process,
        site: id,
        address,
        bytes,
        resident: bytes,
        tier: None,
    });
    let resident = |span: &EpochSpan| Resident {
        epoch: span.epoch,
        site: id,
        bytes,
    };
    profile.resident.extend(profile.epochs.iter().map(resident));
}
