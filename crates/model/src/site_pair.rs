//! [`SitePair`] is one place of the source in two profiles, of one build or two, for their comparison: its sites in each, which may be
//! several, or none where the place is new or gone, and the method by which they were found.

use crate::calls::MatchedBy;
use crate::site::SiteId;

/// Sites of two profiles that are one place of the source. Several sites of one profile are copies that a compiler made of one place, or
/// contexts that the other profile does not distinguish.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SitePair {
    /// Sites of the earlier profile, by id; none for a place that is new.
    pub before: Vec<SiteId>,
    /// Sites of the later profile, by id; none for a place that is gone.
    pub after: Vec<SiteId>,
    /// The method by which they were found, the weakest of several; `None` where one side has no site.
    pub by: Option<MatchedBy>,
}
