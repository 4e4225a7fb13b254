//! How finely aggregated formats are cut.

use isotherm_model::profile::Meta;
use isotherm_model::units::{Bytes, Nanos};

/// Length of the epochs and size of the chunks of a profile that is made of a file without either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grain {
    /// Snapshots within one epoch are added up. At least a nanosecond.
    pub epoch: Nanos,
    /// Ranges are cut into chunks of this size. At least a page of 4 KiB.
    pub chunk: Bytes,
}

impl Default for Grain {
    /// What `isotherm record` uses: one second, 64 KiB.
    fn default() -> Self {
        Self {
            epoch: Nanos(1_000_000_000),
            chunk: Bytes(64 << 10),
        }
    }
}

/// What is known of a run that another tool recorded: which one.
pub(crate) fn meta(source: &str) -> Meta {
    Meta {
        isotherm: env!("CARGO_PKG_VERSION").to_owned(),
        machine: vec![("imported_from".to_owned(), source.to_owned())],
        ..Meta::default()
    }
}
