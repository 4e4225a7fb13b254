//! A [`Way`] is one way to move memory, which is measured alone.
//!
//! | way | moves |
//! |---|---|
//! | memcpy | nothing: a copy between resident memory, the bound of every move |
//! | staged | by [`StagedCopy`] |
//! | two copies | in ATMem's form ([`crate::two_copies`]) |
//! | mbind | by the kernel, a range in a call (`mbind(2)`, `MPOL_MF_MOVE`): ATMem's peer (its table 4) |
//! | move_pages | by the kernel, a list of pages in a call (`move_pages(2)`) |
//!
//! The kernel moves nothing that is on the node already, so its two ways need two nodes.
//! After each move the memory is read again, and the misses of the TLB are counted ([`crate::rereading`]).

use std::time::Instant;

use anyhow::{Result, anyhow};
use isotherm_movement::fork_lock::ForkLock;
use isotherm_sys::pages;
use isotherm_sys::policy::{MempolicyMode, NodeMask, set_and_move};
use isotherm_sys::staged::{PageKind, StagedCopy, StagedSettings, UNIT_BYTES, UnitFate};

use crate::field::Field;
use crate::page::PAGE_BYTES;
use crate::rereading::Rereading;
use crate::two_copies::{copy, move_by_two_copies};

/// The mover of a way.
enum Mover {
    Memcpy,
    Staged(Box<StagedCopy>),
    TwoCopies,
    Mbind,
    MovePages,
}

/// A way to move a field, and its results.
pub struct Way {
    /// The name in tables.
    pub name: &'static str,
    mover: Mover,
    kind: PageKind,
    threads: usize,
    /// Seconds of each round.
    pub seconds: Vec<f64>,
    /// Bytes not moved, in any round.
    pub left: u64,
    /// Bytes mapped as huge pages after the last round.
    pub huge_after: u64,
    /// Misses of the TLB when the field was read again, of each round in which they were counted.
    pub tlb_misses: Vec<u64>,
}

impl Way {
    /// All ways on a machine with these nodes.
    ///
    /// # Errors
    /// The staged copy cannot be opened.
    pub fn all(nodes: &[u32], kind: PageKind, threads: usize) -> Result<Vec<Self>> {
        let settings = StagedSettings {
            threads,
            even_if_there: nodes.len() < 2,
            ..StagedSettings::DEFAULT
        };
        let mut staged = StagedCopy::open(settings)?;
        staged.fill(nodes[0], kind, 8);
        let mut movers = vec![
            ("memcpy", Mover::Memcpy),
            ("staged", Mover::Staged(Box::new(staged))),
            ("two copies", Mover::TwoCopies),
        ];
        if nodes.len() > 1 {
            movers.extend([("mbind", Mover::Mbind), ("move_pages", Mover::MovePages)]);
        }
        let way = |(name, mover)| Self {
            name,
            mover,
            kind,
            threads,
            seconds: Vec::new(),
            left: 0,
            huge_after: 0,
            tlb_misses: Vec::new(),
        };
        Ok(movers.into_iter().map(way).collect())
    }

    /// Whether the way moves the field; `memcpy` leaves it where it is.
    pub const fn moves(&self) -> bool {
        !matches!(self.mover, Mover::Memcpy)
    }

    /// Moves a field to a node, and reads it again; `target` has its size.
    ///
    /// # Errors
    /// The kernel's.
    pub fn measure(
        &mut self,
        (field, target): (&Field, &Field),
        node: u32,
        rereading: &mut Rereading,
    ) -> Result<()> {
        let (start, bytes) = (field.start, field.bytes);
        let begun = Instant::now();
        // SAFETY, here and below: the fields are this program's, full, on unit boundaries and apart, and no thread
        // touches them meanwhile.
        let left = match &mut self.mover {
            Mover::Memcpy => {
                // SAFETY: as above.
                unsafe { copy(start, target.start, bytes, self.threads) };
                0
            }
            // SAFETY: as above.
            Mover::Staged(mover) => unsafe { by_staged_copy(mover, field, node) },
            Mover::TwoCopies => {
                // SAFETY: as above.
                unsafe { move_by_two_copies(start, bytes, node, self.kind, self.threads) }
                    .map_err(|error| anyhow!("two copies: {error:?}"))?;
                0
            }
            Mover::Mbind => {
                let nodes = NodeMask::of(&[node]).ok_or_else(|| anyhow!("no node {node}"))?;
                set_and_move(start, bytes, MempolicyMode::Bind, &nodes)
                    .map_err(|error| anyhow!("mbind: {error:?}"))?;
                0
            }
            Mover::MovePages => by_list(field, node)?,
        };
        self.seconds.push(begun.elapsed().as_secs_f64());
        self.left += left;
        self.huge_after = field.huge_bytes()?;
        self.tlb_misses.extend(rereading.count(field));
        Ok(())
    }
}

/// Returns bytes that were not moved.
///
/// # Safety
/// As [`StagedCopy::move_range`].
unsafe fn by_staged_copy(mover: &mut StagedCopy, field: &Field, node: u32) -> u64 {
    let mut left = 0;
    let range = field.start..field.start + field.bytes;
    // SAFETY: the caller's promise.
    unsafe {
        mover.move_range(range, node, &ForkLock::default(), |part, fate| {
            if !matches!(fate, UnitFate::Moved(_)) {
                left += part.len() as u64;
            }
        });
    }
    left
}

/// Pages that one call of `move_pages` lists.
const PAGES_A_CALL: usize = UNIT_BYTES / PAGE_BYTES;

/// Returns bytes that were not moved.
fn by_list(field: &Field, node: u32) -> Result<u64> {
    let mut left = 0;
    for unit in (field.start..field.start + field.bytes).step_by(UNIT_BYTES) {
        let addresses: Vec<usize> = (unit..unit + UNIT_BYTES).step_by(PAGE_BYTES).collect();
        let nodes = [node as i32; PAGES_A_CALL];
        let mut status = [-1; PAGES_A_CALL];
        pages::move_to(0, &addresses, &nodes, &mut status)
            .map_err(|error| anyhow!("move_pages: {error:?}"))?;
        let stay = status.iter().filter(|status| **status != node as i32);
        left += (stay.count() * PAGE_BYTES) as u64;
    }
    Ok(left)
}
