//! The same place of the source in two profiles, which may be of two builds.

use crate::calls::MatchedBy;
use crate::site::SiteId;

/// Sites of two profiles that are one place of the source. Several of one side are copies that a compiler made of
/// one place, or contexts that the other profile does not tell apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitePair {
    /// Sites of the earlier profile, by id; none for a place that is new.
    pub before: Vec<SiteId>,
    /// Sites of the later profile, by id; none for a place that is gone.
    pub after: Vec<SiteId>,
    /// How they were found, the weakest of several methods; `None` where one side has none.
    pub by: Option<MatchedBy>,
}
