//! [`high_pages`] reads from `/proc/zoneinfo` the high watermarks of a node's zones, as a sum: the free pages below which the kernel
//! promotes nothing to the node. The capacity of the fast tier leaves at least as much free or reclaimable on each fast node, and too
//! little free memory above it, over all fast nodes together, shows that the kernel's own promotion lacks room.
//!
//! ```text
//! Node 0, zone   Normal
//!   pages free     41223
//!         min      4012
//!         low      5015
//!         high     6018       a promotion needs more free pages than this
//! ```

use std::path::Path;

use isotherm_model::movement::NodeId;

/// Pages of the high watermarks of a node's zones; 0 where they cannot be read.
pub(super) fn high_pages(root: &Path, node: NodeId) -> u64 {
    let text = std::fs::read_to_string(root.join("proc/zoneinfo")).unwrap_or_default();
    let heading = format!("Node {}", node.0);
    let (mut is_of_node, mut pages) = (false, 0_u64);
    for line in text.lines() {
        if let Some((of, _)) = line.split_once(", zone") {
            is_of_node = of == heading;
        } else if is_of_node {
            let mut words = line.split_ascii_whitespace();
            if words.next() == Some("high") {
                let number = words.next().and_then(|word| word.parse().ok());
                // The lists of each processor have lines `high:`, with a colon.
                pages = pages.saturating_add(number.unwrap_or(0));
            }
        }
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::high_pages;
    use isotherm_model::movement::NodeId;

    #[test]
    fn the_watermarks_of_all_zones_of_the_node_count() {
        let root = tempfile::tempdir().expect("a directory");
        assert_eq!(high_pages(root.path(), NodeId(0)), 0);
        std::fs::create_dir_all(root.path().join("proc")).expect("made");
        let text = "Node 0, zone      DMA\n  per-node stats\n  pages free     2816\n        min      64\n        high     96\n\
                    \x20 pagesets\n    cpu: 0\n              high:  14\n\
                    Node 0, zone    DMA32\n  pages free     9\n        high     1000\n\
                    Node 10, zone  Normal\n        high     7\n";
        std::fs::write(root.path().join("proc/zoneinfo"), text).expect("written");
        assert_eq!(high_pages(root.path(), NodeId(0)), 1096);
        assert_eq!(high_pages(root.path(), NodeId(10)), 7);
        assert_eq!(high_pages(root.path(), NodeId(1)), 0);
    }
}
