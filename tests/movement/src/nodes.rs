//! Lists the nodes of this machine that have memory.

use isotherm_sys::memory;
use isotherm_sys::policy::{MempolicyMode, NodeMask, set_for_range};

/// Nodes that memory can be bound to, in order; node 0 alone where the kernel has no nodes.
pub fn with_memory() -> Vec<u32> {
    let Ok(range) = memory::fresh(4096) else {
        return vec![0];
    };
    let binds = |node: &u32| {
        let mask = NodeMask::of(&[*node]);
        mask.is_some_and(|mask| set_for_range(range, 4096, MempolicyMode::Bind, &mask).is_ok())
    };
    let nodes: Vec<u32> = (0..1024).filter(binds).collect();
    // SAFETY: the range was mapped here and was never handed out.
    let _ = unsafe { memory::unmap(range, 4096) };
    if nodes.is_empty() { vec![0] } else { nodes }
}
