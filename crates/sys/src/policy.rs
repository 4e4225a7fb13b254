//! Sets the kernel's memory policy of a range, which chooses the nodes of new pages, and can move its resident pages to these nodes;
//! queries the node of a page.
//!
//! A policy changes no content, so these wrappers are safe for any range: the worst result of a wrong one is
//! slow memory, or, with [`MempolicyMode::Bind`] on nodes that are full, no memory.
//!
//! Manual: `mbind(2)`, `Documentation/admin-guide/mm/numa_memory_policy.rst`.

use crate::system_call::{Errno, Result, call};

/// Words of a node mask: 1,024 nodes, the most that Linux can be built for.
pub const NODE_WORDS: usize = 16;
/// Bits of a mask as passed to the kernel: it reads one less.
const MASK_BITS: usize = NODE_WORDS * 64 + 1;
/// `MPOL_F_NODE`: query the node instead of the policy.
const NODE: usize = 1;
/// `MPOL_F_ADDR`: query the policy of an address.
const OF_ADDRESS: usize = 1 << 1;
/// `MPOL_MF_MOVE`: also move the resident pages that no other process shares.
const MOVE: usize = 1 << 1;

/// How nodes are chosen (`MPOL_*`). The numbers are the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum MempolicyMode {
    /// The thread's policy, or the node of the touching processor.
    Default = 0,
    /// One node, then the others by distance.
    Preferred = 1,
    /// These nodes and no others; without room there the program is killed.
    Bind = 2,
    /// One page after the other over these nodes.
    Interleave = 3,
    /// These nodes, nearest first, then the others (Linux 5.15).
    PreferredMany = 5,
    /// As many pages on a node as its weight in `/sys/kernel/mm/mempolicy/weighted_interleave` (Linux 6.9).
    WeightedInterleave = 6,
}

impl From<MempolicyMode> for u32 {
    fn from(mode: MempolicyMode) -> Self {
        mode as Self
    }
}

/// A set of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeMask([u64; NODE_WORDS]);

impl NodeMask {
    /// The nodes whose bits are set, bit n of word n/64.
    #[must_use]
    pub const fn from_words(words: [u64; NODE_WORDS]) -> Self {
        Self(words)
    }

    /// These nodes; `None` where a number is one that no Linux can have (1,024 or more).
    #[must_use]
    pub fn of(nodes: &[u32]) -> Option<Self> {
        let mut mask = Self::default();
        for &node in nodes {
            *mask.0.get_mut(node as usize / 64)? |= 1 << (node % 64);
        }
        Some(mask)
    }

    /// Whether the node is in the set.
    #[must_use]
    pub fn has(&self, node: u32) -> bool {
        let word = self.0.get(node as usize / 64).copied().unwrap_or(0);
        word >> (node % 64) & 1 != 0
    }
}

/// Sets the policy of a range of this process (`mbind(2)`); resident pages stay. The range must begin on a
/// page. The mode may be the kernel's number of one (`MPOL_*`).
///
/// # Errors
/// `EINVAL`: the mode or a node is unknown to this kernel. `EFAULT`: part of the range is not
/// mapped. `ENOSYS`: a kernel without nodes.
pub fn set_for_range(
    address: usize,
    bytes: usize,
    mode: impl Into<u32>,
    nodes: &NodeMask,
) -> Result<()> {
    bind(address, bytes, mode.into(), nodes, 0)
}

/// As [`set_for_range`], and moves the resident pages that no other process shares.
///
/// # Errors
/// As [`set_for_range`].
pub fn set_and_move(
    address: usize,
    bytes: usize,
    mode: impl Into<u32>,
    nodes: &NodeMask,
) -> Result<()> {
    bind(address, bytes, mode.into(), nodes, MOVE)
}

fn bind(address: usize, bytes: usize, mode: u32, nodes: &NodeMask, flags: usize) -> Result<()> {
    let mask = nodes.0.as_ptr() as usize;
    // SAFETY: the mask has the stated length. A policy decides where pages are, never their content, and the
    // kernel checks the range.
    unsafe {
        call(
            libc::SYS_mbind,
            [address, bytes, mode as usize, mask, MASK_BITS, flags],
        )
    }
    .map(|_| ())
}

/// The node of an address of this process (`get_mempolicy(2)`). A page that was never touched is allocated now.
///
/// # Errors
/// `EFAULT`: the address is not mapped. `ENOSYS`: a kernel without nodes. `EPERM`: a container
/// forbids the call.
pub fn node_of(address: usize) -> Result<u32> {
    let mut node = 0_i32;
    let arguments = [(&raw mut node) as usize, 0, 0, address, NODE | OF_ADDRESS];
    // SAFETY: the kernel writes one integer, which lives here; there is no mask.
    unsafe { call(libc::SYS_get_mempolicy, arguments) }?;
    u32::try_from(node).map_err(|_| Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::{MASK_BITS, MempolicyMode, NodeMask, OF_ADDRESS, set_for_range};
    use crate::memory::{fresh, unmap};
    use crate::system_call::{Errno, Result, call};

    /// The policy of an address of this process: its number and its nodes (`get_mempolicy(2)`).
    fn of_address(address: usize) -> Result<(u32, NodeMask)> {
        let mut mode = 0_i32;
        let mut mask = NodeMask::default();
        let arguments = [
            (&raw mut mode) as usize,
            mask.0.as_mut_ptr() as usize,
            MASK_BITS,
            address,
            OF_ADDRESS,
        ];
        // SAFETY: the kernel writes the number and as many bits as stated less one, both live here.
        unsafe { call(libc::SYS_get_mempolicy, arguments) }?;
        Ok((u32::try_from(mode).map_err(|_| Errno::INVAL)?, mask))
    }

    #[test]
    fn a_mask_holds_its_nodes_and_refuses_impossible_ones() {
        let mask = NodeMask::of(&[0, 63, 64, 1023]).unwrap();
        assert!(mask.has(63) && mask.has(64) && mask.has(1023));
        assert!(!mask.has(1) && !mask.has(5000));
        assert_eq!(NodeMask::of(&[1024]), None);
    }

    #[test]
    fn the_policy_of_a_range_is_what_was_set() {
        let base = fresh(1 << 21).unwrap();
        let nodes = NodeMask::of(&[0]).unwrap();
        match set_for_range(base, 1 << 21, MempolicyMode::Bind, &nodes) {
            Ok(()) => assert_eq!(of_address(base), Ok((MempolicyMode::Bind as u32, nodes))),
            Err(error) => {
                assert!(matches!(error, Errno::NOSYS | Errno::PERM));
                isotherm_skip::skip!("this kernel or container has no memory policies");
            }
        }
        // SAFETY: the range was mapped here and is not used any more.
        unsafe { unmap(base, 1 << 21).unwrap() };
    }
}
