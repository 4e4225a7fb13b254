//! Sets memory policies: the nodes on which the kernel allocates new pages of a range.

use std::process;

use isotherm_model::movement::{
    AddressRange, NodeId, RangeAction, RangeOutcome, RangePolicy, RangeRequest,
};
use isotherm_model::outcome::{Fate, Reason};
use isotherm_model::port::RangeExecutor;
use isotherm_model::units::Bytes;
use isotherm_sys::memory::Errno;
use isotherm_sys::policy::MempolicyMode;

use super::system::{PAGE_BYTES, PolicySystem, Refusal};

/// Sets the policy of ranges of this process by `mbind`. Existing pages stay; a part of a page gets
/// the policy of the page.
#[derive(Debug)]
pub struct PlacementExecutor<S> {
    system: S,
}

impl<S: PolicySystem> PlacementExecutor<S> {
    /// An executor on this system.
    pub const fn new(system: S) -> Self {
        Self { system }
    }

    /// Sets the policy of this thread and its children (`set_mempolicy`): the way to place a program
    /// from outside, before it runs.
    pub fn place_thread(&mut self, wanted: &RangePolicy) -> Fate {
        let (mode, nodes) = match self.prepare(wanted) {
            Ok(prepared) => prepared,
            Err(fate) => return fate,
        };
        let set = self.system.set_thread_policy(mode, &nodes);
        fate(set, wanted)
    }

    fn place(&mut self, action: &RangeAction) -> Fate {
        let RangeRequest::Place(wanted) = &action.request else {
            return Fate::Denied("placement moves no page; migration does".to_owned());
        };
        let pid = action.process.pid;
        if pid != 0 && pid != process::id() {
            return Fate::Denied(format!(
                "the memory of process {pid} can be placed only by itself (mbind has no process); \
                 start it under a policy, or let its runtime place"
            ));
        }
        let (mode, nodes) = match self.prepare(wanted) {
            Ok(prepared) => prepared,
            Err(fate) => return fate,
        };
        let set = self
            .system
            .set_policy(whole_pages(action.range), mode, &nodes);
        fate(set, wanted)
    }

    /// The kernel's mode and nodes, after the weights were set.
    fn prepare(&mut self, wanted: &RangePolicy) -> Result<(MempolicyMode, Vec<NodeId>), Fate> {
        let (mode, nodes) = match wanted {
            RangePolicy::Default => return Ok((MempolicyMode::Default, Vec::new())),
            RangePolicy::Preferred(node) => (MempolicyMode::Preferred, vec![*node]),
            RangePolicy::PreferredMany(nodes) => (MempolicyMode::PreferredMany, nodes.clone()),
            RangePolicy::Bind(nodes) => (MempolicyMode::Bind, nodes.clone()),
            RangePolicy::WeightedInterleave(weights) => {
                for (node, weight) in weights {
                    self.system
                        .set_weight(*node, *weight)
                        .map_err(|refusal| weight_fate(*node, *weight, refusal))?;
                }
                let nodes = weights.iter().map(|(node, _)| *node).collect();
                (MempolicyMode::WeightedInterleave, nodes)
            }
        };
        if nodes.is_empty() {
            let why = "the policy names no node; name at least one";
            return Err(Fate::Denied(why.to_owned()));
        }
        Ok((mode, nodes))
    }
}

impl<S: PolicySystem> RangeExecutor for PlacementExecutor<S> {
    fn execute(&mut self, actions: &[RangeAction]) -> Vec<RangeOutcome> {
        let outcome = |action: &RangeAction| {
            let fate = self.place(action);
            RangeOutcome::whole(action.clone(), fate)
        };
        actions.iter().map(outcome).collect()
    }
}

fn whole_pages(range: AddressRange) -> AddressRange {
    let start = range.start / PAGE_BYTES * PAGE_BYTES;
    let end = range.end().div_ceil(PAGE_BYTES).saturating_mul(PAGE_BYTES);
    AddressRange {
        start,
        bytes: Bytes(end - start),
    }
}

fn weight_fate(node: NodeId, weight: u8, refusal: Refusal) -> Fate {
    match refusal {
        Refusal::DryRun => Fate::NotAttempted(Reason::DryRun),
        Refusal::Kernel(Errno(libc::ENOENT)) => Fate::Denied(format!(
            "node {node} has no weight: weighted interleave needs Linux 6.9, and the node must be \
             there"
        )),
        Refusal::Kernel(Errno(libc::EACCES | libc::EPERM | libc::EROFS)) => Fate::Denied(format!(
            "the weight of node {node} may not be set to {weight}; it is the whole system's: run as \
             root, or have it set in /sys/kernel/mm/mempolicy/weighted_interleave"
        )),
        Refusal::Kernel(Errno(number)) => Fate::Denied(format!(
            "the weight {weight} of node {node} was refused (error {number}); 1 to 255 are weights"
        )),
    }
}

