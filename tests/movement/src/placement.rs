//! Places new pages: sets the nodes on which the kernel allocates the pages of a range.

use isotherm_model::movement::{AddressRange, NodeId, RangeAction, RangeOutcome};
use isotherm_model::outcome::Fate;
use isotherm_model::port::RangeExecutor;
use isotherm_sys::memory::Errno;
use isotherm_sys::policy::{self, MempolicyMode, NodeMask};

/// Sets the policy of a range of this process, which begins on a page. Existing pages stay.
///
/// # Errors
/// As [`policy::set_for_range`].
pub fn place(range: AddressRange, mode: MempolicyMode, node: NodeId) -> Result<(), Errno> {
    let nodes = NodeMask::of(&[node.0]).ok_or(Errno::INVAL)?;
    policy::set_for_range(range.start as usize, range.bytes.0 as usize, mode, &nodes)
}

/// Sets the node of new pages where other executors move existing ones, to change policies of memory that
/// moves.
#[derive(Debug)]
pub struct PlacementExecutor;

impl RangeExecutor for PlacementExecutor {
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
        let fate = match place(action.range, MempolicyMode::Preferred, action.node) {
            Ok(()) => Fate::Requested,
            Err(error) => Fate::Denied(format!("the policy was refused ({error})").into()),
        };
        RangeOutcome::whole(action, fate)
    }
}
