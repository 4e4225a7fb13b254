//! A `Region` is a range of memory that counts for one site; `without` cuts ranges of other owners out of regions.

use isotherm_model::site::SiteId;
use isotherm_model::spans;

use crate::resident::Span;

/// A range of memory that counts for one site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Region {
    /// Its addresses.
    pub(super) span: Span,
    /// The site.
    pub(super) site: SiteId,
    /// It is one data object, as a variable or a mapping of its own is.
    pub(super) is_object: bool,
}

/// The parts of regions outside these ranges. Regions and ranges are sorted and without overlap, and so is the result.
pub(super) fn without(regions: Vec<Region>, taken: &[Span]) -> Vec<Region> {
    let left = |region: Region| {
        let spans = spans::difference(std::slice::from_ref(&region.span), taken);
        spans.into_iter().map(move |span| Region { span, ..region })
    };
    regions.into_iter().flat_map(left).collect()
}
