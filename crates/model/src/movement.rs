//! [`RangeAction`] asks for the move of a range of a process's memory to a node, and [`RangeOutcome`] is the outcome of each part of the
//! range. For page-out, [`crate::paged`] has two node numbers of its own: in memory, and in swap.
//!
//! *Node* is the kernel's word and number. Actions on sites and tiers ([`crate::outcome`]) are
//! translated to these range actions once the addresses of a site's data are known.
//!
//! ```text
//! action    | 0x7f00..., 8 MiB, move to node 1                     |
//! outcome   | 5 MiB moved | 1 MiB already there | 2 MiB denied: ... |    parts cover the range
//! ```

use std::fmt;

use crate::batch::Process;
use crate::outcome::Fate;
pub use crate::spans::AddressRange;
use crate::tier::Tier;
use crate::units::Bytes;

/// Number of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The memory nodes of a tier; none for the emulated pair.
    pub fn of(tier: &Tier) -> impl Iterator<Item = Self> {
        tier.nodes().iter().copied().map(Self)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One action: move the existing pages of a range of one process to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeAction {
    /// Process that owns the memory.
    pub process: Process,
    /// Range of its addresses.
    pub range: AddressRange,
    /// The target node.
    pub node: NodeId,
}

/// The outcome of a part of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its length.
    pub bytes: Bytes,
    /// Its fate.
    pub fate: Fate,
}

/// An action, and the outcome of each part of its range, from start to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeOutcome {
    /// The action that was requested.
    pub action: RangeAction,
    /// The parts, in order. They cover the range exactly; neighbours have different fates.
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

    /// An outcome with one fate for the whole range.
    #[must_use]
    pub fn whole(action: RangeAction, fate: Fate) -> Self {
        let bytes = action.range.bytes;
        let mut outcome = Self::begin(action);
        outcome.push(bytes, fate);
        outcome
    }

    /// Adds the next part. It joins the last part if both have the same fate; a part of zero bytes
    /// is ignored.
    pub fn push(&mut self, bytes: Bytes, fate: Fate) {
        if bytes == Bytes::ZERO {
            return;
        }
        match self.parts.last_mut() {
            Some(last) if last.fate == fate => last.bytes += bytes,
            _ => self.parts.push(Part { bytes, fate }),
        }
    }

    /// Bytes of the range that no part covers yet.
    #[must_use]
    pub fn left(&self) -> Bytes {
        let covered = self.parts.iter().map(|part| part.bytes).sum();
        self.action.range.bytes.saturating_sub(covered)
    }

    /// The range of each part, with its fate.
    pub fn ranges(&self) -> impl Iterator<Item = (AddressRange, &Fate)> {
        let mut start = self.action.range.start;
        self.parts.iter().map(move |part| {
            let bytes = part.bytes;
            let range = AddressRange { start, bytes };
            start = range.end();
            (range, &part.fate)
        })
    }

    /// Bytes of all parts whose fate matches.
    #[must_use]
    pub fn bytes_of(&self, like: impl Fn(&Fate) -> bool) -> Bytes {
        let parts = self.parts.iter().filter(|part| like(&part.fate));
        parts.map(|part| part.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{AddressRange, NodeId, RangeAction, RangeOutcome};
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
            node: NodeId(1),
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
