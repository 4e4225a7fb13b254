//! A range of memory with one owner.

use isotherm_model::site::SiteId;

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

/// What is left of regions outside these ranges. Both are sorted and without overlap, and so is the result.
pub(super) fn without(regions: Vec<Region>, taken: &[Span]) -> Vec<Region> {
    let mut left = Vec::with_capacity(regions.len());
    for region in regions {
        let Span { mut start, end } = region.span;
        let first = taken.partition_point(|range| range.end <= start);
        for range in taken[first..].iter().take_while(|range| range.start < end) {
            if start < range.start {
                left.push(Region {
                    span: start..range.start,
                    ..region
                });
            }
            start = start.max(range.end);
        }
        if start < end {
            left.push(Region {
                span: start..end,
                ..region
            });
        }
    }
    left
}