/// The outcome of the kernel's answer to this policy.
fn fate(answer: Result<(), Refusal>, wanted: &RangePolicy) -> Fate {
    let Err(refusal) = answer else {
        return Fate::Requested;
    };
    let number = match refusal {
        Refusal::DryRun => return Fate::NotAttempted(Reason::DryRun),
        Refusal::Kernel(Errno(number)) => number,
    };
    Fate::Denied(match (number, wanted) {
        (libc::EINVAL, RangePolicy::PreferredMany(_)) => {
            "preferring several nodes needs Linux 5.15, and all of them must have memory".to_owned()
        }
        (libc::EINVAL, RangePolicy::WeightedInterleave(_)) => {
            "weighted interleave needs Linux 6.9, and all of its nodes must have memory".to_owned()
        }
        (libc::EINVAL, _) => {
            "a node is not there, has no memory, or is outside the cpuset".to_owned()
        }
        (libc::EFAULT, _) => "the range is not mapped as a whole".to_owned(),
        (libc::ENOSYS, _) => {
            "this kernel has no memory policies (CONFIG_NUMA); every page is on its only node"
                .to_owned()
        }
        (libc::EPERM | libc::EACCES, _) => {
            "memory policies are forbidden here (a container's system call filter?)".to_owned()
        }
        (number, _) => format!("the kernel refused the policy (error {number})"),
    })
}

#[cfg(test)]
mod tests {
    use super::PlacementExecutor;
    use crate::movement::system::{DrySystem, Kernel, SystemCall};
    use isotherm_model::batch::Process;
    use isotherm_model::movement::{AddressRange, NodeId, RangeAction, RangePolicy, RangeRequest};
    use isotherm_model::outcome::{Fate, Reason};
    use isotherm_model::port::RangeExecutor;
    use isotherm_model::units::Bytes;
    use std::path::Path;

    fn action(pid: u32, policy: RangePolicy) -> RangeAction {
        RangeAction {
            process: Process { pid, image: 0 },
            range: AddressRange {
                start: 0x10_0fff,
                bytes: Bytes(2),
            },
            request: RangeRequest::Place(policy),
        }
    }

    #[test]
    fn a_dry_run_says_each_call_in_order_and_places_nothing() {
        let mut calls = Vec::new();
        let dry = DrySystem::new(Kernel::new(Path::new("/")), |call: &SystemCall| {
            calls.push(call.to_string());
        });
        let outcomes = PlacementExecutor::new(dry).execute(&[
            action(0, RangePolicy::Bind(vec![NodeId(1), NodeId(3)])),
            action(
                0,
                RangePolicy::WeightedInterleave(vec![(NodeId(0), 3), (NodeId(1), 1)]),
            ),
        ]);
        let fate = Fate::NotAttempted(Reason::DryRun);
        assert!(outcomes.iter().all(|outcome| outcome.parts[0].fate == fate));
        let weights = "/sys/kernel/mm/mempolicy/weighted_interleave";
        assert_eq!(
            calls,
            [
                "mbind(0x100000, 8192, MPOL_BIND, nodes 1,3, 0)".to_owned(),
                format!("write({weights}/node0, 3)"),
                format!("write({weights}/node1, 1)"),
                "mbind(0x100000, 8192, MPOL_WEIGHTED_INTERLEAVE, nodes 0,1, 0)".to_owned(),
            ]
        );
    }

    #[test]
    fn weights_are_written_below_the_root_and_an_old_kernel_is_named() {
        let root = tempfile::tempdir().unwrap();
        let mut placement = PlacementExecutor::new(Kernel::new(root.path()));
        let policy = || RangePolicy::WeightedInterleave(vec![(NodeId(0), 4)]);
        let denied = placement.execute(&[action(0, policy())]);
        let Fate::Denied(why) = &denied[0].parts[0].fate else {
            panic!("{denied:?}");
        };
        assert!(why.contains("Linux 6.9"), "{why}");
        let weights = root
            .path()
            .join("sys/kernel/mm/mempolicy/weighted_interleave");
        std::fs::create_dir_all(&weights).unwrap();
        std::fs::write(weights.join("node0"), "1\n").unwrap();
        // The range is not mapped, so the policy itself is denied after the weight was written.
        placement.execute(&[action(0, policy())]);
        assert_eq!(std::fs::read_to_string(weights.join("node0")).unwrap(), "4");
    }

    #[test]
    fn other_processes_unmapped_ranges_and_empty_policies_are_denied_with_a_reason() {
        let mut placement = PlacementExecutor::new(Kernel::new(Path::new("/")));
        let outcomes = placement.execute(&[
            action(1, RangePolicy::Preferred(NodeId(0))),
            action(0, RangePolicy::Preferred(NodeId(0))),
            action(0, RangePolicy::Bind(Vec::new())),
            RangeAction {
                request: RangeRequest::Move(NodeId(0)),
                ..action(0, RangePolicy::Default)
            },
        ]);
        for outcome in outcomes {
            assert!(matches!(&outcome.parts[0].fate, Fate::Denied(why) if why.len() > 20));
        }
    }
}
