//! Ranges of memory on nodes: where new pages shall be made, where old ones shall go, and what
//! became of each part.
//!
//! *Node* is the kernel's word and number. Actions of sites and tiers ([`crate::outcome`]) become
//! these once it is known where a site's data lies.
//!
//! ```text
//! action    | 0x7f00..., 8 MiB, move to node 1                     |
//! outcome   | 5 MiB moved | 1 MiB already there | 2 MiB denied: ... |    parts cover the range
//! ```

use std::fmt;

use crate::batch::Process;
use crate::outcome::Fate;
use crate::units::Bytes;

/// Number of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A contiguous range of virtual addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    /// First address.
    pub start: u64,
    /// Length. Start and length together do not pass the end of the address space: see
    /// [`Self::end`].
    pub bytes: Bytes,
}

impl AddressRange {
    /// The first address past it, or the last there is.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.0)
    }
}

/// How the kernel chooses the node of a new page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangePolicy {
    /// No request: the thread's policy, or the node of the processor that touches it.
    Default,
    /// This node first (`MPOL_PREFERRED`).
    Preferred(NodeId),
    /// These first, the nearest first of all (`MPOL_PREFERRED_MANY`, Linux 5.15).
    PreferredMany(Vec<NodeId>),
    /// These alone (`MPOL_BIND`). A program that finds them full is killed.
    Bind(Vec<NodeId>),
    /// So many pages on each in turn (`MPOL_WEIGHTED_INTERLEAVE`, Linux 6.9). The weights, 1 to 255,
    /// are the whole system's.
    WeightedInterleave(Vec<(NodeId, u8)>),
}

/// What to do with a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeRequest {
    /// Make its new pages so; those that are there stay.
    Place(RangePolicy),
    /// Bring the pages that are there to this node.
    Move(NodeId),
}

/// One thing to do with one range of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeAction {
    /// Whose memory.
    pub process: Process,
    /// Which.
    pub range: AddressRange,
    /// What to do.
    pub request: RangeRequest,
}

/// What became of a part of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its length.
    pub bytes: Bytes,
    /// What became of it. A policy that the kernel took is [`Fate::Requested`]: it is obeyed when
    /// pages are made.
    pub fate: Fate,
}

/// An action and what became of its range, from its start to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeOutcome {
    /// What was to be done.
    pub action: RangeAction,
    /// The parts, in order. They cover the range exactly, and neighbours differ.
    pub parts: Vec<Part>,
}

impl RangeOutcome {
    /// An outcome without parts yet.
    #[must_use]
    pub const fn begin(action: RangeAction) -> Self {
        Self {
            action,
            parts: Vec::new(),
        }
    }

    /// One fate for the whole range.
    #[must_use]
    pub fn whole(action: RangeAction, fate: Fate) -> Self {
        let bytes = action.range.bytes;
        let mut outcome = Self::begin(action);
        outcome.push(bytes, fate);
        outcome
    }

    /// Adds the next part; it joins the last one where both fared alike. Nothing is no part.
    pub fn push(&mut self, bytes: Bytes, fate: Fate) {
        if bytes == Bytes::ZERO {
            return;
        }
        match self.parts.last_mut() {
            Some(last) if last.fate == fate => last.bytes += bytes,
            _ => self.parts.push(Part { bytes, fate }),
        }
    }

    /// Bytes of the range that the parts do not cover yet.
    #[must_use]
    pub fn left(&self) -> Bytes {
        let covered = self.parts.iter().map(|part| part.bytes).sum();
        self.action.range.bytes.saturating_sub(covered)
    }

    /// Bytes of all parts that fared so.
    #[must_use]
    pub fn bytes_of(&self, like: impl Fn(&Fate) -> bool) -> Bytes {
        let parts = self.parts.iter().filter(|part| like(&part.fate));
        parts.map(|part| part.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{AddressRange, NodeId, RangeAction, RangeOutcome, RangeRequest};
    use crate::batch::Process;
    use crate::outcome::Fate;
    use crate::units::Bytes;

    fn outcome(bytes: u64) -> RangeOutcome {
        RangeOutcome::begin(RangeAction {
            process: Process::default(),
            range: AddressRange {
                start: 4096,
                bytes: Bytes(bytes),
            },
            request: RangeRequest::Move(NodeId(1)),
        })
    }

    #[test]
    fn neighbours_that_fared_alike_are_one_part_and_nothing_is_none() {
        let mut outcome = outcome(100);
        outcome.push(Bytes(10), Fate::Moved);
        outcome.push(Bytes(20), Fate::Moved);
        outcome.push(Bytes(0), Fate::AlreadyThere);
        outcome.push(Bytes(30), Fate::Busy("pinned".into()));
        assert_eq!(outcome.parts.len(), 2);
        assert_eq!(outcome.bytes_of(|fate| *fate == Fate::Moved), Bytes(30));
        assert_eq!(outcome.left(), Bytes(40));
    }

    #[test]
    fn a_range_at_the_end_of_the_address_space_has_an_end() {
        let mut outcome = outcome(u64::MAX);
        assert_eq!(outcome.action.range.end(), u64::MAX);
        outcome.push(Bytes(u64::MAX), Fate::Moved);
        outcome.push(Bytes(u64::MAX), Fate::Busy("pinned".into()));
        assert_eq!(outcome.left(), Bytes(0));
    }
}
